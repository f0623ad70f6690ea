"""``logtool salvage`` and ``undelete``: saved batches, rejects, records, images of bad disks."""

import base64
import errno
import hashlib
import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest
from answers import numbers
from bad_sectors import bad_sector
from changes import disk_full
from damage import cut, damage_file, flip, overwrite, remove_file, rename_file
from log_dir_damage import new_batch
from salvage_campaign import batches
from verification import small_log_dir, verify

from logtool.dump import damaged
from logtool.errors import UnreadableError
from logtool.repair import disk_image

LOG = f"{0:020d}.log"
PREADV = os.preadv


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir of a killed broker with three partitions, none of them damaged."""
    names = ("codec-none-0", "tx.mixed-0", "small-segments-0")
    return small_log_dir(scenario("4.3.1/killed"), tmp_path / "home", *names)


def salvage(run, home, *options, output="saved"):
    target = Path(home).parent / output
    return run("salvage", "-f", "ndjson", "--output", target, *options, home), target


def logs(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.log")}


def test_batches_around_damage_are_saved_and_the_damage_is_kept_with_a_receipt(run, home):
    log = home / "codec-none-0" / LOG
    sound = batches(log)
    damage_file(log, flip, sound[9][0] + 70)
    result, saved = salvage(run, home)
    assert result.status == 1
    (reject,) = result.of_type("reject")
    assert (reject["position"], reject["length"]) == (sound[9][0], len(sound[9][1]))
    assert (reject["kind"], reject["filled_from"]) == ("damage", None)
    kept = Path(reject["target"]).read_bytes()
    assert kept == log.read_bytes()[sound[9][0] : sound[10][0]]
    assert reject["sha256"] == hashlib.sha256(kept).hexdigest()
    there = [data for _, data in batches(saved / "partitions/codec-none-0" / LOG)]
    assert there == [data for _, data in sound[:9] + sound[10:]]
    assert logs(saved / "partitions/tx.mixed-0") == logs(home / "tx.mixed-0")
    assert (saved / "manifest.ndjson").read_text().count("\n") == 4 + 1
    hole = verify(saved / "partitions").one("batch/hole")
    assert hole.position == sound[9][0]  # which is where the batch behind it stands now
    assert len(verify(saved / "partitions").above_info()) == 1


def test_another_copy_fills_damage_where_it_is_proved_to_be_the_same(run, home, tmp_path):
    copy = shutil.copytree(home, tmp_path / "copy")
    wrong = shutil.copytree(home, tmp_path / "wrong")
    log = home / "codec-none-0" / LOG
    starts = [at for at, _ in batches(log)]
    damage_file(log, flip, starts[9] + 70)
    for number in (8, 10):  # offsets, sizes and CRCs are as before
        damage_file(wrong / "codec-none-0" / LOG, overwrite, starts[number] + 12, b"\0\0\0\5")

    result, saved = salvage(run, home, "--fill-from", wrong, "--fill-from", copy)
    assert result.status == 0
    (reject,) = result.of_type("reject")
    assert reject["filled_from"] == str(copy / "codec-none-0")
    assert logs(saved / "partitions/codec-none-0") == logs(copy / "codec-none-0")
    damage_file(log, overwrite, starts[9], b"\xee" * (starts[10] - starts[9]))
    result, saved = salvage(run, home, "--fill-from", wrong, output="again")
    assert result.status == 1
    (reject,) = result.of_type("reject")
    assert (reject["filled_from"], bool(reject["proof"])) == (None, True)
    assert len(batches(saved / "partitions/codec-none-0" / LOG)) == len(starts) - 1


def test_a_missing_copy_is_named_and_the_others_are_taken(run, home, tmp_path):
    copy = shutil.copytree(home, tmp_path / "copy")
    log = home / "codec-none-0" / LOG
    before = log.read_bytes()
    damage_file(log, flip, batches(log)[9][0] + 70)
    gone, file = tmp_path / "gone", copy / "codec-none-0" / LOG
    fills = [word for one in (gone, file, copy) for word in ("--fill-from", one)]
    result, saved = salvage(run, home, *fills)
    assert result.status == 4
    assert [one["path"] for one in result.of_type("error")] == [str(gone), str(file)]
    assert all(f"{path}: " in result.stderr for path in (gone, file))
    assert (saved / "partitions/codec-none-0" / LOG).read_bytes() == before


def test_a_missing_log_is_named_and_comes_from_another_copy(run, home, tmp_path):
    copy = shutil.copytree(home, tmp_path / "copy")
    remove_file(home / "small-segments-0" / f"{42:020d}.log")
    result, _ = salvage(run, home, "--topic", "small*")
    (reject,) = result.of_type("reject")
    assert (reject["kind"], reject["first_offset"], reject["last_offset"]) == ("missing", 42, 76)
    assert result.status == 1
    result, saved = salvage(run, home, "--topic", "small*", "--fill-from", copy, output="full")
    assert result.status == 0
    assert logs(saved / "partitions/small-segments-0") == logs(copy / "small-segments-0")


def test_a_segment_that_ends_too_early_is_named_if_another_copy_is_given(run, home, tmp_path):
    copy = shutil.copytree(home, tmp_path / "copy")
    log = home / "small-segments-0" / f"{42:020d}.log"
    damage_file(log, cut, batches(log)[-1][0])
    result, saved = salvage(run, home, "--topic", "small*", "--fill-from", copy)
    (reject,) = result.of_type("reject")
    assert (reject["kind"], reject["last_offset"], bool(reject["filled_from"])) == (
        "missing", 76, True)  # fmt: skip
    assert logs(saved / "partitions/small-segments-0") == logs(copy / "small-segments-0")


@pytest.mark.parametrize(("byte", "value"), [(0, 1), (7, 0), (6, 1), (12, 1), (14, 9)])
def test_a_sound_batch_whose_offset_or_epoch_contradicts_the_others_is_put_aside(
    run, home, byte, value
):
    log = home / "codec-none-0" / LOG
    sound = batches(log)
    data = bytes([value ^ log.read_bytes()[sound[9][0] + byte]])
    damage_file(log, overwrite, sound[9][0] + byte, data if value else b"\0")
    result, saved = salvage(run, home, "--topic", "codec-none")
    (reject,) = result.of_type("reject")
    assert (reject["kind"], reject["position"]) == ("order", sound[9][0])
    there = [data for _, data in batches(saved / "partitions/codec-none-0" / LOG)]
    assert there == [data for _, data in sound[:9] + sound[10:]]


def test_a_transaction_that_was_open_at_a_loss_is_named(run, home):
    log = home / "tx.mixed-0" / LOG
    control = [at for at, data in batches(log) if data[22] & 0x20]
    damage_file(log, flip, control[2] + 65)
    result, _ = salvage(run, home, "--topic", "tx*")
    found = result.of_type("transaction")
    assert found
    assert all(one["first_offset"] <= one["lost_from"] for one in found)
    assert "marker" in found[0]["reason"]


def test_sectors_that_the_disk_does_not_give_are_skipped_one_by_one(run, home):
    log = home / "codec-none-0" / LOG
    sound = batches(log)
    with bad_sector(log, 8192):
        result, saved = salvage(run, home, "--topic", "codec-none")

    (reject,) = result.of_type("reject")
    assert reject["kind"] == "unreadable"
    there = [data for _, data in batches(saved / "partitions/codec-none-0" / LOG)]
    away = [data for at, data in sound if at < 12288 and at + len(data) > 8192]
    assert there == [data for _, data in sound if data not in away]
    assert result.status == 1


def test_an_output_in_use_or_in_a_log_dir_is_refused(run, home, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    for target in (tmp_path / "full", home / "new", home / "codec-none-0/new"):
        result = run("salvage", "--output", target, home)
        assert result.status == 5
        assert str(target) in result.stderr
    assert not (home / "new").exists()


def test_an_output_that_cannot_be_made_or_filled_is_named_once(run, home, tmp_path, monkeypatch):
    result = run("salvage", "--output", tmp_path / "typo" / "saved", home)
    assert result.status == 4
    assert sum(str(tmp_path / "typo") in line for line in result.stderr.splitlines()) == 1

    def no_room(fd, data, position):
        disk_full()

    monkeypatch.setattr(os, "pwrite", no_room)
    result, saved = salvage(run, home)
    assert result.status == 4
    (line,) = (line for line in result.stderr.splitlines() if os.strerror(errno.ENOSPC) in line)
    assert f"{saved} is incomplete" in line


def test_files_that_wait_for_deletion_come_back(run, home, scenario, tmp_path):
    gone = home / ("codec-none-0." + "0" * 32 + "-delete")
    (home / "codec-none-0").rename(gone)
    for path in (home / "small-segments-0").glob(f"{0:020d}.*"):
        rename_file(path, path.name + ".deleted")
    old = scenario("4.3.1/killed")
    result = run("undelete", "-f", "ndjson", "--output", tmp_path / "back", home)
    assert result.status == 0
    back = tmp_path / "back/partitions"
    assert logs(back / "codec-none-0") == logs(old / "codec-none-0")
    assert logs(back / "small-segments-0") == {LOG: (old / "small-segments-0" / LOG).read_bytes()}
    assert verify(back).above_info() == []


def test_deleted_records_that_undelete_makes_readable_are_named(run, home, tmp_path):
    gone = home / ("codec-none-0." + "0" * 32 + "-delete")
    (home / "codec-none-0").rename(gone)
    for number, (start, again) in enumerate([(0, None), (123, 123), (99_999, None)]):
        (gone / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {start}\n")
        back = tmp_path / f"back-{number}"
        result = run("undelete", "-f", "ndjson", "--output", back, home)
        (saved,) = result.of_type("partition")
        assert (result.status, saved["readable_again"]) == (0, again)
        code = "checkpoint/log-start-behind"
        assert (code in result.stderr) is (again is not None)
        found = {one.code for one in verify(back / "partitions").findings}
        assert (code in found) is (again is not None)


@pytest.mark.parametrize(
    ("name", "status"), [("t-0.0123456789abcdef0123456789abcdef-stray", 1), ("t-0", 0)]
)
def test_undelete_names_the_strays_if_nothing_is_deleted(run, tmp_path, name, status):
    home = tmp_path / "home"
    (home / name).mkdir(parents=True)
    (home / name / LOG).write_bytes(new_batch(0, b"a"))
    (home / "meta.properties").write_text("version=1\nnode.id=1\n")
    result = run("undelete", "--output", tmp_path / "back", home)
    assert result.status == status
    assert (f"logtool salvage --output {tmp_path / 'back'} {home}" in result.stderr) is bool(status)
    assert (str(home / name) in result.stderr) is bool(status)


def test_undelete_names_the_strays_that_it_does_not_save(run, tmp_path):
    home = tmp_path / "home"
    for name in (f"t-0.{'1' * 32}-delete", f"t-1.{'2' * 32}-stray", f"u-0.{'3' * 32}-stray"):
        (home / name).mkdir(parents=True)
        (home / name / LOG).write_bytes(new_batch(0, b"a"))
    (home / "meta.properties").write_text("version=1\nnode.id=1\n")
    result = run("undelete", "--output", tmp_path / "back", "--topic", "t", home)
    assert result.status == 1
    assert [path.name for path in (tmp_path / "back/partitions").iterdir()] == ["t-0"]
    stray = home / f"t-1.{'2' * 32}-stray"
    assert f"logtool salvage --output {tmp_path / 'back-stray'} {stray}\n" in result.stderr
    assert run("salvage", "--output", tmp_path / "back-stray", stray).status == 0
    assert [path.name for path in (tmp_path / "back-stray/partitions").iterdir()] == ["t-1"]


def test_a_torn_end_is_left_behind(run, home):
    log = home / "codec-none-0" / LOG
    sound = batches(log)
    damage_file(log, cut, sound[-1][0] + 40)
    result, saved = salvage(run, home, "--topic", "codec-none")
    (reject,) = result.of_type("reject")
    assert (reject["first_offset"], reject["last_offset"], reject["length"]) == (358, None, 40)
    assert len(batches(saved / "partitions/codec-none-0" / LOG)) == len(sound) - 1


def records_of(run, path):
    """Return the records of a dump as JSON objects, without their places."""
    found = run("dump", "-f", "ndjson", "--records", "--decode", "none", path).of_type("record")
    return [without_place(obj) for obj in found if not obj["control"]]


def content(shown):
    """Return the bytes that a dump shows."""
    if shown is None or "utf8" in shown:
        return shown and shown["utf8"].encode()
    return base64.b64decode(shown["base64"])


def without_place(obj):
    return {key: value for key, value in obj.items() if key not in ("path", "batch_position")}


def test_saved_records_are_written_as_lines(run, home):
    log = home / "codec-none-0" / LOG
    sound = batches(log)
    damage_file(log, flip, sound[9][0] + 70)
    result, saved = salvage(run, home, "--records", "ndjson")
    assert result.status == 1
    objects = {obj["topic"]: obj for obj in result.of_type("records")}
    assert set(objects) == {"codec-none", "tx.mixed", "small-segments"}
    for topic, obj in objects.items():
        lines = Path(obj["target"]).read_text().splitlines()
        assert Path(obj["target"]) == saved / f"records/{topic}-0.ndjson"
        expected = records_of(run, saved / f"partitions/{topic}-0")
        found = [without_place(json.loads(line)) for line in lines]
        outcomes = [one.pop("transaction_outcome") for one in found]
        assert found == expected
        assert [one is not None for one in outcomes] == [one["transactional"] for one in found]
        assert obj["records"] == len(lines) > 100
    manifest = (saved / "manifest.ndjson").read_text().splitlines()
    assert sum(json.loads(line)["type"] == "records" for line in manifest) == 3


def test_the_records_written_and_left_out_are_counted(run, scenario, tmp_path):
    names = ("codec-none-0", "tx.mixed-0", "__consumer_offsets-0")
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", *names)
    objects, _ = salvage(run, home, "--records", "ndjson")
    saved = {one["topic"]: one["records"] for one in objects.of_type("partition")}
    written = {one["topic"]: one["records"] for one in objects.of_type("records")}
    assert written.keys() == {"codec-none", "tx.mixed"}
    markers = saved["tx.mixed"] - written["tx.mixed"]
    assert markers > 0
    target = tmp_path / "again"
    shown = run("salvage", "--records", "ndjson", "--output", target, home)
    (line,) = (one for one in shown.stderr.splitlines() if f"{target}/records;" in one)
    internal = saved["__consumer_offsets"]
    assert numbers(line.replace(str(target), "")) == [
        sum(written.values()), 2, markers, internal, 1,
    ]  # fmt: skip
    plain = run("salvage", "--output", tmp_path / "plain", home)
    assert "/records" not in plain.stderr


def test_saved_records_are_written_as_parquet(run, home):
    result, saved = salvage(run, home, "--topic", "tx.mixed", "--records", "parquet")
    (obj,) = result.of_type("records")
    table = pyarrow.parquet.read_table(obj["target"])
    expected = records_of(run, home / "tx.mixed-0")
    assert table["offset"].to_pylist() == [one["offset"] for one in expected]
    assert table["value"].to_pylist() == [content(one["value"]) for one in expected]
    assert list((saved / "records").iterdir()) == [Path(obj["target"])]


def test_saved_records_are_lines_for_kcat_where_that_is_possible(run, scenario, tmp_path):
    names = ("big-batches-0", "headers.and-nulls-0", "__consumer_offsets-0")
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", *names)
    result, saved = salvage(run, home, "--records", "kcat")
    assert result.status == 5
    (obj,) = result.of_type("records")
    asked = run("dump", "-f", "kcat", home / "big-batches-0")
    assert Path(obj["target"]).read_bytes() == asked.stdout.encode()
    command, target = obj["command"].split(" < ")
    assert command.split()[:8] == ["kcat", "-P", "-b", "HOST:PORT", "-t", "big-batches", "-p", "0"]
    assert target == obj["target"]
    assert f"{saved}/records/headers.and-nulls-0.kcat " in result.stderr
    assert [path.name for path in (saved / "records").iterdir()] == ["big-batches-0.kcat"]
    assert len(result.of_type("partition")) == 3


def test_records_decoded_from_damaged_bytes_are_written_and_marked(run, home):
    log = home / "codec-none-0" / LOG
    sound, data = batches(log), log.read_bytes()
    position, batch = sound[9]
    before = records_of(run, log)
    # A byte in the last value, and the whole of the next batch but for its header.
    spoilt = bytearray(data)
    spoilt[position + len(batch) - 20] ^= 0x20
    begin = sound[10][0] + 61
    spoilt[begin : begin + 40] = bytes([0xFF]) * 40
    damage_file(log, overwrite, 0, bytes(spoilt))
    result, saved = salvage(run, home, "--decode-damaged")
    (obj,) = result.of_type("decoded")
    lines = [json.loads(line) for line in Path(obj["target"]).read_text().splitlines()]
    assert Path(obj["target"]).parent == saved / "rejects/codec-none-0"
    assert all(line["damaged"] for line in lines)
    assert [line["type"] for line in lines if line["type"] != "record"] == [
        "batch",
        "batch",
        "error",
    ]
    found = [line for line in lines if line["type"] == "record"]
    assert obj["records"] == len(found)
    assert {line["path"] for line in lines} == {str(log)}
    first = [one for one in before if one["offset"] >= found[0]["offset"]][: len(found)]
    same = [without_place(one | {"damaged": True, "crc_valid": None}) == without_place(line)
            for one, line in zip(first, found, strict=True)]  # fmt: skip
    assert same[:-1] == [True] * (len(found) - 1), "all but the record with the byte"
    assert not same[-1]
    assert obj["reason"] == lines[-1]["message"]
    assert lines[-1]["position"] == sound[10][0]
    assert not list(saved.rglob("records"))


@pytest.mark.parametrize("scrap", [b"", b"\0" * 30, b"\xff" * 200, b"\0" * 16 + b"\2" + b"\7" * 90])
def test_bytes_that_are_no_batch_give_no_records(scrap):
    found = list(
        damaged.decode(damaged.origin_of(Path("1.log"), "t", 0), memoryview(scrap), 7, 999)
    )
    assert not [obj for obj in found if obj["type"] == "record"]
    assert all(obj["damaged"] for obj in found)
    assert bool(found) == bool(scrap)


@pytest.mark.parametrize("size", [*range(-12, 15), 48, 2**31 - 1])
def test_a_wrong_size_field_is_not_believed(home, size):
    log = min((home / "codec-none-0").glob("*.log"))
    batch = bytearray(log.read_bytes()[:400])
    batch[8:12] = size.to_bytes(4, "big", signed=True)
    origin = damaged.origin_of(Path("1.log"), "t", 0)
    found = list(damaged.decode(origin, memoryview(batch), 7, 9999))
    assert found[0]["type"] == "batch"
    assert all(obj["damaged"] for obj in found)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_releases_decode_too(magic):
    stamp = b"" if magic == 0 else (5).to_bytes(8, "big")
    body = bytes([magic, 0]) + stamp + (-1).to_bytes(4, "big", signed=True) + b"\0\0\0\2hi"
    entry = (9).to_bytes(8, "big") + (len(body) + 4).to_bytes(4, "big") + b"\1\2\3\4" + body
    origin = damaged.origin_of(Path("x"), None, None)
    found = damaged.decode(origin, memoryview(entry * 2), 0, 99)
    records = [(obj["offset"], obj["value"]) for obj in found if obj["type"] == "record"]
    assert records == [(9, b"hi")] * 2


@pytest.mark.parametrize("name", ["old-gzip-0", "old-snappy-0", "old-lz4-0", "old-none-0"])
def test_a_damaged_wrapper_gives_back_its_messages_and_says_which_are_proven(
    run, copy_of, tmp_path, name
):
    home = copy_of("2.8.2/magic-1") / name
    log = min(home.glob("*.log"))
    sound = records_of(run, log)
    (_, before), (position, batch) = batches(log)[:2]
    first, last = int.from_bytes(before[:8]) + 1, int.from_bytes(batch[:8])
    inside = [one for one in sound if first <= one["offset"] <= last]
    wrapped = batch[17] & 7 != 0
    at = {"old-gzip-0": position + len(batch) - 8}.get(name, position + 12)  # its trailer, or CRC
    damage_file(log, flip, at)
    options = "--decode-damaged", "--output", tmp_path / "output"
    (obj,) = run("salvage", "-f", "ndjson", *options, home).of_type("decoded")
    lines = [json.loads(line) for line in Path(obj["target"]).read_text().splitlines()]
    found = [line for line in lines if line["type"] == "record"]
    # The CRC of a message that is no wrapper is the one that was changed.
    assert wrapped == (name != "old-none-0")
    marks = {"damaged": True, "crc_valid": wrapped}
    for one, was in zip(found, inside, strict=True):
        shown = without_place(was | marks)
        assert without_place(one) == shown | ({} if wrapped else {"crc": one["crc"]})
    assert (obj["records"], obj["proven"]) == (len(inside), wrapped * len(inside))
    assert obj["reason"] is None


def disk_of(path, bad):
    """Return a patch of reads of a file: those that touch a byte of `bad` fail; all are noted."""
    status, asked = path.stat(), []

    def preadv(fd, buffers, offset):
        found, (buffer,) = os.fstat(fd), buffers
        if (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino):
            asked.append(range(offset, offset + len(buffer)))
            if any(offset <= at < offset + len(buffer) for at in bad):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return PREADV(fd, buffers, offset)

    return preadv, asked


def test_a_second_run_asks_a_failing_disk_for_the_rest_alone(run, home, monkeypatch):
    log = home / "codec-none-0" / LOG
    sound, size = log.read_bytes(), log.stat().st_size
    with bad_sector(log, 8192):
        result, first = salvage(run, home, "--topic", "codec-none")
    (image,) = result.of_type("image")
    assert Path(image["target"]) == first / f"rejects/codec-none-0/{LOG}.image"
    zeros = sound[:8192] + bytes(4096) + sound[12288:]
    assert Path(image["target"]).read_bytes() == zeros
    assert (image["length"], image["unread"]) == (size, 4096)
    assert disk_image.parse(log, Path(image["map"]).read_bytes(), size) == ((8192, 4096),)

    # One of the eight sectors of 512 bytes stays bad.
    preadv, asked = disk_of(log, {9000})
    monkeypatch.setattr(os, "preadv", preadv)
    result, second = salvage(run, home, "--topic", "codec-none", "--retry", first, output="second")
    (image,) = result.of_type("image")
    assert image["unread"] == 512
    assert {one.start for one in asked} == {*range(8192, 12288, 512)}
    assert {len(one) for one in asked} == {512}
    assert disk_image.parse(log, Path(image["map"]).read_bytes(), size) == ((8704, 512),)
    assert result.status == 1
    assert "-" in Path(image["map"]).read_text().splitlines()[-2]

    # In the end the disk gives it.
    preadv, asked = disk_of(log, set())
    monkeypatch.setattr(os, "preadv", preadv)
    result, third = salvage(run, home, "--topic", "codec-none", "--retry", second, output="third")
    assert result.status == 0
    assert {one.start for one in asked} == {8704}
    assert (third / "partitions/codec-none-0" / LOG).read_bytes() == sound
    assert result.of_type("image")[0]["unread"] == 0
    manifest = [json.loads(line) for line in (third / "manifest.ndjson").read_text().splitlines()]
    assert [line["type"] for line in manifest] == ["image", "partition", "end"]


def test_an_image_of_another_log_is_not_taken(run, home, tmp_path):
    log = home / "codec-none-0" / LOG
    with bad_sector(log, 8192):
        result, first = salvage(run, home, "--topic", "codec-none")
    (image,) = result.of_type("image")
    with Path(image["target"]).open("ab") as file:
        file.write(b"x")
    result, second = salvage(run, home, "--topic", "codec-none", "--retry", first, output="b")
    assert result.status == 4
    assert f"{image['target']}: " in result.stderr
    assert (second / "partitions/codec-none-0" / LOG).read_bytes() == log.read_bytes()
    result, _ = salvage(run, home, "--retry", tmp_path / "nothing", output="c")
    assert result.status == 4
    assert f"{tmp_path / 'nothing'}: " in result.stderr


@pytest.mark.parametrize(
    "text",
    ["", "0 + 1\n0 10 +\n", "0 + 1\n0x0 0x40 +\n0x50 0x14 -\n", "0 + 1\n0 100 x\n",
     "0 + 1\n0 101 +\n", "0 + 1\nwhat\n"],
)  # fmt: skip
def test_a_map_that_does_not_fit_is_refused(text):
    with pytest.raises(UnreadableError):
        disk_image.parse(Path("map"), text.encode(), 100)


def test_maps_are_those_of_ddrescue():
    """The form is that of the manual; ddrescuelog 1.27 takes these bytes and says the same."""
    assert disk_image.encode({512: 512, 1024: 100}, 4096, coarse=False) == (
        b"# Mapfile. Created by logtool salvage\n"
        b"# current_pos  current_status  current_pass\n"
        b"0x00000000     +               1\n"
        b"#      pos        size  status\n"
        b"0x00000000  0x00000200  +\n"
        b"0x00000200  0x00000264  -\n"
        b"0x00000464  0x00000b9c  +\n"
    )
    theirs = (
        b"# Mapfile. Created by GNU ddrescue version 1.27\n0x00120000     *               1\n"
        b"#      pos        size  status\n0x0  0x10  +\n0x10 0x20 ?\n0x30 48 *\n0x60  0x4  /\n"
    )
    assert disk_image.parse(Path("map"), theirs, 100) == ((16, 32), (48, 48), (96, 4))


def write(home, name, segments, epochs):
    """Write a partition dir of logs by base offset, with (leader epoch, start offset) rows."""
    folder = home / name
    folder.mkdir(parents=True)
    for base, parts in segments.items():
        (folder / f"{base:020d}.log").write_bytes(b"".join(parts))
    rows = "".join(f"{epoch} {start}\n" for epoch, start in epochs)
    (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{rows}")
    return folder


def saved_batches(saved, name):
    """Return the bytes of the batches of a saved partition, in the order of its logs."""
    return [data for path in sorted((saved / "partitions" / name).glob("*.log"))
            for _, data in batches(path)]  # fmt: skip


def test_batches_that_the_next_segment_holds_too_are_saved_once(run, tmp_path):
    first, second, third = (new_batch(at, b"v", epoch=0) for at in range(3))
    folder = write(tmp_path / "home", "t-0", {0: [first, second], 1: [second, third]}, [(0, 0)])
    result, saved = salvage(run, folder, output="../saved")
    (reject,) = result.of_type("reject")
    assert (reject["kind"], reject["position"], reject["length"]) == (
        "overlap",
        len(first),
        len(second),
    )
    assert Path(reject["target"]).read_bytes() == second
    assert saved_batches(saved, "t-0") == [first, second, third]


def test_a_segment_that_a_truncation_had_removed_is_put_aside(run, tmp_path):
    """Offset 2 was truncated and written again in epoch 2; the segment of epoch 0 came back."""
    past = [new_batch(at, b"past", epoch=0) for at in range(4)]
    now = [new_batch(at, b"now", epoch=2) for at in (2, 3, 4)]
    segments = {0: [*past[:2], now[0]], 3: [past[3]], 4: [now[2]]}
    folder = write(tmp_path / "home", "t-0", segments, [(0, 0), (2, 2)])
    result, saved = salvage(run, folder, output="../saved")
    (reject,) = result.of_type("reject")
    assert (reject["kind"], Path(reject["path"]).name) == ("zombie", f"{3:020d}.log")
    assert Path(reject["target"]).read_bytes() == past[3]
    assert saved_batches(saved, "t-0") == [*past[:2], now[0], now[2]]


@pytest.mark.parametrize("damaged_byte", [17, 30, -1])
@pytest.mark.parametrize("inner", [1, 2, 40])
def test_a_batch_in_the_value_of_a_damaged_record_is_not_saved(run, tmp_path, inner, damaged_byte):
    """The value holds two whole sound batches, of offsets that would fit here or further on."""
    value = new_batch(inner, b"in", epoch=0) + new_batch(inner + 1, b"in", epoch=0)
    outer = bytearray(new_batch(1, b"x" * 50 + value + b"y" * 50, epoch=0))
    outer[damaged_byte] ^= 1
    before, after = new_batch(0, b"a", epoch=0), new_batch(2, b"b", epoch=0)
    folder = write(tmp_path / "home", "t-0", {0: [before, bytes(outer), after]}, [(0, 0)])
    result, saved = salvage(run, folder, output="../saved")
    assert saved_batches(saved, "t-0") == [before, after]
    (reject,) = result.of_type("reject")
    assert (reject["position"], reject["length"]) == (len(before), len(outer))


def test_a_second_run_into_the_same_output_is_refused(run, home):
    result, saved = salvage(run, home, "--topic", "codec-none")
    manifest = (saved / "manifest.ndjson").read_bytes()
    result, _ = salvage(run, home, "--topic", "codec-none")
    assert result.status == 5
    assert (saved / "manifest.ndjson").read_bytes() == manifest
