import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA
from damage import flip
from hypothesis import given
from hypothesis import strategies as st

from logtool.dump.log import Filter
from logtool.dump.stream import Dump
from logtool.errors import UnreadableError
from logtool.formats import record, record_batch
from logtool.formats.record import Record
from logtool.log.walk import scanner
from logtool.running.summary import Summary

NAME = f"{0:020d}.log"


def batch(base_offset: int, count: int = 2) -> bytes:
    records = [Record(n, n, b"k", b"v" * 40) for n in range(count)]
    return record_batch.encode(
        record.encode(records), base_offset=base_offset, last_offset_delta=count - 1,
        record_count=count, base_timestamp=0, max_timestamp=count,
    )  # fmt: skip


SOUND = b"".join(batch(offset) for offset in (0, 2, 4))


def dumped(path: Path, *, records: bool = True) -> tuple[list[Any], Summary]:
    job = Dump([path], Filter(records=records))
    return list(job), job.summary


def test_every_cut_of_a_log_gives_the_whole_batches_and_one_error(tmp_path):
    path = tmp_path / NAME
    size = len(SOUND) // 3
    for cut in range(1, len(SOUND)):
        path.write_bytes(SOUND[:cut])
        found, summary = dumped(path)
        whole, rest = divmod(cut, size)
        kinds = ["file"] + ["batch", "record", "record"] * whole + ["error"] * bool(rest)
        assert [obj["type"] for obj in found] == kinds, cut
        assert (summary.batches, summary.bytes) == (whole, cut)
        assert int(summary.exit_status()) == bool(rest)


@pytest.mark.parametrize("position", range(0, len(SOUND) // 3, 3))
def test_a_flipped_byte_in_the_middle_costs_one_batch_and_is_reported(tmp_path, position):
    path = tmp_path / NAME
    path.write_bytes(flip(SOUND, len(SOUND) // 3 + position))
    found, summary = dumped(path)
    sound = [o["base_offset"] for o in found if o["type"] == "batch" and o["crc_valid"]]
    # The CRC does not cover the offset, the size, the epoch and the magic byte.
    if position < 8 or 12 <= position < 16:
        assert len(sound) == 3
    else:
        assert sound == [0, 4]
        assert [o["type"] for o in found].count("error") == 1
        assert int(summary.exit_status()) == 1


@given(data=st.binary(max_size=400), name=st.sampled_from([
    NAME, f"{5:020d}.index", f"{5:020d}.timeindex", f"{5:020d}.txnindex", f"{5:020d}.snapshot",
    "leader-epoch-checkpoint", "partition.metadata", "quorum-state", "meta.properties",
    ".kafka_cleanshutdown", "replication-offset-checkpoint", "bootstrap.checkpoint", ".lock",
    f"{5:020d}-{1:010d}.checkpoint",
]))  # fmt: skip
def test_any_bytes_under_any_name_are_dumped_without_an_exception(tmp_path_factory, data, name):
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(data)
    found, summary = dumped(path)
    assert found[0]["type"] == "file"
    assert summary.complete
    assert summary.bytes == len(data)


@given(st.binary(max_size=300), st.integers(0, 4))
def test_any_payload_under_a_sound_crc_is_dumped_without_an_exception(
    tmp_path_factory, payload, codec
):
    path = tmp_path_factory.mktemp("any") / NAME
    head = bytearray(batch(0))[: record_batch.HEADER_SIZE]
    head[8:12] = (record_batch.HEADER_SIZE - 12 + len(payload)).to_bytes(4, "big")
    head[22] = codec
    data = bytes(head) + payload
    crc = __import__("crc32c").crc32c(data[21:])
    path.write_bytes(data[:17] + crc.to_bytes(4, "big") + data[21:])
    found, _ = dumped(path)
    assert [o["type"] for o in found][:2] == ["file", "batch"]


def test_what_cannot_be_read_comes_first_and_stops_nothing(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(SOUND)
    job = Dump([tmp_path / "missing", path])
    items: list[Any] = list(job)
    first, *rest = items
    assert isinstance(first, UnreadableError)
    assert [o["type"] for o in rest] == ["file", "batch", "batch", "batch"]
    assert not job.summary.complete


def test_a_file_that_goes_away_meanwhile_is_unreadable(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(SOUND)
    job = Dump([path])
    path.unlink()
    (only,) = job
    assert isinstance(only, UnreadableError)


def test_a_selection_that_takes_nothing_leaves_nothing_to_dump(tmp_path):
    from logtool.log.selection import Selection

    home = tmp_path / "home"
    (home / "orders-0").mkdir(parents=True)
    (home / "orders-0" / NAME).write_bytes(SOUND)
    job = Dump([home], selection=Selection(topics=("bills",)))
    assert list(job) == []
    assert job.summary.has_no_partition


def test_the_indexes_of_tiered_storage_are_found(tmp_path):
    cache = tmp_path / "home" / "remote-log-index-cache"
    cache.mkdir(parents=True)
    (tmp_path / "home" / "meta.properties").write_text("version=1\n")
    (cache / "300_J8aAPcfLQt2bqs1JT_rMgQ.index").write_bytes(
        (3).to_bytes(4, "big") + (96).to_bytes(4, "big")
    )
    found: list[Any] = list(Dump([tmp_path / "home"]))
    (entry,) = (o for o in found if o.get("kind") == "offset-index" and o["type"] == "entry")
    assert entry["offset"] == 303


def test_progress_counts_up_to_all_bytes(tmp_path):
    for offset in (0, 6):
        (tmp_path / f"{offset:020d}.log").write_bytes(SOUND)
    steps: list[tuple[int, int]] = []
    job = Dump([tmp_path])
    job.progress.on_progress = lambda now: steps.append((now.bytes_done, now.bytes_total))
    list(job)
    assert steps[-1] == (2 * len(SOUND), 2 * len(SOUND))
    assert steps == sorted(steps)


def test_a_limit_ends_the_dump_and_what_was_read_is_counted(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(SOUND)
    job = Dump([path], limit=1)
    items: list[Any] = list(job)
    assert [o["type"] for o in items] == ["file", "batch"]
    assert (job.summary.batches, job.summary.complete) == (3, True)


def test_a_batch_of_redpanda_that_is_too_large_to_hold_is_the_same(tmp_path, monkeypatch):
    log = tmp_path / "kafka" / "t" / "0_1" / "0-1-v1.log"
    log.parent.mkdir(parents=True)
    shutil.copy(DATA / "redpanda" / "test_segment.bin", log)
    kept, _ = dumped(log)
    for name in ("BUFFER_SIZE", "LARGEST_BUFFERED_BATCH"):
        monkeypatch.setattr(scanner, name, 70)
    assert dumped(log)[0] == kept
    assert sum(obj["type"] == "record" for obj in kept) == 4
