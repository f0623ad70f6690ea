import pytest

from logtool.errors import FormatError
from logtool.formats import control_record
from logtool.log import control


def key(kind):
    return control_record.KEY.pack(0, kind)


UUID = bytes(range(16))
VALUES = {
    "LEADER_CHANGE": (
        2,
        "0000 00000001 02 00000001 00 02 00000001 00 00",
        {
            "version": 0,
            "leaderId": 1,
            "voters": [{"voterId": 1}],
            "grantingVoters": [{"voterId": 1}],
        },
    ),
    "SNAPSHOT_HEADER": (
        3,
        "0000 0000018bcfe56800 00",
        {"version": 0, "lastContainedLogTimestamp": 1_700_000_000_000},
    ),
    "SNAPSHOT_FOOTER": (4, "0000 00", {"version": 0}),
    "KRAFT_VERSION": (5, "0000 0001 00", {"version": 0, "kRaftVersion": 1}),
    "KRAFT_VOTERS": (
        6,
        f"0000 02 00000001 {UUID.hex()} 02 02 43 02 68 2384 00 0000 0001 00 00 00",
        {
            "version": 0,
            "voters": [
                {
                    "voterId": 1,
                    "voterDirectoryId": "AAECAwQFBgcICQoLDA0ODw",
                    "endpoints": [{"name": "C", "host": "h", "port": 9092}],
                    "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
                }
            ],
        },
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_the_messages_of_kraft_are_spelled_out(name):
    kind, value, data = VALUES[name]
    found = control.decode(key(kind), bytes.fromhex(value))
    assert found == {"version": 0, "type": kind, "name": name, "data": data}


def test_a_later_leader_change_names_directories():
    voter = "00000001 " + UUID.hex() + " 00"
    value = bytes.fromhex(f"0001 00000001 02 {voter} 02 {voter} 00")
    (found,) = control.decode(key(2), value)["data"]["voters"]
    assert found == {"voterId": 1, "voterDirectoryId": "AAECAwQFBgcICQoLDA0ODw"}


@pytest.mark.parametrize("name", VALUES)
def test_every_cut_is_an_error_or_loses_only_tags(name):
    kind, value, data = VALUES[name]
    whole = bytes.fromhex(value)
    for size in range(len(whole)):
        try:
            found = control.decode(key(kind), whole[:size])
        except FormatError:
            continue
        assert (size, found["data"]) >= (len(whole) - 1, data) or found["data"] == data


def test_an_unknown_type_is_a_value_without_data():
    found = control.decode(key(99), b"anything")
    assert (found["name"], found["data"]) == ("UNKNOWN(99)", None)


def test_a_huge_array_ends_where_the_bytes_end():
    with pytest.raises(FormatError):
        control.decode(key(2), bytes.fromhex("0000 00000001 ffffffff0f"))


def test_a_varint_without_end_is_an_error():
    with pytest.raises(FormatError, match="end"):
        control.decode(key(2), bytes.fromhex("0000 00000001") + b"\xff" * 9)
