# Made by gpulayers from matrix.toml, matrix.lock.toml and layers/. Do not edit.
# Build by hand: docker buildx bake --file docker-bake.json cupy13-6-0-cu126-debian12

# The base's files alone: what it says in its environment (indexes, folders of libraries, a user, a
# shell) holds in no step.
FROM scratch AS tools
COPY --from=tools-base / /
ENV NETRC=/run/netrc
# python3-pip brings uv in, patchelf lets a copied Python find the libraries beside it.
RUN --mount=type=secret,id=ca,required=false,target=/run/ca.crt \
    --mount=type=secret,id=apt-tools,required=true,target=/etc/apt/sources.list.d/gpulayers.sources \
    --mount=type=secret,id=apt-auth,required=true,target=/etc/apt/auth.conf.d/gpulayers.conf <<'STEP'
set -eu
# Not at the CA bundle's own place: a package that is installed here writes that file.
if [ -s /run/ca.crt ]; then options="-o Acquire::https::CAInfo=/run/ca.crt"; else options=; fi
apt-get -qq $options update
DEBIAN_FRONTEND=noninteractive apt-get -qqy $options --no-install-recommends install patchelf=1.0-tools python3-pip=1.0-tools >/dev/null
rm -rf /var/lib/apt/lists/*
STEP
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip-config,required=true,target=/etc/pip.conf \
    --mount=type=secret,id=netrc,required=true,target=/run/netrc \
    pip install -q --no-deps --no-cache-dir --break-system-packages --root-user-action=ignore \
    --require-hashes -r /dev/stdin <<'REQUIREMENTS'
uv==0.9.0 --hash=sha256:623afd77cf93478d1a8b0f22e26d14a9334c19b3e504bc86ce48f98a94051c89
REQUIREMENTS
# For a step that stands on a base, not on tools: its environment is forgotten, but for proxies.
COPY <<'SCRIPT' /usr/local/bin/forget-environment
for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
  case $name in
    *_proxy | *_PROXY) ;;
    *) unset "$name" ;;
  esac
done
export HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
SCRIPT
# The same times, owners and modes on every machine make the same layer. A secret that a step was
# given must not have become a part of it.
COPY --chmod=755 <<'SCRIPT' /usr/local/bin/finish
#!/bin/sh
set -eu
mkdir -p /out
for secret in /run/secrets/*; do
  [ -f "$secret" ] || continue
  [ -s "$secret" ] || { echo "finish: the secret ${secret##*/} is empty" >&2; exit 1; }
  found=$(sed '/^.\{0,7\}$/d; /^-----/d' "$secret" | grep -rlF -f - /out || true)
  [ -z "$found" ] || { echo "finish: the secret ${secret##*/} stands in" $found >&2; exit 1; }
done
if [ "${1:-}" != --keep-modes ]; then
  chown -hR 0:0 /out
  chmod -R u=rwX,go=rX /out
fi
find /out -exec touch -hd @315532800 {} +
SCRIPT
# Each line of the input: package, version, sha256. Only what has that hash is left in the folder.
COPY --chmod=755 <<'SCRIPT' /usr/local/bin/fetch-packages
#!/bin/sh
set -eu
. "${0%/*}/forget-environment"
folder=$1
mkdir -p "$folder"
cd "$folder"
cat >/tmp/wanted
apt-get -qq update
while read -r name version sha256; do
  apt-get -qq -o APT::Sandbox::User=root download "$name=$version" || {
    echo "fetch-packages: $name $version is no longer in the archive; run: gpulayers lock" >&2
    exit 1
  }
  file=$(ls -- "${name}"_*.deb)
  echo "$sha256  $file" | sha256sum --check --status || {
    echo "fetch-packages: $name $version: wanted sha256 $sha256, found $(sha256sum "$file")" >&2
    exit 1
  }
done </tmp/wanted
rm -rf /var/lib/apt/lists/* /tmp/wanted
SCRIPT
# Installs hash-checked wheels alone into the environment and moves what they brought to /out.
COPY --chmod=755 <<'SCRIPT' /usr/local/bin/install-wheels
#!/bin/sh
set -eu
libraries=$1
cat >/tmp/requirements.txt
find /opt/venv -print >/tmp/before
export UV_CACHE_DIR=/tmp/uv-cache UV_LINK_MODE=hardlink UV_HTTP_TIMEOUT=300 UV_NO_PROGRESS=1
export PYC_INVALIDATION_MODE=UNCHECKED_HASH UV_SYSTEM_CERTS=1 UV_PYTHON_DOWNLOADS=never
uv pip install -q --python /opt/venv/bin/python --no-deps --require-hashes --only-binary :all: \
  --compile-bytecode -r /tmp/requirements.txt
rm -rf /tmp/uv-cache
python3 - "$libraries" <<'PYTHON'
import os, pathlib, sys
before = set(pathlib.Path("/tmp/before").read_text().splitlines())
links = pathlib.Path("/out" + sys.argv[1])
for folder, dirs, files in os.walk("/opt/venv"):
    for name in files + [d for d in dirs if os.path.islink(os.path.join(folder, d))]:
        path = os.path.join(folder, name)
        if path in before:
            continue
        target = pathlib.Path("/out" + path)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(path, target)
        # The loader's default folder, so that dlopen by name works without LD_LIBRARY_PATH or ldconfig.
        if ".so" in name and "/site-packages/nvidia/" in path and folder.endswith("/lib"):
            links.mkdir(parents=True, exist_ok=True)
            (links / name).symlink_to(path)
PYTHON
/usr/local/bin/finish
SCRIPT

FROM base AS packages-debian12-00baebd3-fetch
USER 0:0
SHELL ["/bin/sh", "-c"]
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=apt-debian12,required=true,target=/etc/apt/sources.list.d/gpulayers.sources \
    --mount=type=secret,id=apt-auth,required=true,target=/etc/apt/auth.conf.d/gpulayers.conf \
    --mount=type=bind,from=tools,source=/usr/local/bin,target=/run/tools \
    /run/tools/fetch-packages /packages <<'PACKAGES'
ca-certificates 1.0-debian12 d59dc9ed6a33d1d5c4d4ef448b17466821ae236fe420c98d0215f6ce249a25eb
PACKAGES

# dpkg's database is one file, so the packages of all layers stand in this one step.
FROM base AS packages-debian12-00baebd3
USER 0:0
SHELL ["/bin/sh", "-c"]
RUN --mount=type=bind,from=packages-debian12-00baebd3-fetch,source=/packages,target=/run/packages \
    --mount=type=bind,from=tools,source=/usr/local/bin,target=/run/tools <<'STEP'
set -eu
. /run/tools/forget-environment
touch /tmp/before
DEBIAN_FRONTEND=noninteractive dpkg --install /run/packages/*.deb >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log >&2; exit 1; }
mkdir /out
# What the packages changed, by the time of the inode's change: dpkg keeps the files' own old times.
find / -xdev \( -path /out -o -path /tmp -o -path /run -o -path /proc -o -path /sys -o -path /dev \
  -o -path /var/log -o -path /var/cache -o -path /var/lib/apt/lists -o -path /etc/resolv.conf \
  -o -path /etc/hosts -o -path /etc/hostname -o -name '*-old' \) -prune \
  -o -cnewer /tmp/before ! -path / -print0 | sort -z |
  tar --create --null --no-recursion --files-from=- --absolute-names --file=- |
  tar --extract --directory=/out --preserve-permissions --strip-components=0 --file=- --transform='s,^/,,'
/run/tools/finish --keep-modes
STEP

FROM tools AS init-3d7666bc
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=apt-tools,required=true,target=/etc/apt/sources.list.d/gpulayers.sources \
    --mount=type=secret,id=apt-auth,required=true,target=/etc/apt/auth.conf.d/gpulayers.conf <<'STEP'
set -eu
fetch-packages /packages <<'PACKAGES'
tini 1.0-init 77608a4992db6f4db89dc0fa3741ace62033f70f9c204f2d626bc16abf4e39c4
PACKAGES
dpkg --fsys-tarfile /packages/tini_*.deb | tar --extract --directory=/packages ./usr/bin/tini-static ./usr/share/doc/tini/copyright
install -D /packages/usr/bin/tini-static /out/usr/bin/tini
install -D /packages/usr/share/doc/tini/copyright /out/usr/share/doc/tini/copyright
# Any user of any platform may own the process: the home is everybody's, as /tmp is.
mkdir -p /out/home/app/.cache
finish
chmod 1777 /out/home/app /out/home/app/.cache
STEP

FROM tools AS python-3-11-c3770196
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=apt-tools,required=true,target=/etc/apt/sources.list.d/gpulayers.sources \
    --mount=type=secret,id=apt-auth,required=true,target=/etc/apt/auth.conf.d/gpulayers.conf <<'STEP'
set -eu
fetch-packages /packages <<'PACKAGES'
libbz2-1.0 1.0-python a68d5cb037e6a391cd76f3cc9138a8170bd6a006c93bb8cad2f3266cdc3cf93d
libcrypt1 1.0-python 2bb9e2a74e38a69286513421f0a87a83c97fa65303dbc08a6fb0e8970af88378
libexpat1 1.0-python 1f3457a3ddb58073c1cb8903bf5eaa9ec66ba7338883f1b2ad42125fb95e50ec
libffi8 1.0-python d912bb19a793a4ce88ad6fbf81c94aa14c0184b5180195a284821228e6a961ce
liblzma5 1.0-python 8c251468423a5ca967c26ebf9b636004594b6942e6c17e38acb9760512c69f36
libncursesw6 1.0-python efd152b2891c2c6e071e3f6e6476b56eb8e28c162e4d6f3ebbaeb3968de49440
libpython3.11-minimal 1.0-python 4c1ad5ff4842d4d2396620c14a3934a3ea3e64b0bb51cc2ac8ef03c56d6d9d89
libpython3.11-stdlib 1.0-python a1dd17ae874171ff5e9ec18843df82c92f43d2b409085f9ec826d1333d8299f8
libreadline8 1.0-python 62f084eefb8efb7d83a4ba24c08aeddd9b1497223d76209c1ca3c8076336eb4e
libsqlite3-0 1.0-python 6e468b83fa0bc3bf3c12df10599b55f2a32bd8c87c5d6fc4ea57ed0fe45ab564
libssl3 1.0-python a35c7332378ac9e279b9c0066530da8f3a47ab7f67882ec3bdc8f5441823f4cf
libtinfo6 1.0-python df6f3ca69d3b1b494ce36231576bb99b127dc0f77138507b89959e624d461db8
libuuid1 1.0-python 8066476db27d9f6c62615a7d610b5709c35b968d6213246ebe296e77107ec0e0
python3.11-minimal 1.0-python e2ba31bc03c81be6b7e3cd44c56a9983004f1cd487817ef3573b11b5d6d3b1f9
zlib1g 1.0-python 7b9e8c5fc61e388a125ffe5de92d3d1de28273cb5b64818864aed3aef7e9445e
PACKAGES
mkdir -p /root-of-packages /out/opt/python/lib /out/opt/python/bin
for file in /packages/*.deb; do dpkg --extract "$file" /root-of-packages; done
cd /root-of-packages
cp -a usr/lib/python3.11 /out/opt/python/lib/
cp -a usr/bin/python3.11 /out/opt/python/bin/
# The interpreter's own libraries travel with it: another OS has other ones, or none.
find usr/lib/x86_64-linux-gnu lib/x86_64-linux-gnu -name '*.so*' 2>/dev/null |
  while read -r file; do cp -a "$file" /out/opt/python/lib/; done
mkdir -p /out/usr/share/doc
cp -a usr/share/doc/python3.11-minimal /out/usr/share/doc/ || true
cd /out/opt/python
# Debian's copy of pip's and the test suite's needs, and modules whose libraries are left out.
rm -rf lib/python3.11/test lib/python3.11/lib-dynload/_dbm.* lib/python3.11/lib-dynload/nis.*
# Debian moves site-packages for its own packages; a venv is all that is used here.
find lib/python3.11 -name __pycache__ -prune -exec rm -rf {} +
patchelf --force-rpath --set-rpath '$ORIGIN/../lib' bin/python3.11
for file in lib/python3.11/lib-dynload/*.so; do patchelf --force-rpath --set-rpath '$ORIGIN/../..' "$file"; done
for file in lib/*.so.*; do [ -L "$file" ] || patchelf --force-rpath --set-rpath '$ORIGIN' "$file"; done
ln -s python3.11 bin/python3
ln -s python3 bin/python
STEP
RUN <<'STEP'
set -eu
mkdir -p /opt && ln -s /out/opt/python /opt/python
PYC_INVALIDATION_MODE=UNCHECKED_HASH SOURCE_DATE_EPOCH=315532800 \
  /opt/python/bin/python3.11 -m compileall -q -s /out --invalidation-mode unchecked-hash /out/opt/python/lib/python3.11
mkdir -p /out/opt/venv/bin /out/opt/venv/include /out/opt/venv/lib/python3.11/site-packages
ln -s lib /out/opt/venv/lib64
for name in python python3 python3.11; do ln -s /opt/python/bin/python3.11 /out/opt/venv/bin/$name; done
printf 'home = /opt/python/bin\ninclude-system-site-packages = false\nversion = 3.11\n' >/out/opt/venv/pyvenv.cfg
finish
STEP

FROM tools AS python-3-11-c3770196-venv
COPY --link --from=python-3-11-c3770196 /out/ /

FROM python-3-11-c3770196-venv AS cuda-wheels-ac717357
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=uv-config,required=true,target=/etc/uv/uv.toml \
    --mount=type=secret,id=netrc,required=true,target=/run/netrc \
    install-wheels /usr/lib/x86_64-linux-gnu <<'WHEELS'
cuda-toolkit==12.6 --hash=sha256:ec02dc72af9403883f55cb8d1a95bf74cebfe0448b02b8f45598f6bc67ab84e1
nvidia-cudart-cu12==12.6.7 --hash=sha256:ec0d354b48e50ee43be8c18ccc2fbf46f1f54d4e5cef55e0ec4035509f05338a
nvidia-curand-cu12==12.6.7 --hash=sha256:39b675fc4a7aea6bc9ce334622005167d28d410fbc6aa3e6fa1154223ed4e738
nvidia-nvrtc-cu12==12.6.7 --hash=sha256:d7115fc17fd1e38a3ce825d9e0f6ceffa3808dce70ba16825ade439ff981f8f0
WHEELS

FROM python-3-11-c3770196-venv AS nvidia-cublas-cu12-12-6-7-93fdd8ee
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=uv-config,required=true,target=/etc/uv/uv.toml \
    --mount=type=secret,id=netrc,required=true,target=/run/netrc \
    install-wheels /usr/lib/x86_64-linux-gnu <<'WHEELS'
nvidia-cublas-cu12==12.6.7 --hash=sha256:85b0c8bb31d88419ecc9980d8efeb90da3044f34ea75c2392c003541b928c34b
WHEELS

FROM python-3-11-c3770196-venv AS nvidia-cufft-cu12-12-6-7-ba950801
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=uv-config,required=true,target=/etc/uv/uv.toml \
    --mount=type=secret,id=netrc,required=true,target=/run/netrc \
    install-wheels /usr/lib/x86_64-linux-gnu <<'WHEELS'
nvidia-cufft-cu12==12.6.7 --hash=sha256:b1a7db6f48ac0640b3442d296dd45382636b4a64f8eb6979f1d24d01415e9746
WHEELS

FROM python-3-11-c3770196-venv AS cupy-wheels-574b63d5
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=uv-config,required=true,target=/etc/uv/uv.toml \
    --mount=type=secret,id=netrc,required=true,target=/run/netrc \
    install-wheels /usr/lib/x86_64-linux-gnu <<'WHEELS'
numpy==2.1.0 --hash=sha256:ef8965e15d9cd9685191c2911c6cfece350fec44a0fe78aa192fdc847d3bdaeb
WHEELS

FROM python-3-11-c3770196-venv AS cupy-cuda12x-13-6-0-268c19c0
RUN --mount=type=secret,id=ca,required=false,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=uv-config,required=true,target=/etc/uv/uv.toml \
    --mount=type=secret,id=netrc,required=true,target=/run/netrc \
    install-wheels /usr/lib/x86_64-linux-gnu <<'WHEELS'
cupy-cuda12x==13.6.0 --hash=sha256:df16c23ea528401a17df559529b9d85b4e0279a11a12a113889435ce9c2e8c17
WHEELS

FROM base AS final
COPY --link --from=packages-debian12-00baebd3 /out/ /
COPY --link --from=init-3d7666bc /out/ /
COPY --link --from=python-3-11-c3770196 /out/ /
COPY --link --from=cuda-wheels-ac717357 /out/ /
COPY --link --from=nvidia-cublas-cu12-12-6-7-93fdd8ee /out/ /
COPY --link --from=nvidia-cufft-cu12-12-6-7-ba950801 /out/ /
COPY --link --from=cupy-wheels-574b63d5 /out/ /
COPY --link --from=cupy-cuda12x-13-6-0-268c19c0 /out/ /
ENV CUDA_CACHE_PATH="/home/app/.cache/nv" \
    CUPY_CACHE_DIR="/home/app/.cache/cupy" \
    HOME="/home/app" \
    NVIDIA_DRIVER_CAPABILITIES="compute,utility" \
    NVIDIA_REQUIRE_CUDA="driver>=525.60.13,arch<10.0" \
    NVIDIA_VISIBLE_DEVICES="all" \
    PATH="/opt/venv/bin:/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    PYTHONDONTWRITEBYTECODE="1" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    XDG_CACHE_HOME="/home/app/.cache"
LABEL io.gpulayers.cuda="12.6" \
    io.gpulayers.driver.minimum="525.60.13" \
    io.gpulayers.driver.native="560.28.03" \
    io.gpulayers.framework.name="cupy" \
    io.gpulayers.framework.version="13.6.0" \
    io.gpulayers.key="9679e776357fb8cb1f67d3b9649d18764e00bc3f9379a26a6d01a788ca3f9b38" \
    io.gpulayers.model="none" \
    io.gpulayers.os="debian12" \
    io.gpulayers.python="3.11" \
    io.gpulayers.wheel.cuda-toolkit="12.6" \
    io.gpulayers.wheel.nvidia-cublas-cu12="12.6.7" \
    io.gpulayers.wheel.nvidia-cudart-cu12="12.6.7" \
    io.gpulayers.wheel.nvidia-cufft-cu12="12.6.7" \
    io.gpulayers.wheel.nvidia-curand-cu12="12.6.7" \
    io.gpulayers.wheel.nvidia-nvrtc-cu12="12.6.7" \
    org.opencontainers.image.base.digest="sha256:053d74f918ae1c88c395ed0a8334e53c7a35657fe21a6ca5052ea5f4933a4b78" \
    org.opencontainers.image.base.name="bootstrap:bookworm" \
    org.opencontainers.image.title="gpu" \
    org.opencontainers.image.version="cupy13.6.0-cu126-debian12"
USER 10001:0
ENTRYPOINT ["/usr/bin/tini", "-g", "--"]
CMD ["python"]

FROM final AS identity
USER 0:0
RUN /opt/venv/bin/python -B - '{"cuda": "12.6", "distribution": "cupy-cuda12x", "duplicate_mb": 0, "machine": "x86_64", "module": "cupy", "python": "3.11", "version": "13.6.0"}' <<'IDENTITY'
"""Is what is installed what the name says? Runs inside the image, before it is pushed."""

import ctypes
import importlib
import importlib.metadata
import json
import platform
import sys
from types import ModuleType

expected = json.loads(sys.argv[1])
wrong = []


def compare(what: str, found: str, wanted: str) -> None:
    """Note a difference."""
    if found != wanted:
        wrong.append(f"identity: {what}: the name says {wanted}, installed is {found}")


def cuda_runtime(major: str) -> str:
    """What the runtime library says of itself; needs no GPU."""
    try:
        library = ctypes.CDLL(f"libcudart.so.{major}")
    except OSError as error:
        return f"none ({error})"
    version = ctypes.c_int()
    library.cudaRuntimeGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def framework_version(distribution: str) -> str:
    """The installed version, or ``none``."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def built_for(module: ModuleType) -> str:
    """The CUDA major that the framework says it was built for, or "" where it does not say."""
    name = module.__name__
    if name in {"torch", "vllm"}:
        torch = importlib.import_module("torch")
        return (torch.version.cuda or "none").split(".")[0]
    if name == "jax":
        majors = (major for major in range(12, 20) if has(f"jax-cuda{major}-plugin"))
        return "+".join(map(str, majors)) or "none"
    if name == "tensorflow":
        return str(module.sysconfig.get_build_info().get("cuda_version", "none")).split(".")[0]
    if name == "cupy":
        return str(module.cuda.runtime.runtimeGetVersion() // 1000)
    if name == "onnxruntime":
        from onnxruntime.capi import build_and_package_info as info

        return (getattr(info, "cuda_version", "") or "none").split(".")[0]
    return ""


def has(distribution: str) -> bool:
    """Whether a distribution is installed."""
    return framework_version(distribution) != "none"


compare("Python", f"{sys.version_info[0]}.{sys.version_info[1]}", expected["python"])
compare("architecture", platform.machine(), expected["machine"])
compare("CUDA runtime", cuda_runtime(expected["cuda"].split(".")[0]), expected["cuda"])
name = expected["distribution"]
compare(name, framework_version(name), expected["version"])
try:
    module = importlib.import_module(expected["module"])
except Exception as error:
    wrong.append(f"identity: import {expected['module']}: {type(error).__name__}: {error}")
else:
    said = built_for(module)
    if said:
        compare(f"CUDA of {name}", said, expected["cuda"].split(".")[0])
for line in wrong:
    print(line, file=sys.stderr)
sys.exit(1 if wrong else 0)
IDENTITY
RUN /opt/venv/bin/python -B - '{"cuda": "12.6", "distribution": "cupy-cuda12x", "duplicate_mb": 0, "machine": "x86_64", "module": "cupy", "python": "3.11", "version": "13.6.0"}' <<'DUPLICATES'
"""Does big content stand twice in the image? Runs inside it, before it is pushed.

Files of more than 1 MB with the same content at several paths, and libraries of CUDA that stand
both in the base and in a package, with the copy that the loader takes.
"""

import ctypes
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

MB = 10**6
# Not of the image: the kernel's, and what the build mounts.
ELSEWHERE = ("/proc", "/sys", "/dev", "/run")
VENV = "/opt/venv/"
CUDA = re.compile(
    r"lib(cudart|cublas|cublasLt|cufft|curand|cusolver|cusparse|cudnn|nccl|nvrtc|nvJitLink)\.so\.\d+"
)

allowed_mb = json.loads(sys.argv[1])["duplicate_mb"]


def files() -> Iterator[tuple[Path, os.stat_result]]:
    """Every regular file of the image, once: links to it are no second copy."""
    seen = set()
    for folder, folders, names in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if f"/{name}" not in ELSEWHERE]
        for name in names:
            path = Path(folder, name)
            try:
                found = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                yield path, found


def content(path: Path) -> str:
    """A hash of all bytes of a file."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(MB):
            total.update(piece)
    return total.hexdigest()


def taken(name: str) -> str:
    """The file that the loader opens for a library's name."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return "none of them"
    with Path("/proc/self/maps").open(encoding="utf-8") as maps:
        paths = [line.split(maxsplit=5)[5].rstrip("\n") for line in maps if ".so" in line]
    return next((path for path in paths if Path(path).name.startswith(name)), "another")


by_size: dict[int, list[Path]] = {}
libraries: dict[str, list[str]] = {}
for path, found in files():
    if found.st_size > MB:
        by_size.setdefault(found.st_size, []).append(path)
    library = CUDA.match(path.name)
    if library is not None:
        libraries.setdefault(library[0], []).append(str(path))
wrong = []
cost = 0
for size, paths in sorted(by_size.items(), reverse=True):
    same: dict[str, list[str]] = {}
    for path in paths if len(paths) > 1 else ():
        same.setdefault(content(path), []).append(str(path))
    for twins in same.values():
        if len(twins) > 1:
            cost += size * (len(twins) - 1)
            wrong.append(f"{size / MB:.1f} MB stand {len(twins)} times: {', '.join(sorted(twins))}")
if cost <= allowed_mb * MB:
    wrong = []
for name, paths in sorted(libraries.items()):
    own = [path for path in paths if path.startswith(VENV)]
    if own and len(own) < len(paths):
        others = ", ".join(sorted(set(paths) - set(own)))
        wrong.append(
            f"{name} stands in the base ({others}) and in a package ({', '.join(sorted(own))}): "
            f"the loader takes {taken(name)}"
        )
for line in wrong:
    print(f"duplicates: {line}", file=sys.stderr)
if wrong:
    print(
        f"duplicates: {cost / MB:.1f} MB in all, {allowed_mb} MB are allowed "
        "([budget] duplicate-mb)",
        file=sys.stderr,
    )
sys.exit(1 if wrong else 0)
DUPLICATES
RUN mkdir -p /out/usr/share/gpulayers && touch /out/usr/share/gpulayers/identity-checked && \
    find /out -exec touch -hd @315532800 {} +

FROM final AS image
COPY --link --from=identity /out/ /
