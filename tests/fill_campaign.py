"""Seeded damage to one copy of real partitions, and what a repair from the other copy makes of it.

The log comes back byte for byte, nothing is cut, and undo takes the repair back. ``make fill`` runs
it and writes the report.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from changes import everything
from damage import flip
from salvage_campaign import WAYS, campaign
from verification import batches, set_offsets, small_log_dir

from logtool.apply import Journal
from logtool.errors import LogtoolError
from logtool.node.options import StartOptions
from logtool.startup.recover import ApplyConsent, Recover

METADATA = "__cluster_metadata-0"
REPORT = Path(__file__).parent / "engine" / "salvage" / "FILLED.md"
_ALTERED = "an offset or an epoch"
_GONE, _ALL_GONE = "a log gone, its indexes left", "a segment gone"


@dataclass(slots=True)
class Case:
    """One partition with one damage, and what came of it."""

    scenario: str
    partition: str
    way: str
    filled: bool = False
    """True if the log is byte for byte that of the other copy."""
    as_without: bool = False
    """True if its logs are those that a recovery without another copy leaves."""
    in_part: bool = False
    """True if its logs are beginnings of the other copy's: the proved batches were taken."""
    why: str = (
        "nothing here shows that a segment is missing: it may as well be a copy that is behind"
    )
    """The reason, if it is not filled."""
    undone: bool = True
    """True if undo put everything back."""
    error: str | None = None

    @property
    def is_good(self) -> bool:
        """Return whether the log is whole or, where no trace of its end is left, right up to it."""
        traceless = self.way == _ALL_GONE and self.as_without and self.in_part
        return (self.filled or traceless) and self.undone


def logs(folder: Path) -> dict[str, bytes]:
    """Return the logs of a partition dir that hold anything, without preallocated zeros."""
    found = {path.name: path.read_bytes().rstrip(b"\0") for path in folder.glob("*.log")}
    return {name: data for name, data in found.items() if data}


def full_logs(folder: Path) -> list[Path]:
    """Return the logs of a partition dir that hold anything."""
    return [log for log in sorted(folder.glob("*.log")) if log.stat().st_size]


def damage(folder: Path, way: str, rng: random.Random) -> None:
    """Damage one log of a partition dir."""
    there = full_logs(folder)
    log = rng.choice(there[1:] if way == _ALL_GONE else there)
    if way == _ALTERED:
        data = log.read_bytes()
        starts = [int(at) for at in batches(log).position]
        at = rng.choice((starts[0], starts[-1], rng.choice(starts)))
        field = rng.randrange(8) if data[at + 16] < 2 else rng.choice((*range(8), 12, 13, 14, 15))
        log.write_bytes(flip(data, at + field, 1 << rng.randrange(8)))
    elif way in (_GONE, _ALL_GONE):
        for path in folder.glob(f"{log.stem}.*") if way == _ALL_GONE else [log]:
            path.unlink()
    else:
        log.write_bytes(WAYS[way](log.read_bytes(), rng)[0])


def ways_for(folder: Path) -> list[str]:
    """Return the ways to damage a partition."""
    more = [_GONE, _ALTERED]
    if len(logs(folder)) > 1 and "compact" not in folder.name and not folder.name.startswith("__"):
        more.append(_ALL_GONE)
    return [*WAYS, *more]


def try_one(source: Path, work: Path, seed: int) -> Case:
    """Damage one partition by a seed, repair it from the original, and undo that."""
    rng = random.Random(seed)
    way = rng.choice(ways_for(source))
    case = Case(scenario=source.parent.name, partition=source.name, way=way)
    home = small_log_dir(source.parent, work / "home", source.name)
    folder = home / source.name
    damage(folder, way, rng)
    then = everything(home)
    copy = small_log_dir(source.parent, work / "copy", source.name)
    # The other broker went on, and what it holds was acknowledged.
    end = 1 + max(int(batches(log).last_offset.max()) for log in full_logs(copy / source.name))
    topic, _, number = source.name.rpartition("-")
    set_offsets(copy / "replication-offset-checkpoint", {(topic, int(number)): end})
    job, case.error, why = recover(home, copy)
    case.why = why or case.why
    now = logs(folder)
    case.filled = now == logs(source)
    for undo_dir in job.undo_dirs:
        Journal.open(undo_dir).undo()
        case.undone = everything(home) == then
    if not case.filled:
        recover(home)
        case.as_without = now == logs(folder)
        wanted = logs(source)
        case.in_part = all(wanted.get(name, b"").startswith(data) for name, data in now.items())
    return case


def recover(home: Path, *fill_from: Path) -> tuple[Recover, str | None, str | None]:
    """Recover a log dir; returns the run, the first error, and why a range was not filled."""
    job = Recover([home], StartOptions(fill_from=fill_from), ApplyConsent(apply=True))
    items = list(job)
    errors = [str(one) for one in items if isinstance(one, LogtoolError)]
    actions = [action for one in items for action in getattr(one, "actions", ())]
    reasons = [one.reason for one in actions if one.action == "unfilled"]
    return job, next(iter(errors), None), next(iter(reasons), None)


def report(cases: Sequence[Case]) -> str:
    """Return the report."""
    lines = [
        "# Repair of damaged partitions from another copy",
        "",
        "`make fill` damages real partitions by a seed and repairs them with `recover --apply",
        "--fill-from`, an undamaged copy at hand. Filled: logs that are the other copy's, byte for",
        "byte; the other copy's high watermark is its end, as that of a broker that goes on. In",
        "part: logs that are the beginning of the other copy's. Left alone: logs that are as a",
        "recovery without another copy leaves them. Undone: directories that undo made what they",
        "were, with every byte and time.",
        "",
        "| scenario | damage | cases | filled | in part | left alone | undone |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.scenario, case.way), []).append(case)
    for (scenario, way), some in sorted(groups.items()):
        filled, undone = sum(c.filled for c in some), sum(c.undone for c in some)
        part = sum(not c.filled and c.in_part for c in some)
        left = sum(not c.filled and not c.in_part and c.as_without for c in some)
        figures = map(str, (len(some), filled, part, left, undone))
        lines.append(f"| {scenario} | {way} | {' | '.join(figures)} |")
    reasons = Counter((c.scenario, c.way, c.why) for c in cases if not c.filled)
    if reasons:
        lines += ["", "| scenario | damage | not filled | why |", "| --- | --- | ---: | --- |"]
    for (scenario, way, why), count in sorted(reasons.items()):
        lines.append(f"| {scenario} | {way} | {count} | {why} |")
    filled, wrong = sum(c.filled for c in cases), sum(not c.is_good for c in cases)
    lines += ["", f"{len(cases):,} cases: {filled:,} filled, {wrong} wrong."]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Run the campaign and write the report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        cases, target = campaign(arguments, REPORT, try_one, leave_out=METADATA)
    target.write_text(report(cases))
    return 0 if all(case.is_good for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
