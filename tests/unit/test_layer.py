"""The layer library: read strictly, replaced whole, every problem at once."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulayers.errors import ProjectError
from gpulayers.layer import LayerDef, Library, TextError, fill, read_library, stack
from gpulayers.layer.document import SAMPLE
from gpulayers.refs import Platform

AMD64, ARM64 = Platform("linux", "amd64"), Platform("linux", "arm64")

OWN = Path(__file__).parents[2] / "layers"
FRAMEWORK = """\
schema = 1
kind = "framework"
description = "A framework."
needs = ["cuda"]
requirements = ["thing=={version}"]
cuda-components = ["cudart"]

[identity]
distribution = "thing"
module = "thing"
"""


def put(folder: Path, name: str, text: str) -> None:
    """A layer's folder with its two files."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "layer.toml").write_text(text, encoding="utf-8")
    (folder / name / "Dockerfile.j2").touch()


def minimal(kind: str, *needs: str, more: str = "") -> str:
    shown = ", ".join(f'"{need}"' for need in needs)
    return f'schema = 1\nkind = "{kind}"\ndescription = "d"\nneeds = [{shown}]\n{more}'


def small(folder: Path) -> Path:
    """A library that holds together: python, cuda and a framework."""
    put(folder, "python", minimal("python"))
    put(folder, "cuda", minimal("cuda", "python"))
    put(folder, "thing", FRAMEWORK)
    return folder


def problems(*folders: Path, root: Path) -> list[str]:
    return [problem.format() for problem in read_library(folders, root=root)[1]]


def names(layers: tuple[LayerDef, ...]) -> list[str]:
    return [layer.name for layer in layers]


def test_the_layers_that_come_with_us_are_right() -> None:
    library, wrong = read_library([OWN], root=OWN.parent)
    assert [problem.format() for problem in wrong] == []
    assert {"cupy", "onnxruntime-gpu", "torch"} <= set(library.frameworks())
    for kind in ("base", "tools", "python", "cuda", "model"):
        assert library.single(kind).kind == kind


def test_a_stack_runs_from_the_lowest_layer_up() -> None:
    library = read_library([OWN], root=OWN.parent)[0]
    assert names(stack(library, "cupy")) == ["init", "python", "cuda", "cupy"]


def test_a_layer_is_read_with_everything_that_it_says(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    more = 'stands-in-for = ["thing-cpu"]\nos-packages = ["libgomp1"]\nentrypoint = ["run", "--"]\n'
    end = '[packages]\ndebian = ["tini"]\n[env]\nX = "1"\n'
    put(folder, "thing", FRAMEWORK.replace("\n[identity]", f"{more}\n[identity]") + end)
    (folder / "thing" / "smoke").mkdir()
    for name in ("gpu_b.py", "cpu_a.py", "notes.md"):
        (folder / "thing" / "smoke" / name).touch()
    library, wrong = read_library([folder], root=tmp_path)
    layer = library.layers["thing"]
    assert wrong == ()
    assert (layer.kind, layer.needs, layer.cuda_components) == ("framework", ("cuda",), ("cudart",))
    assert (layer.stands_in_for, layer.os_packages) == (("thing-cpu",), ("libgomp1",))
    assert (layer.entrypoint, layer.packages) == (("run", "--"), {"debian": ("tini",)})
    assert layer.env == {"X": "1"}
    assert [path.name for path in layer.smoke] == ["cpu_a.py", "gpu_b.py"]
    assert layer.template == folder / "thing" / "Dockerfile.j2"


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("cuda-components", "cuda-component"), 6, "did you mean 'cuda-components'?"),
        (('["cuda"]', '"cuda"'), 4, "needs: wanted an array, found a string"),
        (("schema = 1", "schema = true"), 1, "schema: wanted an integer, found a boolean"),
        (("schema = 1", "schema = 2"), 1, "schema: wanted 1, found 2"),
        (('"framework"', '"framwork"'), 2, "did you mean 'framework'?"),
        (('"A framework."', "3"), 3, "description: wanted a string, found an integer"),
        (('["cuda"]', '["cuda", 1]'), 4, "needs: wanted an array of strings"),
        (('["cuda"]', '["cuda", ""]'), 4, "found ''"),
        (('["cuda"]', '["cudaa"]'), 4, "of the library, found 'cudaa'; did you mean 'cuda'"),
        (("{version}", "{versoin}"), 5, "found 'thing=={versoin}'; did you mean 'version'?"),
        (("{version}", "{"), 5, "found 'thing=={'"),
        (("{version}", "{}"), 5, "found 'thing=={}'"),
        (("{version}", "{version.x}"), 5, "found 'thing=={version.x}'"),
        (("thing=={version}", "thing={version}"), 5, "a requirement (PEP 508)"),
        (('["cudart"]', '["cu dart"]'), 6, "the name of a CUDA component, found 'cu dart'"),
        (('module = "thing"', 'modul = "thing"'), 10, "identity.modul: wanted a known key"),
        (('distribution = "thing"', 'distribution = ""'), 9, "identity.distribution: wanted"),
        (('= "thing"\nm', '= "{cuda_minor}"\nm'), 9, "did you mean 'cuda_major'?"),
        (('module = "thing"', 'module = ["thing"]'), 10, "identity.module: wanted a string"),
        (('e = "thing"\n', 'e = "thing"\n[env]\nHF_TOKEN = "x"\n'), 12, "looks like a secret"),
        (('e = "thing"\n', 'e = "thing"\n[env]\nX = 1\n'), 12, "env.X: wanted a string, found 1"),
        (
            ('e = "thing"\n', 'e = "thing"\n[packages]\ndebian = ["a b"]\n'),
            12,
            "packages.debian: wanted an array of strings, each the name of an OS package",
        ),
        (('e = "thing"\n', 'e = "thing"\n[packages]\ndebian = "tini"\n'), 12, "wanted an array"),
        (("[identity]", "[identity"), 8, "(syntax): wanted TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, change: tuple[str, str], line: int, words: str
) -> None:
    folder = small(tmp_path / "layers")
    text = FRAMEWORK.replace(*change)
    assert text != FRAMEWORK
    put(folder, "thing", text)
    found = problems(folder, root=tmp_path)
    fitting = [one for one in found if words in one]
    assert len(fitting) == 1, found
    assert fitting[0].startswith(f"layers/thing/layer.toml:{line}: ")


@pytest.mark.parametrize("key", ["schema", "kind", "description", "needs"])
def test_a_missing_key_is_told(tmp_path: Path, key: str) -> None:
    folder = small(tmp_path / "layers")
    lines = FRAMEWORK.splitlines(keepends=True)
    put(folder, "thing", "".join(line for line in lines if not line.startswith(key)))
    assert any(f": {key}: wanted a" in one for one in problems(folder, root=tmp_path))


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    put(
        folder,
        "thing",
        'schema = "1"\nkind = "framework"\nneeds = ["nothing"]\nwat = 1\n',
    )
    (folder / "thing" / "Dockerfile.j2").unlink()
    put(folder, "a", minimal("tool", "b"))
    put(folder, "b", minimal("tool", "a"))
    found = "\n".join(problems(folder, root=tmp_path))
    for words in (
        "thing/layer.toml:1: schema: wanted an integer, found a string",
        "thing/layer.toml:4: wat: wanted a known key",
        "description: wanted a string, found nothing",
        "identity: wanted a table with distribution and module, found nothing",
        "wanted a file Dockerfile.j2 beside layer.toml, found none",
        "thing/layer.toml:3: needs: wanted a layer of the library, found 'nothing'",
        "a/layer.toml:4: needs: wanted no cycle, found a -> b -> a",
    ):
        assert words in found


def test_a_cycle_is_told_once_and_the_layers_on_top_of_it_are_not_blamed(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    put(folder, "python", minimal("python", "thing"))
    (found,) = problems(folder, root=tmp_path)
    assert found.startswith("layers/cuda/layer.toml:4: needs: wanted no cycle, found ")
    assert found.endswith("found cuda -> python -> thing -> cuda; drop one of them")


@pytest.mark.parametrize("needs", [(), ("python",)])
def test_a_framework_that_stands_on_no_cuda_is_refused(
    tmp_path: Path, needs: tuple[str, ...]
) -> None:
    folder = small(tmp_path / "layers")
    shown = ", ".join(f'"{need}"' for need in needs)
    put(folder, "thing", FRAMEWORK.replace('["cuda"]', f"[{shown}]"))
    found = problems(folder, root=tmp_path)
    assert any("a layer of kind cuda, as a framework stands on one" in one for one in found)


def test_a_layer_with_a_place_of_its_own_cannot_be_needed(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    put(folder, "base", minimal("base"))
    put(folder, "thing", FRAMEWORK.replace('["cuda"]', '["cuda", "base"]'))
    (found,) = problems(folder, root=tmp_path)
    assert "found 'base', a layer of kind base; it stands in every image" in found


def test_a_layer_that_cannot_be_read_is_no_unknown_one(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    put(folder, "cuda", "schema = ")
    (found,) = problems(folder, root=tmp_path)
    assert found.startswith("layers/cuda/layer.toml:1: (syntax)")


def test_a_file_that_is_no_utf_8_is_told(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    (folder / "thing" / "layer.toml").write_bytes(b"schema = 1 # \xff\n")
    (found,) = problems(folder, root=tmp_path)
    assert "(encoding): wanted UTF-8, found the byte 0xff" in found


def test_a_folder_with_a_wrong_name_is_told(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    put(folder, "My_Layer", minimal("tool"))
    (found,) = problems(folder, root=tmp_path)
    assert "a name of lower-case words with dashes, found 'My_Layer'" in found


def test_folders_that_are_no_layers_are_passed_over(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    (folder / "__pycache__").mkdir()
    (folder / "wheels.j2").touch()
    assert problems(folder, root=tmp_path) == []


def test_a_projects_own_layer_replaces_ours_whole(tmp_path: Path) -> None:
    packaged, own = small(tmp_path / "ours"), tmp_path / "layers"
    put(packaged, "thing", FRAMEWORK + '[env]\nOURS = "1"\n')
    (packaged / "thing" / "smoke").mkdir()
    (packaged / "thing" / "smoke" / "cpu_x.py").touch()
    put(own, "thing", FRAMEWORK.replace('["cudart"]', '["nvrtc"]'))
    library, wrong = read_library([packaged, own], root=tmp_path)
    assert wrong == ()
    layer = library.layers["thing"]
    assert layer.folder == own / "thing"
    assert (layer.cuda_components, layer.env, layer.smoke) == (("nvrtc",), {}, ())
    assert library.folders == (own, packaged)


def test_a_projects_own_layer_of_another_name_is_added(tmp_path: Path) -> None:
    packaged, own = small(tmp_path / "ours"), tmp_path / "layers"
    put(own, "other", FRAMEWORK)
    library = read_library([packaged, own], root=tmp_path)[0]
    assert sorted(library.frameworks()) == ["other", "thing"]
    assert library.layers["thing"].folder == packaged / "thing"


def test_a_replacement_that_is_wrong_does_not_bring_ours_back(tmp_path: Path) -> None:
    packaged, own = small(tmp_path / "ours"), tmp_path / "layers"
    put(own, "thing", FRAMEWORK.replace('"framework"', '"nonsense"'))
    library, wrong = read_library([packaged, own], root=tmp_path)
    assert "thing" not in library.layers
    assert [problem.file for problem in wrong] == ["layers/thing/layer.toml"]


def test_a_template_alone_does_not_replace_a_layer(tmp_path: Path) -> None:
    packaged, own = small(tmp_path / "ours"), tmp_path / "layers"
    (own / "thing").mkdir(parents=True)
    (own / "thing" / "Dockerfile.j2").touch()
    (found,) = problems(packaged, own, root=tmp_path)
    assert found.startswith("layers/thing/Dockerfile.j2: (folder): wanted a file layer.toml beside")


def test_a_kind_that_stands_once_in_an_image_is_there_once(tmp_path: Path) -> None:
    folder = small(tmp_path / "layers")
    put(folder, "cuda-two", minimal("cuda", "python"))
    library = read_library([folder], root=tmp_path)[0]
    with pytest.raises(ProjectError, match="wanted one layer of kind 'cuda', found cuda, cuda-two"):
        library.single("cuda")
    with pytest.raises(ProjectError, match="found none"):
        library.single("model")


def test_an_unknown_framework_gets_the_nearest_name(tmp_path: Path) -> None:
    library = read_library([small(tmp_path / "layers")], root=tmp_path)[0]
    with pytest.raises(ProjectError, match="no layer 'thign'") as caught:
        stack(library, "thign")
    assert caught.value.hint == "did you mean 'thing'?"


def test_a_text_that_wants_an_unknown_value_says_which_there_are() -> None:
    with pytest.raises(TextError, match=r"wanted \{version\}, .*\{components\}, found \{foo\}"):
        fill("a=={foo}", SAMPLE)


@given(st.text(alphabet="{}a:!.[0]", max_size=8))
def test_any_text_is_filled_or_refused(text: str) -> None:
    try:
        assert isinstance(fill(text, SAMPLE), str)
    except TextError as error:
        assert repr(text) in str(error)  # noqa: PT017


@given(st.data())
def test_a_stack_is_a_topological_order_without_doubles(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 7))
    layers = {}
    for number in range(count):
        needs = data.draw(st.sets(st.integers(0, number - 1))) if number else set()
        layers[f"l{number}"] = layer(f"l{number}", tuple(f"l{need}" for need in sorted(needs)))
    order = names(stack(Library(layers=layers, folders=()), f"l{count - 1}"))
    assert len(order) == len(set(order))
    assert order[-1] == f"l{count - 1}"
    for name in order:
        assert {*layers[name].needs} <= {*order[: order.index(name)]}


def test_a_layer_says_where_its_wheels_have_cuda(tmp_path: Path) -> None:
    put(small(tmp_path), "thing", FRAMEWORK + '[platforms]\n"linux/arm64" = ">=2.11"\n')
    library, wrong = read_library([tmp_path], root=tmp_path)
    assert not wrong
    thing, cuda = library.layers["thing"], library.layers["cuda"]
    assert [thing.has_wheels(version, ARM64) for version in ("2.10.0", "2.11.0", "3.0rc1")] == [
        False,
        True,
        True,
    ]
    assert not thing.has_wheels("2.11.0", AMD64)
    assert cuda.has_wheels("1", AMD64)


PAIR = """
[[pair]]
package = "thing-{name}"
version = "{version}"
for = "{versions}"
source = "PyPI"
confidence = "registry"
"""


def test_a_pair_goes_with_the_versions_it_is_for(tmp_path: Path) -> None:
    rows = [("vision", "0.1", "==1.0"), ("vision", "0.2", ">=1.1"), ("audio", "2", ">=1.0")]
    pairs = "".join(PAIR.format(name=n, version=v, versions=s) for n, v, s in rows)
    put(small(tmp_path), "thing", FRAMEWORK + pairs)
    library, wrong = read_library([tmp_path], root=tmp_path)
    assert not wrong
    thing = library.layers["thing"]
    assert thing.paired("0.9") == ()
    assert thing.paired("1.0") == ("thing-audio==2", "thing-vision==0.1")
    assert thing.paired("1.1.1") == ("thing-audio==2", "thing-vision==0.2")
    assert {pair.confidence for pair in thing.pairs} == {"registry"}


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        (
            '[platforms]\n"linux/arm" = ""\n',
            "platforms.linux/arm: wanted linux/amd64 or linux/arm64",
        ),
        ('[platforms]\n"linux/amd64" = "2.11"\n', "wanted versions (PEP 440)"),
        (
            '[[pair]]\npackage = "x"\n',
            "wanted tables with package, version, for, source, confidence",
        ),
        (PAIR.format(name="x", version="1", versions="newer"), "pair.for: wanted versions"),
    ],
    ids=["platform", "versions", "pair without a source", "pair for no versions"],
)
def test_platforms_and_pairs_are_read_strictly(more: str, wanted: str, tmp_path: Path) -> None:
    put(small(tmp_path), "thing", FRAMEWORK + more)
    assert any(wanted in problem for problem in problems(tmp_path, root=tmp_path))


def test_every_pair_of_ours_has_a_source_and_every_torch_has_one() -> None:
    layer = read_library([OWN], root=OWN.parent)[0].layers["torch"]
    assert all(pair.source and pair.confidence == "registry" for pair in layer.pairs)
    assert layer.paired("2.8.0") == ("torchaudio==2.8.0", "torchvision==0.23.0")
    assert layer.paired("2.15.0") == ("torchaudio==2.11.1", "torchvision==0.29.2")


def layer(name: str, needs: tuple[str, ...]) -> LayerDef:
    return LayerDef(
        name=name,
        kind="tool",
        description="",
        folder=Path(name),
        needs=needs,
        requirements=(),
        cuda_components=(),
        stands_in_for=(),
        fixes_cuda=False,
        platforms=None,
        pairs=(),
        os_packages=(),
        entrypoint=(),
        secrets=(),
        packages={},
        identity=None,
        env={},
        smoke=(),
    )
