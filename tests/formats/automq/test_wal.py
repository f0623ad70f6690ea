"""WALs of AutoMQ: recovery equals what AutoMQ's own recovery did, sound and damaged."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats.automq import block_wal, names, wal_object, wal_recovery
from logtool.formats.automq.names import ObjectKind
from logtool.formats.automq.stream_record import StreamRecord

STATES = ["before-trim", "after-trim-epoch-11"]
DAMAGED = {
    "body-bit-flip-second-object": "automq-wal/record",
    "cut-last-object-10-bytes": "automq-wal/record",
    "cut-last-object-in-record-header": "automq-wal/record",
    "junk-name-beside": None,
    "missing-third-object": None,
    "newest-object-header-only": "automq-wal/record",
    "object-header-magic-damaged-third-object": "automq-wal/header",
    "record-header-bit-flip-second-object": "automq-wal/record",
}
BLOCKS = ["early-unclean", "wrapped-unclean", "wrapped-clean"]


def truth(scenario: Callable[[str], Path], name: str) -> Any:
    return json.loads((scenario("automq/made.expected") / name).read_text())


def objects(home: Path) -> tuple[list[tuple[names.ObjectName, int]], Callable[..., bytes]]:
    """Return the objects of the WAL of a bucket, and what reads one."""
    found = []
    for path in sorted(home.rglob("*")):
        name = names.parse(str(path.relative_to(home)))
        if path.is_file() and name.kind is ObjectKind.WAL:
            found.append((name, path.stat().st_size))
    return found, lambda name: (home / name.key).read_bytes()


def recovered(home: Path) -> tuple[wal_recovery.WalOrder, list[dict[str, int]], bool]:
    """Return the order of a WAL, its records in the form of the truth, and whether it fails."""
    listed, read = objects(home)
    order = wal_recovery.order(listed, read)
    rows, failed = [], order.fault is not None
    for part in wal_recovery.recover(order, read):
        failed = failed or part.records.fault is not None
        for row in part.kept:
            one = part.records.records.record(row)
            rows.append(
                {
                    "stream_id": one.stream_id, "epoch": one.epoch,
                    "base_offset": one.base_offset, "count": one.count,
                    "end_offset": one.end_offset, "payload_size": len(one.payload),
                    "payload_crc32": zlib.crc32(one.payload), "wal_epoch": part.name.epoch,
                    "wal_offset": int(part.records.offset[row]),
                    "wal_size": int(part.records.size[row]),
                }
            )  # fmt: skip
    return order, rows, failed


@pytest.mark.parametrize("state", STATES)
def test_every_record_of_a_recovery_equals_automqs(
    state: str, scenario: Callable[[str], Path]
) -> None:
    answer = truth(scenario, "wal-truth.json")
    _, rows, failed = recovered(scenario("automq/made") / "wal" / state)
    assert not failed
    assert rows == answer[f"recover_{state.replace('-', '_')}"]


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_wal_gives_what_automqs_recovery_gave(
    name: str, scenario: Callable[[str], Path]
) -> None:
    answer = truth(scenario, "wal-damaged-truth.json")[name]
    home = scenario("automq/made") / "wal" / "damaged" / name
    order, rows, failed = recovered(home)
    assert [[r["stream_id"], r["base_offset"], r["end_offset"]] for r in rows] == answer[
        "stream_base_end"
    ]
    assert len(rows) == answer["records_before_stop"]
    assert failed == (answer["outcome"] != "ok")
    assert len(order.behind_gap) == (name == "missing-third-object")
    listed, read = objects(home)
    found = [one for name, _ in listed for one in wal_object.check(wal_object.parse(read(name)))]
    codes = {one.code for one in found}
    assert codes - {"automq-wal/header"} == {DAMAGED[name]} - {None, "automq-wal/header"}
    assert bool(codes) == bool(DAMAGED[name])


@pytest.mark.parametrize("home", ["made/wal/before-trim", "broker-crash/s3", "broker-clean/s3"])
def test_every_object_of_a_wal_is_sound_and_lossless(
    home: str, scenario: Callable[[str], Path]
) -> None:
    state, _, below = home.partition("/")
    listed, read = objects(scenario(f"automq/{state}") / below)
    assert listed
    for name, size in listed:
        data = read(name)
        parsed = wal_object.parse(data)
        assert wal_object.encode(parsed) == data
        assert list(wal_object.check(parsed, start_offset=name.start_offset)) == []
        header, records = parsed.header, wal_object.records(parsed)
        assert header
        assert (header.node_id, header.epoch) == (name.node_id, name.epoch)
        stored = [records.records.record(row) for row in range(len(records))]
        assert data == wal_object.build(
            stored,
            start_offset=header.start_offset,
            node_id=header.node_id,
            epoch=header.epoch,
            trim_offset=header.trim_offset,
        )
        assert len(data) == size


@pytest.mark.parametrize("name", BLOCKS)
def test_every_record_of_a_block_wal_equals_automqs_recovery(
    name: str, scenario: Callable[[str], Path]
) -> None:
    data = (scenario("automq/made") / "block-wal" / name).read_bytes()
    parsed = block_wal.parse(data)
    assert block_wal.encode(parsed) == data
    assert list(block_wal.check(parsed)) == []
    header = parsed.header
    assert header
    assert (header.node_id, header.epoch) == (7, 12)
    assert header.is_clean == (name == "wrapped-clean")
    recovery = block_wal.recover(data, header)
    assert recovery.findings == ()
    found = recovery.records
    bodies = found.records.position
    assert [
        {
            "wal_offset": int(found.offset[row]),
            "body_length": int(found.records.size[row]) + 33,
            "body_crc32": zlib.crc32(
                data[bodies[row] : bodies[row] + found.records.size[row] + 33]
            ),
            "stream_id": int(found.records.stream_id[row]),
            "base_offset": int(found.records.base_offset[row]),
        }
        for row in range(len(found))
    ] == truth(scenario, "block-wal/truth.json")[name]


RECORDS = [StreamRecord(5, 1, 10, 2, b"payload"), StreamRecord(6, 1, 0, 1, b"")]


def made(trim: int | None = -1) -> bytes:
    return wal_object.build(RECORDS, start_offset=64, node_id=3, epoch=4, trim_offset=trim)


@pytest.mark.parametrize("trim", [None, -1, 64])
def test_every_flipped_bit_of_a_wal_object_is_found(trim: int | None) -> None:
    data = made(trim)
    name = {"start_offset": 64}
    assert list(wal_object.check(wal_object.parse(data), **name)) == []
    size = 40 if trim is None else 48
    # Node, epoch and trim offset are repeated nowhere in the object.
    free = set(range(28, size))
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            parsed = wal_object.parse(bytes(flipped))
            assert wal_object.encode(parsed) == flipped
            assert list(wal_object.check(parsed, **name)) or position in free


def test_a_wal_object_cut_at_any_byte_is_found() -> None:
    for size in range(len(made())):
        assert list(wal_object.check(wal_object.parse(made()[:size])))


def wal(*parts: tuple[int, int, int, int]) -> tuple[list[Any], Callable[..., bytes]]:
    """Return a WAL of objects: epoch, start and end offset, trim offset."""
    content = {
        names.wal_key("c", 1, epoch, start, end): wal_object.build(
            RECORDS, start_offset=start, node_id=1, epoch=epoch, trim_offset=trim
        )
        for epoch, start, end, trim in parts
    }
    listed = [(names.parse(key), len(data)) for key, data in content.items()]
    return listed, lambda name: content[name.key]


def test_an_object_that_a_fenced_node_wrote_late_is_left_out() -> None:
    order = wal_recovery.order(*wal((1, 0, 200, -1), (2, 100, 200, -1)))
    assert [one.epoch for one in order.overlapping] == [1]
    assert [one.epoch for one in order.taken] == [2]


def test_objects_below_the_trim_offset_are_left_out() -> None:
    order = wal_recovery.order(*wal((1, 0, 100, -1), (1, 100, 200, -1), (1, 200, 300, 150)))
    assert [one.start_offset for one in order.trimmed] == [0]
    assert [one.start_offset for one in order.taken] == [100, 200]
    assert order.trim_offset == 150


def test_the_older_form_of_a_key_ends_where_the_object_does() -> None:
    data = made(None)
    older = names.parse(f"{names.wal_prefix('c', 1)}1/wal/64")
    newer = names.parse(names.wal_key("c", 1, 1, 64 + len(data) - 40, 2**26))
    order = wal_recovery.order([(newer, 105), (older, len(data))], lambda _: data)
    assert [one.key for one in order.taken] == [older.key, newer.key]


def test_no_object_is_an_empty_wal() -> None:
    assert wal_recovery.order([], lambda _: b"") == wal_recovery.WalOrder()


@given(data=st.binary(max_size=200), lead=st.sampled_from([b"", made()[:48], made()[:60]]))
def test_any_bytes_survive(data: bytes, lead: bytes) -> None:
    data = lead + data
    for module in (wal_object, block_wal):
        parsed = module.parse(data)
        assert module.encode(parsed) == data
        for found in module.check(parsed):
            assert found.position is not None
            assert 0 <= found.position <= found.position + (found.length or 0) <= len(data)


def test_every_flipped_bit_of_a_block_wals_header_is_found() -> None:
    data = block_wal.build_header(capacity=56)
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            parsed = block_wal.parse(bytes(flipped))
            assert block_wal.encode(parsed) == flipped
            assert parsed.header is None
            codes = {one.code for one in block_wal.check(parsed)}
            assert codes == {"automq-block-wal/header", "automq-block-wal/no-header"}
