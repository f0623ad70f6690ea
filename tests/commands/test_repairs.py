"""The remedies that `verify` prints: their commands are run, and do what they promise."""

import shlex
import shutil
from itertools import pairwise

import pytest
from damage import append_to_file, cut, damage_file, flip, remove_file
from verification import batches, logs, set_offsets, small_log_dir

from logtool.findings import Finding, Remedy
from logtool.log.selection import Selection
from logtool.running.remedies import Remedies

INDEXED, EPOCHS, BAD = "index.dense-0", "codec-none-0", "codec-gzip-0"


@pytest.fixture
def data(scenario, tmp_path):
    names = (INDEXED, EPOCHS, BAD, "__cluster_metadata-0")
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", *names)


def commands(result):
    """Return the commands behind the count of each remedy."""
    lines = result.stderr.splitlines()
    return [
        shlex.split(command)[1:]
        for line, command in pairwise(lines)
        if line.startswith("To repair ") and command.startswith("  logtool ")
    ]


def end_of(folder):
    """Return the offset behind the last batch of a log."""
    return int(batches(logs(folder)[-1]).last_offset[-1]) + 1


def harm_index(data):
    append_to_file(logs(data / INDEXED)[0].with_suffix(".index"), b"12345")


def harm_batch(data):
    log = logs(data / BAD)[0]
    damage_file(log, flip, log.stat().st_size // 2)


def test_repairs_without_loss_are_done_by_the_command(run, data):
    harm_index(data)
    damage_file(data / EPOCHS / "leader-epoch-checkpoint", lambda _: b"0\n0\n")
    found = run("verify", data)
    assert found.status == 1
    (command,) = commands(found)
    assert command == ["recover", "--full", str(data / EPOCHS), str(data / INDEXED)]
    assert run(*command, "--apply").status == 0
    again = run("verify", data)
    assert (again.status, commands(again)) == (0, [])


def test_records_are_cut_by_no_command_that_is_printed(run, data):
    harm_batch(data)
    harm_index(data)
    before = logs(data / BAD)[0].read_bytes()
    safe, losing = commands(run("verify", data))
    assert safe == ["recover", "--full", str(data / INDEXED)]
    assert losing == ["recover", "--fill-from", "COPY", str(data / BAD)]
    assert run(*safe, "--apply").status == 0
    copy = shutil.copytree(data, data.parent / "copy")
    losing[losing.index("COPY")] = str(copy)
    assert run(*losing).status == 1
    assert logs(data / BAD)[0].read_bytes() == before
    losing[losing.index(str(copy))] = "COPY"
    assert commands(run("verify", data)) == [losing]


def test_an_index_next_to_a_damaged_batch_is_repaired_with_it(run, data, scenario):
    source = scenario("4.3.1/clean")
    harm_batch(data)
    append_to_file(logs(data / BAD)[0].with_suffix(".index"), b"12345")
    index, losing = commands(run("verify", data))
    assert index == losing == ["recover", "--fill-from", "COPY", str(data / BAD)]
    copy = shutil.copytree(source / BAD, data.parent / "copy" / BAD)
    words = [str(copy) if word == "COPY" else word for word in losing]
    assert run(*words, "--apply").status == 0
    assert commands(run("verify", data)) == []


def test_a_copy_of_another_broker_takes_the_place_of_the_word_copy(run, data):
    copy = shutil.copytree(data, data.parent / "copy")
    harm_batch(data)
    expected = ["recover", "--fill-from", str(copy), str(data / BAD)]
    of_two = run("doctor", "-f", "ndjson", f"1={data}", f"2={copy}").of_type("remedy")
    found = [one for one in of_two if one["remedy"] == "loss"]
    assert [shlex.split(one["command"])[1:] for one in found] == [expected]


def test_two_logs_are_filled_by_one_command_from_the_copy_that_was_given(run, data):
    copy = shutil.copytree(data, data.parent / "copy")
    harm_batch(data)
    log = logs(data / EPOCHS)[0]
    damage_file(log, flip, log.stat().st_size // 2)
    (command,) = (one for one in commands(run("verify", data, copy)) if one[0] == "recover")
    assert command == [
        "recover", "--fill-from", str(copy), str(data / BAD), str(data / EPOCHS),
    ]  # fmt: skip
    assert run(*command, "--apply").status == 0
    assert commands(run("verify", data)) == []


def test_the_next_command_repairs_what_is_damaged_not_that_a_copy_was_given(run, data):
    copy = shutil.copytree(data, data.parent / "copy")
    harm_batch(data)
    proposed = [one["command"] for one in run("doctor", "-f", "ndjson", data, copy).of_type("next")]
    assert proposed[0] == f"logtool recover --fill-from {copy} {data}"
    assert proposed[-1] == f"logtool diff {data} {copy}"


def test_a_torn_metadata_log_is_repaired_by_the_start(run, data):
    log = logs(data / "__cluster_metadata-0")[-1]
    damage_file(log, cut, log.stat().st_size - 10)
    append_to_file(log.with_suffix(".index"), b"12345")
    result = run("verify", "-f", "ndjson", data)
    found = {
        one["code"]: (one["remedy"], one["broker"])
        for one in result.of_type("finding")
        if one["topic"] == "__cluster_metadata" and one["severity"] != "info"
    }
    assert len(found) > 1
    assert "log/torn-tail-clean" in found
    assert set(found.values()) == {("broker", "always")}


@pytest.mark.parametrize(("voters", "command"), [("1@a:1,2@b:1", "quorum"), ("1@a:1", "plan")])
def test_a_voter_compares_a_torn_metadata_log_with_others(run, data, voters, command):
    log = logs(data / "__cluster_metadata-0")[-1]
    damage_file(log, cut, 60)
    for snapshot in log.parent.glob("*.checkpoint"):
        remove_file(snapshot)
    config = data.parent / "server.properties"
    config.write_text(f"controller.quorum.voters={voters}\n")
    result = run("doctor", "-f", "ndjson", "--broker-config", config, data)
    assert [shlex.split(one["command"])[1] for one in result.of_type("next")] == [command]


def test_damage_in_the_metadata_log_is_no_damage_that_recover_repairs(run, data):
    log = logs(data / "__cluster_metadata-0")[0]
    damage_file(log, flip, log.stat().st_size // 2)
    found = commands(run("verify", data))
    assert ["explain", "batch/crc"] in found
    assert {one[0] for one in found} == {"explain"}


def test_the_end_of_a_log_is_filled_from_a_copy(run, data):
    copy = shutil.copytree(data, data.parent / "copy")
    log = logs(data / BAD)[-1]
    damage_file(log, cut, log.stat().st_size - 100)
    remove_file(data / ".kafka_cleanshutdown")
    set_offsets(data / "replication-offset-checkpoint", {("codec-gzip", 0): end_of(copy / BAD)})
    (command,) = commands(run("verify", data))
    assert command == ["recover", "--fill-from", "COPY", str(data / BAD)]
    items = run("doctor", "-f", "ndjson", data).of_type("remedy")
    proposed = [one for one in items if one["remedy"] == "replica"]
    assert [one["findings"] for one in proposed] == [2]
    assert shlex.split(proposed[0]["command"])[1:] == command
    (given,) = commands(run("verify", data / BAD, copy / BAD))
    assert given == ["recover", "--fill-from", str(copy / BAD), str(data / BAD)]
    words = [str(copy) if word == "COPY" else word for word in command]
    assert run(*words, "--apply").status == 0
    assert logs(data / BAD)[-1].read_bytes() == logs(copy / BAD)[-1].read_bytes()
    again = run("verify", data)
    assert (again.status, commands(again)) == (0, [])


def test_what_no_copy_of_a_log_mends_has_a_remedy_of_its_own(data):
    remedies = Remedies([data], Selection())
    for code in ("batch/magic", "batch/codec"):
        finding = Finding(code, "", path=logs(data / BAD)[0], topic="codec-gzip", partition=0)
        remedies.add(finding)
    assert [(one.remedy, one.findings, one.command) for one in remedies.counts()] == [
        (Remedy.REPLICA, 1, f"logtool recover --fill-from COPY {data / BAD}"),
        (Remedy.REPLICA, 1, "logtool explain batch/codec"),
    ]


def test_a_copy_is_not_for_the_metadata_log(data):
    remedies = Remedies([data], Selection())
    name = "__cluster_metadata"
    remedies.add(
        Finding("batch/magic", "", path=logs(data / f"{name}-0")[0], topic=name, partition=0)
    )
    assert [one.command for one in remedies.counts()] == ["logtool explain batch/magic"]


def test_a_sound_log_dir_has_nothing_to_repair(run, data):
    assert "To repair" not in run("verify", data).stderr


def test_a_finding_that_no_command_repairs_is_explained(run, data):
    damage_file(data / "meta.properties", lambda text: text.replace(b"node.id=1", b"node.id=x"))
    assert commands(run("verify", data)) == [["explain", "meta-properties/malformed"]]


@pytest.mark.parametrize("command", ["plan", "recover", "sanity"])
def test_a_command_for_one_broker_refuses_several(run, data, command):
    assert run(command, f"1={data}").status in (0, 1)
    result = run(command, f"1={data}", f"2={data}")
    assert (result.status, result.stdout) == (2, "")


@pytest.mark.parametrize("command", ["verify", "stat", "txns", "doctor", "gaps", "metadata show"])
def test_a_node_id_may_stand_before_each_log_dir(run, data, command):
    words = [*command.split(), "-f", "ndjson"]
    plain = run(*words, data)
    assert run(*words, f"1={data}").status == plain.status in (0, 1)


def test_findings_count_more_than_time_that_is_over(run, data):
    assert run("verify", "--max-duration", "0.000000001", data).status == 6
    harm_batch(data)
    file = data / "meta.properties"
    damage_file(file, lambda _: b"x")
    assert run("verify", "--max-duration", "0.000000001", data).status == 1


CHECKPOINTS = [
    (f"{EPOCHS}/partition.metadata", lambda _: b""),
    (f"{EPOCHS}/partition.metadata", None),
    (f"{EPOCHS}/partition.metadata", lambda data: data[:-22] + b"A" * 22),
    (f"{EPOCHS}/leader-epoch-checkpoint", lambda _: b"junk"),
    ("recovery-point-offset-checkpoint", lambda data: data[:-3] + b"x"),
]


@pytest.mark.parametrize(("name", "damage"), CHECKPOINTS)
def test_a_checkpoint_that_stops_the_broker_is_rebuilt_by_the_command(run, data, name, damage):
    path = data / name
    before = path.read_bytes()
    if damage is None:
        remove_file(path)
    else:
        damage_file(path, damage)
    (command,) = commands(run("verify", data))
    assert command[:2] == ["checkpoint", "rebuild"]
    (proposed,) = run("doctor", "-f", "ndjson", data).of_type("next")
    assert shlex.split(proposed["command"])[1:] == command
    recovered = run("recover", data)
    assert recovered.status == 1
    # Without the file, the log loads and is set aside as stray.
    assert (f"logtool checkpoint rebuild {data}\n" in recovered.stderr) == path.exists()
    assert run(*command, "--apply").status == 0
    if name.endswith("metadata"):
        assert path.read_bytes() == before
    again = run("verify", data)
    assert (again.status, commands(again)) == (0, [])


def test_an_id_comes_from_another_partition_where_no_metadata_log_is(run, scenario, tmp_path):
    names = ("codec-none-0", "codec-none-1", "codec-gzip-0")
    data = small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", *names)
    files = [data / name / "partition.metadata" for name in names]
    before = files[0].read_bytes()
    for file in (files[0], files[2]):
        damage_file(file, lambda _: b"")
    result = run("checkpoint", "rebuild", "-f", "ndjson", data)
    found = {(one["path"], one["action"]) for one in result.of_type("action")}
    assert found == {(str(files[0]), "replace"), (str(files[2]), "damaged")}
    applied = run("checkpoint", "rebuild", "--apply", data)
    assert (applied.status, files[0].read_bytes(), files[2].read_bytes()) == (1, before, b"")


def test_two_ids_of_a_topic_repair_nothing(run, data, scenario):
    other = data / "codec-none-1"
    shutil.copytree(scenario("4.3.1/clean") / "codec-none-1", other)
    damage_file(other / "partition.metadata", lambda text: text[:-22] + b"B" * 22)
    damage_file(data / EPOCHS / "partition.metadata", lambda _: b"")
    result = run("checkpoint", "rebuild", "-f", "ndjson", data)
    assert [one["action"] for one in result.of_type("action")] == ["damaged"]
    assert result.status == 1


def test_checkpoints_that_stop_a_load_are_repaired_first(run, data):
    damage_file(data / EPOCHS / "partition.metadata", lambda _: b"")
    append_to_file(logs(data / EPOCHS)[0].with_suffix(".index"), b"12345")
    first, second = commands(run("verify", data))
    assert (first[:2], second[:1]) == (["checkpoint", "rebuild"], ["recover"])
    assert run(*first, "--apply").status == 0
    assert run(*second, "--apply").status == 0
    assert run("verify", data).status == 0
