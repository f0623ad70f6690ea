"""Segments whose batches contradict producer snapshots that are right."""

import os

import pytest
from swapped import (
    END,
    SIZE,
    START_MS,
    batch,
    path_of,
    snapshot,
    swap,
    write_node,
)

from logtool.findings import Finding, Remedy
from logtool.log.selection import Selection
from logtool.running.remedies import Remedies
from logtool.verify import Verification

CODE, MISMATCH = "segment/other-partition", "producer-snapshot/mismatch"


@pytest.fixture
def node(tmp_path):
    """Return a function that writes a log dir whose snapshots are as old as their batches."""

    def written(labels=0, tickets=1, **options):
        home = tmp_path / "data"
        return write_node(home, {"labels-0": labels, "tickets-0": tickets}, **options)

    return written


def aged(home):
    for path in home.rglob("*.*"):
        os.utime(path, (START_MS / 1000 + 60,) * 2)
    os.utime(home / ".kafka_cleanshutdown", (START_MS / 1000 + 60,) * 2)
    return home


def findings(home):
    found = list(Verification([aged(home)]))
    assert all(isinstance(one, Finding) for one in found), found
    return [one for one in found if one.code.startswith(("segment/", "producer-", "batch/"))]


def doubtful(home):
    return [
        (f"{one.topic}-{one.partition}", one.segment) for one in findings(home) if one.code == CODE
    ]


def commands(found, home):
    remedies = Remedies([home], Selection())
    for one in found:
        remedies.add(one)
    return [one.command for one in remedies.counts()]


def test_an_undamaged_log_has_no_such_finding(node):
    assert findings(node()) == []


@pytest.mark.parametrize("base", range(0, END, SIZE))
def test_a_swapped_segment_is_one_error_and_nothing_is_rebuilt(node, base):
    home = node()
    swap(home, "labels-0", "tickets-0", base)
    found = findings(home)
    places = [
        (one.code, one.topic, one.segment, one.first_offset, one.last_offset) for one in found
    ]
    assert places == [
        (CODE, topic, base, base, base + SIZE - 1) for topic in ("labels", "tickets")
    ]  # fmt: skip
    assert {one.remedy for one in found} == {Remedy.REPLICA}
    assert {one.next for one in found} == {f"logtool verify --wrong-topic {home}"}
    folders = f"{home / 'labels-0'} {home / 'tickets-0'}"
    assert commands(found, home) == [f"logtool recover --fill-from COPY {folders}"]


def test_two_swapped_segments_are_found(node):
    home = node()
    for base in (SIZE, 2 * SIZE):
        swap(home, "labels-0", "tickets-0", base)
    assert doubtful(home)[:2] == [("labels-0", SIZE), ("labels-0", 2 * SIZE)]


@pytest.mark.parametrize("base", range(0, END, SIZE))
def test_a_swap_of_segments_of_one_producer_is_found_by_its_sequences(node, base):
    home = node(0, 0, ahead={"tickets-0": 1_000})
    swap(home, "labels-0", "tickets-0", base)
    assert doubtful(home) == [("labels-0", base), ("tickets-0", base)]


@pytest.mark.parametrize("base", [SIZE, END - SIZE])
def test_a_segment_without_producers_in_place_of_one_with_is_found(node, base):
    home = node(0, -1)
    swap(home, "labels-0", "tickets-0", base)
    # In the other one no snapshot names a batch. That a producer is missing shows nothing.
    assert doubtful(home) == [("labels-0", base)]


def test_empty_snapshots_put_no_segment_in_doubt(node):
    """A start writes them where they are missing, and producers expire."""
    home = node()
    for path in home.glob("*-0/*.snapshot"):
        path.write_bytes(snapshot({}))
    assert doubtful(home) == []


@pytest.mark.parametrize("end", range(SIZE, END + SIZE, SIZE))
def test_a_stale_snapshot_can_be_rebuilt(node, end):
    home = node()
    older = (
        snapshot({})
        if end == SIZE
        else path_of(home, "labels-0", end - SIZE, ".snapshot").read_bytes()
    )
    path_of(home, "labels-0", end, ".snapshot").write_bytes(older)
    found = findings(home)
    assert [(one.code, one.remedy) for one in found] == [(MISMATCH, Remedy.RECOVER)]
    assert commands(found, home) == [f"logtool recover --full {home / 'labels-0'}"]


@pytest.mark.parametrize("end", range(2 * SIZE, END + SIZE, SIZE))
def test_a_snapshot_of_another_partition_can_be_rebuilt(node, end):
    home = node()
    other = path_of(home, "tickets-0", end, ".snapshot").read_bytes()
    path_of(home, "labels-0", end, ".snapshot").write_bytes(other)
    assert [(one.code, one.remedy) for one in findings(home)] == [(MISMATCH, Remedy.RECOVER)]


@pytest.mark.parametrize("entry", [(2 * SIZE - 1, 7), (SIZE + 4, SIZE + 4), (SIZE - 1, SIZE - 1)])
def test_a_changed_entry_can_be_rebuilt(node, entry):
    home = node()
    path_of(home, "labels-0", 2 * SIZE, ".snapshot").write_bytes(snapshot({0: entry}))
    assert [(one.code, one.remedy) for one in findings(home)] == [(MISMATCH, Remedy.RECOVER)]


def test_a_partition_in_doubt_is_left_out_of_the_recovery_of_others(node):
    home = node()
    swap(home, "labels-0", "tickets-0", SIZE)
    path_of(home, "tickets-0", SIZE).write_bytes(
        b"".join(batch(1, at, at, text="tickets-0") for at in range(SIZE, 2 * SIZE, 2))
    )
    path_of(home, "tickets-0", END, ".snapshot").write_bytes(snapshot({}))
    path_of(home, "labels-0", END, ".timeindex").unlink(missing_ok=True)
    found = findings(home)
    assert {(one.code, one.topic) for one in found} == {(CODE, "labels"), (MISMATCH, "tickets")}
    assert commands(found, home) == [
        f"logtool recover --full {home / 'tickets-0'}",
        f"logtool recover --fill-from COPY {home / 'labels-0'}",
    ]  # fmt: skip
