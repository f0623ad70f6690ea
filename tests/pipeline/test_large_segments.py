"""One large segment is read by several tasks."""

import os
from pathlib import Path

import numpy as np
import pytest
from bench.generate import GIB, KIB, MIB, Spec, generate
from pipeline.places import span

from logtool.checks import segment_ranges
from logtool.checks.report import SegmentTask
from logtool.formats import offset_index
from logtool.log import opening
from logtool.schemas import arrow
from logtool.spark.engine import SparkEngine, _shared_out, check_units
from logtool.spark.source import reading
from logtool.spark.source.reading import ReadOptions
from logtool.verify import Verification


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """A segment of 3 GiB with a batch and an index entry every 32 MiB, and holes between them."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    log = folder / f"{0:020d}.log"
    positions = range(0, 2 * GIB, 32 * MIB)
    with log.open("wb") as file:
        for number, position in enumerate(positions):
            file.seek(position)
            file.write(span(10 * number, 10 * number + 9))
    os.truncate(log, 3 * GIB)
    entries = np.empty(len(positions) - 1, offset_index.ENTRY)
    entries["position"] = positions[1:]
    entries["relative_offset"] = np.arange(1, len(positions)) * 10 + 9
    log.with_suffix(".index").write_bytes(entries.tobytes())
    return log


def test_the_data_source_plans_several_tasks_for_a_segment_of_3_gib(sparse):
    """The first 2 GiB have index entries; no index can point to a byte behind them."""
    options = ReadOptions("batches", tuple(arrow.schema("batches").names))
    bundles = reading.plan([sparse], options)
    pieces = [piece for bundle in bundles for piece in bundle]
    assert len(bundles) > 20
    assert [piece.stop for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]
    assert (pieces[0].start, pieces[-1].stop) == (0, None)
    assert pieces[-1].start >= 2 * GIB - 64 * MIB


def test_verify_and_scan_plan_several_tasks_for_a_segment_of_3_gib(sparse):
    (segment,) = opening.open_partition(sparse.parent).segments
    pieces = segment_ranges.cut(SegmentTask(segment), 384 * MIB)
    assert len(pieces) == 5
    assert pieces[-1].piece is not None
    assert pieces[-1].piece.stop == 3 * GIB
    tasks = _shared_out([[piece] for piece in pieces], 2)
    assert len(tasks) == 4
    assert all(tasks)


@pytest.mark.spark
def test_spark_plans_as_many_tasks_for_a_segment_of_3_gib(spark, sparse):
    source = pytest.importorskip("logtool.spark.source.source")
    assert source.batches(spark, sparse).rdd.getNumPartitions() > 20


@pytest.mark.spark
def test_tasks_share_one_segment_and_find_what_one_task_finds(spark, tmp_path, monkeypatch):
    source = pytest.importorskip("logtool.spark.source.source")
    functions = pytest.importorskip("pyspark.sql.functions")
    folder = generate(tmp_path, Spec(KIB, 8 * MIB, segment_size=8 * MIB))
    rows = source.batches(spark, folder, bundleBytes=MIB)
    by_task = rows.groupBy(functions.spark_partition_id()).count().collect()
    assert len(by_task) >= 8
    assert sum(row["count"] for row in by_task) == rows.count() == 8 * MIB // KIB
    monkeypatch.setattr("logtool.spark.engine.PIECE_BYTES", MIB)
    monkeypatch.setattr("logtool.spark.engine.TASK_BYTES", MIB)
    monkeypatch.setattr("logtool.checks.segment_ranges.MAX_SEGMENT_SIZE", 6 * MIB)

    def numbered(units):
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield -1 - context.partitionId(), len(units)
        yield from check_units(units)

    seen: list[int] = []
    monkeypatch.setattr("logtool.spark.engine.SparkRunner.take_task", lambda _, n: seen.append(n))
    job = Verification([folder], engine=SparkEngine(spark, numbered))
    assert [item for item in job if getattr(item, "severity", "") == "error"] == []
    assert job.summary.batches == 8 * MIB // KIB
    assert len(seen) >= 6
    assert all(seen)
