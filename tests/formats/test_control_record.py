import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.errors import FormatError
from logtool.formats import control_record, record, record_batch
from logtool.formats.control_record import ControlRecord

COMMIT = bytes.fromhex(
    "0000000000000066 00000042 00000007 02 9d6739a1 0030 00000000 0000018bcfe5680a"
    "0000018bcfe5680a 0000000000000fa0 0002 ffffffff 00000001"
    "20 00 00 00 08 00000001 0c 000000000003 00"
)


def test_the_reference_marker_decodes():
    assert control_record.parse_batch(memoryview(COMMIT)) == ControlRecord(
        0, control_record.COMMIT, 3
    )
    assert control_record.parse_batch(memoryview(COMMIT)).name == "COMMIT"


def test_the_reference_marker_encodes():
    key, value = control_record.encode_end_transaction(commit=True, coordinator_epoch=3)
    encoded = record_batch.encode(
        record.encode([record.Record(0, 0, key, value)]),
        base_offset=102,
        last_offset_delta=0,
        record_count=1,
        leader_epoch=7,
        attributes=record_batch.TRANSACTIONAL | record_batch.CONTROL,
        base_timestamp=1700000000010,
        max_timestamp=1700000000010,
        producer_id=4000,
        producer_epoch=2,
    )
    assert encoded == COMMIT


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (2, "LEADER_CHANGE", "0000 00000001 02 00000001 00 02 00000001 00 00"),
        (3, "SNAPSHOT_HEADER", "0000 0000018bcfe56800 00"),
        (4, "SNAPSHOT_FOOTER", "0000 00"),
        (5, "KRAFT_VERSION", "0000 0001 00"),
        (6, "KRAFT_VOTERS", ""),
        (7, "UNKNOWN(7)", ""),
        (-1, "UNKNOWN(-1)", ""),
        (-32768, "UNKNOWN(-32768)", ""),
    ],
)
def test_every_type_has_its_name_and_an_unknown_one_is_a_value(kind, name, value):
    control = control_record.parse(control_record.KEY.pack(0, kind), bytes.fromhex(value))
    assert (control.type, control.name, control.coordinator_epoch) == (kind, name, -1)


@given(st.booleans(), st.integers(-(2**31), 2**31 - 1))
def test_a_marker_survives_a_round_trip(commit, epoch):
    key, value = control_record.encode_end_transaction(commit=commit, coordinator_epoch=epoch)
    assert control_record.parse(key, value) == ControlRecord(0, int(commit), epoch)


def test_a_higher_version_is_read_as_the_known_one():
    control = control_record.parse(bytes.fromhex("0007 0001"), bytes.fromhex("0009 00000005"))
    assert control == ControlRecord(7, control_record.COMMIT, 5)


def test_longer_keys_and_values_are_accepted():
    control = control_record.parse(bytes.fromhex("00000000 ff"), bytes.fromhex("000000000005 ff"))
    assert control == ControlRecord(0, control_record.ABORT, 5)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (None, b"", "key.*null"),
        (b"", b"", r"key.*\b0 bytes"),
        (b"\0\0\0", b"", r"key.*\b3 bytes"),
        (b"\xff\xff\0\0", bytes(6), "version -1"),
        (b"\0\0\0\0", None, "value.*null"),
        (b"\0\0\0\x01", bytes(5), r"value.*\b5 bytes"),
        (b"\0\0\0\x01", b"\x80" + bytes(5), "version -32768"),
    ],
)
def test_what_a_broker_cannot_read_is_an_error(key, value, words):
    with pytest.raises(FormatError, match=words):
        control_record.parse(key, value)


def test_every_cut_and_every_flipped_byte_of_a_marker_is_a_value_or_a_format_error():
    payload_at = record_batch.HEADER_SIZE
    inputs = [COMMIT[:size] for size in range(len(COMMIT))]
    for at in range(payload_at, len(COMMIT)):
        for value in range(256):
            inputs.append(COMMIT[:at] + bytes([value]) + COMMIT[at + 1 :])
    for data in inputs:
        try:
            control = control_record.parse_batch(memoryview(data))
        except FormatError:
            continue
        assert -32768 <= control.type <= 32767
        assert control.name


def test_a_batch_without_records_is_a_format_error():
    with pytest.raises(FormatError):
        control_record.parse_batch(memoryview(COMMIT)[: record_batch.HEADER_SIZE])
