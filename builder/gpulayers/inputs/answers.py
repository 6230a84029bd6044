"""Which of several addresses of an index answers: the first that does is taken."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpulayers.errors import RemoteError
from gpulayers.inputs.logins import without_logins

TIMEOUT_S = 10.0
REFUSED = (401, 403)
LEAST_ERROR = 500
# An address to why it cannot be used, or "".
Ask = Callable[[str], str]


def first(
    mirrors: Mapping[str, Sequence[str]], ask: Ask, say: Callable[[str], None]
) -> dict[str, str]:
    """For each index by its name the first of its addresses that answers; the others are told.

    Shape: of an index with one address nothing is asked.
    Raises: RemoteError: of an index with several none answers; names all of these, with reasons.
    """
    found: dict[str, str] = {}
    silent: list[str] = []
    for name, addresses in mirrors.items():
        if len(addresses) == 1:
            found[name] = addresses[0]
            continue
        lines = []
        for address in addresses:
            reason = ask(address)
            if not reason:
                found[name] = address
                break
            lines.append(f"{without_logins(address)}: {reason}")
        if name not in found:
            silent += [f"  index {name}: {line}" for line in lines]
        for line in lines if name in found else ():
            say(f"index {name}: passed over {line}")
    if silent:
        msg = "no address of these indexes answers:\n" + "\n".join(silent)
        raise RemoteError(msg, hint="look at the network and the logins, or add a mirror")
    return found


def asking(ca: Path | None) -> Ask:
    """Ask an index over the network, with the machine's proxies and CA bundle."""

    def ask(address: str) -> str:
        import requests  # noqa: PLC0415 - takes a fifth of a second

        try:
            response = requests.get(
                f"{address.rstrip('/')}/",
                timeout=TIMEOUT_S,
                verify=str(ca) if ca is not None else True,
                stream=True,
            )
        except requests.RequestException as error:
            return type(error).__name__
        with response:
            # A root that is not there says nothing against its packages.
            is_bad = response.status_code in REFUSED or response.status_code >= LEAST_ERROR
            return f"HTTP {response.status_code}" if is_bad else ""

    return ask
