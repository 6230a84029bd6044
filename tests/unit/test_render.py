"""Rendered files: plain, whole, the same on every machine, and refused with file and line."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from lock_samples import (
    DEMO,
    REPOSITORY,
    cells_of,
    hash_of,
    lock_for,
    packaged_library,
    read_matrix,
    with_base,
)

from gpulayers.errors import ProjectError
from gpulayers.inputs import PROXIES
from gpulayers.layer import Library, read_library
from gpulayers.lock import wanted
from gpulayers.plan.make import make
from gpulayers.plan.model import Ground, Plan
from gpulayers.refs import is_repository
from gpulayers.render import bake, dockerfile, files
from gpulayers.render.bake import Surroundings

ROOT = "127.0.0.1:5000/acme"
TEMPLATES = sorted((REPOSITORY / "layers").rglob("*.j2"))
INSTRUCTION = re.compile(
    r"^(FROM|RUN|COPY|ADD|ENV|LABEL|USER|ENTRYPOINT|CMD|WORKDIR|ARG|SHELL)\b(.*)$"
)


def ground(library: Library) -> Ground:
    matrix = read_matrix(DEMO / "matrix.toml")
    lock = lock_for(wanted.gather(matrix, library, cells_of(matrix)), matrix)
    return Ground(matrix=matrix, library=library, lock=lock, root=ROOT)


LIBRARY = packaged_library()
GROUND = ground(LIBRARY)
PLAN = make(GROUND, cells_of(GROUND.matrix))
AROUND = Surroundings(root=ROOT, name="gpu", project=DEMO)
FILES = files.render(PLAN, LIBRARY, AROUND)
DOCKERFILES = {name: text for name, text in FILES.items() if name.endswith(".Dockerfile")}
BAKE = json.loads(FILES[files.BAKE_FILE])


def instructions(text: str) -> Iterator[str]:
    """The instructions of a Dockerfile without comments and here-documents, each on one line."""
    lines = iter(text.splitlines())
    for line in lines:
        whole = line
        while whole.endswith("\\"):
            whole = whole[:-1] + next(lines)
        for end in re.findall(r"<<-?'?(\w+)'?", whole):
            while next(lines) != end:
                pass
        if whole.strip() and not whole.startswith("#"):
            yield whole


def test_a_dockerfile_an_image_and_one_bake_file() -> None:
    assert set(FILES) == {
        "docker-bake.json",
        *(f"images/{image.target}.Dockerfile" for image in PLAN.images),
    }


def test_rendered_twice_the_files_are_equal() -> None:
    again = make(ground(packaged_library()), cells_of(GROUND.matrix))
    assert files.render(again, packaged_library(), AROUND) == FILES


@pytest.mark.parametrize("name", DOCKERFILES)
def test_every_from_names_a_context_or_a_stage_that_stands_before_it(name: str) -> None:
    contexts = {*BAKE["target"][Path(name).stem]["contexts"], "scratch"}
    stages: set[str] = set()
    for line in instructions(DOCKERFILES[name]):
        known = contexts | stages
        match = re.match(r"FROM (\S+) AS (\S+)$", line)
        if match is not None:
            assert match[1] in known, line
            assert match[2] not in known, line
            stages.add(match[2])
        else:
            assert not line.startswith("FROM"), line
        for source in re.findall(r"(?:--from=|[,=]from=)([^\s,]+)", line):
            assert source in known, line


@pytest.mark.parametrize("name", DOCKERFILES)
def test_every_line_outside_of_here_documents_is_an_instruction(name: str) -> None:
    for line in instructions(DOCKERFILES[name]):
        assert INSTRUCTION.match(line), line


def test_every_step_is_linked_onto_the_base_in_its_order() -> None:
    for image in PLAN.images:
        text = DOCKERFILES[f"images/{image.target}.Dockerfile"]
        final = text[text.index("FROM base AS final") :]
        linked = re.findall(r"^COPY --link --from=(\S+) /out/ /$", final, re.MULTILINE)
        assert linked == [*(step.stage for step in image.steps), "identity"]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_only_the_authorities_may_be_missing_of_all_secrets(name: str) -> None:
    mounts = re.findall(r"--mount=type=secret,(\S+)", DOCKERFILES[name])
    assert mounts
    given = {secret.split(",")[0] for secret in BAKE["target"][Path(name).stem]["secret"]}
    for mount in mounts:
        fields = dict(part.split("=", 1) for part in mount.split(","))
        assert fields["required"] == ("false" if fields["id"] == "ca" else "true"), mount
        assert fields["id"] == "ca" or f"id={fields['id']}" in given, mount


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_text_names_neither_registry_nor_place_nor_the_digest_below(name: str) -> None:
    text = DOCKERFILES[name]
    for word in (ROOT, "127.0.0.1", "docker.io", "://", str(REPOSITORY), str(Path.cwd())):
        assert word not in text, word
    outside_labels = "\n".join(x for x in instructions(text) if not x.startswith("LABEL"))
    assert "@sha256:" not in outside_labels
    for base in GROUND.lock.bases:
        assert base.digest not in outside_labels


def test_another_registry_changes_the_bake_file_alone() -> None:
    root = "registry.example/team"
    plan = make(replace(GROUND, root=root), cells_of(GROUND.matrix))
    moved = files.render(plan, LIBRARY, replace(AROUND, root=root))
    assert {name for name in FILES if FILES[name] != moved[name]} == {files.BAKE_FILE}
    document = json.loads(moved[files.BAKE_FILE])
    assert document["target"] == BAKE["target"]
    assert document["variable"]["REGISTRY"] == {"default": root}


def test_another_base_changes_no_stage_but_that_of_its_packages() -> None:
    lock = with_base(GROUND.lock, "debian12", f"sha256:{hash_of('patched')}")
    plan = make(replace(GROUND, lock=lock), cells_of(GROUND.matrix))
    for before, after in zip(PLAN.images, plan.images, strict=True):
        old, new = {s.stage for s in before.steps}, {s.stage for s in after.steps}
        assert len(old - new) == (1 if before.cell.os == "debian12" else 0)


def test_a_shared_step_has_the_same_text_in_every_image() -> None:
    environment = dockerfile.environment(LIBRARY)
    for image in PLAN.images:
        text = DOCKERFILES[f"images/{image.target}.Dockerfile"]
        for step in (image.tools, *image.steps):
            assert dockerfile.stage_text(step, environment).strip() in text


def test_nothing_that_changes_by_itself_stands_in_the_text() -> None:
    for text in FILES.values():
        assert not re.search(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", text)
        assert text.endswith("\n")
        assert "\r" not in text


def test_a_file_says_what_made_it_and_how_to_build_it() -> None:
    for name, text in DOCKERFILES.items():
        assert text.startswith("# Made by gpulayers from matrix.toml")
        line = text.splitlines()[1]
        assert line.endswith(f"docker buildx bake --file docker-bake.json {Path(name).stem}")
    assert "Do not edit" in BAKE["//"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_template_names_no_version_no_registry_and_no_place_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"[0-9]+\.[0-9]+", text)
    assert not re.search(r"\b(cp|cu|py)[0-9]{2,}", text)
    assert "://" not in text
    assert not re.search(r"(docker|ghcr|quay|nvcr)\.io", text)
    assert not re.search(r"/(root|work|Users)/|/home/(?!app\b)", text)


def test_values_are_quoted_as_dockerfiles_want_it() -> None:
    images = replace(
        GROUND.matrix.images, env={"A": 'say "hi" $HOME', "B": "back\\slash", "C": "ä ö"}
    )
    on = replace(GROUND, matrix=replace(GROUND.matrix, images=images))
    image = make(on, cells_of(GROUND.matrix)[:1]).images[0]
    text = dockerfile.text(image, dockerfile.environment(LIBRARY))
    assert 'A="say \\"hi\\" \\$HOME"' in text
    assert 'B="back\\\\slash"' in text
    assert 'C="ä ö"' in text


def test_the_image_runs_as_the_projects_user_with_the_entry_point_of_its_layers() -> None:
    for text in DOCKERFILES.values():
        final = text[text.index("FROM base AS final") : text.index("FROM final AS identity")]
        assert "\nUSER 10001:0\n" in final
        assert '\nENTRYPOINT ["/usr/bin/tini", "-g", "--"]\n' in final
        assert final.rstrip().endswith('CMD ["python"]')


def test_the_identity_check_stands_between_the_image_and_its_push() -> None:
    script = (REPOSITORY / "layers" / "identity.py").read_text(encoding="utf-8")
    for image in PLAN.images:
        text = DOCKERFILES[f"images/{image.target}.Dockerfile"]
        assert script in text
        (line,) = [x for x in text.splitlines() if "<<'IDENTITY'" in x]
        expected = json.loads(line[line.index("{") : line.rindex("}") + 1])
        assert expected["version"] == image.cell.framework.version
        assert text.rstrip().endswith("COPY --link --from=identity /out/ /")


def test_targets_fit_what_bake_takes_and_are_all_in_its_group() -> None:
    targets = list(BAKE["target"])
    assert BAKE["group"] == {"default": {"targets": targets}}
    assert targets == [image.target for image in PLAN.images]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", target) for target in targets)


def test_a_cache_that_cannot_be_written_stops_no_build() -> None:
    for name, target in BAKE["target"].items():
        (cache,) = target["cache-to"]
        fields = cache.split(",")
        assert {"image-manifest=true", "oci-mediatypes=true", "ignore-error=true"} <= set(fields)
        assert f"ref=${{REGISTRY}}/gpu-cache:{name}" in fields


def test_image_and_cache_are_compressed_alike() -> None:
    for target in BAKE["target"].values():
        for text in (*target["cache-to"], *target["output"]):
            assert {"compression=zstd", "compression-level=3"} <= set(text.split(","))


def test_images_are_pushed_without_being_kept_and_without_attestations() -> None:
    for image in PLAN.images:
        target = BAKE["target"][image.target]
        (output,) = target["output"]
        assert f"name=${{REGISTRY}}/gpu:{image.staging}," in output
        assert {"push=true", "unpack=false", "store=false"} <= set(output.split(","))
        assert target["attest"] == ["type=provenance,disabled=true", "type=sbom,disabled=true"]
        # A proxy that is not set is no argument at all.
        asked = {name: f'${{{name} != "" ? {name} : null}}' for name in PROXIES}
        assert target["args"] == {"SOURCE_DATE_EPOCH": "315532800", **asked}
        assert target["platforms"] == ["linux/amd64"]
        assert target["dockerfile"] == f"images/{image.target}.Dockerfile"


def test_contexts_are_digests_below_the_variable_and_folders_of_the_project() -> None:
    digests = {base.os: base.digest for base in GROUND.lock.bases}
    for image in PLAN.images:
        contexts = BAKE["target"][image.target]["contexts"]
        base = f"docker-image://${{REGISTRY}}/base@{digests[image.cell.os]}"
        tools = f"docker-image://${{REGISTRY}}/base@{digests['tools']}"
        assert (contexts["base"], contexts["tools-base"]) == (base, tools)
        models = {name: place for name, place in contexts.items() if name.startswith("model")}
        folder = {"model-digits": "${PROJECT}/models/digits"}
        assert models == (folder if image.cell.model == "digits" else {})


def test_a_base_of_another_registry_stays_where_it_is() -> None:
    place = "registry.example/library/debian"
    bases = tuple(replace(base, repository=place) for base in GROUND.lock.bases)
    plan = make(replace(GROUND, lock=replace(GROUND.lock, bases=bases)), cells_of(GROUND.matrix))
    document = json.loads(bake.text(plan, AROUND))
    contexts = next(iter(document["target"].values()))["contexts"]
    assert contexts["base"].startswith(f"docker-image://{place}@sha256:")


def test_a_project_that_is_reached_through_a_link_finds_its_models(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(DEMO)
    linked = bake.text(PLAN, replace(AROUND, project=tmp_path / "link"))
    assert linked == FILES[files.BAKE_FILE]


def test_a_target_reads_its_own_cache_first_and_those_that_hold_the_rest_of_its_steps() -> None:
    providers = bake.cache_providers(PLAN.images)
    steps = {image.target: {step.stage for step in image.steps} for image in PLAN.images}
    first: dict[str, str] = {}
    for image in PLAN.images:
        names = providers[image.target]
        assert names[0] == image.target
        assert len(names) == len(set(names))
        for step in image.steps:
            first.setdefault(step.stage, image.target)
            assert first[step.stage] in names
        assert steps[image.target] <= set().union(*(steps[name] for name in names))


def test_the_name_of_the_cache_is_a_repository() -> None:
    for target in BAKE["target"].values():
        for cache in (*target["cache-from"], *target["cache-to"]):
            (ref,) = [part for part in cache.split(",") if part.startswith("ref=")]
            repository, _, tag = ref.removeprefix("ref=${REGISTRY}/").partition(":")
            assert is_repository(repository)
            assert tag in BAKE["target"]


def broken(tmp_path: Path, name: str, text: str) -> tuple[Plan, Library]:
    """The packaged layers with one file of them replaced, and a plan on them."""
    shutil.copytree(REPOSITORY / "layers", tmp_path / "layers")
    (tmp_path / "layers" / name).write_text(text, encoding="utf-8")
    library = read_library([tmp_path / "layers"], root=tmp_path)[0]
    return make(replace(GROUND, library=library), cells_of(GROUND.matrix)), library


@pytest.mark.parametrize(
    ("name", "text", "where", "words"),
    [
        (
            "init/Dockerfile.j2",
            "FROM x\n\n{{ nothing }}\n",
            "init/Dockerfile.j2:3",
            "'nothing' is undefined",
        ),
        ("init/Dockerfile.j2", "\n{% if %}\n", "init/Dockerfile.j2:2", "Expected an expression"),
        (
            "init/Dockerfile.j2",
            "\n\n{% include 'gone.j2' %}",
            "init/Dockerfile.j2:3",
            "no template gone.j2",
        ),
        (
            "init/Dockerfile.j2",
            "{% for a in debian %}{% endfor %}",
            "init/Dockerfile.j2:1",
            "not iterable",
        ),
        ("init/Dockerfile.j2", "\n{{ 1 // 0 }}", "init/Dockerfile.j2:2", "zero"),
        ("init/Dockerfile.j2", "{{ packages[0].size }}", "init/Dockerfile.j2:1", "no attribute"),
        ("wheels.j2", "FROM x\n{{ wheel }}\n", "wheels.j2:2", "'wheel' is undefined"),
        ("wheels.j2", "FROM x\n{% endif %}\n", "wheels.j2:2", "unknown tag 'endif'"),
    ],
)
def test_a_template_that_does_not_render_is_told_with_file_and_line(
    tmp_path: Path, name: str, text: str, where: str, words: str
) -> None:
    plan, library = broken(tmp_path, name, text)
    with pytest.raises(ProjectError) as caught:
        files.render(plan, library, AROUND)
    message = str(caught.value)
    assert message.startswith(f"layers/{where}: the template does not render: ")
    assert words in message
    assert "docs/layers.md" in caught.value.hint


def test_the_identity_check_is_no_template(tmp_path: Path) -> None:
    text = "x = {'{{': '{%'}  # {# as it stands #}\n"
    plan, library = broken(tmp_path, "identity.py", text)
    assert text in dockerfile.text(plan.images[0], dockerfile.environment(library))


def test_a_missing_identity_check_is_told(tmp_path: Path) -> None:
    plan, library = broken(tmp_path, "identity.py", "")
    (tmp_path / "layers" / "identity.py").unlink()
    with pytest.raises(ProjectError, match=r"wanted layers/identity\.py"):
        files.render(plan, library, AROUND)


def test_a_projects_own_layer_makes_its_stages(tmp_path: Path) -> None:
    own = tmp_path / "layers"
    shutil.copytree(REPOSITORY / "layers" / "init", own / "init")
    template = own / "init" / "Dockerfile.j2"
    template.write_text(template.read_text() + "# of the project\n")
    library = read_library([REPOSITORY / "layers", own], root=tmp_path)[0]
    plan = make(replace(GROUND, library=library), cells_of(GROUND.matrix))
    text = dockerfile.text(plan.images[0], dockerfile.environment(library))
    assert "# of the project\n" in text
    assert 'include "wheels.j2"' not in text


def test_files_are_written_whole_and_those_of_images_that_are_gone_go_away(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "render"
    (folder / "images").mkdir(parents=True)
    ours = FILES[next(name for name in FILES if name.endswith(".Dockerfile"))]
    (folder / "images" / "old.Dockerfile").write_text(ours, encoding="utf-8")
    (folder / "images" / "mine.Dockerfile").write_text("FROM scratch\n", encoding="utf-8")
    (folder / "images" / "notes.txt").touch()
    files.write(folder, FILES)
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert there == {*FILES, "images/notes.txt", "images/mine.Dockerfile"}
    for name, text in FILES.items():
        assert (folder / name).read_text(encoding="utf-8") == text


def test_differences_name_what_is_missing_changed_or_too_many(tmp_path: Path) -> None:
    assert files.differences(tmp_path, FILES) == tuple(sorted(FILES))
    files.write(tmp_path, FILES)
    assert files.differences(tmp_path, FILES) == ()
    first, second, *_ = sorted(DOCKERFILES)
    (tmp_path / first).unlink()
    (tmp_path / second).write_text("edited")
    (tmp_path / "images" / "old.Dockerfile").touch()
    expected = tuple(sorted([first, second, "images/old.Dockerfile"]))
    assert files.differences(tmp_path, FILES) == expected
