"""Changes to log dirs like those of disks, people and attackers; a seed makes each of them.

`mutate_files` changes the bytes of files. `mutate` does that too, and also changes what stands
where in a directory, the fields behind a CRC that holds, and the texts of small files.
"""

import json
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from fuzz import fields

NAMES = (
    "00000000000000000007.log", "00000000000000000000.index.deleted", "x.log", "-rf", "a\nb",
    "99999999999999999999.log", ".lock", "\udcff.snapshot", "00000000000000000005.log.swap",
    "00000000000000000003.log.cleaned", "meta.properties", "leader-epoch-checkpoint", "\x1b[2J",
    "\u202e",
)  # fmt: skip
MORE_NAMES = (
    *NAMES, "09223372036854775807.log", "00000002147483647.log", "-0000000000000000001.log",
    "0.log", "00000000000000000000.timeindex", "00000000000000000000.txnindex",
    "partition.metadata", "00000000000000000009.snapshot", "quorum-state",
    "00000000000000000000-0000000000.checkpoint",
    "09223372036854775807-2147483647.checkpoint", "00000000000000000000.log.deleted", "pid.lock",
    ".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    "0-1-v1.log", "18446744073709551615-1-v1.log", "0-9223372036854775808-v1.log", "1-1-v0.log",
    "0-1-v1.base_index", "0-1-v1.compaction_index", "0-1-v1.log.staging", "snapshot", "'; rm -rf x",
    "$(touch X)", "a" * 255, "\u0661.log", "00000000000000000000.log.01234",
)  # fmt: skip
DIRECTORIES = (
    "orders", "-0", ".-0", "orders-", "orders--1", "orders-99999999999", "orders-2147483648",
    "orders-007", "a\nb-0", "\udcff-0", "\x1b[2J-1", "-rf-0", "orders.-0", "x" * 249 + "-0",
    "__cluster_metadata-0", "__cluster_metadata-1", "__consumer_offsets-7", "__transaction_state-3",
    "__share_group_state-1", "__remote_log_metadata-2", "0_-1", "0_99999999999999999999", "1_2",
    "orders-0.0123456789abcdef0123456789abcdef-delete", "kafka", "redpanda", "$(touch X)-0",
    "orders-0.0123456789abcdef0123456789abcdef-future", ".logtool-partial", "\u0661-\u0661",
    "orders-0.0123456789abcdef0123456789abcdef-stray", "orders-0-delete", "orders-0.x-delete",
)  # fmt: skip
SUFFIXES = ("delete", "future", "stray")
_LARGEST_CHANGED = 4 * 2**20
"""Size in bytes above which a file keeps its contents."""
_NUMBERS = (
    "0", "1", "-1", "7", "2147483647", "2147483648", "-2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
    "1" * 40, "+3", "007", "1_0", "\u0663", "1.5", "1e3", "0x10", "nan", "", "None", "\u00bd",
)  # fmt: skip


def mutate_files(draw: random.Random, log_dir: Path) -> list[str]:
    """Make one to five changes to files of a log dir; return descriptions."""
    done = []
    for _ in range(draw.randint(1, 5)):
        paths = sorted(path for path in log_dir.rglob("*") if _may_be_written(path))
        if not paths:
            break
        path = draw.choice(paths)
        data = bytearray(path.read_bytes())
        way = draw.randrange(9)
        at = draw.randrange(len(data))
        match way:
            case 0 | 1 | 2:
                for _ in range(draw.randint(1, 6)):
                    byte = draw.choice((0, 255, 128, draw.randrange(256)))
                    data[draw.randrange(len(data))] = byte
                path.write_bytes(data)
            case 3:
                path.write_bytes(data[:at])
            case 4:
                data[at:at] = draw.randbytes(draw.randint(1, 40))
                path.write_bytes(data)
            case 5:
                at = at // 4 * 4
                data[at : at + 4] = draw.choice((b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"))
                path.write_bytes(data)
            case 6:
                target = path.with_name(draw.choice(NAMES))
                if not target.is_dir():
                    path.rename(target)
            case 7:
                path.unlink()
                _put_instead(path, draw.randrange(4))
            case _:
                other = draw.choice(paths)
                path.write_bytes(other.read_bytes())
        done.append(f"{way} {path.name!r}")
    return done


def mutate(draw: random.Random, log_dir: Path) -> list[str]:
    """Make one to five changes of any kind to a log dir; return descriptions."""
    done = []
    for _ in range(draw.choice((1, 1, 2, 2, 3, 5))):
        kind = draw.choice(_DRAWN)
        # A change may have no subject left: no file, or a name that is taken or not possible.
        with suppress(OSError):
            done += [f"{kind}: {one}" for one in KINDS[kind](draw, log_dir)]
    return done


def _bytes(draw: random.Random, log_dir: Path) -> Iterator[str]:
    yield from mutate_files(draw, log_dir)


def _field(draw: random.Random, log_dir: Path) -> Iterator[str]:
    """Set fields of a log, an index or a snapshot to limits, and make the CRCs right."""
    paths = [path for path in _files(log_dir) if fields.WRITERS.get(fields.kind_of(path))]
    if not paths:
        return
    internal = [path for path in paths if path.parent.name.startswith("__")]
    path = draw.choice(internal if internal and draw.random() < 0.3 else paths)
    data = path.read_bytes()
    for _ in range(draw.choice((1, 1, 2, 4))):
        data, done = fields.WRITERS[fields.kind_of(path)](draw, data)
        yield f"{path.name!r} {done}"
    path.write_bytes(data)


def _blocks(draw: random.Random, log_dir: Path) -> Iterator[str]:
    """Zero, swap, double, remove or append a block of a file."""
    paths = _files(log_dir)
    path = draw.choice(paths)
    data = path.read_bytes()
    size = min(draw.choice((1, 8, 61, 512, 4096)), len(data))
    at, other = (draw.randrange(len(data) - size + 1) for _ in range(2))
    way = draw.randrange(8)
    match way:
        case 0:
            data = data[:at] + bytes(size) + data[at + size :]
        case 1:
            out = bytearray(data)
            out[at : at + size], out[other : other + size] = (
                data[other : other + size], data[at : at + size]
            )  # fmt: skip
            data = bytes(out)
        case 2:
            data = data[: at + size] + data[at:]
        case 3:
            data = data[:at] + data[at + size :]
        case 4:
            data += bytes(size)
        case 5:
            data += draw.randbytes(size)
        case 6:
            data = b""
        case _:
            data = data[:at] + draw.randbytes(size) + data[at + size :]
    path.write_bytes(data)
    yield f"{way} {path.name!r}"


def _places(draw: random.Random, log_dir: Path) -> Iterator[str]:
    """Remove, rename, copy or exchange a file or a directory."""
    path = draw.choice(_paths(log_dir))
    other = draw.choice(_paths(log_dir))
    names = DIRECTORIES if path.is_dir() else MORE_NAMES
    target = path.with_name(draw.choice(names))
    way = draw.randrange(6)
    match way:
        case 0:
            _remove(path)
        case 1:
            path.rename(target)
        case 2 if path.is_dir():
            shutil.copytree(path, target, symlinks=True)
        case 2:
            shutil.copy2(path, target, follow_symlinks=False)
        case 3 if path not in other.parents and other not in path.parents:
            aside = path.with_name("aside")
            path.rename(aside)
            other.rename(path)
            aside.rename(other)
        case 4 if path.is_file() and other.is_file():
            shutil.copyfile(path, other)
        case 5 if path.is_dir():
            for child in path.iterdir():
                _remove(child)
        case _:
            return
    yield f"{way} {path.name!r}"


def _kinds_of_file(draw: random.Random, log_dir: Path) -> Iterator[str]:
    """Put a directory, a link, a pipe or a device in place of a file or a directory, or next to
    it."""
    path = draw.choice(_paths(log_dir))
    if draw.random() < 0.3:
        path = path.with_name(draw.choice(MORE_NAMES))
    inside = draw.choice(_paths(log_dir))
    with suppress(FileNotFoundError):
        _remove(path)
    way = draw.randrange(9)
    match way:
        case 0 | 1 | 2 | 3:
            _put_instead(path, way)
        case 4:
            path.symlink_to(path.name)
        case 5:
            path.symlink_to("..")
        case 6:
            path.symlink_to(os.path.relpath(inside, path.parent))
        case 7:
            path.symlink_to("/dev/null")
        case _:
            path.write_bytes(b"")
    yield f"{way} {path.name!r}"


def _marks(draw: random.Random, log_dir: Path) -> Iterator[str]:
    """Make a partition dir one that is deleted, stray or a future copy, by a rename or a copy."""
    found = sorted(path for path in log_dir.iterdir() if path.is_dir() and "-" in path.name)
    path = draw.choice(found or [log_dir])
    suffix = draw.choice(SUFFIXES)
    if suffix == draw.choice(SUFFIXES):
        target = path.with_name(f"{path.name}-{suffix}")
    else:
        target = path.with_name(f"{path.name}.{draw.getrandbits(128):032x}-{suffix}")
    if draw.random() < 0.5:
        path.rename(target)
    else:
        shutil.copytree(path, target, symlinks=True)
    yield f"{target.name!r}"


def _texts(draw: random.Random, log_dir: Path) -> Iterator[str]:
    """Write strange rows into a checkpoint, a properties file or a JSON file."""
    paths = [path for path in _files(log_dir) if _is_text(path)]
    if not paths:
        return
    path = draw.choice(paths)
    text = path.read_bytes()
    way = draw.randrange(9)
    rows = text.split(b"\n")
    row = draw.randrange(len(rows))
    match way:
        case 0:
            rows[row] = draw.randbytes(draw.randint(0, 12))
        case 1:
            words = rows[row].split(b" ")
            words[draw.randrange(len(words))] = draw.choice(_NUMBERS).encode()
            rows[row] = b" ".join(words)
        case 2:
            rows.insert(row, rows[draw.randrange(len(rows))])
        case 3:
            del rows[row]
        case 4:
            rows = [one + b"\r" for one in rows]
        case 5:
            key, equals, _ = rows[row].partition(b"=")
            rows[row] = key + equals + draw.choice(_NUMBERS).encode()
        case 6:
            many = [f"{_row(draw)}" for _ in range(draw.randint(0, 5))]
            count = draw.choice((str(len(many)), *_NUMBERS))
            rows = [one.encode("utf-8", "surrogateescape") for one in ("0", count, *many, "")]
        case 7:
            rows = [_json(draw, text)]
        case _:
            rows[row] = rows[row] + draw.choice(
                (b"\0", b"\xff\xfe", b"\x1b[2J", b" ", b"\xef\xbb\xbf")
            )
    path.write_bytes(b"\n".join(rows))
    yield f"{way} {path.name!r}"


def _row(draw: random.Random) -> str:
    """Return a row of a checkpoint: with a topic or without, with numbers of any size."""
    numbers = [draw.choice(_NUMBERS) for _ in range(draw.choice((1, 2, 2, 2, 3)))]
    topic = draw.choice(("orders", "", "a b", "\udcff", "x" * 300, "__consumer_offsets", "\x07"))
    return " ".join((topic, *numbers) if draw.random() < 0.6 else numbers)


def _json(draw: random.Random, text: bytes) -> bytes:
    """Return the text with one value of another type, if it is a JSON object."""
    odd: list[object] = [
        None, True, -1, 2**63, 2**70, 1.5, "", "x", [], [None], {}, {"voterId": "a"}, [[1]],
        float("inf"), "\ud800", [{"voterId": None}], {"leaderId": []},
    ]  # fmt: skip
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict) and value and draw.random() < 0.8:
        value[draw.choice(sorted(value))] = draw.choice(odd)
    else:
        value = draw.choice(odd)
    return json.dumps(value).encode()


def _looks(draw: random.Random, log_dir: Path) -> Iterator[str]:
    """Give a path a strange time, no permission, or a large sparse end."""
    path = draw.choice(_paths(log_dir))
    way = draw.randrange(3)
    match way:
        case 0:
            when = draw.choice((0, -1, -(2**33), 2**33, 2**34 - 1, 1, 2**31))
            os.utime(path, (when, when), follow_symlinks=False)
        case 1 if not path.is_symlink():
            path.chmod(draw.choice((0, 0o444, 0o111, 0o777)))
        case _:
            if path.is_file():
                os.truncate(path, path.stat().st_size + draw.choice((1, 2**12, 2**20, 2**25)))
    yield f"{way} {path.name!r}"


def _everything(draw: random.Random, log_dir: Path) -> Iterator[str]:
    """Do one thing to all files whose names end in the same way."""
    suffixes = sorted({path.suffix for path in _files(log_dir)})
    suffix = draw.choice(suffixes)
    way = draw.randrange(4)
    for path in _files(log_dir):
        if path.suffix != suffix:
            continue
        if way == 0:
            path.write_bytes(b"")
        elif way == 1:
            path.write_bytes(bytes(path.stat().st_size))
        elif way == 2:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[: draw.randrange(path.stat().st_size + 1)])
    yield f"{way} *{suffix}"


KINDS: dict[str, Callable[[random.Random, Path], Iterator[str]]] = {
    "bytes": _bytes,
    "field": _field,
    "block": _blocks,
    "place": _places,
    "kind": _kinds_of_file,
    "mark": _marks,
    "text": _texts,
    "look": _looks,
    "all": _everything,
}
"""All kinds of changes by name."""
_DRAWN = (
    "bytes", "bytes", "field", "field", "field", "field", "field", "block", "block", "place",
    "place", "place", "kind", "kind", "mark", "text", "text", "text", "look", "all",
)  # fmt: skip


def _paths(log_dir: Path) -> list[Path]:
    """Return everything in a log dir, by name; OSError if it is empty."""
    found = sorted(log_dir.rglob("*"))
    if not found:
        raise FileNotFoundError
    return found


def _files(log_dir: Path) -> list[Path]:
    """Return the files of a log dir that have contents; OSError if it has none."""
    found = [path for path in sorted(log_dir.rglob("*")) if _may_be_written(path)]
    if not found:
        raise FileNotFoundError
    return found


def _is_text(path: Path) -> bool:
    """Return whether the name is that of a text file."""
    return not path.suffix.startswith(".") or path.suffix in (".properties", ".metadata")


def _may_be_written(path: Path) -> bool:
    """Return whether the path is a regular file with content and without other links."""
    status = path.lstat()
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_nlink == 1
        and 0 < status.st_size <= _LARGEST_CHANGED
    )


def _remove(path: Path) -> None:
    """Remove a file, a link or a directory."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _put_instead(path: Path, what: int) -> None:
    """Put a directory, a link, a pipe or nothing at the path."""
    if what == 0:
        path.mkdir()
    elif what == 1:
        path.symlink_to("/nothing/is/here")
    elif what == 2:
        os.mkfifo(path)
