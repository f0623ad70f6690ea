"""Damage to files: missing, left over and unexpected files, and wrong indexes."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import numpy as np
from broker.damage_tools import INDEXES, UnfitError, flip_bit, pick, pick_index, pick_log, replace
from broker.sources import base_offsets, logs, walk


def remove_files(directory: Path, rng: Random) -> str:
    """Remove indexes, snapshots or the leader epochs, of one segment or of all."""
    suffixes = rng.choice((
        [".index"], [".index"], [".timeindex"], [".txnindex"], [".snapshot"], [".snapshot"],
        [".index", ".timeindex"], [".index", ".timeindex", ".txnindex", ".snapshot"],
        ["leader-epoch-checkpoint"], ["partition.metadata"],
    ))  # fmt: skip
    gone = [path for path in sorted(directory.iterdir()) if path.name.endswith(tuple(suffixes))]
    if rng.random() < 0.6:
        chosen = pick(rng, gone).name.split(".")[0]
        gone = [path for path in gone if path.name.startswith(chosen)]
    if not gone:
        raise UnfitError
    for path in gone:
        path.unlink()
    return "gone: " + ", ".join(path.name for path in gone)


def remove_index_and_damage(directory: Path, rng: Random) -> str:
    """Remove the index and damage a batch of one segment: it is cut, and later ones stay."""
    path, data, batches = pick_log(directory, rng)
    index = path.with_suffix(".index")
    if not index.exists():
        raise UnfitError
    index.unlink()
    batch = rng.choice(batches)
    position = batch.position + rng.randrange(batch.size)
    path.write_bytes(replace(data, position, bytes([data[position] ^ 0x55])))
    return f"{index.name} gone, {path.name} damaged at {position}"


def orphans(directory: Path, rng: Random) -> str:
    base = rng.choice(base_offsets(directory)) + rng.choice((1, 3, 100_000))
    names = [f"{base:020}{suffix}" for suffix in rng.sample([*INDEXES, ".snapshot"], 2)]
    for name in names:
        (directory / name).write_bytes(rng.choice((b"", bytes(24), rng.randbytes(68))))
    return "with no log: " + ", ".join(names)


def remove_segment(directory: Path, rng: Random) -> str:
    if len(logs(directory)) < 2:
        raise UnfitError
    stem = rng.choice(logs(directory)).stem
    suffixes = rng.choice(((".log",), (".log", *INDEXES), (".log", ".snapshot", *INDEXES)))
    for suffix in suffixes:
        (directory / f"{stem}{suffix}").unlink(missing_ok=True)
    return f"{stem}: {' '.join(suffixes)} gone"


def empty_segment(directory: Path, rng: Random) -> str:
    """Empty a log, or add an empty one."""
    bases = base_offsets(directory)
    if rng.random() < 0.5:
        path = rng.choice(logs(directory))
        path.write_bytes(b"")
        return f"{path.name}: emptied"
    last = list(walk(logs(directory)[-1].read_bytes()))
    end = last[-1].last_offset + 1 if last else bases[-1]
    base = rng.choice((end, end, end + 5, bases[0] + 1, max(0, bases[0] - 3)))
    path = directory / f"{base:020}.log"
    if path.exists():
        raise UnfitError
    for suffix in rng.choice(((".log",), (".log", ".index", ".timeindex"))):
        path.with_suffix(suffix).write_bytes(b"")
    return f"{path.name}: one more, empty"


def leftovers(directory: Path, rng: Random) -> str:
    """Leave the files of an interrupted compaction."""
    here = logs(directory)
    first = rng.randrange(len(here))
    done = []
    for path in here[first : first + rng.randint(1, 3)]:
        kind = rng.choice((".cleaned", ".swap", ".swap", ".deleted"))
        moved = rng.random() < 0.4 and kind != ".cleaned"
        for suffix in (".log", *INDEXES):
            source = path.with_suffix(suffix)
            if not source.exists() or rng.random() < 0.25:
                continue
            target = directory / f"{source.name}{kind}"
            shutil.copyfile(source, target)
            if moved:
                source.unlink()
            done.append(f"{target.name}{' moved' if moved else ''}")
    if not done or (not logs(directory) and not any(".log.swap" in name for name in done)):
        raise UnfitError
    return ", ".join(done)


def swap_of_many(directory: Path, rng: Random) -> str:
    """Leave a `.swap` that holds the batches of two segments, as compaction makes."""
    here = logs(directory)
    if len(here) < 2:
        raise UnfitError
    first = rng.randrange(len(here) - 1)
    target = directory / f"{here[first].name}.swap"
    target.write_bytes(here[first].read_bytes() + here[first + 1].read_bytes())
    for suffix in (".index", ".timeindex"):
        if rng.random() < 0.7:
            source = here[first].with_suffix(suffix)
            data = source.read_bytes() if source.exists() else b""
            (directory / f"{source.name}.swap").write_bytes(data)
    if rng.random() < 0.3:
        here[first].unlink()
    return f"{target.name} holds two segments"


def strange_files(directory: Path, rng: Random) -> str:
    name = rng.choice((
        "foo.log", "foo.txt", "foo.index", "x.snapshot", "1.log", "1.index", "7.timeindex",
        "00000000000000000000.txt", "leader-epoch-checkpoint.tmp", "foo.swap", "foo.cleaned",
        "bar.deleted", "00000000000000000003.checkpoint", "-1.log", "99999999999999999999.log",
        "09223372036854775807.log", "09223372036854775807.snapshot",
        "00000000000000000009-0000000001.checkpoint.deleted", "a.snapshot.deleted",
    ))  # fmt: skip
    (directory / name).write_bytes(rng.choice((b"", b"text\n", bytes(100))))
    return f"a file {name}"


def directory_for_file(directory: Path, rng: Random) -> str:
    end = base_offsets(directory)[-1]
    name = rng.choice((
        "folder", f"{end:020}.snapshot", f"{end + 10:020}.log", "foo.log",
        f"{end:020}.index", f"{end:020}.timeindex", f"{end:020}.txnindex",
    ))  # fmt: skip
    (directory / name).unlink(missing_ok=True)
    (directory / name).mkdir()
    return f"{name} is a directory"


def bad_index(directory: Path, rng: Random) -> str:
    path, rows = pick_index(directory, rng, [".index", ".timeindex"])
    data, size = path.read_bytes(), INDEXES[path.suffix].itemsize
    at = rng.randrange(len(data)) if data else 0
    ways: dict[str, bytes] = {
        "emptied": b"",
        "more bytes": data + rng.randbytes(rng.randint(1, size - 1)),
        "zeros behind": data + bytes(size * rng.randint(1, 9)),
        "cut": data[:at],
        "random": rng.randbytes(size * rng.randint(1, 9)),
    }
    if data:
        ways["flip"] = flip_bit(data, at, rng)
        ways["zeros"] = replace(data, at, bytes(len(data) - at))
        ways["twice"] = data + data
        ways["backwards"] = rows[::-1].tobytes()
    way = rng.choice(list(ways))
    path.write_bytes(ways[way])
    return f"{path.name}: {way}, {len(ways[way])} bytes"


def index_beyond(directory: Path, rng: Random) -> str:
    """Add entries beyond the log end to an index, like a stale index of a log that was cut."""
    path, rows = pick_index(directory, rng, [".index", ".timeindex"])
    log = path.with_suffix(".log")
    size = log.stat().st_size if log.exists() else 0
    batches = list(walk(log.read_bytes())) if log.exists() else []
    base = int(path.stem)
    last = batches[-1].last_offset - base if batches else 0
    more = np.zeros(rng.randint(1, 3), INDEXES[path.suffix])
    step = rng.choice((1, 1, 100, 10**6))
    for number in range(len(more)):
        more["relative_offset"][number] = last + step * (number + 1)
        if path.suffix == ".index":
            more["position"][number] = size + rng.choice((0, -200, 100)) + 100 * number
        else:
            more["timestamp"][number] = 4 * 10**12 + number
    path.write_bytes(rows[rows["relative_offset"] > 0].tobytes() + more.tobytes())
    return f"{path.name}: {len(more)} entries beyond the end"
