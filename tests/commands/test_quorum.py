"""``logtool quorum`` at its command line."""

import shlex
import subprocess

import metadata_records
import pytest
from answers import numbers
from damage import damage_file, flip
from metadata_logs import NO_OP, control, data, log_dir, registration, voters_batch
from verification import fingerprint

BEGIN = voters_batch(0, (1, 2, 3))
TOPIC = "bG9ndG9vbC10b3BpYy0tMQ"


@pytest.fixture
def three(tmp_path):
    """Return the log dirs of three controllers; only the first goes on."""
    homes = [log_dir(tmp_path, node, BEGIN, data(2, NO_OP)) for node in (1, 2, 3)]
    with (homes[0] / "__cluster_metadata-0" / f"{0:020d}.log").open("ab") as log:
        log.write(data(3, NO_OP))
    return homes


def verdict_of(run, *homes):
    """Return the status, the object of the quorum and the text for people."""
    result = run("quorum", "--json", *homes)
    (verdict,) = (one for one in result.items if one["type"] == "quorum")
    return result.status, verdict, run("quorum", *homes).stdout


def test_copies_that_agree_are_in_order(run, three):
    status, verdict, text = verdict_of(run, *three)
    assert status == 0
    assert (verdict["majority"], len(verdict["voters"])) == (2, 3)
    assert (verdict["majority_offset"], verdict["voters_from"]) == (3, "log")
    assert (verdict["keep"], verdict["keep_epoch"], verdict["keep_end_offset"]) == ("1", 1, 4)
    lines = list(map(numbers, text.splitlines()))
    assert [2, 3, 3] in lines  # majority, voters, the offset that a majority had
    assert [1, 1, 4] in lines  # the copy to keep, its epoch, its end


def test_too_few_copies_are_grave(run, three):
    status, verdict, _ = verdict_of(run, three[1])
    assert (status, len(verdict["missing"])) == (1, 2)
    assert verdict["unknown"]


def test_the_first_batch_that_differs_is_named_with_crc_and_epoch(run, three):
    with (three[1] / "__cluster_metadata-0" / f"{0:020d}.log").open("ab") as log:
        log.write(data(3, NO_OP, NO_OP, epoch=2))
    status, verdict, text = verdict_of(run, *three)
    assert status == 1
    assert (verdict["diverges_at"], verdict["keep"]) == (3, "2")
    sides = [verdict["diverging"][f"{side}_batch"]["leader_epoch"] for side in ("left", "right")]
    assert sides == [1, 2]
    (line,) = (line for line in text.splitlines() if "DIVERGE" in line)
    assert numbers(line)[0] == 3


def test_damage_is_named_with_its_byte(run, three):
    log = three[0] / "__cluster_metadata-0" / f"{0:020d}.log"
    damage_file(log, flip, len(BEGIN) + 70)
    result = run("quorum", *three)
    assert result.status == 1
    (line,) = (line for line in result.lines if "PROBLEM" in line)
    assert f"{log.name}: byte {len(BEGIN)}: " in line


def test_the_voters_of_a_static_quorum_are_taken_from_the_configuration(run, tmp_path):
    state = {"data_version": 0, "clusterId": "", "appliedOffset": 0, "currentVoters": None}
    home = log_dir(tmp_path, 1, data(0, NO_OP), state=state)
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={home}\ncontroller.quorum.voters=1@a:9093\n")
    status, verdict, _ = verdict_of(run, "--broker-config", properties)
    assert (status, verdict["majority"], len(verdict["voters"])) == (0, 1, 1)
    assert verdict["voters_from"] == "controller.quorum.voters"
    assert run("quorum", home).status == 1


def test_a_directory_without_a_metadata_log_makes_it_incomplete(run, three):
    (three[2] / "__cluster_metadata-0").rename(three[2] / "orders-0")
    result = run("quorum", *three)
    assert result.status == 4
    assert f"{three[2]}: " in result.stderr
    assert "__cluster_metadata-0" in result.stderr


def test_other_voters_are_shown_then_written_then_already_there(run, three):
    line = ["quorum", "--voters", "1@127.0.0.1:9093", three[0]]
    result = run(*line)
    assert result.status == 1
    assert "--apply" in result.stderr
    assert "controller.quorum.bootstrap.servers=127.0.0.1:9093" in result.stdout
    (rewrite,) = run(*line, "-f", "ndjson").of_type("rewrite")
    assert len(rewrite["gone"]) == 2
    assert [2, 3] in [numbers(line) for line in result.lines]  # the controllers to retire
    done = run(*line, "--apply")
    assert done.status == 0, done.stderr
    assert "logtool undo --apply" in done.stdout
    again = run(*line, "--apply", "-f", "ndjson")
    assert again.status == 0
    assert not again.of_type("action")
    assert run("quorum", three[0]).status == 0
    assert run("verify", "--fail-on", "error", three[0]).status == 0


def test_a_refusal_is_status_5_and_nothing_is_written(run, three):
    before = fingerprint(three[0])
    result = run("quorum", "--apply", "--voters", "7@a:1", three[0])
    assert result.status == 5
    assert 7 in numbers(result.stderr)
    assert fingerprint(three[0]) == before


def test_options_of_a_change_need_voters(run, three):
    for words in (["--apply"], ["--undo-dir", "x"], ["--accept-loss", "orders-0"]):
        assert run("quorum", *words, three[0]).status == 2


def test_with_an_unreadable_copy_nothing_is_written(run, three, tmp_path):
    before = fingerprint(three[0])
    result = run("quorum", "--apply", "--voters", "1@a:1", three[0], tmp_path / "missing")
    assert result.status == 4
    assert fingerprint(three[0]) == before


def add_partitions(home, *names, topic_id=TOPIC):
    """Make empty partition dirs of a topic."""
    for name in names:
        (home / name).mkdir()
        (home / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


def test_partition_dirs_that_become_strays_are_named_and_need_consent(run, tmp_path):
    home = log_dir(tmp_path, 1, BEGIN)
    add_partitions(home, "orders-0", "orders-1")
    result = run("quorum", "--json", home)
    (verdict,) = (one for one in result.items if one["type"] == "quorum")
    assert result.status == 1
    strays = [(one["node"], one["topic"], one["partition"], one["action"]) for one in
              verdict["strays"]]  # fmt: skip
    assert strays == [(1, "orders", 0, "stray"), (1, "orders", 1, "stray")]
    line = ["quorum", "--voters", "1@127.0.0.1:9093", home]
    planned = run(*line, "-f", "ndjson")
    (rewrite,) = planned.of_type("rewrite")
    assert (planned.status, rewrite["unaccepted"]) == (1, ["orders-0", "orders-1"])
    assert "--accept-loss orders-0 --accept-loss orders-1" in run(*line).stderr
    before = fingerprint(home)
    for accepted in ((), ("--accept-loss", "orders-0")):
        refused = run(*line, "--apply", *accepted, "-f", "ndjson")
        assert refused.status == 5
        assert not refused.of_type("rewrite")
    assert fingerprint(home) == before
    consent = ("--accept-loss", "orders-0", "--accept-loss", "orders-1")
    assert run(*line, "--apply", *consent).status == 0
    # The voters are these; the strays are still there.
    assert run("quorum", home).status == 1
    assert run(*line, "--apply").status == 0


def test_a_partition_that_the_kept_copy_has_is_no_stray(run, tmp_path):
    batch = data(
        2, metadata_records.topic("orders", TOPIC), metadata_records.partition(TOPIC, 0, (2,), 2)
    )
    homes = [log_dir(tmp_path, 1, voters_batch(0, (1,)), batch), log_dir(tmp_path, 2)]
    for home in homes:
        add_partitions(home, "orders-0")
    result = run("quorum", "--json", *homes)
    (verdict,) = (one for one in result.items if one["type"] == "quorum")
    # Its own log dir has a replica that it does not have by the metadata log.
    assert [one["node"] for one in verdict["strays"]] == [1]
    assert result.status == 1


@pytest.mark.parametrize(("replica", "strays"), [(1, []), (2, ["orders"])])
def test_a_dir_without_a_topic_id_is_judged_by_its_name(run, tmp_path, replica, strays):
    batch = data(
        2, metadata_records.topic("orders", TOPIC),
        metadata_records.partition(TOPIC, 0, (replica,), replica),
    )  # fmt: skip
    home = log_dir(tmp_path, 1, voters_batch(0, (1,)), batch)
    (home / "orders-0").mkdir()
    result = run("quorum", "-f", "ndjson", home)
    (verdict,) = result.of_type("quorum")
    assert [one["topic"] for one in verdict["strays"]] == strays
    assert result.status == bool(strays)


def test_too_few_copies_lead_to_the_command_for_other_voters(run, tmp_path):
    home = log_dir(tmp_path, 1, BEGIN)
    result = run("quorum", "--json", home)
    (verdict,) = (one for one in result.items if one["type"] == "quorum")
    words = shlex.split(verdict["command"])
    assert words[1:4] == ["quorum", "--voters", "1@controller-1.invalid:9091"]
    assert f"  {verdict['command']}" in run("quorum", home).lines
    planned = run(*words[1:])
    assert planned.status == 1
    assert verdict["command"] not in planned.stdout
    broker = log_dir(tmp_path, 4, BEGIN)
    (of_broker,) = run("quorum", "-f", "ndjson", broker).of_type("quorum")
    assert (of_broker["command"], of_broker["copying"]) == (None, None)


def test_the_copy_of_a_broker_leads_to_the_commands_that_give_it_to_a_controller(run, tmp_path):
    one = log_dir(tmp_path, 1, BEGIN)
    broker = log_dir(tmp_path, 4, BEGIN, data(2, registration(4)))
    result = run("quorum", one, broker)
    (verdict,) = run("quorum", "-f", "ndjson", one, broker).of_type("quorum")
    assert {f"  {verdict['copying']}", f"  {verdict['command']}"} <= set(result.lines)
    line = ["quorum", "--voters", "1@a:1", one, broker]
    (rewrite,) = run(*line, "-f", "ndjson").of_type("rewrite")
    lost = {"kind": "broker", "name": "4", "difference": "removed"}
    assert (rewrite["lost_changes"], rewrite["unaccepted"]) == ([lost], ["__cluster_metadata-0"])
    assert "--accept-loss __cluster_metadata-0" in run(*line).stderr
    assert run(*line, "--apply").status == 5
    subprocess.run(verdict["copying"], shell=True, check=True, cwd=tmp_path)
    assert run(*line, "--apply").status == 0
    (verdict,) = run("quorum", "-f", "ndjson", one).of_type("quorum")
    assert (verdict["keep_end_offset"], verdict["majority_offset"]) == (4, 4)


def test_brokers_that_may_know_more_are_named(run, tmp_path):
    home = log_dir(tmp_path, 1, BEGIN, data(2, registration(8), registration(9)))
    for words in ([], ["--voters", "1@a:1"]):
        result = run("quorum", *words, home)
        assert [8, 9] in [numbers(line)[:2] for line in result.lines]
        (verdict,) = run("quorum", *words, "-f", "ndjson", home).of_type("quorum")
        assert verdict["brokers_not_given"] == [8, 9]


def test_the_command_names_the_node_where_no_file_does(run, tmp_path):
    home = log_dir(tmp_path, 1, BEGIN)
    (home / "meta.properties").unlink()
    (verdict,) = run("quorum", "-f", "ndjson", f"1={home}").of_type("quorum")
    assert shlex.split(verdict["command"])[-1] == f"1={home / '__cluster_metadata-0'}"


def test_no_command_with_a_majority(run, three):
    _, verdict, _ = verdict_of(run, *three)
    assert verdict["command"] is None


def test_an_unfinished_append_is_shown_with_its_place(run, tmp_path):
    home = log_dir(tmp_path, 1, BEGIN, BEGIN[:30])
    (copy,) = run("quorum", "-f", "ndjson", home).of_type("copy")
    assert (copy["unfinished_position"], copy["unfinished_bytes"]) == (len(BEGIN), 30)
    assert copy["damaged_ranges"] == 0
    assert [30, len(BEGIN)] in [numbers(line) for line in run("quorum", home).lines]
    whole = log_dir(tmp_path / "whole", 1, BEGIN)
    (copy,) = run("quorum", "-f", "ndjson", whole).of_type("copy")
    assert (copy["unfinished_position"], copy["unfinished_bytes"]) == (None, None)


def test_with_one_voter_lost_the_others_get_the_longer_copy_of_a_broker(run, tmp_path):
    known = data(2, metadata_records.topic("orders", TOPIC),
                 metadata_records.partition(TOPIC, 0, (9,), 9))  # fmt: skip
    two = log_dir(tmp_path, 2, BEGIN)
    three = log_dir(tmp_path, 3, BEGIN, state={"leaderId": 2})
    broker = log_dir(tmp_path, 9, BEGIN, known, data(4, NO_OP))
    (two / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint").write_bytes(
        b"".join((control(0, 3, bytes(10)), control(1, 4, bytes(2))))
    )
    add_partitions(broker, "orders-0")
    status, verdict, text = verdict_of(run, two, three, broker)
    assert (status, verdict["keep"], verdict["missing"]) == (1, "9", [1])
    # All that the voters have is not all that they agreed on.
    assert (verdict["majority_offset"], verdict["majority_at_most"]) == (2, 5)
    lacking = {one["copy"]: one for one in verdict["lacking"]}
    ends = {name: (one["first_offset"], one["last_offset"]) for name, one in lacking.items()}
    assert ends == {"2": (2, 4), "3": (2, 4)}
    lost = {(one["kind"], one["name"], one["difference"]) for one in verdict["heir_losses"]}
    assert ("topic", "orders", "removed") in lost
    assert not verdict["strays"]
    assert [(one["node"], one["topic"], one["offsets"]) for one in verdict["heir_strays"]] == [
        (9, "orders", 0)
    ]
    assert verdict["copying"] in {one["command"] for one in lacking.values()}
    kept = [path for home in (two, three) for path in (home / "__cluster_metadata-0").iterdir()
            if path.suffix == ".checkpoint" or path.name == "quorum-state"]  # fmt: skip
    before = {path: path.read_bytes() for path in kept}
    for one in lacking.values():
        assert f"  {one['command']}" in text.splitlines()
        subprocess.run(one["command"], shell=True, check=True, cwd=tmp_path)
    assert {path: path.read_bytes() for path in kept} == before
    status, verdict, _ = verdict_of(run, two, three, broker)
    assert (status, verdict["lacking"], verdict["majority_offset"]) == (0, [], 5)


def test_a_leader_without_its_own_records_was_rolled_back(run, tmp_path):
    change = registration(9)
    whole = [log_dir(tmp_path, node, BEGIN, data(2, change)) for node in (1, 2)]
    old = log_dir(tmp_path, 3, BEGIN)  # It led, by quorum-state.
    status, verdict, _ = verdict_of(run, *whole, old)
    assert (status, verdict["rolled_back"]) == (1, ["3"])
    # With the copy of one more voter, or of a broker, more may be known.
    _, verdict, _ = verdict_of(run, whole[0], old)
    assert (verdict["majority_at_most"], verdict["brokers_not_given"]) == (None, [9])
    for name, batch in (("epoch", data(2, change, epoch=2)), ("no-op", data(2, NO_OP))):
        others = [log_dir(tmp_path / name, node, BEGIN, batch) for node in (1, 2)]
        status, verdict, _ = verdict_of(run, *others, old)
        assert (status, verdict["rolled_back"]) == (0, []), name
