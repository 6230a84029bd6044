"""`why --image`: an image, ours or not, looked at without running it, as words of a query."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import click

from gpulayers import inspection
from gpulayers.cli.inspecting import opened
from gpulayers.cli.loaded import Where
from gpulayers.cli.progress import megabytes
from gpulayers.compat.model import Query
from gpulayers.engine.registry import Registry
from gpulayers.errors import NothingSelectedError
from gpulayers.facts import find
from gpulayers.facts.model import ComputeCapability, Facts
from gpulayers.fatbin import Code
from gpulayers.inspection import CAP_BYTES, Inspected, Subject
from gpulayers.inspection.contents import Contents, contents

PLATFORM = "linux/amd64"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """An image and what it holds.

    Units: ``read_bytes`` are compressed bytes of the layers that were read, beside manifest and
    config; ``size_bytes`` those of the image.
    """

    name: str
    digest: str
    platform: str
    contents: Contents
    read_bytes: int
    size_bytes: int
    unread: int

    def words(self) -> dict[str, str]:
        """What it says of a query.

        Raises: NothingSelectedError: nothing that is known is in it.
        """
        held = self.contents
        if held.framework is None:
            more = (
                f" ({self.unread} layers of more than 64 MB were not read)" if self.unread else ""
            )
            msg = f"{self.name}: wanted a framework or CUDA that is known, found none{more}"
            raise NothingSelectedError(msg, hint="--deep reads every layer")
        return {
            "framework": held.framework.format(),
            "variant": held.variant,
            "cuda": held.cuda,
            "python": held.python,
            "os": held.os,
            "platform": self.platform,
        }

    def complete(self, query: Query, facts: Facts) -> Query:
        """The query with what no words say: what it asks of a host, and the code that it has."""
        held = self.contents
        # Of an OS that the facts do not have nothing is asked: its wheels are installed already.
        is_known = query.os != held.os or find.libc_of(facts, held.os) is not None
        return replace(
            query,
            os=query.os if is_known else "",
            requirements=tuple(held.requirements.items()),
            compat=held.compat,
            read_sms=_capabilities(held.code.sms),
            read_exact_sms=_capabilities(held.code.exact_sms),
            read_ptx=_capabilities(held.code.ptx),
        )

    def lines(self) -> Iterator[str]:
        """What was found, in words."""
        held = self.contents
        framework = held.framework.format() if held.framework is not None else "none"
        build = held.variant or (f"CUDA {held.cuda}" if held.cuda else "the plain build")
        yield f"image    {self.name}"
        yield f"         {framework} ({build}), by {held.seen.get('framework', 'nothing')}"
        told = {"Python": held.python, "OS": held.os, "glibc": held.glibc, "cuDNN": held.cudnn}
        for name, text in told.items():
            if text:
                yield f"         {name} {text}"
        for name, text in held.requirements.items():
            yield f"         {name}={text.split()[0]}{' …' if ' ' in text else ''}"
        for folder in held.compat:
            yield f"         forward-compatibility libraries in {folder}"
        if held.code:
            yield f"         code for {_code_text(held.code)}"
        elif self.unread:
            yield "         its GPU code was not read: by facts; --deep reads all layers"
        read = f"{megabytes(self.read_bytes)} of {megabytes(self.size_bytes)} in layers"
        yield f"         read: manifest, config and {read}"

    def document(self) -> dict[str, object]:
        """The same as JSON."""
        held = self.contents
        return {
            "name": self.name,
            "digest": self.digest,
            "platform": self.platform,
            "framework": held.framework.format() if held.framework is not None else "",
            "variant": held.variant,
            "cuda": held.cuda,
            "python": held.python,
            "os": held.os,
            "cudnn": held.cudnn,
            "glibc": held.glibc,
            "sms": _decimal(held.code.sms),
            "exact_sms": _decimal(held.code.exact_sms),
            "ptx": _decimal(held.code.ptx),
            "requirements": dict(held.requirements),
            "compat": list(held.compat),
            "seen": dict(held.seen),
            "read_bytes": self.read_bytes,
            "bytes": self.size_bytes,
        }


def _capabilities(archs: Iterable[int]) -> frozenset[ComputeCapability]:
    return frozenset(ComputeCapability(arch // 10, arch % 10) for arch in archs)


def _decimal(archs: Iterable[int]) -> list[str]:
    return [capability.format() for capability in sorted(_capabilities(archs))]


def _code_text(code: Code) -> str:
    texts = {"": code.sms, " of that chip only": code.exact_sms, " as PTX": code.ptx}
    return "; ".join(f"{', '.join(_decimal(a))}{more}" for more, a in texts.items() if a)


def look(image: str, platform: str, *, deep: bool = False) -> LookedAt:
    """Look at an image; layers only where its labels do not say what it is.

    Shape: ``deep`` reads every layer, of whatever size, and the GPU code in it.
    Raises: RemoteError: neither the registry nor the engine has it.
    """
    place = Where(project=None, matrix=None, only=(), registry="")
    wanted = platform or PLATFORM
    with Registry() as client, opened(image, place, client, wanted) as (_, subject):
        found = inspection.examine(subject, cap_bytes=0)
        held = contents(found)
        if deep or not held.by_label:
            found = _in_layers(subject, None if deep else CAP_BYTES)
            held = contents(found)
    read = sum(layer.size_bytes for layer in found.layers if not layer.unread)
    return LookedAt(
        name=image,
        digest=found.digest,
        platform=wanted,
        contents=held,
        read_bytes=read,
        size_bytes=found.size_bytes,
        unread=sum(bool(layer.unread) for layer in found.layers),
    )


def _in_layers(subject: Subject, cap_bytes: int | None) -> Inspected:
    return inspection.examine(
        subject,
        cap_bytes=cap_bytes,
        with_code=True,
        on_layer=lambda layer: click.echo(
            f"reading {megabytes(layer.size_bytes)} {layer.owner}", err=True
        ),
    )
