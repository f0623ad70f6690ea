"""An index that was not listed: gone, or renamed by a broker at work while the rest was listed."""

from dataclasses import replace

import pytest

from logtool.checks import indexes
from logtool.formats.names import FileKind
from logtool.log import opening


@pytest.fixture
def home(copy_of):
    return copy_of("4.3.1/clean") / "codec-none-0"


def found_without_indexes(home, *, clean=True):
    """Return the codes for a listing that came before the indexes had their names."""
    (segment,) = opening.open_partition(home).segments
    listed = replace(segment, indexes={})
    return [finding.code for finding in indexes.missing(listed, clean=clean)]


def test_what_is_there_now_is_not_missing(home):
    assert found_without_indexes(home) == []


def test_what_waits_to_be_renamed_is_not_missing(home):
    for path in [*home.glob("*.index"), *home.glob("*.timeindex")]:
        path.rename(f"{path}.swap")
    assert found_without_indexes(home) == []


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (FileKind.OFFSET_INDEX, "offset-index/missing"),
        (FileKind.TIME_INDEX, "time-index/missing"),
    ],
)
def test_what_is_gone_is_missing(home, kind, code):
    (path,) = home.glob(f"*{kind}")
    path.unlink()
    assert found_without_indexes(home) == [code]


def test_what_is_no_file_is_missing(home):
    for path in [*home.glob("*.index"), *home.glob("*.timeindex")]:
        path.unlink()
        path.mkdir()
    assert found_without_indexes(home) == ["offset-index/missing", "time-index/missing"]


def test_a_broker_that_is_killed_leaves_its_active_segment_without_indexes(copy_of):
    home = copy_of("4.3.1/killed") / "small-segments-0"
    segments = opening.open_partition(home).segments
    for one in (segments[0], segments[-1]):
        for index in one.indexes.values():
            index.path.unlink()
    found = [
        finding.code
        for one in opening.open_partition(home).segments
        for finding in indexes.missing(one, clean=False)
    ]
    assert found == ["offset-index/missing", "time-index/missing",
                     "offset-index/not-written", "time-index/not-written"]  # fmt: skip
