"""Seeded damage to some of three copies of a log, and the repair of each from the others.

Whole batches are removed, swapped, doubled or cut, at the beginning, inside and at the end of
segments, in one copy or in all but one. The repaired copy has every batch of the copy that is
whole, or the answer names what it lacks; `diff` proposes what `recover` does, and no command again
that had no effect. ``make fill-copies`` runs thousands of seeds.
"""

from __future__ import annotations

import random
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from logtool.actions import Action
from logtool.copies.verdict import CopiesVerdict
from logtool.diff import Diff
from logtool.errors import LogtoolError
from logtool.formats import record, record_batch
from logtool.log import opening
from logtool.log.inputs import NodeDir
from logtool.node.options import StartOptions
from logtool.startup.partition import PartitionForecast
from logtool.startup.recover import ApplyConsent, Recover

NAME = "t-0"
TOPIC_ID = "J8aAPcfLQt2bqs1JT_rMgQ"
WAYS = ("remove", "swap", "double", "cut", "end")
PLACES = ("beginning", "inside", "end")
Segments = dict[int, list[bytes]]
"""The batches of each segment, by base offset."""
Key = tuple[int, int, int]
"""First and last offset of a batch, and its CRC."""


@dataclass
class Case:
    """One seed, and what came of each damaged copy."""

    seed: int
    damage: dict[int, list[str]] = field(default_factory=dict)
    """The damage of each copy, in words."""
    whole: int = 0
    """Number of copies that got every batch back."""
    named: int = 0
    """Number of copies for which the answer names what they lack."""
    wrong: list[str] = field(default_factory=list)


def made(rng: random.Random) -> Segments:
    """Return a log of a few segments in one or two leader epochs."""
    segments: Segments = {}
    offset, epoch = 0, 0
    for _ in range(rng.randint(1, 3)):
        batches = segments.setdefault(offset, [])
        for _ in range(rng.randint(3, 7)):
            count = rng.randint(1, 3)
            batches.append(batch(offset, count, epoch, rng))
            offset += count
        epoch += rng.random() < 0.4
    return segments


def batch(offset: int, count: int, epoch: int, rng: random.Random) -> bytes:
    records = [record.Record(0, at, b"k", rng.randbytes(rng.randint(1, 30))) for at in range(count)]
    return record_batch.encode(
        record.encode(records), base_offset=offset, last_offset_delta=count - 1,
        record_count=count, leader_epoch=epoch, base_timestamp=1_700_000_000_000,
        max_timestamp=1_700_000_000_000,
    )  # fmt: skip


def write(home: Path, segments: Segments, end: int, point: int) -> None:
    """Write a log dir whose broker was killed; all offsets below `end` were acknowledged."""
    folder = home / NAME
    folder.mkdir(parents=True)
    epochs: dict[int, int] = {}
    for base, batches in segments.items():
        (folder / f"{base:020d}.log").write_bytes(b"".join(batches))
        for suffix in (".index", ".timeindex"):
            (folder / f"{base:020d}{suffix}").touch()
        for one in batches:
            offset, epoch = int.from_bytes(one[:8], "big"), int.from_bytes(one[12:16], "big")
            epochs[epoch] = min(offset, epochs.get(epoch, offset))
    rows = "".join(f"{epoch} {start}\n" for epoch, start in sorted(epochs.items()))
    (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{rows}")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    for name, offset in (
        ("replication-offset-checkpoint", end), ("recovery-point-offset-checkpoint", point),
        ("log-start-offset-checkpoint", 0),
    ):  # fmt: skip
        (home / name).write_text(f"0\n1\nt 0 {offset}\n")


def damage(home: Path, segments: Segments, rng: random.Random) -> str:
    """Damage one segment of a copy; returns how."""
    base = rng.choice(list(segments))
    batches = list(segments[base])
    way, place = rng.choice(WAYS), rng.choice(PLACES)
    last = len(batches) - 1
    at = {"beginning": 0, "inside": rng.randint(1, last - 1), "end": last}[place]
    text = f"segment {base}: {way} at batch {at} of {len(batches)}"
    if way == "remove":
        count = rng.randint(1, min(2, len(batches) - at))
        del batches[at : at + count]
    elif way == "swap":
        at = min(at, last - 1)
        batches[at], batches[at + 1] = batches[at + 1], batches[at]
    elif way == "double":
        batches.insert(at, batches[at])
    elif way == "cut":
        begin = rng.randrange(1, len(batches[at]) - 1)
        size = rng.randint(1, len(batches[at]) - begin)
        batches[at] = batches[at][:begin] + batches[at][begin + size :]
    else:
        batches = batches[: at + 1]
        batches[at] = batches[at][: rng.randrange(len(batches[at]))]
    (home / NAME / f"{base:020d}.log").write_bytes(b"".join(batches))
    return text


def keys(folder: Path) -> set[Key]:
    """Return the sound batches that readers of a log get: each behind the one before it."""
    found: set[Key] = set()
    end = -1
    for segment in opening.open_partition(folder).segments:
        for chunk in segment.batches(payload=False):
            if chunk.damage:
                break
            columns = (chunk.table.base_offset, chunk.table.last_offset, chunk.table.crc)
            for first, last, crc in zip(*(one.tolist() for one in columns), strict=True):
                if first > end:
                    found.add((first, last, crc))
                    end = last
    return found


def try_one(work: Path, seed: int) -> Case:
    """Make three copies, damage one or two of them, and repair each from the others."""
    rng = random.Random(seed)
    case = Case(seed)
    segments = made(rng)
    last = [one for batches in segments.values() for one in batches][-1]
    end = int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") + 1
    homes = [work / str(number) for number in (1, 2, 3)]
    for home in homes:
        write(home, segments, end, rng.choice((0, rng.randint(0, end), end)))
    wanted = keys(homes[0] / NAME)
    for number in rng.sample((1, 2, 3), rng.choice((1, 2))):
        times = rng.choice((1, 1, 2)) if len(segments) > 1 else 1
        case.damage[number] = [damage(homes[number - 1], segments, rng) for _ in range(times)]
    for number in case.damage:
        _repair(case, number, homes, wanted)
    return case


def _repair(case: Case, number: int, homes: Sequence[Path], wanted: set[Key]) -> None:
    """Repair one copy with the command of `diff`, or as if it had been proposed."""
    folder = homes[number - 1] / NAME
    before = keys(folder)
    proposed = _commands(homes, folder)
    others = [home / NAME for home in homes if home != folder.parent]
    actions, errors = _recover(folder, proposed[0] if proposed else others)
    now = keys(folder)
    fills = [one for one in actions if one.action == "fill"]
    named = bool(errors) or any(
        one.action in ("unfilled", "lacks") or one.loss or one.loss.bytes for one in actions
    )

    def wrong(text: str) -> None:
        case.wrong.append(f"copy {number} ({'; '.join(case.damage[number])}): {text}")

    if now >= wanted:
        case.whole += 1
    elif named:
        case.named += 1
    else:
        wrong(f"lacks {sorted(wanted - now)}, and the answer does not name it")
    if not now >= before:
        wrong(f"lost {sorted(before - now)}")
    # A copy that ends early is behind: its broker fetches what it lacks.
    inside = any(last < max(before)[1] for _, last, _ in wanted - before if before)
    if fills and inside and not proposed:
        wrong("diff proposes no command, but recover fills a range")
    if proposed and not fills:
        wrong("diff proposed a command that fills nothing")
    if proposed and proposed[0] in _commands(homes, folder):
        after, _ = _recover(folder, proposed[0])
        if not any(one.action == "fill" for one in after):
            wrong("diff proposes a command again that had no effect")


def _recover(folder: Path, others: Sequence[Path]) -> tuple[list[Action], list[str]]:
    """Recover a partition with other copies; returns its actions and its errors."""
    assumed = StartOptions(fill_from=tuple(others), cut_precisely=True)
    actions: list[Action] = []
    errors: list[str] = []
    job = Recover([folder], assumed, ApplyConsent(apply=True))
    for item in job:
        if isinstance(item, PartitionForecast):
            actions += item.actions
        elif isinstance(item, LogtoolError):
            errors.append(str(item))
    for path in job.undo_dirs:
        shutil.rmtree(path)
    return actions, errors


def _commands(homes: Sequence[Path], folder: Path) -> list[list[Path]]:
    """Return the copies from which the commands of `diff` fill one copy."""
    sources = [NodeDir(home, number) for number, home in enumerate(homes, 1)]
    found = []
    for verdict in Diff(sources):
        assert isinstance(verdict, CopiesVerdict), verdict
        for words in map(shlex.split, verdict.fixes):
            *_, path = words
            if Path(path) == folder:
                places = [words[at + 1] for at, word in enumerate(words) if word == "--fill-from"]
                found.append([Path(place) for place in places])
    return found


def run(work: Path, seeds: Sequence[int]) -> Iterator[Case]:
    """Try the seeds one by one."""
    for seed in seeds:
        case = try_one(work / str(seed), seed)
        shutil.rmtree(work / str(seed))
        yield case
