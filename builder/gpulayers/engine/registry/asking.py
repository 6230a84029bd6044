"""One question to a registry, asked patiently, and its refusals turned into errors."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Never

from gpulayers.engine.registry.documents import parse_errors
from gpulayers.engine.registry.hosts import api_root
from gpulayers.engine.registry.refusal import (
    RegistryError,
    Trouble,
    classify,
    clean,
    hint_for,
    words_for,
)
from gpulayers.engine.registry.transport import (
    NoAnswerError,
    Patience,
    Request,
    Response,
    Transport,
)

# What a registry must take at least, says the specification; more is no manifest.
# https://github.com/opencontainers/distribution-spec/blob/main/spec.md (read 2025-12-01)
DOCUMENT_BYTES_MAX = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A question in the words of the API.

    Shape: ``what`` ends the sentence "cannot …"; ``path`` follows ``/v2/`` (a whole address is
    taken as it is); ``repository`` is empty for questions to the registry itself.
    """

    what: str
    method: str
    registry: str
    repository: str
    path: str
    action: str = "pull"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    limit_bytes: int = DOCUMENT_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks questions over a transport, again where that can help."""

    transport: Transport
    patience: Patience
    insecure: Collection[str]

    def url(self, call: Call) -> str:
        """The address of a question."""
        if call.path.startswith(("http://", "https://")):
            return call.path
        return f"{api_root(call.registry, insecure=self.insecure)}/{call.path}"

    def ask(self, call: Call, *, wanted: Collection[int]) -> Response:
        """The answer, if its status is one of the wanted.

        Raises: RegistryError: another status, or no answer after all tries.
        """
        request = Request(
            method=call.method,
            url=self.url(call),
            headers={"Accept-Encoding": "identity", **call.headers},
            body=call.body,
            registry=call.registry,
            right=f"{call.repository}:{call.action}",
            limit_bytes=call.limit_bytes,
        )
        asked = 0

        def send() -> Response:
            nonlocal asked
            asked += 1
            return self.transport.send(request)

        try:
            response = self.patience.ask(send)
        except NoAnswerError as error:
            _refuse_silence(call, error, asked)
        if response.status not in wanted:
            _refuse(call, response)
        return response


def _refuse_silence(call: Call, error: NoAnswerError, asked: int) -> Never:
    times = "once" if asked == 1 else f"{asked} times"
    msg = (
        f"cannot {call.what}: no usable answer from {call.registry}, asked {times}:"
        f" {clean(error.reason)}"
    )
    hint = hint_for(error.trouble, registry=call.registry, repository=call.repository)
    raise RegistryError(msg, trouble=error.trouble, hint=hint) from error


def _refuse(call: Call, response: Response) -> Never:
    text = parse_errors(response.body)
    limited = response.headers.get("ratelimit-remaining", "").startswith("0")
    trouble = classify(response.status, text, limited=limited)
    names = {"registry": call.registry, "repository": call.repository or "its API"}
    found = f"HTTP {response.status}" + (f", {clean(text)}" if text else "")
    wait = response.headers.get("retry-after", "")
    if trouble is Trouble.RATE_LIMIT and wait:
        found += f", to be asked again after {clean(wait)}" + (" s" if wait.isdigit() else "")
    msg = f"cannot {call.what}: {words_for(trouble, **names)} ({found})"
    raise RegistryError(
        msg, trouble=trouble, status=response.status, hint=hint_for(trouble, **names)
    )
