"""Ports of 127.0.0.1 for the servers that tests start."""

import errno
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

FIRST = 10000
"""The first port that is given away."""

CHOICE = random.Random()
"""A generator of its own: a test that seeds the common one does not repeat ports."""

_reserved: set[int] = set()
_locks: list[int] = []


def free_port() -> int:
    """Return a free port that no other process of the tests gets while this one lives.

    The system does not give it to outgoing connections. Such a connection of any program would
    take a port in the seconds before a server listens or starts again.
    Raises RuntimeError if no port is left.
    """
    ports = set(_candidates()) - _reserved
    for port in CHOICE.sample(sorted(ports), len(ports)):
        if _is_free(port) and _lock(port):
            _reserved.add(port)
            return port
    raise RuntimeError("no port is left")


def _candidates() -> list[int]:
    """Return the ports that may be given away: all of them if connections may use all."""
    path = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first, last = map(int, path.read_text().split()) if path.exists() else (32768, 65535)
    every = range(FIRST, 65536)
    return [port for port in every if not first <= port <= last] or list(every)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True


def _lock(port: int) -> bool:
    """Keep a port from other processes until this one ends, unless one of them has it.

    A port is a byte of a file that all processes lock. The file stays open: to close it would
    give all ports back.
    """
    if not _locks:
        path = Path(tempfile.gettempdir()) / "logtool-test-ports"
        _locks.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o666))
    try:
        fcntl.lockf(_locks[0], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        return False
    return True
