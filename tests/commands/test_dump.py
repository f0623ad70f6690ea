import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dumps import of_type
from log_dir_damage import new_batch

from logtool.formats import control_record, producer_snapshot, record
from logtool.formats.record import Record

NAME = f"{0:020d}.log"


def test_batches_are_printed_in_file_order_with_position_and_size(objects, log):
    head, *batches = objects(log)
    assert (head["type"], head["kind"], head["base_offset"]) == ("file", "log", 0)
    assert (head["topic"], head["partition"]) == ("orders", 0)
    assert [b["base_offset"] for b in batches] == [0, 3, 6]
    assert [b["last_offset"] for b in batches] == [2, 5, 8]
    assert [b["codec"] for b in batches] == ["none", "snappy", "none"]
    assert sum(b["size"] for b in batches) == log.stat().st_size
    assert [b["producer_id"] for b in batches] == [None, 7, None]
    assert (batches[1]["base_sequence"], batches[1]["last_sequence"]) == (0, 2)
    assert batches[0]["max_timestamp_ms"] == 1_700_000_000_002
    assert batches[0]["max_timestamp"] == "2023-11-14T22:13:20.002Z"


def test_records_follow_their_batch(objects, log):
    found = objects("--records", log)
    assert [o["type"] for o in found] == ["file"] + (["batch"] + ["record"] * 3) * 3
    assert [r["offset"] for r in of_type("record", found)] == list(range(9))
    assert [r["sequence"] for r in of_type("record", found)][3:6] == [0, 1, 2]


def test_null_differs_from_empty_and_header_values_are_printed(objects, log):
    first, second, third = of_type("record", objects("--records", log))[:3]
    assert first["key"] == {"size": 3, "utf8": "key"}
    assert first["headers"] == [
        {"key": {"size": 5, "utf8": "trace"}, "value": {"size": 1, "utf8": "1"}},
        {"key": {"size": 4, "utf8": "none"}, "value": None},
    ]
    assert second["key"] is None
    assert third["key"] == {"size": 0, "utf8": ""}
    assert third["value"] == {"size": 2, "base64": "//4="}


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ("utf8", {"size": 3, "utf8": "key"}),
        ("hex", {"size": 3, "hex": "6b6579"}),
        ("base64", {"size": 3, "base64": "a2V5"}),
        ("len", {"size": 3}),
    ],
)
def test_values_are_shown_as_asked(objects, log, values, key):
    record = of_type("record", objects("--records", "--values", values, log))[0]
    assert record["key"] == key
    assert record["headers"][1]["value"] is None


FILTERS = {
    "one offset": (["--offset", "4"], [4]),
    "a range of offsets, both ends included": (["--offset", "2..4"], [2, 3, 4]),
    "offsets from": (["--offset", "7.."], [7, 8]),
    "offsets up to": (["--offset", "..1"], [0, 1]),
    "times": (["--timestamp", "1700000000002..1700000000004"], [2, 3, 4]),
    "times as people write them": (
        ["--timestamp", "2023-11-14T23:13:20.007+01:00..2023-11-14T22:13:20.008Z"],
        [7, 8],
    ),
    "a producer": (["--producer", "7"], [3, 4, 5]),
    "offsets and a producer": (["--producer", "7", "--offset", "5.."], [5]),
    "nothing that is there": (["--offset", "99"], []),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_choose_records_and_the_batches_that_hold_them(objects, log, name):
    options, offsets = FILTERS[name]
    found = objects("--records", *options, log)
    assert [r["offset"] for r in of_type("record", found)] == offsets
    assert len(of_type("batch", found)) == len({offset // 3 for offset in offsets})
    batches = of_type("batch", objects(*options, log))
    assert {b["base_offset"] for b in batches} == {offset // 3 * 3 for offset in offsets}


def test_times_are_dates_or_count_from_the_present_and_the_range_is_shown(spawn, log, make_batch):
    now = time.time_ns() // 1_000_000
    hour = 3_600_000
    batches = [
        make_batch(i, [Record(0)], base_timestamp=now - ago * hour, max_timestamp=now - ago * hour)
        for i, ago in enumerate((480, 30, 5, 3, 1))
    ]
    log.write_bytes(b"".join(batches))

    def offsets(option):
        result = spawn("dump", "-f", "ndjson", "--timestamp", option, log)
        assert (result.status, result.stderr.count("\n")) == (0, 1)
        assert result.stderr.startswith(f"--timestamp {option} ")
        return [obj["base_offset"] for obj in result.of_type("batch")]

    assert offsets("-2h") == offsets("-120m..") == [4]
    assert offsets("-4h..-2h") == [3]
    assert offsets("-2d..-240m") == [1, 2]
    assert offsets("..-1d") == [0, 1]
    assert offsets("..2020-01-01") == []


def test_limit_counts_batches_records_and_entries(objects, partition, log):
    assert [o["type"] for o in objects("--limit", 2, log)] == ["file", "batch", "batch"]
    found = objects("--limit", 5, "--records", partition)
    assert len(of_type("batch", found)) + len(of_type("record", found)) == 5


def test_an_index_is_filtered_too(objects, log):
    index = log.with_suffix(".index")
    assert [e["offset"] for e in of_type("entry", objects(index))] == [5]
    assert of_type("entry", objects("--offset", "6..", index)) == []
    assert of_type("entry", objects("--producer", "7", index)) == []


def test_a_directory_is_dumped_whole_and_in_order(objects, partition, log):
    kinds = [o["kind"] for o in of_type("file", objects(partition))]
    assert kinds == [
        "log", "offset-index", "time-index", "leader-epoch-checkpoint", "partition-metadata",
    ]  # fmt: skip
    assert [o["kind"] for o in of_type("file", objects(partition.parent))] == kinds


def test_of_a_log_dir_partitions_are_chosen_by_topic_and_number(objects, partition, run):
    shutil.copytree(partition, partition.with_name("orders-1"))
    shutil.copytree(partition, partition.with_name("bills-0"))
    (partition.parent / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    home = partition.parent

    def chosen(*options):
        found = of_type("file", objects(*options, home))
        return {f"{o['topic']}-{o['partition']}" for o in found}

    assert chosen() == {"orders-0", "orders-1", "bills-0", "None-None"}
    assert chosen("--topic", "ord*") == {"orders-0", "orders-1"}
    assert chosen("--topic", "ord*", "--topic", "bills") == {"orders-0", "orders-1", "bills-0"}
    assert chosen("--exclude-topic", "ord*") == {"bills-0"}
    assert chosen("--partition", "1") == {"orders-1"}
    result = run("dump", "--topic", "ordres", home)
    assert (result.status, result.stdout) == (4, "")
    assert "nothing matched" in result.stderr


SMALL: dict[str, tuple[bytes, list[dict]]] = {
    "meta.properties": (
        b"#\nnode.id=1\ncluster.id=a\\:b\nversion=1\n",
        [{"key": "node.id", "value": "1"}, {"key": "cluster.id", "value": "a:b"}],
    ),
    "partition.metadata": (
        b"version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ",
        [{"version": 0, "topic_id": "J8aAPcfLQt2bqs1JT_rMgQ"}],
    ),
    "leader-epoch-checkpoint": (
        b"0\n2\n0 0\n3 4711\n",
        [{"leader_epoch": 0, "start_offset": 0}, {"leader_epoch": 3, "start_offset": 4711}],
    ),
    "replication-offset-checkpoint": (
        b"0\n1\norders 3 17\n",
        [{"topic": "orders", "partition": 3, "offset": 17}],
    ),
    ".kafka_cleanshutdown": (
        b'{"version":0,"brokerEpoch":12}',
        [{"version": 0, "broker_epoch": 12}],
    ),
    "quorum-state": (
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ",'
        b'"data_version":1}',
        [{"leader_epoch": 2, "voted_id": 1, "leader_id": -1, "current_voters": None}],
    ),
    f"{9:020d}.timeindex": (
        (1_700_000_000_000).to_bytes(8, "big") + (3).to_bytes(4, "big"),
        [{"timestamp": "2023-11-14T22:13:20.000Z", "offset": 12, "relative_offset": 3}],
    ),
    f"{9:020d}.index": (
        (3).to_bytes(4, "big") + (4096).to_bytes(4, "big") + bytes(16),
        [{"offset": 12, "log_position": 4096, "entry": 0}],
    ),
    f"{9:020d}.txnindex": (
        bytes(2) + b"".join(n.to_bytes(8, "big") for n in (7, 9, 12, 13)),
        [{"producer_id": 7, "first_offset": 9, "last_offset": 12, "last_stable_offset": 13}],
    ),
    f"{9:020d}.index.deleted": ((3).to_bytes(4, "big") + (96).to_bytes(4, "big"), [{"offset": 12}]),
}


@pytest.mark.parametrize("name", SMALL)
def test_every_small_file_is_spelled_out(objects, tmp_path, name):
    content, expected = SMALL[name]
    path = tmp_path / name
    path.write_bytes(content)
    entries = of_type("entry", objects(path))
    for entry, wanted in zip(entries, expected, strict=False):
        assert wanted.items() <= entry.items()
    assert len(entries) >= len(expected)


def test_a_preallocated_index_says_how_much_of_it_is_padding(objects, tmp_path):
    path = tmp_path / f"{9:020d}.index"
    path.write_bytes(SMALL[path.name][0])
    (head,) = of_type("file", objects(path))
    assert (head["entries"], head["padding"], head["size"]) == (1, 16, 24)


def test_a_producer_snapshot_is_spelled_out(objects, tmp_path):
    import numpy as np

    rows = np.array([(7, 1, 2, 100, 5, 1_700_000_000_000, 3, 96)], producer_snapshot.ENTRY)
    path = tmp_path / f"{101:020d}.snapshot"
    path.write_bytes(producer_snapshot.encode(producer_snapshot.build(rows)))
    (entry,) = of_type("entry", objects(path))
    # The sequence numbers wrap: 2 - 5 is the third before zero.
    assert (entry["first_sequence"], entry["last_sequence"]) == (2**31 - 3, 2)
    assert (entry["current_txn_first_offset"], entry["timestamp"]) == (
        96, "2023-11-14T22:13:20.000Z",
    )  # fmt: skip


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".swap"])
def test_logs_that_wait_for_deletion_or_commit_are_dumped(objects, log, suffix):
    path = log.rename(log.with_name(log.name + suffix))
    head, *batches = objects(path)
    assert (head["kind"], head["state"], len(batches)) == ("log", suffix[1:], 3)


def test_a_log_of_any_name_that_stands_alone_is_dumped(objects, log, tmp_path):
    path = tmp_path / "copy of a segment.log"
    shutil.copyfile(log, path)
    assert len(of_type("batch", objects(path))) == 3


def test_damage_is_printed_in_its_place_and_the_dump_goes_on(objects, damaged_log):
    found = objects("--records", damaged_log, status=1)
    kinds = [o["type"] for o in found]
    assert kinds == [
        "file",
        *["batch"] + ["record"] * 3,
        "error",
        *["batch"] + ["bad-record"] * 3,
        *["batch"] + ["record"] * 3,
    ]
    (error,) = of_type("error", found)
    unsound = found[kinds.index("error") + 1]
    assert (error["reason"], error["position"]) == ("crc", unsound["position"])
    assert (error["length"], unsound["crc_valid"]) == (unsound["size"], False)
    assert [b["crc_valid"] for b in of_type("batch", found)] == [True, False, True]


def test_damage_is_reported_in_the_table_too(run, damaged_log):
    result = run("dump", damaged_log)
    assert result.status == 1
    assert "!! crc: " in result.stdout
    assert "1 damaged place" in result.stderr


def test_a_torn_end_is_an_error_in_its_place(objects, log):
    size = log.stat().st_size
    log.write_bytes(log.read_bytes()[:-1])
    *_, error = objects(log, status=1)
    assert (error["type"], error["reason"]) == ("error", "incomplete")
    assert error["position"] + error["length"] == size - 1


def test_a_batch_that_cannot_be_decompressed_is_an_error_behind_it(objects, log, make_batch):
    from logtool.formats import record_batch

    good = make_batch(0, [Record(0)])
    # Codec 4 is zstd; the payload is not zstd.
    bad = bytearray(make_batch(1, [Record(0)]))
    bad[22] |= 4
    bad[17:21] = __import__("crc32c").crc32c(bytes(bad[21:])).to_bytes(4, "big")
    log.write_bytes(good + bytes(bad) + make_batch(2, [Record(0)]))
    assert len(bad) > record_batch.HEADER_SIZE
    found = objects("--records", log, status=1)
    assert [o["type"] for o in found][1:] == [
        "batch",
        "record",
        "batch",
        "error",
        "batch",
        "record",
    ]
    assert "zstd" in of_type("error", found)[0]["message"]


def test_records_that_do_not_decode_are_an_error_behind_those_that_do(objects, log, make_batch):
    log.write_bytes(make_batch(0, [Record(0), Record(1)], record_count=3))
    found = objects("--records", log, status=1)
    assert [o["type"] for o in found] == ["file", "batch", "record", "record", "error"]
    assert "record 2 of 3" in found[-1]["message"]


def test_a_malformed_line_is_an_error_and_the_others_are_printed(objects, tmp_path):
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_bytes(b"0\n2\nonly two\norders 0 5\n")
    found = objects(path, status=1)
    assert [e["offset"] for e in of_type("entry", found)] == [5]
    (error,) = of_type("error", found)
    assert (error["reason"], error["position"]) == ("checkpoint/malformed-line", 4)


def test_control_records_are_spelled_out(objects, log, make_batch):
    key, value = control_record.encode_end_transaction(commit=False, coordinator_epoch=5)
    marker = make_batch(0, [Record(0, 0, key, value)], attributes=0x30, producer_id=7)
    log.write_bytes(marker + make_batch(1, [Record(0, 0, b"?")], attributes=0x20))
    first, second = of_type("record", objects("--records", log))
    assert (first["control"], first["control_type"]) == (True, "ABORT")
    assert first["control_record"] == {
        "version": 0, "type": 0, "name": "ABORT",
        "data": {"version": 0, "coordinatorEpoch": 5},
    }  # fmt: skip
    assert (second["control"], second["control_type"]) == (True, None)
    assert second["control_record"] is None
    assert "1 bytes" in second["control_error"]


def test_log_append_time_overrides_the_deltas(objects, log, make_batch):
    log.write_bytes(make_batch(0, [Record(0, 5)], attributes=0x08, max_timestamp=1_800_000_000_000))
    (found,) = of_type("record", objects("--records", log))
    assert (found["timestamp_type"], found["timestamp_ms"]) == ("LogAppendTime", 1_800_000_000_000)


def test_a_delete_horizon_is_shown_and_is_no_timestamp(objects, log, make_batch):
    log.write_bytes(make_batch(0, [Record(0, -9)], attributes=0x40, base_timestamp=10**12))
    batch, found = objects("--records", log)[1:]
    assert (batch["delete_horizon_ms"], batch["base_timestamp_ms"]) == (10**12, None)
    assert found["timestamp_ms"] == 10**12 - 9


def test_impossible_times_keep_their_milliseconds(objects, log, make_batch):
    log.write_bytes(make_batch(0, [Record(0)], base_timestamp=2**62, max_timestamp=2**62))
    (found,) = of_type("record", objects("--records", log))
    assert (found["timestamp_ms"], found["timestamp"]) == (2**62, None)


UNREADABLE = {
    "a path that is not there": (lambda home: home / "missing", "No such file"),
    "an empty directory": (lambda home: made(home / "empty", None), "is empty"),
    "a directory of something else": (
        lambda home: made(home / "other", "readme.txt").parent, "nothing matched",
    ),
    "a file of something else": (lambda home: made(home / "x", "notes.txt"), "notes.txt"),
}  # fmt: skip


def made(folder, name):
    folder.mkdir()
    if name is None:
        return folder
    path = folder / name
    path.write_text("hello")
    return path


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_makes_the_dump_incomplete_and_stops_nothing(run, tmp_path, log, name):
    make, message = UNREADABLE[name]
    result = run("dump", "-f", "ndjson", make(tmp_path), log)
    assert result.status == 4
    assert message in result.stderr
    assert len(result.of_type("batch")) == 3
    assert result.objects[-1]["complete"] is False


def test_damage_and_unreadable_together_are_incomplete(run, tmp_path, damaged_log):
    assert run("dump", tmp_path / "missing", damaged_log).status == 4


def test_a_link_is_not_followed(run, tmp_path, log):
    link = tmp_path / f"{5:020d}.log"
    link.symlink_to(log)
    result = run("dump", link)
    assert result.status == 4
    assert "symbolic link" in result.stderr


def test_a_pipe_is_not_waited_for(run, tmp_path):
    path = tmp_path / f"{0:020d}.log"
    os.mkfifo(path)
    result = run("dump", path)
    assert (result.status, result.stderr.startswith(f"logtool: {path}: ")) == (4, True)


def test_without_permission_the_status_is_4(tmp_path, log, child_environment):
    other = log.with_name(f"{9:020d}.log")
    shutil.copyfile(log, other)
    log.chmod(0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    # As root, who may read everything, the command runs as somebody else. What it imports is
    # imported before, by a first run: the interpreter itself may stand where only root can read.
    code = (
        "import contextlib, io, os, sys; from logtool import cli\n"
        "with contextlib.redirect_stdout(io.StringIO()): cli.run(['dump', sys.argv[-1]])\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "sys.exit(cli.run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "dump", "-f", "ndjson", str(log), str(other)],
        capture_output=True, text=True, check=False, env=child_environment(),
    )  # fmt: skip
    log.chmod(0o644)
    assert done.returncode == 4
    assert done.stderr.startswith(f"logtool: {log}: Permission denied\n")
    assert done.stdout.count('"type": "batch"') == 3


def test_paths_come_from_a_file_by_line_or_by_nul(run, tmp_path, log):
    odd = tmp_path / "with space\nand line end.log"
    shutil.copyfile(log, odd)
    by_line, by_nul = tmp_path / "lines", tmp_path / "nuls"
    by_line.write_text(f"{log}\n\n{log}\n")
    by_nul.write_bytes(os.fsencode(odd) + b"\0" + os.fsencode(log) + b"\0")
    assert len(run("dump", "-f", "ndjson", "--files-from", by_line).of_type("batch")) == 6
    result = run("dump", "-f", "ndjson", "--files-from", by_nul, "--null", log)
    assert result.status == 0
    assert len(result.of_type("batch")) == 9


def test_paths_come_from_standard_input(spawn, log):
    result = spawn("dump", "-f", "ndjson", "--files-from", "-", input=os.fsencode(log))
    assert (result.status, len(result.of_type("batch"))) == (0, 3)


def test_an_empty_list_of_paths_is_wrong_usage(run, tmp_path):
    (tmp_path / "none").write_text("")
    assert run("dump", "--files-from", tmp_path / "none").status == 2


def test_legacy_messages_are_dumped(objects, log):
    import struct
    import zlib

    def message(offset, magic, key, value, codec=0):
        body = struct.pack(">bB", magic, codec) + (struct.pack(">q", 1234) if magic else b"")
        for part in (key, value):
            body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
        whole = struct.pack(">I", zlib.crc32(body)) + body
        return struct.pack(">qi", offset, len(whole)) + whole

    inner = message(0, 1, b"a", b"1") + message(1, 1, b"b", None)
    wrapper = message(11, 1, None, zlib.compress(inner, wbits=31), codec=1)
    log.write_bytes(message(5, 0, b"k", b"v") + wrapper)
    found = objects("--records", log)
    assert [r["offset"] for r in of_type("record", found)] == [5, 10, 11]
    assert [r["timestamp_ms"] for r in of_type("record", found)] == [None, 1234, 1234]
    assert [b["magic"] for b in of_type("batch", found)] == [0, 1]
    found = objects("--records", "--offset", "10", log)
    assert [r["offset"] for r in of_type("record", found)] == [10]
    assert record.NULL == -1


def test_memory_stays_flat(tmp_path, make_batch, child_environment):
    path = tmp_path / NAME
    value = os.urandom(200_000)
    with path.open("wb") as file:
        for offset in range(600):
            file.write(make_batch(offset, [Record(0, 0, b"k", value)]))
    # Not getrusage: that counts what the process was before it became another program.
    code = (
        "import sys; from logtool import cli; status = cli.run(sys.argv[1:]);"
        "peak = [line for line in open('/proc/self/status') if line.startswith('VmHWM')];"
        "print(peak[0].split()[1], file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "dump", "--records", "-f", "ndjson", str(path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=child_environment(), check=True,
    )  # fmt: skip
    assert int(done.stderr) < 110 * 1024, "KiB, for a log of 115 MiB"


@pytest.mark.parametrize("words", [(), ("--records",)])
@pytest.mark.parametrize(("timestamp", "noted"), [(1_763_000_000_000_000, True), (10, False)])
def test_a_timestamp_in_another_unit_is_noted(run, copy_of, words, timestamp, noted):
    (log,) = (copy_of("4.3.1/clean") / "codec-none-0").glob("*.log")
    batch = new_batch(360, b"x", base_timestamp=timestamp, max_timestamp=timestamp)
    log.write_bytes(log.read_bytes() + batch)
    result = run("dump", *words, "--offset", "360", log)
    assert result.status == 0
    assert ("2025-11-13" in result.stderr) is noted
