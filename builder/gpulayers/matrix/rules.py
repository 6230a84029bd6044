"""What single values of a matrix.toml have to look like."""

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from gpulayers.errors import ProjectError
from gpulayers.matrix.shape import Rule, parsed
from gpulayers.refs import ImageRef, Platform, is_repository
from gpulayers.secrecy import is_own, is_secret
from gpulayers.versions import PACKAGE, MajorMinor, Pin

_URL_LOGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(
    r"(?P<name>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:(?P<port>[0-9]{1,5}))?"
)
_SECRET = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_BOOTSTRAP = re.compile(r"bootstrap:[a-z][a-z0-9-]*")
_LAST_PORT = 65535
_PORT_KINDS = ("tcp", "udp", "sctp")
_PLACE = re.compile(r"(/[A-Za-z0-9._-]+)+")
_SYSTEM = re.compile(r"s?bin|boot|dev|etc|home|lib\w*|media|mnt|proc|root|run|sys|tmp|usr|var")
_OURS = (["opt", "venv"], ["opt", "python"], ["opt", "models"], ["opt", "cuda"])


def _grammar(wanted: str, pattern: str, hint: str = "") -> Rule[str]:
    compiled = re.compile(pattern)
    return Rule(wanted, lambda text: text if compiled.fullmatch(text) else None, hint)


def _registry(text: str) -> str | None:
    host, slash, path = text.partition("/")
    match = _HOST.fullmatch(host)
    if match is None or (slash and not is_repository(path)):
        return None
    # Docker takes a first part without dot and port for a namespace of its own registry.
    if "." not in host and ":" not in host and host != "localhost":
        return None
    return text if 0 < int(match["port"] or "1") <= _LAST_PORT else None


def _base_source(text: str) -> str | None:
    if text.startswith("bootstrap:"):
        return text if _BOOTSTRAP.fullmatch(text) else None
    return text if _image(text) is not None else None


def _image(text: str) -> ImageRef | None:
    try:
        ref = ImageRef.parse(text)
    except ProjectError:
        return None
    return ref if ref.digest or ref.tag not in {"", "latest"} else None


def _requirement(text: str) -> str | None:
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    # A lock names an index and a hash; what stands at an address is neither.
    return text if found.url is None else None


def _same_pin(pin: Pin) -> object:
    return pin.name, Version(pin.version)  # 2.8 and 2.8.0 are one release


def _filled(text: str) -> str | None:
    return text if text.strip() else None


def _port(text: str) -> str | None:
    number, slash, kind = text.partition("/")
    if not number.isascii() or not number.isdigit() or not 0 < int(number[:6]) <= _LAST_PORT:
        return None
    kind = kind if slash else "tcp"
    return f"{int(number)}/{kind}" if kind in _PORT_KINDS else None


def _place_in_image(text: str) -> str | None:
    parts = text.split("/")[1:]
    if _PLACE.fullmatch(text) is None or {".", ".."} & {*parts}:
        return None
    taken = _SYSTEM.fullmatch(parts[0]) or parts[:2] in _OURS or text == "/opt"
    return None if taken else text


def env_fault(name: str, value: str) -> str:
    """What is wrong with an environment variable for the image, or nothing."""
    if _ENV_NAME.fullmatch(name) is None:
        return "a name that is not letters, digits and _"
    if is_secret(name):
        return "a name that looks like a secret"
    if _URL_LOGIN.search(value):
        return "a value with a login in it"
    return "a value with control characters" if _CONTROL.search(value) else ""


PATH = Rule(
    "a path relative to the project",
    lambda text: None if _CONTROL.search(text) else _filled(text),
)
FILLED = Rule("a string that is not empty", _filled)
REPOSITORY = Rule(
    "an OCI repository (lower case, digits, single . _ - between them, / between parts)",
    lambda text: text if is_repository(text) else None,
)
REGISTRY = Rule("HOST[:PORT][/PATH]", _registry, "write no https:// and no / at the end")
CHANNEL = _grammar("a channel name ([a-z][a-z0-9-]*)", r"[a-z][a-z0-9-]*")
PLATFORM = parsed("linux/amd64 or linux/arm64", Platform.parse)
OS_PACKAGE = _grammar(
    "the name of an OS package",
    r"[A-Za-z0-9][A-Za-z0-9+._-]*",
    "write no version: `gpulayers lock` picks it",
)
USER = _grammar(
    "UID:GID in digits",
    r"(0|[1-9][0-9]{0,9}):(0|[1-9][0-9]{0,9})",
    "names are not known in every base",
)
HOST_NAME = _grammar("a name ([A-Za-z0-9][A-Za-z0-9._-]*)", r"[A-Za-z0-9][A-Za-z0-9._-]*")
OS = _grammar("an OS name ([a-z0-9][a-z0-9.-]*)", r"[a-z0-9][a-z0-9.-]*")
PYTHON = parsed('MAJOR.MINOR, as "3.12"', MajorMinor.parse)
CUDA = parsed('MAJOR.MINOR, as "12.8"', MajorMinor.parse)
FRAMEWORK = parsed(
    'NAME==VERSION, as "torch==2.8.0"',
    Pin.parse,
    hint="the name is lower case with dashes, the version exact",
    same=_same_pin,
)
MODEL = _grammar("a model name ([a-z0-9][a-z0-9.-]*)", r"[a-z0-9][a-z0-9.-]*")
ARTIFACT = Rule(
    "HOST/REPOSITORY with a tag or digest",
    _image,
    ":latest and no tag at all say nothing about what is meant",
)
HUB_REPOSITORY = _grammar(
    'a repository of Hugging Face, as "ORG/NAME"',
    r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?",
    "write no address: HF_ENDPOINT says another one",
)
REVISION = _grammar("a commit, tag or branch", r"[A-Za-z0-9][A-Za-z0-9._/-]*")
GLOB = Rule(
    'a file name or glob, as "*.safetensors"',
    lambda text: None if _CONTROL.search(text) else _filled(text),
)
PLACE = _grammar('"layer" or "reference"', r"layer|reference")
PACKAGE_PIN = parsed("NAME==VERSION", Pin.parse, hint="write one exact version")
BASE_SOURCE = Rule(
    "an image with a tag or digest, or bootstrap:SUITE",
    _base_source,
    ":latest and no tag at all say nothing about what is meant",
)
SUITE = _grammar('a Debian suite, as "bookworm"', r"[a-z][a-z0-9-]*")
PYTHON_NAME = Rule(
    'MAJOR.MINOR in quotes, as [python."3.11"]',
    lambda text: text if PYTHON.parse(text) else None,
    "without quotes the dot makes two tables",
)
PYTHON_SOURCE = _grammar('"standalone" or "debian:SUITE"', r"standalone|debian:[a-z][a-z0-9-]*")
REQUIREMENT = Rule(
    'a requirement (PEP 508) without an address, as "tokenizers>=0.20"',
    _requirement,
    "a wheel of your own belongs on an index",
)
FRAMEWORK_NAME = Rule(
    "the name of a framework, lower case with dashes",
    lambda text: text if PACKAGE.fullmatch(text) else None,
    "write the version on the axis, not here",
)
INDEX = _grammar(
    'the name of a package index, as "pypi" or "pytorch/cu126"',
    r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*",
    "write no address: uv's settings of the machine say where an index of that name is",
)
COMPONENT = _grammar("the name of a CUDA component", r"[a-z0-9]+([-_][a-z0-9]+)*")
SECRET = Rule(
    "the id of a secret: lower-case words with dashes, none of the machine's own (ca, netrc, …)",
    lambda text: text if _SECRET.fullmatch(text) and not is_own(text) else None,
)
APP = _grammar("a name ([a-z0-9][a-z0-9-]*)", r"[a-z0-9][a-z0-9-]*")
FLAVOUR = _grammar('"runtime" or "devel"', r"runtime|devel")
# Words of a command may be there twice, and each is meant as it stands.
WORD = Rule("a word that is not empty", _filled, same=lambda _: object())
PORT = Rule('a port, as "8080" or "8080/udp"', _port)
WORKDIR = _grammar('a whole path, as "/opt/app"', r"(/[A-Za-z0-9._-]+)+")
PLACE_IN_IMAGE = Rule(
    'a folder of its own in the image, as "/opt/app" or "/srv/web"',
    _place_in_image,
    "other layers or the system own the folders at the top",
)
