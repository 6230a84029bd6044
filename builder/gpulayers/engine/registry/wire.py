"""The one place that speaks HTTP to registries: requests for transport, oras for logins.

Imported late: the two take a fifth of a second to load.
"""

import contextlib
import queue
from collections.abc import Iterator
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from gpulayers.engine.registry.challenge import Logins
from gpulayers.engine.registry.hosts import is_loopback
from gpulayers.engine.registry.refusal import Trouble, clean
from gpulayers.engine.registry.transport import NoAnswerError, Request, Response

CHUNK = 1 << 16
CONNECT_S = 10.0
# Empty texts, not None: requests then leaves out the proxies that the environment names.
_NO_PROXIES = {"http": "", "https": "", "all": ""}


class Wire:
    """A transport over real sockets; may be used from any thread.

    Shape: a session is in the hands of one thread at a time and is kept for the next one, so
    connections outlive the threads of one call.
    Units: ``timeout_s`` is the longest silence, not the longest answer.
    """

    def __init__(self, *, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s
        self._free: queue.LifoQueue[requests.Session] = queue.LifoQueue()
        self._logins = Logins(timeout_s=timeout_s)

    def send(self, request: Request) -> Response:
        """The answer; a 401 is answered once with the login that Docker's client has.

        Raises: NoAnswerError: no connection, silence, or a body that ended early.
        """
        with self._session() as session, _reasons(self._timeout_s):
            sent = self._logins.known(request)
            with self._exchange(session, request, sent) as response:
                answer, challenged = _read(response, request), _is_challenge(request, response)
            if not challenged:
                return answer
            header = self._logins.answer(
                request,
                challenge=answer.headers.get("www-authenticate", ""),
                refused=sent,
                session=session,
            )
            if not header:
                return answer
            with self._exchange(session, request, header) as response:
                return _read(response, request)

    def close(self) -> None:
        """Close all connections that are not in use."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._free.get_nowait().close()

    @contextlib.contextmanager
    def _session(self) -> Iterator[requests.Session]:
        try:
            session = self._free.get_nowait()
        except queue.Empty:
            session = _new_session()
        try:
            yield session
        finally:
            self._free.put(session)

    def _exchange(
        self, session: requests.Session, request: Request, login: str
    ) -> requests.Response:
        headers = {**request.headers, **({"Authorization": login} if login else {})}
        return session.request(
            request.method,
            request.url,
            data=request.body,
            headers=headers,
            stream=True,
            timeout=(min(CONNECT_S, self._timeout_s), self._timeout_s),
            proxies=_NO_PROXIES if is_loopback(urlsplit(request.url).netloc) else None,
        )


def _new_session() -> requests.Session:
    session = requests.Session()
    # Some registries take a cookie as a sign of a browser and then want more (Harbor).
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # Without this, a .netrc entry for the host replaces the login that we send.
    session.auth = _as_it_is
    return session


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _is_challenge(request: Request, response: requests.Response) -> bool:
    """Whether the registry itself, and no host that a redirect led to, wants a login."""
    here = urlsplit(request.url).netloc == urlsplit(response.url).netloc
    return here and response.status_code == HTTPStatus.UNAUTHORIZED


def _read(response: requests.Response, request: Request) -> Response:
    """The whole answer, its body as it was stored: digests are of the undecoded bytes."""
    body = bytearray()
    for chunk in response.raw.stream(CHUNK, decode_content=False):
        body += chunk
        if len(body) > request.limit_bytes:
            msg = f"an answer of more than {request.limit_bytes} bytes"
            raise NoAnswerError(msg, again=False, trouble=Trouble.UNREADABLE)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(status=response.status_code, headers=headers, body=bytes(body))


@contextlib.contextmanager
def _reasons(timeout_s: float) -> Iterator[None]:
    try:
        yield
    except requests.ConnectTimeout as error:
        msg = f"no connection within {min(CONNECT_S, timeout_s):g} s"
        raise NoAnswerError(msg, again=True) from error
    except requests.Timeout as error:
        msg = f"no answer within {timeout_s:g} s"
        raise NoAnswerError(msg, again=True) from error
    except (requests.exceptions.SSLError, requests.exceptions.InvalidURL) as error:
        raise NoAnswerError(_innermost(error), again=False) from error
    except (requests.RequestException, HTTPError, OSError) as error:
        raise NoAnswerError(_innermost(error), again=True) from error


def _innermost(error: BaseException) -> str:
    """What the operating system said, without the layers of libraries around it."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return clean(said or type(error).__name__)
