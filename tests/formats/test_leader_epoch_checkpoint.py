import pytest
from format_checks import findings_of

from logtool.formats import leader_epoch_checkpoint

ON_DISK = b"0\n2\n0 0\n3 4711\n"
found_in = findings_of(leader_epoch_checkpoint)


def test_rows_know_their_line_and_position() -> None:
    checkpoint = leader_epoch_checkpoint.parse(ON_DISK)
    assert checkpoint.epochs == [(0, 0), (3, 4711)]
    assert [(row.line.number, row.line.position) for row in checkpoint.rows] == [(3, 4), (4, 8)]


def test_a_built_checkpoint_is_what_kafka_writes() -> None:
    checkpoint = leader_epoch_checkpoint.build([(0, 0), (3, 4711)])
    assert leader_epoch_checkpoint.encode(checkpoint) == ON_DISK
    assert checkpoint == leader_epoch_checkpoint.parse(ON_DISK)


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n", ON_DISK, ON_DISK.replace(b"\n", b"\r\n")])
def test_a_sound_checkpoint_has_no_findings_even_without_entries(data: bytes) -> None:
    assert found_in(data) == []


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param(b"7\n1\n0 0\n", [("version", 0)], id="version"),
        pytest.param(b"0\n2\n0 0\n", [("count", 2)], id="count"),
        pytest.param(b"0\n1\n0 0 0\n", [("malformed-line", 4)], id="three-fields"),
        pytest.param(b"0\n1\n2147483648 0\n", [("malformed-line", 4)], id="epoch-too-large"),
        pytest.param(b"0\n2\n3 0\n3 9\n", [("order", 8)], id="epoch-repeats"),
        pytest.param(b"0\n2\n3 0\n2 9\n", [("order", 8)], id="epoch-falls"),
        pytest.param(b"0\n2\n3 9\n4 9\n", [("order", 8)], id="offset-repeats"),
        pytest.param(b"0\n2\n3 9\n4 8\n", [("order", 8)], id="offset-falls"),
        pytest.param(b"0\n1\n-1 0\n", [("negative", 4)], id="epoch-negative"),
        pytest.param(b"0\n1\n0 -1\n", [("negative", 4)], id="offset-negative"),
        pytest.param(
            b"0\n3\n3 9\n-4 10\n4 10\n", [("negative", 8)], id="negative-accuses-no-neighbour"
        ),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: bytes, expected: list[tuple[str, int]]) -> None:
    assert found_in(damaged) == expected


def test_a_message_of_order_has_both_entries() -> None:
    (found,) = leader_epoch_checkpoint.check(leader_epoch_checkpoint.parse(b"0\n2\n3 9\n2 8\n"))
    assert found.message.startswith("line 4: ")
    assert [
        one for one in ("epoch", "offset", " 9", "line 3", "'2 8'") if one not in found.message
    ] == []
