"""Salvage of a log, whole and damaged: rows for `__main__.ROWS`.

The output of salvage is on the disk when salvage ends; verify writes nothing. So the comparison is
with verify plus a durable copy of the same bytes by the system. The note has the ratio to verify
alone, and the ratio of the copy to verify: the copy alone takes longer than twice the time of
verify.
"""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from bench.generate import MIB, Spec
from bench.measure import Timing, spread, timed
from bench.rows import SIZES, Bar, Bench, Row, seconds

from logtool.errors import LogtoolError
from logtool.repair.output import OutputDir
from logtool.repair.salvage import Salvage
from logtool.verify import Verification

_PLACES = 8
"""Damaged places."""


def salvage(bench: Bench) -> Iterator[Row]:
    """Time salvage against verify and a durable copy."""
    for name, size in SIZES.items():
        for damaged in (False, True):
            yield _row(bench, name, size, damaged=damaged)


def _row(bench: Bench, name: str, size: int, *, damaged: bool) -> Row:
    work = bench.home / "salvage"
    shutil.rmtree(work, ignore_errors=True)
    source = work / "home" / "bench-0"
    shutil.copytree(bench.directory(Spec(size, bench.total // 4)), source)
    if damaged:
        _damage(source)
    ours: list[float] = []
    alone: list[float] = []
    copied: list[float] = []
    for number in range(bench.count + 1):
        took = (
            timed(lambda: _salvage(source, work / "saved")),
            timed(lambda: list(Verification([source]))),
            timed(lambda: _copy(source, work / "copy")),
        )
        for values, value in zip((ours, alone, copied), took, strict=True):
            values += [value] if number else []  # the first makes the page cache warm
        shutil.rmtree(work / "saved")
        shutil.rmtree(work / "copy")
    shutil.rmtree(work)
    both = [one + other for one, other in zip(alone, copied, strict=True)]
    timing = Timing(ours, both)
    ratio = spread(Timing(ours, alone).ratios)[0]
    bare = spread(Timing(alone, copied).ratios)[0]
    note = f"{seconds(timing)}, {bench.total / 4 / MIB:.0f} MiB; against verify alone {ratio:.2f}, "
    note += f"where the durable copy alone takes {bare:.1f} times as long as verify"
    what = f"{_PLACES} damaged places, " if damaged else ""
    title = f"salvage, {what}batches of {name}, against verify and a copy made durable"
    return Row(title, timing.ratios, Bar(0.5), note=note, timing=timing)


def _damage(source: Path) -> None:
    rng = random.Random(3)
    for log in source.glob("*.log"):
        with log.open("r+b") as file:
            for _ in range(_PLACES):
                file.seek(rng.randrange(log.stat().st_size - 3))
                file.write(b"\x55\xaa\x12")


def _salvage(source: Path, output: Path) -> None:
    for one in Salvage(paths=[source], output=OutputDir(output)):
        if isinstance(one, LogtoolError):
            raise one


def _copy(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.iterdir():
        with path.open("rb") as file, (target / path.name).open("xb") as copy:
            left = path.stat().st_size
            while left:
                left -= os.copy_file_range(file.fileno(), copy.fileno(), left)
            os.fsync(copy.fileno())


ROWS = {"salvage": salvage}
