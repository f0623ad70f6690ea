"""Offset indexes with entries of 12 bytes (KIP-1333) are recognised, and no other index is."""

import numpy as np
import pytest
from log_dir_damage import home_of
from verification import small_log_dir, verify

from logtool.formats import offset_index
from logtool.verify import Level


def wide(offsets, positions, padding=0):
    rows = np.zeros(len(offsets), offset_index.WIDE_ENTRY)
    rows["relative_offset"], rows["position"] = offsets, positions
    return rows.tobytes() + bytes(padding)


@pytest.mark.parametrize("count", [1, 2, 3, 200])
@pytest.mark.parametrize("padding", [0, 12, 4096])
def test_entries_of_12_bytes_are_recognised(count, padding):
    offsets, positions = np.arange(1, count + 1) * 7, np.arange(1, count + 1) * 4096
    data = wide(offsets, positions, padding)
    for given in (data, data.rstrip(b"\0")):
        index = offset_index.parse(given, len(data))
        assert (index.is_wide, len(index)) == (True, 0)
        assert offset_index.encode(index) == data
        found = [(one.code, one.position) for one in offset_index.check(index)]
        assert found == [("offset-index/newer-format", 0)]


@pytest.mark.parametrize("change", [{0: 0}, {1: 7}, {2: 5}])
def test_entries_that_do_not_rise_are_not_recognised(change):
    offsets = np.array([7, 14, 21])
    for at, value in change.items():
        offsets[at] = value
    assert not offset_index.parse(wide(offsets, [4096, 8192, 12288])).is_wide


@pytest.mark.parametrize("name", ["4.3.1/clean", "4.3.1/killed", "2.8.2/magic-0"])
def test_no_index_of_a_broker_is_taken_for_one(scenario, name):
    indexes = list(scenario(name).rglob("*.index"))
    assert indexes
    for path in indexes:
        data = path.read_bytes()
        damaged = data[:4] + bytes(4) + data[8:]
        for cut in range(min(len(data), 64)):
            assert not offset_index.parse(data[:cut]).is_wide
        assert not offset_index.parse(data).is_wide
        assert not offset_index.parse(damaged).is_wide


@pytest.mark.parametrize("level", [Level.QUICK, Level.BATCHES, Level.RECORDS])
def test_verify_reports_the_format_and_nothing_else(scenario, tmp_path, level):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", "index.dense-0")
    path = home_of(home, "0.index")
    index = offset_index.parse(path.read_bytes())
    path.write_bytes(wide(index.relative_offsets, index.positions))
    found = [one for one in verify(home, level=level).findings if one.path == path]
    assert [one.code for one in found] == ["offset-index/newer-format"]
