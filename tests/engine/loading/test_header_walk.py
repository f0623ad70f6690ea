"""The walk over headers: mapped or copied it finds the batches that a full scan finds."""

import os
from pathlib import Path

import numpy as np
import pytest
from bench.generate import KIB, MIB, Spec, generate
from verification import batches

from logtool.disk.files import LogFile
from logtool.formats import record_batch
from logtool.formats.record_batch import BatchTable
from logtool.loading.header_walk import HeaderWalk


def walked(source: LogFile) -> tuple[BatchTable, HeaderWalk]:
    walk = HeaderWalk(source, 0, "log")
    return record_batch.concat(list(walk.tables(0))), walk


@pytest.mark.parametrize("size", [200, 9 * KIB, 600 * KIB])
@pytest.mark.parametrize("changes", ["no", "shrinks", "cannot-be-mapped"])
def test_the_batches_are_those_of_a_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, changes: str
) -> None:
    (log,) = generate(tmp_path, Spec(size, 3 * MIB)).glob("*.log")
    map_range, asked, expected = LogFile.map_range, [], batches(log)
    if changes == "shrinks":
        # Of the last batch that is left, the header is enough.
        expected = expected[expected.position + 61 <= log.stat().st_size // 2]

    def taken(source: LogFile, position: int, left: int) -> object:
        asked.append(position)
        if changes == "cannot-be-mapped":
            return None
        mapped = map_range(source, position, left)
        if changes == "shrinks":
            os.truncate(log, log.stat().st_size // 2)
        return mapped

    monkeypatch.setattr(LogFile, "map_range", taken)
    with LogFile(log) as source:
        found, walk = walked(source)
    assert asked[0] == 0
    for name in ("position", "size", "base_offset", "last_offset", "record_count"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert walk.end == int(expected.position[-1] + expected.size[-1])
    assert walk.bytes_read == (int(expected.size.sum()) if size < 4096 else len(expected) * 61)
