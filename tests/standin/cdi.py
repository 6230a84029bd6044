"""Writes a CDI spec that injects the stand-in driver and one imaginary GPU.

The device nodes are clones of /dev/null (character device 1:3), so nothing is made on the host.
"""

import json
from pathlib import Path

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
MOUNT_OPTIONS = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")


def _node(name: str) -> dict[str, object]:
    null = {"type": "c", "major": 1, "minor": 3, "fileMode": 0o666, "permissions": "rw"}
    return {"path": f"/dev/{name}", **null}


def _mount(host: Path, inside: str) -> dict[str, object]:
    return {"hostPath": str(host), "containerPath": inside, "options": MOUNT_OPTIONS}


def spec(kind: str, files: Path) -> str:
    """The spec's text: devices ``0`` and ``all`` of a kind, with the built files of a folder."""
    mounts = [
        _mount(files / "standin.conf", "/etc/standin-gpu.conf"),
        _mount(files / "nvidia-smi", "/usr/bin/nvidia-smi"),
        *(_mount(files / n, f"{LIBRARIES}/{n}") for n in ("libcuda.so.1", "libnvidia-ml.so.1")),
    ]
    edits = {
        "env": ["NVIDIA_VISIBLE_DEVICES=void", "STANDIN_GPU=1"],
        "deviceNodes": [_node(name) for name in NODES],
        "mounts": mounts,
    }
    gpu = {"deviceNodes": [_node("nvidia0")]}
    devices = [{"name": name, "containerEdits": gpu} for name in ("0", "all")]
    text = {"cdiVersion": "0.5.0", "kind": kind, "devices": devices, "containerEdits": edits}
    return json.dumps(text, indent=2)


def write(path: Path, text: str) -> None:
    """Put a spec in its place at once: the engine watches the folder."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.rename(path)
