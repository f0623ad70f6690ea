"""The vocabulary of damage: what disks, crashes and people do to files.

The functions take bytes and return new bytes; each asserts that it changed something, so that a
test cannot pass because its damage missed. `damage_file` and its neighbours do the same to files
in a copied directory; they refuse the test data itself.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec

P = ParamSpec("P")

_DATA = Path(__file__).resolve().parent / "data"


def flip(data: bytes, position: int, mask: int = 0xFF) -> bytes:
    """Invert the bits of `mask` in one byte: bit rot."""
    return overwrite(data, position, bytes([data[position] ^ mask]))


def cut(data: bytes, size: int) -> bytes:
    """Keep the first `size` bytes: a crash before the end was written."""
    assert 0 <= size < len(data), f"nothing to cut at {size}"
    return data[:size]


def zero(data: bytes, position: int, length: int) -> bytes:
    """Overwrite with zeros: pages that were allocated and never written."""
    return overwrite(data, position, bytes(length))


def drop(data: bytes, position: int, length: int) -> bytes:
    """Take bytes out and close the gap."""
    _assert_inside(data, position, length)
    return _changed(data, data[:position] + data[position + length :])


def swap(data: bytes, first: int, second: int, length: int) -> bytes:
    """Exchange two ranges of one length that do not overlap: misdirected writes."""
    _assert_inside(data, first, length)
    _assert_inside(data, second, length)
    assert first + length <= second, "ranges overlap"
    one, other = data[first : first + length], data[second : second + length]
    between, rest = data[first + length : second], data[second + length :]
    return _changed(data, data[:first] + other + between + one + rest)


def repeat(data: bytes, position: int, length: int) -> bytes:
    """Insert a second copy of a range right behind the first: a write that was retried."""
    _assert_inside(data, position, length)
    end = position + length
    return _changed(data, data[:end] + data[position:end] + data[end:])


def overwrite(data: bytes, position: int, new: bytes) -> bytes:
    """Put `new` in the place of as many bytes."""
    _assert_inside(data, position, len(new))
    return _changed(data, data[:position] + new + data[position + len(new) :])


def copied(source: Path, target: Path) -> Path:
    """Copy a directory with the times of its files, for damage to be done to; returns `target`."""
    shutil.copytree(source, target, symlinks=True)
    return target


def damage_file(
    path: Path,
    damage: Callable[Concatenate[bytes, P], bytes],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Do one of the damages above to a file; its times stay, as they do when a disk fails."""
    _assert_copied(path)
    times = path.stat()
    path.write_bytes(damage(path.read_bytes(), *args, **kwargs))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def append_to_file(path: Path, new: bytes) -> None:
    """Write behind the end."""
    assert new, "nothing to append"
    _assert_copied(path)
    with path.open("ab") as file:
        file.write(new)


def remove_file(path: Path) -> None:
    """Delete a file that is there."""
    _assert_copied(path)
    path.unlink()


def rename_file(path: Path, name: str) -> Path:
    """Give a file another name in its directory; returns the new path."""
    _assert_copied(path)
    target = path.with_name(name)
    assert not target.exists(), f"{target} exists"
    return path.rename(target)


def _assert_inside(data: bytes, position: int, length: int) -> None:
    assert length > 0, "no bytes to damage"
    assert 0 <= position <= len(data) - length, f"{position}+{length} is outside {len(data)}"


def _changed(before: bytes, after: bytes) -> bytes:
    assert after != before, "the damage changed nothing"
    return after


def _assert_copied(path: Path) -> None:
    assert not path.resolve().is_relative_to(_DATA), f"{path} is test data: damage a copy"
    assert path.is_file() and not path.is_symlink(), f"{path} is not a file"
