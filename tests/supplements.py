"""Comparison of a recovery that supplements with one that rebuilds, row by row.

The two need not write the same bytes. What must be equal is the log, what its readers find, and the
state that a broker goes on with.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from verification import verify

from logtool.formats import offset_checkpoint, time_index, transaction_index
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind, FileKind, parse_partition_file
from logtool.loading.loader import load
from logtool.loading.producers import decode
from logtool.loading.result import LoadResult, Outcome, StartConditions
from logtool.loading.shadow import Shadow
from logtool.loading.supplement import supplement
from logtool.log import opening
from logtool.log.producer_state import Producer

_DENSE = {"index.dense": 64}
"""Topics with an ``index.interval.bytes`` of their own."""


def rows(home: Path, kind: FileKind) -> dict[tuple[str, int], int]:
    """Return the rows of an offset checkpoint, none without the file."""
    file = home / kind.value
    if not file.exists() or not file.stat().st_size:
        return {}
    found = offset_checkpoint.parse(file.read_bytes()).rows
    return {(row.topic, row.partition): row.offset for row in found}


def unclean_starts(home: Path) -> Iterator[tuple[Path, StartConditions]]:
    """Yield the partitions of a log dir, each as it would start after a crash."""
    points = rows(home, FileKind.RECOVERY_POINT_CHECKPOINT)
    starts = rows(home, FileKind.LOG_START_CHECKPOINT)
    for path, directory in opening.open_log_dir(home).partitions:
        if directory.topic == CLUSTER_METADATA or directory.kind is not DirectoryKind.LIVE:
            continue
        key = directory.topic, directory.partition
        yield path, StartConditions(
            False, points.get(key, 0), starts.get(key, 0),
            now_ms=int(path.stat().st_mtime * 1000),
            index_interval=_DENSE.get(directory.topic, 4096),
        )  # fmt: skip


def write_out(shadow: Shadow, target: Path) -> Path:
    """Write the files of a shadow into a new directory."""
    target.mkdir(parents=True)
    for name in shadow:
        (target / name).write_bytes(shadow.files[name].read())
    return target


def both(path: Path, start: StartConditions) -> tuple[LoadResult, LoadResult]:
    """Return the results of rebuilding and of supplementing a partition.

    Where flushed data is gone, nothing counts as flushed for the supplement.
    """
    rebuilt, mine = (
        load(opening.open_partition(path), start),
        supplement(opening.open_partition(path), start),
    )
    if rebuilt.outcome is Outcome.LOADS and start.recovery_point > rebuilt.log_end:
        start = dataclasses.replace(start, recovery_point=0)
        rebuilt = load(opening.open_partition(path), start)
        rebuilt.recovery_point = mine.recovery_point
    return rebuilt, mine


def differences(
    path: Path, rebuilt: LoadResult, mine: LoadResult, *, producers: bool = True
) -> list[str]:
    """Return where the two may not differ and do; with `producers` also in what they left."""
    wrong = [
        f"{name}: {getattr(rebuilt, name)} rebuilt, {getattr(mine, name)} supplemented"
        for name in ("log_start", "log_end", "recovery_point", "epochs")
        if getattr(rebuilt, name) != getattr(mine, name)
    ]
    recovered = {one.base_offset for one in rebuilt.recovered}
    for name in sorted({*rebuilt.shadow, *mine.shadow}):
        if name.startswith("leader-epoch") or name not in rebuilt.shadow:
            continue
        here, there = (one.shadow.files.get(name) for one in (mine, rebuilt))
        a, b = here.read() if here else b"", there.read() if there else b""
        parsed = parse_partition_file(name)
        if parsed.kind is FileKind.LOG and (here is None or a != b):
            wrong.append(f"{name} differs")
        elif (
            parsed.kind is FileKind.TIME_INDEX and parsed.offset in recovered and a[-12:] != b[-12:]
        ):
            wrong.append(f"{name}: the last entry differs")
        elif parsed.kind is FileKind.TRANSACTION_INDEX and parsed.offset in recovered:
            wrong += _aborts(name, a, b, path, producers)
    name = f"{rebuilt.log_end:020}.snapshot"
    if (name in rebuilt.shadow) != (name in mine.shadow):
        wrong.append(f"only one has {name}")
    elif producers and name in mine.shadow and snapshot(mine) != snapshot(rebuilt):
        wrong.append(f"{name}: {snapshot(rebuilt)} rebuilt, {snapshot(mine)} supplemented")
    return wrong


def _aborts(name: str, mine: bytes, rebuilt: bytes, path: Path, producers: bool) -> Iterator[str]:
    """Yield the differences in a transaction index; the kept part may know more."""
    size = transaction_index.ENTRY_SIZE
    there = [file for file in (path / f"{name}.swap", path / name) if file.exists()]
    before = there[0].read_bytes() if there else b""
    kept, at = 0, {mine[i : i + size] for i in range(0, len(mine), size)}
    while kept < len(mine) and mine[kept : kept + size] == before[kept : kept + size]:
        kept += size
    for i in range(0, len(rebuilt), size):
        entry = rebuilt[i : i + size]
        if entry not in at and entry[18:26] not in {one[18:26] for one in at}:
            yield f"{name} lacks entry {i // size}"
    for i in range(kept, len(mine) if producers else 0, size):
        if mine[i : i + size] not in rebuilt:
            yield f"{name}: entry {i // size} is not that of a rebuilt index"


def snapshot(loaded: LoadResult) -> dict[int, Producer] | None:
    """Return the entries of the snapshot at the log end, without times."""
    found = decode(loaded.shadow.files[f"{loaded.log_end:020}.snapshot"].read())
    return found and {key: dataclasses.replace(one, timestamp=0) for key, one in found.items()}


def last_time(loaded: LoadResult, base_offset: int) -> tuple[int, int]:
    """Return (timestamp, offset) of the last entry of a time index."""
    index = time_index.parse(loaded.shadow.files[f"{base_offset:020}.timeindex"].read())
    return int(index.timestamps[-1]), int(index.offsets(base_offset)[-1])


def new_findings(path: Path, rebuilt: LoadResult, mine: LoadResult, work: Path) -> set[str]:
    """Return the errors and warnings of verify that only the supplemented partition has."""

    def messages(directory: Path) -> set[str]:
        found = verify(directory).findings
        return {
            f"{one.code} {one.path and one.path.name}" for one in found if one.severity != "info"
        }

    results = [write_out(one.shadow, work / kind / path.name)
               for kind, one in (("rebuilt", rebuilt), ("mine", mine))]  # fmt: skip
    return messages(results[1]) - messages(results[0]) - messages(path)


def changed_again(path: Path, start: StartConditions) -> list[str]:
    """Return the changes of a second supplement to the files of the first one.

    A broker too drops epochs at each start that its last start left: those at the log end, say.
    """

    def changes(loaded: LoadResult) -> set[str]:
        return {f"{change.kind} {change.path.name}" for change in loaded.shadow.changes()}

    again = changes(supplement(opening.open_partition(path), start))
    if "replace leader-epoch-checkpoint" in again:
        again -= changes(load(opening.open_partition(path), start))
    return sorted(again)
