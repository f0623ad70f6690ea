"""Ports that tests give to their servers."""

import socket
import subprocess
import sys
from pathlib import Path

import ports
import pytest

GIVEN = "import ports; print(*[ports.free_port() for _ in range(9)], flush=True); input()"


@pytest.fixture
def nineteen(monkeypatch):
    """Give away ports of a range of nineteen only."""
    monkeypatch.setattr(ports, "_candidates", lambda: list(range(19000, 19019)))


def test_no_port_is_one_of_an_outgoing_connection():
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if (first, last) != (ports.FIRST, 65535):
        assert not set(ports._candidates()) & set(range(first, last + 1))
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getsockname()[1] not in ports._candidates()


def test_two_processes_get_different_ports():
    here = "import ports; ports._candidates = lambda: list(range(19100, 19118));" + GIVEN
    with subprocess.Popen(
        [sys.executable, "-c", here], cwd=Path(ports.__file__).parent,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as one, subprocess.Popen(
        [sys.executable, "-c", here], cwd=Path(ports.__file__).parent,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        found = [one.stdout.readline().split(), other.stdout.readline().split()]
        for process in (one, other):
            process.communicate("\n")
    assert sorted(found[0] + found[1]) == [str(port) for port in range(19100, 19118)]


def test_a_port_is_given_once_and_not_while_a_server_has_it(nineteen):
    with socket.create_server(("127.0.0.1", 19007)):
        given = {ports.free_port() for _ in range(18)}
        with pytest.raises(RuntimeError):
            ports.free_port()
    assert given == set(range(19000, 19019)) - {19007}
