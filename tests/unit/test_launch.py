"""How `docker run` is asked for a person."""

import pytest

from gpulayers import launch
from gpulayers.engine.attached import HANDED
from gpulayers.engine.docker import EngineInfo
from gpulayers.errors import ProjectError
from gpulayers.launch import Wish

IMAGE = f"r.example/a@sha256:{'a' * 64}"


def info(*devices: str, runtimes: tuple[str, ...] = ("runc",)) -> EngineInfo:
    return EngineInfo(
        version="28.5.2", runtimes=frozenset(runtimes), cdi_devices=devices, cdi_spec_dirs=()
    )


@pytest.mark.parametrize(
    ("engine", "wanted"),
    [
        (info("nvidia.com/gpu=0", "nvidia.com/gpu=all"), ("--device=nvidia.com/gpu=all",)),
        (info(runtimes=("runc", "nvidia")), ("--gpus=all",)),
        (info("other.example/gpu=0"), ()),
        (info(), ()),
    ],
    ids=["cdi", "runtime", "another kind", "nothing"],
)
def test_a_gpu_is_asked_for_where_the_engine_can_give_one(
    engine: EngineInfo, wanted: tuple[str, ...]
) -> None:
    assert launch.gpus(engine) == wanted


def test_a_missing_gpu_names_what_was_wanted_and_found() -> None:
    error = launch.no_gpu(info())
    assert "wanted a CDI device nvidia.com/gpu or the runtime nvidia" in str(error)
    assert "0 CDI devices and the runtimes runc" in str(error)
    assert error.exit_code == 15


def test_plain_wishes_ask_for_little() -> None:
    argv = launch.arguments(IMAGE, Wish(), gpu=(), interactive=False)
    assert argv == ("docker", "run", "--rm", "--interactive", "--shm-size=1g", IMAGE)


def test_every_wish_is_an_option_before_the_image_and_the_command_after_it() -> None:
    wish = Wish(
        user="12345:0",
        network="none",
        workdir="/w",
        entrypoint="sh",
        shm_size="2g",
        volumes=("/a:/b:ro",),
        ports=("127.0.0.1:80:80",),
        env={"HF_TOKEN": "hush"},
        command=("python", "--version"),
    )
    argv = launch.arguments(IMAGE, wish, gpu=("--gpus=all",), interactive=True)
    assert argv[: argv.index(IMAGE)] == (
        *("docker", "run", "--rm", "--interactive", "--tty", "--user=12345:0", "--network=none"),
        *("--workdir=/w", "--entrypoint=sh", "--shm-size=2g", f"--env-file={HANDED}"),
        *("--volume=/a:/b:ro", "--publish=127.0.0.1:80:80", "--gpus=all"),
    )
    assert argv[argv.index(IMAGE) + 1 :] == ("python", "--version")
    assert "hush" not in " ".join(argv)
    assert launch.handed(wish) == "HF_TOKEN=hush\n"


def test_a_shell_keeps_everything_but_the_command() -> None:
    wish = launch.shell(Wish(user="1:1", env={"A": "1"}, command=("python",)))
    assert (wish.user, wish.env, wish.entrypoint) == ("1:1", {"A": "1"}, "sh")
    assert wish.command == ("-c", launch.SHELL)


def test_a_variable_is_set_or_handed_on() -> None:
    found = launch.parse_env(("A=1=2", "B", "C="), {"B": "ours", "A": "other"})
    assert found == {"A": "1=2", "B": "ours", "C": ""}


@pytest.mark.parametrize(
    ("word", "said"),
    [("B", "found none"), ("1x=hush", "another name"), ("A=hush\nhush", "found several")],
)
def test_a_wrong_variable_is_refused_without_its_value(word: str, said: str) -> None:
    with pytest.raises(ProjectError, match=said) as caught:
        launch.parse_env((word,), {})
    assert "hush" not in f"{caught.value} {caught.value.hint}"
