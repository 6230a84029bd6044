"""OS bases by ordered sources: a registry's image by digest, or one made from Debian packages."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpulayers import apt
from gpulayers.engine import process
from gpulayers.engine.buildx import IMAGE_OUTPUT, Buildx
from gpulayers.engine.registry import Registry, RegistryError, Trouble
from gpulayers.errors import GpulayersError, RemoteError, ToolError
from gpulayers.inputs import suite_of
from gpulayers.lock.model import Lock, LockedBase
from gpulayers.refs import ImageRef, Platform

COPY_S = 1200.0
EPOCH = 315532800  # 1980-01-01: zip files, and so wheels, cannot say an earlier time
# What a container never reads; copyright files stay.
SLIM = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
)
# What leads the loader and Python to other files than those that were installed; set to nothing,
# they mean nothing.
BLANKED = frozenset(
    {
        *("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("PYTHONHOME", "PYTHONPATH", "PYTHONPLATLIBDIR", "PYTHONSTARTUP", "PYTHONUSERBASE"),
    }
)
DOCKERFILE = 'FROM scratch\nADD base.tar /\nCMD ["bash"]\n'

MACHINE = Path("/")
Say = Callable[[str], None]


def reference(base: LockedBase, root: str) -> str:
    """Where the base is pulled from; ``root`` is the project's registry and path."""
    repository = base.repository or f"{root}/base"
    return f"{repository}@{base.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What bases are found and made with.

    Shape: ``root`` is the project's registry and path, below which our own bases are kept;
    ``machine`` is where the files of the machine are, whose apt says which mirrors there are;
    ``suffix`` ends the tag of a base that is made, so that a look at what is new moves no tag.
    """

    registry: Registry
    buildx: Buildx
    root: str
    say: Say
    machine: Path = MACHINE
    suffix: str = ""


def resolve(
    os_name: str, sources: Sequence[str], platform: Platform, workshop: Workshop
) -> LockedBase:
    """The first source that answers, by digest; a bootstrap is made and pushed below ``root``.

    Raises: RemoteError: no source gave a base; says what each of them answered.
    """
    answers: list[str] = []
    hint = f"add a source to [base.{os_name}] that this machine can reach"
    for source in sources:
        try:
            base = _try(os_name, source, platform, workshop)
        except GpulayersError as error:
            answers.append(f"  {source}: {str(error).splitlines()[0]}")
            if isinstance(error, RegistryError) and error.trouble is Trouble.AUTH_DENIED:
                hint = error.hint
            continue
        for answer in answers:
            workshop.say(f"base {os_name}: passed over{answer[1:]}")
        workshop.say(f"base {os_name}: {source} ({base.digest[:19]})")
        if base.repository and not workshop.suffix:
            _keep(base, workshop)
        return base
    msg = f"no source gave a base for {os_name}:\n" + "\n".join(answers)
    raise RemoteError(msg, hint=hint)


def _keep(base: LockedBase, workshop: Workshop) -> None:
    """Copy a base below the root, under a tag of its own, so that it can be had when it is gone."""
    source = ImageRef.parse(reference(base, workshop.root))
    kept = ImageRef.parse(f"{workshop.root}/base:{base.os}-{base.digest[7:19]}")
    try:
        if workshop.registry.resolve(kept) == base.digest:
            return
        done = workshop.buildx.copy(source.format(), kept.format(), timeout_s=COPY_S)
        found = workshop.registry.resolve(kept) if done.ok else None
        last = "\n".join(done.tail(1))
        answer = "" if found == base.digest else last or "it is not there"
    except GpulayersError as error:
        answer = str(error).splitlines()[0]
    if answer:
        workshop.say(
            f"base {base.os}: no copy in {workshop.root}/base ({answer}): builds need {source.name}"
        )


def nearest_copies(lock: Lock, root: str, registry: Registry) -> Lock:
    """The same lock with the bases that were copied below the root taken from there.

    Shape: nothing else asks for them where they came from; images are the same ones.
    Raises: RegistryError: the registry does not answer.
    """
    found = tuple(
        replace(base, repository="") if base.repository and _is_kept(base, root, registry) else base
        for base in lock.bases
    )
    return lock if found == lock.bases else replace(lock, bases=found)


def _is_kept(base: LockedBase, root: str, registry: Registry) -> bool:
    return registry.resolve(ImageRef.parse(f"{root}/base@{base.digest}")) is not None


def _try(os_name: str, source: str, platform: Platform, workshop: Workshop) -> LockedBase:
    suite = suite_of(source)
    blanks: tuple[str, ...] = ()
    if suite:
        into = f"{workshop.root}/base:{os_name}{workshop.suffix}"
        digest = bootstrap(
            suite, platform, buildx=workshop.buildx, into=into, machine=workshop.machine
        )
        repository = ""
    else:
        ref = ImageRef.parse(source)
        manifest = workshop.registry.manifest(ref, platform)
        digest, repository = manifest.digest, ref.name
        environment = workshop.registry.config(ref.with_digest(digest), manifest).env
        blanks = tuple(sorted(BLANKED & environment.keys()))
    return LockedBase(
        os=os_name,
        platform=platform,
        source=source,
        repository=repository,
        digest=digest,
        suite=suite,
        blanks=blanks,
    )


def bootstrap(
    suite: str, platform: Platform, *, buildx: Buildx, into: str, machine: Path = MACHINE
) -> str:
    """Make a base from the Debian packages of the machine's own mirrors; the digest it has.

    The same packages give the same bytes. Nothing of the mirror's address stays in it.

    Raises: ToolError: mmdebstrap is missing, or the machine is no Debian of that architecture;
        RemoteError: the packages cannot be had, or the push failed.
    """
    sources = apt.sources_text(suite, machine)
    if not sources:
        msg = f"bootstrap:{suite} needs a machine whose apt takes Debian packages"
        raise ToolError(msg, hint="use a base image from a registry as the source")
    with tempfile.TemporaryDirectory(prefix="gpulayers-base-") as name:
        folder = Path(name)
        (folder / "gpulayers.sources").write_text(sources, encoding="utf-8")
        (folder / "in").mkdir()
        done = process.run(
            _mmdebstrap(suite, folder, platform),
            env={"SOURCE_DATE_EPOCH": str(EPOCH)},
            timeout_s=1200,
        )
        if not done.ok:
            said = "\n".join(f"  {line}" for line in done.tail(8))
            msg = f"mmdebstrap could not make {suite}:\n{said}"
            raise RemoteError(msg, hint="look at the machine's apt sources and network")
        (folder / "in" / "Dockerfile").write_text(DOCKERFILE, encoding="utf-8")
        outcome = buildx.build(
            folder / "in",
            output=f"{IMAGE_OUTPUT},name={into}",
            arguments={"SOURCE_DATE_EPOCH": str(EPOCH)},
            platform=platform.format(),
            timeout_s=1200,
        )
    if outcome.failure is not None:
        said = "\n".join(f"  {line}" for line in outcome.failure.lines[-8:])
        msg = f"the base {into} could not be pushed:\n{said}"
        raise RemoteError(msg, hint="is the registry up, and may you push to it?")
    return outcome.digest


def _mmdebstrap(suite: str, folder: Path, platform: Platform) -> list[str]:
    # The lists of archives would name this machine's mirror.
    hook = 'rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*'
    return [
        *("mmdebstrap", "--quiet", "--variant=apt", "--format=tar", "--mode=auto"),
        f"--architectures={platform.architecture}",
        *(f"--dpkgopt={option}" for option in SLIM),
        f"--customize-hook={hook}",
        *(suite, str(folder / "in" / "base.tar"), str(folder / "gpulayers.sources")),
    ]
