"""What is in the layers of an image: nothing of the machine that built it, and no time but one."""

import re
from pathlib import Path

import fleet
import pytest
from fleet import Built, Project
from layer_files import Entry, walk

from gpulayers.engine.registry import Registry

pytestmark = pytest.mark.timeout(1500)
SETTINGS = ("gpulayers.sources", "pip.conf", "uv.toml", "uv-receipt.json", "ca.crt")
OWN_CAS = Path("/usr/local/share/ca-certificates")
BUNDLE = "etc/ssl/certs/ca-certificates.crt"
PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


@pytest.fixture(scope="module")
def entries(mini: tuple[Project, Built], client: Registry) -> list[Entry]:
    """Every file of every layer of one image, also those that a higher layer hides."""
    return list(walk(mini[1].images["cupy13.6.0-debian12-alpha"], client))


def ours(entries: list[Entry], mini: tuple[Project, Built]) -> list[Entry]:
    """What we made: all layers, but for those of a base that others made."""
    lock = fleet.read_lock(fleet.DEMO)
    repository = next(base["repository"] for base in lock["base"] if base["os"] == "debian12")
    assert mini[1].images
    return [one for one in entries if one.step != "base" or not repository]


def test_every_layer_is_there(entries: list[Entry]) -> None:
    steps = list(dict.fromkeys(one.step for one in entries))
    assert steps[0] == "base"
    assert steps[-2:] == ["model-alpha", "identity"]
    assert {"init", "python-3.11", "cuda-wheels", "packages-debian12"} < set(steps)
    paths = {one.path for one in entries}
    assert {"opt/models/alpha/words.txt", "usr/bin/tini", BUNDLE} < paths
    assert not any(path.startswith("opt/models/alpha/smoke") for path in paths)


def test_no_time_is_later_than_the_one_that_all_files_have(
    entries: list[Entry], mini: tuple[Project, Built]
) -> None:
    late = [(one.step, one.path) for one in ours(entries, mini) if one.mtime > fleet.EPOCH]
    assert late == []


def test_no_name_of_a_user_of_the_building_machine_is_in_a_layer(
    entries: list[Entry], mini: tuple[Project, Built]
) -> None:
    owners = {one.owner[:2] for one in ours(entries, mini) if one.step != "base"}
    assert {uid for uid, _ in owners} == {0}
    assert {one.owner[2] for one in entries} <= {"", "root", "_apt"}


def test_no_settings_of_the_building_machine_are_in_a_layer(entries: list[Entry]) -> None:
    found = [one.path for one in entries if one.path.rpartition("/")[2] in SETTINGS and one.data]
    assert found == []
    assert not any(one.path.startswith(("run/secrets", "root/.cache")) for one in entries)


def test_no_mirror_of_the_building_machine_is_named(
    entries: list[Entry], mini: tuple[Project, Built]
) -> None:
    folder = mini[0].folder / ".gpulayers" / "inputs"
    texts = [path.read_text(encoding="utf-8") for path in folder.iterdir()]
    hosts = {host.encode() for text in texts for host in re.findall(r"https?://([^/\s\"]+)", text)}
    assert hosts, "apt asked some host"
    in_apt = [one for one in ours(entries, mini) if one.path.startswith("etc/apt/") and one.data]
    named = [(one.path, host) for one in in_apt for host in hosts if host in one.data]
    assert named == []
    # An index says where a wheel came from in the wheel's own folder, if anywhere.
    told = [one.path for one in entries if one.path.endswith("direct_url.json")]
    assert told == []


def test_no_certificate_of_the_building_machine_is_in_a_layer(entries: list[Entry]) -> None:
    bundle = next(one for one in reversed(entries) if one.path == BUNDLE)
    assert bundle.step in {"packages-debian12", "base"}
    trusted = bodies(bundle.data)
    assert len(trusted) > 100
    own = {body for path in OWN_CAS.rglob("*.crt") for body in bodies(path.read_bytes())}
    if not own:
        pytest.skip("this machine has no certificates of its own")
    assert not own & trusted
    assert [one.path for one in entries if own & bodies(one.data)] == []


def bodies(data: bytes) -> set[bytes]:
    """The certificates of a PEM file, without their line ends."""
    return {b"".join(body.split()) for body in PEM.findall(data)}
