"""``logtool doctor``: one screen, the other formats, how it ends, and what to run next."""

import csv
import json
import re
import shlex
import shutil
import struct
import subprocess
import sys
import time

import pytest
from crc32c import crc32c
from damage import append_to_file, damage_file, flip, overwrite, remove_file
from metadata_logs import data, log_dir, registration, static
from processes import locked_by_a_process, without_rights
from verification import batches, logs, rewrite, set_offsets, small_log_dir

from logtool.commands.views.doctor import MOST_GROUPS
from logtool.doctor import examination
from logtool.formats import producer_snapshot
from logtool.metadata.image import DIRECTORY

PARTITIONS = ("small-segments-0", "codec-none-0", "index.dense-0", "__cluster_metadata-0")
SCREEN = 24


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    """Let the terminal have 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def clean(scenario, tmp_path):
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", *PARTITIONS)


@pytest.fixture
def damaged(clean):
    """Return a log dir with four kinds of damage, stopped in order."""
    damage_file(logs(clean / "small-segments-0")[2], overwrite, 70, b"\xff\xff")
    set_offsets(clean / "replication-offset-checkpoint", {("codec-none", 0): 9360})
    append_to_file(logs(clean / "index.dense-0")[0].with_suffix(".index"), b"12345")
    append_to_file(logs(clean / "index.dense-0")[0].with_suffix(".timeindex"), b"12345")
    return clean


def labels(result):
    """Return the state of each answer on the screen, by its name."""
    words = (line.split() for line in result.lines if line and not line.startswith(" "))
    return {name: state for state, name, *_ in words if state not in ("Next,", "To", "The")}


def test_a_sound_log_dir_fills_less_than_a_screen(run, clean):
    result = run("doctor", clean)
    assert (result.status, result.stderr) == (0, "")
    shown = labels(result)
    assert shown.pop("damage") in ("ok", "info")  # an index that is preallocated is an info
    assert shown.pop("disk") in ("ok", "info", "WARNING", "ERROR")  # that of this machine
    assert shown.pop("retention") == "info"  # its records are of 2023
    assert set(shown.values()) == {"ok"}
    assert set(shown) == {"start", "watermark", "broker", "versions"}
    assert len(result.lines) <= SCREEN
    wide = [line for line in result.lines[:-1] if len(line) > 80]
    assert all(str(clean) in line for line in wide), wide  # a name is not broken


def test_of_a_damaged_one_the_worst_comes_first_and_it_is_one_screen(run, damaged):
    result = run("doctor", damaged)
    assert result.status == 1
    shown = labels(result)
    assert (shown["damage"], shown["start"], shown["watermark"]) == ("ERROR",) * 3
    assert result.lines[0].startswith("ERROR    damage    ")
    assert len(result.lines) <= SCREEN + 20  # messages are whole
    wide = [line for line in result.lines[:-1] if len(line) > 80]
    assert all(str(damaged) in line for line in wide), wide  # a name is not broken
    groups = [line.split()[0] for line in result.lines if line[:2] == "  " and line[2] != " "]
    assert groups[:3] == [
        "checkpoint/high-watermark-beyond-end", "batch/crc", "offset-index/length"
    ]  # fmt: skip
    assert "--format json" in result.stdout  # which has the kind that is left out
    assert result.lines[-1] == f"  logtool plan {damaged}"
    assert "9,000 " in result.stdout


def test_old_formats_are_an_answer_where_a_partition_has_them(run, scenario, tmp_path):
    home = small_log_dir(scenario("2.8.2/magic-1"), tmp_path / "home", "old-none-0", "old-gzip-0")
    assert labels(run("doctor", home))["formats"] == "info"
    (found,) = run("doctor", "-f", "ndjson", home).of_type("old_formats")
    assert (found["partitions"], found["complete"]) == (["old-gzip-0", "old-none-0"], True)
    assert not run("doctor", "-f", "ndjson", "--max-duration", "0.000001", home).of_type(
        "old_formats"
    )  # no batch was checked


def test_what_retention_deletes_soon_is_an_answer(run, scenario, tmp_path):
    kept = ("codec-gzip-0", "codec-lz4-0", "compacted-tx-0", DIRECTORY)
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", *kept)
    (found,) = run("doctor", "-f", "ndjson", home).of_type("after_start")
    (total,) = run("retention", "-f", "ndjson", home).of_type("total")
    assert (found["segments"], found["bytes"]) == (total["first_segments"], total["first_bytes"])
    assert (found["partitions"], found["delay_ms"], found["kept"]) == (2, 30_000, [])
    assert found["command"] == f"logtool retention {home}"
    assert labels(run("doctor", home))["retention"] == "info"
    config = tmp_path / "server.properties"
    config.write_text("log.retention.ms=-1\n")
    assert "retention" not in labels(run("doctor", "--broker-config", config, home))
    plan = run("plan", "--broker-config", config, home)
    assert "logtool retention" not in plan.stdout + plan.stderr


def test_an_open_transaction_that_keeps_a_log_dirty_is_named(run, scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", "compacted-tx-0", DIRECTORY)
    (home / "cleaner-offset-checkpoint").unlink()
    path = max((home / "compacted-tx-0").glob("*.snapshot"))
    entries = producer_snapshot.parse(path.read_bytes()).entries.copy()
    entries["current_txn_first_offset"][0] = 5
    path.write_bytes(producer_snapshot.encode(producer_snapshot.build(entries)))
    (found,) = run("doctor", "-f", "ndjson", home).of_type("after_start")
    (kept,) = found["kept"]
    assert (kept["first_offset"], found["segments"]) == (5, 0)
    assert found["command"] == f"logtool cleaner {home}"
    assert labels(run("doctor", home))["retention"] == "info"


def test_a_timestamp_that_keeps_a_log_from_retention_is_named(run, clean):
    index = min((clean / "small-segments-0").glob("*.timeindex"))
    ahead = time.time_ns() // 1_000_000 + 400 * 86_400_000
    index.write_bytes(struct.pack(">qi", ahead, 0))
    (found,) = run("doctor", "-f", "ndjson", clean).of_type("after_start")
    (stamped,) = found["future_stamped"]
    assert (stamped["path"], stamped["base_offset"]) == (str(clean / "small-segments-0"), 0)
    assert stamped["until_ms"] > ahead
    assert found["command"] == f"logtool retention {clean}"
    assert "small-segments-0 until" in run("doctor", clean).stdout
    assert "small-segments-0 until" in run("plan", clean).stderr


def test_a_timestamp_that_keeps_a_log_is_looked_at_next_where_nothing_is_damaged(run, clean):
    (log,) = logs(clean / "codec-none-0")
    ahead = time.time_ns() // 1_000_000 + 400 * 86_400_000
    table = batches(log)
    end = int(table.size[0])
    data = bytearray(log.read_bytes())
    data[35:43] = ahead.to_bytes(8)  # the largest timestamp of the first batch
    data[17:21] = crc32c(bytes(data[21:end])).to_bytes(4)
    rewrite(log, bytes(data))
    row = struct.pack(">qi", ahead, int(table.last_offset[0]))
    rewrite(log.with_suffix(".timeindex"), row)
    result = run("doctor", "-f", "ndjson", clean)
    assert command_of(result) == f"logtool retention {clean}"


def test_records_that_retention_deletes_early_are_a_warning_and_looked_at_next(run, clean):
    index = min((clean / "small-segments-0").glob("*.timeindex"))
    written = time.time_ns() // 1_000_000_000 - 3600
    index.write_bytes(struct.pack(">qi", written, 0))
    config = clean.parent / "server.properties"
    config.write_text("log.retention.hours=175200\n")  # nothing else goes
    found = run("doctor", "-f", "ndjson", "--broker-config", config, clean)
    (soon,) = found.of_type("after_start")
    (early,) = soon["early"]
    assert early["path"] == str(clean / "small-segments-0")
    assert (early["segments"], early["first_offset"], soon["segments"]) == (1, 0, 1)
    assert (early["newest_ms"], early["age_ms"] >= 3_600_000) == (written * 1000, True)
    assert soon["state"] == "warning"
    assert command_of(found) == f"logtool retention {clean}"
    assert labels(run("doctor", "--broker-config", config, clean))["retention"] == "WARNING"
    assert "small-segments-0 goes" in run("plan", "--broker-config", config, clean).stderr


def test_a_compacted_log_that_the_cleaner_gives_up_is_named(run, scenario, tmp_path):
    names = ("compacted.keys-0", DIRECTORY)
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", *names)
    (home / "cleaner-offset-checkpoint").unlink()
    log = logs(home / "compacted.keys-0")[0]
    damage_file(log, overwrite, 8, bytes(4))
    (found,) = run("doctor", "-f", "ndjson", home).of_type("after_start")
    assert found["uncleanable"] == [{"path": str(log), "position": 0}]
    assert labels(run("doctor", home))["retention"] == "WARNING"
    assert not found["cleaner_off"]
    config = tmp_path / "server.properties"
    config.write_text("log.cleaner.enable=false\n")
    off = run("doctor", "-f", "ndjson", "--broker-config", config, home)
    (soon,) = off.of_type("after_start")
    assert (soon["uncleanable"], soon["cleaner_off"]) == (found["uncleanable"], True)
    assert soon["state"] == "warning"
    (shown,) = run(*shlex.split(soon["command"])[1:], "-f", "ndjson").of_type("partition")
    assert shown["obstacle"] == "damaged-batch"
    damage, start = off.of_type("damage"), off.of_type("start")
    assert "broker-config/cleaner-off" in [one["name"] for one in damage[0]["groups"]]
    assert "ignore" not in [one["name"] for one in start[0]["groups"]]
    shutil.rmtree(home / DIRECTORY)
    assert run("doctor", "-f", "ndjson", home).of_type("after_start") == []


def test_of_too_many_partitions_the_command_is_named(run, scenario, monkeypatch):
    monkeypatch.setattr(examination, "MOST_LOGS", 30)
    (found,) = run("doctor", "-f", "ndjson", scenario("4.3.1/clean")).of_type("after_start")
    assert (found["segments"], found["delay_ms"], found["kept"]) == (None, None, [])
    assert found["command"].startswith("logtool retention ")
    assert labels(run("doctor", scenario("4.3.1/clean")))["retention"] == "info"


def test_the_screen_is_as_wide_as_the_terminal(run, damaged, monkeypatch):
    widths = {}
    for columns in (60, 80, 100, 220):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = run("doctor", damaged).lines
        # A command is not broken.
        folded = [line for line in lines if str(damaged) not in line and "logtool " not in line]
        widths[columns] = max(map(len, folded))
    assert widths[60] <= 60 < widths[80] <= 80 < widths[100] <= 100
    assert widths[220] == widths[100]


def test_messages_are_whole_on_a_narrow_terminal(run, damaged):
    items = run("doctor", "-f", "ndjson", damaged).objects
    shown = " ".join(run("doctor", damaged).stdout.split())
    for item in items:
        groups = [one for one in item.get("groups", ()) if one["state"] != "info"]
        for group in groups[:MOST_GROUPS]:
            assert " ".join(group["message"].split()) in shown


def test_nothing_is_said_of_a_start_for_which_there_was_no_time(run, damaged):
    result = run("doctor", "--max-duration", "0.000001", damaged)
    assert result.status in (1, 6)
    assert "3 partitions" in result.stdout.partition("watermark")[0]
    assert labels(result)["start"] != "ok"
    (start,) = run("doctor", "-f", "ndjson", "--max-duration", "0.000001", damaged).of_type("start")
    assert (start["complete"], start["partitions"]) == (False, 0)


def test_a_part_of_the_partitions_does_not_show_that_no_log_ends_below_its_high_watermark(
    run, clean, monkeypatch
):
    (found,) = run("doctor", "-f", "ndjson", clean).of_type("high_watermark")
    assert (found["state"], found["below"]) == ("good", [])
    monkeypatch.setattr(examination.Forecast, "out_of_time", True)
    (found,) = run("doctor", "-f", "ndjson", clean).of_type("high_watermark")
    assert (found["state"], found["below"]) == ("info", [])


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_a_row_is_an_answer(run, damaged, format):
    delimiter = "," if format == "csv" else "\t"
    rows = list(csv.DictReader(run("doctor", "-f", format, damaged).lines, delimiter=delimiter))
    assert [row["answer"] for row in rows] == [
        "damage", "start", "high_watermark", "after_start", "broker", "versions", "disk", "limit",
        "limit", "remedy", "remedy", "remedy", "next",
    ]  # fmt: skip
    assert rows[0]["state"] == "error"
    assert all(row["text"] for row in rows)


def test_markdown_is_one_table(run, damaged):
    result = run("doctor", "-f", "markdown", damaged)
    assert {line[0] for line in result.lines} == {"|"}
    assert len(result.lines) == 15


def test_brokers_with_ids_are_examined_one_by_one_and_a_sound_copy_is_the_repair(run, copy_of):
    home = copy_of("4.3.1/replicas")
    nodes = [home / f"node-{number}" for number in (1, 2, 3)]
    log = logs(nodes[1] / "replica.in-sync-0")[0]
    damage_file(log, flip, log.stat().st_size // 2)
    given = [f"{number}={node}" for number, node in enumerate(nodes, 1)]
    result = run("doctor", "-f", "ndjson", *given)
    assert result.status == 1
    assert [one["node"] for one in result.of_type("node")] == [1, 2, 3]
    damage = [(one["findings"]["error"], one["partitions"]) for one in result.of_type("damage")]
    assert damage == [(0, 1), (1, 6), (0, 6)]
    summary = result.objects[-1]
    assert (summary["partitions"], summary["findings"]["error"]) == (13, 1)
    commands = [one["command"] for one in result.of_type("next")]
    assert commands[1] == f"logtool recover --fill-from {nodes[2]} {nodes[1]}"
    assert "--fill-from" not in commands[0] + commands[2]
    # The comparison does not read the damage, so that the fill comes before it.
    assert commands.count(commands[1]) == 1
    assert commands[-1].startswith("logtool cluster ")
    repair = run(*shlex.split(commands[1])[1:], "--apply")
    assert (repair.status, run("verify", "--fail-on", "error", nodes[1]).status) == (0, 0)


def test_log_dirs_of_several_nodes_are_examined_one_by_one(run, scenario, tmp_path):
    home = scenario("4.3.1/replicas")
    nodes = [home / f"node-{number}" for number in (2, 3)]
    named = [f"{number}={node}" for number, node in zip((2, 3), nodes, strict=True)]
    found = run("doctor", "-f", "ndjson", *nodes)
    assert [one["node"] for one in found.of_type("node")] == [2, 3]
    of_types = [one["type"] for one in run("doctor", "-f", "ndjson", *named).objects]
    assert [one["type"] for one in found.objects] == of_types

    # A file that gives both to one broker decides; then the examination of each is proposed.
    own = tmp_path / "server.properties"
    own.write_text(f"log.dirs={nodes[0]},{nodes[1]}\nnode.id=2\n")
    result = run("doctor", "-f", "ndjson", "--broker-config", own, *nodes)
    assert result.of_type("node") == []
    (proposed,) = result.of_type("next")
    assert shlex.split(proposed["command"]) == ["logtool", "doctor", *named]


def test_copies_of_one_log_dir_are_examined_one_by_one(run, clean, tmp_path):
    backup = shutil.copytree(clean, tmp_path / "backup")
    shutil.rmtree(backup / "codec-none-0")
    shutil.copytree(clean / "codec-none-0", clean / "later-0")
    result = run("doctor", "-f", "ndjson", backup, clean)
    alone = [run("doctor", "-f", "ndjson", one) for one in (backup, clean)]
    assert [one["paths"] for one in result.of_type("node")] == [[str(backup)], [str(clean)]]
    for kind in ("finding", "action", "start", "damage"):
        both = [one for each in alone for one in each.of_type(kind)]
        named = [(one.get("code"), one.get("action"), one.get("path")) for one in both]
        assert named == [
            (one.get("code"), one.get("action"), one.get("path")) for one in result.of_type(kind)
        ]
    assert result.of_type("next")[-1]["command"] == f"logtool diff {backup} {clean}"
    lost = [one["command"] for one in result.of_type("remedy") if "codec-none-0" in one["command"]]
    assert lost == [f"cp -a {clean}/codec-none-0 {backup}/"]


def test_two_log_dirs_with_one_directory_id_by_mistake_are_of_one_broker(run, copy_of):
    home = copy_of("4.3.1/two-log-dirs")
    shutil.copy(home / "dir-1" / "meta.properties", home / "dir-2" / "meta.properties")
    result = run("doctor", "-f", "ndjson", home / "dir-1", home / "dir-2")
    assert result.of_type("node") == []
    assert "meta-properties/duplicate-id" in {one["code"] for one in result.of_type("finding")}


@pytest.mark.parametrize(
    ("voters", "given", "missing"),
    [((1, 2, 3), (1, 8, 9), [2, 3]), ((1, 2, 3), (1, 2, 8, 9), None), ((1, 2, 3), (1, 8), None),
     ((1, 2, 3), (8, 9), None), ((1, 2, 3), (1,), None), ((1, 8, 9), (1, 8), None)],
)  # fmt: skip
def test_nodes_that_cannot_elect_a_controller_are_a_warning(run, tmp_path, voters, given, missing):
    known = data(0, registration(8), registration(9))
    homes = [log_dir(tmp_path, node, known, state=static(*voters)) for node in given]
    result = run("doctor", "--fail-on", "error", "-f", "ndjson", *homes)
    found = result.of_type("quorum")
    assert [(one["state"], one["missing"]) for one in found] == [("warning", missing)] * (
        missing is not None
    )
    assert result.status == (missing is not None)
    for one in found:
        assert run(*shlex.split(one["command"])[1:]).status == 1


def test_a_lost_partition_that_waits_to_be_deleted_is_saved_next(run, copy_of, monkeypatch):
    home = copy_of("4.3.1/clean")
    (home / "codec-none-0").rename(home / f"codec-none-0.{'0' * 32}-delete")
    command = command_of(run("doctor", "-f", "ndjson", home))
    assert "--topic codec-none " in command
    monkeypatch.chdir(home.parent)
    assert run(*shlex.split(command)[1:]).status == 0
    (folder,) = home.parent.glob("undeleted*/partitions")
    assert [one.name for one in folder.iterdir()] == ["codec-none-0"]
    saved = folder / "codec-none-0"
    assert run("stat", "-f", "ndjson", saved).of_type("partition")[0]["records"] == 360
    (home / "index.dense-0").rename(home / f"index.dense-0.{'0' * 32}-delete")
    command = command_of(run("doctor", "-f", "ndjson", home))
    assert "--topic codec-none --topic index.dense " in command
    assert run(*shlex.split(command)[1:]).status == 0
    saved = {one.name for one in (home.parent / "undeleted" / "partitions").iterdir()}
    assert saved == {"codec-none-0", "index.dense-0"}


def test_of_a_bucket_the_start_of_its_node_is_next(run, scenario):
    home = scenario("automq/broker-crash")
    found = run("doctor", "-f", "ndjson", home / "s3", home / "meta")
    (proposed,) = found.of_type("next")
    assert proposed["command"] == f"logtool plan {home / 's3'} {home / 'meta'}"
    assert run(*shlex.split(proposed["command"])[1:]).status == 0


def test_without_a_sound_copy_no_copy_is_proposed(run, copy_of):
    home = copy_of("4.3.1/replicas")
    nodes = [home / "node-2", home / "node-3"]
    for node in nodes:
        log = logs(node / "replica.in-sync-0")[0]
        damage_file(log, flip, log.stat().st_size // 2)
    result = run("doctor", "-f", "ndjson", f"2={nodes[0]}", f"3={nodes[1]}")
    *repairs, _ = [one["command"] for one in result.of_type("next")]
    assert repairs == [f"logtool plan {node}" for node in nodes]


def test_replicas_that_doctor_does_not_compare_are_compared_next(run, copy_of):
    home = copy_of("4.3.1/replicas")
    odd = home / "node 3"
    (home / "node-3").rename(odd)
    nodes = [f"1={home / 'node-1'}", f"2={home / 'node-2'}", f"3={odd}"]
    *own, last = run("doctor", "-f", "ndjson", *nodes).of_type("next")
    assert shlex.split(last["command"]) == ["logtool", "cluster", *nodes]
    assert not any("nothing is wrong so far" in one["reason"] for one in (*own, last))
    partitions = [f"{node}/replica.in-sync-0" for node in nodes[1:]]
    *_, last = run("doctor", "-f", "ndjson", *partitions).of_type("next")
    assert shlex.split(last["command"]) == ["logtool", "watermark", *partitions]
    assert run(*shlex.split(last["command"])[1:]).status == 0
    (alone,) = run("doctor", "-f", "ndjson", home / "node-1").of_type("next")
    assert not alone["command"].startswith(("logtool cluster", "logtool watermark"))


def test_json_has_every_finding_and_every_grave_action(run, damaged):
    document = json.loads(run("doctor", "--json", damaged).stdout)
    assert document["schema"] == "logtool.doctor/1"
    items = document["items"]
    found = [one for one in items if one["type"] == "finding"]
    assert (
        found == run("verify", "-f", "ndjson", damaged).of_type("finding")
        or [
            {k: v for k, v in one.items() if k != "schema"}
            for one in run("verify", "-f", "ndjson", damaged).of_type("finding")
        ]
        == found
    )
    assert {one["action"] for one in items if one["type"] == "action"} >= {"lacks", "unnoticed"}
    assert document["summary"]["complete"]


def command_of(result):
    return next(one["command"] for one in result.objects if one["type"] == "next")


def test_the_command_to_run_next_is_for_the_gravest(run, clean):
    def command():
        return command_of(run("doctor", "-f", "ndjson", clean))

    assert command() == f"logtool verify --level records {clean}"
    append_to_file(logs(clean / "index.dense-0")[0].with_suffix(".index"), b"12345")
    assert command() == f"logtool plan {clean}"  # no broker notices it
    damage_file(logs(clean / "small-segments-0")[2], overwrite, 70, b"\xff\xff")
    assert command().startswith(f"logtool dump {logs(clean / 'small-segments-0')[2]} --offset ")
    remove_file(clean / ".kafka_cleanshutdown")
    remove_file(clean / "recovery-point-offset-checkpoint")
    assert command() == f"logtool plan {clean}"
    (clean / "backup").mkdir()
    assert command() == "logtool explain data-dir/stops-broker"


def test_the_command_keeps_the_selection(run, clean):
    result = run("doctor", "-f", "ndjson", "--topic", "codec*", "--partition", "0", clean)
    expected = f"logtool verify --level records --topic 'codec*' --partition 0 {clean}"
    assert command_of(result) == expected
    assert result.objects[-1]["partitions"] == 1


@pytest.mark.parametrize("name", ["-rf-0", "two lines\n'", "$(touch evil)"], ids=ascii)
def test_the_command_can_be_pasted_whatever_the_directory_is_called(run, clean, tmp_path, name):
    home = clean.rename(tmp_path / name)
    command = command_of(run("doctor", "-f", "ndjson", home))
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    assert words[:-1] == ["logtool", "verify", "--level", "records", str(home)]
    assert run(*words[1:-1]).status == 0
    assert not (tmp_path / "evil").exists()


def test_a_running_broker_is_named_and_its_limits_are_read(run, clean):
    (clean / ".lock").touch()
    with locked_by_a_process(clean / ".lock") as pid:
        result = run("doctor", "-f", "ndjson", clean)
        assert f"process {pid}" in run("doctor", clean).stdout
    broker = result.of_type("broker")[0]
    assert (broker["in_use"], broker["pid"], broker["state"]) == (True, pid, "info")
    limit = result.of_type("limit")[0]
    assert (limit["name"], limit["pid"]) == ("open-files", pid)
    assert result.status == 0


def test_a_limit_that_does_not_suffice_is_a_warning_and_no_status(clean, child_environment):
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
        "from logtool import cli; sys.exit(cli.run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor", "-f", "ndjson", str(clean)],
        capture_output=True, text=True, check=False, env=child_environment(),
    )  # fmt: skip
    limit = next(one for one in map(json.loads, done.stdout.splitlines())
                 if one["type"] == "limit")  # fmt: skip
    assert (limit["state"], limit["allowed"], limit["pid"]) == ("warning", 64, None)
    assert done.returncode == 0


def test_a_typo_is_incomplete_and_what_is_there_is_looked_at_next(run, clean):
    result = run("doctor", clean.parent / "dat")
    assert result.status == 4
    assert "no such file" in result.stderr.lower()
    assert result.lines[-1] == f"  ls -la {clean.parent}"
    assert result.lines[0].split()[:2] == ["WARNING", "damage"]
    assert "incomplete" in result.lines[0]
    assert len(result.stderr.splitlines()) == 1


def test_log_dirs_that_a_file_names_and_this_host_lacks_are_asked_for(run, clean, tmp_path):
    own = tmp_path / "server.properties"
    own.write_text("log.dirs=/nowhere/kafka\nnode.id=1\n")
    result = run("doctor", "-f", "ndjson", "--broker-config", own)
    (proposed,) = result.of_type("next")
    assert proposed["command"] == f"logtool doctor --broker-config {own} DIR..."
    assert result.status == 4
    moved = run("doctor", "-f", "ndjson", "--broker-config", own, clean)
    assert moved.of_type("damage")[0]["partitions"] > 0


def test_a_directory_of_another_kind_matches_nothing(run, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hosts").write_text("")
    result = run("doctor", tmp_path / "etc")
    assert result.status == 4
    assert f"{tmp_path / 'etc'}: " in result.stderr
    assert result.lines[-1] == f"  ls -la {tmp_path / 'etc'}"


def test_next_to_a_directory_of_log_dirs_these_are_examined(run, clean):
    parent = clean.parent
    result = run("doctor", "-f", "ndjson", "--topic", "codec*", parent)
    assert result.status == 4
    assert command_of(result) == f"logtool doctor --topic 'codec*' {clean}"
    assert run(*shlex.split(command_of(result))[1:]).status == 0
    # A copy of the log dir is not another log dir of its broker.
    shutil.copytree(clean, parent / "data-copy")
    assert command_of(run("doctor", "-f", "ndjson", parent)) == f"logtool doctor {clean}"
    other = shutil.copytree(clean, parent / "other")
    meta = other / "meta.properties"
    text = re.sub("directory.id=.*", "directory.id=k-d2nq9tT6WxIGq92jeF8w", meta.read_text())
    meta.write_text(text)
    expected = f"logtool doctor {clean} {other}"
    assert command_of(run("doctor", "-f", "ndjson", parent)) == expected
    meta.write_text(text.replace("node.id=1", "node.id=2"))
    expected = f"logtool doctor 1={clean} 2={other}"
    assert command_of(run("doctor", "-f", "ndjson", parent)) == expected


def test_a_file_is_refused_as_plan_does(run, clean):
    log = logs(clean / "codec-none-0")[0]
    result = run("doctor", log)
    assert result.status == 4
    assert f"{log}: " in result.stderr


def test_without_permission_who_may_read_it_is_looked_at_next(clean):
    clean.chmod(0)
    try:
        status, out, err = without_rights("doctor", clean)
    finally:
        clean.chmod(0o755)
    assert status == 4
    assert "Permission denied" in err
    assert out.splitlines()[-1] == f"  ls -ld {shlex.quote(str(clean))}"


def test_one_partition_that_cannot_be_read_hides_nothing_else(damaged):
    for path in damaged.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (damaged / "index.dense-0").chmod(0)
    status, out, err = without_rights("doctor", "-f", "ndjson", damaged)
    objects = [json.loads(line) for line in out.splitlines()]
    assert status == 4
    assert [one["path"] for one in objects if one["type"] == "error"] == [
        str(damaged / "index.dense-0")
    ]
    states = {one["type"]: (one["state"], one["complete"]) for one in objects if "complete" in one
              and "state" in one}  # fmt: skip
    assert states == {"damage": ("error", False), "start": ("error", False)}
    assert "batch/crc" in {one["code"] for one in objects if one["type"] == "finding"}
    assert err.count("Permission denied") == 1


def test_no_path_is_wrong_usage_but_for_the_environment(run, clean):
    assert run("doctor").status == 2
    assert run("doctor", "--environment", clean).status == 2
    assert run("doctor", "--environment").status == 0
    assert run("doctor", "--max-duration", "soon", clean).status == 2


def test_the_environment_imports_nothing_of_spark_or_arrow(child_environment):
    code = (
        "import sys; from logtool import cli; status = cli.run(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor", "--environment", "-f", "ndjson"],
        capture_output=True, text=True, check=False, env=child_environment(),
    )  # fmt: skip
    assert done.returncode == 0
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert not loaded & {"pyspark", "pyarrow", "pandas", "fsspec", "s3fs"}
    found = {one["name"]: one for one in map(json.loads, done.stdout.splitlines())
             if one["type"] == "component"}  # fmt: skip
    assert found["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert {"logtool", "crc32c", "pyarrow", "pyspark", "java", "page size", "open files"} <= set(
        found
    )


def test_a_java_that_is_not_there_is_said(child_environment, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "logtool", "doctor", "--environment", "-f", "ndjson"],
        capture_output=True, text=True, check=False,
        env=child_environment(JAVA_HOME=str(tmp_path)),
    )  # fmt: skip
    java = next(one for one in map(json.loads, done.stdout.splitlines())
                if one.get("name") == "java")  # fmt: skip
    assert (java["found"], java["version"]) == (False, None)
    assert str(tmp_path) in java["detail"]
    assert done.returncode == 0


def test_a_file_leads_to_its_directory_or_to_verify(run, copy_of, tmp_path):
    home = copy_of("4.3.1/clean")
    log = next((home / "codec-none-0").glob("*.log"))
    alone = shutil.copy(log, tmp_path / "alone.log")
    for given, words in (
        (home / "meta.properties", ["doctor", str(home)]),
        (log, ["doctor", str(log.parent)]),
        (alone, ["verify", str(alone)]),
    ):
        (proposed,) = run("doctor", "-f", "ndjson", given).of_type("next")
        assert shlex.split(proposed["command"])[1:] == words


def test_the_metadata_log_is_not_counted_by_the_start(run, copy_of):
    home = copy_of("4.3.1/clean")
    for expected in (True, False):
        result = run("doctor", "-f", "ndjson", home)
        (damage,), (start,) = result.of_type("damage"), result.of_type("start")
        assert start["metadata_log"] is expected
        assert damage["partitions"] - start["partitions"] == expected
        shutil.rmtree(home / "__cluster_metadata-0", ignore_errors=True)
