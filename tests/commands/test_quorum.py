"""``logtool quorum`` at its command line."""

import json

import pytest
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
    assert "2 of 3 voters are a majority: it had every offset below 3" in result.stdout
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


def test_the_voters_of_a_static_quorum_are_taken_from_the_configuration(run, tmp_path):
    state = {"data_version": 0, "clusterId": "", "appliedOffset": 0, "currentVoters": None}
    home = log_dir(tmp_path, 1, data(0, NO_OP), state=state)
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={home}\ncontroller.quorum.voters=1@a:9093\n")
    result = run("quorum", "--broker-config", str(properties))
    assert result.status == 0, result.stderr
    assert "1 of 1 voter are a majority" in result.stdout
    assert run("quorum", str(home)).status == 1


def test_a_directory_without_a_metadata_log_makes_it_incomplete(run, three):
    (three[2] / "__cluster_metadata-0").rename(three[2] / "orders-0")
    result = run("quorum", *map(str, three))
    assert result.status == 4
    assert "holds no __cluster_metadata-0" in result.stderr
