"""Seeded damage to real partitions, and what salvage must make of it.

Every batch that no damage touched is saved, nothing else is, and with an undamaged copy at hand the
log comes back byte for byte. ``make salvage`` runs it and writes the report.
"""

import argparse
import os
import random
import shutil
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import damage as damages
import pytest
from verification import batches as table_of
from verification import set_offsets, small_log_dir

from logtool.errors import LogtoolError
from logtool.formats import names
from logtool.formats.names import DirectoryKind, PartitionDirectory
from logtool.log.batches import read_batches
from logtool.repair.output import OutputDir
from logtool.repair.salvage import Salvage

DATA = Path(__file__).parent / "data"
REPORT = Path(__file__).parent / "engine" / "salvage" / "REPORT.md"
SCENARIOS = (
    "2.8.2/magic-0", "2.8.2/magic-1", "3.9.2/clean", "3.9.2/killed", "4.3.1/clean", "4.3.1/killed",
)  # fmt: skip
SECTOR = 512
Range = tuple[int, int]
Damaged = tuple[bytes, list[Range]]
"""The new log, and the bytes of the old one that were touched."""


def _flip(data: bytes, rng: random.Random) -> Damaged:
    at = rng.randrange(len(data))
    return damages.flip(data, at, 1 << rng.randrange(8)), [(at, 1)]


def _sector(data: bytes, rng: random.Random, new: Callable[[int], bytes]) -> Damaged:
    at = rng.randrange(len(data)) // SECTOR * SECTOR
    size = min(SECTOR * rng.choice((1, 1, 2, 8)), len(data) - at)
    old = data[at : at + size]
    written = new(size)
    return data[:at] + written + data[at + size :], [(at, size)] if written != old else []


def _zeros(data: bytes, rng: random.Random) -> Damaged:
    return _sector(data, rng, bytes)


def _noise(data: bytes, rng: random.Random) -> Damaged:
    return _sector(data, rng, rng.randbytes)


def _size_field(data: bytes, rng: random.Random) -> Damaged:
    at, size = rng.choice(list(_frames(data)))
    new = rng.choice(
        (b"\0\0\0\0", b"\xff" * 4, b"\x7f\xff\xff\xff", rng.randbytes(4), _near(size, rng))
    )
    return data[: at + 8] + new + data[at + 12 :], [(at + 8, 4)]


def _near(size: int, rng: random.Random) -> bytes:
    return max(0, size - 12 + rng.choice((-9, -1, 1, 30, 500))).to_bytes(4, "big")


def _header(data: bytes, rng: random.Random) -> Damaged:
    at, size = rng.choice(list(_frames(data)))
    count = min(size, rng.randrange(1, 61))
    return data[:at] + rng.randbytes(count) + data[at + count :], [(at, count)]


def _cut(data: bytes, rng: random.Random) -> Damaged:
    at = rng.randrange(len(data))
    return data[:at], [(at, len(data) - at)]


def _dropped(data: bytes, rng: random.Random) -> Damaged:
    at = rng.randrange(len(data))
    size = min(len(data) - at, rng.choice((1, 7, 100, 512)))
    return data[:at] + data[at + size :], [(at, size)]


def _twice(data: bytes, rng: random.Random) -> Damaged:
    first, second = _flip(data, rng), rng.choice((_flip, _zeros, _noise, _size_field))
    after, touched = second(first[0], rng) if second is not _size_field else _zeros(first[0], rng)
    return after, [*first[1], *touched]


WAYS = {
    "one bit": _flip, "sectors of zeros": _zeros, "sectors of noise": _noise,
    "a size field": _size_field, "a header": _header, "the end cut off": _cut,
    "bytes taken out": _dropped, "two of these": _twice,
}  # fmt: skip


def _frames(data: bytes) -> Iterator[Range]:
    at = 0
    while at < len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        yield at, size
        at += size


def batches(log: Path) -> list[tuple[int, bytes]]:
    """Return position and bytes of each sound batch."""
    data = log.read_bytes()
    base = int(log.name.partition(".")[0])
    found = []
    from logtool.disk.files import LogFile

    with LogFile(log) as file:
        for chunk in read_batches(file, base_offset=base, payload=False):
            rows = zip(chunk.table.position.tolist(), chunk.table.size.tolist(), strict=True)
            found += [(at, data[at : at + size]) for at, size in rows]
    return found


@dataclass(slots=True)
class Case:
    """One partition with one damage, and what came of it."""

    scenario: str
    partition: str
    way: str
    lost: int = 0
    """Untouched batches that were not saved."""
    invented: int = 0
    """Saved batches whose records were not in the log, by size and CRC."""
    moved: int = 0
    """Saved batches whose offset or epoch is not what it was: no CRC covers these."""
    filled: bool = True
    """True if the log came back byte for byte with another copy."""
    error: str | None = None

    @property
    def is_good(self) -> bool:
        """Return whether nothing was lost or invented, and the copy made the log whole."""
        return self.filled and not (self.lost or self.invented or self.error)


def partitions(log_dir: Path) -> list[Path]:
    """Return the partition dirs of a log dir that hold batches."""
    found = []
    for path in sorted(log_dir.iterdir()):
        directory = names.parse_directory(path.name) if path.is_dir() else None
        live = isinstance(directory, PartitionDirectory) and directory.kind is DirectoryKind.LIVE
        if live and any(log.stat().st_size for log in path.glob("*.log")):
            found.append(path)
    return found


def damaged(source: Path, target: Path, way: str, rng: random.Random) -> tuple[Path, list[Range]]:
    """Copy a partition dir and damage one log; returns that log and what was touched."""
    shutil.copytree(source, target)
    logs = [log for log in sorted(target.glob("*.log")) if log.stat().st_size]
    log = rng.choice(logs)
    data = log.read_bytes()
    after, touched = WAYS[way](data, rng)
    log.write_bytes(after)
    return log, touched


def run(path: Path, output: Path, *fill_from: Path) -> list[object]:
    """Salvage one partition dir; returns what was said."""
    job = Salvage(paths=[path], output=OutputDir(output), fill_from=fill_from)
    return list(job)


def try_one(source: Path, work: Path, seed: int, *, fill: bool = True) -> Case:
    """Damage one partition by a seed and hold what salvage makes of it against the original."""
    rng = random.Random(seed)
    way = rng.choice(list(WAYS))
    case = Case(scenario=source.parent.name, partition=source.name, way=way)
    home = small_log_dir(source.parent, work / "broken")
    broken = home / source.name
    log, touched = damaged(source, broken, way, rng)
    saved = work / "saved"
    errors = [one for one in run(broken, saved) if isinstance(one, LogtoolError)]
    case.error = str(errors[0]) if errors else None
    place = "metadata" if source.name == "__cluster_metadata-0" else "partitions"
    folder = saved / place / source.name
    then = {path.name: batches(path) for path in source.glob("*.log")}
    now = Counter(data for path in folder.glob("*.log") for _, data in batches(path))
    wanted = Counter(
        data
        for name, found in then.items()
        for at, data in found
        if name != log.name or not any(a < at + len(data) and at < a + n for a, n in touched)
    )
    there = Counter(data for found in then.values() for _, data in found)
    case.lost = (wanted - now).total()
    case.invented = (_by_crc(now) - _by_crc(there)).total()
    case.moved = (now - there).total() - case.invented
    if fill:
        filled = work / "filled"
        run(broken, filled, another(source, work / "copy"))
        folder = filled / place / source.name
        # `small_log_dir` appends a batch to a metadata log.
        size = {log.name: log.stat().st_size for log in source.glob("*.log")}
        ends = size if place == "metadata" else dict.fromkeys(size)
        same = [
            (folder / name).exists()
            and (folder / name).read_bytes()[:end] == (source / name).read_bytes()
            for name, end in ends.items()
        ]
        case.filled = all(same)
    return case


def another(source: Path, home: Path) -> Path:
    """Return the same partition on another broker, which went on: what it holds is acknowledged."""
    copy = small_log_dir(source.parent, home, source.name) / source.name
    logs = [log for log in copy.glob("*.log") if log.stat().st_size]
    end = 1 + max(int(table_of(log).last_offset.max()) for log in logs)
    topic, _, number = source.name.rpartition("-")
    set_offsets(home / "replication-offset-checkpoint", {(topic, int(number)): end})
    return copy


def _by_crc(found: Counter[bytes]) -> Counter[bytes]:
    """Return batches without what no CRC covers: offset, and the epoch of magic 2."""
    kept: Counter[bytes] = Counter()
    for data, count in found.items():
        kept[data[8:] if data[16] < 2 else data[8:12] + data[16:]] += count
    return kept


@dataclass(slots=True)
class Tally:
    """The results of a campaign."""

    cases: list[Case] = field(default_factory=list)

    def text(self) -> str:
        """Return the report."""
        lines = [
            "# Salvage of damaged partitions",
            "",
            "`make salvage` damages real partitions by a seed and salvages them alone and with",
            "an undamaged copy at hand. Lost: batches that no damage touched and were not",
            "saved. Invented: saved batches whose records were not in the log, by size and CRC.",
            "Moved: saved batches whose offset or epoch is not what it was. No CRC covers",
            "these: at the end and next to other damage no batch contradicts them, and only",
            "another copy shows them. Filled: logs that the copy made whole, byte for byte; its",
            "high watermark is its end, as that of a broker that goes on.",
            "",
            "| scenario | damage | cases | lost | invented | moved | filled |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        groups: dict[tuple[str, str], list[Case]] = {}
        for case in self.cases:
            groups.setdefault((case.scenario, case.way), []).append(case)
        for (scenario, way), cases in sorted(groups.items()):
            lost, invented = sum(c.lost for c in cases), sum(c.invented for c in cases)
            filled = sum(c.filled for c in cases)
            figures = (len(cases), lost, invented, sum(c.moved for c in cases), filled)
            lines.append(f"| {scenario} | {way} | {' | '.join(map(str, figures))} |")
        bad = sum(bool(case.lost or case.invented or case.error) for case in self.cases)
        left = sum(not case.filled for case in self.cases)
        said = f"{len(self.cases):,} cases: {bad} with a batch lost or invented, {left} not filled."
        lines += ["", said]
        return "\n".join(lines) + "\n"


class Tried(Protocol):
    """The result of one case."""

    @property
    def is_good(self) -> bool:
        """Return whether it came to what it has to come to."""


C = TypeVar("C", bound=Tried)


def campaign(
    arguments: Sequence[str],
    report: Path,
    attempt: Callable[[Path, Path, int], C],
    leave_out: str = "",
) -> tuple[list[C], Path]:
    """Make one attempt for each seed; returns what came of them, and where the report goes.

    `leave_out` is the name of a partition dir that is not tried.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, default=report)
    options = parser.parse_args(arguments)
    cases: list[C] = []
    with tempfile.TemporaryDirectory() as folder:
        homes = []
        for name in SCENARIOS:
            home = Path(folder) / name.replace("/", "-")
            with tarfile.open(DATA / f"{name}.tar.xz") as archive:
                archive.extractall(home, filter="data")
            (only,) = home.iterdir()
            home = only.rename(only.with_name(name.replace("/", " ")))
            homes.append([path for path in partitions(home) if path.name != leave_out])
        for number in range(options.cases):
            seed = options.seed * 1_000_000 + number
            source = random.Random(seed).choice(homes[number % len(homes)])
            work = Path(folder) / f"case-{number}"
            case = attempt(source, work, seed)
            cases.append(case)
            if not case.is_good:
                print(f"seed {seed}: {case}", flush=True)
            shutil.rmtree(work)
    return cases, options.report


def main(arguments: Sequence[str]) -> int:
    """Run the campaign and write the report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        cases, target = campaign(arguments, REPORT, try_one)
    target.write_text(Tally(cases).text())
    return 0 if all(case.is_good for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
