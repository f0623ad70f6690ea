"""Tables and lines on terminals of several widths: a real pseudo-terminal, real log dirs."""

import os
import re
import shutil
import sys
from datetime import UTC, datetime
from itertools import pairwise

import pytest
import tabulate
from damage import overwrite
from group_records import FIRST_MS, OffsetsLog
from hypothesis import given
from hypothesis import strategies as st
from terminal import shown_on
from thinned import some

from logtool.commands.printing import fitting, writers

WIDTHS = [60, 80, 140, 220]
COMMANDS = [
    ("stat", "--no-progress"),
    ("txns", "-v", "--no-progress"),
    ("watermark", "--no-progress"),
    ("gaps", "-v", "--no-progress"),
    ("checkpoint", "show"),
    ("sanity",),
    ("plan", "-v", "--no-progress"),
    ("recover", "--full", "-v", "--no-progress"),
    ("verify", "-v", "--no-progress"),
    ("doctor", "--no-progress"),
]
EVERY_WIDTH = (("stat", "--no-progress"), ("txns", "-v", "--no-progress"))
NUMBER = re.compile(r"(?<![\w.-])\d[\d,.:TZ-]*(?![\w/-])")


@pytest.fixture
def on_terminal(child_environment):
    """Return a function that runs a command line on a terminal of a width: its status and text."""

    def on_terminal(width: int, *arguments: object) -> tuple[int, str]:
        command = [sys.executable, "-m", "logtool", *map(str, arguments)]
        return shown_on(width, command, child_environment(NO_COLOR="1"))

    return on_terminal


@pytest.mark.parametrize("command", some(COMMANDS, 5), ids=" ".join)
def test_no_row_is_wider_than_the_terminal(on_terminal, scenario, command):
    home = scenario("4.3.1/killed")
    for width in WIDTHS if command in EVERY_WIDTH else [80]:
        _, shown = on_terminal(width, *command, home)
        too_long = [
            line for line in shown.split("\n")
            # What is copied is not folded: a path, a command, a bar of a histogram.
            if len(line) > width and str(home) not in line and not line.startswith(" <")
        ]  # fmt: skip
        assert not too_long, width
        assert shown.strip()


def test_a_command_to_copy_stays_on_one_line(on_terminal, damaged_log):
    _, wide = on_terminal(1000, "gaps", "--no-progress", damaged_log.parent)
    command = wide[wide.index(": logtool ") + 2 :].split("\n")[0]
    assert len(command) > 40
    for width in (40, 80):
        _, shown = on_terminal(width, "gaps", "--no-progress", damaged_log.parent)
        assert f"  {command}" in shown.split("\n")


def test_what_gives_way_is_named_and_wide_shows_it(on_terminal, scenario):
    home = scenario("4.3.1/killed")
    _, narrow = on_terminal(80, "watermark", "--no-progress", home)
    _, wide = on_terminal(80, "watermark", "--no-progress", "--wide", home)
    heading = narrow.lstrip("\n").split("\n")[0].split()
    assert {"topic", "partition", "high_watermark", "log_end_offset"} <= set(heading)
    note = next(line for line in narrow.split("\n") if "--wide" in line)
    assert "recovery_point" not in heading
    assert re.search(r"\d", note)
    assert len(wide.lstrip("\n").split("\n")[0].split()) == 13
    assert "--wide" not in wide


@pytest.mark.parametrize(("width", "more"), [(80, set()), (120, {"log_end_offset"})])
def test_what_matters_of_a_group_is_shown_on_every_terminal(on_terminal, scenario, width, more):
    _, shown = on_terminal(width, "groups", "--no-progress", scenario("4.3.1/running"))
    headings = [set(line.split()) for line in shown.split("\n") if line.startswith("topic ")]
    removed = {"topic", "partition", "removed_offset", "committed"}
    assert headings.count(removed) == 1
    headings.remove(removed)
    assert len(headings) == 3
    for heading in headings:
        expected = {"topic", "partition", "offset", "lag", "note", "committed", *more}
        assert expected <= heading
        assert "metadata" not in heading or width > 80
    assert "EXPIRED" in shown


@pytest.fixture
def share_group(tmp_path):
    """Return a log dir with the records of a share group, whose names are the longest there are."""
    log, group = OffsetsLog(), {"groupId": "share"}
    member = {**group, "memberId": "cBjuZVKUTD6mqxe3aatyiw"}
    for kind, value in ((10, {}), (11, {"epoch": 1}), (15, {}), (12, {}), (13, {}), (14, {})):
        log.add(kind, member if kind in (10, 13, 14) else group, value)
    for kind in (14, 13, 10):
        log.add(kind, member, None)
    log.write(tmp_path)
    return tmp_path


def rows_of(shown):
    """Return the heading and the first lines of the rows of a table, as lists of cells."""
    heading, _, *lines = shown.split("\n")
    return heading.split(), [line.split() for line in lines if re.search(r"\dT\d\d:", line)]


@pytest.mark.parametrize("group", ["group-classic", "group-tx", "group.gone", "group_next"])
def test_the_history_of_a_group_has_the_time_on_every_terminal(on_terminal, scenario, group):
    home = scenario("4.3.1/running")
    _, shown = on_terminal(80, "groups", "--no-progress", "--history", group, home)
    _, wide = on_terminal(80, "groups", "--no-progress", "--wide", "--history", group, home)
    heading, rows = rows_of(shown)
    assert [one for one in heading if one != "record"][:4] == [
        "time", "event", "partition", "offset",
    ]  # fmt: skip
    at = heading.index("time")
    assert [row[at] for row in rows] == [row[1] for row in rows_of(wide)[1]]
    assert all(re.fullmatch(r"2026-11-21T[\d:.]+Z", row[at]) for row in rows)
    assert "groups.input-0" in shown
    assert all(len(line) <= 80 for line in shown.split("\n"))


def test_the_history_of_a_share_group_has_the_time_on_every_terminal(on_terminal, share_group):
    command = ("groups", "--no-progress", "--history", "share", share_group)
    _, shown = on_terminal(80, *command)
    heading, rows = rows_of(shown)
    assert heading[:3] == ["record", "time", "event"]
    assert not {"partition", "offset"} & set(heading), "they say nothing of a share group"
    assert len(rows) == 9
    first = datetime.fromtimestamp(FIRST_MS / 1000, UTC)
    assert {row[1][:19] for row in rows} == {f"{first:%Y-%m-%dT%H:%M:%S}"}
    assert all(len(line) <= 80 for line in shown.split("\n"))


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_command_stands_whole_below_a_table(on_terminal, copy_of, run, width):
    home = copy_of("4.3.1/killed")
    for one in home.glob("__transaction_state-*"):
        shutil.rmtree(one)
    words = ("txns", "--open", "--now", "2026-11-21T02:00:00Z", home)
    commands = {one["ask"] for one in run(*words, "-f", "ndjson").of_type("transaction")}
    assert len(commands) == 3
    _, shown = on_terminal(width, *words, "--no-progress")
    assert commands <= {line.strip() for line in shown.split("\n")}
    _, wide = on_terminal(width, *words, "--no-progress", "--wide")
    assert sum(line.count("find-hanging") for line in wide.split("\n")) == 4, "one for each row"


def headings(shown):
    """Return the titles of the tables of a screen."""
    lines = shown.split("\n")
    return [above.split() for above, line in pairwise(lines) if re.fullmatch(r"-+(  -+)+", line)]


def test_the_columns_with_the_answer_are_on_every_terminal(on_terminal, scenario, copy_of):
    killed = copy_of("4.3.1/killed")
    folder, crash = killed / "tx.mixed-0", scenario("automq/broker-crash")
    commands = (
        ("dump", "--count", killed),
        ("lookup", "--timestamp", "2026-11-21T01:31:58.500Z", folder),
        ("plan", crash / "s3", crash / "meta"),
        ("txns", "--open", killed),
    )
    shown = [on_terminal(80, *words, "--no-progress")[1] for words in commands]
    _, entries = on_terminal(80, "dump-index", "--join-log", folder / f"{0:020d}.index")
    assert [one[-1] for one in headings(entries)] == ["verdict"]
    counted, looked, plan, txns = shown
    assert all(one[-1] == "path" for one in headings(counted))
    assert [one for one in headings(looked) if {"position", "timestamp"} <= set(one)]
    assert f"{0:020d}.log" in looked
    assert [one[-1] for one in headings(plan)] == ["lost_offsets", "undone_log_start"]
    assert all("producer_id" in one for one in headings(txns))


def test_the_sums_of_space_are_on_every_terminal(on_terminal, scenario):
    _, shown = on_terminal(80, "space", scenario("4.3.1/killed"))
    columns = {"topic", "disk", "log", "index", "leftovers", "other"}
    assert columns <= set(headings(shown)[0])


def test_a_note_is_shown_before_anything_that_may_give_way():
    chosen = writers.keep(writers.columns("key", "time", "note"), "key", where_said=("note",))
    shown = {}
    for note in ("", "BELOW LOG START"):
        lines: list[str] = []
        writer = writers.TableWriter(lines.append, lambda _: chosen, markdown=False, width=60)
        writer.item({"key": "k" * 20, "time": "t" * 36, "note": note})
        writer.close({})
        shown[note] = lines[0].split("\n")[0].split()
    assert shown == {"": ["key", "time"], "BELOW LOG START": ["key", "note"]}


def test_no_empty_column_stands_where_one_that_says_something_gave_way():
    titles, row = ["key", "time", "empty", "zero"], ["k" * 20, "t" * 30, "", "0"]
    kept = [True, False, False, False]
    for width, shown in {70: (0, 1, 2, 3), 60: (0, 1, 3), 53: (0, 1), 32: (0, 3)}.items():
        assert fitting.fit(titles, [row], kept, width).shown == shown, width


def test_a_narrow_terminal_gets_records(on_terminal, scenario):
    home = scenario("4.3.1/killed") / "codec-none-0"
    status, shown = on_terminal(50, "stat", "--no-progress", home)
    assert status == 0
    values = dict(
        re.split(r"\s{2,}", line, maxsplit=1) for line in shown.split("\n") if "  " in line.strip()
    )
    assert values["partition"] == "codec-none-0"
    assert values["records"] == "360"


def test_a_pipe_gets_every_column(scenario, spawn):
    result = spawn("watermark", scenario("4.3.1/killed"))
    assert len(result.lines[0].split()) == 13
    assert "not shown" not in result.stderr


@pytest.mark.parametrize("chosen", ["csv", "tsv", "markdown", "kafka"])
def test_a_format_for_programs_knows_no_terminal(on_terminal, scenario, spawn, chosen):
    segment = scenario("4.3.1/killed") / "codec-none-0" / "00000000000000000000.log"
    _, shown = on_terminal(60, "dump", "-f", chosen, "--no-progress", segment)
    assert shown.rstrip("\n") == spawn("dump", "-f", chosen, segment).stdout.rstrip("\n")


def test_many_warnings_of_a_kind_are_counted(copy_of, run):
    home = copy_of("4.3.1/killed")
    broken = [path for path in sorted(home.rglob("*.index")) if path.stat().st_size][:30]
    for path in broken:
        path.write_bytes(overwrite(path.read_bytes(), 3, b"\xff"))
    few = run("verify", home)
    every = run("verify", "-v", home)
    shown = [line for line in few.lines if line.startswith("WARNING")]
    whole = [line for line in every.lines if line.startswith("WARNING")]
    codes = {line.split()[1]: 0 for line in whole}
    for line in whole:
        codes[line.split()[1]] += 1
    assert max(codes.values()) > 3
    for code, number in codes.items():
        assert sum(line.split()[1] == code for line in shown) == min(number, 3)
        grouped = [line for line in few.stderr.splitlines() if f"{code}  x{number}" in line]
        assert len(grouped) == (number > 3)
    assert few.status == every.status == 1
    assert not [line for line in every.stderr.splitlines() if line.startswith("WARNING")]


CELLS = st.text(alphabet="ab c/._-019:TZ", max_size=40)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.lists(st.text(alphabet="abc_", min_size=1, max_size=12), min_size=n, max_size=n),
            st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=5),
            st.lists(st.booleans(), min_size=n, max_size=n),
        )
    ),
    st.integers(20, 160),
)
def test_what_fits_is_within_the_width_and_loses_no_character(table, width):
    titles, rows, kept = table
    chosen = fitting.fit(titles, rows, kept, width)
    if chosen.as_records:
        return
    assert sum(chosen.widths) + 2 * (len(chosen.widths) - 1) <= width
    for row in rows:
        for place, room in zip(chosen.shown, chosen.widths, strict=True):
            lines = fitting.wrapped(row[place], room).split("\n")
            assert "".join(lines).replace(" ", "") == row[place].replace(" ", "")
            assert max(map(len, lines)) <= room
            numbers = set(NUMBER.findall(row[place])) if len(row[place]) <= 20 else set()
            assert all(any(number in line for line in lines) for number in numbers)


CELLS = st.text(" ab-09.,|", max_size=9)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n),
                                                    min_size=1, max_size=4)))  # fmt: skip
def test_a_table_of_plain_cells_is_as_tabulate_lays_it_out(lines):
    titles, *rows = lines
    titles = [title.strip() or "title" for title in titles]
    right = [writers._is_numeric(rows, i) for i in range(len(titles))]
    tabulate.MIN_PADDING = 0
    table = tabulate.tabulate(
        rows, titles, tablefmt="simple", disable_numparse=True, preserve_whitespace=True,
        colalign=["right" if one else "left" for one in right],
    )  # fmt: skip
    assert fitting.table(titles, rows, right) == [line.rstrip() for line in table.split("\n")]


def test_the_reason_of_a_release_stays_on_a_narrow_terminal(scenario):
    command = [sys.executable, "-m", "logtool", "plan", "--kafka-version", "all"]
    status, seen = shown_on(80, [*command, str(scenario("4.3.1/killed"))], os.environ)
    assert status == 0
    assert "reason" in seen.splitlines()[0]
    assert max(len(line) for line in seen.splitlines() if "\x1b" not in line) <= 80


def test_who_may_lead_and_what_is_lost_is_on_every_terminal(on_terminal, scenario):
    nodes = [scenario("4.3.1/replicas") / f"node-{node}" for node in (1, 2, 3)]
    _, shown = on_terminal(80, "watermark", "--no-progress", *nodes)
    replicas, together, cuts, choices = headings(shown)
    assert {"node", "high_watermark", "log_end_offset"} <= set(replicas)
    assert {"assumed_leader", "acknowledged_lost", "may_be_lost"} <= set(together)
    assert {"follower", "by_leader_epoch", "acknowledged_lost"} <= set(cuts)
    assert {"node", "election", "acknowledged_lost"} <= set(choices)
    (note,) = [line for line in shown.split("\n") if "--wide" in line]
    assert len(note) <= 80
    assert "," not in note, "the names of many columns say nothing"


def test_few_columns_that_give_way_are_named():
    writer = writers.TableWriter(lambda _: None, lambda _: None, markdown=False, width=60)
    writer.hidden = dict.fromkeys(("first", "second"))
    assert writer.what_is_hidden().endswith(": first, second")
    writer.hidden = dict.fromkeys(map(str, range(7)))
    assert "," not in writer.what_is_hidden()


def test_a_pipe_has_the_width_of_the_variable_columns(run, scenario, monkeypatch):
    home = scenario("4.3.1/killed")
    whole = run("txns", home).stdout
    assert max(map(len, whole.split("\n"))) > 140
    monkeypatch.setenv("COLUMNS", "80")
    narrow = [line for line in run("txns", home).stdout.split("\n") if str(home) not in line]
    assert max(map(len, narrow)) <= 80
    assert run("txns", "--wide", home).stdout == whole
