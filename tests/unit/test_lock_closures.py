"""Closures level by level: what a framework fixes below it, and what cannot be, told whole."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from lock_samples import AMD64, package, wheel

from gpulayers.errors import ProjectError, RemoteError
from gpulayers.lock import closures
from gpulayers.lock.model import Lock, PackageSet, Wheel
from gpulayers.lock.update import keeping
from gpulayers.lock.wanted import ClosureWanted
from gpulayers.lock.wheels import Question

CUDA = "cuda==12.8 cudart"
OWN = f"{CUDA} for torch==2.8.0"
EMPTY = Lock(
    inputs="",
    uv=wheel("uv", "0.9.0"),
    bases=(),
    packages=(),
    pythons=(),
    wheels={},
    closures=(),
    models=(),
)


class Index:
    """Answers by requirement; keeps the questions. An Exception is raised, a version is fixed."""

    def __init__(self, table: Mapping[str, list[Wheel] | Exception]) -> None:
        self.table = table
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> tuple[Wheel, ...]:
        self.questions.append(question)
        fixed = {one.name: one for one in question.fixed}
        found: dict[str, Wheel] = {}
        for text in question.requirements:
            answer = self.table[text]
            if isinstance(answer, Exception):
                raise answer
            # The later requirement is the stricter one here.
            found |= {one.name: fixed.get(one.name, one) for one in answer}
        return tuple(sorted(found.values()))


def one(
    of: str,
    *requirements: str,
    under: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
    mixed: tuple[str, ...] = (),
) -> ClosureWanted:
    return ClosureWanted(
        python="3.12",
        platform=AMD64,
        of=of,
        under=under,
        requirements=requirements,
        beside=beside,
        mixed=mixed,
        stands_in_for=(),
    )


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as workers:
        yield workers


NEW, PINNED = wheel("nvidia-cublas-cu12", "12.8.5.5"), wheel("nvidia-cublas-cu12", "12.8.4.1")
TORCH = wheel("torch", "2.8.0")


def test_a_framework_that_fixes_cuda_decides_what_lies_below_it(pool: ThreadPoolExecutor) -> None:
    index = Index({"toolkit": [NEW], "torch": [PINNED, TORCH]})
    asked = [one(OWN, "toolkit", beside=("torch",)), one("torch==2.8.0", "torch", under=(OWN,))]
    found, wheels = closures.resolve(asked, index, pool)
    assert {each.of: each.files for each in found} == {
        OWN: (PINNED.file,),
        "torch==2.8.0": (TORCH.file,),
    }
    assert set(wheels) == {PINNED.file, TORCH.file}


def test_a_framework_that_mixes_releases_of_cuda_gets_its_parts_one_by_one(
    pool: ThreadPoolExecutor,
) -> None:
    index = Index({"toolkit": ProjectError("no"), "cublas": [NEW], "torch": [PINNED, TORCH]})
    asked = [
        one(OWN, "toolkit", beside=("torch",), mixed=("cublas",)),
        one("torch==2.8.0", "torch", under=(OWN,)),
    ]
    found, _ = closures.resolve(asked, index, pool)
    assert {each.of: each.files for each in found}[OWN] == (PINNED.file,)
    assert index.questions[-1].requirements == ("cublas", "torch")


def test_what_cannot_be_even_so_is_told_with_the_first_reason(pool: ThreadPoolExecutor) -> None:
    index = Index({"toolkit": ProjectError("first"), "cublas": ProjectError("second")})
    with pytest.raises(ProjectError, match="first"):
        closures.resolve([one(OWN, "toolkit", beside=("torch",), mixed=("cublas",))], index, pool)


def test_a_framework_that_leaves_cuda_open_gets_the_newest(pool: ThreadPoolExecutor) -> None:
    index = Index({"toolkit": [NEW], "cupy": [PINNED]})
    asked = [one(CUDA, "toolkit"), one("cupy==1", "cupy", under=(CUDA,))]
    found, _ = closures.resolve(asked, index, pool)
    assert {each.of: each.files for each in found} == {CUDA: (NEW.file,), "cupy==1": ()}
    assert index.questions[-1].fixed == (NEW,)


def test_all_that_cannot_be_is_told_at_once_with_what_disagrees(pool: ThreadPoolExecutor) -> None:
    words = "Because torch==2.8.0 has no wheels with a matching Python ABI tag (e.g., `cp314`)"
    index = Index({"toolkit": [NEW], "torch": ProjectError(words), "jax": ProjectError("odd")})
    asked = [
        one(CUDA, "toolkit"),
        one(OWN, "toolkit", beside=("torch",)),
        one("torch==2.8.0", "torch", under=(OWN,)),
        one("jax==1", "jax", under=(CUDA,)),
    ]
    with pytest.raises(ProjectError) as caught:
        closures.resolve(asked, index, pool)
    assert str(caught.value).splitlines() == [
        "no set of wheels fits 2 combinations of the matrix:",
        "  cuda==12.8, jax==1, Python 3.12, linux/amd64: odd",
        "  cuda==12.8, torch==2.8.0, Python 3.12, linux/amd64: torch==2.8.0 has no wheel for cp314",
    ]
    assert "[[exclude]]" in caught.value.hint


def test_pythons_with_the_same_reason_share_a_line() -> None:
    stack: tuple[str, ...] = (CUDA, "jax==1")
    failed = {(python, AMD64, stack): "odd" for python in ("3.12", "3.11")}
    assert "  cuda==12.8, jax==1, Python 3.11 3.12, linux/amd64: odd" in str(
        closures.refusal(failed)
    )


def test_libraries_of_another_cuda_are_refused(pool: ThreadPoolExecutor) -> None:
    runtime = wheel("nvidia-cuda-runtime", "13.0.96")
    index = Index({"toolkit": [NEW], "torch": [runtime]})
    asked = [one(CUDA, "toolkit"), one("torch==2.15.0", "torch", under=(CUDA,))]
    with pytest.raises(ProjectError, match=r"another CUDA: nvidia-cuda-runtime==13\.0\.96"):
        closures.resolve(asked, index, pool)


def test_an_index_that_does_not_answer_ends_it_at_once(pool: ThreadPoolExecutor) -> None:
    index = Index({"toolkit": RemoteError("no answer")})
    with pytest.raises(RemoteError, match="no answer"):
        closures.resolve([one(CUDA, "toolkit")], index, pool)


def test_a_combination_is_named_without_its_parts_of_cuda() -> None:
    assert closures._shown((OWN, "torch==2.8.0", "model m")) == "cuda==12.8, torch==2.8.0, model m"
    assert closures._shown(("thing",)) == "thing"


def test_another_file_of_a_wheel_below_is_refused_though_its_version_fits(
    pool: ThreadPoolExecutor,
) -> None:
    """A build for another CUDA has the same version; a requirement must not bring it."""
    other = replace(TORCH, file=TORCH.file.replace("torch-", "torch-0+other-"))

    def ask(question: Question) -> tuple[Wheel, ...]:
        return {"toolkit": (NEW,), "torch": (NEW, TORCH)}.get(
            question.requirements[-1], (NEW, other)
        )

    asked = [
        one(CUDA, "toolkit"),
        one("torch==2.8.0", "torch", under=(CUDA,)),
        one("model m", "thing", under=(CUDA, "torch==2.8.0")),
    ]
    with pytest.raises(ProjectError, match=r"it would bring torch-0\+other-.* which stays"):
        closures.resolve(asked, ask, pool)


MODEL = "model a"
NUMPY, NUMPY_NEW = wheel("numpy", "2.1.0"), wheel("numpy", "2.2.0")
IDNA, IDNA_NEW = wheel("idna", "3.1"), wheel("idna", "3.2")
CUPY = wheel("cupy-cuda12x", "13.6.0")
LEVELS = (
    one(CUDA, "cudart"),
    one("cupy==13.6.0", "cupy", under=(CUDA,)),
    one(MODEL, "idna", under=(CUDA, "cupy==13.6.0")),
)


def answers(numpy: Wheel, idna: Wheel, cudart: str = "12.8.90") -> Index:
    return Index(
        {
            "cudart": [wheel("nvidia-cuda-runtime-cu12", cudart)],
            "cupy": [CUPY, numpy],
            "idna": [idna],
        }
    )


@pytest.mark.parametrize(
    ("names", "moved"),
    [
        ({"idna"}, {"idna": "3.2"}),
        ({"numpy"}, {"numpy": "2.2.0"}),
        ({"numpy", "idna"}, {"numpy": "2.2.0", "idna": "3.2"}),
        ({"uv"}, {}),
    ],
)
def test_only_what_is_named_moves(
    pool: ThreadPoolExecutor, names: set[str], moved: dict[str, str]
) -> None:
    first = answers(NUMPY, IDNA)
    entries, wheels = closures.resolve(LEVELS, first, pool)
    uv = wheel("uv", "0.9.0")
    lock = replace(EMPTY, uv=uv, wheels={uv.file: uv, **wheels}, closures=entries)
    # Upstream, everything is newer.
    index = answers(NUMPY_NEW, IDNA_NEW, cudart="12.8.95")
    _, now = closures.resolve(LEVELS, index, pool, keeping(lock, names))
    old = {each.name: each.version for each in wheels.values()}
    assert {each.name: each.version for each in now.values()} == old | moved
    if not moved:
        assert index.questions == []


def test_a_file_that_is_new_for_a_version_that_stays_is_not_taken(
    pool: ThreadPoolExecutor,
) -> None:
    entries, wheels = closures.resolve(LEVELS, answers(NUMPY, IDNA), pool)
    lock = replace(EMPTY, wheels=wheels, closures=entries)
    other = replace(NUMPY, file="numpy-2.1.0-1-py3-none-any.whl", sha256="f" * 64)
    index = Index({**answers(other, IDNA_NEW).table, "cupy": [CUPY, other]})

    def ask(question: Question) -> tuple[Wheel, ...]:
        found = index(question)
        return tuple(other if each.name == "numpy" else each for each in found)

    _, now = closures.resolve(LEVELS, ask, pool, keeping(lock, {"idna"}))
    assert NUMPY.file in now
    assert other.file not in now


def test_names_that_cannot_be_updated_are_told_with_what_can() -> None:
    packages = PackageSet(layer="base", os="debian12", platform=AMD64, packages=(package("tini"),))
    lock = replace(EMPTY, packages=(packages,), wheels={NUMPY.file: NUMPY})
    with pytest.raises(ProjectError) as caught:
        keeping(lock, {"numpi", "tini", "numpy"})
    assert str(caught.value).splitlines() == [
        "these cannot be updated:",
        "  numpi: the lock has nothing of that name; did you mean numpy?",
        "  tini: a package moves with its base: debian12",
    ]
    assert keeping(replace(EMPTY, wheels={CUPY.file: CUPY}), {"CuPy_cuda12x"}).names == {
        "cupy-cuda12x"
    }
