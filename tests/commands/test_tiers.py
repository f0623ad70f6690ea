"""Commands that read log dirs with the objects of tiered storage as one log."""

import json
import shutil
import struct
from pathlib import Path

import aiven_objects
import pytest
from damage import flip
from remote_events import FIRST_MS, ORDERS, EventLog, log_dir, segment_id

from logtool.formats import leader_epoch_checkpoint, record, record_batch
from logtool.remote import local

MANIFEST = Path(__file__).resolve().parents[1] / "data" / "tiered" / "manifest.json"
(ENTRY,) = json.loads(MANIFEST.read_text())


@pytest.fixture(scope="module")
def tiers(scenario):
    """Return the folder with `data` and `objects`, which is shared and must not be changed."""
    return scenario("tiered/4.3.1")


def offsets(found):
    """Return the offsets of the records by partition, without control records."""
    read: dict[str, list[int]] = {}
    for one in found.of_type("record"):
        if not one["control"]:
            read.setdefault(f"{one['topic']}-{one['partition']}", []).append(one["offset"])
    return read


def dump(run, *paths):
    return run("dump", "--records", "-f", "ndjson", "--exclude-topic", "__*", *paths)


def test_records_are_those_that_a_consumer_reads(run, tiers):
    found = dump(run, tiers / "objects", tiers / "data")
    assert (found.status, offsets(found)) == (0, ENTRY["consumed"])


def test_a_partition_dir_is_enough(run, tiers):
    found = dump(run, tiers / "data" / "aged-1", tiers / "objects")
    assert (found.status, offsets(found)) == (0, {"aged-1": list(range(10))})


def test_batches_of_both_parts_are_printed_and_counted(run, tiers):
    given = ("-f", "ndjson", "--topic", "sized", tiers / "objects", tiers / "data")
    batches = [one["base_offset"] for one in run("dump", *given).of_type("batch")]
    assert batches == [5, 6, 7, 8, 9]
    (partition,) = run("stat", *given).of_type("partition")
    assert (partition["segments"], partition["batches"]) == (5, 5)
    (gaps,) = run("gaps", *given).of_type("partition")
    assert (gaps["log_start_offset"], gaps["visible"], gaps["missing"]) == (5, 5, 0)
    found = run("lookup", "--offset", "6", "--partition", "0", *given)
    (answer,) = found.of_type("lookup")
    assert (found.status, answer["log_start_offset"], answer["local_log_start_offset"]) == (0, 5, 5)
    assert {one["segment"] for one in found.of_type("place")} == {6}


def test_salvage_saves_both_parts(run, tiers, tmp_path):
    out = tmp_path / "out"
    found = run("salvage", "--output", out, "--topic", "aged", tiers / "objects", tiers / "data")
    assert found.status == 0
    saved = dump(run, out / "partitions" / "aged-0")
    assert offsets(saved) == {"aged-0": list(range(10))}


def test_objects_behind_a_url_are_read(run, tiers):
    import fsspec

    store = fsspec.filesystem("memory")
    try:
        store.put(str(tiers / "objects"), "/bucket/below", recursive=True)
        found = dump(run, "--topic", "aged", "memory://bucket", tiers / "data")
        expected = {name: ENTRY["consumed"][name] for name in ("aged-0", "aged-1")}
        assert (found.status, offsets(found)) == (0, expected)
    finally:
        store.rm("/bucket", recursive=True)


@pytest.mark.parametrize("form", [{}, {"compress": True, "chunk_size": 300}, {"encrypt": True}])
def test_objects_of_aivens_plugin_are_read_unless_they_are_encrypted(run, tiers, tmp_path, form):
    home = aiven_objects.write(tiers / "objects", tmp_path / "bucket", "aged", **form)
    found = dump(run, "--topic", "aged", home, tiers / "data")
    read = [9] if "encrypt" in form else list(range(10))
    assert offsets(found) == {"aged-0": read, "aged-1": read}
    assert found.status == (4 if "encrypt" in form else 0)


def without_a_log(home):
    next(home.glob("objects/aged-0-*/*2-*.log")).unlink()


def with_a_cut_log(home):
    path = next(home.glob("objects/aged-0-*/*2-*.log"))
    path.write_bytes(path.read_bytes()[:-1])


def without_metadata(home):
    for path in home.glob("data/__remote_log_metadata-*"):
        shutil.rmtree(path)


@pytest.mark.parametrize(
    ("damage", "lost"),
    [(without_a_log, {2}), (with_a_cut_log, {2}), (without_metadata, set(range(9)))],
)
def test_what_cannot_be_read_makes_the_run_incomplete(run, copy_of, damage, lost):
    home = copy_of("tiered/4.3.1")
    damage(home)
    given = ("--topic", "aged", "--partition", "0", home / "objects", home / "data")
    found = dump(run, *given)
    assert (found.status, set(offsets(found)["aged-0"])) == (4, set(range(10)) - lost)
    assert run("gaps", *given).status == 4


TIERED = {
    name: list(range(one["earliest"], one["latest-tiered"] + 1))
    for name, one in ENTRY["offsets"].items() if "latest-tiered" in one
}  # fmt: skip
"""The offsets in remote storage, with those of control records."""


def batch_offsets(found):
    """Return the offsets of the batches by partition."""
    read: dict[str, list[int]] = {}
    for one in found.of_type("batch"):
        name = f"{one['topic']}-{one['partition']}"
        read.setdefault(name, []).extend(range(one["base_offset"], one["last_offset"] + 1))
    return read


def test_objects_alone_are_read(run, tiers, tmp_path):
    found = run("dump", "-f", "ndjson", tiers / "objects")
    assert (found.status, batch_offsets(found)) == (0, TIERED)
    one = next((tiers / "objects").glob("kept-0-*"))
    of_one = run("dump", "-f", "ndjson", one)
    assert (of_one.status, batch_offsets(of_one)) == (0, {"kept-0": TIERED["kept-0"]})
    assert str(one) in {Path(batch["path"]).parent.as_posix() for batch in found.of_type("batch")}
    partitions = run("stat", "-f", "ndjson", tiers / "objects").of_type("partition")
    assert {f"{one['topic']}-{one['partition']}": one["batches"] for one in partitions} == {
        name: len(offsets) for name, offsets in TIERED.items()
    }
    out = tmp_path / "out"
    assert run("salvage", "--output", out, "--topic", "aged", tiers / "objects").status == 0
    saved = dump(run, out / "partitions" / "aged-0", out / "partitions" / "aged-1")
    assert offsets(saved) == {name: TIERED[name] for name in ("aged-0", "aged-1")}


@pytest.mark.parametrize("form", [{}, {"compress": True, "chunk_size": 300}, {"encrypt": True}])
def test_objects_of_aivens_plugin_are_read_without_a_log_dir(run, tiers, tmp_path, form):
    home = aiven_objects.write(tiers / "objects", tmp_path / "bucket", "aged", **form)
    read = {} if "encrypt" in form else {name: TIERED[name] for name in ("aged-0", "aged-1")}
    for path in (home, next(home.iterdir())):
        found = run("dump", "-f", "ndjson", path)
        assert (found.status, batch_offsets(found)) == (4 if "encrypt" in form else 0, read)


def without_the_directory(home):
    shutil.rmtree(home / "aged-1")


def without_records(home):
    for path in (home / "aged-1").glob("0*"):
        path.unlink()
    (home / "aged-1" / f"{0:020d}.log").touch()


@pytest.mark.parametrize("loss", [without_the_directory, without_records])
def test_a_partition_without_a_local_copy_is_read(run, copy_of, tmp_path, loss):
    home = copy_of("tiered/4.3.1")
    loss(home / "data")
    given = ("-f", "ndjson", "--topic", "aged", home / "objects", home / "data")
    expected = {"aged-0": list(range(10)), "aged-1": list(range(9))}
    found = run("dump", "--records", *given)
    assert (found.status, offsets(found)) == (0, expected)
    counted = {one["partition"]: one["batches"] for one in run("stat", *given).of_type("partition")}
    assert counted == {0: 10, 1: 9}
    gaps = {one["partition"]: one for one in run("gaps", *given).of_type("partition")}
    assert (gaps[1]["log_start_offset"], gaps[1]["log_end_offset"], gaps[1]["missing"]) == (0, 9, 0)
    (answer,) = run("lookup", "--offset", "3", "--partition", "1", *given).of_type("lookup")
    assert answer["log_start_offset"] == 0
    out = tmp_path / "out"
    assert run("salvage", "--output", out, *given[2:]).status == 0
    saved = dump(run, out / "partitions" / "aged-0", out / "partitions" / "aged-1")
    assert offsets(saved) == expected


def test_a_formatted_disk_leaves_the_objects(run, tiers, tmp_path):
    shutil.copy(tiers / "data" / "meta.properties", tmp_path)
    found = run("dump", "-f", "ndjson", tiers / "objects", tmp_path)
    assert (found.status, batch_offsets(found)) == (0, TIERED)


def test_a_lookup_in_several_partitions_asks_for_one(run, tiers):
    for paths in ((tiers / "objects",), (tiers / "objects", tiers / "data")):
        found = run("lookup", "--offset", "3", "--topic", "aged", *paths)
        assert found.status == 2
        assert "aged-0, aged-1" in found.stderr


def test_objects_of_a_deleted_topic_are_no_log_of_the_cluster(run, copy_of):
    home = copy_of("tiered/4.3.1")
    (folder,) = home.glob("objects/kept-0-*")
    before = folder.with_name(f"kept-0-{ORDERS}")
    shutil.copytree(folder, before)
    (home / "data" / "kept-0").rename(home / "gone")
    found = run("dump", "-f", "ndjson", "--topic", "kept", home / "objects", home / "data")
    assert (found.status, batch_offsets(found)) == (0, {"kept-0": TIERED["kept-0"]})
    # Without the metadata log nothing says which topic is meant.
    both = run("dump", "-f", "ndjson", home / "objects")
    assert both.status == 4
    assert batch_offsets(both) == {name: TIERED[name] for name in TIERED if name != "kept-0"}
    assert ORDERS in both.stderr
    assert batch_offsets(run("dump", "-f", "ndjson", before)) == {"kept-0": TIERED["kept-0"]}


@pytest.mark.parametrize("given", ["objects", "log dirs"])
def test_a_log_that_is_lost_is_named_without_a_local_copy(run, copy_of, given):
    home = copy_of("tiered/4.3.1")
    without_the_directory(home / "data")
    for path in home.glob("objects/aged-1-*/*[25]-*.log"):
        path.unlink()
    lost = {int(path.name[:20]) for path in home.glob("objects/aged-1-*/*.index")} - {
        int(path.name[:20]) for path in home.glob("objects/aged-1-*/*.log")
    }
    paths = [home / "objects", *([home / "data"] if given == "log dirs" else [])]
    found = run("dump", "--topic", "aged", "--partition", "1", "-f", "ndjson", *paths)
    assert lost
    assert (found.status, set(batch_offsets(found)["aged-1"])) == (4, set(range(9)) - lost)


DANGLING = ["remote/dangling-copy"]
"""The findings of the log dir and the objects as the broker left them."""


def found_codes(found):
    return sorted(one["code"] for one in found.of_type("finding"))


def test_verify_checks_log_dirs_and_objects(run, tiers):
    alone = run("verify", "-f", "ndjson", tiers / "data")
    both = run("verify", "-f", "ndjson", tiers / "data", tiers / "objects")
    assert (both.status, found_codes(both)) == (1, sorted(found_codes(alone) + DANGLING))
    objects = run("verify", "-f", "ndjson", tiers / "objects")
    assert (objects.status, found_codes(objects)) == (0, [])
    totals = [one.of_type("summary")[0] for one in (alone, both, objects)]
    assert totals[2]["partitions"] == len(TIERED)
    for name in ("partitions", "segments", "batches", "bytes"):
        assert totals[1][name] == totals[0][name] + totals[2][name]


@pytest.mark.parametrize("level", ["quick", "batches", "records"])
def test_verify_names_what_remote_verify_names(run, copy_of, level):
    home = copy_of("tiered/4.3.1")
    without_a_log(home)
    kept = next(home.glob("objects/kept-0-*/*5-*.log"))
    kept.write_bytes(flip(kept.read_bytes(), 100))
    index = next(home.glob("objects/kept-0-*/*4-*.timeindex"))
    index.write_bytes(index.read_bytes() + b"x")
    words = ("-f", "ndjson", "--exclude-topic", "aborted")
    alone = run("verify", "--level", level, *words, home / "data")
    both = run("verify", "--level", level, *words, home / "data", home / "objects")
    new = [one for one in both.of_type("finding") if str(home / "objects") in one["path"]]
    assert len(new) == len(both.of_type("finding")) - len(alone.of_type("finding"))
    crc = [] if level == "quick" else ["batch/crc"]
    assert sorted(one["code"] for one in new) == [
        *crc, "remote/missing-object", "time-index/length",
    ]  # fmt: skip
    # No command changes an object, and no start reads one.
    assert {(one["broker"], one["next"]) for one in new} == {("never", None)}
    assert not {one["remedy"] for one in new} & {"broker", "recover", "loss"}


def test_verify_of_aivens_objects(run, tiers, tmp_path):
    home = aiven_objects.write(tiers / "objects", tmp_path / "bucket", "kept")
    given = ("-f", "ndjson", "--topic", "kept", home, tiers / "data")
    assert found_codes(run("verify", *given)) == []
    sorted(home.rglob("*.log"))[3].unlink()
    assert found_codes(run("verify", *given)) == ["remote/missing-object"]


def test_verify_without_records_is_incomplete(run, copy_of):
    home = copy_of("tiered/4.3.1")
    without_metadata(home)
    found = run("verify", "-f", "ndjson", home / "data", home / "objects")
    assert found.status == 4
    assert [one["reason"] for one in found.of_type("error")] == ["nothing-matched"]


@pytest.mark.parametrize("plugin", ["local", "aiven"])
def test_scan_names_the_command_for_objects(run, tiers, tmp_path, plugin):
    prefix = tiers / "objects"
    if plugin == "aiven":
        prefix = aiven_objects.write(prefix, tmp_path / "bucket", "kept")
    found = run("scan", "--output", tmp_path / "out", tiers / "data", prefix)
    assert found.status == 2
    assert f"logtool remote verify --rsm {plugin} {prefix} {tiers / 'data'}" in found.stderr
    assert not (tmp_path / "out").exists()


def store(home: Path, log: EventLog, number: int, bases: range, epochs, lineage=None) -> None:
    """Copy a segment of batches with two records; their values are the number of the segment."""
    batches = [
        record_batch.encode(
            record.encode([record.Record(at, value=str(number).encode()) for at in (0, 1)]),
            base_offset=base, last_offset_delta=1, record_count=2, base_timestamp=FIRST_MS,
            max_timestamp=FIRST_MS,
            leader_epoch=max(epoch for epoch, first in epochs if first <= base),
        ) for base in bases
    ]  # fmt: skip
    data = b"".join(batches)
    folder = home / f"orders-0-{ORDERS}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{bases[0]:020d}-{segment_id(number)}.log").write_bytes(data)
    checkpoint = leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(lineage or epochs))
    name = f"{bases[0]:020d}-{segment_id(number)}.leader_epoch_checkpoint"
    (folder / name).write_bytes(checkpoint)
    log.copy(number, first=bases[0], last=bases[-1] + 1, epochs=epochs, size=len(data))


def test_batches_of_another_lineage_and_those_that_are_local_are_left_out(run, tmp_path):
    log, bucket = EventLog(), tmp_path / "bucket"
    store(bucket, log, 0, range(0, 10, 2), [(0, 0)])
    store(bucket, log, 1, range(10, 20, 2), [(0, 10)])  # offsets 14 to 19 are of a lost leader
    store(bucket, log, 2, range(14, 26, 2), [(1, 14)])  # offsets from 20 on are local
    store(bucket, log, 3, range(6, 12, 2), [(5, 6)])  # of no epoch in the log
    home = log_dir(tmp_path / "data", log, local=(20, 30), epochs=[(0, 0), (1, 14)])
    found = dump(run, bucket, home)
    read = [(one["offset"], one["value"]["utf8"]) for one in found.of_type("record")]
    assert found.status == 0
    assert read == [
        *((at, "0") for at in range(10)), *((at, "1") for at in range(10, 14)),
        *((at, "2") for at in range(14, 20)), *((at, "v") for at in range(20, 30)),
    ]  # fmt: skip


def test_the_segment_with_the_log_start_is_there_and_those_below_are_not(run, tmp_path):
    log, bucket = EventLog(), tmp_path / "bucket"
    store(bucket, log, 0, range(0, 10, 2), [(0, 0)])
    store(bucket, log, 1, range(10, 20, 2), [(0, 10)])
    home = log_dir(tmp_path / "data", log, local=(20, 30), log_start=13, epochs=[(0, 13)])
    (gaps,) = run("gaps", "-f", "ndjson", "--topic", "orders", bucket, home).of_type("partition")
    assert (gaps["log_start_offset"], gaps["visible"], gaps["missing"]) == (13, 17, 0)


def test_offsets_that_are_nowhere_are_named(run, tmp_path):
    log, bucket = EventLog(), tmp_path / "bucket"
    store(bucket, log, 0, range(0, 10, 2), [(0, 0)])
    home = log_dir(tmp_path / "data", log, local=(20, 30))
    found = dump(run, bucket, home)
    assert (found.status, len(found.of_type("record"))) == (4, 20)
    assert "10 through 19" in found.stderr


@pytest.mark.parametrize("given", ["objects", "log dirs"])
def test_the_last_leader_decides_without_a_local_copy(run, tmp_path, given):
    log, bucket = EventLog(), tmp_path / "bucket"
    store(bucket, log, 2, range(14, 26, 2), [(1, 14)], [(0, 0), (1, 12)])
    store(bucket, log, 0, range(0, 10, 2), [(0, 0)])
    store(bucket, log, 1, range(10, 20, 2), [(0, 10)])  # offsets 12 to 19 are of a lost leader
    home = log_dir(tmp_path / "data", log, local=(26, 30))
    shutil.rmtree(home / "orders-0")
    found = run("dump", "--records", "-f", "ndjson", "--topic", "orders", bucket,
                *([home] if given == "log dirs" else []))  # fmt: skip
    read = [(one["offset"], one["value"]["utf8"]) for one in found.of_type("record")]
    assert read == [
        *((at, "0") for at in range(10)), *((at, "1") for at in range(10, 12)),
        *((at, "2") for at in range(14, 26)),
    ]  # fmt: skip
    assert found.status == 4
    assert "offsets 12 through 13" in found.stderr


def test_objects_that_no_record_names_are_read_without_a_local_copy(run, tmp_path):
    log, bucket = EventLog(), tmp_path / "bucket"
    store(bucket, log, 0, range(0, 10, 2), [(0, 0)])
    home = log_dir(tmp_path / "data", EventLog(), local=(26, 30))
    shutil.rmtree(home / "orders-0")
    found = dump(run, bucket, home)
    assert (found.status, offsets(found)) == (0, {"orders-0": list(range(10))})


def test_a_partition_that_only_records_name_is_incomplete(run, tmp_path):
    log, bucket = EventLog(), tmp_path / "bucket"
    store(bucket, log, 0, range(0, 10, 2), [(0, 0)])
    log.copy(1)
    other = {"name": "orders", "id": ORDERS, "partition": 1}
    log.of = other
    log.copy(2, first=0, last=9)
    home = log_dir(tmp_path / "data", log, local=(20, 30))
    found = run("stat", "-f", "ndjson", "--topic", "orders", "--partition", "1", bucket, home)
    assert found.status == 4
    assert segment_id(2) in found.stderr


INDEXES = {"right": (8, 4), "in a batch": (8, 3.5), "beyond the end": (8, 99), "empty": None}
"""The last entry of an offset index: relative offset, and the batch that it leads to."""


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_that_leads_to_the_last_batch_is_only_a_help(run, tmp_path, monkeypatch, name):
    monkeypatch.setattr(local, "_SMALL", -1)
    bucket = tmp_path / "bucket"
    store(bucket, EventLog(), 0, range(0, 10, 2), [(0, 0)])
    store(bucket, EventLog(), 1, range(10, 20, 2), [(0, 10)], [(0, 0)])
    entry = INDEXES[name]
    for path in bucket.glob("*/*.log"):
        batch = path.stat().st_size // 5
        data = struct.pack(">ii", entry[0], round(entry[1] * batch)) if entry else b""
        path.with_suffix(".index").write_bytes(data)
    found = dump(run, bucket)
    assert (found.status, offsets(found)) == (0, {"orders-0": list(range(20))})
