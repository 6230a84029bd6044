"""The config and manifest that BuildKit would write for an image: the same bytes.

Sources: BuildKit's ``frontend/dockerfile/dockerfile2llb`` (what each instruction leaves in the
config and its history) and ``exporter/containerimage/writer.go`` (order of keys, times); both are
held against images that BuildKit built by ``tests/engine/test_composed.py``.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from gpulayers.engine.registry.model import OCI_MANIFEST, Descriptor, digest_of
from gpulayers.matrix.model import HealthCheck
from gpulayers.plan.keys import EPOCH
from gpulayers.plan.model import Config
from gpulayers.refs import Platform

CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
# What layers of Docker's own types become where OCI's are asked for.
LAYER_TYPES = {
    "application/vnd.docker.image.rootfs.diff.tar": LAYER_TYPE,
    "application/vnd.docker.image.rootfs.diff.tar.gzip": f"{LAYER_TYPE}+gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd": f"{LAYER_TYPE}+zstd",
}
COPY = "COPY /out/ / # buildkit"
COMMENT = "buildkit.dockerfile.v0"
# In the order in which they are written; what a base has beside them is another builder's business.
TOP = ("architecture", "author", "config", "created", "history", "os", "rootfs", "variant")
INNER = (
    *("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels"),
    *("StopSignal", "ArgsEscaped", "Healthcheck", "StopTimeout", "Shell"),
)
HISTORY = ("created", "created_by", "author", "comment", "empty_layer")
# Of old Docker engines: BuildKit reads past these.
PASSED_OVER = {
    *(
        "container",
        "container_config",
        "docker_version",
        "id",
        "parent",
        "moby.buildkit.buildinfo.v1",
    ),
    *("Hostname", "Domainname", "AttachStdin", "AttachStdout", "AttachStderr", "Tty", "OpenStdin"),
    *("StdinOnce", "Image", "OnBuild", "NetworkDisabled", "MacAddress"),
}
# As Go writes a time again; another spelling of it would change.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,8}[1-9])?Z")
_SECOND_NS = 10**9
_CONTROLS = [f"\\x{n:02x}" for n in range(7)] + [f"\\{letter}" for letter in "abtnvfr"]

Table = dict[str, object]


class Unlike(Exception):  # noqa: N818 - no error: the builder makes such an image
    """Something of the base for which it is not known what BuildKit would write."""


def config(base: bytes, wanted: Config, diff_ids: Sequence[str], *, steps: int) -> bytes:
    """The config of an image on a base, as its Dockerfile would have it.

    Shape: ``base`` is the base's config; ``diff_ids`` are those of all layers above it; ``steps``
    is how many of these are steps, before the folder to work in and the mark of the checks.
    Raises: Unlike: the base has what is not known here.
    """
    top = _table(json.loads(base), TOP, "the base's config")
    inner = _table(top.get("config") or {}, INNER, "the base's config: config")
    below = _list(_dict(top.get("rootfs"), "rootfs").get("diff_ids"), "diff_ids")
    history = [_entry(each) for each in _list(top.get("history"), "history")]
    if sum(not each.get("empty_layer") for each in history) != len(below):
        msg = f"the base has {len(below)} layers, of which its history tells otherwise"
        raise Unlike(msg)
    history += _made(wanted, steps)
    made: Table = {
        **top,
        "config": _inner(inner, wanted),
        "created": _shown(EPOCH),
        "history": [{name: each[name] for name in HISTORY if each.get(name)} for each in history],
        "rootfs": {"type": "layers", "diff_ids": [*below, *diff_ids]},
    }
    return _json({name: made[name] for name in TOP if made.get(name)}).encode()


def manifest(config_blob: bytes, layers: Sequence[Descriptor]) -> bytes:
    """The manifest of an image with this config and these layers, lowest first."""
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": _described(CONFIG_TYPE, digest_of(config_blob), len(config_blob)),
        "layers": [
            _described(
                LAYER_TYPES.get(each.media_type, each.media_type), each.digest, each.size_bytes
            )
            for each in layers
        ],
    }
    return _json(document, indent=2).encode()


def part_config(platform: Platform, diff_id: str) -> bytes:
    """The config of an image that is one step alone."""
    document = {
        "architecture": platform.architecture,
        "config": {},
        "created": _shown(EPOCH),
        "history": [{"created": _shown(EPOCH), "created_by": COPY, "comment": COMMENT}],
        "os": platform.os,
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }
    return _json(document).encode()


def _described(media_type: str, digest: str, size_bytes: int) -> Table:
    return {"mediaType": media_type, "digest": digest, "size": size_bytes}


def _inner(base: Mapping[str, object], wanted: Config) -> Table:
    env = _texts(base.get("Env"), "Env")
    names = [entry.partition("=")[0] for entry in env]
    if "PATH" not in names:
        msg = "the base says no PATH"
        raise Unlike(msg)
    for name, value in sorted(wanted.env.items()):
        if name in names:
            env[names.index(name)] = f"{name}={value}"
        else:
            names.append(name)
            env.append(f"{name}={value}")
    labels = {**_dict(base.get("Labels") or {}, "Labels"), **wanted.labels}
    ports = {
        **_dict(base.get("ExposedPorts") or {}, "ExposedPorts"),
        **{port: {} for port in wanted.ports},
    }
    made: Table = {
        **base,
        "User": wanted.user,
        "ExposedPorts": dict(sorted(ports.items())),
        "Env": env,
        "Cmd": list(wanted.command),
        "WorkingDir": wanted.workdir or base.get("WorkingDir") or "/",
        "Labels": dict(sorted(labels.items())),
        "ArgsEscaped": True,
    }
    if wanted.entrypoint:
        made["Entrypoint"] = list(wanted.entrypoint)
    if wanted.health_check is not None:
        made["Healthcheck"] = _health(wanted.health_check)
    return {name: made[name] for name in INNER if made.get(name)}


def _made(wanted: Config, steps: int) -> list[Table]:
    """The history of what stands above the base, in the order of the Dockerfile."""
    lines = [(COPY, True)] * steps
    for word, values in (("ENV", wanted.env), ("LABEL", wanted.labels)):
        pairs = (f"{name}={value}" for name, value in sorted(values.items()))
        lines += [(f"{word} {' '.join(pairs)}", False)] if values else []
    if wanted.workdir:
        lines.append((f"WORKDIR {wanted.workdir}", True))
    if wanted.ports:
        lines.append((f"EXPOSE [{' '.join(sorted(wanted.ports))}]", False))
    if wanted.health_check is not None:
        lines.append((_health_line(wanted.health_check), False))
    lines.append((f"USER {wanted.user}", False))
    if wanted.entrypoint:
        lines.append((f"ENTRYPOINT {_quoted(wanted.entrypoint)}", False))
    lines += [(f"CMD {_quoted(wanted.command)}", False), (COPY, True)]
    return [
        {
            "created": _shown(EPOCH),
            "created_by": line,
            "comment": COMMENT,
            "empty_layer": not makes_layer,
        }
        for line, makes_layer in lines
    ]


def _health(check: HealthCheck) -> Table:
    values: Table = {
        "Test": ["CMD", *check.command],
        "Interval": int(check.interval_s * _SECOND_NS),
        "Timeout": int(check.timeout_s * _SECOND_NS),
        "StartPeriod": int(check.start_s * _SECOND_NS),
        "Retries": check.retries,
    }
    return {name: value for name, value in values.items() if value}


def _health_line(check: HealthCheck) -> str:
    """As Go's ``%q`` prints the check: times by their words, and the count as a character."""
    if not 0 < check.retries < len(_CONTROLS):
        msg = f"how {check.retries} retries are spelled in a history is not known"
        raise Unlike(msg)
    times = (f'"{_duration(one)}"' for one in (check.interval_s, check.timeout_s, check.start_s))
    count = _CONTROLS[check.retries]
    test = _quoted(["CMD", *check.command])
    return f"HEALTHCHECK &{{{test} {' '.join(times)} \"0s\" '{count}'}}"


def _duration(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return (
        (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}s"
    )


def _quoted(words: Sequence[str]) -> str:
    """As Go's ``%q`` prints a list of texts; of texts without what it would spell otherwise."""
    if not all(word.isascii() and word.isprintable() for word in words):
        msg = f"how {words} is spelled in a history is not known"
        raise Unlike(msg)
    return "[" + " ".join(json.dumps(word) for word in words) + "]"


def _shown(epoch_s: int) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _entry(value: object) -> Table:
    """One entry of a base's history, which stays as it is."""
    entry = _table(value, HISTORY, "the base's history")
    match = _TIME.fullmatch(str(entry.get("created", "")))
    if match is None:
        msg = f"the base's history has the time {entry.get('created')!r}"
        raise Unlike(msg)
    return entry


def _json(value: object, indent: int | None = None) -> str:
    """JSON as Go writes it."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _table(value: object, known: Sequence[str], where: str) -> Table:
    table = _dict(value, where)
    for name, each in table.items():
        if name == "OnBuild" and each:
            msg = f"{where} has steps for those who build on it (ONBUILD)"
            raise Unlike(msg)
        if name not in known and name not in PASSED_OVER:
            msg = f"{where} has {name}"
            raise Unlike(msg)
    return {name: each for name, each in table.items() if name in known}


def _dict(value: object, where: str) -> Table:
    if not isinstance(value, dict):
        msg = f"{where} is no table"
        raise Unlike(msg)
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        msg = f"{where} is no list"
        raise Unlike(msg)
    return value


def _texts(value: object, where: str) -> list[str]:
    return [str(each) for each in _list(value or [], where)]
