"""``logtool watermark``: its output in each format, and its exit statuses."""

import re
import shutil

import pytest
from answers import last_line, numbers
from damage import remove_file

from logtool.commands.printing import terminal

FORMATS = ("table", "json", "ndjson", "csv", "tsv", "markdown")


@pytest.fixture
def nodes(scenario):
    home = scenario("4.3.1/replicas")
    return [home / f"node-{node}" for node in (1, 2, 3)]


def test_the_help_has_examples_and_exit_statuses(run):
    text = run("watermark", "--help").stdout
    assert text.startswith("Usage: logtool watermark ")
    assert "exclusive" in text
    assert "  Examples:\n    logtool watermark" in text
    assert "  Exit status:\n    0  " in text


@pytest.mark.parametrize("format", FORMATS)
def test_the_exit_status_is_1_if_acknowledged_records_go(run, nodes, format):
    assert run("watermark", "-f", format, *nodes).status == 1
    assert run("watermark", "-f", format, "--topic", "*lagging", *nodes).status == 0
    assert run("watermark", "-f", format, "--leader", 3, "--topic", "*lag*", *nodes).status == 1


def test_a_healthy_dir_is_a_table_of_its_partitions(run, scenario):
    result = run("watermark", scenario("4.3.1/clean"))
    assert result.status == 0
    assert result.lines[0].split()[:3] == ["topic", "partition", "node"]
    row = next(line.split() for line in result.lines if line.startswith("codec-none "))
    assert " ".join(row) == "codec-none 0 1 0 360 360 360 360 0 2 sound 0 0"
    assert "" not in result.lines  # one table
    assert numbers(last_line(result)) == [32]


def test_several_dirs_are_compared(run, nodes):
    text = run("watermark", *nodes).stdout
    replicas, groups, cuts, choices = text.split("\n\n")
    assert len(replicas.splitlines()) == 2 + 8
    assert "expected_high_watermark" in groups.splitlines()[1]
    row = next(line.split() for line in groups.splitlines() if line.startswith("replica.diverged"))
    assert " ".join(row) == "replica.diverged 0 [3] metadata 170 200 3 3 80 0"
    assert " ".join(cuts.split()[-9:]) == "replica.diverged 0 3 2 200 120 120 80 80"
    rows = [" ".join(line.split()) for line in choices.splitlines()]
    # Node 3 was in sync, but both were killed: its next registration takes it out of that.
    assert "replica.diverged 0 3 last-known-leader true false true 170 80 0" in rows
    assert "replica.diverged 0 2 unclean false false false 200 50 0" in rows


def test_a_leader_out_of_sync_may_cost_records_of_a_replica_that_was_not_given(run, nodes):
    """Node 3 was the last one in sync; only node 1, the controller, and node 2 are given."""
    asked = "watermark", "--topic", "replica.diverged", "--leader", "2", *nodes[:2]
    result = run(*asked)
    assert result.status == 1
    first, last = result.stderr.splitlines()
    assert first.startswith("replica.diverged-0: ")
    assert numbers(first) == [2, 3]  # the node that lacks records, the node that was not given
    assert numbers(last) == [1, 1]
    (group,) = run(*asked, "-f", "ndjson").of_type("group")
    assert (group["not_looked_at"], group["may_be_lost"]) == ([3], None)


def test_without_leader_a_broker_alone_is_not_judged_as_a_leader(run, nodes):
    result = run("watermark", "--topic", "replica.diverged", *nodes[:2])
    assert result.status == 0
    first, last = result.stderr.splitlines()
    assert numbers(first) == [1, 3]  # one partition, and the node that was in sync
    assert numbers(last) == [1]
    compared = run("watermark", "--topic", "replica.in-sync", *nodes[:2])
    # Node 2 was alone in sync, but the result rests on its copy: node 3 is named.
    assert numbers(compared.stderr) == [1, 3, 1]


def test_a_replica_of_another_topic_is_named_by_its_path(run, copy_of):
    home = copy_of("4.3.1/replicas")
    dirs = [home / f"node-{node}" / "replica.lagging-0" for node in (2, 3)]
    for node in (1, 2, 3):
        shutil.rmtree(home / f"node-{node}" / "__cluster_metadata-0")
    (dirs[1] / "partition.metadata").write_text("version: 0\ntopic_id: " + "A" * 21 + "Q")
    result = run("watermark", *dirs)
    assert result.status == 1
    (group,) = run("watermark", "-f", "ndjson", *dirs).of_type("group")
    assert len(group["other_topic"]) == len(group["replicas"]) == 1
    (line,) = (line for line in result.stderr.splitlines() if "topic id" in line)
    assert str(group["other_topic"][0]) in line


def test_markdown_has_separate_tables(run, nodes):
    lines = run("watermark", "-f", "markdown", *nodes).lines
    assert sum(line.startswith(("|--", "|:-")) for line in lines) == 4


def test_csv_has_one_row_for_each_object(run, nodes):
    rows = run("watermark", "-f", "csv", *nodes).rows
    kinds = [row["type"] for row in rows if row["topic"] == "replica.lagging"]
    assert kinds == ["replica", "replica", "group", "truncation", "choice", "choice"]


def test_ndjson_goes_partition_by_partition(run, nodes):
    result = run("watermark", "-f", "ndjson", *nodes)
    assert [obj["type"] for obj in result.objects] == [
        "replica", "replica", "group", "truncation", "choice", "choice",
    ] * 4 + ["summary"]  # fmt: skip
    assert result.objects[-1]["partitions"] == 4
    assert run("watermark", "--json", *nodes).document["summary"]["complete"]


def test_fail_on_decides_which_findings_count(run, copy_of):
    home = copy_of("4.3.1/clean")
    path = home / "cleaner-offset-checkpoint"
    text, changed = re.subn(
        r"(?m)^compacted.keys 0 \d+$", "compacted.keys 0 99999", path.read_text()
    )
    assert changed == 1
    path.write_text(text)
    result = run("watermark", home)
    assert result.status == 1
    assert "checkpoint/cleaner-out-of-range" in result.stdout
    assert run("watermark", "--fail-on", "error", home).status == 0


def test_a_log_that_lost_its_end_costs_acknowledged_records(run, copy_of):
    home = copy_of("4.3.1/clean")
    path = home / "replication-offset-checkpoint"
    path.write_text(path.read_text().replace("codec-gzip 0 300", "codec-gzip 0 311"))
    result = run("watermark", home)
    assert result.status == 1
    assert "checkpoint/high-watermark-beyond-end" in result.stdout
    assert numbers(last_line(result)) == [32, 11, 1]  # partitions, offsets, partitions
    found = run("watermark", "-f", "ndjson", home)
    (replica,) = (one for one in found.of_type("replica") if one["topic"] == "codec-gzip")
    assert replica["acknowledged_gone"] == 11
    (group,) = (one for one in found.of_type("group") if one["topic"] == "codec-gzip")
    assert group["acknowledged_lost"] == 11


def test_a_dir_of_unknown_owner_may_be_given_one(run, copy_of):
    home = copy_of("4.3.1/replicas") / "node-2"
    remove_file(home / "meta.properties")
    first = run("watermark", "-f", "ndjson", home).of_type("replica")[0]
    assert first["node"] is None
    named = run("watermark", "-f", "ndjson", f"2={home}").of_type("replica")[0]
    assert named == {**first, "node": 2, "committed_offset": named["committed_offset"]}


def test_a_missing_dir_is_status_4_and_the_rest_is_shown(run, nodes, tmp_path):
    result = run("watermark", "-f", "ndjson", tmp_path / "missing", nodes[1])
    assert result.status == 4
    assert len(result.of_type("replica")) == 4
    assert result.objects[-1]["complete"] is False


def test_no_dir_is_wrong_usage(run):
    result = run("watermark")
    assert (result.status, result.stdout) == (2, "")
    assert "'logtool watermark --help'" in last_line(result)


def test_time_may_run_out(run, nodes):
    result = run("watermark", "--max-duration", "0.000001", *nodes)
    assert result.status == 6


@pytest.mark.parametrize("format", FORMATS)
def test_a_simulation_ends_well_or_not(run, format):
    assert run("watermark", "simulate", "walk-through", "-f", format).status == 0
    assert run("watermark", "simulate", "kip-101-loss", "-f", format).status == 1
    by_epoch = run("watermark", "simulate", "kip-101-loss", "--truncation", "leader-epoch")
    assert by_epoch.status == 0
    assert "leader-epoch" in last_line(by_epoch)
    assert numbers(last_line(by_epoch)) == [2]


def test_a_simulation_has_a_row_for_each_replica_after_each_event(run):
    rows = run("watermark", "simulate", "walk-through", "-f", "csv").rows
    assert [(row["event"], row["node"]) for row in rows] == [
        (event, node)
        for event in ("start", "produce m0, acks 1", "fetch 2", "fetch 2")
        for node in "12"
    ]
    ends = [(r["log_end_offset"], r["remote_log_end_offset"], r["high_watermark"]) for r in rows]
    assert ends[-2:] == [("1", "", "1"), ("1", "1", "1")]
    assert ends[-4:-2] == [("1", "", "0"), ("1", "0", "0")]


def test_the_result_of_a_simulation_is_one_line(run):
    result = run("watermark", "simulate", "kip-101-divergence", "-v")
    assert "KIP-101" in result.stderr
    assert numbers(last_line(result)) == [2, 1, 1, 1]
    for word in ("high-watermark", "LOST", "DIFFERS"):
        assert word in last_line(result)
    verdict = run("watermark", "simulate", "kip-101-divergence", "-f", "ndjson").objects[-2]
    assert (verdict["committed_offset"], verdict["lost_offsets"]) == (2, [1])
    assert verdict["diverged"] == [{"node": 1, "from_offset": 1}]


def test_a_scenario_may_be_a_file(run, tmp_path):
    path = tmp_path / "my.toml"
    path.write_text('replicas = [7]\nleader = 7\nevents = [{ produce = ["a"] }]\n')
    assert run("watermark", "simulate", path).status == 0
    path.write_text("replicas = [7]\nleader = 7\nevents = [{ restart = 7 }]\n")
    result = run("watermark", "simulate", path)
    assert (result.status, result.stdout) == (2, "")
    assert "event 1, restart 7: " in result.stderr
    assert "'logtool watermark simulate --help'" in last_line(result)


def test_the_help_of_simulate_stands_under_its_two_words(run):
    text = run("watermark", "simulate", "--help").stdout
    assert text.startswith("Usage: logtool watermark simulate ")
    assert "  Examples:\n    logtool watermark simulate" in text
    assert "\n  watermark simulate " in run("--help").stdout


def test_a_dir_may_be_called_simulate(run, scenario, tmp_path, monkeypatch):
    (tmp_path / "simulate").symlink_to(scenario("4.3.1/clean"))
    monkeypatch.chdir(tmp_path)
    assert run("watermark", "./simulate").status == 0


def test_the_cost_of_each_leader_is_one_line(run, scenario):
    given = [f"{node}={scenario('4.3.1/replicas')}/node-{node}" for node in (1, 2, 3)]
    result = run("watermark", *given)
    lines = dict(line.split(": ", 1) for line in result.stderr.splitlines() if ": " in line)
    choices = run("watermark", "-f", "ndjson", *given).of_type("choice")
    costs = {(f"{one['topic']}-0", one["node"]): one["acknowledged_lost"] for one in choices}
    elected = {f"{one['topic']}-0": one["node"] for one in choices if one["election"] != "unclean"}
    for name, differ in (("replica.lagging-0", True), ("replica.diverged-0", True),
                         ("replica.in-sync-0", False)):  # fmt: skip
        assert (name in lines) == differ
        if differ:
            parts = lines[name].split("; ")
            named = {int(numbers(part)[0]): numbers(part)[1] for part in parts if "if " in part}
            assert named == {n: cost for (of, n), cost in costs.items() if of == name and cost}
            assert numbers(parts[-1]) == [elected[name]]
    assert "; ".join(lines["replica.lagging-0"].split("; ")[:1]) == "let 2 lead"


def test_replicas_without_a_given_copy_are_named_where_one_copy_decides(run, nodes):
    of_two = run("watermark", "-f", "ndjson", nodes[1])
    groups = {one["topic"]: one for one in of_two.of_type("group")}
    assert of_two.status == 0
    # By its own metadata log, node 2 was alone in sync.
    assert {(tuple(one["in_sync"]), tuple(one["not_given"])) for one in groups.values()} == {
        ((2,), (3,))
    }
    first, _ = run("watermark", nodes[1]).stderr.splitlines()
    assert numbers(first) == [4, 3]
    both = run("watermark", "-f", "ndjson", *nodes)
    assert {tuple(one["not_given"]) for one in both.of_type("group")} == {()}


def test_the_source_of_what_counts_as_acknowledged_is_named(run, nodes):
    result = run("watermark", "-f", "ndjson", *nodes)
    groups = {one["topic"]: one for one in result.of_type("group")}
    lagging = groups["replica.lagging"]
    assert (lagging["committed_offset"], lagging["committed_from"]) == (180, "alone")
    assert groups["replica.in-sync"]["committed_from"] == "checkpoint"
    lines = run("watermark", "--topic", "replica.lagging", *nodes).stderr.splitlines()
    (line,) = (one for one in lines if one.startswith("replica.lagging-0"))
    # Leader; the other one and its loss; the offsets that were acknowledged, and by whom.
    assert numbers(line.removeprefix("replica.lagging-0")) == [2, 3, 60, 2, 180, 2]


def test_a_lost_end_is_counted_in_the_table_and_in_the_last_line(run, copy_of):
    home = copy_of("4.3.1/clean")
    path = home / "replication-offset-checkpoint"
    path.write_text(path.read_text().replace("codec-gzip 0 300", "codec-gzip 0 311"))
    result = run("watermark", "--topic", "codec-gzip", home)
    titles, _, row = (line.split() for line in result.lines[:3])
    assert dict(zip(titles, row, strict=True))["acknowledged_gone"] == "11"
    assert numbers(last_line(result)) == [1, 11, 1]


def test_a_lost_beginning_is_counted_by_its_finding(run, copy_of):
    home = copy_of("4.3.1/clean")
    for file in (home / "small-segments-0").glob(f"{0:020d}.*"):
        file.unlink()
    result = run("watermark", "-f", "ndjson", "--topic", "small-segments", home)
    (finding,) = result.of_type("finding")
    lost = finding["last_offset"] - finding["first_offset"] + 1
    assert (result.status, finding["code"]) == (1, "log/beginning-absent")
    assert numbers(last_line(run("watermark", "--topic", "small-segments", home))) == [1, lost]


def test_a_narrow_table_of_findings_shows_their_messages(run, copy_of, monkeypatch):
    monkeypatch.setattr(terminal, "width_of", lambda _, *, wide: None if wide else 80)
    home = copy_of("4.3.1/clean")
    path = home / "replication-offset-checkpoint"
    path.write_text(path.read_text().replace("codec-gzip 0 300", "codec-gzip 0 311"))
    lines = run("watermark", "--topic", "codec-gzip", home).lines
    titles = next(line.split() for line in lines if "code " in line)
    assert {"code", "path", "message"} <= {*titles}
