"""The catalog counts layers once, gives tags to their holders, and shows gates as they are."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from catalog_samples import CHANNELS, MB, NAME, gates, image, layer, write_sbom, write_state

from gpulayers import catalog
from gpulayers.catalog import Catalog
from gpulayers.engine.registry import digest_of
from gpulayers.history import History, Move
from gpulayers.record import Failure, Gate, ImageRecord, Records, no_gates, not_run
from gpulayers.render.page import megabytes

OLD = digest_of(b"old")


def made(folder: Path, *images: ImageRecord) -> Catalog:
    return catalog.make(catalog.read(write_state(folder, images)), CHANNELS)


def with_stable(folder: Path, each: ImageRecord) -> Catalog:
    write_state(folder, [each])
    move = Move(
        time="2030-01-01T00:00:00.000000Z",
        channel="stable",
        ref=f"{NAME}:{each.tag}",
        old="",
        new=each.digest,
        who="promote",
    )
    History(folder / "channels.json").append([move])
    return catalog.make(catalog.read(folder), CHANNELS)


def test_a_layer_of_two_images_is_counted_once_and_told_as_shared(tmp_path: Path) -> None:
    found = made(tmp_path, image("a"), image("b"))
    assert (found.sum_bytes, found.unique_bytes) == (64 * MB, 34 * MB)
    assert [(it.step, it.images) for it in found.layers] == [
        ("base", 2),
        ("own of a", 1),
        ("own of b", 1),
    ]
    assert [entry.own_bytes for entry in found.entries] == [2 * MB, 2 * MB]


def test_a_layer_that_one_image_has_twice_is_one_image(tmp_path: Path) -> None:
    found = made(tmp_path, image(layers=(layer("empty"), layer("empty"))))
    assert [it.images for it in found.layers] == [1]
    assert (found.entries[0].own_bytes, found.sum_bytes) == (MB, MB)


def test_the_highest_channel_stands_first_and_content_last(tmp_path: Path) -> None:
    (entry,) = with_stable(tmp_path, image()).entries
    content = f"{NAME}:app-{image().key[:12]}"
    assert entry.tags == (f"{NAME}:app", f"{NAME}:app-edge", content)
    assert entry.channels == ("edge", "stable")


def test_an_image_without_channel_that_is_not_of_the_last_run_is_not_current(
    tmp_path: Path,
) -> None:
    write_state(tmp_path, [image()])
    past = replace(image(), digest=OLD, ref=f"{NAME}@{OLD}", tags=("app-000000000000",))
    Records(tmp_path / "records").write(past)
    found = catalog.make(catalog.read(tmp_path), CHANNELS)
    assert [(entry.image.digest, entry.current) for entry in found.entries] == [
        (image().digest, True),
        (OLD, False),
    ]
    assert found.sum_bytes == image().size_bytes


def test_the_document_has_all_of_an_image(tmp_path: Path) -> None:
    write_state(tmp_path, [image()])
    write_sbom(tmp_path, image().digest, torch="2.8.0")
    document = catalog.format_json(catalog.make(catalog.read(tmp_path), CHANNELS))
    (found,) = json.loads(json.dumps(document))["images"]
    assert found["pull"] == f"docker pull {NAME}@{image().digest}"
    assert found["contents"] == {
        "framework": "torch==2.8.0",
        "cuda": "12.8",
        "python": "3.11",
        "os": "debian12",
        "model": "none",
        "wheels": {"torch": "2.8.0"},
    }
    assert (found["bytes"], found["channels"], found["current"]) == (32 * MB, ["edge"], True)
    assert found["layers"][0] == {
        "digest": layer("base").digest,
        "step": "base",
        "bytes": 30 * MB,
        "images": 1,
    }
    assert document["bytes"] == {"unique": 32 * MB, "sum": 32 * MB}


def test_a_gate_that_the_record_lacks_is_not_run_in_the_document(tmp_path: Path) -> None:
    state = catalog.read(write_state(tmp_path, [image()]))
    state = replace(state, last=(image(gates=gates(scan=None)),))
    document = json.loads(json.dumps(catalog.format_json(catalog.make(state, CHANNELS))))
    scan = document["images"][0]["gates"]["scan"]
    assert (scan["status"], scan["class"]) == ("not-run", "gate-missing")


class Chips(HTMLParser):
    """Collects the text of every chip by its class, and every address in the page."""

    def __init__(self) -> None:
        super().__init__()
        self.chips: list[tuple[str, str]] = []
        self.addresses: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.addresses += [f"{tag} {name}" for name in values if name in ("src", "href")]
        self.depth += bool(self.depth and tag == "span")
        if "chip" in (values.get("class") or "").split():
            self.chips.append(((values.get("class") or "").split()[1], ""))
            self.depth = 1

    def handle_endtag(self, tag: str) -> None:
        self.depth -= bool(self.depth and tag == "span")

    def handle_data(self, data: str) -> None:
        if self.depth:
            status, text = self.chips[-1]
            self.chips[-1] = (status, text + data)


def chips(found: Catalog) -> Iterator[tuple[str, str]]:
    parser = Chips()
    parser.feed(catalog.html(found))
    yield from parser.chips


def test_only_what_passed_looks_passed(tmp_path: Path) -> None:
    simulated = Gate(status="simulated", cls="stand-in-driver", text="", seconds=1.0)
    failed = Gate(status="failed", cls="scan-rejected", text="CVE-1", seconds=1.0)
    found = list(chips(made(tmp_path, image("a", gates=gates(smoke=simulated, scan=failed)))))
    assert all("✓" in text and "passed" in text for status, text in found if status == "passed")
    assert all("✓" not in text for status, text in found if status != "passed")
    assert {status for status, _ in found} == {"passed", "failed", "not-run", "simulated"}
    assert ("simulated", "≈smoke simulated") in found
    assert ("failed", "✕scan failed") in found
    assert ("not-run", "○duplicates not run") in found


def test_the_smoke_gate_is_told_by_level(tmp_path: Path) -> None:
    found = list(chips(made(tmp_path, image())))
    assert ("passed", "✓cpu smoke passed") in found
    assert ("not-run", "○gpu smoke not run") in found


def test_the_page_says_why_a_gate_did_not_run(tmp_path: Path) -> None:
    gate = not_run("scan-database-missing", "there is no trivy.db")
    text = catalog.html(made(tmp_path, image(gates=gates(scan=gate))))
    assert "<code>scan-database-missing</code> there is no trivy.db" in text


def test_the_page_asks_for_nothing_outside_itself(tmp_path: Path) -> None:
    text = catalog.html(made(tmp_path, image()))
    parser = Chips()
    parser.feed(text)
    assert parser.addresses == []
    assert re.findall(r"url\(|@import|https?://|fetch\(", text) == []
    assert "default-src 'none'" in text


def test_what_stands_in_a_record_is_escaped(tmp_path: Path) -> None:
    gate = not_run("odd", "<script>alert(1)</script>")
    text = catalog.html(made(tmp_path, image(gates=gates(scan=gate))))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_the_page_offers_the_highest_tag_and_the_digest(tmp_path: Path) -> None:
    text = catalog.html(with_stable(tmp_path, image()))
    assert re.findall(r"<code>(docker pull [^<]*)</code>", text) == [
        f"docker pull {NAME}:app",
        f"docker pull {NAME}@{image().digest}",
    ]


def test_an_image_that_was_not_made_is_told_with_its_command(tmp_path: Path) -> None:
    failure = Failure(
        blocks="build",
        cls="build-step-failed",
        step="python-3.11",
        exit=3,
        stderr_tail=("E: gone",),
        repeat="docker buildx bake app",
    )
    lost = image(
        "lost",
        digest="",
        ref="",
        layers=(),
        tags=(),
        status="failed",
        gates=no_gates("not-built", ""),
        failure=failure,
    )
    found = made(tmp_path, lost)
    text = catalog.html(found)
    assert "build-step-failed</code> in step python-3.11" in text
    assert "E: gone" in text
    assert catalog.format_json(found)["images"] == []


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    found = made(tmp_path, image("a"), image("b"))
    assert catalog.html(found) == catalog.html(found)


def test_a_catalog_of_nothing_says_how_to_begin(tmp_path: Path) -> None:
    assert "gpulayers build" in catalog.html(catalog.make(catalog.read(tmp_path), CHANNELS))


def test_page_and_document_are_written_side_by_side(tmp_path: Path) -> None:
    page, document = catalog.write(tmp_path / "out", made(tmp_path / "state", image()))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(document.read_text(encoding="utf-8"))["schema"] == 1
    assert sorted(path.name for path in page.parent.iterdir()) == ["catalog.json", "index.html"]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (158, "158 B"),
        (12_000, "12.0 kB"),
        (4_250_000, "4.2 MB"),
        (1_009 * MB, "1,009 MB"),
    ],
)
def test_sizes_are_told_in_powers_of_ten(size_bytes: int, text: str) -> None:
    assert megabytes(size_bytes) == text
