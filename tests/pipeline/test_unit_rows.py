"""Rows that an executor writes of a unit."""

from collections.abc import Sequence

import pytest
from pyarrow import parquet

from logtool.checks.report import Level, SegmentTask
from logtool.log import opening
from logtool.schemas.arrow import Payload
from logtool.spark.scan.runs import begin
from logtool.spark.scan.unit_rows import ScanWork


def records(output, segments) -> list[dict]:
    run = begin(str(output), "one")
    work = ScanWork(run.staging, frozenset({"records"}), Payload.FULL)
    units: list[tuple[int, Sequence[SegmentTask]]] = [
        (0, [SegmentTask(segment, Level.RECORDS) for segment in segments])
    ]
    for number, parts in work(units):
        if number < 0:
            run.add(parts)
    return [row for name in run.files("records") for row in parquet.read_table(name).to_pylist()]


@pytest.mark.parametrize("topic", ["codec-none-0", "codec-zstd-0"])
def test_records_of_a_batch_too_large_for_a_chunk_are_rows_too(
    scenario, tmp_path, monkeypatch, topic
):
    segments = opening.open_partition(scenario("4.3.1/clean") / topic).segments
    expected = records(tmp_path / "whole", segments)
    for module in ("log.walk.scanner", "spark.scan.unit_rows"):
        monkeypatch.setattr(f"logtool.{module}.LARGEST_BUFFERED_BATCH", 64)
    monkeypatch.setattr("logtool.log.walk.scanner.BUFFER_SIZE", 100)
    assert records(tmp_path / "large", segments) == expected
    assert len(expected) > 5
