"""Batches that compaction took from another copy: the keys that prove it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from group_records import OffsetsLog
from verification import has_numbers

from logtool.copies.sources import ListedCopy, find
from logtool.dirs.directories import candidates
from logtool.dirs.proof import Proof, prove
from logtool.formats import record, record_batch
from logtool.formats.record_batch import DELETE_HORIZON
from logtool.log.selection import Selection
from logtool.running.run import Run

ID = "bG9ndG9vbC10b3BpYy0tMQ"


def copy(home: Path, batches: list[bytes], cleaned: int | None = None) -> Path:
    """Write a copy of a partition into a log dir, compacted below an offset."""
    path = home / "topic-0"
    path.mkdir(parents=True)
    (path / f"{0:020d}.log").write_bytes(b"".join(batches))
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}\n")
    (home / "meta.properties").write_text("version=1\nnode.id=1\n")
    if cleaned is not None:
        text = f"0\n1\ntopic 0 {cleaned}\n"
        (home / "cleaner-offset-checkpoint").write_text(text)
    return path


def proof(path: Path, *homes: Path) -> Proof:
    """Return whether a copy may be deleted among others."""
    (target,) = find(path, None, Selection())
    assert isinstance(target, ListedCopy)
    others = [one for one in candidates(target, homes) if not isinstance(one, Exception)]
    (found,) = prove(target, others, Run())
    assert isinstance(found, Proof)
    return found


def only(found: Proof) -> list[tuple[int, int | None]]:
    return [(one.first_offset, one.last_offset) for one in found.only]


def plain(*records: tuple[str, str | None]) -> OffsetsLog:
    log = OffsetsLog()
    for key, value in records:
        log.raw(key.encode(), None if value is None else value.encode())
    return log


CASES: dict[str, tuple[tuple[tuple[str, str | None], ...], tuple[int, ...], int, list[int]]] = {
    # what this copy has, which offsets the other has, cleaned up to, what only this copy has
    "a later record of the key": ((("a", "1"), ("a", "2")), (1,), 1, []),
    "the last record is gone": ((("a", "1"), ("b", "1"), ("a", "2")), (0, 1), 3, [2]),
    "one key of two": ((("a", "1"), ("b", "1"), ("a", "2")), (2,), 3, [1]),
    "an empty key is a key": ((("", "1"), ("a", "1"), ("", "2")), (1, 2), 3, []),
    "a deletion that is done": ((("a", "1"), ("a", None), ("b", "1")), (2,), 2, []),
    "a deletion where no cleaner ran": ((("a", "1"), ("a", None), ("b", "1")), (2,), 1, [1]),
    "a deletion that is lost": ((("a", "1"), ("a", None), ("b", "1")), (0, 2), 3, [1]),
    "a value that is not deleted here": ((("a", "1"), ("b", "1")), (1,), 2, [0]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_last_record_of_each_key_decides(tmp_path: Path, name: str) -> None:
    records, kept, cleaned, lost = CASES[name]
    log = plain(*records)
    own = copy(tmp_path / "own", log.batches)
    copy(tmp_path / "other", [log.batches[offset] for offset in kept], cleaned)
    found = proof(own, tmp_path / "other")
    assert only(found) == [(offset, offset) for offset in lost]
    assert found.may_delete is not bool(lost)


def test_records_behind_the_end_of_the_other_copy_are_only_here(tmp_path: Path) -> None:
    log = plain(("a", "1"), ("a", "2"), ("a", "3"))
    own = copy(tmp_path / "own", log.batches)
    copy(tmp_path / "other", log.batches[1:2], 1)
    assert only(proof(own, tmp_path / "other")) == [(2, 2)]


def test_nothing_is_taken_for_compacted_that_shows_no_sign_of_it(tmp_path: Path) -> None:
    log = plain(("a", "1"), ("a", "2"))
    own = copy(tmp_path / "own", log.batches)
    copy(tmp_path / "other", log.batches[1:])
    found = proof(own, tmp_path / "other")
    assert only(found) == [(0, 0)]
    assert found.replaced is None


def rewritten(values: dict[int, str], *, horizon: bool = False) -> bytes:
    """Return one batch of offsets 0 to 2 with the records that are left of it."""
    records = [record.Record(n, key=b"%d" % n, value=v.encode()) for n, v in values.items()]
    return record_batch.encode(
        record.encode(records), base_offset=0, last_offset_delta=2, record_count=len(records),
        leader_epoch=0, base_timestamp=1, max_timestamp=1,
        attributes=DELETE_HORIZON if horizon else 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("left", "lost"),
    [({0: "x", 1: "y", 2: "z"}, False), ({0: "x", 2: "z"}, True), ({0: "x", 1: "?", 2: "z"}, True)],
)
def test_what_a_rewritten_batch_holds_must_be_the_same(
    tmp_path: Path, left: dict[int, str], lost: bool
) -> None:
    own = copy(tmp_path / "own", [rewritten({0: "x", 1: "y", 2: "z"})])
    copy(tmp_path / "other", [rewritten(left, horizon=True)], 3)
    found = proof(own, tmp_path / "other")
    assert only(found) == ([(0, 2)] if lost else [])
    if lost:
        assert has_numbers(found.only[0].reason, 1, 1)


def transactions() -> OffsetsLog:
    """A value, one aborted after it, and one committed for another key."""
    log = OffsetsLog()
    log.raw(b"a", b"1")  # 0
    log.raw(b"a", b"aborted", producer_id=7)  # 1
    log.raw(b"b", b"1", producer_id=8)  # 2
    log.end_transaction(7, commit=False)  # 3
    log.end_transaction(8, commit=True)  # 4
    log.raw(b"b", b"2")  # 5
    return log


TRANSACTIONS: dict[str, tuple[tuple[int, ...], list[tuple[int, int]]]] = {
    "all but what was aborted": ((0, 2, 4, 5), []),
    "the last of each": ((0, 5), []),
    "an aborted one replaces nothing": ((1, 3, 4, 5), [(0, 0)]),
    "an aborted one without its marker": ((0, 1, 2, 4, 5), [(3, 3)]),
    "a committed one without its marker": ((0, 2, 5), [(4, 4)]),
    "a marker whose records are gone": ((0, 4, 5), []),
}


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_transactions_count_as_they_ended(tmp_path: Path, name: str) -> None:
    kept, lost = TRANSACTIONS[name]
    log = transactions()
    own = copy(tmp_path / "own", log.batches)
    copy(tmp_path / "other", [log.batches[offset] for offset in kept], 5)
    assert only(proof(own, tmp_path / "other")) == lost


def test_what_belongs_to_an_open_transaction_must_be_held(tmp_path: Path) -> None:
    log = OffsetsLog()
    log.raw(b"a", b"1", producer_id=7)
    log.raw(b"a", b"2")
    own = copy(tmp_path / "own", log.batches)
    copy(tmp_path / "other", log.batches[1:], 1)
    found = proof(own, tmp_path / "other")
    assert only(found) == [(0, 0)]
    assert "marker" in found.only[0].reason


def spoilt(batch: bytes) -> bytes:
    """Return a batch whose records do not decode, with the right CRC."""
    return record_batch.encode(
        b"\xff" * 40, base_offset=int.from_bytes(batch[:8], "big"), last_offset_delta=0,
        record_count=1, leader_epoch=0, base_timestamp=1, max_timestamp=1,
    )  # fmt: skip


def nameless(batch: bytes) -> bytes:
    """Return a batch with a record that has no key."""
    return record_batch.encode(
        record.encode([record.Record(0, value=b"x")]),
        base_offset=int.from_bytes(batch[:8], "big"), last_offset_delta=0, record_count=1,
        leader_epoch=0, base_timestamp=1, max_timestamp=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("own_damage", "other_damage", "reason"),
    [
        (spoilt, None, "its records cannot be read"),
        (nameless, None, "without a key"),
        (None, spoilt, "was compacted, and cannot be read at offset 1"),
        (None, nameless, ""),
    ],
)
def test_what_cannot_be_read_or_has_no_key_proves_nothing(
    tmp_path: Path,
    own_damage: Callable[[bytes], bytes] | None,
    other_damage: Callable[[bytes], bytes] | None,
    reason: str,
) -> None:
    log = plain(("a", "1"), ("b", "1"), ("a", "2"))
    mine, theirs = list(log.batches), log.batches[1:]
    if own_damage:
        mine[0] = own_damage(mine[0])
    if other_damage:
        theirs[0] = other_damage(theirs[0])
        mine[1] = theirs[0]
    own = copy(tmp_path / "own", mine)
    copy(tmp_path / "other", theirs, 2)
    found = proof(own, tmp_path / "other")
    assert only(found) == ([(0, 0)] if reason else [])
    assert reason in "".join(one.reason for one in found.only)


def test_copies_that_diverge_prove_nothing(tmp_path: Path) -> None:
    log, other = plain(("a", "1"), ("b", "1"), ("a", "2")), plain(("a", "1"), ("b", "x"))
    own = copy(tmp_path / "own", log.batches)
    copy(tmp_path / "other", [other.batches[1], log.batches[2]], 2)
    found = proof(own, tmp_path / "other")
    assert only(found) == [(0, 1)]
    assert "diverges" in found.only[0].reason
    assert not found.may_delete


def test_two_copies_prove_it_together(tmp_path: Path) -> None:
    log = plain(("a", "1"), ("b", "1"), ("a", "2"), ("b", "2"))
    own = copy(tmp_path / "own", log.batches[:2])
    copy(tmp_path / "one", [log.batches[2]], 2)
    copy(tmp_path / "two", [log.batches[3]], 2)
    assert only(proof(own, tmp_path / "one")) == [(1, 1)]
    found = proof(own, tmp_path / "one", tmp_path / "two")
    assert found.may_delete
    assert found.replaced
    assert (found.replaced.keys, found.replaced.later, len(found.replaced.by)) == (2, 2, 2)
