"""Models of Hugging Face repositories, through its own client, which is an extra of ours.

The client knows endpoints, tokens, proxies and rate limits. Only where the bytes go is ours: its
download of a file begins anew in each process (2.4), which for weights is too much.
"""

import fnmatch
import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gpulayers.engine.registry import Patience
from gpulayers.engine.registry.refusal import clean
from gpulayers.errors import GpulayersError, ProjectError, RemoteError, ToolError
from gpulayers.lock.model import LockedFile, LockedModel
from gpulayers.lock.wanted import source_of
from gpulayers.lock.weights.names import checked_name
from gpulayers.lock.weights.parts import Part
from gpulayers.lock.weights.pins import locked
from gpulayers.lock.weights.store import Store
from gpulayers.matrix.model import HubModel

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

T = TypeVar("T")
# What git needs to be told, and no model.
LEFT_OUT = (".gitattributes", ".gitignore")
HINTS: Mapping[int, str] = {
    0: "see that HF_ENDPOINT (or the Hub) is up and this machine reaches it",
    HTTPStatus.UNAUTHORIZED: "set HF_TOKEN, or log in with `hf auth login`; private repositories "
    "and wrong names are answered alike",
    HTTPStatus.FORBIDDEN: "set HF_TOKEN to one that may read it, and accept the model's terms",
    HTTPStatus.NOT_FOUND: "see that repository, revision and file exist",
    HTTPStatus.TOO_MANY_REQUESTS: "wait, set HF_TOKEN for a higher limit, or HF_ENDPOINT to a "
    "mirror",
}
RETRY_STATUS = frozenset({0, 408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """Asks Hugging Face about repositories, and brings their files; may be used from any thread.

    Shape: small files have no sha256 there, so they are fetched into the store when they are
    pinned; ``endpoint`` None is the client's own, that of ``HF_ENDPOINT``.
    """

    store: Store
    patience: Patience
    endpoint: str | None = None

    def pin(self, model: HubModel) -> LockedModel:
        """The repository by its commit, and the files that are asked for.

        Raises: RemoteError: Hugging Face did not answer, or denied it; ToolError: its client is
            missing; ProjectError: no file fits.
        """
        demand_client(model.name)
        from huggingface_hub import HfApi  # noqa: PLC0415 - an extra, and slow to load

        what = f"model {model.name}: cannot look up {model.repository} at {model.revision}"
        info = self._patiently(
            what,
            lambda: HfApi(endpoint=self.endpoint).model_info(
                model.repository, revision=model.revision, files_metadata=True
            ),
        )
        commit = info.sha or ""
        chosen = [one for one in info.siblings or () if _is_wanted(model, one.rfilename)]
        return locked(
            model.name,
            source=source_of(model),
            revision=commit,
            files=[self._file(model, commit, one) for one in chosen],
        )

    def bring(self, model: LockedModel, file: LockedFile, part: Path) -> None:
        """Write what is missing of a file to the end of ``part``.

        Raises: RemoteError: Hugging Face did not answer, or denied it; ToolError: its client is
            missing.
        """
        demand_client(model.name)
        repository = model.source.partition(":")[2]
        what = f"model {model.name}: cannot fetch {file.name} of {repository} at {model.revision}"
        self._bring(what, (repository, model.revision, file.name), file.size_bytes, part)

    def _file(self, model: HubModel, commit: str, one: "RepoSibling") -> LockedFile:
        name, size = _named(model, one.rfilename), one.size or 0
        if one.lfs is not None:
            return LockedFile(name=name, sha256=one.lfs.sha256, size_bytes=one.lfs.size)
        oid = one.blob_id or ""
        part = self.store.part(f"git-{hashlib.sha256(oid.encode()).hexdigest()}")
        part.unlink(missing_ok=True)
        what = f"model {model.name}: cannot fetch {name} of {model.repository} at {commit}"
        part.touch()
        self._bring(what, (model.repository, commit, name), size, part)
        content = part.read_bytes()
        found = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
        if found.hexdigest() != oid:
            part.unlink()
            msg = f"{what}: wanted the git object {oid}, found {found.hexdigest()}"
            raise RemoteError(msg, hint="what stands between changed the bytes: ask it directly")
        return LockedFile(name=name, sha256=self.store.take_in(part), size_bytes=len(content))

    def _bring(self, what: str, place: tuple[str, str, str], size: int, part: Path) -> None:
        from huggingface_hub import hf_hub_url  # noqa: PLC0415 - an extra, and slow to load
        from huggingface_hub.file_download import http_get  # noqa: PLC0415 - as above
        from huggingface_hub.utils import (  # type: ignore[attr-defined] # documented there # noqa: PLC0415
            build_hf_headers,
        )

        repository, commit, name = place
        # As it is stored: a compressed answer has no parts.
        headers = {**build_hf_headers(library_name="gpulayers"), "Accept-Encoding": "identity"}

        def go_on() -> None:
            with Part(part, self.store.stop) as opened:
                here = opened.tell()
                http_get(
                    hf_hub_url(repository, name, revision=commit, endpoint=self.endpoint),
                    opened,
                    resume_size=here,
                    headers=headers,
                    expected_size=size,
                )

        if size:
            self._patiently(what, go_on, progress=lambda: part.stat().st_size)

    def _patiently(
        self, what: str, ask: Callable[[], T], *, progress: Callable[[], int] = lambda: 0
    ) -> T:
        """The answer; asked again where that can help, and as long as more comes each time."""
        tries, seen = 0, progress()
        while True:
            tries += 1
            try:
                return ask()
            except GpulayersError:
                raise
            # The client's errors come from three libraries of HTTP, by its version.
            except Exception as error:
                if progress() > seen:
                    tries, seen = 0, progress()
                failed = error
                if _status(error) not in RETRY_STATUS or tries >= self.patience.tries:
                    raise _refusal(what, error) from error
            pause = max(_asked_s(failed), self.patience.first_s * 2**tries)
            self.patience.sleep(min(pause, self.patience.cap_s))


def demand_client(model: str) -> None:
    """Have the client of Hugging Face, quiet.

    Raises: ToolError: it is not installed.
    """
    try:
        from huggingface_hub.utils import (  # type: ignore[attr-defined] # documented there # noqa: PLC0415
            disable_progress_bars,
        )
    except ImportError as error:
        msg = f"model {model}: wanted the package huggingface-hub, which fetches it, found none"
        raise ToolError(msg, hint="pip install 'gpulayers[hf]'") from error
    disable_progress_bars()
    # Its warnings of a lost connection have addresses in them, and it goes on by itself.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)


def _is_wanted(model: HubModel, name: str) -> bool:
    if not model.files:
        return name not in LEFT_OUT
    return any(fnmatch.fnmatchcase(name, glob) for glob in model.files)


def _named(model: HubModel, name: str) -> str:
    try:
        return checked_name(name)
    except ValueError as error:
        msg = f"model {model.name}: {model.repository}: {error}"
        raise ProjectError(msg, hint="leave it out with `files`") from error


def _status(error: Exception) -> int:
    """The HTTP status of an answer that was refused; 0 where there was none."""
    response: object = getattr(error, "response", None)
    status: object = getattr(response, "status_code", 0)
    return status if isinstance(status, int) else 0


def _asked_s(error: Exception) -> float:
    """The wait that a refusal asks for, in seconds."""
    headers: object = getattr(getattr(error, "response", None), "headers", None)
    asked = str(headers.get("retry-after", "")) if isinstance(headers, Mapping) else ""
    return float(asked) if asked.isdigit() else 0.0


def _refusal(what: str, error: Exception) -> RemoteError:
    status = _status(error)
    said = clean(str(error)) or type(error).__name__
    found = f"HTTP {status}, {said}" if status else said
    return RemoteError(f"{what}: {found}", hint=HINTS.get(status, HINTS[0]))
