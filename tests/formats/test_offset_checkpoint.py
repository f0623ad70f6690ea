import pytest
from format_checks import findings_of

from logtool.formats import offset_checkpoint

ON_DISK = b"0\n2\ntopic-a 0 4711\ntopic-b 12 0\n"
found_in = findings_of(offset_checkpoint)


def test_rows_know_their_line_and_position() -> None:
    checkpoint = offset_checkpoint.parse(ON_DISK)
    assert (checkpoint.file.version, checkpoint.file.count) == (0, 2)
    assert [(r.topic, r.partition, r.offset) for r in checkpoint.rows] == [
        ("topic-a", 0, 4711),
        ("topic-b", 12, 0),
    ]
    assert [(r.line.number, r.line.position) for r in checkpoint.rows] == [(3, 4), (4, 19)]
    assert list(offset_checkpoint.check(checkpoint)) == []


def test_a_built_checkpoint_is_what_kafka_writes() -> None:
    checkpoint = offset_checkpoint.build({("topic-a", 0): 4711, ("topic-b", 12): 0})
    assert offset_checkpoint.encode(checkpoint) == ON_DISK
    assert checkpoint == offset_checkpoint.parse(ON_DISK)
    assert offset_checkpoint.encode(offset_checkpoint.build({})) == b"0\n0\n"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"0\r\n1\r\nt 0 5\r\n", id="crlf"),
        pytest.param(b"0\r1\rt 0 5\r", id="cr"),
        pytest.param(b"0\n1\nt 0 5", id="no-final-line-end"),
        pytest.param(b"0\n1\nt \t\x0b 0  5 \t\n", id="any-white-space-between-and-after"),
        pytest.param(b"+0\n+1\nt +0 +5\n", id="plus-signs"),
        pytest.param(b"-0\n01\nt 00 005\n", id="leading-zeros"),
        pytest.param(b"0\n0001\nt " + b"0" * 5000 + b" 5\n", id="more-zeros-than-int-takes"),
    ],
)
def test_what_kafka_reads_is_read(data: bytes) -> None:
    checkpoint = offset_checkpoint.parse(data)
    assert checkpoint.offsets == {("t", 0): 5}
    assert list(offset_checkpoint.check(checkpoint)) == []


def test_a_topic_may_be_any_utf_8() -> None:
    assert offset_checkpoint.parse("0\n1\nth\u00e9\u00a0me 0 5\n".encode()).offsets == {
        ("th\u00e9\u00a0me", 0): 5
    }


def test_of_two_rows_for_one_partition_the_last_counts() -> None:
    assert offset_checkpoint.parse(b"0\n2\nt 0 5\nt 0 6\n").offsets == {("t", 0): 6}


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param(b"", [("empty", 0)], id="empty-file"),
        pytest.param(b"0\n", [("empty", 0)], id="version-only"),
        pytest.param(b"0\n0\n", [], id="no-entries"),
        pytest.param(b"1\n0\n", [("version", 0)], id="version"),
        pytest.param(b"0 \n0\n", [("version", 0)], id="version-with-space"),
        pytest.param(b"\xef\xbb\xbf0\n0\n", [("version", 0)], id="byte-order-mark"),
        pytest.param(b"0\n2\nt 0 5\n", [("count", 2)], id="count-too-high"),
        pytest.param(b"0\n0\nt 0 5\n", [("count", 2)], id="count-too-low"),
        pytest.param(b"0\n-1\n", [("count", 2)], id="count-negative"),
        pytest.param(b"0\nx\nt 0 5\n", [("count", 2)], id="count-no-number"),
        pytest.param(b"0\n4294967297\nt 0 5\n", [("count", 2)], id="count-beyond-32-bits"),
        pytest.param(b"0\n2\nt 0 5\n\n", [("malformed-line", 10)], id="blank-line"),
        pytest.param(b"0\n1\n t 0 5\n", [("malformed-line", 4)], id="leading-space"),
        pytest.param(b"0\n1\nt 0\n", [("malformed-line", 4)], id="two-fields"),
        pytest.param(b"0\n1\nt 0 5 6\n", [("malformed-line", 4)], id="four-fields"),
        pytest.param(b"0\n1\nt 0 5x\n", [("malformed-line", 4)], id="offset-no-number"),
        pytest.param(b"0\n1\nt 2147483648 5\n", [("malformed-line", 4)], id="partition-too-large"),
        pytest.param(
            b"0\n1\nt 0 9223372036854775808\n", [("malformed-line", 4)], id="offset-too-large"
        ),
        pytest.param(b"0\n1\nt 0 \xd9\xa5\n", [("malformed-line", 4)], id="arabic-digit"),
        pytest.param(b"0\n1\n\xff 0 5\n", [("malformed-line", 4)], id="not-utf-8"),
        pytest.param(b"0\n3\nt 0 5\n\0\0\n\0\n", [("malformed-line", 10)], id="run"),
        pytest.param(
            b"0\n3\n\nt 0 5\n\n", [("malformed-line", 4), ("malformed-line", 11)], id="two-runs"
        ),
        pytest.param(b"0\n1\nt 0 -1\n", [("negative-offset", 4)], id="offset-negative"),
        pytest.param(b"0\n1\nt -1 0\n", [("negative-partition", 4)], id="partition-negative"),
        pytest.param(b"0\n2\nt 0 5\nt +0 6\n", [("duplicate", 10)], id="duplicate"),
        pytest.param(b"\0" * 64, [("empty", 0), ("version", 0)], id="zeroed"),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: bytes, expected: list[tuple[str, int]]) -> None:
    assert found_in(damaged) == expected


def test_messages_name_the_line_and_both_sides() -> None:
    data = b"0\n7\nt 0 5\n" + b"x" * 100 + b"\nt 0 6\n"
    messages = [found.message for found in offset_checkpoint.check(offset_checkpoint.parse(data))]
    wanted = [
        ("line 2: ", "count of 3", "'7'"),
        ("line 4: ", "'" + "x" * 59 + "..."),
        ("line 5: ", "offset 5", "line 3", "'t 0 6'"),
    ]
    for message, parts in zip(messages, wanted, strict=True):
        assert [part for part in parts if part not in message] == []


def test_a_message_stays_one_printable_line_whatever_the_bytes() -> None:
    (found,) = offset_checkpoint.check(offset_checkpoint.parse(b"0\n1\n\x1b[2J\xff\x00\xc2\x85\n"))
    assert found.message.isascii()
    assert found.message.isprintable()


@pytest.mark.parametrize("size", range(len(ON_DISK)))
def test_only_a_cut_inside_the_last_numbers_can_go_unnoticed(size: int) -> None:
    sound = found_in(ON_DISK[:size]) == []
    assert sound == (size == len(ON_DISK) - 1)
