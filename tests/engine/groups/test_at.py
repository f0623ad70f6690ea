"""Groups at a moment: the replay of the log up to the first later record, and nothing else."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from group_records import FIRST_MS, OffsetsLog

from logtool.groups.commits import parse_commit_key
from logtool.groups.loading import LoadedGroups, load
from logtool.log import opening
from logtool.log.control import markers
from logtool.log.records import records

Key = tuple[str, str, int]
FIXTURE = "4.3.1/running"


def loaded_at(home: Path, at_ms: int | None) -> LoadedGroups:
    return load(opening.open_partition(home), lambda _: None, at_ms=at_ms)


def committed(loaded: LoadedGroups) -> dict[Key, int]:
    slots = loaded.slots
    return {
        parse_commit_key(slots.key(slot)): int(slots.offset[slot])
        for slot in range(len(slots))
        if slots.live[slot]
    }


def by_hand(home: Path, at_ms: int) -> tuple[dict[Key, int], int]:
    """Replay a log record by record up to the first later one; return offsets and the end."""
    now: dict[Key, int] = {}
    pending: dict[int, dict[Key, int]] = {}
    for segment in opening.open_partition(home).segments:
        for chunk in segment.batches():
            table = chunk.table
            for row in range(len(table)):
                batch = table[row : row + 1]
                if batch.is_control[0]:
                    if batch.max_timestamp[0] > at_ms:
                        return now, int(batch.base_offset[0])
                    for _, producer_id, commits in markers(batch):
                        kept = pending.pop(producer_id, {})
                        now |= kept if commits else {}
                    continue
                (part,) = records(chunk, np.array([row]))
                for one in range(len(part.offset)):
                    if part.timestamp[one] > at_ms:
                        return now, int(part.offset[one])
                    key, value = part.key(one), part.value(one)
                    if key is None or key[:2] not in (b"\0\0", b"\0\1"):
                        continue
                    place = parse_commit_key(key)
                    producer_id = int(batch.producer_id[0])
                    if value is None:
                        now.pop(place, None)
                        for kept in pending.values():
                            kept.pop(place, None)
                    elif producer_id == -1:
                        now[place] = int.from_bytes(value[2:10], "big")
                    else:
                        of_producer = pending.setdefault(producer_id, {})
                        of_producer[place] = int.from_bytes(value[2:10], "big")
    return now, -1


def times(home: Path) -> list[int]:
    chunks = [c for s in opening.open_partition(home).segments for c in s.batches()]
    return sorted({one for chunk in chunks for one in chunk.table.max_timestamp.tolist()})


def test_every_moment_of_a_real_log_is_the_replay_up_to_its_offset(scenario: Any) -> None:
    home = scenario(FIXTURE) / "__consumer_offsets-0"
    moments = sorted({time + more for time in times(home) for more in (-1, 0)})
    assert len(moments) > 30
    states = []
    for at_ms in moments:
        loaded = loaded_at(home, at_ms)
        offsets, end = by_hand(home, at_ms)
        assert committed(loaded) == offsets, at_ms
        assert loaded.cut_at == (None if end == -1 else end), at_ms
        states.append(offsets)
    assert any(before.keys() - after.keys() for before, after in pairwise(states))
    assert states[-1] == committed(loaded_at(home, None))


def test_records_after_the_moment_do_not_count(tmp_path: Path) -> None:
    log = OffsetsLog()
    log.commit("g", "t", 0, 1)
    log.commit("g", "t", 0, 2, producer_id=7)
    log.commit("g", "t", 1, 3)
    log.end_transaction(7, commit=True)
    log.commit("g", "t", 1, None)
    home = log.write(tmp_path)
    one, two = ("g", "t", 0), ("g", "t", 1)
    expected = [{}, {one: 1}, {one: 1}, {one: 1, two: 3}, {one: 2, two: 3}, {one: 2}]
    found = [loaded_at(home, FIRST_MS - 1 + number) for number in range(6)]
    assert [committed(loaded) for loaded in found] == expected
    assert [loaded.cut_at for loaded in found] == [0, 1, 2, 3, 4, None]
    assert [loaded.missing for loaded in found] == [0] * 6


@pytest.mark.parametrize("removed", [1, 3])
def test_records_that_compaction_removed_are_counted(tmp_path: Path, removed: int) -> None:
    log = OffsetsLog()
    for offset in range(6):
        log.commit("g", "t", 0, offset)
    del log.batches[:removed]
    home = log.write(tmp_path)
    loaded = loaded_at(home, FIRST_MS + 4)
    assert (loaded.cut_at, loaded.missing) == (5, removed)
    assert loaded_at(home, FIRST_MS + 5).missing == 0
