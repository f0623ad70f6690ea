import pytest

from logtool.formats import kraft_snapshot
from logtool.formats.kraft_snapshot import BodyBatch, SnapshotState

NAME = "00000000000000000123-0000000007"
HEADER, FOOTER = kraft_snapshot.SNAPSHOT_HEADER, kraft_snapshot.SNAPSHOT_FOOTER
SOUND = [
    BodyBatch(0, 0, 2, 7, (HEADER, 5, 6)),
    BodyBatch(200, 3, 9, 7),
    BodyBatch(900, 10, 10, 7, (FOOTER,)),
]


def found_in(batches: list[BodyBatch], epoch: int | None = 7) -> list[tuple[str, int | None]]:
    return [
        (found.code.removeprefix("kraft-snapshot/"), found.position)
        for found in kraft_snapshot.check(batches, epoch=epoch)
    ]


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (".checkpoint", SnapshotState.COMPLETE),
        ("-987.checkpoint.part", SnapshotState.PARTIAL),
        (".checkpoint.deleted", SnapshotState.DELETED),
    ],
)
def test_the_names_that_kafka_writes_are_canonical(end: str, state: SnapshotState) -> None:
    found = kraft_snapshot.parse(NAME + end)
    assert found == kraft_snapshot.SnapshotName(NAME + end, state, 123, 7, canonical=True)
    assert kraft_snapshot.encode(found) == NAME + end


@pytest.mark.parametrize(
    ("name", "end_offset", "epoch"),
    [
        (f"{NAME}.checkpoint.part", 123, 7),
        (f"{NAME}-987.checkpoint", 123, 7),
        (f"{NAME.replace('-', '_')}.checkpoint", 123, 7),
        ("+0000000000000000123-0000000007.checkpoint", 123, 7),
        ("99999999999999999999-0000000007.checkpoint", None, 7),
        ("00000000000000000123-9999999999.checkpoint", 123, None),
        ("00000000000000000123.checkpoint", 123, None),
        ("x.checkpoint", None, None),
        (".checkpoint", None, None),
    ],
)
def test_other_names_give_what_kafka_would_read(
    name: str, end_offset: int | None, epoch: int | None
) -> None:
    found = kraft_snapshot.parse(name)
    assert found is not None
    assert (found.end_offset, found.epoch, found.canonical) == (end_offset, epoch, False)


@pytest.mark.parametrize("name", ["", NAME, f"{NAME}.checkpoint.tmp", "quorum-state"])
def test_a_name_with_another_suffix_is_no_snapshot(name: str) -> None:
    assert kraft_snapshot.parse(name) is None


def test_a_sound_body_has_no_findings() -> None:
    assert found_in(SOUND) == []
    assert found_in(SOUND, epoch=None) == []


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param([], [("header", 0)], id="no-batches"),
        pytest.param(SOUND[:2], [("footer", 200)], id="cut-before-the-footer"),
        pytest.param(SOUND[:1], [("footer", 0)], id="only-the-header"),
        pytest.param(SOUND[1:], [("header", 200), ("offsets", 200)], id="header-lost"),
        pytest.param([SOUND[0], SOUND[2]], [("offsets", 900)], id="batch-lost"),
        pytest.param(
            [SOUND[0], BodyBatch(200, 3, 9, 7, (HEADER,)), SOUND[2]], [("header", 200)], id="twice"
        ),
        pytest.param(
            [SOUND[0], BodyBatch(200, 3, 9, 7, (FOOTER,)), SOUND[2]], [("footer", 200)], id="early"
        ),
        pytest.param(
            [SOUND[0], BodyBatch(200, 3, 9, 8), SOUND[2]], [("epoch", 200)], id="epoch-differs"
        ),
        pytest.param(
            [BodyBatch(0, 0, 2, 7, (5, HEADER)), *SOUND[1:]],
            [("header", 0)],
            id="header-not-first-in-its-batch",
        ),
        pytest.param(
            [*SOUND, BodyBatch(950, 11, 11, 7)],
            [("footer", 900), ("footer", 950)],
            id="data-after-the-footer",
        ),
    ],
)
def test_each_kind_of_damage_is_found_once(
    damaged: list[BodyBatch], expected: list[tuple[str, int]]
) -> None:
    assert found_in(damaged) == expected
