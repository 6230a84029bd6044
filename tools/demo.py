"""`make demo`: the main job for real, from matrix.toml to images that can be pulled by tag."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from gpulayers.engine.registry import Registry
from gpulayers.project import Project, scan_file
from gpulayers.refs import ImageRef, Platform
from gpulayers.scan import gate, policy
from gpulayers.scan.scanner import Scanner

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "demo"
STATE = DEMO / ".gpulayers"
HERE = "examples/demo"
REPORT = STATE / "report.json"
LOCK = DEMO / "matrix.lock.toml"
DATABASE = STATE / "demo" / "trivy-db"
PLANTED = {"name": "PyYAML", "version": "5.3"}
DISK_GB = 45
DOCKERFILE = """\
FROM {base}
COPY METADATA /opt/venv/lib/python3.11/site-packages/{name}-{version}.dist-info/METADATA
"""


def say(text: str) -> None:
    """A heading of the demo."""
    print(f"\n== {text}", flush=True)


def gpulayers(*words: str, check: bool = True) -> int:
    """Run the command line as a user would, its output shown as it comes."""
    print(f"examples/demo$ gpulayers {' '.join(words)}", flush=True)
    code = subprocess.run(
        [sys.executable, "-m", "gpulayers", *words], cwd=DEMO, check=False
    ).returncode
    if check and code:
        sys.exit(code)
    return code


def docker(*words: str, cwd: Path | None = None) -> str:
    """Run the Docker client; its output."""
    done = subprocess.run(["docker", *words], cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        sys.exit(f"docker {words[0]} ended with {done.returncode}")
    return done.stdout


def look_at_disk() -> None:
    """Say what will be needed before anything starts."""
    free = shutil.disk_usage(ROOT).free / 10**9
    print(f"disk: {free:.0f} GB free; a cold demo needs about {DISK_GB} GB at its peak")
    if free < DISK_GB and not REPORT.is_file():
        print("disk: that may not be enough; `make clean` gives back all that a demo took")


def show_scanner(registry: str) -> None:
    """The scanner at work: a planted package, found with the small hand-made database."""
    say("the scanner finds what is planted (small hand-made database, not the real one)")

    subprocess.run(
        [sys.executable, "tools/trivy_db", "build", str(DATABASE)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    images = json.loads(REPORT.read_text())["images"]
    subject = next(image for image in images if image["digest"])
    place = STATE / "demo" / "planted"
    place.mkdir(parents=True, exist_ok=True)
    (place / "Dockerfile").write_text(DOCKERFILE.format(base=subject["ref"], **PLANTED))
    (place / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".format(**PLANTED)
    )
    name = f"{registry}/demo-planted:1"
    output = f"--output=type=image,name={name},push=true,unpack=false,store=false"
    docker("buildx", "build", "--quiet", "--provenance=false", output, str(place))
    with Registry() as client:
        ref = ImageRef.parse(name)
        digest = client.resolve(ref)
    if digest is None:
        sys.exit(f"{name} was pushed and is not there")
    scanner = Scanner.open(
        STATE / "demo" / "trivy", environ={**os.environ, "GPULAYERS_TRIVY_DB": str(DATABASE)}
    )
    raw = scanner.scan(
        ref.with_digest(digest), Platform.parse("linux/amd64"), reports=STATE / "demo" / "scans"
    )
    rules, _ = policy.read(scan_file(Project.at(DEMO), "policy.toml"))
    if rules is None:
        sys.exit("scans/policy.toml has problems: gpulayers check names them")
    done = gate.judged(raw, rules, "edge")
    print(
        f"planted {PLANTED['name']} {PLANTED['version']}: {done.status} ({done.cls}): {done.text}"
    )
    if done.status != "failed":
        sys.exit("the scanner did not reject what was planted")


def show_pull() -> tuple[str, str]:
    """Run an image by its tag and say what its framework says of itself."""
    say("an image, pulled by tag and run")
    report = json.loads(REPORT.read_text())
    for image in report["images"]:
        tags = [tag for tag in image["tags"] if tag.endswith("-edge")]
        if tags and image["cell"]["framework"].startswith("onnxruntime-gpu"):
            break
    else:
        sys.exit("no image of the report has its tag")
    ref = f"{image['ref'].partition('@')[0]}:{tags[0]}"
    code = "import onnxruntime as o; print(o.__version__, o.get_available_providers())"
    shown = f'docker run --rm {ref} python -c "{code}"'
    print(f"$ {shown}", flush=True)
    print(docker("run", "--rm", ref, "python", "-W", "ignore", "-c", code).strip(), flush=True)
    return ref, shown


def main() -> None:
    """The whole demo."""
    begin = time.monotonic()
    registry = f"{os.environ['GPULAYERS_REGISTRY']}/acme"
    look_at_disk()
    say("the files of the project are right")
    gpulayers("check")
    say("everything by digest and hash")
    if not LOCK.is_file() or gpulayers("lock", "--check", "--registry", registry, check=False):
        gpulayers("lock", "--registry", registry)
    say("the main job")
    code = gpulayers("build", "--matrix", "--registry", registry, check=False)
    if code:
        sys.exit(code)
    show_scanner(registry)
    say("the catalog")
    gpulayers("catalog", "--registry", registry)
    ref, shown = show_pull()
    say(f"done in {time.monotonic() - begin:.0f} s. What to look at:")
    print(f"  pull      docker pull {ref}   (`make status` says how to reach the engine)")
    print(f"  run       python3 tools/devenv run -- {shown}")
    print(f"  catalog   {HERE}/.gpulayers/catalog/index.html")
    print(f"  report    {HERE}/.gpulayers/report.json")
    print(
        f"  files     {HERE}/.gpulayers/render/docker-bake.json and images/*.Dockerfile: plain ones"
    )
    print(f"  lock      {HERE}/matrix.lock.toml")
    print("  again     make demo   (builds nothing: every image is there)")
    print("  away      make clean")


if __name__ == "__main__":
    main()
