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
        (99, (4, 3)),
    ],
)
def test_the_highest_metadata_version_shows_the_release(
    level: int, release: tuple[int, int]
) -> None:
    assert releases.of_feature(level) == release


@pytest.mark.parametrize(
    ("release", "known"),
    [((3, 3), (3, 3)), ((3, 6), (3, 3)), ((3, 8), (3, 7)), ((4, 1), (3, 9)), ((5, 0), (4, 3))],
)
def test_the_nearest_known_release_is_not_newer(
    release: tuple[int, int], known: tuple[int, int]
) -> None:
    assert releases.nearest(release) == known
