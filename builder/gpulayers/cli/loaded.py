"""The project as commands need it: every problem of every file at once, before anything starts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulayers.errors import NothingSelectedError, Problem, ProjectError, StaleError
from gpulayers.layer import Library, read_library
from gpulayers.lock import file as lock_file
from gpulayers.lock import wanted
from gpulayers.lock.make import refresh_models
from gpulayers.lock.model import Lock
from gpulayers.lock.wanted import Wanted
from gpulayers.matrix import load as matrix_load
from gpulayers.matrix import select
from gpulayers.matrix.model import Cell, Matrix
from gpulayers.plan import make as plan_make
from gpulayers.plan import sorting
from gpulayers.plan.model import Ground, Plan
from gpulayers.plan.sorting import Sorting
from gpulayers.plan.verdicts import Judging
from gpulayers.project import Project, find, layer_folders, scan_file
from gpulayers.refs import ImageRef
from gpulayers.render.bake import Surroundings
from gpulayers.scan import policy as scan_policy
from gpulayers.scan.policy import Policy

LOCK_FILE = "matrix.lock.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What the common options say."""

    project: Path | None
    matrix: Path | None
    only: tuple[str, ...]
    registry: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A project without problems.

    Shape: ``sorting`` is of the cells that ``--only`` leaves, ``whole`` of all, which the lock is
    for; ``root`` is the registry and path that images are below.
    """

    project: Project
    matrix: Matrix
    library: Library
    policy: Policy
    judging: Judging
    sorting: Sorting
    whole: Sorting
    only: tuple[str, ...]
    root: str

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The kept cells that ``--only`` leaves: those to work on."""
        return tuple(self.sorting.kept)

    @property
    def all_cells(self) -> tuple[Cell, ...]:
        """All kept cells."""
        return tuple(self.whole.kept)

    @property
    def lock_path(self) -> Path:
        """Where the lock is."""
        return self.project.matrix_file.with_name(LOCK_FILE)

    @property
    def wanted(self) -> Wanted:
        """What a lock must hold."""
        return wanted.gather(self.matrix, self.library, self.all_cells, self.whole.served)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The names of the indexes beside the plain one that kept cells need, sorted."""
        needed = self.whole.served.indexes.items()
        return tuple(sorted({name for (cell, _), name in needed if cell in self.whole.kept}))

    @property
    def around(self) -> Surroundings:
        """What stands beside the rendered images."""
        return Surroundings(root=self.root, name=self.matrix.images.name, project=self.project.root)

    @property
    def models(self) -> Path:
        """Where the files of fetched models are; below the project's folder, known without links.

        A builder is told of it relative to the project.
        """
        return self.project.root.resolve() / self.project.state.name / "models"

    def repository(self) -> ImageRef:
        """The repository of all images."""
        return ImageRef.parse(f"{self.root}/{self.matrix.images.name}")

    def demand_cells(self) -> None:
        """Refuse to go on with nothing, or with an image that no host of the fleet can run.

        Raises: NothingSelectedError: no cell is left; says what took them away;
            ProjectError: cells that run nowhere, with the reasons and what would help.
        """
        if not self.cells:
            raise NothingSelectedError(
                sorting.explain_nothing(self.matrix, self.sorting, self.only),
                hint="gpulayers list --why shows every cell and what keeps it out",
            )
        faults = [*sorting.faults(self.judging, self.sorting)]
        if faults:
            msg = f"images of {self.project.matrix_file.name} run on no host of the fleet"
            raise ProjectError(msg, problems=faults, hint="gpulayers list --why shows each verdict")

    def ground(self, lock: Lock) -> Ground:
        """What a plan is made from."""
        return Ground(
            matrix=self.matrix,
            library=self.library,
            lock=lock,
            root=self.root,
            models=self.models,
            served=self.whole.served,
            judging=self.judging,
        )

    def plan(self, lock: Lock) -> Plan:
        """The plan of the selected cells."""
        return plan_make.make(self.ground(lock), self.cells)


def load(where: Where, *, for_build: bool = False) -> Loaded:
    """Read all files of a project.

    Shape: ``for_build`` counts a base whose tag moves among the problems where there is no lock.
    Raises: ProjectError: with every problem of matrix.toml, layers/ and scans/policy.toml.
    """
    project = find(Path.cwd(), project=where.project, matrix=where.matrix)
    if where.registry:
        ImageRef.parse(f"{where.registry}/image")
    matrix, problems = matrix_load.read(project.matrix_file, root=project.root)
    library, of_layers = read_library(layer_folders(project), root=project.root)
    policy, of_policy = scan_policy.read(scan_file(project, "policy.toml"))
    found = [*problems, *of_layers, *of_policy]
    draft, _ = matrix_load.read_with_gaps(project.matrix_file, root=project.root)
    if draft is not None:
        found += matrix_load.check_frameworks(draft, library.frameworks())
        found += check_components(draft, library)
    if found and draft is not None and for_build:
        found += _unlocked(draft, project)
    judging = Judging(draft) if draft is not None else None
    found += judging.problems() if judging is not None else ()
    if found or judging is None or matrix is None or policy is None:
        raise _refused(found, project)
    whole = sorting.sort(judging, library, select.choose(matrix))
    found += sorting.needless(judging, whole)
    if found:
        raise _refused(found, project)
    return Loaded(
        project=project,
        matrix=matrix,
        library=library,
        policy=policy,
        judging=judging,
        sorting=_part(whole, matrix, where.only),
        whole=whole,
        only=where.only,
        root=where.registry or matrix.images.registry,
    )


def _refused(found: Sequence[Problem], project: Project) -> ProjectError:
    count = f"{len(found)} problem{'s' if len(found) != 1 else ''}"
    msg = f"{count} in the files of {project.root}"
    return ProjectError(msg, problems=found, hint="mend them, then: gpulayers check")


def _part(whole: Sorting, matrix: Matrix, only: tuple[str, ...]) -> Sorting:
    if not only:
        return whole
    chosen = select.choose(matrix, only)
    return whole.only([*chosen.kept, *(cell for cell, _ in chosen.excluded)])


def _unlocked(draft: Matrix, project: Project) -> list[Problem]:
    """The bases with a moving tag, where there is no lock."""
    if project.matrix_file.with_name(LOCK_FILE).is_file():
        return []
    return moving_bases(draft, draft.bases.keys() & set(draft.axes.os))


def check_components(matrix: Matrix, library: Library) -> list[Problem]:
    """Frameworks whose CUDA parts the project chose, and chose none."""
    return [
        matrix.source.problem(
            ("framework", name, "cuda-components"),
            wanted="at least one component",
            found="an empty list",
            hint="leave the key out for the layer's own list",
        )
        for name, options in matrix.frameworks.items()
        if options.cuda_components is not None
        and not options.cuda_components
        and name in library.layers
    ]


def read_lock(loaded: Loaded) -> Lock | None:
    """The project's lock with the folder models as they are now, or None.

    Raises: ProjectError: the file is no lock, or there is none and a base has a moving tag.
    """
    lock = lock_file.read(loaded.lock_path)
    if lock is not None:
        return lock
    moving = moving_bases(loaded.matrix, {cell.os for cell in loaded.all_cells})
    if moving:
        msg = f"there is no {LOCK_FILE}, and what these tags point at moves"
        raise ProjectError(msg, problems=moving, hint="run: gpulayers lock")
    return None


def moving_bases(matrix: Matrix, oses: Collection[str]) -> list[Problem]:
    """Sources of bases that are a registry's tag without a digest."""
    problems = []
    for os in sorted(oses):
        for index, source in enumerate(matrix.bases[os].sources):
            if source.startswith("bootstrap:") or ImageRef.parse(source).digest:
                continue
            problems.append(
                matrix.source.problem(
                    ("base", os, "sources", index),
                    wanted="a digest, or a lock that holds one",
                    found=source,
                )
            )
    return problems


def differences(loaded: Loaded, lock: Lock) -> tuple[str, ...]:
    """In words, what the project wants that the lock does not hold; empty when it fits."""
    found = []
    if lock.inputs != wanted.digest(loaded.wanted):
        found.append("matrix.toml or layers/ ask for other bases, packages or wheels")
    else:
        now = refresh_models(loaded.matrix, lock)
        found += [
            f"model {new.name}: locked {old.digest[:19]}, found {new.digest[:19]}"
            for old, new in zip(lock.models, now.models, strict=True)
            if old != new
        ]
    return tuple(found)


def fitting_lock(loaded: Loaded) -> Lock:
    """The lock, which must fit.

    Raises: StaleError: it does not, or there is none; names each difference.
    """
    lock = read_lock(loaded) if loaded.lock_path.exists() else None
    if lock is None:
        msg = f"there is no {LOCK_FILE} beside {loaded.project.matrix_file.name}"
        raise StaleError(msg, hint="run: gpulayers lock")
    changed: Sequence[str] = differences(loaded, lock)
    if changed:
        msg = f"{LOCK_FILE} does not fit the project:\n" + "\n".join(f"  {c}" for c in changed)
        raise StaleError(msg, hint="run: gpulayers lock")
    return lock
