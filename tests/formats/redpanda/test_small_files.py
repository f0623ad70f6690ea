"""The small files next to Redpanda's segments: every form survives any bytes."""

import hashlib
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from logtool.errors import FormatError
from logtool.formats.redpanda import (
    base_index,
    compaction_index,
    kvstore,
    offset_translation,
    record_batch,
    snapshot,
)
from logtool.formats.redpanda._xxhash64 import xxhash64
from logtool.formats.redpanda.base_index import BaseIndex
from logtool.formats.redpanda.compaction_index import CompactionKey, Flag
from logtool.formats.redpanda.kvstore import Keyspace, KeyValue, LogKey

# A base index that Redpanda's own tests hold, with the version byte set to 4.
BASE_INDEX = bytes.fromhex(
    "0404f7000000ef0000007b000000386d4b42a24eba576429fb9dcca71d602b7d1054f0fefd497bb7c3f6bdeb2509"
    "0a0000005cac9b0084ad9b00d1ae9b0026af9b00faaf9b00f9b29b0025b69b00a7b79b0000b89b00d7ba9b00"
    "0a000000ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "0a000000803879e70100000080c879e7010000003bdc82e701000000c2d586e7010000007c6b91e701000000"
    "793894e7010000008a75a0e7010000008159a8e701000000cfd3abe701000000f3a1b2e701000000"
    "01010001dd01de63b53f111e01000000000000000001ffffffffffffffff0177ee9138"
)


def entries(*rows: tuple[int, int, int]) -> base_index.Entries:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return base_index.Entries(
        relative_offset=np.array(columns[0], "<u4"),
        relative_time=np.array(columns[1], "<u4"),
        position=np.array(columns[2], "<u8"),
    )


def a_base_index(*rows: tuple[int, int, int], base_offset: int) -> base_index.BaseIndex:
    return base_index.build(
        entries(*rows),
        base_offset=base_offset,
        max_offset=base_offset + 99,
        base_timestamp=1000,
        max_timestamp=2000,
    )


def legacy_index() -> bytes:
    """Write version 3 field by field."""
    body = struct.pack("<Iqqqq", 1, 10, 100, 2000, 2101)
    body += struct.pack("<I", 2) + struct.pack("<II", 0, 5) + struct.pack("<II", 0, 7)
    body += struct.pack("<QQ", 0, 40000)
    return struct.pack("<BIQ", 3, 8 + len(body), xxhash64(body)) + body


COMPACTION_INDEX = compaction_index.encode(
    compaction_index.build(
        [CompactionKey(1, 42, 66, b"\1\0key"), CompactionKey(2, 0, 0, b"compaction")]
    )
)
RAFT_SNAPSHOT = snapshot.build(struct.pack("<qqb3sqq", 41, 3, 64, b"cfg", 1700, 7), b"payload")


@dataclass(frozen=True)
class Format:
    name: str
    parse: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    sample: bytes


FORMATS = [
    Format("base index", base_index.parse, base_index.encode, BASE_INDEX),
    Format("legacy base index", base_index.parse, base_index.encode, legacy_index()),
    Format("compaction index", compaction_index.parse, compaction_index.encode, COMPACTION_INDEX),
    Format("snapshot", snapshot.parse, snapshot.encode, RAFT_SNAPSHOT),
]
every_format = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)


def prove(form: Format, data: bytes) -> None:
    value = form.parse(data)
    assert form.encode(value) == data
    if isinstance(value, compaction_index.CompactionIndex):
        assert value.entries_size <= len(value.body)


@every_format
def test_every_truncation_survives(form: Format) -> None:
    for size in range(len(form.sample) + 1):
        prove(form, form.sample[:size])


@every_format
def test_every_flipped_bit_survives(form: Format) -> None:
    for position in range(len(form.sample)):
        for bit in range(8):
            damaged = bytearray(form.sample)
            damaged[position] ^= 1 << bit
            prove(form, bytes(damaged))


@every_format
@given(data=st.binary(max_size=300), at=st.integers(0, 300))
def test_any_bytes_survive(form: Format, data: bytes, at: int) -> None:
    prove(form, data)
    prove(form, form.sample[:at] + data + form.sample[at:])


def test_the_index_of_redpandas_own_tests_is_read() -> None:
    assert hashlib.sha256(BASE_INDEX).hexdigest() == (
        "169e6f3524bd38b5401ac95b96ed5e195179e8ea69f9848815424394f7c0743a"
    )
    index = base_index.parse(BASE_INDEX)

    assert (index.version, index.size, index.checksum, index.checksum_holds) == (
        4,
        247,
        0x3891EE77,
        True,
    )
    assert (index.bitflags, index.base_offset, index.max_offset) == (
        123,
        6321451485771820344,
        6925876299231340900,
    )
    assert (index.base_timestamp, index.max_timestamp) == (5331697842032508203, 659192121601013627)
    assert isinstance(index, BaseIndex)
    assert len(index) == 10
    assert index.entries.relative_offset[[0, -1]].tolist() == [10202204, 10205911]
    assert index.entries.position[[0, -1]].tolist() == [8178448512, 8182211059]
    # Its version has no flags, so the bytes after the entries are not read.
    assert (index.flags, len(index.unread)) == (base_index.Flags(), 31)


def test_an_index_has_all_fields_of_its_version() -> None:
    index = base_index.parse(bytes([9]) + BASE_INDEX[1:])
    assert index.unread == b""
    assert index.flags.non_data_timestamps == 0
    assert index.flags.broker_timestamp == 2166582944039043549
    assert index.flags.num_compactible_records_appended == 0
    assert index.flags.clean_compact_timestamp == -1
    assert index.flags.may_have_tombstone_records == 1


def enveloped(version: int, *flags: bytes) -> bytes:
    """Write a version that has an envelope field by field, up to the flags given."""
    blob = struct.pack("<Iqqqq", 0, 10, 100, 2000, 2101)
    blob += struct.pack("<III", 2, 0, 5) + struct.pack("<III", 2, 0, 7)
    blob += struct.pack("<IQQ", 2, 0, 40000) + b"".join(flags)
    front = struct.pack("<BBII", version, 4, len(blob) + 8, len(blob))
    return front + blob + struct.pack("<I", crc32c(blob))


@pytest.mark.parametrize(
    ("version", "flags", "added"),
    [
        # Releases before 23.1: version 4 was written without a flag.
        (4, [], 0),
        (5, [b"\1\1\0"], 2**31),
        (6, [b"\1\1\0", b"\1" + bytes(8)], 2**31),
        (7, [b"\1\1\0", b"\0", b"\1" + bytes(8)], 2**31),
        (8, [b"\1\1\0", b"\0", b"\0", b"\1" + bytes(8)], 2**31),
        (9, [b"\1\1\0", b"\0", b"\0", b"\0", b"\1"], 2**31),
        (10, [b"\1\1\0", b"\0", b"\0", b"\0", b"\1", b"what version 10 adds"], 2**31),
    ],
)
def test_an_index_of_every_version_with_an_envelope_is_read(
    version: int, flags: list[bytes], added: int
) -> None:
    index = base_index.parse(enveloped(version, *flags))
    assert isinstance(index, BaseIndex)
    assert (index.checksum_holds, index.base_offset, index.max_offset) == (True, 10, 100)
    assert base_index.offsets(index, segment_base=10) == [10, 15]
    assert base_index.timestamps(index) == [2000 - added, 2007 - added]
    assert len(index.unread) == (20 if version == 10 else 0)
    assert base_index.size_of(index) == index.size


def test_an_index_of_version_3_is_read() -> None:
    data = legacy_index()
    index = base_index.parse(data)
    assert isinstance(index, BaseIndex)
    assert len(data) == 53 + 16 * 2
    assert (index.checksum_holds, index.base_offset, index.max_offset) == (True, 10, 100)
    assert base_index.offsets(index, segment_base=10) == [10, 15]
    assert base_index.timestamps(index) == [2000, 2007]
    assert base_index.size_of(index) == index.size
    damaged = base_index.parse(data[:-1] + b"\1")
    assert not damaged.checksum_holds


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_index_before_version_3_is_refused(version: int) -> None:
    index = base_index.parse(bytes([version]) + BASE_INDEX[1:])
    assert isinstance(index, base_index.Unreadable)
    assert index.version == version


@pytest.mark.parametrize(
    ("data", "expected"),
    # From the test program of the specification.
    [(b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)],
)
def test_xxh64_is_that_of_the_specification(data: bytes, expected: int) -> None:
    assert xxhash64(data) == expected


def test_a_built_index_has_the_size_of_a_brokers() -> None:
    flags = base_index.Flags(
        batch_timestamps_are_monotonic=1,
        with_offset=1,
        non_data_timestamps=0,
        has_broker_timestamp=0,
        has_num_compactible_records_appended=1,
        num_compactible_records_appended=0,
        has_clean_compact_timestamp=0,
        may_have_tombstone_records=1,
    )
    index = base_index.build(
        entries((0, 2**31, 0), (50, 2**31 - 3, 33000)),
        base_offset=700,
        max_offset=799,
        base_timestamp=1000,
        max_timestamp=2000,
        flags=flags,
    )

    assert len(base_index.encode(index)) == 77 + 16 * 2
    assert base_index.offsets(index, segment_base=700) == [700, 750]
    assert base_index.timestamps(index) == [1000, 997]


def test_offsets_that_compaction_took_modulo_an_int32_are_put_right() -> None:
    base = 3 * 2**32 + 2**32 - 10
    index = a_base_index((2**32 - 10, 0, 0), (5, 0, 900), (2**32 - 11, 0, 950), base_offset=0)
    found = base_index.offsets(index, segment_base=base, next_base=base + 1000)
    assert found == [base, base + 15, 2**32 - 11]  # the last one lies in no batch of this segment
    assert base_index.offsets(index, segment_base=0) == [2**32 - 10, 5, 2**32 - 11]
    # The base offset of the next segment is not in this one.
    found = base_index.offsets(index, segment_base=base, next_base=base + 15)
    assert found == [base, 5, 2**32 - 11]


def test_a_compaction_index_of_one_long_key_has_1065_bytes() -> None:
    index = compaction_index.build(
        [CompactionKey(compaction_index.KEY, 42, 66, b"\1\0" + bytes(1024))]
    )
    data = compaction_index.encode(index)
    assert len(data) == 1065
    read = compaction_index.parse(data)
    assert read == index
    assert read.crc_holds
    assert [entry.offset for entry in read.entries] == [108]
    assert (read.footer.size, read.footer.keys) == (1032, 1)


def test_a_compaction_index_of_version_1_is_read() -> None:
    body = compaction_index.build([CompactionKey(1, 7, 0, b"\1\0k")]).body
    crc = compaction_index.build([CompactionKey(1, 7, 0, b"\1\0k")]).footer.crc
    read = compaction_index.parse(body + struct.pack("<IIIIb", len(body), 1, 5, crc, 1))
    assert read.crc_holds
    assert read.footer.flags == Flag.TRUNCATION | Flag.INCOMPLETE
    assert read.entries == [CompactionKey(1, 7, 0, b"\1\0k")]


def test_a_compaction_index_of_another_version_has_no_footer() -> None:
    for version in (0, 2, 4):
        data = COMPACTION_INDEX[:-1] + bytes([version])
        assert compaction_index.parse(data).footer is None


def test_a_snapshot_of_raft_says_where_the_log_begins() -> None:
    read = snapshot.parse(RAFT_SNAPSHOT)
    raft = snapshot.raft_metadata(read.metadata)
    assert (read.header_crc_holds, read.metadata_crc_holds, read.payload) == (
        True,
        True,
        b"payload",
    )
    assert (raft.last_included_index, raft.last_included_term, raft.version) == (41, 3, 64)
    assert (raft.configuration, raft.cluster_time, raft.log_start_delta) == (b"cfg", 1700, 7)
    assert snapshot.encode_raft_metadata(raft) == read.metadata
    for position in range(13):
        damaged = bytearray(RAFT_SNAPSHOT)
        damaged[position] ^= 1
        assert not snapshot.parse(bytes(damaged)).header_crc_holds


def test_a_snapshot_of_raft_before_its_versions_has_no_delta() -> None:
    metadata = struct.pack("<qqb9sq", 41, 3, 5, b"the group", 1700)
    raft = snapshot.raft_metadata(metadata)
    assert (raft.version, raft.configuration) == (None, b"\x05the group")
    assert (raft.cluster_time, raft.log_start_delta) == (1700, None)
    assert snapshot.encode_raft_metadata(raft) == metadata


def test_the_kvstore_is_a_snapshot_and_what_came_after_it() -> None:
    log = kvstore.encode_log_key(LogKey(0, "kafka", "orders", 2))
    translator = struct.pack("<bq", 0, 9)
    stored = [
        KeyValue(Keyspace.STORAGE, log, struct.pack("<q", 40)),
        KeyValue(4, translator, b"old"),
    ]
    file = snapshot.parse(snapshot.build(struct.pack("<q", 1), kvstore.build_snapshot(stored)))
    later = [KeyValue(4, translator, None), KeyValue(Keyspace.STORAGE, log, struct.pack("<q", 55))]
    state: kvstore.State = {}

    before = kvstore.parse_snapshot(file.payload)
    kvstore.replay(state, before.pairs)
    assert (before.crc_holds, before.pairs) == (True, tuple(stored))
    assert kvstore.start_offset(state, "kafka", "orders", 2) == 40
    kvstore.replay(state, kvstore.pairs(kvstore.build(later, base_offset=2)))

    assert kvstore.start_offset(state, "kafka", "orders", 2) == 55
    assert kvstore.start_offset(state, "kafka", "orders", 3) is None
    assert list(state) == [(Keyspace.STORAGE, log)]
    assert kvstore.parse_log_key(log) == LogKey(0, "kafka", "orders", 2)


def test_a_damaged_snapshot_of_the_kvstore_is_reported() -> None:
    payload = kvstore.build_snapshot([KeyValue(2, b"key", b"value"), KeyValue(4, b"k", b"")])
    for position in range(len(payload)):
        damaged = bytearray(payload)
        damaged[position] ^= 1
        read = kvstore.parse_snapshot(bytes(damaged))
        # Of a record the size and the lengths that stand twice say nothing new, nor does the term.
        refused = read is None or not read.crc_holds
        assert refused or read.pairs == kvstore.parse_snapshot(payload).pairs
    for size in range(len(payload)):
        assert kvstore.parse_snapshot(payload[:size]) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_snapshot_of_the_kvstore_or_none(data: bytes) -> None:
    kvstore.parse_snapshot(data)
    kvstore.parse_snapshot(struct.pack("<i", len(data)) + data)
    kvstore.parse_log_key(data)
    offset_translation.parse_map(data)


@given(st.binary(max_size=60), st.integers(-1, 5))
def test_any_bytes_are_pairs_or_refused(body: bytes, count: int) -> None:
    batch = record_batch.build(body, base_offset=0, type=4, record_count=count)
    with suppress(FormatError):
        list(kvstore.pairs(batch))
    with pytest.raises(FormatError):
        list(kvstore.pairs(record_batch.build(body, base_offset=0)))


@pytest.mark.parametrize(
    ("base", "relative", "expected"),
    [(7, 1, 8), (2**63 - 1, 0, 2**63 - 1), (2**63 - 1, 1, -(2**63)), (-(2**63), 1, 1 - 2**63)],
)
def test_the_offsets_and_times_of_a_base_index_fit_an_int64(base, relative, expected):
    index = replace(a_base_index((relative, 5, 0), base_offset=0), base_offset=base)
    assert base_index.offsets(index, segment_base=base) == [expected]
    late = replace(index, base_timestamp=2**63 - 1, flags=base_index.Flags())
    assert base_index.timestamps(late) == [4 - 2**63]


def test_a_topic_of_any_bytes_has_a_key():
    key = LogKey(0, "kafka", "\udcff", 0)
    assert b"\xff" in kvstore.encode_log_key(key)
    assert kvstore.start_offset({}, "kafka", "\udcff", 0) is None
