"""`logtool scan --since`: the tables of a full run, from what changed and an earlier run."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas
import pytest
from verification import small_log_dir

from logtool.errors import RefusedError, UsageError
from logtool.formats import record_batch
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.scan import manifest, runs
from logtool.spark.scan.scan import Scan
from logtool.verify import Level

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
PARTITIONS = ("codec-none-0", "compacted.keys-0", "tx.mixed-0", "small-segments-0", "index.dense-0")
_KEYS = ["log_dir", "directory", "segment", "position", "producer_id", "producer_epoch",
         "first_offset", "last_offset", "offset", "number"]  # fmt: skip


def scan(spark, output: Path, homes: list[Path], run_id: str, **options) -> Scan:
    job = Scan(spark, homes, str(output), run_id, **options)
    job.run()
    return job


def table(output: Path, name: str, run_id: str) -> pandas.DataFrame:
    frame = duckdb.read_parquet(manifest.files(str(output), name, run_id)).df()
    return frame.sort_values([key for key in _KEYS if key in frame], ignore_index=True)


def same_tables(output: Path, one: str, other: str, names=arrow.DEFAULT) -> None:
    for name in names:
        pandas.testing.assert_frame_equal(table(output, name, one), table(output, name, other))


def logs(home: Path, partition: str) -> list[Path]:
    return sorted((home / partition).glob("*.log"))


def batches(log: Path) -> list[bytes]:
    """Return the batches of a log, each as its bytes."""
    data, found = log.read_bytes(), []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        found.append(data[:size])
        data = data[size:]
    return found


def moved_to(batch: bytes, offset: int) -> bytes:
    """Return a batch at another offset, which its CRC does not cover."""
    return offset.to_bytes(8, "big") + batch[8:]


def next_offset(log: Path) -> int:
    last = batches(log)[-1]
    return int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") + 1


def append(homes: list[Path]) -> int:
    log = logs(homes[0], "codec-none-0")[-1]
    log.write_bytes(log.read_bytes() + moved_to(batches(log)[-1], next_offset(log)))
    return 1


def roll(homes: list[Path]) -> int:
    log = logs(homes[0], "small-segments-0")[-1]
    offset = next_offset(log)
    log.with_name(f"{offset:020d}.log").write_bytes(moved_to(batches(log)[-1], offset))
    return 2  # the one before is not the active one any more


def compact(homes: list[Path]) -> int:
    log = next(log for log in logs(homes[1], "small-segments-0") if len(batches(log)) > 2)
    first, _, *rest = batches(log)
    cleaned = log.with_suffix(".swap")
    cleaned.write_bytes(b"".join([first, *rest]))
    cleaned.replace(log)
    return 1


def truncate(homes: list[Path]) -> int:
    log = logs(homes[0], "codec-none-0")[-1]
    os.truncate(log, log.stat().st_size - len(batches(log)[-1]))
    return 1


def retention(homes: list[Path]) -> int:
    first = logs(homes[0], "small-segments-0")[0]
    for file in first.parent.glob(f"{first.stem}.*"):
        file.unlink()
    return 0


def deletion(homes: list[Path]) -> int:
    shutil.rmtree(homes[1] / "compacted.keys-0")
    return 0


def move(homes: list[Path]) -> int:
    shutil.move(homes[1] / "tx.mixed-0", homes[2] / "tx.mixed-0")
    return len(logs(homes[2], "tx.mixed-0"))


def damage_an_index(homes: list[Path]) -> int:
    index = next(iter(sorted((homes[0] / "index.dense-0").glob("*.index"))))
    index.write_bytes(index.read_bytes()[:-3])
    return 1


def abort_a_transaction(homes: list[Path]) -> int:
    """Take the last marker of a log with transactions: what was ended is open again."""
    log = logs(homes[0], "tx.mixed-0")[-1]
    found = batches(log)
    while found and not int.from_bytes(found[-1][21:23], "big") & record_batch.CONTROL:
        found.pop()
    log.write_bytes(b"".join(found[:-1]))
    return 1


def write_checkpoint(homes: list[Path]) -> int:
    """Raise a log start: gaps are listed from there on, and no segment changed."""
    start = int(logs(homes[0], "small-segments-0")[2].stem)
    (homes[0] / "log-start-offset-checkpoint").write_text(f"0\n1\nsmall-segments 0 {start}\n")
    return 0


def rot_at_the_end(homes: list[Path]) -> int:
    """Another last batch in a file of the same inode, size and time."""
    log = logs(homes[2], "index.dense-0")[0]
    status = log.stat()
    last = batches(log)[-1]
    with log.open("r+b") as file:
        file.seek(status.st_size - len(last) + 17)
        file.write(bytes(byte ^ 1 for byte in last[17:21]))
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))
    return 1


def nothing(homes: list[Path]) -> int:
    return 0


CHANGES: list[Callable[[list[Path]], int]] = [
    nothing, append, roll, compact, truncate, retention, deletion, move, damage_an_index,
    abort_a_transaction, write_checkpoint, rot_at_the_end,
]  # fmt: skip
"""Each returns how many segments must be read again."""


@pytest.fixture
def homes(scenario, tmp_path) -> list[Path]:
    clean = scenario("4.3.1/clean")
    found = [small_log_dir(clean, tmp_path / f"broker-{number}", *PARTITIONS) for number in (1, 2)]
    return [*found, small_log_dir(clean, tmp_path / "broker-3", "index.dense-0")]


def test_after_every_kind_of_change_the_tables_are_those_of_a_full_run(spark, homes, tmp_path):
    output = tmp_path / "out"
    scan(spark, output, homes, "full")
    before = "full"
    for change in CHANGES:
        again = change(homes)
        full = scan(spark, output, homes, "full")
        job = scan(spark, output, homes, change.__name__, since=before)
        same_tables(output, change.__name__, "full")
        assert job.summary.segments == full.summary.segments
        assert full.summary.segments - job.carried == again, change.__name__
        assert job.summary.codes == full.summary.codes
        before = change.__name__
    assert full.carried == 0
    # Each run has its own files: those it was made of may go.
    for change in CHANGES[:-1]:
        runs.remove(str(output), change.__name__)
    same_tables(output, before, "full")


def test_rows_of_a_segment_that_changed_go_from_files_that_stay(spark, homes, tmp_path):
    output = tmp_path / "out"
    scan(spark, output, homes, "one")
    append(homes)
    scan(spark, output, homes, "two", since="one")
    old, new = ({Path(name).name for name in manifest.files(str(output), "batches", run_id)}
                for run_id in ("one", "two"))  # fmt: skip
    scan(spark, output, homes, "three", since="two")
    assert {Path(name).name for name in manifest.files(str(output), "batches", "three")} == new
    assert old != new


@pytest.mark.parametrize("payload", [Payload.NONE, Payload.HASH])
def test_records_are_taken_over_too(spark, homes, tmp_path, payload):
    wanted = ("segments", "records", "findings")
    options = {"wanted": wanted, "payload": payload}
    output = tmp_path / "out"
    scan(spark, output, homes, "one", **options)
    append(homes)
    scan(spark, output, homes, "full", **options)
    assert scan(spark, output, homes, "two", since="one", **options).carried > 10
    same_tables(output, "two", "full", wanted)


def test_pieces_of_a_segment_are_taken_over_as_a_whole(spark, homes, tmp_path, monkeypatch):
    monkeypatch.setattr("logtool.spark.engine.PIECE_BYTES", 2000)
    monkeypatch.setattr("logtool.spark.engine.TASK_BYTES", 2000)
    output = tmp_path / "out"
    scan(spark, output, homes, "one")
    append(homes)
    scan(spark, output, homes, "full")
    scan(spark, output, homes, "two", since="one")
    same_tables(output, "two", "full")


def test_what_could_not_be_read_is_read_again(spark, homes, tmp_path):
    output = tmp_path / "out"
    log = logs(homes[0], "codec-none-0")[0]
    kept = log.rename(log.with_suffix(".kept"))
    log.symlink_to("nowhere")
    assert not scan(spark, output, homes, "one").summary.complete
    log.unlink()
    kept.rename(log)
    assert scan(spark, output, homes, "two", since="one").summary.complete
    scan(spark, output, homes, "full")
    same_tables(output, "two", "full")


def test_a_run_that_cannot_be_gone_on_from_is_refused(spark, homes, tmp_path):
    output = tmp_path / "out"
    scan(spark, output, homes, "one", wanted=("segments",))
    before = sorted(output.rglob("*"))
    with pytest.raises(RefusedError, match=r"run none.*\bone"):
        scan(spark, output, homes, "two", since="none")
    same = r"--since one: .*--tables segments --level batches"
    with pytest.raises(UsageError, match=same):
        scan(spark, output, homes, "two", since="one")
    with pytest.raises(UsageError, match=same):
        scan(spark, output, homes, "two", since="one", wanted=("segments",), level=Level.RECORDS)
    assert sorted(output.rglob("*")) == before


def test_reports_of_another_release_are_not_believed(spark, homes, tmp_path, monkeypatch):
    output = tmp_path / "out"
    scan(spark, output, homes, "one", wanted=("segments",))
    monkeypatch.setattr("logtool.spark.scan.incremental.__version__", "99")
    assert scan(spark, output, homes, "two", wanted=("segments",), since="one").carried == 0
