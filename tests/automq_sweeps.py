"""Objects of AutoMQ, cut at every byte and with every bit of their frames flipped.

Each time there is a finding, or the object gives the same answer as before, or the bit is in a
field that nothing repeats (`is_free`). ``make automq-sweeps`` tries all and writes the report.
"""

import argparse
import hashlib
import shutil
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from logtool import cli
from logtool.checks.automq import object_findings
from logtool.errors import UnreadableError
from logtool.formats.automq import block_wal, composite_object, data_object, wal_object
from logtool.formats.automq.names import ObjectKind, ObjectName
from logtool.formats.automq.stream_record import StreamRecords
from logtool.log.automq_bucket import StoredObject, WholeObject, open_all

DATA = Path(__file__).parent / "data" / "automq"
REPORT = Path(__file__).parent / "broker" / "reports" / "automq-sweeps.md"
STATES = ("broker-crash", "broker-clean")
RING_STEP = 61
"""Bytes between two flipped bits of the ring of a block WAL, which is read whole each time."""
COMMANDS = (
    "verify", "stat", "dump --records", "plan", "gaps", "txns", "groups",
    "lookup --topic orders --partition 0 --offset 1", "salvage --to kafka --output {output}",
)  # fmt: skip
ALLOWED = {0, 1, 4}
"""Exit statuses of a command that reads a damaged bucket."""


@dataclass(frozen=True)
class ObjectBytes:
    """An object in memory, which stands for a `StoredObject`."""

    path: Path
    name: ObjectName
    data: bytes
    indexes: Mapping[int, NDArray[np.void]] = field(default_factory=dict)
    """Index blocks of the other objects of the bucket, which a composite object links."""

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return len(self.data)

    def open(self) -> WholeObject:
        """Return the bytes as a file."""
        return WholeObject(self.data)

    def holding(self, data: bytes) -> "ObjectBytes":
        """Return the object with other bytes."""
        return replace(self, data=data)

    def codes(self, *, blocks: bool = True) -> set[str]:
        """Return the codes of its findings; with `blocks`, those of its data blocks, too."""
        if self.name.kind is ObjectKind.BLOCK_WAL:
            wal = block_wal.parse(self.data)
            passed = block_wal.recover(self.data, wal.header).findings if wal.header else ()
            return {one.code for one in (*block_wal.check(wal), *passed)}
        found = object_findings(cast(StoredObject, self), reads_blocks=blocks)
        codes = {"unreadable" if isinstance(one, UnreadableError) else one.code for one in found}
        if not codes and blocks and composite_object.is_composite(self.data):
            parsed = composite_object.parse(self.data)
            if not {number for number, _ in parsed.linked()} <= self.indexes.keys():
                codes.add("automq-bucket/missing-object")
            codes |= {one.code for one in composite_object.check_linked(parsed, self.indexes)}
        return codes

    def answer(self) -> object:
        """Return the records or links that commands read from it."""
        match self.name.kind:
            case ObjectKind.DATA:
                parsed = data_object.parse(self.data)
                if composite_object.is_composite(self.data):
                    linked = composite_object.parse(self.data).linked()
                    return [(one, some.tobytes()) for one, some in linked]
                rows = range(len(parsed.entries))
                found = (data_object.entry_records(parsed, row)[0] for row in rows)
                return parsed.entries.tobytes(), [_records(one) for one in found]
            case ObjectKind.WAL:
                parts = wal_object.parse(self.data)
                return parts.header, _records(wal_object.records(parts).records)
            case ObjectKind.BLOCK_WAL:
                header = block_wal.parse(self.data).header
                return header and _records(block_wal.recover(self.data, header).records.records)
            case _:
                return self.data


def _records(found: StreamRecords) -> list[tuple[Any, ...]]:
    return [
        (one.stream_id, one.epoch, one.base_offset, one.count, one.payload)
        for one in map(found.record, range(len(found)))
    ]


def objects_of(state: Path) -> list[ObjectBytes]:
    """Return the objects of a bucket or of what AutoMQ's classes made, each content once."""
    folders = [state / "s3", state / "objects", *sorted((state / "wal").glob("*/"))]
    found = [
        ObjectBytes(one.path, one.name, one.path.read_bytes())
        for folder in folders
        if folder.is_dir()
        for bucket in open_all(folder)
        for one in (*bucket.objects.values(), *sum(bucket.wals.values(), ()), *bucket.others)
    ]
    indexes = {
        one.name.object_id: data_object.parse(one.data).entries
        for one in found
        if one.name.object_id is not None and not composite_object.is_composite(one.data)
    }
    found = [replace(one, indexes=indexes) for one in found]
    found += [
        ObjectBytes(path, ObjectName(key=path.name, kind=ObjectKind.BLOCK_WAL), path.read_bytes())
        for path in sorted((state / "block-wal").glob("*"))
    ]
    return list({(one.name.kind, hashlib.sha256(one.data).digest()): one for one in found}.values())


def is_free(one: ObjectBytes, position: int) -> bool:
    """Return whether nothing repeats a byte, and any value of it makes sense.

    The trim offset of a WAL object; ids and offsets of a range index, which is a hint; epoch and
    failover flag of a reservation; the bucket id of a link.
    """
    match one.name.kind:
        case ObjectKind.WAL:
            return 40 <= position < 48
        case ObjectKind.DATA:
            link = composite_object.LINK
            size = len(composite_object.parse(one.data).links) * link.itemsize
            behind = (position - 5) % link.itemsize
            return 5 <= position < 5 + size and behind >= link.itemsize - 2
        case kind:
            return kind is not ObjectKind.BLOCK_WAL


@dataclass
class Tally:
    """The results of one kind of damage to the objects of one kind."""

    tried: int = 0
    found: Counter[str] = field(default_factory=Counter)
    """Cases by the first of their codes."""
    equal: int = 0
    free: int = 0
    silent: list[str] = field(default_factory=list)
    """Cases without a finding whose answer is another one."""

    def take(self, one: ObjectBytes, data: bytes, position: int, answer: object) -> None:
        """Judge an object with other bytes; `answer` is that of the sound object."""
        self.tried += 1
        changed = one.holding(data)
        codes = changed.codes(blocks=False) or changed.codes()
        if codes:
            self.found[min(codes)] += 1
        elif changed.answer() == answer:
            self.equal += 1
        elif len(data) == one.size and is_free(one, position):
            self.free += 1
        else:
            self.silent.append(f"{one.name.key}, byte {position}")


def cut(one: ObjectBytes, tally: Tally, step: int = 1) -> None:
    """Cut an object at every `step`-th byte from its end on."""
    answer = one.answer()
    for size in range(one.size - 1, -1, -step):
        tally.take(one, one.data[:size], size, answer)


def places(one: ObjectBytes) -> list[int]:
    """Return the bytes that frame the records of an object.

    Index block and footer of a data object; of a block WAL both headers and a part of the ring; all
    of any other object.
    """
    footer = data_object.parse_footer(one.data)
    if one.name.kind is ObjectKind.DATA and footer:
        composite = footer.magic == composite_object.MAGIC
        return list(range(0 if composite else footer.index_position, one.size))
    if one.name.kind is ObjectKind.BLOCK_WAL:
        heads = [at + byte for at in (0, block_wal.BLOCK) for byte in range(56)]
        return heads + list(range(block_wal.RING_START, one.size, RING_STEP))
    return list(range(one.size))


def flip(one: ObjectBytes, tally: Tally, step: int = 1, bits: Sequence[int] = range(8)) -> None:
    """Flip bits of every `step`-th byte of the frame."""
    answer = one.answer()
    for position in places(one)[::step]:
        for bit in bits:
            changed = bytearray(one.data)
            changed[position] ^= 1 << bit
            tally.take(one, bytes(changed), position, answer)


def run_commands(home: Path, output: Path, tally: Counter[tuple[str, int]]) -> None:
    """Run every command on a bucket, and count the exit statuses."""
    for words in COMMANDS:
        shutil.rmtree(output, ignore_errors=True)
        given = words.format(output=output).split()
        with redirect_stdout(TextIOWrapper(BytesIO())), redirect_stderr(TextIOWrapper(BytesIO())):
            status = cli.run([*given, "-f", "ndjson", str(home / "s3"), str(home / "meta")])
        tally[given[0], status] += 1


def damaged_homes(home: Path, damages: int) -> Iterator[Path]:
    """Yield a bucket again and again: an object at a time cut, changed in one byte, or missing."""
    for one in objects_of(home):
        steps = [one.size * (2 * number + 1) // (2 * damages) for number in range(damages)]
        for position in steps:
            changed = bytearray(one.data)
            changed[position] ^= 0x81
            for content in (one.data[:position], bytes(changed)):
                one.path.write_bytes(content)
                yield home
        one.path.unlink()
        yield home
        one.path.write_bytes(one.data)


def _unpacked(name: str, home: Path) -> Path:
    with tarfile.open(DATA / f"{name}.tar.xz") as tar:
        tar.extractall(home, filter="tar")
    return home / name


def _row(title: str, tally: Tally) -> str:
    codes = ", ".join(f"{code} {count:,}" for code, count in sorted(tally.found.items()))
    numbers = (tally.tried, tally.found.total(), tally.equal, tally.free, len(tally.silent))
    return f"| {title} | " + " | ".join(f"{number:,}" for number in numbers) + f" | {codes} |"


Statuses = Counter[tuple[str, int]]


def sweep(state: str, step: int, damages: int) -> tuple[list[str], list[str], Statuses]:
    """Return the rows of a state, the silent cases, and the statuses of commands on the first."""
    rows, silent = [], []
    statuses: Statuses = Counter()
    with tempfile.TemporaryDirectory() as folder:
        home = _unpacked(state, Path(folder))
        kinds: dict[ObjectKind, list[ObjectBytes]] = {}
        for one in objects_of(home):
            kinds.setdefault(one.name.kind, []).append(one)
        for kind, some in kinds.items():
            for way, damage in (("cut", cut), ("bit", flip)):
                tally = Tally()
                for one in some:
                    damage(one, tally, step)
                rows.append(_row(f"{state} | {kind.value} | {len(some)} | {way}", tally))
                silent += tally.silent
        if state == STATES[0] and damages:
            for one_home in damaged_homes(home, damages):
                run_commands(one_home, Path(folder) / "output", statuses)
    return rows, silent, statuses


def main(arguments: Sequence[str]) -> int:
    """Try everything, write the report, and return 1 if something was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--step", type=int, default=1, help="try every STEP-th byte")
    parser.add_argument("--damages", type=int, default=1, help="damages of an object for commands")
    asked = parser.parse_args(arguments)
    work = partial(sweep, step=asked.step, damages=asked.damages)
    with ProcessPoolExecutor(2) as pool:
        parts = list(pool.map(work, (*STATES, "made")))
    rows = [row for part in parts for row in part[0]]
    silent = [case for part in parts for case in part[1]]
    statuses = parts[0][2]
    asked.report.write_text(_report(rows, silent, statuses, asked.step, asked.damages))
    bad = {status for _, status in statuses} - ALLOWED
    return int(bool(silent or bad))


def _report(
    rows: Sequence[str],
    silent: Sequence[str],
    statuses: Statuses,
    step: int,
    damages: int,
) -> str:
    every = "every" if step == 1 else f"every {step}th"
    lines = [
        "# Damaged objects of AutoMQ",
        "",
        f"`make automq-sweeps` made this page. Each object of tests/data/automq was cut at {every} "
        f"byte, and {every} bit that frames its records was flipped: index block and footer of a "
        "data object, all of a composite object, of a WAL object, a range index and a reservation, "
        f"both headers of a block WAL and every {RING_STEP}st byte of its ring. Objects with the "
        "same bytes count once.",
        "",
        "* **found**: `verify` has a finding.",
        "* **equal**: no finding, and all that is read from the object is the same as before: "
        "padding, and bytes that nothing reads.",
        "* **free**: a field that nothing in the object repeats: the trim offset of a WAL object, "
        "range indexes (a hint that no command needs), epoch and failover flag of a reservation, "
        "the bucket id of a link.",
        "* **silent**: no finding and another answer. There must be none.",
        "",
        "| state | object | number | damage | tried | found | equal | free | silent | findings |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |",
        *rows,
        "",
        "## Commands",
        "",
        f"Each object of {STATES[0]} was cut and changed at {damages} "
        f"{'place' if damages == 1 else 'places'}, and removed. "
        "Each time the commands below read bucket and metadata log. Status 70 would be a bug.",
        "",
        "| command | status 0 | 1 | 4 | other |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for command in dict.fromkeys(command for command, _ in statuses):
        counts = {status: n for (name, status), n in statuses.items() if name == command}
        other = sum(n for status, n in counts.items() if status not in ALLOWED)
        numbers = [counts.get(status, 0) for status in sorted(ALLOWED)] + [other]
        lines.append(f"| {command} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    if silent:
        lines += ["", "## Silent", "", *(f"* {one}" for one in silent[:100])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
