"""The registry client: questions with three answers (yes, no, could not ask), and the writes."""

import contextlib
import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from types import TracebackType
from typing import Never, Self

from gpulayers.engine.registry import calls
from gpulayers.engine.registry.asking import Asker, Call
from gpulayers.engine.registry.documents import parse_config, parse_document, parse_tags
from gpulayers.engine.registry.model import Descriptor, ImageConfig, Index, Manifest, digest_of
from gpulayers.engine.registry.refusal import RegistryError, Trouble
from gpulayers.engine.registry.transport import Patience, Response, Transport
from gpulayers.refs import ImageRef, Platform, is_digest

INSECURE_VARIABLE = "GPULAYERS_INSECURE_REGISTRIES"
BLOB_BYTES_MAX = 64 << 20
PART_BYTES = 8 << 20
_DIGEST = "docker-content-digest"


class Registry:
    """Talks to any number of registries with Docker's own logins; may be used from any thread.

    Shape: names in ``insecure`` (``HOST[:PORT]``; by default those of the environment variable
    ``GPULAYERS_INSECURE_REGISTRIES``, separated by commas) and loopback are spoken to in plain
    http. A ``name`` is ``HOST/REPOSITORY``.
    Raises: RegistryError: every method, where the registry could not be asked or denied it.
    """

    def __init__(
        self,
        *,
        transport: Transport | None = None,
        patience: Patience | None = None,
        insecure: Collection[str] | None = None,
    ) -> None:
        self._transport = transport or _wire()
        self._asker = Asker(
            transport=self._transport,
            patience=patience or Patience(),
            insecure=_insecure_by_environment() if insecure is None else insecure,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of open connections; the next question opens new ones."""
        self._transport.close()

    def resolve(self, ref: ImageRef) -> str | None:
        """The digest that a reference points at, or None where the registry has no such thing.

        Shape: the digest of the index where the tag is one. It costs one HEAD, which no pull
        limit counts.
        """
        response = self._asker.ask(calls.look_up_manifest(ref), wanted={200, 404})
        if response.status == HTTPStatus.NOT_FOUND:
            return None
        digest = response.headers.get(_DIGEST, "")
        return digest if is_digest(digest) else self.raw(ref).digest

    def resolve_many(self, refs: Iterable[ImageRef], *, workers: int = 8) -> dict[str, str | None]:
        """What ``resolve`` says of each reference, by the reference's text, asked in parallel.

        Raises: RegistryError: one could not be asked; those that wait are then not asked.
        """
        wanted = {ref.format(): ref for ref in refs}
        with ThreadPoolExecutor(max_workers=workers) as pool:
            futures = [pool.submit(self.resolve, ref) for ref in wanted.values()]
            try:
                return {text: each.result() for text, each in zip(wanted, futures, strict=True)}
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def raw(self, ref: ImageRef) -> Manifest | Index:
        """The manifest or index that a reference points at, as its bytes and as our types.

        Raises: RegistryError: it is not there, or its bytes have another digest than was asked
            for or promised.
        """
        call = calls.read_manifest(ref)
        response = self._asker.ask(call, wanted={200})
        media_type = response.headers.get("content-type", "")
        document = parse_document(response.body, media_type, where=ref.format())
        for digest in (ref.digest, response.headers.get(_DIGEST, "")):
            if is_digest(digest):
                _same_digest(call, wanted=digest, found=document.digest)
        return document

    def manifest(self, ref: ImageRef, platform: Platform) -> Manifest:
        """The image manifest for one platform, through an index where there is one.

        Raises: RegistryError: there is no image for that platform.
        """
        document = self.raw(ref)
        if isinstance(document, Index):
            for each in document.images:
                if each.platform == platform:
                    return self.manifest(ref.with_digest(each.digest), platform)
            _refuse_platform(ref, platform, {each.platform for each in document.images})
        config = self.config(ref, document)
        found = Platform(config.os, config.architecture)
        # Artifacts have an empty config, which says nothing against a platform.
        if config.architecture and platform != found:
            _refuse_platform(ref, platform, {found})
        return document

    def config(self, ref: ImageRef, manifest: Manifest) -> ImageConfig:
        """The config of an image whose manifest was read from the reference's repository."""
        raw = self.blob(ref, manifest.config.digest)
        return parse_config(raw, where=f"{ref.name}@{manifest.config.digest}")

    def blob(self, ref: ImageRef, digest: str, *, limit_bytes: int = BLOB_BYTES_MAX) -> bytes:
        """The bytes of a blob of the reference's repository.

        Raises: RegistryError: it is not there, larger than the limit, or not what its digest says.
        """
        call = calls.read_blob(ref, digest, limit_bytes)
        body = self._asker.ask(call, wanted={200}).body
        _same_digest(call, wanted=digest, found=digest_of(body))
        return body

    def stream(
        self, ref: ImageRef, blob: Descriptor, *, part_bytes: int = PART_BYTES, begin: int = 0
    ) -> Iterator[bytes]:
        """The bytes of a blob in parts, each asked for when it is wanted; a lost part alone again.

        Shape: a registry that gives no parts gives all at once; with a ``begin`` past 0 the caller
        has the start, and is the one to see whether the whole is what its digest says.
        Raises: RegistryError: it is not there, or at its end is not what its digest says.
        """
        seen = hashlib.sha256()
        resumed = begin > 0
        while begin < blob.size_bytes:
            call = calls.read_part(ref, blob, begin, min(begin + part_bytes, blob.size_bytes))
            response = self._asker.ask(call, wanted={200, 206})
            # All of it, again: what was given before is not given twice.
            body = response.body[begin:] if response.status == HTTPStatus.OK else response.body
            if not body:
                _same_digest(call, wanted=blob.digest, found="an end before its end")
            seen.update(body)
            begin += len(body)
            yield body
        if resumed:
            return
        whole = calls.read_blob(ref, blob.digest, blob.size_bytes)
        _same_digest(whole, wanted=blob.digest, found=f"sha256:{seen.hexdigest()}")

    def has_blob(self, name: str, digest: str) -> bool:
        """Whether a repository holds a blob."""
        call = calls.look_up_blob(ImageRef.parse(name), digest)
        return self._asker.ask(call, wanted={200, 404}).status == HTTPStatus.OK

    def put_blob(self, name: str, data: bytes) -> str:
        """Store a blob in a repository, where it is not there yet, and return its digest."""
        ref, digest = ImageRef.parse(name), digest_of(data)
        if not self.has_blob(name, digest):
            call = calls.open_upload(ref, f"write the blob {digest} ({len(data)} bytes) to {name}")
            place = self._place(call, self._asker.ask(call, wanted={202}))
            self._asker.ask(calls.end_upload(place, data, digest), wanted={201, 204})
        return digest

    def mount_blob(self, name: str, digest: str, *, source: str) -> bool:
        """Have a blob of another repository of the same registry; no bytes are moved.

        Shape: False where the registry does not mount it: it asks for its bytes instead.
        """
        if self.has_blob(name, digest):
            return True
        call = calls.mount_blob(ImageRef.parse(name), digest, ImageRef.parse(source))
        opened = self._asker.ask(call, wanted={201, 202})
        if opened.status == HTTPStatus.CREATED:
            return True
        self._cancel(call, opened)
        return False

    def put_manifest(self, ref: ImageRef, raw: bytes, media_type: str) -> str:
        """Store these very bytes under the reference's tag (or digest) and return their digest.

        Raises: RegistryError: the registry did not take them, or names another digest for them.
        """
        call = calls.write_manifest(ref, raw, media_type)
        response = self._asker.ask(call, wanted={200, 201, 202})
        found = response.headers.get(_DIGEST) or self.resolve(ref) or "nothing"
        _same_digest(call, wanted=digest_of(raw), found=found)
        return found

    def tags(self, name: str) -> tuple[str, ...]:
        """All tags of a repository, sorted; none where it does not exist."""
        call: Call | None = calls.list_tags(ImageRef.parse(name))
        found: set[str] = set()
        seen: set[str] = set()
        # A registry whose last page names itself as the next one must not hold us for ever.
        while call is not None and call.path not in seen:
            seen.add(call.path)
            response = self._asker.ask(call, wanted={200, 404})
            if response.status == HTTPStatus.NOT_FOUND:
                break
            found.update(parse_tags(response.body, where=f"{name}: tags"))
            call = calls.next_page(call, response, asked=self._asker.url(call))
        return tuple(sorted(found))

    def delete_manifest(self, ref: ImageRef) -> bool:
        """Delete a manifest by its digest; False where it was not there.

        Raises: RegistryError: the reference has no digest, or the registry deletes nothing.
        """
        call = calls.delete_manifest(ref)
        if not ref.digest:
            msg = f"cannot {call.what}: wanted a digest, found a tag"
            hint = "look the digest up first: a tag can move"
            raise RegistryError(msg, trouble=Trouble.DIGEST, hint=hint)
        response = self._asker.ask(call, wanted={200, 202, 404, 405})
        if response.status == HTTPStatus.METHOD_NOT_ALLOWED:
            msg = f"cannot {call.what}: {ref.registry} deletes nothing (HTTP 405)"
            hint = "turn deletion on in the registry"
            raise RegistryError(msg, trouble=Trouble.SERVER, status=405, hint=hint)
        return response.status != HTTPStatus.NOT_FOUND

    def can_push(self, name: str) -> bool:
        """Whether this login may write to a repository: an upload is opened and cancelled."""
        ref = ImageRef.parse(name)
        call = calls.open_upload(ref, f"ask whether {name} may be written to")
        opened = self._asker.ask(call, wanted={202, 401, 403, 404, 405})
        if opened.status != HTTPStatus.ACCEPTED:
            return False
        self._cancel(call, opened)
        return True

    def ping(self, registry: str) -> bool:
        """Whether a registry lets this login in; False: it answers, and wants another login.

        Raises: RegistryError: nothing answers there, or no registry does.
        """
        return (
            self._asker.ask(calls.reach(registry), wanted={200, 401, 403}).status == HTTPStatus.OK
        )

    def _cancel(self, call: Call, opened: Response) -> None:
        place = self._place(call, opened)
        with contextlib.suppress(RegistryError):  # an open upload ends by itself in time
            self._asker.ask(calls.cancel_upload(place), wanted={202, 204, 404, 405})

    def _place(self, call: Call, opened: Response) -> Call:
        return calls.place_of(call, opened, asked=self._asker.url(call))


def _same_digest(call: Call, *, wanted: str, found: str) -> None:
    if wanted != found:
        msg = f"cannot {call.what}: wanted {wanted}, found {found}"
        hint = "a proxy or the registry changed the bytes: ask the registry itself"
        raise RegistryError(msg, trouble=Trouble.DIGEST, hint=hint)


def _refuse_platform(ref: ImageRef, wanted: Platform, found: Collection[Platform | None]) -> Never:
    names = ", ".join(sorted(each.format() for each in found if each is not None))
    msg = f"{ref.format()}: wanted an image for {wanted.format()}, found {names or 'none'}"
    hint = "take a base that has this platform, or leave the platform out of matrix.toml"
    raise RegistryError(msg, trouble=Trouble.NO_PLATFORM, hint=hint)


def _wire() -> Transport:
    from gpulayers.engine.registry.wire import Wire  # noqa: PLC0415 - takes a fifth of a second

    return Wire()


def _insecure_by_environment() -> frozenset[str]:
    names = os.environ.get(INSECURE_VARIABLE, "").split(",")
    return frozenset(name.strip() for name in names if name.strip())
