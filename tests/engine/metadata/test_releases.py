"""Known releases, and the release in a registration."""

import pytest

from logtool.metadata import releases


@pytest.mark.parametrize(
    ("level", "release"),
    [
        (7, (3, 3)),
        (11, (3, 5)),
        (19, (3, 7)),
        (21, (3, 9)),
        (27, (4, 1)),
        (30, (4, 3)),
        (31, (4, 4)),
        (33, (4, 4)),
        (34, None),
        (99, None),
    ],
)
def test_the_highest_metadata_version_shows_the_release(
    level: int, release: tuple[int, int] | None
) -> None:
    assert releases.of_feature(level) == release


@pytest.mark.parametrize(
    ("release", "known"),
    [((3, 3), (3, 3)), ((3, 6), (3, 3)), ((3, 8), (3, 7)), ((4, 1), (4, 1)), ((5, 0), (4, 4))],
)
def test_the_nearest_known_release_is_not_newer(
    release: tuple[int, int], known: tuple[int, int]
) -> None:
    assert releases.nearest(release) == known


@pytest.mark.parametrize(
    ("release", "parses", "offers"),
    [((3, 3), (1, 7), (1, 7)), ((3, 9), (1, 23), (1, 21)), ((4, 3), (7, 31), (7, 30)),
     ((4, 4), (7, 34), (7, 33))],
)  # fmt: skip
def test_a_release_parses_levels_that_it_does_not_offer(
    release: tuple[int, int], parses: tuple[int, int], offers: tuple[int, int]
) -> None:
    support = releases.supported()[release]
    for levels, (first, last) in ((support.parses, parses), (support.offers, offers)):
        found = levels[releases.METADATA_VERSION]
        assert (found.first, found.last) == (first, last)


def test_every_known_release_is_in_the_table() -> None:
    assert set(releases.KNOWN) <= set(releases.supported())
