"""The loading of logs against what real brokers left after it: killed, torn, and started again."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from log_dir_damage import marker, new_batch

from logtool.formats import (
    control_record,
    offset_checkpoint,
    producer_snapshot,
    record,
    record_batch,
)
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.formats.record_batch import TRANSACTIONAL
from logtool.loading.loader import load
from logtool.loading.producers import decode
from logtool.loading.result import LoadResult, Outcome, StartConditions
from logtool.log import opening
from logtool.log.walk import scanner

Scenario = Callable[[str], Path]
_VERSIONS = ("4.3.1", "3.9.2")
_DENSE = {"index.dense": 0}
"""Topics with an ``index.interval.bytes`` of their own."""


def _rows(home: Path, kind: FileKind) -> dict[tuple[str, int], int]:
    file = home / kind.value
    rows = offset_checkpoint.parse(file.read_bytes()).rows if file.exists() else ()
    return {(row.topic, row.partition): row.offset for row in rows}


def load_dir(home: Path) -> dict[str, LoadResult]:
    """Load every log of a log dir as a broker would, at the time when it was left."""
    points = _rows(home, FileKind.RECOVERY_POINT_CHECKPOINT)
    starts = _rows(home, FileKind.LOG_START_CHECKPOINT)
    found = opening.open_log_dir(home)
    loaded = {}
    for path, directory in found.partitions:
        if directory.topic == CLUSTER_METADATA:
            continue
        key = directory.topic, directory.partition
        start = StartConditions(
            found.is_clean, points.get(key, 0), starts.get(key, 0),
            now_ms=int(path.stat().st_mtime * 1000),
            index_interval=_DENSE.get(directory.topic, 4096),
        )  # fmt: skip
        loaded[path.name] = load(opening.open_partition(path), start)
    return loaded


def differences(loaded: LoadResult, home: Path) -> list[str]:
    """Return the differences between the shadow and the files of a broker, padding aside.

    The broker of a fixture went on: it stopped in order, or was given new epochs.
    """
    there = {f.name for f in home.iterdir() if f.is_file() and f.suffix != ".deleted"}
    names = (there | set(loaded.shadow)) - {"partition.metadata", "leader-epoch-checkpoint"}
    wrong = []
    for name in sorted(names):
        if name not in there or name not in loaded.shadow:
            wrong.append(f"{name} is {'missing' if name in there else 'too much'}")
            continue
        mine, theirs = loaded.shadow.files[name].read(), (home / name).read_bytes()
        if mine.rstrip(b"\0") != theirs.rstrip(b"\0"):
            wrong.append(f"{name} differs")
    return wrong


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("state", ["killed", "torn"])
def test_a_killed_log_dir_is_loaded_as_the_broker_did(
    scenario: Scenario, version: str, state: str
) -> None:
    after = scenario(f"{version}/{state}-recovered")
    loaded = load_dir(scenario(f"{version}/{state}"))
    assert [one.reason for one in loaded.values() if one.outcome is not Outcome.LOADS] == []
    wrong = {name: differences(one, after / name) for name, one in loaded.items()}
    assert {name: found for name, found in wrong.items() if found} == {}
    assert any(one.recovered for one in loaded.values())


@pytest.mark.parametrize("version", _VERSIONS)
def test_a_log_dir_that_was_stopped_in_order_stays_as_it_is(
    scenario: Scenario, version: str
) -> None:
    loaded = load_dir(scenario(f"{version}/clean"))
    changed = {
        (str(change.kind), change.path.suffix or change.path.name)
        for name, one in loaded.items()
        if not name.endswith("-delete")
        for change in one.shadow.changes()
    }
    # An epoch that begins at the end of the log has no batch yet, and goes; of the snapshots at no
    # segment's base only the newest stays.
    assert changed <= {("replace", "leader-epoch-checkpoint"), ("remove", ".snapshot"),
                       ("remove", ".deleted")}  # fmt: skip
    assert all(not one.recovered for one in loaded.values())


def _batch(offset: int, attributes: int, key: bytes | None, value: bytes) -> bytes:
    """Return a batch of one record of producer 7."""
    return record_batch.encode(
        record.encode([record.Record(0, 0, key, value)]), base_offset=offset,
        last_offset_delta=0, record_count=1, attributes=attributes, leader_epoch=0,
        base_timestamp=1, max_timestamp=1, producer_id=7, producer_epoch=0, base_sequence=offset,
    )  # fmt: skip


@pytest.mark.parametrize("rows", [1, 2, 3, scanner.MOST_ROWS])
@pytest.mark.parametrize("clean", [True, False])
def test_a_start_fails_for_the_first_reason_in_the_log_however_much_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, clean: bool
) -> None:
    monkeypatch.setattr(scanner, "MOST_ROWS", rows)
    begins = _batch(0, TRANSACTIONAL, None, b"")
    faults = {
        "plain batch of producer 7 in its open transaction at offset": (0, None, b""),
        "end-transaction marker value is 3 bytes": (0x30, b"\0\0\0\1", b"\0\0\0"),
        "control record of type 5 of producer 7 at offset": (0x30, b"\0\0\0\5", b""),
    }
    for number, order in enumerate(permutations(faults)):
        home = tmp_path / str(number) / "topic-0"
        home.mkdir(parents=True)
        batches = [begins, *(_batch(1 + at, *faults[text]) for at, text in enumerate(order))]
        (home / f"{0:020d}.log").write_bytes(b"".join(batches))
        loaded = load(opening.open_partition(home), StartConditions(clean, now_ms=1))
        assert loaded.outcome is not Outcome.LOADS
        assert order[0] in loaded.reason


@pytest.mark.parametrize(
    ("kafka", "order"), [((4, 3), [16, 0, 32, 1, 9]), ((3, 3), [0, 16, 32, 1, 9])]
)
def test_a_snapshot_has_the_producers_in_the_order_of_the_release(tmp_path, kafka, order):
    home = tmp_path / "t-0"
    home.mkdir()
    batches = [
        new_batch(offset, b"x", producer_id=producer, producer_epoch=0, base_sequence=0)
        for offset, producer in enumerate((9, 16, 0, 1, 32))
    ]
    (home / f"{0:020d}.log").write_bytes(b"".join(batches))
    loaded = load(
        opening.open_partition(home), StartConditions(clean=False, kafka=kafka, expiration_ms=2**62)
    )
    found = decode(loaded.shadow.files[f"{5:020d}.snapshot"].read())
    assert list(found) == order


@pytest.mark.parametrize("clean", [True, False])
def test_a_producer_has_the_time_of_the_control_record_and_a_sequence_below_0(tmp_path, clean):
    home = tmp_path / "t-0"
    home.mkdir()
    key, value = control_record.encode_end_transaction(commit=True, coordinator_epoch=3)
    of_producer = {"producer_id": 9000, "producer_epoch": 0, "attributes": TRANSACTIONAL}
    first = new_batch(0, b"x", base_sequence=-(2**31), **of_producer)
    (home / f"{0:020d}.log").write_bytes(first + marker(1, key, value, max_timestamp=2**41))
    if clean:
        empty = producer_snapshot.build(np.empty(0, producer_snapshot.ENTRY))
        (home / f"{1:020d}.snapshot").write_bytes(producer_snapshot.encode(empty))
        for suffix in ("index", "timeindex"):
            (home / f"{0:020d}.{suffix}").write_bytes(b"")
    start = StartConditions(clean=clean, recovery_point=2 * clean, expiration_ms=2**62)
    loaded = load(opening.open_partition(home), start)
    (found,) = (decode(loaded.shadow.files[f"{2:020d}.snapshot"].read()) or {}).values()
    assert (found.timestamp, found.coordinator_epoch) == (1_700_000_000_000, 3)
    assert found.last_sequence == (-1 if clean else -(2**31))
