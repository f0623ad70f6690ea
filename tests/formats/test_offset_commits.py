"""Commits in columns agree with the generic decoder, or are left to it."""

from collections.abc import Iterator
from types import ModuleType

import format_checks
import numpy as np
import pytest
from group_records import encoded
from hypothesis import given
from hypothesis import strategies as st

from logtool.errors import FormatError
from logtool.formats import _offset_commits as chosen
from logtool.formats.java_text import ZERO_UUID, uuid_bytes
from logtool.formats.messages import internal_topics
from logtool.formats.names import CONSUMER_OFFSETS

BUILDS = [chosen, format_checks.plain("_offset_commits")]
TEXT = st.one_of(st.sampled_from(["", "g", "orders", "x" * 126, "x" * 127, "x" * 300]), st.text())
INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.sampled_from([ZERO_UUID, "AAAAAAAAAAAAAAAAAAAAAQ", "_____wAAAAAAAAAAAAAAAA"])


@st.composite
def commits(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    """Draw the key and value of a commit of any version."""
    version = draw(st.integers(0, 4))
    kind = 0 if version == 0 and draw(st.booleans()) else 1
    names = st.sampled_from(["g", "orders", "x" * 200, "n\u00e4me"])
    key = {"group": draw(names), "topic": draw(names), "partition": draw(st.integers(0, 99))}
    value = {"offset": draw(INT64), "metadata": draw(TEXT), "commitTimestamp": draw(INT64)}
    if version == 1:
        value["expireTimestamp"] = draw(INT64)
    if version >= 3:
        value["leaderEpoch"] = draw(st.integers(-1, 2**31 - 1))
    if version == 4 and draw(st.booleans()):
        value["topicId"] = draw(IDS)
    if draw(st.integers(0, 5)) == 0:
        return encoded("key", kind, 0, key), None
    return encoded("key", kind, 0, key), encoded("value", kind, version, value)


def decode(kernel: ModuleType, key: bytes, value: bytes | None) -> tuple[int, dict]:
    """Return the kind and the fields that a kernel finds."""
    data = b"before" + key + (value or b"") + b"behind"
    at = np.array([[6], [len(key)], [6 + len(key)], [-1 if value is None else len(value)]])
    rows = np.full((1, kernel.COMMIT_COLUMNS), 77, np.int64)
    kernel.decode_commits(memoryview(data), *at.astype(np.int64), rows)
    kind, offset, epoch, committed, expires, text_at, text_size, id_at = rows[0].tolist()
    fields = {
        "offset": offset,
        "leaderEpoch": epoch,
        "commitTimestamp": committed,
        "expireTimestamp": expires,
        "metadata": data[text_at : text_at + text_size],
        "topicId": b"" if id_at < 0 else data[id_at : id_at + 16],
    }
    return kind, fields


def generic(key: bytes, value: bytes | None) -> dict | None:
    """Return the same fields from the generic decoder; None for a record without fields."""
    try:
        of_key = internal_topics.decode_key(CONSUMER_OFFSETS, key)
        if value is None or of_key.data is None:
            return None
        found = internal_topics.decode_value(CONSUMER_OFFSETS, of_key.type, value).data
    except FormatError:
        return None
    if found is None:
        return None
    return {
        "offset": found["offset"],
        "leaderEpoch": found.get("leaderEpoch", -1),
        "commitTimestamp": found["commitTimestamp"],
        "expireTimestamp": found.get("expireTimestamp", -1),
        "metadata": found["metadata"].encode(),
        "topicId": uuid_bytes(found["topicId"]) if "topicId" in found else b"",
    }


@pytest.mark.parametrize("kernel", BUILDS, ids=["chosen", "plain"])
@given(commit=commits())
def test_fields_are_those_of_the_generic_decoder(
    kernel: ModuleType, commit: tuple[bytes, bytes | None]
) -> None:
    key, value = commit
    kind, fields = decode(kernel, key, value)
    if kind == kernel.COMMIT_VALUE:
        assert fields == generic(key, value)
    elif kind == kernel.COMMIT_TOMBSTONE:
        assert value is None
    else:
        assert kind == kernel.COMMIT_UNSURE
        found = generic(key, value)
        assert "\u00e4".encode() in key or (found and not found["metadata"].isascii())


@pytest.mark.parametrize("kernel", BUILDS, ids=["chosen", "plain"])
@given(commit=commits(), data=st.data())
def test_damaged_bytes_that_the_generic_decoder_refuses_are_refused(
    kernel: ModuleType, commit: tuple[bytes, bytes | None], data: st.DataObject
) -> None:
    key, value = commit
    size = len(key) + len(value or b"")
    at = data.draw(st.integers(0, size - 1))
    mask = data.draw(st.integers(0, 255))
    raw = bytearray(key + (value or b""))
    raw[at] ^= mask
    end = data.draw(st.integers(0, len(value or b"")))
    key = bytes(raw[: len(key)])
    value = None if value is None else bytes(raw[len(key) : len(key) + end])
    kind, fields = decode(kernel, key, value)
    if kind == kernel.COMMIT_VALUE:
        assert fields == generic(key, value)
    elif kind == kernel.COMMIT_OTHER:
        assert key[:2] not in (b"\0\0", b"\0\1")


def interned(kernel: ModuleType, keys: list[bytes], step: int) -> Iterator[int]:
    """Yield the slot of each key, with tables that are repeatedly too small."""
    data = memoryview(b"".join(keys) + b"\0")
    ends = np.cumsum([len(key) for key in keys], dtype=np.int64)
    lengths = np.array([len(key) for key in keys], np.int64)
    slots = np.full(len(keys), -1, np.int64)
    store, key_end = np.empty(0, np.uint8), np.empty(0, np.int64)
    table = np.full(1, -1, np.int32)
    row = count = 0
    while row < len(keys):
        row, count = kernel.intern_keys(
            data, ends - lengths, lengths, row, store.data, key_end, count, table, slots
        )
        store = np.concatenate([store, np.zeros(step + max(map(len, keys)), np.uint8)])
        key_end = np.concatenate([key_end, np.zeros(step, np.int64)])
        table = np.full(2 * len(table), -1, np.int32)
        kernel.fill_table(store.data, key_end, count, table)
    yield from slots.tolist()


@pytest.mark.parametrize("kernel", BUILDS, ids=["chosen", "plain"])
@given(keys=st.lists(st.binary(max_size=3), min_size=1, max_size=60), step=st.integers(1, 9))
def test_equal_keys_have_one_slot(kernel: ModuleType, keys: list[bytes], step: int) -> None:
    numbers: dict[bytes, int] = {}
    wanted = [numbers.setdefault(key, len(numbers)) for key in keys]
    assert list(interned(kernel, keys, step)) == wanted
