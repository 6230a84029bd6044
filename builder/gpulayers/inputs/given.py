"""Secrets that the command line gives: where each is, that it is there, and who asks for it."""

import csv
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpulayers.errors import ProjectError
from gpulayers.secrecy import SHORTEST, hide, is_own

ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WANTED = "id=NAME,env=VARIABLE or id=NAME,src=FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A secret by the variable or the file that holds it; never its value.

    Shape: one of ``env`` and ``file`` is set.
    """

    id: str
    env: str = ""
    file: Path | None = None

    @property
    def source(self) -> str:
        """Where it comes from, as ``--secret`` and the bake file take it."""
        if self.file is None:
            return f"env={self.env}"
        text = str(self.file.absolute())
        return f'"src={text}"' if "," in text else f"src={text}"


def parse(text: str) -> Given:
    """Read the value of ``--secret``, as ``docker build`` takes it.

    Raises: ValueError: it is none; the message says what was wanted and found, without values.
    """
    words = dict(_pair(word) for word in next(csv.reader([text]), []))
    name, env = words.pop("id", ""), words.pop("env", "")
    file = words.pop("src", "") or words.pop("source", "")
    if words or not name or bool(env) == bool(file):
        # Not what was found: somebody may have put the value there.
        msg = f"wanted {WANTED}, found something else"
        raise ValueError(msg)
    if is_own(name):
        msg = f"id: wanted a name of your own, found {name}, which is one of the machine's settings"
        raise ValueError(msg)
    if ID.fullmatch(name) is None:
        msg = "id: wanted lower-case words with dashes, found something else"
        raise ValueError(msg)
    if env and VARIABLE.fullmatch(env) is None:
        msg = f"secret {name}: env: wanted the name of a variable, found something else"
        raise ValueError(msg)
    return Given(id=name, env=env, file=Path(file) if file else None)


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name.strip(), value


def read(given: Sequence[Given], environment: Mapping[str, str]) -> None:
    """See that each secret is there, and hide its value from now on.

    Raises: ProjectError: one is given twice, is not there, is empty, or is too short to be hidden.
    """
    seen: set[str] = set()
    for one in given:
        where = f"file {one.file}" if one.file is not None else f"variable {one.env}"
        if one.id in seen:
            msg = f"secret {one.id} is given twice"
            raise ProjectError(msg, hint="give it once")
        seen.add(one.id)
        value = _value(one, environment)
        hide(value)
        if len(value.strip()) < SHORTEST:
            found = "too little to be kept out of the logs" if value.strip() else "nothing"
            msg = f"secret {one.id}: wanted its value in the {where}, found {found}"
            raise ProjectError(msg, hint=f"put at least {SHORTEST} characters there")


def _value(one: Given, environment: Mapping[str, str]) -> str:
    if one.file is None:
        return environment.get(one.env, "")
    try:
        return one.file.read_bytes().decode("utf-8", errors="ignore")
    except OSError as error:
        msg = f"secret {one.id}: cannot read the file {one.file}: {error.strerror}"
        raise ProjectError(msg, hint=f"--secret {WANTED}") from None


def demand(asked: Mapping[str, Collection[str]], given: Sequence[Given]) -> tuple[str, ...]:
    """Refuse to start without a secret that a layer asks for; ids of those that none asks for.

    Shape: ``asked`` maps a layer to ids.
    Raises: ProjectError: names every missing id and who asks for it.
    """
    there = {one.id for one in given}
    missing = [
        f"layer {layer} asks for the secret {name}"
        for layer, names in sorted(asked.items())
        for name in sorted(set(names) - there)
    ]
    if missing:
        name = missing[0].rpartition(" ")[2]
        variable = name.upper().replace("-", "_")
        msg = f"{'; '.join(missing)}: not given"
        raise ProjectError(msg, hint=f"add --secret id={name},env={variable} (or src=FILE)")
    wanted = {name for names in asked.values() for name in names}
    return tuple(sorted(there - wanted))
