"""Packages of the OS's archive, by version and hash, asked inside the base that will take them."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpulayers.engine.buildx import Buildx, Secret
from gpulayers.errors import ProjectError, RemoteError
from gpulayers.lock.model import Package

ENTRY = re.compile(r"^(?P<name>\S+) (?P<version>\S+) (?P<sha256>[0-9a-f]{64})$")
UNKNOWN = ("Unable to locate package", "has no installation candidate")
SOURCES = "/etc/apt/sources.list.d/gpulayers.sources"
# apt names what it would fetch; its own index then gives the hash of each file.
QUESTION = r"""FROM base AS ask
USER 0:0
SHELL ["/bin/sh", "-c"]
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=apt-auth,required=true,target=/etc/apt/auth.conf.d/gpulayers.conf \
    --mount=type=secret,id=apt,required=true,target={target} <<'ASK'
set -eu
# The base's own words on libraries and settings hold in its containers, not here.
unset LD_LIBRARY_PATH LD_PRELOAD APT_CONFIG
apt-get -qq update
mkdir /answer
touch /answer/packages
{select} >/tmp/wanted
while read -r name version; do
  apt-cache show "$name=$version" | awk -v n="$name" -v v="$version" \
    '/^SHA256:/ {{ print n, v, $2; exit }}' >>/answer/packages
  grep -q "^$name " /answer/packages || {{ echo "no SHA256 for $name $version" >&2; exit 1; }}
done </tmp/wanted
ASK
FROM scratch
COPY --from=ask /answer /
"""
# Not in a pipe, where the shell would not see that a package is unknown.
CLOSURE = (
    "apt-get -qq --simulate --no-install-recommends install {names} >/tmp/plan\n"
    "sed -n 's/^Inst \\([^ ]*\\)\\( \\[[^]]*\\]\\)* (\\([^ ]*\\) .*/\\1 \\3/p' /tmp/plan"
)
ALONE = (
    'for n in {names}; do apt-cache show --no-all-versions "$n"'
    """ | awk -v n="$n" '/^Version:/ {{ print n, $2; exit }}'; done"""
)


def ask(
    buildx: Buildx,
    base: str,
    names: Sequence[str],
    *,
    secrets: Sequence[Secret],
    with_needs: bool,
    platform: str,
) -> tuple[Package, ...]:
    """What apt would take for these names on that base, sorted by name.

    Shape: ``with_needs`` adds the dependencies that the base lacks; ``base`` is an image reference.
    Raises: ProjectError: the archive has no such package; RemoteError: it does not answer (apt's
        own words follow).
    """
    if not names:
        return ()
    select = (CLOSURE if with_needs else ALONE).format(names=" ".join(names))
    with tempfile.TemporaryDirectory(prefix="gpulayers-") as name:
        folder = Path(name)
        (folder / "in").mkdir()
        text = (
            QUESTION.replace("{select}", select)
            .replace("{target}", SOURCES)
            .replace("{{", "{")
            .replace("}}", "}")
        )
        (folder / "in" / "Dockerfile").write_text(text, encoding="utf-8")
        outcome = buildx.build(
            folder / "in",
            output=f"type=local,dest={folder / 'out'}",
            contexts={"base": f"docker-image://{base}"},
            secrets=secrets,
            platform=platform,
            no_cache=True,
            timeout_s=600,
        )
        if outcome.failure is not None:
            raise _refusal(outcome.failure.lines[-8:], names=names, base=base)
        answer = (folder / "out" / "packages").read_text(encoding="utf-8")
    return _parse(answer, names=names if not with_needs else (), base=base)


def _refusal(
    lines: Sequence[str], *, names: Sequence[str], base: str
) -> ProjectError | RemoteError:
    said = "\n".join(f"  {line}" for line in lines)
    msg = f"the OS archive of {base} did not give {', '.join(names)}:\n{said}"
    if any(word in said for word in UNKNOWN):
        return ProjectError(msg, hint="look for the package's name in that release")
    return RemoteError(msg, hint="look at the network and at the machine's apt sources")


def _parse(answer: str, *, names: Sequence[str], base: str) -> tuple[Package, ...]:
    found = [
        Package(name=match["name"], version=match["version"], sha256=match["sha256"])
        for line in answer.splitlines()
        if (match := ENTRY.match(line)) is not None
    ]
    missing = sorted(set(names) - {package.name for package in found})
    if missing:
        msg = f"the OS archive of {base} has no package {', '.join(missing)}"
        raise ProjectError(msg, hint="look for the package's name in that release")
    return tuple(sorted(found))
