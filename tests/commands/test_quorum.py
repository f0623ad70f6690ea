"""``logtool quorum`` at its command line."""

import json

import pytest
from damage import damage_file, flip
from metadata_logs import NO_OP, data, log_dir, voters_batch

BEGIN = voters_batch(0, (1, 2, 3))


@pytest.fixture
def three(tmp_path):
    """Three controllers; the first goes on alone."""
    homes = [log_dir(tmp_path, node, BEGIN, data(2, NO_OP)) for node in (1, 2, 3)]
    with (homes[0] / "__cluster_metadata-0" / f"{0:020d}.log").open("ab") as log:
        log.write(data(3, NO_OP))
    return homes


def test_copies_that_agree_are_in_order(run, three):
    result = run("quorum", *map(str, three))
    assert result.status == 0, result.stderr
    assert "a majority is 2 of 3 voters: it had every offset below 3" in result.stdout
    assert "keep the copy of 1, as Raft would elect it: last epoch 1, log end 4" in result.stdout
    assert "voters by the control record at offset 0: 1-" in result.stdout


def test_too_few_copies_are_grave_and_say_what_cannot_be_known(run, three):
    result = run("quorum", str(three[1]))
    assert result.status == 1
    assert "they are enough to have agreed on records that no copy here has" in result.stdout


def test_the_first_batch_that_differs_is_named_with_crc_and_epoch(run, three):
    with (three[1] / "__cluster_metadata-0" / f"{0:020d}.log").open("ab") as log:
        log.write(data(3, NO_OP, NO_OP, epoch=2))
    result = run("quorum", "--json", *map(str, three))
    assert result.status == 1
    (verdict,) = (one for one in json.loads(result.stdout)["items"] if one["type"] == "quorum")
    assert (verdict["diverges_at"], verdict["keep"]) == (3, "2")
    sides = [verdict["diverging"][f"{side}_batch"]["leader_epoch"] for side in ("left", "right")]
    assert sides == [1, 2]
    assert "the copies DIVERGE at offset 3" in run("quorum", *map(str, three)).stdout


def test_damage_is_named_with_its_byte(run, three):
    log = three[0] / "__cluster_metadata-0" / f"{0:020d}.log"
    damage_file(log, flip, len(BEGIN) + 70)
    result = run("quorum", *map(str, three))
    assert result.status == 1
    problem = f"{log.name}: byte {len(BEGIN)}: CRC-32C does not match"
    assert f"PROBLEM: {problem}" in result.stdout


def test_the_voters_of_a_static_quorum_are_taken_from_the_configuration(run, tmp_path):
    state = {"data_version": 0, "clusterId": "", "appliedOffset": 0, "currentVoters": None}
    home = log_dir(tmp_path, 1, data(0, NO_OP), state=state)
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={home}\ncontroller.quorum.voters=1@a:9093\n")
    result = run("quorum", "--broker-config", str(properties))
    assert result.status == 0, result.stderr
    assert "a majority is 1 of 1 voter" in result.stdout
    assert run("quorum", str(home)).status == 1


def test_a_directory_without_a_metadata_log_makes_it_incomplete(run, three):
    (three[2] / "__cluster_metadata-0").rename(three[2] / "orders-0")
    result = run("quorum", *map(str, three))
    assert result.status == 4
    assert "holds no __cluster_metadata-0" in result.stderr


def test_other_voters_are_shown_then_written_then_already_there(run, three):
    line = ["quorum", "--voters", "1@127.0.0.1:9093", three[0]]
    result = run(*line)
    assert result.status == 1
    assert "nothing was written; add --apply to do it" in result.stderr
    assert "set on every node: controller.quorum.bootstrap.servers=127.0.0.1:9093" in result.stdout
    assert "never start again on their old directories: the controllers of 2, 3" in result.stdout
    done = run(*line, "--apply")
    assert done.status == 0, done.stderr
    assert "undo with: logtool undo --apply" in done.stdout
    again = run(*line, "--apply", "-f", "ndjson")
    assert again.status == 0
    assert not again.of_type("action")
    assert "these are the voters already" in again.stderr
    assert run("quorum", three[0]).status == 0
    assert run("verify", "--fail-on", "error", three[0]).status == 0


def test_a_refusal_is_status_5_and_nothing_is_written(run, three):
    result = run("quorum", "--apply", "--voters", "7@a:1", three[0])
    assert result.status == 5
    assert "directory id of voter 7 is not known" in result.stderr


def test_what_may_be_done_needs_voters(run, three):
    for words in (["--apply"], ["--undo-dir", "x"], ["--accept-loss", "orders-0"]):
        assert run("quorum", *words, three[0]).status == 2


def test_with_an_unreadable_copy_nothing_is_written(run, three, tmp_path):
    result = run("quorum", "--apply", "--voters", "1@a:1", three[0], tmp_path / "missing")
    assert result.status == 4
    assert run("quorum", three[0]).status == 1
