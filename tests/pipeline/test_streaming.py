"""A growing log dir as a stream: each row once, through restarts, torn tails and retention."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from verification import batches, logs

from logtool.errors import UnreadableError
from logtool.formats import record, record_batch
from logtool.spark.source import reading
from logtool.spark.source.loss import LostDataError
from logtool.spark.source.reading import ReadOptions
from logtool.spark.source.stream_offsets import Growing

FOLDER = "grows-0"


def batch(first: int, count: int = 3) -> bytes:
    """Return a sound batch."""
    payload = record.encode([record.Record(n, value=b"%d" % (first + n)) for n in range(count)])
    return record_batch.encode(
        payload, base_offset=first, last_offset_delta=count - 1, record_count=count,
        base_timestamp=1_700_000_000_000 + first, max_timestamp=1_700_000_000_000 + first,
    )  # fmt: skip


class Log:
    """A partition that a writer appends to."""

    def __init__(self, home: Path, name: str = FOLDER) -> None:
        self.folder = home / name
        self.folder.mkdir(parents=True)
        self.end = 0
        self.roll()

    def roll(self) -> None:
        self.path = self.folder / f"{self.end:020d}.log"
        self.path.touch()

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            self.write(batch(self.end))
            self.end += 3

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)


def growing(home: Path, **options: Any) -> Growing:
    return Growing((home,), ReadOptions("batches", ("base_offset", "last_offset")), **options)


def offsets(stream: Growing, start: dict, end: dict) -> list[int]:
    rows = [row for pieces in stream.between(start, end) for piece in pieces
            for some in reading.read(piece, stream.asked) for row in some.to_pylist()]  # fmt: skip
    return [row["base_offset"] for row in rows]


def test_positions_survive_json_and_what_lies_between_two_is_read_once(tmp_path):
    log, stream = Log(tmp_path), growing(tmp_path)
    at, seen = stream.initial(), []
    for step in range(6):
        log.append(step)
        if step % 2:
            log.roll()
        end = json.loads(json.dumps(stream.latest(at)))
        seen += offsets(stream, at, end)
        at = end
    assert at == {str(tmp_path): {FOLDER: log.end}}
    assert seen == list(range(0, log.end, 3))
    assert offsets(stream, at, at) == []


def test_every_cut_of_a_tail_is_left_until_it_is_whole(tmp_path):
    log, stream = Log(tmp_path), growing(tmp_path)
    log.append(2)
    before = stream.latest()
    whole = batch(log.end)
    sound = log.path.read_bytes()
    for size in range(1, len(whole)):
        log.path.write_bytes(sound + whole[:size])
        assert stream.latest(before) == before
    log.path.write_bytes(sound + whole)
    assert offsets(stream, before, stream.latest(before)) == [log.end]


def test_sound_batches_behind_damage_come_and_the_damage_never_does(tmp_path):
    log, stream = Log(tmp_path), growing(tmp_path)
    log.append(3)
    data = bytearray(log.path.read_bytes())
    data[len(data) // 2] ^= 1
    log.path.write_bytes(data)
    assert offsets(stream, {}, stream.latest()) == [0, 6]


def test_what_retention_took_is_said(tmp_path, caplog):
    log = Log(tmp_path)
    log.append(2)
    stream = growing(tmp_path)
    start = stream.latest()
    first = log.path
    log.append(1)
    log.roll()
    log.append(2)
    end = stream.latest(start)
    first.unlink()
    with pytest.raises(LostDataError, match=r"offset 9: 6 to 8 .*failOnData"):
        stream.between(start, end)
    assert offsets(growing(tmp_path, fail_on_data_loss=False), start, end) == [9, 12]
    assert "6 to 8" in caplog.text


def test_a_log_that_was_truncated_and_one_that_is_gone_are_said(tmp_path):
    log, other, stream = Log(tmp_path), Log(tmp_path, "other-0"), growing(tmp_path)
    log.append(3)
    other.append(1)
    before = stream.latest()
    log.path.write_bytes(batch(0))
    after = stream.latest(before)
    assert after[str(tmp_path)][FOLDER] == 3
    with pytest.raises(LostDataError, match="offset 3"):
        stream.between(before, after)
    with pytest.raises(LostDataError, match="offset 3"):
        stream.between({}, before)  # a checkpoint that knows more than the log
    shutil.rmtree(other.folder)
    log.append(0)
    with pytest.raises(LostDataError, match="other-0"):
        stream.between(after, stream.latest(after))


def test_a_partition_that_cannot_be_listed_while_a_micro_batch_is_planned_is_a_loss(
    tmp_path, monkeypatch, caplog
):
    log, stream = Log(tmp_path), growing(tmp_path)
    log.append(2)
    end = stream.latest()

    def refuse(*_: Any) -> None:
        raise UnreadableError(log.folder, "Permission denied")

    monkeypatch.setattr(reading, "plan", refuse)
    with pytest.raises(LostDataError, match=str(log.folder)):
        stream.between({}, end)
    assert growing(tmp_path, fail_on_data_loss=False).between({}, end) == []
    assert str(log.folder) in caplog.text


def test_latest_begins_where_the_indexes_lead(scenario):
    home = scenario("4.3.1/clean")
    found = growing(home).latest()
    for folder, end in found[str(home)].items():
        table = [batches(log) for log in logs(home / folder)]
        assert end == max((int(one.last_offset.max()) + 1 for one in table if len(one)), default=0)
    assert growing(home).latest(found) == found


def run(spark, home: Path, work: Path, **options: object) -> None:
    """Run the query until nothing new is there, and stop it: a restart of one with a checkpoint."""
    from pyspark.errors import StreamingQueryException

    from logtool.spark.source import source

    source.register(spark)
    for tries in range(6):
        query = (
            spark.readStream.format("kafka-log").option("table", "records").options(**options)
            .load(str(home)).writeStream.format("parquet").option("path", str(work / "rows"))
            .option("checkpointLocation", str(work / "checkpoint")).start()
        )  # fmt: skip
        try:
            query.processAllAvailable()
            return
        except StreamingQueryException as error:
            # Spark gives the process that plans 10 s to start, which a busy machine may not. To
            # start the query once more is one more restart.
            if tries == 5 or "failed to connect back" not in str(error):
                raise
        finally:
            query.stop()


def rows(work: Path) -> list[tuple]:
    """Return the number of rows that the sink counts as written."""
    import duckdb

    names = [
        json.loads(line)["path"].removeprefix("file://")
        for log in sorted((work / "rows" / "_spark_metadata").glob("[0-9]*"))
        for line in log.read_text().splitlines()[1:]
    ]
    names = sorted(set(names))
    return duckdb.sql(
        f"select directory, segment, batch_position, \"offset\" from read_parquet({names})"
        " order by all"
    ).fetchall() if names else []  # fmt: skip


def at_once(spark, home: Path) -> list[tuple]:
    from logtool.spark.source import source

    found = source.records(spark, home).select("directory", "segment", "batch_position", "offset")
    return sorted(map(tuple, found.collect()))


def grow(whole: Path, folder: Path, share: float) -> None:
    """Let a partition be as long as a share of another: one segment after the other, as written."""
    room = int(share * sum(log.stat().st_size for log in logs(whole)))
    for log in sorted(logs(whole)):
        data = log.read_bytes()
        (folder / log.name).write_bytes(data[:room])
        room -= len(data)
        if room <= 0:
            return


@pytest.mark.spark
@pytest.mark.lowest
def test_each_row_comes_once_through_restarts_while_the_log_dir_grows(spark, scenario, tmp_path):
    whole, home = scenario("4.3.1/clean"), tmp_path / "home"
    names = ["codec-lz4-0", "tx.mixed-0", "small-segments-0"]
    for name in names:
        (home / name).mkdir(parents=True)
    seen = 0
    for step in (1, 2, 3, 4):  # Cut anywhere: the tail is torn in nearly every step.
        for name in names:
            grow(whole / name, home / name, step / 4)
        run(spark, home, tmp_path)
        found = rows(tmp_path)
        assert len(found) == len(set(found)) > seen
        seen = len(found)
    assert found == at_once(spark, home) == [
        row for row in at_once(spark, whole) if row[0] in names
    ]  # fmt: skip


@pytest.mark.spark
def test_a_micro_batch_that_fails_is_read_again_with_the_same_rows(spark, tmp_path):
    from logtool.spark.source import source

    log, seen = Log(tmp_path / "home"), []
    source.register(spark)

    def query(fail: bool):
        def take(frame, number):
            seen.append((number, sorted(row.offset for row in frame.select("offset").collect())))
            if fail:
                raise RuntimeError("the sink is full")

        return (
            spark.readStream.format("kafka-log").option("table", "records")
            .load(str(tmp_path / "home")).writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        )  # fmt: skip

    log.append(2)
    failing = query(fail=True)
    with pytest.raises(Exception, match="the sink is full"):
        failing.processAllAvailable()
    failing.stop()
    log.append(2)  # It has grown since: the first batch is still what it was.
    going_on = query(fail=False)
    going_on.processAllAvailable()
    going_on.stop()
    assert seen == [(0, [*range(6)]), (0, [*range(6)]), (1, [*range(6, 12)])]


@pytest.mark.spark
def test_a_stream_says_in_one_sentence_what_retention_took(spark, tmp_path):
    log = Log(tmp_path / "home")
    log.append(2)
    run(spark, tmp_path / "home", tmp_path)
    first = log.path
    log.append(1)
    log.roll()
    log.append(1)
    first.unlink()
    with pytest.raises(Exception, match="6 to 8"):
        run(spark, tmp_path / "home", tmp_path)
    run(spark, tmp_path / "home", tmp_path, failOnDataLoss="false")
    assert [row[3] for row in rows(tmp_path)] == [*range(6), *range(9, 12)]
