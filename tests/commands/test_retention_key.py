"""The copies of a key that `retention --key` finds in log dirs of real brokers."""

import json
import shutil
from itertools import groupby

import pytest
from verification import small_log_dir

from logtool.metadata.image import DIRECTORY

KEYS, PENDING, MIDDLE = "compacted.keys-0", "deleted-pending-0", "deleted-records.mid-0"
DOOMED = "doomed-topic.v1_x-0.4557ba7c994041f1b8724aaeb5a514aa-delete"
KEY, AT, HOUR = "key-0001", 1_800_000_000_000, 3_600_000
"""A key of several topics, and a time at which every record is older than a week."""


@pytest.fixture
def small(scenario, tmp_path):
    """Return a log dir with segments, files and a directory that wait to be deleted."""
    kept = (KEYS, PENDING, MIDDLE, DOOMED, DIRECTORY)
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "small", *kept)


def search(run, *arguments, key=KEY, status=0):
    result = run("retention", "-f", "ndjson", "--at", AT, "--key", key, *arguments)
    assert result.status == status, result.stderr
    (total,) = result.of_type("copies")
    return result.of_type("copy"), total


def home(copy):
    """Return the name of the partition dir of a copy."""
    return copy["path"].split("/")[-2]


def found_by_dump(run, log_dir):
    """Return the offsets of the key in each file, as `dump` finds them file by file."""
    logs = sorted(path for path in log_dir.glob("*/*.log*") if path.parent.name != DIRECTORY)
    records = run("dump", "-f", "ndjson", "--key", KEY, *logs).of_type("record")
    by_path = groupby(records, lambda one: one["path"])
    return {path: [one["offset"] for one in some] for path, some in by_path}


def test_every_file_that_holds_the_key_is_named(run, small):
    copies, total = search(run, small)
    expected = found_by_dump(run, small)
    found = {}
    for one in copies:
        found.setdefault(one["path"], []).append(one)
    assert found.keys() == expected.keys()
    for path, offsets in expected.items():
        some = found[path]
        assert sum(one["records"] for one in some) == len(offsets)
        assert sorted(at for one in some for at in one["offsets"]) == sorted(offsets)
        assert min(one["first_offset"] for one in some) == min(offsets)
        assert max(one["last_offset"] for one in some) == max(offsets)
    assert total["records"] == sum(map(len, expected.values()))
    assert {(one["directory"], one["state"]) for one in copies} == {
        ("live", "live"), ("live", "deleted"), ("delete", "live"),
    }  # fmt: skip


def test_each_copy_has_its_end(run, small):
    copies, total = search(run, small)
    ends = {
        (home(one), one["state"], one["rule"], one["gone_ms"] and one["gone_ms"] - AT,
         one["obstacle"])
        for one in copies
    }  # fmt: skip
    assert ends == {
        (KEYS, "live", None, None, "latest-value"),
        # The topic has a file.delete.delay.ms of an hour.
        (PENDING, "live", "time", 30_000 + HOUR, None),
        (PENDING, "deleted", "start", 0, None),
        (MIDDLE, "live", "time", 90_000, None),
        (DOOMED, "live", "deleted-partition", 60_000, None),
    }
    assert (total["staying_records"], total["gone_ms"], total["hidden"]) == (1, None, 0)


def test_the_sum_says_when_all_are_gone(run, small):
    copies, total = search(run, "--exclude-topic", "compacted*", small)
    assert total["gone_ms"] == max(one["gone_ms"] for one in copies) == AT + 30_000 + HOUR
    none, total = search(run, small, key="hex:00ff")
    assert (none, total["copies"], total["gone_ms"]) == ([], 0, None)
    assert total["key"] == {"size": 2, "utf8": None, "base64": "AP8="}


def test_the_broker_file_sets_the_delays(run, small, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text("log.initial.task.delay.ms=90000\nlog.segment.delete.delay.ms=7\n")
    copies, _ = search(run, "--broker-config", config, small)
    gone = {home(one): one["gone_ms"] for one in copies}
    assert (gone[MIDDLE], gone[DOOMED]) == (AT + 90_007, AT + 90_000)


def test_records_below_the_log_start_are_there_but_not_served(run, scenario):
    copies, _ = search(run, scenario("4.3.1/clean") / MIDDLE, key="key-0041")
    below, served = copies
    assert (below["is_below_start"], served["is_below_start"]) == (True, False)
    assert (below["records"], served["records"]) == (2, 7)
    assert below["last_offset"] < 77 <= served["first_offset"]  # The log starts at 77.
    assert (below["readable_by"], served["readable_by"]) == ("no-consumer", "any-consumer")


@pytest.mark.parametrize("end", [".cleaned", ".swap", "-stray", "-future"])
def test_leftovers_of_a_job_and_directories_put_aside(run, small, end):
    if end.startswith("."):
        log = small / MIDDLE / f"{0:020d}.log"
        log.rename(f"{log}{end}")
        (small / MIDDLE / f"{400:020d}.log").touch()
    else:
        (small / MIDDLE).rename(small / f"{MIDDLE}.{'a' * 32}{end}")
    copies, _ = search(run, "--topic", "deleted-records*", small)
    (one,) = {(one["rule"], one["gone_ms"], one["obstacle"]) for one in copies}
    expected = {
        ".cleaned": ("start", AT, None),
        ".swap": (None, None, "swap-file"),
        "-stray": (None, None, "stray"),
        "-future": (None, None, "future-copy"),
    }
    assert one == expected[end]


def test_a_damaged_batch_may_hide_the_key(run, small):
    log = small / MIDDLE / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[80] ^= 1
    log.write_bytes(data)
    _, total = search(run, "--exclude-topic", "compacted*", small, status=1)
    assert (total["hidden"], total["gone_ms"], total["staying_records"]) == (1, None, 0)
    result = run("retention", "--key", "nowhere", small)
    assert result.status == 1


def test_a_file_that_cannot_be_read_leaves_the_answer_open(run, small):
    log = small / MIDDLE / f"{0:020d}.log"
    log.unlink()
    log.symlink_to(small / "meta.properties")
    _, total = search(run, "--exclude-topic", "compacted*", small, status=4)
    assert total["gone_ms"] is None


def test_replicas_are_forecast_broker_by_broker(run, scenario):
    homes = [scenario("4.3.1/replicas") / f"node-{node}" for node in (1, 2, 3)]
    expected = {}
    for home in homes:
        expected |= found_by_dump(run, home)
    copies, _ = search(run, *homes)
    assert {one["path"] for one in copies} == expected.keys()
    assert {one["node"] for one in copies} == {2, 3}  # The first node is a controller.
    assert {one["obstacle"] for one in copies} == {None, "stray"}
    named, _ = search(run, f"7={homes[1]}")
    assert {one["node"] for one in named} == {7}


def test_each_broker_has_a_file_of_its_own(run, scenario, tmp_path):
    _, one, other = (scenario("4.3.1/replicas") / f"node-{node}" for node in (1, 2, 3))
    files = []
    for node, name, delay in ((2, "node.id", 7), (3, "broker.id", 9)):
        file = tmp_path / f"{node}.properties"
        file.write_text(f"{name}={node}\nlog.segment.delete.delay.ms={delay}\n")
        files += ["--broker-config", file]
    every, total = search(run, *files, one, other)
    ends = {(copy["node"], copy["gone_ms"] % 1000) for copy in every if copy["rule"] == "time"}
    assert ends == {(2, AT % 1000 + 7), (3, AT % 1000 + 9)}
    assert (total["assumed"], total["assumed_nodes"]) == ({}, [])
    _, total = search(run, *files[:2], one, other)
    assert total["assumed_nodes"] == [3]
    assert total["assumed"]["log.segment.delete.delay.ms"] == "60000"
    for wrong in ([*files, one], [*files, *files[:2], one, other]):
        assert run("retention", "--key", KEY, *wrong).status == 2
    assert run("retention", *files, one).status == 2
    nameless = tmp_path / "nameless.properties"
    nameless.write_text("log.cleaner.enable=false\n")
    given = ["--broker-config", nameless, *files[:2]]
    assert run("retention", "--key", KEY, *given, one, other).status == 2


def test_only_settings_on_which_an_answer_rests_are_assumed(run, small):
    result = run("retention", "--key", KEY, "--topic", "compacted*", small)
    _, total = search(run, "--topic", "compacted*", small)
    assert total["assumed"] == {}  # The latest value stays, and the topic is a compacted one.
    assert "--broker-config" not in result.stderr
    (doomed,), total = search(run, "--topic", "doomed*", small)
    assert doomed["rule"] == "deleted-partition"
    assert total["assumed"] == {
        "log.initial.task.delay.ms": "30000", "log.segment.delete.delay.ms": "60000",
    }  # fmt: skip
    result = run("retention", "--key", KEY, "--topic", "doomed*", small)
    assert "--broker-config" in result.stderr


def test_a_broker_without_a_cleaner_keeps_a_tombstone_for_that_reason(run, small, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text("log.cleaner.enable=false\n")
    records = run("dump", "-f", "ndjson", "--value", "null:", small / KEYS).of_type("record")
    key = records[-1]["key"]["utf8"]
    found = {}
    for given in ([], ["--broker-config", config]):
        copies, total = search(run, *given, small / KEYS, key=key)
        found[len(given)] = {one["obstacle"] for one in copies if one["is_tombstone"]}
        assert ("log.cleaner.enable" in total["assumed"]) == (not given)
    assert found == {0: {"active-segment"}, 2: {"cleaner-disabled"}}


def test_transactions_are_those_of_dump(run, scenario):
    folder = scenario("4.3.1/clean") / "tx.mixed-0"
    every = run("dump", "-f", "ndjson", "--records", folder).of_type("record")
    records = [one for one in every if not one["control"]]
    words = {"aborted": "aborted", "open-transaction": "open"}
    seen = set()
    for key in sorted({one["key"]["utf8"] for one in records if one["key"]} - {None}):
        marked = run("dump", "-f", "ndjson", "--key", key, folder).of_type("record")
        expected = {
            one["offset"]: next((words[word] for word in one["state"] if word in words), None)
            for one in marked
        }
        copies, _ = search(run, folder, key=key)
        assert {at: one["transaction"] for one in copies for at in one["offsets"]} == expected
        for one in copies:
            reader = "read-uncommitted" if one["transaction"] else "any-consumer"
            assert one["readable_by"] == reader
        seen |= set(expected.values())
    assert seen == {None, "aborted", "open"}


def test_a_terminal_gets_two_lines_for_each_copy(run, small, monkeypatch):
    copies, _ = search(run, small)
    monkeypatch.setenv("COLUMNS", "100")
    lines = run("retention", "--at", AT, "--key", KEY, small).stdout.splitlines()
    assert len(lines) == 1 + 2 * len(copies)  # The first line is for the node.
    for copy, file, fate in zip(copies, lines[1::2], lines[2::2], strict=True):
        assert copy["path"].endswith(file)
        if copy["records"] <= 8:
            assert f" {', '.join(map(str, copy['offsets']))}" in fate
        else:
            assert f" {copy['first_offset']} to {copy['last_offset']} " in fate
        if copy["gone"]:
            assert f"{copy['gone'][:19].replace('T', ' ')} UTC" in fate
        else:
            assert copy["obstacle"] in fate
    rows = run("retention", "--wide", "--at", AT, "--key", KEY, small).stdout.splitlines()
    assert len(rows) == 2 + len(copies)


def test_other_leaders_that_serve_other_offsets_are_named(run, scenario, tmp_path):
    one = scenario("4.3.1/clean") / MIDDLE
    homes = [tmp_path / "1", tmp_path / "2"]
    for home in homes:
        shutil.copytree(one, home / MIDDLE)
    given = [f"{node}={home}" for node, home in enumerate(homes, 1)]
    assert MIDDLE not in run("retention", "--key", "key-0041", *given).stderr
    (homes[1] / "log-start-offset-checkpoint").write_text("0\n1\ndeleted-records.mid 0 77\n")
    assert f"{MIDDLE}: " in run("retention", "--key", "key-0041", *given).stderr


def test_options_that_do_not_go_together(run, small):
    assert run("retention", "--key", "k", "--segments", small).status == 2
    assert run("retention", "--key", "hex:0", small).status == 2


def test_a_row_of_csv_for_each_copy(run, small):
    result = run("retention", "-f", "csv", "--at", AT, "--key", KEY, small)
    assert len(result.stdout.splitlines()) == 1 + len(search(run, small)[0])
    document = json.loads(run("retention", "--json", "--key", KEY, small).stdout)
    assert document["summary"]["found"] == search(run, small)[1]["records"]
