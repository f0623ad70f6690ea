import pytest
from format_checks import findings_of

from logtool.formats import partition_metadata

UUID = "J8aAPcfLQt2bqs1JT_rMgQ"
ON_DISK = f"version: 0\ntopic_id: {UUID}".encode()
found_in = findings_of(partition_metadata)


def test_the_two_lines_are_read() -> None:
    metadata = partition_metadata.parse(ON_DISK)
    assert (metadata.version, metadata.topic_id) == (0, UUID)
    assert list(partition_metadata.check(metadata)) == []


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(ON_DISK + b"\n", id="final-line-end"),
        pytest.param(ON_DISK.replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(ON_DISK + b"\nmore", id="third-line"),
        pytest.param(ON_DISK + b"==", id="padded-uuid"),
        pytest.param(ON_DISK.replace(b": ", b":\t "), id="other-white-space"),
        pytest.param(ON_DISK.replace(b"0", b"9", 1), id="higher-version"),
        pytest.param(ON_DISK[:-1] + b"R", id="stray-low-bits"),
    ],
)
def test_what_kafka_reads_is_read(data: bytes) -> None:
    assert partition_metadata.parse(data).topic_id == UUID
    assert found_in(data) == []


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param(b"", [("malformed", 0)], id="empty"),
        pytest.param(b"version: 0\n", [("malformed", 11)], id="no-topic-id"),
        pytest.param(ON_DISK.replace(b": 0", b":0"), [("malformed", 0)], id="no-space"),
        pytest.param(ON_DISK.replace(b": 0", b": 0 "), [("malformed", 0)], id="space-after"),
        pytest.param(ON_DISK.replace(b": 0", b": x"), [("malformed", 0)], id="version-no-number"),
        pytest.param(ON_DISK.replace(b": 0", b": -1"), [("version", 0)], id="version-negative"),
        pytest.param(ON_DISK[:-1], [("malformed", 11)], id="uuid-cut"),
        pytest.param(ON_DISK + b"A", [("malformed", 11)], id="uuid-too-long"),
        pytest.param(ON_DISK.replace(b"_rM", b"/rM"), [("malformed", 11)], id="plain-base64"),
        pytest.param(ON_DISK.replace(b"_rM", b"\xffrM"), [("malformed", 11)], id="not-utf-8"),
        pytest.param(b"version: 0\ntopic_id: " + b"A" * 22, [("zero-id", 11)], id="zero-id"),
        pytest.param(ON_DISK.replace(b"topic_id", b"topic"), [("key", 11)], id="other-key"),
        pytest.param(bytes(43), [("malformed", 0), ("malformed", 43)], id="zeroed"),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: bytes, expected: list[tuple[str, int]]) -> None:
    assert found_in(damaged) == expected
