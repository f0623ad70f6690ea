import csv
import json
import re

import pytest
from damage import damage_file, flip
from verification import logs

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


@pytest.fixture
def nodes(scenario):
    return [scenario("4.3.1/replicas") / f"node-{node}" for node in (1, 2, 3)]


def test_a_table_says_what_is_not_the_same_and_the_last_line_counts(run, nodes):
    result = run("diff", *nodes)
    assert result.status == 1
    assert "replica.diverged-0: DIVERGED at offset 120" in result.lines
    assert "in-sync" not in result.stdout
    assert result.stderr.startswith("5 partitions: 1 DIVERGED, ")
    assert "replica.in-sync-0: the same" in run("diff", "-v", *nodes).lines
    assert run("diff", "--topic", "*.lagging", *nodes).status == 0


def test_rows_are_pairs(run, nodes):
    rows = list(csv.DictReader(run("diff", "-f", "csv", *nodes).lines))
    assert {row["status"] for row in rows} == {"same", "behind", "diverged"}
    (row,) = (row for row in rows if row["status"] == "diverged")
    assert json.loads(row["right_batch"])["leader_epoch"] == 2


def test_a_node_may_be_named_and_sources_may_come_from_a_file(run, nodes, tmp_path):
    names = tmp_path / "names"
    names.write_text(f"12={nodes[1]}\n13={nodes[2]}\n")
    result = run("diff", "-f", "ndjson", "--topic", "*.lagging", "--files-from", names)
    (pair,) = result.of_type("pair")
    assert (result.status, pair["left"], pair["right"]) == (0, "12", "13")


def test_a_digest_takes_the_place_of_its_log_dir(run, nodes, tmp_path):
    path = tmp_path / "two.npz"
    saved = run("diff", "--digest", path, nodes[1])
    assert (saved.status, str(path) in saved.stderr) == (0, True)
    assert run("diff", "--digest", path, nodes[1]).status == 5
    direct, found = (run("diff", "-f", "csv", "--topic", "replica.*", one, nodes[2])
                     for one in (nodes[1], path))  # fmt: skip
    assert (found.status, found.stdout) == (1, direct.stdout)


def test_a_digest_in_a_log_dir_is_refused(run, nodes):
    result = run("diff", "--digest", nodes[1] / "x.npz", nodes[1])
    assert (result.status, result.stdout, result.stderr.count("\n")) == (5, "", 1)


def test_damage_names_the_copy_that_fills_it(run, copy_of):
    home = copy_of("4.3.1/replicas")
    damage_file(logs(home / "node-2" / "replica.in-sync-0")[0], flip, 1000)
    result = run("diff", "--topic", "*.in-sync", home / "node-2", home / "node-3")
    assert result.status == 1
    assert "sound in 3" in result.stdout
    markdown = run("diff", "-f", "markdown", home / "node-2", home / "node-3")
    assert "| replica.in-sync" in markdown.stdout


WRONG = {
    "one log dir": (["NODE"], 2, "at least two DIRs"),
    "two log dirs and a digest": (["--digest", "x", "NODE", "NODE"], 2, "one DIR"),
    "a file that is no digest": (["NODE", "NODE/meta.properties"], 4, "digest"),
    "what is not there": (["NODE", "/nonexistent"], 4, "No such file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_said_in_a_line(run, nodes, name):
    words, status, message = WRONG[name]
    result = run("diff", *(word.replace("NODE", str(nodes[1])) for word in words))
    assert result.status == status
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_time_limit_is_status_6_and_saves_no_digest(run, nodes, tmp_path):
    path = tmp_path / "x.npz"
    assert run("diff", "--max-duration", "0.000000001", "--digest", path, nodes[1]).status == 6
    assert not path.exists()


def test_controls_in_a_digest_are_not_printed(run, nodes, tmp_path, partition):
    odd = partition.rename(partition.with_name("or\x1b[31mders-0"))
    for format in ("table", "markdown", "csv", "ndjson"):
        result = run("diff", "-v", "-f", format, odd, f"3={odd}")
        assert not CONTROL.search(result.stdout)
