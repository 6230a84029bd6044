"""The machine's settings that a build takes along, and leaves no trace of."""

import tomllib
from pathlib import Path

import pytest

from gpulayers import inputs
from gpulayers.errors import ProjectError, RemoteError
from gpulayers.inputs import read_pip_settings

OTHER = "https://pypi.example/simple"


def written(tmp_path: Path, **environment: str) -> dict[str, object]:
    """The uv.toml that is made under these variables, as a table."""
    prepared = inputs.prepare(
        tmp_path / "in", {}, {"HOME": str(tmp_path), **environment}, root=tmp_path
    )
    return tomllib.loads(prepared.uv_config.read_text(encoding="utf-8"))


def pip_conf(tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".config" / "pip"
    folder.mkdir(parents=True)
    (folder / "pip.conf").write_text(text, encoding="utf-8")


def uv_toml(tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".config" / "uv"
    folder.mkdir(parents=True)
    (folder / "uv.toml").write_text(text, encoding="utf-8")


def test_every_file_is_there_even_when_the_machine_says_nothing(tmp_path: Path) -> None:
    made = inputs.prepare(
        tmp_path / "in",
        {"debian12": "", "tools": ""},
        {"PIP_CONFIG_FILE": "/dev/null"},
        root=tmp_path,
    )
    names = sorted(path.name for path in made.folder.iterdir())
    assert names == [
        "apt-auth.conf",
        "apt-debian12.sources",
        "apt-tools.sources",
        "netrc",
        "pip.conf",
        "uv.toml",
    ]
    assert made.apt_sources("tools").read_text(encoding="utf-8") == ""
    assert (made.folder / "pip.conf").read_text(encoding="utf-8") == ""


def test_only_the_user_may_read_the_files(tmp_path: Path) -> None:
    made = inputs.prepare(tmp_path / "in", {"tools": ""}, {"PIP_INDEX_URL": OTHER}, root=tmp_path)
    assert {path.stat().st_mode & 0o777 for path in made.folder.iterdir()} == {0o600}


def test_files_that_say_the_same_are_left_alone(tmp_path: Path) -> None:
    made = inputs.prepare(tmp_path / "in", {}, {"PIP_INDEX_URL": OTHER}, root=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in made.folder.iterdir()}
    inputs.prepare(tmp_path / "in", {}, {"PIP_INDEX_URL": OTHER}, root=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in made.folder.iterdir()} == before


def test_the_variables_name_the_bundle_of_authorities_first(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("")
    environment = {"SSL_CERT_FILE": str(tmp_path / "gone"), "REQUESTS_CA_BUNDLE": str(bundle)}
    assert inputs.prepare(tmp_path / "in", {}, environment, root=tmp_path).ca == bundle


def test_without_them_the_bundle_is_where_the_distribution_puts_it(tmp_path: Path) -> None:
    assert inputs.prepare(tmp_path / "in", {}, {}, root=tmp_path).ca is None
    bundle = tmp_path / "etc" / "pki" / "tls" / "certs" / "ca-bundle.crt"
    bundle.parent.mkdir(parents=True)
    bundle.write_text("")
    assert inputs.prepare(tmp_path / "in", {}, {}, root=tmp_path).ca == bundle


def test_pips_user_file_is_read_and_its_variables_win(tmp_path: Path) -> None:
    pip_conf(tmp_path, f"[global]\nindex-url = {OTHER}\nextra-index-url = https://a.example/s\n")
    environment = {"HOME": str(tmp_path)}
    assert read_pip_settings(environment, root=tmp_path)["index-url"] == OTHER
    environment["PIP_INDEX_URL"] = "https://won.example/simple"
    assert read_pip_settings(environment, root=tmp_path) == {
        "index-url": "https://won.example/simple",
        "extra-index-url": "https://a.example/s",
    }


def test_values_over_several_lines_become_one_that_pip_reads_back(tmp_path: Path) -> None:
    pip_conf(tmp_path, "[global]\ntrusted-host =\n    a.example\n    b.example\n")
    made = inputs.prepare(tmp_path / "in", {}, {"HOME": str(tmp_path)}, root=tmp_path)
    text = (made.folder / "pip.conf").read_text(encoding="utf-8")
    assert text == "[global]\ntrusted-host = a.example b.example\n"


def test_settings_that_a_build_has_no_use_for_stay_here(tmp_path: Path) -> None:
    pip_conf(tmp_path, "[global]\ncert = /etc/own.pem\nindex-url = file:///srv/pypi\nproxy = p\n")
    assert read_pip_settings({"HOME": str(tmp_path)}, root=tmp_path) == {}


def test_pips_word_for_no_files_is_heard(tmp_path: Path) -> None:
    pip_conf(tmp_path, f"[global]\nindex-url = {OTHER}\n")
    environment = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}
    assert read_pip_settings(environment, root=tmp_path) == {}


@pytest.mark.parametrize("text", ["no section = 1\n", "[global\n", "[install]\nx = 1\n"])
def test_a_pip_file_that_pip_could_not_read_says_nothing(tmp_path: Path, text: str) -> None:
    pip_conf(tmp_path, text)
    assert read_pip_settings({"HOME": str(tmp_path)}, root=tmp_path) == {}


def test_pips_index_serves_uv_where_uv_has_none_of_its_own(tmp_path: Path) -> None:
    pip_conf(tmp_path, f"[global]\nindex-url = {OTHER}\nextra-index-url = https://a.example/s\n")
    assert written(tmp_path, UV_CONFIG_FILE=str(tmp_path / "gone")) == {
        "index": [{"url": "https://a.example/s"}, {"url": OTHER, "default": True}]
    }


def test_uvs_own_file_goes_before_pips(tmp_path: Path) -> None:
    pip_conf(tmp_path, f"[global]\nindex-url = {OTHER}\n")
    uv_toml(tmp_path, 'index-strategy = "first-index"\n')
    assert written(tmp_path) == {"index-strategy": "first-index"}


def test_the_file_that_the_variable_names_goes_before_the_users(tmp_path: Path) -> None:
    uv_toml(tmp_path, "offline = true\n")
    named = tmp_path / "named.toml"
    named.write_text("native-tls = true\n")
    assert written(tmp_path, UV_CONFIG_FILE=str(named)) == {"native-tls": True}


def test_indexes_in_uvs_variables_go_before_its_file(tmp_path: Path) -> None:
    uv_toml(tmp_path, f'[[index]]\nurl = "{OTHER}"\ndefault = true\n')
    found = written(
        tmp_path,
        UV_DEFAULT_INDEX="own=https://won.example/simple",
        UV_INDEX="nightly=https://n.example/s https://a.example/?x=/y",
        UV_EXTRA_INDEX_URL="file:///srv/more",
    )
    assert found["index"] == [
        {"name": "nightly", "url": "https://n.example/s"},
        {"url": "https://a.example/?x=/y"},
        {"name": "own", "url": "https://won.example/simple", "default": True},
    ]


def test_what_is_true_on_this_machine_only_is_taken_out_of_uvs_file(tmp_path: Path) -> None:
    text = (
        'cache-dir = "/var/cache/uv"\nfind-links = [\n  "/srv/wheels",\n  "b",\n]\n'
        f'[[index]]\nurl = "/srv/pypi"\n\n[[index]]\nname = "own"\nurl = "{OTHER}"\n\n'
        '[pip]\nfind-links = ["c"]\nstrict = true\n'
    )
    uv_toml(tmp_path, text)
    assert written(tmp_path) == {"index": [{"name": "own", "url": OTHER}], "pip": {"strict": True}}


def test_a_file_of_uv_that_is_no_toml_is_left_to_uv_to_refuse(tmp_path: Path) -> None:
    uv_toml(tmp_path, "index = [\n")
    made = inputs.prepare(tmp_path / "in", {}, {"HOME": str(tmp_path)}, root=tmp_path)
    assert made.uv_config.read_text(encoding="utf-8") == "index = [\n"


@pytest.mark.parametrize(
    ("source", "suite"),
    [
        ("bootstrap:bookworm", "bookworm"),
        ("docker.io/library/debian:12-slim", ""),
        ("127.0.0.1:5000/debian:12", ""),
    ],
)
def test_only_a_base_that_we_make_has_to_be_told_its_archives(source: str, suite: str) -> None:
    assert inputs.suite_of(source) == suite


def test_an_index_is_found_by_its_name_and_gets_a_file_of_its_own(tmp_path: Path) -> None:
    settings = tmp_path / "uv.toml"
    settings.write_text(
        f'[[index]]\nname = "pytorch-cu126"\nurl = "{OTHER}"\nexplicit = true\n', encoding="utf-8"
    )
    environment = {"UV_CONFIG_FILE": str(settings)}
    made = inputs.prepare(
        tmp_path / "in", {}, environment, indexes=["pytorch/cu126"], root=tmp_path
    )
    assert dict(made.indexes) == {"pytorch/cu126": OTHER}
    text = (made.folder / "uv-pytorch-cu126.toml").read_text(encoding="utf-8")
    assert text == f'[[index]]\nurl = "{OTHER}"\ndefault = true\n'


def test_a_variable_names_an_index_before_the_file_does(tmp_path: Path) -> None:
    settings = tmp_path / "uv.toml"
    settings.write_text('[[index]]\nname = "own"\nurl = "https://a.example"\n', encoding="utf-8")
    environment = {"UV_CONFIG_FILE": str(settings), "UV_INDEX": f"own={OTHER}"}
    made = inputs.prepare(tmp_path / "in", {}, environment, indexes=["own"], root=tmp_path)
    assert dict(made.indexes) == {"own": OTHER}


def test_a_login_of_a_named_index_is_not_in_the_folder_that_stays(tmp_path: Path) -> None:
    environment = {"UV_INDEX": "own=https://me:pa55word@a.example/simple"}
    made = inputs.prepare(tmp_path / "in", {}, environment, indexes=["own"], root=tmp_path)
    assert "pa55word" in (made.folder / "uv-own.toml").read_text(encoding="utf-8")
    assert "pa55word" not in (made.by_hand / "uv-own.toml").read_text(encoding="utf-8")


def test_all_indexes_that_nobody_named_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        inputs.prepare(tmp_path / "in", {}, {}, indexes=["b/x", "a"], root=tmp_path)
    assert 'an index named "a", an index named "b-x" (for a, b/x), found none' in str(caught.value)
    assert not (tmp_path / "in").exists()


MIRRORS = "own=https://me:pa55word@a.example/simple own=https://b.example/simple"


def test_of_several_addresses_of_an_index_the_first_that_answers_is_taken(tmp_path: Path) -> None:
    asked: list[str] = []
    said: list[str] = []

    def ask(address: str) -> str:
        asked.append(address)
        return "HTTP 503" if "a.example" in address else ""

    environment = {"UV_INDEX": f"{MIRRORS} own=https://c.example/simple other={OTHER}"}
    made = inputs.prepare(
        tmp_path / "in",
        {},
        environment,
        indexes=["own", "other"],
        root=tmp_path,
        ask=ask,
        say=said.append,
    )
    assert dict(made.indexes) == {"own": "https://b.example/simple", "other": OTHER}
    assert asked == ["https://me:pa55word@a.example/simple", "https://b.example/simple"]
    assert said == ["index own: passed over https://a.example/simple: HTTP 503"]
    table = tomllib.loads(made.uv_config.read_text(encoding="utf-8"))
    names = [entry["name"] for entry in table["index"]]
    assert names == ["own", "other"]


def test_when_no_address_answers_all_are_told_with_their_reasons(tmp_path: Path) -> None:
    environment = {"UV_INDEX": MIRRORS}
    with pytest.raises(RemoteError) as caught:
        inputs.prepare(
            tmp_path / "in",
            {},
            environment,
            indexes=["own"],
            root=tmp_path,
            ask=lambda _: "ConnectTimeout",
        )
    assert str(caught.value) == (
        "no address of these indexes answers:\n"
        "  index own: https://a.example/simple: ConnectTimeout\n"
        "  index own: https://b.example/simple: ConnectTimeout"
    )
