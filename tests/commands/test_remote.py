"""`remote` on what a broker of 4.3.1 wrote, and on objects as the plugin of Aiven writes them."""

import json
import shutil
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiven_objects
import pytest
from damage import flip

from logtool.formats.java_text import uuid_bytes

DATA = Path(__file__).resolve().parents[1] / "data" / "tiered"
(ENTRY,) = json.loads((DATA / "manifest.json").read_text())
DANGLING = "TNkdp1dGT0KQXVPAMjz9YA"
"""The segment of `aborted` whose copy ended with an orderly stop of the broker."""


@pytest.fixture(scope="module")
def tiers(scenario):
    """Return the folder with `data` and `objects`, which is shared and must not be changed."""
    return scenario("tiered/4.3.1")


def codes(found):
    return [one["code"] for one in found.of_type("finding")]


def test_the_log_dir_of_a_broker_has_one_dangling_copy(run, tiers):
    found = run("remote", "lineage", "-f", "ndjson", tiers / "data")
    (finding,) = found.of_type("finding")
    assert (found.status, finding["code"]) == (1, "remote/dangling-copy")
    assert DANGLING in finding["message"]
    whole = run("remote", "lineage", "--exclude-topic", "aborted", "-f", "ndjson", tiers / "data")
    assert (whole.status, codes(whole)) == (0, [])


def test_offsets_are_those_that_kafka_reports(run, tiers):
    found = run("remote", "lineage", "-f", "ndjson", tiers / "data")
    seen = {f"{one['topic']}-{one['partition']}": one for one in found.of_type("partition")}
    answers = {name: one for name, one in ENTRY["offsets"].items() if name != "plain-0"}
    assert set(seen) == {*answers, "doomed-0"}
    for name, offsets in answers.items():
        one = seen[name]
        assert one["log_start_offset"] == offsets["earliest"], name
        assert one["log_end_offset"] == offsets["latest"], name
        assert one["local_start_offset"] == offsets["earliest-local"], name
        assert one["remote_end_offset"] == offsets["latest-tiered"] + 1, name


def test_every_offset_that_a_consumer_reads_has_a_place(run, tiers):
    found = run("remote", "lineage", "-f", "ndjson", tiers / "data")
    places: dict[str, dict[int, str]] = {}
    for one in found.of_type("range"):
        of = places.setdefault(f"{one['topic']}-{one['partition']}", {})
        of |= dict.fromkeys(range(one["first_offset"], one["last_offset"] + 1), one["place"])
    for name, offsets in ENTRY["consumed"].items():
        if name != "plain-0":
            assert set(offsets) <= {at for at, place in places[name].items()
                                    if place in ("remote", "local", "both")}  # fmt: skip
    assert set(places["aged-0"].values()) == {"remote", "local"}


def test_the_objects_are_whole_and_named_by_records(run, tiers):
    found = run("remote", "verify", "--rsm", "local", "-f", "ndjson", "--level", "records",
                tiers / "objects", tiers / "data")  # fmt: skip
    assert (found.status, codes(found)) == (1, ["remote/dangling-copy"])
    rows = found.of_type("remote-objects")
    assert {one["content"] for one in rows} == {"checked"}
    assert {one["state"] for one in rows if one["segment_id"] != DANGLING} == {"copy-finished"}


def test_objects_alone_are_checked_too(run, tiers):
    found = run("remote", "verify", "--rsm", "local", "-f", "ndjson", tiers / "objects")
    assert (found.status, codes(found)) == (0, [])
    assert {one["state"] for one in found.of_type("remote-objects")} == {None}


def test_objects_behind_a_url_are_checked(run, tiers):
    import fsspec

    store = fsspec.filesystem("memory")
    source = next((tiers / "objects").glob("aged-0-*"))
    try:
        store.put(str(source), f"/bucket/{source.name}", recursive=True)
        found = run("remote", "verify", "--rsm", "local", "--topic", "aged", "--partition", "0",
                    "-f", "ndjson", "memory://bucket", tiers / "data")  # fmt: skip
        assert (found.status, codes(found)) == (0, [])
        assert {one["content"] for one in found.of_type("remote-objects")} == {"checked"}
        store.rm(next(one for one in store.find("/bucket") if one.endswith(".log")))
        found = run("remote", "verify", "--rsm", "local", "-f", "ndjson", "memory://bucket")
        assert codes(found) == ["remote/missing-object"]
    finally:
        store.rm("/bucket", recursive=True)


def test_nothing_of_the_plugin_is_incomplete(run, tiers):
    assert run("remote", "verify", "--rsm", "aiven", tiers / "objects").status == 4
    assert run("remote", "lineage", tiers / "objects").status == 4
    assert run("remote", "lineage", "--topic", "nosuch", tiers / "data").status == 4


def copied(tiers, tmp_path):
    """Return a copy of the objects of one partition, by first offset and suffix."""
    home = tmp_path / "objects"
    source = next((tiers / "objects").glob("aged-0-*"))
    shutil.copytree(source, home / source.name)
    return home, {
        (int(path.name.split("-")[0]), path.suffix): path
        for path in (home / source.name).iterdir()
    }  # fmt: skip


def remove(files):
    files[2, ".log"].unlink()


def remove_all(files):
    for (base, _), path in files.items():
        if base == 2:
            path.unlink()


def remove_index(files):
    files[2, ".index"].unlink()


def cut(files):
    files[2, ".log"].write_bytes(files[2, ".log"].read_bytes()[:-5])


def change(files):
    files[2, ".log"].write_bytes(flip(files[2, ".log"].read_bytes(), 100))


def swap(files):
    one, other = files[2, ".log"], files[3, ".log"]
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def double(files):
    place = files[2, ".log"].parent
    folder = place.parent / "backup" / place.name
    folder.mkdir(parents=True)
    for (base, _), one in files.items():
        if base == 2:
            shutil.copy(one, folder / one.name)


def rename(files):
    for (base, _), path in files.items():
        if base == 2:
            path.rename(path.with_name(f"{22:020d}{path.name[20:]}"))


def orphan(files):
    for (base, _), path in files.items():
        if base == 2:
            shutil.copy(path, path.with_name(path.name[:21] + "A" * 22 + path.suffix))


def stranger(files):
    files[2, ".log"].with_name("notes.txt").write_text("x")


def break_snapshot(files):
    files[2, ".snapshot"].write_bytes(b"\0\1\0\0")


def other_epochs(files):
    files[2, ".leader_epoch_checkpoint"].write_text("0\n1\n5 0\n")


def swap_indexes(files):
    one, other = files[2, ".timeindex"], files[3, ".timeindex"]
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def swap_all(files):
    """Exchange all objects of two segments, as a copy to wrong keys does."""
    for (base, suffix), path in files.items():
        if base == 2:
            other = files[3, suffix]
            first, second = path.read_bytes(), other.read_bytes()
            path.write_bytes(second)
            other.write_bytes(first)


def empty(files):
    files[2, ".log"].write_bytes(b"")


def cut_header(files):
    files[2, ".log"].write_bytes(files[2, ".log"].read_bytes()[:30])


def append(files):
    files[2, ".log"].write_bytes(files[2, ".log"].read_bytes() + bytes(10))


EXCHANGED = [
    "batch/offset-range", "remote/object-offsets", "time-index/incomplete",
    "time-index/not-a-batch",
]  # fmt: skip
"""One log lies before its segment, one behind it, and the time indexes do not fit."""
LOCAL = {
    "the log is gone": (remove, ["remote/missing-object"]),
    "all objects are gone": (remove_all, ["remote/missing-object"]),
    "an index is gone": (remove_index, ["remote/missing-object"]),
    "the log is cut": (cut, ["log/truncated", "remote/object-size"]),
    "the log is empty": (
        empty, ["remote/object-offsets", "remote/object-size", "time-index/not-a-batch"],
    ),
    "the log is cut in its first header": (cut_header, ["log/truncated", "remote/object-size"]),
    "the log is longer": (append, ["log/truncated", "remote/object-size"]),
    "time indexes are exchanged": (
        swap_indexes,
        ["time-index/incomplete", "time-index/wrong-timestamp", "time-index/wrong-timestamp"],
    ),
    "two segments are exchanged": (
        swap_all, ["batch/offset-range", "remote/object-offsets", "time-index/not-a-batch"],
    ),
    "a byte of the log is changed": (change, ["batch/crc"]),
    "two logs are exchanged": (swap, EXCHANGED),
    "a segment is doubled": (double, ["remote/double-object", "remote/double-object"]),
    "a segment is renamed": (
        rename, ["batch/offset-range", "remote/object-name"],
    ),
    "no record names a segment": (orphan, ["remote/orphan-object"]),
    "another file": (stranger, ["remote/unknown-object"]),
    "the producer snapshot is cut": (break_snapshot, ["producer-snapshot/length"]),
    "leader epochs are others": (other_epochs, ["remote/object-epochs"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LOCAL)
def test_damage_of_objects_is_named(run, tiers, tmp_path, name):
    damage, expected = LOCAL[name]
    home, files = copied(tiers, tmp_path)
    damage(files)
    found = run("remote", "verify", "--rsm", "local", "--topic", "aged", "--partition", "0",
                "-f", "ndjson", home, tiers / "data")  # fmt: skip
    assert sorted(codes(found)) == expected
    assert found.status == (0 if expected == ["remote/unknown-object"] else 1)
    named = {Path(one["path"]).name[:20] for one in found.of_type("finding")} - {"objects"}
    assert named <= {f"{base:020d}" for base in (2, 3, 22)} | {"notes.txt"}


@pytest.mark.parametrize("size", [*range(1, 771, 110), 770])
def test_a_log_that_is_cut_at_any_byte_is_named_and_nothing_else(run, tiers, tmp_path, size):
    home, files = copied(tiers, tmp_path)
    files[2, ".log"].write_bytes(files[2, ".log"].read_bytes()[:size])
    given = ("--rsm", "local", "--topic", "aged", "--partition", "0", "-f", "ndjson", home)
    found = run("remote", "verify", *given, tiers / "data")
    assert codes(found).count("remote/object-size") == 1
    assert {Path(one["path"]).name[:20] for one in found.of_type("finding")} == {f"{2:020d}"}
    alone = run("remote", "verify", *given)
    assert {Path(one["path"]).name[:20] for one in alone.of_type("finding")} == {f"{2:020d}"}


def without_records(home, segment, chosen):
    """Remove the batches of the metadata topic that name a segment; `chosen` picks among them."""
    for path in (home / "data").glob("__remote_log_metadata-*/*.log"):
        data = path.read_bytes()
        ends = [0]
        while ends[-1] < len(data):
            (size,) = struct.unpack_from(">i", data, ends[-1] + 8)
            ends.append(ends[-1] + 12 + size)
        batches = [data[first:end] for first, end in pairwise(ends)]
        of_segment = [one for one in batches if uuid_bytes(segment) in one]
        gone = of_segment[chosen]
        path.write_bytes(b"".join(one for one in batches if one not in gone))
        for index in path.parent.glob("*index"):
            index.unlink()


LOST_RECORDS = {
    # The records that are lost, and the findings about the segment.
    "all": (slice(None), ["remote/orphan-object"]),
    "the first": (slice(1), ["remote/orphan-object"]),
    "the last": (slice(1, None), ["remote/dangling-copy"]),
}


@pytest.mark.parametrize("name", LOST_RECORDS)
def test_segments_whose_records_are_lost_are_named(run, copy_of, name):
    chosen, expected = LOST_RECORDS[name]
    home = copy_of("tiered/4.3.1")
    segment = next(home.glob("objects/kept-0-*/*5-*.log")).stem[21:]
    without_records(home, segment, chosen)
    found = run("remote", "verify", "--rsm", "local", "--topic", "kept", "-f", "ndjson",
                home / "objects", home / "data")  # fmt: skip
    of_objects = [one for one in found.of_type("finding") if "/objects/" in one["path"]]
    assert [one["code"] for one in of_objects] == expected
    assert segment in of_objects[0]["message"]
    assert found.status == 1
    assert set(codes(found)) - set(expected) <= {
        "remote/incomplete-history", "remote/unknown-segment",
    }  # fmt: skip


@pytest.mark.parametrize("left", [(), (0, 1)], ids=["none", "others"])
def test_partitions_of_records_that_are_not_there_judge_nothing(run, copy_of, left):
    home = copy_of("tiered/4.3.1")
    for path in (home / "data").glob("__remote_log_metadata-*"):
        if int(path.name[-1]) not in left:
            shutil.rmtree(path)
    found = run("remote", "verify", "--rsm", "local", "-f", "ndjson", home / "objects",
                home / "data")  # fmt: skip
    states = {one["state"] for one in found.of_type("remote-objects")}
    assert None in states
    assert "remote/orphan-object" not in codes(found)
    assert found.status == (1 if left else 4)


FORMS: dict[str, dict[str, Any]] = {
    "plain": {}, "many chunks": {"chunk_size": 100}, "compressed": {"compress": True},
    "compressed chunks": {"compress": True, "chunk_size": 300},
    "encrypted": {"encrypt": True, "chunk_size": 300},
    "compressed and encrypted": {"compress": True, "encrypt": True},
}  # fmt: skip


RARE = ("many chunks", "compressed", "compressed and encrypted")


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.long) if one in RARE else one for one in FORMS]
)
def test_objects_of_aivens_plugin_are_checked(run, tiers, tmp_path, name):
    home = aiven_objects.write(tiers / "objects", tmp_path / "bucket", "kept", **FORMS[name])
    found = run("remote", "verify", "--rsm", "aiven", "--topic", "kept", "-f", "ndjson",
                home, tiers / "data")  # fmt: skip
    assert (found.status, codes(found)) == (0, [])
    rows = found.of_type("remote-objects")
    content = "encrypted" if "encrypt" in FORMS[name] else "checked"
    assert (len(rows), {one["content"] for one in rows}) == (9, {content})


def _cut(path):
    path.write_bytes(path.read_bytes()[:-3])


def _flip(path):
    data = path.read_bytes()
    path.write_bytes(flip(data, len(data) - 20))


def _break(path):
    path.write_bytes(flip(path.read_bytes(), 0))


def _garble(path):
    path.write_text('{"version": "1"}')


def _exchange(path):
    other = next(one for one in sorted(path.parent.glob("*" + path.suffix)) if one != path)
    data = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


def _empty(path):
    path.write_bytes(b"")


def _double(path):
    """Copy the objects of a segment to another prefix."""
    folder = path.parent
    other = folder.parent.parent / "again" / folder.parent.name / folder.name
    other.mkdir(parents=True)
    for one in folder.glob(f"{path.stem}.*"):
        shutil.copy(one, other)


def _encrypt(path):
    """Encrypt an object once more, which makes it longer."""
    path.write_bytes(path.read_bytes() + bytes(28))


AIVEN = {
    # The form, the object that is damaged, how, and the findings.
    "a cut log": ("plain", ".log", _cut, ["remote/object-size"]),
    "a cut encrypted log": ("encrypted", ".log", _cut, ["remote/object-size"]),
    "a changed log": ("plain", ".log", _flip, ["batch/crc"]),
    "a changed chunk": ("compressed", ".log", _break, ["remote/chunk"]),
    "cut indexes": (
        "plain", ".indexes", _cut, ["leader-epoch/malformed-line", "remote/object-size"],
    ),
    "a manifest that says nothing": ("plain", ".rsm-manifest", _garble, ["remote/manifest"]),
    "no manifest": ("plain", ".rsm-manifest", Path.unlink, ["remote/missing-object"]),
    "no log": ("encrypted", ".log", Path.unlink, ["remote/missing-object"]),
    "exchanged logs": ("plain", ".log", _exchange, EXCHANGED),
    "exchanged manifests": (
        "plain", ".rsm-manifest", _exchange, ["remote/manifest", "remote/manifest"],
    ),
    "an empty log": ("plain", ".log", _empty, ["remote/object-size"]),
    "doubled objects": (
        "plain", ".log", _double, ["remote/double-object", "remote/double-object"],
    ),
    "encrypted again": ("encrypted", ".log", _encrypt, ["remote/object-size"]),
}  # fmt: skip


@pytest.mark.parametrize("name", AIVEN)
def test_damage_of_aivens_objects_is_named(run, tiers, tmp_path, name):
    form, suffix, damage, expected = AIVEN[name]
    home = aiven_objects.write(
        tiers / "objects", tmp_path / "bucket", "kept", **FORMS[form]
    )  # fmt: skip
    damage(sorted(home.rglob(f"*{suffix}"))[3])
    found = run("remote", "verify", "--rsm", "aiven", "--topic", "kept", "-f", "ndjson",
                home, tiers / "data")  # fmt: skip
    assert (sorted(codes(found)), found.status) == (expected, 1)


def test_a_manifest_without_log_dirs_gives_the_offsets(run, tiers, tmp_path):
    home = aiven_objects.write(tiers / "objects", tmp_path / "bucket", "kept")
    _exchange(sorted(home.rglob("*.log"))[3])
    found = run("remote", "verify", "--rsm", "aiven", "-f", "ndjson", home)
    assert sorted(codes(found)) == EXCHANGED
