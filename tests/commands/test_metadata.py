"""The commands that show the metadata log, on what brokers wrote."""

import json
import os
import re
import shutil

import metadata_records as made
import pytest
from answers import last_line, numbers
from group_records import data_log
from verification import small_log_dir

ID = "J8aAPcfLQt2bqs1JT_rMgQ"
DIRECTORY = "__cluster_metadata-0"


def entities(result):
    return {(one["kind"], one["name"]): one for one in result.objects if one["type"] == "entity"}


def test_the_image_at_the_end_is_shown(run, clean):
    result = run("metadata", "show", "-f", "ndjson", clean)
    assert result.status == 0
    found = entities(result)
    assert found["feature", "metadata.version"]["state"] == {"level": 30, "release": "4.3-IV0"}
    assert found["broker", "1"]["state"]["fenced"] is True
    partition = found["partition", "tx.mixed-0"]
    assert (partition["topic"], partition["partition"]) == ("tx.mixed", 0)
    assert (partition["state"]["isr"], partition["state"]["elr"]) == ([], [1])
    assert found["config", "topic index.dense"]["state"]["index.interval.bytes"] == "0"
    image = result.objects[0]
    assert image["counts"] == {"topic": 25, "partition": 32, "broker": 1}


@pytest.mark.parametrize("chosen", ["tx.mixed", "rzHOZyoHSfuXS0TsjEdfIQ"])
def test_a_topic_is_chosen_by_name_or_id(run, clean, chosen):
    found = entities(run("metadata", "show", "--topic", chosen, "-f", "ndjson", clean))
    assert {topic["topic"] for topic in found.values()} == {"tx.mixed"}
    assert {kind for kind, _ in found} >= {"topic", "partition"}


def test_every_snapshot_is_the_image_of_the_log_at_its_end(run, clean):
    for snapshot in sorted((clean / DIRECTORY).glob("*.checkpoint"))[1:]:
        end = int(snapshot.name[:20]) - 1
        then = entities(run("metadata", "at", "--offset", end, "-f", "ndjson", clean))
        assert then == entities(run("metadata", "show", "-f", "ndjson", snapshot))


def test_an_image_at_a_time_is_that_of_the_last_record_before(run, clean):
    log = run("metadata", "log", "-f", "ndjson", clean).objects
    first = next(one for one in log if one["record"] == "PartitionChangeRecord")
    before = first["timestamp_ms"] - 1
    found = entities(run("metadata", "at", "--timestamp", before, "-f", "ndjson", clean))
    assert found["partition", first["name"]]["state"]["leader"] == 1
    found = entities(run("metadata", "at", "--timestamp", before + 1, "-f", "ndjson", clean))
    assert found["partition", first["name"]]["state"]["leader"] == -1


def test_the_history_of_a_deleted_topic_is_shown(run, clean):
    result = run("metadata", "log", "--topic", "doomed*", clean)
    assert result.status == 0
    lines = result.stdout.splitlines()[2:]
    assert [line.split()[0] for line in lines] == ["88", "89", "90", "119", "120", "161", "162",
                                                  "226"]  # fmt: skip
    assert "leader 1 -> -1" in lines[3]
    assert lines[-1].endswith("removed")


@pytest.mark.parametrize("words", [("show",), ("log",), ("diff", "--offset", "60..70")])
def test_paths_from_standard_input_are_read_once(spawn, clean, words):
    given = spawn("metadata", *words, "-f", "csv", clean)
    listed = spawn("metadata", *words, "-f", "csv", "--files-from", "-", input=os.fsencode(clean))
    assert (listed.status, listed.stdout) == (given.status, given.stdout)
    assert given.status in (0, 1)


def test_a_comparison_ends_at_a_path_without_a_metadata_log(run, clean):
    other = clean / "codec-none-0"
    result = run("metadata", "diff", other, clean / DIRECTORY)
    assert (result.status, result.stdout) == (4, "")
    assert result.stderr.startswith(f"logtool: {other}: ")


def test_two_offsets_differ_in_what_was_changed_between(run, clean):
    result = run("metadata", "diff", "--offset", "225..226", "-f", "ndjson", clean)
    assert result.status == 1
    found = [one for one in result.objects if one["type"] == "difference"]
    assert {(one["kind"], one["difference"]) for one in found} == {
        ("topic", "removed"), ("partition", "removed"),
    }  # fmt: skip
    assert {one["topic"] for one in found} == {"doomed-topic.v1_x"}
    same = run("metadata", "diff", "--offset", "226..226", clean)
    assert (same.status, numbers(last_line(same))) == (0, [])


def test_two_controllers_are_compared(run, scenario):
    nodes = [scenario("4.3.1/replicas") / f"node-{node}" for node in (1, 2)]
    status = run("metadata", "diff", *nodes).status
    assert status in (0, 1)
    assert run("metadata", "diff", nodes[0], nodes[0]).status == 0


@pytest.mark.parametrize(
    "words",
    [["at"], ["at", "--offset", "1", "--timestamp", "now"], ["diff"], ["diff", "--offset", "3"],
     ["diff", "--offset", "3.."]],
    ids=" ".join,
)  # fmt: skip
def test_what_makes_no_sense_is_refused(run, clean, words):
    assert run("metadata", *words, clean).status == 2


def test_a_record_that_cannot_be_applied_is_a_finding_with_its_place(run, tmp_path):
    home = tmp_path / DIRECTORY
    home.mkdir()
    sound = made.batch(0, made.topic("t", ID))
    log = home / f"{0:020d}.log"
    log.write_bytes(sound + made.batch(1, made.remove_topic("A" * 22)))
    result = run("metadata", "show", "-f", "ndjson", home)
    assert result.status == 1
    (finding,) = [one for one in result.objects if one["type"] == "finding"]
    assert (finding["path"], finding["position"]) == (str(log), len(sound))
    assert finding["first_offset"] == 1
    assert ("topic", "t") in entities(result)


def test_damage_leaves_what_stands_before_it(run, clean, copy_of, tmp_path):
    home = small_log_dir(clean, tmp_path / "data", DIRECTORY) / DIRECTORY
    for snapshot in home.glob("*.checkpoint"):
        snapshot.unlink()
    log = home / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    result = run("metadata", "show", "-f", "ndjson", home)
    assert result.status == 1
    assert "CRC" in result.objects[0]["damage"]
    (finding,) = [one for one in result.objects if one["type"] == "finding"]
    assert (finding["code"], finding["path"]) == ("metadata/ends-early", str(log))
    assert finding["first_offset"] == result.objects[0]["end_offset"]
    assert 0 < finding["position"] <= len(data) // 2
    assert finding["next"] == f"logtool verify {home}"
    assert ("topic", "codec-none") in entities(result)


def test_a_snapshot_that_is_not_whole_says_what_it_still_can(run, tmp_path):
    home = made.log_dir_of(tmp_path, [made.topic("t", ID)])
    path = made.snapshot(home, 1, made.topic("t", ID), footer=False)
    result = run("metadata", "show", "-f", "ndjson", path)
    assert result.status == 1
    (finding,) = [one for one in result.objects if one["type"] == "finding"]
    assert (finding["code"], finding["path"]) == ("metadata/ends-early", str(path))
    assert "footer" in finding["message"]
    assert ("topic", "t") in entities(result)


def test_of_several_log_dirs_that_with_the_log_is_shown(run, clean, tmp_path):
    (tmp_path / "data").mkdir()
    assert run("metadata", "show", tmp_path / "data", clean).status == 0
    assert run("metadata", "show", tmp_path / "data").status == 4


def test_a_batch_without_a_time_has_no_date(run, tmp_path):
    home = made.log_dir_of(tmp_path)
    log = home / f"{0:020d}.log"
    batches = [made.batch(at, made.topic("t", ID), base_timestamp=at - 1) for at in (0, 1)]
    log.write_bytes(b"".join(batches))
    shown = run("metadata", "log", "-f", "ndjson", home).objects
    assert [(one["timestamp_ms"], one["timestamp"]) for one in shown[:2]] == [
        (None, None), (0, "1970-01-01T00:00:00.000Z"),
    ]  # fmt: skip


def test_secrets_are_redacted(run, tmp_path):
    home = made.log_dir_of(tmp_path, [made.config(4, "1", "ssl.key.password", "open sesame")])
    assert "open sesame" not in run("metadata", "show", home).stdout
    assert "open sesame" not in run("metadata", "log", home).stdout
    assert "open sesame" in run("metadata", "show", "--show-secrets", home).stdout
    document = json.loads(run("metadata", "log", "--json", home).stdout)
    assert document["items"][0]["changes"][0]["after"] == "(redacted)"


@pytest.mark.parametrize("words", [("show",), ("log",), ("at", "--offset", "100")])
def test_a_topic_that_was_never_there_is_no_answer(run, clean, words):
    result = run("metadata", *words, "--topic", "nosuch", clean)
    assert result.status == 4
    assert f"{clean}: " in result.stderr
    assert "--topic nosuch" in result.stderr


@pytest.mark.parametrize("command", ["show", "log", "at --offset 3"])
@pytest.mark.parametrize("inner", ["", "orders-0"])
def test_a_log_of_another_topic_is_no_metadata_log(run, tmp_path, command, inner):
    data_log(tmp_path, "orders-0", 5)
    path = tmp_path / inner
    found = run("metadata", *command.split(), path)
    assert (found.status, found.stdout) == (4, "")
    assert found.stderr.startswith(f"logtool: {path}: ")
    assert "metadata log" in found.stderr


def test_a_copy_of_a_metadata_log_may_have_any_name(run, clean, tmp_path):
    whole = entities(run("metadata", "show", "-f", "ndjson", clean / DIRECTORY))
    for name in ("copied", "copied-3"):
        copy = shutil.copytree(clean / DIRECTORY, tmp_path / name)
        found = run("metadata", "show", "-f", "ndjson", copy)
        assert (found.status, entities(found)) == (0, whole)


def test_a_newer_snapshot_that_is_damaged_is_a_finding_where_an_older_one_was_read(run, tmp_path):
    home = made.log_dir_of(tmp_path, [made.topic("t", ID)], [made.BEGIN, made.END])
    made.snapshot(home, 1, made.topic("t", ID))
    newest = made.snapshot(home, 3, made.topic("t", ID), footer=False)
    for words in (("show",), ("at", "--offset", 2)):
        found = run("metadata", *words, "-f", "ndjson", home)
        (finding,) = found.of_type("finding")
        assert (found.status, finding["code"]) == (1, "kraft-snapshot/damaged")
        assert finding["path"] == str(newest)
        assert "footer" in finding["message"]
        assert entities(found)["topic", "t"]
    assert run("metadata", "log", home).status == 0  # which begins with the log


def test_a_log_that_ends_before_its_newest_snapshot_ends_early(run, tmp_path):
    home = made.log_dir_of(tmp_path, [made.topic("t", ID)])
    made.snapshot(home, 1, made.topic("t", ID))
    made.snapshot(home, 5, made.topic("t", ID))
    assert run("metadata", "show", home).status == 0  # it begins there
    assert run("metadata", "at", "--offset", 0, home).status == 0
    for words in (("log",), ("at", "--offset", 3)):
        found = run("metadata", *words, "-f", "ndjson", home)
        (finding,) = found.of_type("finding")
        assert (found.status, finding["code"]) == (1, "metadata/ends-early")
        assert re.findall(r"\d+", finding["message"]) == ["1", "5"]
