"""The output of `cleaner` for a log dir of a real broker, and for changed copies of it."""

import json
import shlex
import shutil
import sys
from importlib.resources import files

import pytest
from crc32c import crc32c
from jsonschema import Draft202012Validator
from terminal import shown_on
from verification import batches, small_log_dir

from logtool.formats import offset_checkpoint, producer_snapshot, record_batch
from logtool.formats.record_batch import DELETE_HORIZON, HEADER_SIZE
from logtool.metadata.image import DIRECTORY

KEYS, TX = "compacted.keys-0", "compacted-tx-0"
ROW = {KEYS: 1416, TX: 663}
"""The rows of the broker, which had cleaned all closed segments."""
AT = "2027-01-01"


def ndjson(run, *arguments, status=0):
    result = run("cleaner", "-f", "ndjson", "--at", AT, *arguments)
    assert result.status == status, result.stderr
    return result


def by_name(run, *arguments):
    found = ndjson(run, *arguments).of_type("partition")
    return {one["path"].rpartition("/")[2]: one for one in found}


@pytest.fixture
def small(scenario, tmp_path):
    """Return a log dir with two compacted partitions and one that is not."""
    kept = (KEYS, TX, "codec-gzip-0", DIRECTORY)
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "small", *kept)


def set_row(log_dir, name, offset):
    """Write the row of a partition, or no row of it; the other one keeps its own."""
    rows = {**ROW, name: offset}
    offsets = {(one.rpartition("-")[0], 0): row for one, row in rows.items() if row is not None}
    data = offset_checkpoint.encode(offset_checkpoint.build(offsets))
    (log_dir / "cleaner-offset-checkpoint").write_bytes(data)


def test_every_object_keeps_the_schema(run, small):
    set_row(small, KEYS, None)
    schema = json.loads((files("logtool.schemas") / "cleaner.json").read_text())
    document = run("cleaner", "--json", "--records", small).document
    Draft202012Validator(schema).validate(document)
    assert {one["type"] for one in document["items"]} == {"partition", "total"}


def test_what_a_broker_has_cleaned_is_clean(run, small):
    found = by_name(run, small)
    assert found.keys() == {KEYS, TX}
    for name, one in found.items():
        assert one["obstacle"] == "active-segment"
        assert one["checkpoint"] == one["first_dirty_offset"] == ROW[name]
        assert one["first_uncleanable_offset"] == one["checkpoint_after"] == ROW[name]
        assert (one["dirty_ratio"], one["horizons"]) == (0, None)
        assert one["clean_bytes"] + one["uncleanable_bytes"] == one["bytes"]


@pytest.mark.parametrize(
    ("changed", "age", "days"),
    [
        ((), "segment.ms", 7),
        (("--with", "segment.ms=86400000"), "segment.ms", 1),
        (("--with", "max.compaction.lag.ms=172800000"), "max.compaction.lag.ms", 2),
        (("--with", "max.compaction.lag.ms=1209600000"), "segment.ms", 7),
    ],
)
def test_an_active_segment_has_an_end_by_age_and_by_size(run, small, changed, age, days):
    one = by_name(run, small, *changed)[KEYS]
    log = small / KEYS / f"{ROW[KEYS]:020d}.log"
    head = batches(log)
    roll = one["roll"]
    assert roll["age"]["name"] == age
    assert roll["after_ms"] == int(head.max_timestamp[0]) + days * 86_400_000 + 1
    assert roll["size"]["name"] == "segment.bytes"
    assert roll["bytes_left"] == int(roll["size"]["value"]) - log.stat().st_size


def test_only_an_active_segment_that_is_the_obstacle_has_an_end(run, small):
    set_row(small, KEYS, None)
    found = by_name(run, small, "--with", "segment.bytes=1000")
    assert found[KEYS]["obstacle"] is None
    assert found[KEYS]["roll"] is None
    assert found[TX]["roll"]["bytes_left"] == 0


def test_the_file_of_the_broker_says_when_a_segment_ends(run, small, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={small}\nlog.roll.hours=2\n")
    found = run("cleaner", "-f", "ndjson", "--at", AT, "--broker-config", file)
    (one,) = (part for part in found.of_type("partition") if part["topic"] == "compacted-tx")
    values = [one["roll"]["age"][name] for name in ("name", "value", "source")]
    assert values == ["segment.ms", "7200000", "file"]


@pytest.mark.parametrize(
    ("row", "source", "first"),
    [
        (None, "no-row", 0), (10**9, "row-above-log-end", 0), (-1, "row-below-log-start", 0),
        (276, "checkpoint", 276),
    ],
)  # fmt: skip
def test_a_row_decides_where_cleaning_begins(run, small, row, source, first):
    set_row(small, KEYS, row)
    one = by_name(run, small)[KEYS]
    assert (one["dirty_source"], one["first_dirty_offset"]) == (source, first)
    assert one["is_cleaned"]
    assert one["checkpoint_after"] == ROW[KEYS]
    assert one["clean_bytes"] + one["cleanable_bytes"] + one["uncleanable_bytes"] == one["bytes"]
    assert one["without_key"] is None


def test_a_row_above_the_end_of_a_log_with_an_empty_segment_starts_again(run, small):
    set_row(small, KEYS, 10**9)
    log = max((small / KEYS).glob("*.log"))
    log.write_bytes(b"")
    one = by_name(run, small)[KEYS]
    assert (one["dirty_source"], one["first_dirty_offset"]) == ("row-above-log-end", 0)


def test_settings_decide_and_say_from_where_they_come(run, small, tmp_path):
    set_row(small, KEYS, 1386)
    config = tmp_path / "server.properties"
    config.write_text("log.cleaner.min.cleanable.ratio=0.95\nlog.cleaner.max.compaction.lag.ms=5\n")
    half = ["--with", "min.cleanable.dirty.ratio=0.5"]
    one = by_name(run, *half, small)[KEYS]
    sources = {setting["name"]: setting["source"] for setting in one["settings"]}
    assert (one["obstacle"], 0 < one["dirty_ratio"] < 0.5) == ("dirty-ratio", True)
    assert (sources["cleanup.policy"], sources["min.cleanable.dirty.ratio"]) == ("topic", "option")
    low = f"min.cleanable.dirty.ratio={one['dirty_ratio'] / 2}"
    assert by_name(run, "--with", low, small)[KEYS]["is_cleaned"]
    assert by_name(run, "--broker-config", config, *half, small)[KEYS]["is_cleaned"]
    late = by_name(run, *half, "--with", "max.compaction.lag.ms=9000000000000", small)[KEYS]
    assert late["obstacle"] == "dirty-ratio"
    assert late["due_ms"] > 9_000_000_000_000
    lag = ["--with", "min.compaction.lag.ms=900000000000"]
    assert by_name(run, *half, *lag, small)[KEYS]["obstacle"] == "dirty-ratio"
    set_row(small, KEYS, None)
    young = by_name(run, *half, *lag, small)[KEYS]
    assert (young["obstacle"], young["first_uncleanable_offset"]) == ("min-lag", 0)
    assert young["due_ms"] > 900_000_000_000
    assert young["stamp"] is None


def test_the_batch_that_keeps_segments_from_being_old_enough_is_named(run, small):
    set_row(small, KEYS, 276)
    log = small / KEYS / "00000000000000000276.log"
    table = batches(log)
    ahead = int(table.max_timestamp.max())
    row = int(table.max_timestamp.argmax())
    words = ["--topic", "compacted.keys", "--with", "min.compaction.lag.ms=60000", "--at"]
    (one,) = run("cleaner", "-f", "ndjson", *words, ahead - 1000, small).of_type("partition")
    assert (one["obstacle"], one["first_uncleanable_offset"]) == ("min-lag", 276)
    assert one["due_ms"] == ahead + 60_000
    stamp = one["stamp"]
    assert (stamp["base_offset"], stamp["timestamp"]) == (276, ahead)
    assert stamp["first_offset"] == int(table.base_offset[row])
    assert stamp["last_offset"] == int(table.last_offset[row])
    (one,) = run("cleaner", "-f", "ndjson", *words, ahead + 1000, small).of_type("partition")
    assert (one["obstacle"], one["stamp"]) == ("min-lag", None)


def test_on_a_narrow_terminal_the_end_of_each_obstacle_is_shown(run, small, child_environment):
    set_row(small, KEYS, None)
    lag = ["--at", AT, "--with", "min.compaction.lag.ms=900000000000"]
    words = [sys.executable, "-m", "logtool", "cleaner", *lag, str(small)]
    status, shown = shown_on(80, words, child_environment())
    titles, _, *rows = shown.splitlines()
    until = {row.split()[0]: row[titles.index("until") :].split(" ")[0] for row in rows[:2]}
    found = by_name(run, *lag[2:], small)
    assert (status, found[KEYS]["obstacle"]) == (0, "min-lag")
    assert until == {KEYS: found[KEYS]["due"][:10], TX: "next"}  # the time of TX has passed


def test_partitions_with_nothing_to_clean_yet_are_not_kept_from_cleaning(run, small):
    (total,) = ndjson(run, small).of_type("total")
    assert (total["cleaned"], total["in_order"], total["kept"]) == (0, 2, 0)
    set_row(small, KEYS, None)
    (total,) = ndjson(run, small).of_type("total")
    assert (total["cleaned"], total["in_order"], total["kept"]) == (1, 1, 0)
    lag = ["--with", "min.compaction.lag.ms=900000000000"]
    (total,) = ndjson(run, *lag, small).of_type("total")
    assert (total["cleaned"], total["in_order"], total["kept"]) == (0, 1, 1)
    assert total["obstacles"] == {"active-segment": 1, "min-lag": 1}


def test_a_future_copy_and_a_checkpoint_that_cannot_be_read_stop_the_cleaner(run, small, tmp_path):
    set_row(small, KEYS, None)
    (small / f"{KEYS}.0123456789abcdef0123456789abcdef-future").mkdir()
    found = by_name(run, small)
    assert (found[KEYS]["obstacle"], found[TX]["obstacle"]) == ("future-copy", "active-segment")
    assert found[KEYS]["checkpoint_after"] is None
    assert found[KEYS]["future_copy"].endswith("-future")
    (small / "cleaner-offset-checkpoint").write_text("0\n1\ncompacted-tx 0 x\n")
    found = by_name(run, small)
    assert {one["obstacle"] for one in found.values()} == {"checkpoint-unreadable"}
    config = tmp_path / "server.properties"
    config.write_text("log.cleaner.enable=false\n")
    found = by_name(run, "--broker-config", config, small)
    assert {one["obstacle"] for one in found.values()} == {"cleaner-disabled"}


def test_a_batch_without_a_size_stops_the_cleaning_and_a_wrong_crc_does_not(run, small):
    set_row(small, KEYS, None)
    log = small / KEYS / "00000000000000000276.log"
    data = bytearray(log.read_bytes())
    second = int.from_bytes(data[8:12], "big") + 12
    data[second + 17] ^= 1  # CRC
    log.write_bytes(data)
    assert by_name(run, small)[KEYS]["is_cleaned"]
    data[second + 8 : second + 12] = bytes(4)
    log.write_bytes(data)
    one = by_name(run, small)[KEYS]
    assert one["obstacle"] == "damaged-batch"
    assert (one["fault_path"], one["fault_position"]) == (str(log), second)
    assert (one["is_cleaned"], one["checkpoint_after"]) == (False, 0)


def test_damage_that_stops_the_cleaning_has_the_command_that_repairs_it(run, small, tmp_path):
    set_row(small, KEYS, None)
    copy = shutil.copytree(small, tmp_path / "copy")
    assert ndjson(run, small).of_type("summary")[0]["next"] == []
    log = small / KEYS / "00000000000000000276.log"
    data = bytearray(log.read_bytes())
    data[8:12] = bytes(4)
    log.write_bytes(data)
    (command,) = ndjson(run, small).of_type("summary")[0]["next"]
    assert command == f"logtool recover --fill-from COPY {small / KEYS}"
    assert f"  {command}\n" in run("cleaner", small).stderr
    words = [str(copy) if one == "COPY" else one for one in shlex.split(command)[1:]]
    assert run(*words, "--apply").status == 0
    assert by_name(run, small)[KEYS]["is_cleaned"]


def test_records_that_no_copy_has_otherwise_have_no_command(run, small):
    """The CRC holds: the broker wrote the batch like this, and every replica has it."""
    set_row(small, KEYS, None)
    log = small / KEYS / "00000000000000000276.log"
    data = bytearray(log.read_bytes())
    end = int.from_bytes(data[8:12], "big") + 12
    data[HEADER_SIZE] ^= 2  # the length of the first record
    data[17:21] = crc32c(bytes(data[21:end])).to_bytes(4)
    log.write_bytes(data)
    found = ndjson(run, "--records", small)
    (one,) = (each for each in found.of_type("partition") if each["topic"] == "compacted.keys")
    assert (one["obstacle"], one["fault_position"]) == ("damaged-batch", 0)
    assert found.of_type("summary")[0]["next"] == []


@pytest.mark.parametrize("options", [[], ["--records"], ["--sizes"]])
@pytest.mark.parametrize("row", [None, 1000])
def test_records_of_a_wrong_crc_that_do_not_decode_stop_the_cleaning(run, small, options, row):
    set_row(small, KEYS, row)
    options = ["--with", "min.cleanable.dirty.ratio=0", *options]
    log = small / KEYS / "00000000000000000276.log"  # The cleaner reads clean segments, too.
    data = bytearray(log.read_bytes())
    second = int.from_bytes(data[8:12], "big") + 12
    data[second + HEADER_SIZE] ^= 2  # the length of its first record
    log.write_bytes(data)
    one = by_name(run, *options, small)[KEYS]
    assert (one["obstacle"], one["is_cleaned"]) == ("damaged-batch", False)
    assert (one["fault_path"], one["fault_position"]) == (str(log), second)
    assert (one["sizes"], one["checkpoint_after"]) == (None, row or 0)
    third = second + int.from_bytes(data[second + 8 : second + 12], "big") + 12
    data[second + HEADER_SIZE] ^= 2
    data[second + 17] ^= 1  # CRC
    data[third + 17] ^= 1
    log.write_bytes(data)
    assert by_name(run, *options, small)[KEYS]["is_cleaned"]
    data[third + HEADER_SIZE] ^= 2
    log.write_bytes(data)
    assert by_name(run, *options, small)[KEYS]["fault_position"] == third


def test_a_range_without_an_offset_does_not_run_backwards(run, small):
    checkpoint = small / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\ncompacted.keys 0 1420\n")
    one = by_name(run, small)[KEYS]
    assert (one["first_dirty_offset"], one["first_uncleanable_offset"]) == (1420, 1416)
    lines = run("cleaner", "--wide", "--at", AT, small).stdout.splitlines()
    row = next(line.split() for line in lines if line.startswith(KEYS))
    titles = lines[0].split()
    assert row[titles.index("to") + 1] == row[titles.index("from") + 1] == "1420"


def test_horizons_are_counted_in_headers(run, small):
    set_row(small, TX, None)
    one = by_name(run, small)[TX]
    marked = 0
    for log in sorted((small / TX).glob("*.log"))[:-1]:
        position, data = 0, log.read_bytes()
        while position < len(data):
            table = record_batch.parse(memoryview(data), [position])
            marked += bool(int(table.attributes[0]) & DELETE_HORIZON)
            position += int(table.size[0])
    assert (one["horizons"], one["horizons_due"]) == (marked, marked)
    assert marked > 0


def test_an_open_transaction_is_found_in_the_snapshot(run, small):
    set_row(small, TX, None)
    path = max((small / TX).glob("*.snapshot"))
    entries = producer_snapshot.parse(path.read_bytes()).entries.copy()
    entries["current_txn_first_offset"][0] = 400
    path.write_bytes(producer_snapshot.encode(producer_snapshot.build(entries)))
    one = by_name(run, small)[TX]
    assert one["last_stable_offset"] == one["transaction_first_offset"] == 400
    assert one["producer_id"] == int(entries["producer_id"][0])
    assert (one["is_cleaned"], one["first_uncleanable_offset"]) == (True, 378)
    set_row(small, TX, 378)
    one = by_name(run, small)[TX]
    assert (one["obstacle"], one["checkpoint_after"]) == ("open-transaction", 378)


def test_records_without_a_key_are_counted(run, small):
    set_row(small, KEYS, None)
    found = by_name(run, "--records", small)
    assert (found[KEYS]["without_key"], found[TX]["without_key"]) == (0, None)
    policy = ["--with", "cleanup.policy=compact", "--with", "min.cleanable.dirty.ratio=0"]
    one = by_name(run, *policy, "--records", "--topic", "codec-gzip", small)["codec-gzip-0"]
    assert one["obstacle"] == "active-segment"


@pytest.mark.parametrize(
    "words",
    [
        ["--with", "retention.ms=5"], ["--with", "min.cleanable.dirty.ratio=x"],
        ["--with", "min.cleanable.dirty.ratio=2"], ["--with", "cleanup.policy=drop"],
        ["--at", "soon"],
    ],
)  # fmt: skip
def test_a_wrong_option_is_a_usage_error(run, small, words):
    assert run("cleaner", *words, small).status == 2


@pytest.mark.parametrize("name", ["2.8.2/magic-0", "2.8.2/magic-1"])
def test_batches_of_old_formats_that_a_cleaning_rewrites_are_counted(run, scenario, name):
    options = ("--with", "cleanup.policy=compact", "--with", "min.cleanable.dirty.ratio=0")
    home = scenario(name) / "old-compacted-0"
    (one,) = ndjson(run, *options, home).of_type("partition")
    closed = sorted(home.glob("*.log"))[:-1]
    wanted = sum(int((batches(log).magic < 2).sum()) for log in closed)
    assert one["is_cleaned"] == bool(closed)
    assert one["old_formats"] == (wanted if closed else None)
    assert wanted


def test_the_cleaner_can_be_assumed_to_be_on(run, small, tmp_path):
    set_row(small, KEYS, None)
    config = tmp_path / "server.properties"
    config.write_text("log.cleaner.enable=false\n")
    off = by_name(run, "--broker-config", config, small)
    assert {one["obstacle"] for one in off.values()} == {"cleaner-disabled"}
    with_it = "--broker-config", config, "--with", "log.cleaner.enable=true"
    assert by_name(run, *with_it, small)[KEYS]["is_cleaned"]
    assert run("cleaner", "--with", "log.cleaner.enable=yes", small).status == 2
