import csv
import io
import json
import os
import pty
import re
import subprocess
import sys

import pytest

from logtool.commands.printing import terminal, text
from logtool.commands.printing.progress import ProgressBar, progress_line

CONTROLS = [chr(c) for c in (*range(32), 127, *range(128, 160))]
FORMATS = ("table", "json", "ndjson", "csv", "tsv", "markdown")


def on_terminal(arguments, environment, stdout=None):
    """Run logtool on a pseudo-terminal, stdout perhaps elsewhere; returns what was shown."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "logtool", *map(str, arguments)],
        stdout=stdout or terminal, stderr=terminal, stdin=terminal, env=environment,
    )  # fmt: skip
    os.close(terminal)
    shown = b""
    while True:
        try:
            piece = os.read(controller, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(controller)
    return process.wait(timeout=60), shown.decode()


@pytest.mark.parametrize("format", FORMATS)
def test_control_characters_of_values_never_reach_a_terminal(run, log, monkeypatch, format):
    monkeypatch.setattr(terminal, "is_terminal", lambda: format in ("csv", "tsv"))
    out = run("dump", "--records", "-f", format, log).stdout
    assert not [c for c in CONTROLS if c in out.replace("\n", "").replace("\t", "")]
    assert "red" in out


def test_names_with_control_characters_and_bytes_that_are_not_utf8_are_escaped(run, tmp_path):
    folder = tmp_path / os.fsdecode(b"a\n\x1b[31m\xff-0")
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(b"")
    for format in FORMATS:
        result = run("dump", "-f", format, folder)
        assert result.status == 0
        assert "\x1b" not in result.stdout
    (line, _) = run("dump", "-f", "ndjson", folder).objects
    assert os.fsencode(line["path"]).startswith(os.fsencode(folder))
    assert "\x1b" not in run("dump", folder / "nothing").stderr


def test_nothing_is_coloured_in_a_pipe_unless_asked_for(spawn, damaged_log):
    assert "\x1b" not in spawn("dump", damaged_log).stderr
    assert "\x1b[" in spawn("dump", "--color", "always", damaged_log).stderr


@pytest.mark.parametrize(
    ("more", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_on_a_terminal_keeps_to_no_color_and_term(
    damaged_log, child_environment, more, colored
):
    environment = child_environment(**more)
    status, shown = on_terminal(["dump", "--no-progress", damaged_log], environment)
    assert (status, "\x1b[" in shown) == (1, colored)


def test_color_never_wins_on_a_terminal(damaged_log, child_environment):
    line = ["dump", "--no-progress", "--color", "never", damaged_log]
    assert "\x1b[" not in on_terminal(line, child_environment())[1]


def test_kafka_format_is_raw_in_a_pipe_and_escaped_on_a_terminal(run, log, child_environment):
    line = ["dump", "--no-progress", "--records", "-f", "kafka", log]
    assert "\x1b[31mred" in run(*line).stdout
    shown = on_terminal(line, child_environment())[1]
    assert "\\x1b[31mred\\x1b[0m\\nnext" in shown
    assert "\x1b[31m" not in shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_shows_bytes_and_is_taken_away(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("logtool.commands.printing.progress.REDRAW_SECONDS", 0)
    stream = Terminal()
    bar = ProgressBar(stream, wanted=True)
    bar.update(5 << 20, 10 << 20, "/data/\x1b[31mt-0")
    assert "5.0 of 10.0 MiB (50 %), " in stream.getvalue()
    assert "data/" in stream.getvalue()
    assert "\x1b[31mt-0" not in stream.getvalue()
    before = len(stream.getvalue())
    bar.hide()
    assert "\x1b[2K" in stream.getvalue()[before:]
    before = len(stream.getvalue())
    bar.hide()
    assert stream.getvalue()[before:] == ""


def test_the_bar_is_drawn_at_once_where_the_next_news_may_take_long(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("logtool.commands.printing.progress.REDRAW_SECONDS", 3600)
    stream = Terminal()
    bar = ProgressBar(stream, wanted=True)
    bar.update(0, 0, "Spark lists the partitions")
    assert stream.getvalue() == ""
    bar.update(0, 0, "Spark starts", at_once=True)
    assert "Spark starts" in stream.getvalue()


@pytest.mark.parametrize(
    ("options", "to_file", "drawn"),
    [
        ([], True, True),
        pytest.param(["--no-progress"], True, False, marks=pytest.mark.long),
        pytest.param(["-q"], True, False, marks=pytest.mark.long),
        # On one terminal the data itself is the progress, unless a bar is asked for.
        ([], False, False),
        (["--progress", "--limit", "50000"], False, True),
    ],
)
def test_a_long_read_shows_a_bar_on_the_terminal_and_leaves_nothing_behind(
    log, tmp_path, child_environment, options, to_file, drawn
):
    paths = tmp_path / "paths"
    paths.write_text(f"{log}\n" * 3000)
    line = ["dump", "-f", "ndjson", *options, "--files-from", paths]
    out = tmp_path / "out"
    with out.open("wb") as stdout:
        more = {"stdout": stdout} if to_file else {}
        status, shown = on_terminal(line, child_environment(), **more)
    assert status == 0
    assert ("\u2501" in shown) == drawn  # the bar
    if drawn:
        assert "\x1b[2K" in shown[shown.rindex("\u2501") :]
    if to_file:
        assert "\x1b" not in out.read_text()


def test_off_a_terminal_progress_is_plain_lines_and_only_on_request(monkeypatch):
    monkeypatch.setattr("logtool.commands.printing.progress.LINE_SECONDS", 0)
    silent, asked = io.StringIO(), io.StringIO()
    ProgressBar(silent, wanted=False).update(1, 2, "x")
    ProgressBar(asked, wanted=True).update(1, 2, "x")
    assert silent.getvalue() == ""
    assert asked.getvalue().startswith("logtool: 1 of 2 B (50 %), ")
    assert "\x1b" not in asked.getvalue()


def test_progress_line_survives_no_total_and_no_time():
    assert progress_line(0, 0, 0) == "0 B"
    line = progress_line(1 << 30, 4 << 30, 2)
    assert line.startswith("1.0 of 4.0 GiB (25 %), 512.0 MiB/s, 6.0 s")


def test_a_line_of_progress_names_what_is_read_in_one_unit_with_the_time_to_go():
    log = f"/var/lib/kafka/orders-3/{0:020d}.log"
    line = progress_line(1 << 20, 4 << 30, 0.5, log)
    assert line.startswith("0.0 of 4.0 GiB (0 %), 2.0 MiB/s, 34 min 08 s")
    assert line.endswith(f", orders-3/{0:020d}.log")
    line = progress_line(5, 10, 1, "Spark lists")
    assert line.startswith("5 of 10 B (50 %), 5 B/s, 1.0 s")
    assert line.endswith(", Spark lists")
    assert progress_line(10, 10, 1, "/a\nb").split(", ") == [
        "10 of 10 B (100 %)",
        "10 B/s",
        "/a\\nb",
    ]


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_the_bar_stays_on_one_line(monkeypatch, columns):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("logtool.commands.printing.progress.REDRAW_SECONDS", 0)
    stream = Terminal()
    bar = ProgressBar(stream, wanted=True)
    bar.update(5 << 20, 10 << 20, f"/var/lib/kafka/{'orders' * 20}-3/{0:020d}.log")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert shown.count("5.0 of 10.0 MiB") == 1
    assert max(map(len, re.split("[\r\n]", shown))) <= columns
    assert "\n" not in shown.strip()


def test_progress_never_mixes_into_stdout(spawn, log):
    plain = spawn("dump", "-f", "ndjson", log)
    asked = spawn("dump", "-f", "ndjson", "--progress", log)
    assert [o for o in plain.objects if o["type"] != "summary"] == [
        o for o in asked.objects if o["type"] != "summary"
    ]


def test_errors_go_to_stderr_and_data_to_stdout(run, log, tmp_path):
    result = run("dump", tmp_path / "missing", log)
    assert result.status == 4
    assert "missing: No such file" in result.stderr
    assert "missing" not in result.stdout
    assert "base_offset" in result.stdout


def test_quiet_leaves_errors(run, tmp_path, damaged_log):
    assert run("dump", "-q", damaged_log).stderr == ""
    assert "missing" in run("dump", "-q", tmp_path / "missing").stderr


def test_verbose_says_what_was_read(run, log):
    assert "1 segment, 3 batches, 9 records" in run("dump", "-v", log).stderr
    assert run("dump", log).stderr == ""


def test_json_is_one_document_of_the_same_objects_as_ndjson(run, log):
    document = json.loads(run("dump", "--json", "--records", log).stdout)
    lines = run("dump", "-f", "ndjson", "--records", log).objects
    assert document["schema"] == lines[0].pop("schema") == "logtool.dump/2"
    assert document["items"] == lines[:-1]
    assert document["summary"] | {"elapsed_s": 0} == lines[-1] | {"elapsed_s": 0}
    assert "--json" and run("dump", "-f", "json", log).stdout.startswith('{"schema"')


def test_only_the_first_object_carries_the_schema(run, log, tmp_path):
    lines = run("dump", "-f", "ndjson", log).objects
    assert ["schema" in line for line in lines] == [True] + [False] * (len(lines) - 1)
    (only, summary) = run("dump", "-f", "ndjson", tmp_path / "missing").objects
    assert (only["schema"], only["type"], only["reason"]) == (
        "logtool.dump/2", "error", "unreadable",
    )  # fmt: skip
    assert summary["complete"] is False


def test_json_is_pure_ascii(run, log):
    assert run("dump", "--json", "--records", log).stdout.isascii()


def test_escaped_csv_and_tsv_are_one_table_with_one_row_a_line(run, partition):
    dump = ("dump", "--records", "--csv-escaped", "-f")
    rows = list(csv.reader(run(*dump, "csv", partition).stdout.splitlines()))
    assert {len(row) for row in rows} == {len(rows[0])}
    table = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    first, second, third = [row for row in table if row["type"] == "record"][:3]
    assert (first["key"], first["key_encoding"], first["key_size"]) == ("key", "utf8", "3")
    assert (second["key"], second["key_encoding"], second["key_size"]) == ("", "", "")
    assert (third["key"], third["key_encoding"], third["key_size"]) == ("", "utf8", "0")
    assert second["value"] == "\\x1b[31mred\\x1b[0m\\nnext"
    assert third["value_encoding"] == "base64"
    lines = run(*dump, "tsv", partition).lines
    assert {line.count("\t") for line in lines} == {len(rows[0]) - 1}


def test_errors_are_no_rows_of_csv(run, damaged_log):
    result = run("dump", "-f", "csv", damaged_log)
    assert {row["type"] for row in csv.DictReader(result.stdout.splitlines())} == {"batch"}
    assert "CRC" in result.stderr


def test_markdown_escapes_what_would_end_a_cell(run, tmp_path, make_batch):
    from logtool.formats.record import Record

    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(make_batch(0, [Record(0, 0, b"a|b", b"c")]))
    assert '"a\\|b"' in run("dump", "--records", "-f", "markdown", path).stdout


def test_a_table_is_printed_in_blocks(run, tmp_path, make_batch, monkeypatch):
    from logtool.formats.record import Record

    monkeypatch.setattr("logtool.commands.printing.writers.BLOCK_ROWS", 10)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(b"".join(make_batch(n, [Record(0, 0, b"k", b"v")]) for n in range(25)))
    lines = run("dump", path).lines
    assert sum(line.startswith("position") for line in lines) == 3
    assert sum(line.endswith(("0", "1")) or "none" in line for line in lines) >= 25


def test_escape_and_quote_are_unambiguous():
    assert text.escape("a\\b\x1b\u202e\ud800\U000e0001") == "a\\b\\x1b\\u202e\\ud800\\U000e0001"
    assert text.quote('"\\n\n') == '"\\"\\\\n\\n"'
    assert text.quote("\\n") != text.quote("\n")
    assert "\x7f" not in text.to_json({"a": "\x7f"})
    assert json.loads(text.to_json({"a": "\x7f\x9b\ud800"})) == {"a": "\x7f\x9b\ud800"}


def test_any_locale_can_take_any_text(log, child_environment):
    environment = child_environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = subprocess.run(
        [sys.executable, "-m", "logtool", "dump", "--records", str(log)],
        capture_output=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0


def test_styles_are_known_to_rich():
    for style in terminal.STYLES:
        assert terminal.paint("x", style, "always", sys.stdout) != "x"


@pytest.mark.parametrize("format", ["table", "markdown"])
@pytest.mark.parametrize("command", ["verify", "plan", "stat", "gaps", "txns", "diff"])
def test_a_report_in_a_file_keeps_its_summary_if_asked(run, damaged_log, command, format):
    paths = [damaged_log.parent] * (2 if command == "diff" else 1)
    apart = run(command, "-f", format, *paths)
    together = run(command, "-f", format, "--summary-to-stdout", *paths)
    assert together.status == apart.status
    assert together.stderr.splitlines() == [
        line for line in apart.stderr.splitlines() if line.startswith("logtool: ")
    ]
    numbers = re.compile(r"[0-9.,]+ (?:us|ms|s|min|h|B|KiB|MiB|GiB)\b|in [0-9.]+|[0-9]+ s$")
    data, notes = (
        apart.stdout,
        "".join(
            f"{line}\n" for line in apart.stderr.splitlines() if not line.startswith("logtool: ")
        ),
    )
    assert numbers.sub("", together.stdout) == numbers.sub("", data + notes)


def test_a_summary_in_json_is_there_anyway(run, log):
    for options in (["--json"], ["-f", "ndjson"], ["-f", "csv"], ["-q"]):
        result = run("verify", "--summary-to-stdout", *options, log)
        assert (result.status, result.stdout) == (2, "")
        assert "--summary-to-stdout" in result.stderr


def test_the_summary_stands_behind_all_rows_of_a_table(run, scenario):
    lines = run("stat", "--summary-to-stdout", "-v", scenario("4.3.1/clean")).lines
    assert lines[0].startswith("partition")
