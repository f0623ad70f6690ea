"""Objects of AutoMQ equal what AutoMQ's own reader says, and damage is a finding."""

import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats import record, record_batch
from logtool.formats.automq import composite_object, data_object
from logtool.formats.automq.stream_record import StreamRecord

MADE = ("1001", "78187493520", "2001", "2002", "2003", "2004", "2100", "2200", "2300")


def truth_of(scenario: Callable[[str], Path]) -> dict[str, dict[str, Any]]:
    text = (scenario("automq/made.expected") / "objects-truth.json").read_text()
    return {one["key"].rpartition("/")[2]: one for one in json.loads(text)["objects"]}


def bytes_of(scenario: Callable[[str], Path], name: str) -> bytes:
    (path,) = (scenario("automq/made") / "objects").glob(f"*/*/{name}")
    return path.read_bytes()


def codes(data: bytes) -> set[str]:
    if composite_object.is_composite(data):
        return {one.code for one in composite_object.check(composite_object.parse(data))}
    return {one.code for one in data_object.check(data_object.parse(data))}


def blocks(data: bytes, linked: Callable[[int], bytes]) -> Iterator[tuple[Any, bytes]]:
    """Yield each entry of an object with the bytes in which its position counts."""
    if composite_object.is_composite(data):
        for object_id, entries in composite_object.parse(data).linked():
            yield from ((entry, linked(object_id)) for entry in entries)
    else:
        yield from ((entry, data) for entry in data_object.parse(data).entries)


@pytest.mark.parametrize("name", MADE)
def test_every_field_equals_the_answer_of_automqs_reader(
    name: str, scenario: Callable[[str], Path]
) -> None:
    data, truth = bytes_of(scenario, name), truth_of(scenario)[name]
    if composite_object.is_composite(data):
        assert composite_object.encode(composite_object.parse(data)) == data
    else:
        assert data_object.encode(data_object.parse(data)) == data
    assert codes(data) == set()
    found: list[dict[str, Any]] = []
    for entry, home in blocks(data, lambda number: bytes_of(scenario, str(number))):
        start, size = int(entry["position"]), int(entry["size"])
        part, faults = data_object.records(home, start, start + size)
        assert faults == []
        rows = map(part.record, range(len(part)))
        found.append(
            {
                "stream_id": int(entry["stream_id"]),
                "start_offset": int(entry["start_offset"]),
                "end_offset": int(entry["start_offset"] + entry["offset_delta"]),
                "record_count": int(entry["record_count"]),
                "position": start,
                "size": size,
                "records": [
                    {
                        "stream_id": one.stream_id, "epoch": one.epoch,
                        "base_offset": one.base_offset, "count": one.count,
                        "end_offset": one.end_offset, "payload_size": len(one.payload),
                        "payload_crc32": zlib.crc32(one.payload),
                    }
                    for one in rows
                ],
            }
        )  # fmt: skip
    wanted = [{key: one[key] for key in found[0]} for one in truth["blocks"]]
    assert found == wanted
    body = sum(one["size"] for one in found)
    if composite_object.is_composite(data):
        assert truth["metadata_object_size"] == body
    else:
        assert truth["metadata_object_size"] == len(data)
        assert truth["data_block_size"] == body


@pytest.mark.parametrize("state", ["broker-crash", "broker-clean"])
def test_every_object_of_a_broker_is_sound(state: str, scenario: Callable[[str], Path]) -> None:
    found = entries = 0
    for path in sorted((scenario(f"automq/{state}") / "s3").glob("*/_kafka_*/*")):
        if path.is_file() and path.name.isdecimal() and path.parts[-3] != "reservation":
            data = path.read_bytes()
            parsed = data_object.parse(data)
            assert data_object.encode(parsed) == data
            assert list(data_object.check(parsed)) == []
            found, entries = found + 1, entries + len(parsed.entries)
    assert (found, entries) == {"broker-crash": (16, 89), "broker-clean": (45, 173)}[state]


@pytest.mark.parametrize("name", MADE)
def test_an_object_cut_at_any_byte_has_a_finding(
    name: str, scenario: Callable[[str], Path]
) -> None:
    data = bytes_of(scenario, name)
    step = 1 if len(data) < 500 else 37
    for size in range(0, len(data), step):
        cut = data[:size]
        assert data_object.encode(data_object.parse(cut)) == cut
        assert composite_object.encode(composite_object.parse(cut)) == cut
        assert codes(cut)


@pytest.mark.long
@pytest.mark.parametrize("name", MADE)
def test_an_object_cut_at_every_byte_has_a_finding(
    name: str, scenario: Callable[[str], Path]
) -> None:
    data = bytes_of(scenario, name)
    assert all(codes(data[:size]) for size in range(len(data)))


def tail_flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the object with each bit of its index block and its footer flipped, and where."""
    footer = data_object.parse_footer(data)
    assert footer
    for position in range(footer.index_position, len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            yield position, bytes(flipped)


@pytest.mark.parametrize("name", ["2001", "2100", "2200", "2300"])
def test_every_flipped_bit_of_index_block_and_footer_is_found(
    name: str, scenario: Callable[[str], Path]
) -> None:
    data = bytes_of(scenario, name)
    padding = range(len(data) - 36, len(data) - 8)
    linked = {}
    if composite_object.is_composite(data):
        for object_id, _ in composite_object.parse(data).linked():
            home = data_object.parse(bytes_of(scenario, str(object_id)))
            linked[object_id] = home.entries
    seen = 0
    for position, flipped in tail_flips(data):
        parsed = composite_object.parse(flipped)
        found = codes(flipped)
        if linked and composite_object.is_composite(flipped):
            found |= {one.code for one in composite_object.check_linked(parsed, linked)}
        if position in padding:
            # Bytes that no reader looks at.
            before, after = data_object.parse(data), data_object.parse(flipped)
            assert before.body == after.body
            assert before.entries.tobytes() == after.entries.tobytes()
        else:
            assert found, position
            seen += 1
    assert seen == 8 * (len(data) - composite_object.parse(data).rest.footer.index_position - 28)


@pytest.mark.parametrize("name", MADE)
def test_a_flipped_bit_in_a_data_block_is_found_where_something_covers_it(
    name: str, scenario: Callable[[str], Path]
) -> None:
    """The epoch of a record, and Kafka's fields before the CRC, stand nowhere else."""
    data = bytes_of(scenario, name)
    if composite_object.is_composite(data):
        return
    parsed = data_object.parse(data)
    covered = set(range(0, len(parsed.body), 61))
    for row in range(len(parsed.entries)):
        part, _ = data_object.entry_records(parsed, row)
        for at in part.position.tolist():
            covered -= set(range(at + 9, at + 17)) | set(range(at + 33, at + 33 + 17))
    for position in covered:
        flipped = bytearray(data)
        flipped[position] ^= 0x10
        assert codes(bytes(flipped)), position


def kafka_batch(offset: int) -> bytes:
    one = record.encode([record.Record(0, 0, b"key", b"value")])
    return record_batch.encode(one, base_offset=offset, last_offset_delta=0, record_count=1)


def made() -> bytes:
    return data_object.build(
        [[StreamRecord(7, 1, offset, 1, kafka_batch(offset))] for offset in range(3)]
    )


def changed(row: int, **fields: int) -> bytes:
    parsed = data_object.parse(made())
    entries = parsed.entries.copy()
    for name, value in fields.items():
        entries[name][row] = value
    return parsed.body + entries.tobytes() + data_object.encode_footer(parsed.footer)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (made()[:-1], "automq-object/footer"),
        (changed(1, start_offset=0), "automq-object/index"),
        (changed(1, position=0), "automq-object/index"),
        (changed(2, record_count=2), "automq-object/record"),
        (b"\x5b" + made()[1:], "automq-object/block"),
        (made()[:60] + b"\xff" + made()[61:], "automq-object/batch-crc"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_each_kind_of_damage_has_its_code(data: bytes, code: str) -> None:
    assert code in codes(data)
    assert codes(made()) == set()


def test_links_out_of_order_are_found() -> None:
    entries = data_object.parse(made()).entries
    sound = composite_object.build([(1, entries[:1]), (2, entries[1:])])
    assert codes(sound) == set()
    links = composite_object.build([(1, entries[:0]), (2, entries[1:])])
    assert codes(links) == {"automq-object/links"}
    (finding,) = composite_object.check_linked(
        composite_object.parse(sound), {1: entries[:1], 2: entries[1:2]}
    )
    assert finding.code == "automq-object/index"


@given(data=st.binary(max_size=200), tail=st.booleans())
def test_any_bytes_survive(data: bytes, tail: bool) -> None:
    data = data + made()[-48:] if tail else data
    for module in (data_object, composite_object):
        parsed = module.parse(data)
        assert module.encode(parsed) == data
        for found in module.check(parsed):
            assert found.position is not None
            assert 0 <= found.position <= found.position + (found.length or 0) <= len(data)


def test_a_built_object_is_parsed_again() -> None:
    parsed = data_object.parse(made())
    part, faults = data_object.entry_records(parsed, 2)
    assert not faults
    assert part.record(0) == StreamRecord(7, 1, 2, 1, kafka_batch(2))
    assert list(data_object.streams(parsed.entries)) == [7]
    assert parsed.end_offset.tolist() == [1, 2, 3]
    assert np.all(parsed.entries["record_count"] == 1)
