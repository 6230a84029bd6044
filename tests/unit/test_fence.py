"""The fence around unit tests stops what it should, and nothing else."""

import http.server
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest


def test_a_program_that_is_started_is_stopped_with_what_to_use_instead() -> None:
    with pytest.raises(Exception, match=r"started \['true'\].*fake.*tests/engine.*own_processes"):
        subprocess.run(["true"], check=False)


def test_a_test_that_asks_may_start_processes(own_processes: None) -> None:
    assert own_processes is None
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0


def test_the_home_folder_is_stopped() -> None:
    with pytest.raises(Exception, match="home folder: hand in a folder"):
        Path.home()


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1"])
def test_a_connection_is_stopped(host: str) -> None:
    with socket.socket() as client:
        with pytest.raises(Exception, match=rf"connected to '{host}'.*fixture loopback"):
            client.connect((host, 9))
        with pytest.raises(Exception, match=rf"connected to '{host}'"):
            client.connect_ex((host, 9))


def test_looking_up_a_name_is_stopped() -> None:
    with pytest.raises(Exception, match=r"connected to 'registry\.example'"):
        socket.create_connection(("registry.example", 443))


def test_a_socket_file_is_stopped(tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_UNIX) as client,
        pytest.raises(Exception, match=r"docker\.sock"),
    ):
        client.connect(str(tmp_path / "docker.sock"))


def test_a_test_that_asks_may_talk_to_its_own_server(loopback: None) -> None:
    assert loopback is None
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(urllib.error.HTTPError, match="501"):
            urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/")


def test_even_then_the_world_beyond_is_stopped(loopback: None) -> None:
    assert loopback is None
    with socket.socket() as client, pytest.raises(Exception, match=r"192\.0\.2\.1"):
        client.connect(("192.0.2.1", 9))
