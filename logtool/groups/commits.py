"""Records of ``__consumer_offsets`` as they come from a log: commits of offsets, and others.

A commit is a record of key type 1, or 0 before Kafka 0.9; its value has the versions of
``OffsetCommitValue`` (Kafka 4.3: 0 to 4). Records of all other types go to the replay of groups.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from logtool.errors import FormatError
from logtool.formats import _offset_commits, java_text
from logtool.formats.messages import internal_topics
from logtool.formats.messages.codec import Value
from logtool.formats.names import CONSUMER_OFFSETS
from logtool.groups.columns import NUMBERS, Column, CommitRows, Slots, concat
from logtool.lazy_dataclass import dataclass
from logtool.log.keys import NONE
from logtool.log.record_table import RecordTable

COMMIT_TYPES = (0, 1)
_KEY_HEAD = 2
_ID_SIZE = 16


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A decoded record that is no commit."""

    row: int
    type: int
    name: str
    """Name of its type, such as ``GroupMetadata``."""
    key: Value
    value: Value | None


@dataclass(slots=True)
class Taken:
    """Content of some records."""

    commits: CommitRows
    producer_id: Column
    """Producer id of each commit; -1 for a tombstone too, which counts at once."""
    others: list[GroupRecord] = field(default_factory=list)
    wrong: list[tuple[int, str]] = field(default_factory=list)
    """Row and reason of each record that a coordinator could not read."""
    unknown: int = 0
    """Records of types or versions that are not known."""


def take(records: RecordTable, slots: Slots) -> Taken:
    """Decode records, give each key its slot, and count it there.

    Of what counts at once only the last commit and the last tombstone of each key are in the
    result.
    """
    spans, count = records.spans, len(records.offset)
    usable = np.flatnonzero(spans.key_length >= _KEY_HEAD)
    slot = np.full(count, NONE, np.int64)
    position, length = spans.key_position[usable], spans.key_length[usable]
    slot[usable] = slots.intern(records.data, position, length)
    has_value = spans.value_length[usable] >= 0
    slots.count_records(slot[usable], spans.size[usable], records.offset[usable], has_value)
    fields = np.empty((count, _offset_commits.COMMIT_COLUMNS), np.int64)
    _offset_commits.decode_commits(
        records.data, spans.key_position, spans.key_length, spans.value_position,
        spans.value_length, fields,
    )  # fmt: skip
    kind = fields[:, 0]
    is_plain = (kind == _offset_commits.COMMIT_VALUE) | (kind == _offset_commits.COMMIT_TOMBSTONE)
    producer_ids = records.of_batches(records.batches.producer_id)
    producer_id = np.where(kind == _offset_commits.COMMIT_TOMBSTONE, NONE, producer_ids)
    at_once = np.flatnonzero(is_plain & (producer_id == NONE))
    last = at_once[slots.last_of_each(slot[at_once])]
    is_tombstone = kind[at_once] == _offset_commits.COMMIT_TOMBSTONE
    if is_tombstone.any():
        parts = at_once[is_tombstone], at_once[~is_tombstone]
        last = np.sort(np.concatenate([one[slots.last_of_each(slot[one])] for one in parts]))
    waiting = np.flatnonzero(is_plain & (producer_id != NONE))
    rows = np.sort(np.concatenate([last, waiting])) if len(waiting) else last
    commits = _plain_rows(records, rows, slot, fields[rows], slots)
    taken = Taken(commits=commits, producer_id=producer_id[rows])
    if not is_plain.all():
        _take_others(records, np.flatnonzero(~is_plain), slot, slots, taken, rows)
    return taken


def parse_commit_key(key: bytes) -> tuple[str, str, int]:
    """Return group, topic and partition of the key of a commit that was decoded before."""
    size = int.from_bytes(key[2:4], "big")
    topic_at = 4 + size
    topic_size = int.from_bytes(key[topic_at : topic_at + 2], "big")
    topic = key[topic_at + 2 : topic_at + 2 + topic_size]
    number = int.from_bytes(key[topic_at + 2 + topic_size :][:4], "big", signed=True)
    return as_text(key[4:topic_at]), as_text(topic), number


def as_text(data: bytes) -> str:
    """Return a name or metadata of a commit, which need not be UTF-8, as text."""
    return data.decode("utf-8", "replace")


def _plain_rows(
    records: RecordTable, rows: Column, slot: Column, fields: Column, slots: Slots
) -> CommitRows:
    """Return commits that the kernel decoded; `fields` has its columns, and `slot` all slots."""
    kind, offset, epoch, committed, expires, text_at, text_size, id_at = fields.T
    metadata = [b""] * len(rows)
    for row in np.flatnonzero(text_size > 0).tolist():
        at = int(text_at[row])
        metadata[row] = bytes(records.data[at : at + int(text_size[row])])
    return CommitRows(
        slot=slot[rows],
        record_offset=records.offset[rows],
        live=(kind == _offset_commits.COMMIT_VALUE).astype(np.int64),
        offset=offset,
        leader_epoch=epoch,
        commit_timestamp=committed,
        expire_timestamp=expires,
        topic_id=_id_numbers(records.data, id_at, slots),
        metadata=metadata,
    )


def _id_numbers(data: memoryview, positions: Column, slots: Slots) -> Column:
    """Return the numbers of the topic ids at some positions; -1 where the position is -1."""
    numbers = np.full(len(positions), NONE, np.int64)
    there = np.flatnonzero(positions >= 0)
    if not len(there):
        return numbers
    content = np.frombuffer(data, np.uint8)[positions[there][:, None] + np.arange(_ID_SIZE)]
    ids, which = np.unique(content.view(f"S{_ID_SIZE}").ravel(), return_inverse=True)
    known = [java_text.format_uuid(one.ljust(_ID_SIZE, b"\0")) for one in ids.tolist()]
    of_each = [NONE if one == java_text.ZERO_UUID else slots.number_of(one) for one in known]
    numbers[there] = np.array(of_each, np.int64)[which]
    return numbers


def _take_others(
    records: RecordTable, rows: Column, slot: Column, slots: Slots, taken: Taken, plain: Column
) -> None:
    """Decode the records that the kernel did not; `plain` are the rows of those that it did."""
    made: list[tuple[int, ...]] = []
    texts: list[bytes] = []
    for row in rows.tolist():
        try:
            found = decode(row, records.key(row), records.value(row))
        except FormatError as error:
            taken.wrong.append((row, error.reason))
            continue
        if found is None:
            taken.unknown += 1
        elif found.type in COMMIT_TYPES:
            numbers, text = _commit(found.value, slots)
            made.append((row, *numbers))
            texts.append(text)
        else:
            taken.others.append(found)
    if not made:
        return
    row_of, *numbers_of = np.array(made, np.int64).T
    more = _rows([slot[row_of], records.offset[row_of], *numbers_of], texts)
    producer_ids = records.of_batches(records.batches.producer_id)
    more_ids = np.where(more.live == 1, producer_ids[row_of], NONE)
    order = np.argsort(np.concatenate([plain, row_of]), kind="stable")
    taken.commits = concat([taken.commits, more])[order]
    taken.producer_id = np.concatenate([taken.producer_id, more_ids])[order]


def _rows(columns: Sequence[Column], metadata: list[bytes]) -> CommitRows:
    numbers: dict[str, Any] = dict(zip(NUMBERS, columns, strict=True))
    return CommitRows(**numbers, metadata=metadata)


def decode(row: int, key: bytes | None, value: bytes | None) -> GroupRecord | None:
    """Decode one record; None if its type or version is not known, FormatError if it is bad."""
    of_key = internal_topics.decode_key(CONSUMER_OFFSETS, key)
    if of_key.data is None or of_key.message is None:
        return None
    name = of_key.message.name.removesuffix("Key")
    if value is None:
        return GroupRecord(row, of_key.type, name, of_key.data, None)
    try:
        of_value = internal_topics.decode_value(CONSUMER_OFFSETS, of_key.type, value)
    except FormatError as error:
        if " after the end of " in error.reason:
            return None  # early-access releases laid some values out differently
        raise
    if of_value.data is None:
        return None
    return GroupRecord(row, of_key.type, name, of_key.data, of_value.data)


def _commit(value: Value | None, slots: Slots) -> tuple[tuple[int, ...], bytes]:
    """Return the numbers of a commit, which are the last six of `NUMBERS`, and its metadata."""
    if value is None:
        return (0, NONE, NONE, NONE, NONE, NONE), b""
    topic_id = value.get("topicId", java_text.ZERO_UUID)
    number = NONE if topic_id == java_text.ZERO_UUID else slots.number_of(topic_id)
    numbers = (
        1,
        value["offset"],
        value.get("leaderEpoch", NONE),
        value["commitTimestamp"],
        value.get("expireTimestamp", NONE),
        number,
    )
    return numbers, value["metadata"].encode()
