"""``logtool groups --restore-plan --removed``, and commits of aborted transactions."""

import shlex

import pytest
from answers import last_line, numbers
from group_records import FIRST_MS, OffsetsLog, data_log
from metadata_records import log_dir_of, topic

OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
PLAN = ("groups", "--restore-plan", "--bootstrap-server", "b:1")


@pytest.fixture
def home(tmp_path):
    """A log dir with a group that went, one that lost a part of its offsets, and a whole one."""
    log = OffsetsLog()
    for number in range(2):
        log.commit("gone", "orders", number, 500, topicId=NEW)
    log.commit("gone", "orders", 2, 7, topicId=OLD)
    log.commit("gone", "deleted", 0, 8)
    for number in range(3):
        log.commit("gone", "orders", number, None)
    log.commit("gone", "deleted", 0, None)
    log.commit("partly", "orders", 0, 30, topicId=NEW)
    log.commit("partly", "orders", 1, 40, topicId=NEW, metadata="m")
    log.commit("partly", "orders", 1, None)
    log.commit("whole", "orders", 0, 50, topicId=NEW)
    data_log(tmp_path, "orders-0", 400, topic_id=NEW)
    data_log(tmp_path, "orders-1", 600, topic_id=NEW)
    log_dir_of(tmp_path, [topic("orders", NEW), topic("__consumer_offsets", OLD)])
    log.write(tmp_path)
    return tmp_path


def commands(found):
    """Return the lines that are no comment, each as the lines of its file and its group."""
    lines = [line.strip() for line in found.lines if line.strip()]
    words = [shlex.split(line) for line in lines if not line.startswith("#")]
    return {one[one.index("--group") + 1]: one[2 : one.index(">")] for one in words}


def test_removed_offsets_are_committed_again_and_no_other(run, home):
    found = run(*PLAN, "--removed", home)
    assert commands(found) == {
        "gone": ["orders,0,500", "orders,1,500"], "partly": ["orders,1,40"],
    }  # fmt: skip
    assert found.status == 0
    assert "#" not in found.stdout
    plans = run(*PLAN, "--removed", "-f", "ndjson", home).of_type("restore")
    names = ("group", "offsets", "left_out", "metadata_left_out", "removed_left_out", "outside")
    assert [tuple(one[name] for name in names) for one in plans] == [
        ("gone", 2, 2, 0, 0, ["orders-0=500"]),
        ("partly", 1, 0, 1, 0, []),
    ]
    assert commands(run(*PLAN, "--removed", "--group", "partly", home)).keys() == {"partly"}
    nothing = run(*PLAN, "--removed", "--group", "whole", home)
    assert (nothing.status, nothing.stdout) == (0, "")
    assert numbers(last_line(nothing))[-1] == 0


def test_a_plan_without_removed_offsets_counts_them(run, home):
    found = run(*PLAN, home)
    assert commands(found) == {"partly": ["orders,0,30"], "whole": ["orders,0,50"]}
    comments = [line for line in found.lines if line.startswith(" #")]
    assert [numbers(line) for line in comments] == [[2], [1]]
    assert all("--removed" in line for line in comments)
    plans = run(*PLAN, "-f", "ndjson", home).of_type("restore")
    assert [(one["group"], one["removed_left_out"], one["command"] is None) for one in plans] == [
        ("gone", 2, True), ("partly", 1, False), ("whole", 0, False),
    ]  # fmt: skip


def test_groups_names_the_command_for_removed_offsets(run, home, monkeypatch):
    monkeypatch.chdir(home.parent)
    glob, broker = ("--group", "part*"), ("--bootstrap-server", "b:1")
    for words in (("groups", *glob), ("groups", "--restore-plan", *glob)):
        (line,) = [
            one for one in run(*words, *broker, home.name).stderr.splitlines() if "--removed" in one
        ]
        assert numbers(line)[0] == 1
        command = shlex.split(line[line.index("logtool groups") :])
        assert command[-1] == home.name
        assert commands(run(*command[1:])) == {"partly": ["orders,1,40"]}
    for more in (
        ("--group", "whole"), ("--sizes",), ("--at", FIRST_MS + 8), ("--history", "gone"),
        ("--restore-plan", "--removed"),
    ):  # fmt: skip
        assert "--removed" not in run("groups", *more, home).stderr


def test_what_was_removed_before_a_moment_and_committed_later_is_not_left_out(run, tmp_path):
    log = OffsetsLog()
    for number in range(2):
        log.commit("g", "orders", number, 5)
        log.commit("g", "orders", number, None)
    log.commit("g", "orders", 1, 6)
    log.write(tmp_path)
    (plan,) = run(*PLAN, "--at", FIRST_MS + 3, "-f", "ndjson", tmp_path).of_type("restore")
    assert (plan["later"], plan["removed_left_out"]) == (["orders-1=6"], 1)


@pytest.mark.parametrize("words", [(), ("--sizes",), ("--restore-plan", "--at", FIRST_MS)])
def test_removed_needs_a_plan_for_the_end_of_the_log(run, home, words):
    assert run("groups", "--removed", *words, home).status == 2


def test_an_offset_says_that_a_newer_commit_was_aborted(run, tmp_path):
    log = OffsetsLog()
    log.commit("aborted", "orders", 0, 200)
    log.commit("later", "orders", 0, 200)
    log.commit("committed", "orders", 0, 200)
    log.commit("open", "orders", 0, 200)
    log.commit("same", "orders", 0, 200)
    log.commit("aborted", "orders", 0, 450, producer_id=7)
    log.commit("later", "orders", 0, 450, producer_id=7)
    log.commit("same", "orders", 0, 200, producer_id=7)
    log.end_transaction(7, commit=False)
    log.commit("later", "orders", 0, 460)
    log.commit("committed", "orders", 0, 470, producer_id=8)
    log.end_transaction(8, commit=True)
    log.commit("open", "orders", 0, 480, producer_id=9)
    log.write(tmp_path)
    found = run("groups", "-f", "ndjson", tmp_path)
    offsets = {one["group"]: (one["offset"], one["aborted_offset"])
               for one in found.of_type("offset")}  # fmt: skip
    assert offsets == {
        "aborted": (200, 450), "later": (460, None), "committed": (470, None), "open": (200, None),
        "same": (200, 200),
    }  # fmt: skip
    named = {one["group"]: one["aborted"] for one in found.of_type("group")}
    assert {group: offsets for group, offsets in named.items() if offsets} == {
        "aborted": ["orders-0=450"],
    }  # fmt: skip
    lines = [line for line in run("groups", tmp_path).lines if "orders-0=" in line]
    assert [numbers(line) for line in lines] == [[450]]


def test_a_narrow_history_shows_the_records_that_an_end_names(run, tmp_path, monkeypatch):
    log = OffsetsLog()
    log.commit("g", "payments", 0, 450, producer_id=7)
    log.end_transaction(7, commit=False)
    log.write(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    heading, _, *rows = run("groups", "--history", "g", tmp_path).lines
    assert heading.split()[:3] == ["record", "time", "event"]
    assert [row.split()[0] for row in rows] == ["0", "1"]
