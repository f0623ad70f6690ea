"""Bare passes over files, the lower bound of every check: ``python bare.py THREADS FILE ...``.

The program imports the modules of every command and reads the files with a number of threads: the
least time in which a process reads every byte.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from crc32c import crc32c

_MIB = 1 << 20


def pass_over(path: Path, size: int = _MIB) -> int:
    """Read a file once into a buffer of `size` bytes, CRC-32C it, return that: the baseline."""
    return _part(path, 0, sys.maxsize, size)[1]


def passes_at_once(paths: Sequence[Path], threads: int) -> None:
    """Pass over files with so many threads, each of which reads an equal part of every file."""
    sizes = [path.stat().st_size for path in paths]
    read = [0] * threads

    def share(number: int) -> None:
        for path, size in zip(paths, sizes, strict=True):
            first, end = (size * edge // threads for edge in (number, number + 1))
            read[number] += _part(path, first, end, _MIB)[0]

    running = [Thread(target=share, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if sum(read) != sum(sizes):
        raise AssertionError(f"{sum(read)} of {sum(sizes)} bytes were read")


def _part(path: Path, first: int, end: int, size: int) -> tuple[int, int]:
    """Pass over the bytes from `first` to `end`; return how many there were, and their CRC."""
    buffer = bytearray(size)
    view = memoryview(buffer)
    crc, at = 0, first
    with path.open("rb", buffering=0) as file:
        file.seek(first)
        while count := file.readinto(view[: min(size, end - at)]):
            crc = crc32c(view[:count], crc)
            at += count
    return at - first, crc


def _main() -> None:
    import numpy  # noqa: F401
    import typer  # noqa: F401

    passes_at_once([Path(name) for name in sys.argv[2:]], int(sys.argv[1]))


if __name__ == "__main__":
    _main()
