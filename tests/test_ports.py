"""Ports that tests give to their servers."""

import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import ports
import pytest

GIVEN = """
import ports
ports._candidates = lambda: {}
print(*[ports.free_port() for _ in range(9)], flush=True)
input()
"""


@pytest.fixture
def nineteen(monkeypatch, tmp_path):
    """Yield nineteen ports that no one else gets, and give away these only."""
    found = [ports.free_port() for _ in range(19)]
    monkeypatch.setattr(ports, "_reserved", set())
    monkeypatch.setattr(ports, "_locks", [])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ports, "_candidates", lambda: found)
    yield found
    for lock in ports._locks:
        os.close(lock)


def test_no_port_is_one_of_an_outgoing_connection():
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if (first, last) != (ports.FIRST, 65535):
        assert not set(ports._candidates()) & set(range(first, last + 1))
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getsockname()[1] not in ports._candidates()


def test_two_processes_get_different_ports(nineteen, tmp_path):
    code, folder = GIVEN.format(nineteen[:18]), Path(ports.__file__).parent
    with ExitStack() as stack:
        both = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code], cwd=folder, text=True,
                    env={**os.environ, "TMPDIR": str(tmp_path)},
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                )
            )
            for _ in range(2)
        ]  # fmt: skip
        given = [port for one in both for port in map(int, one.stdout.readline().split())]
        for one in both:
            one.communicate("\n")
    assert sorted(given) == sorted(nineteen[:18])


def test_a_port_is_given_once_and_not_while_a_server_has_it(nineteen):
    with socket.create_server(("127.0.0.1", nineteen[7])):
        given = {ports.free_port() for _ in range(18)}
        with pytest.raises(RuntimeError):
            ports.free_port()
    assert given == {*nineteen} - {nineteen[7]}
