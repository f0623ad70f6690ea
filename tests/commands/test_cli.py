import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import typer.main
from processes import interrupted
from terminal import shown_on
from typer.testing import CliRunner

from logtool import __version__, cli
from logtool.commands import options
from logtool.commands.views import explain as explain_view

HEAVY = (
    "numpy", "cramjam", "crc32c", "pyarrow", "pyspark", "pandas", "tabulate", "psutil", "rich",
    "javaproperties", "logtool.log.walk.scanner", "logtool.verify", "logtool.formats",
)  # fmt: skip
LIGHT = ("logtool.formats", "logtool.formats.wording")
"""The words for sizes and ranges, which import nothing."""
COMMANDS = ("verify", "doctor", "dump", "dump-index", "explain", "stat", "diff")


@pytest.mark.parametrize(
    "line", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
)
def test_help_and_version_import_no_engine(line, child_environment):
    code = (
        "import sys; from logtool import cli; status = cli.run(sys.argv[1:]);"
        f"light = {LIGHT!r};"
        f"print(*[m for m in sys.modules if m.startswith({HEAVY!r}) and m not in light],"
        "file=sys.stderr);"
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *line],
        capture_output=True, text=True, check=False, env=child_environment(),
    )  # fmt: skip
    assert (done.returncode, done.stderr.split()) == (0, [])


SLOW = (
    "argparse", "asyncio", "concurrent.futures", "crc32c", "csv", "decimal", "email",
    "importlib.metadata", "importlib.resources", "javaproperties", "logging", "multiprocessing",
    "psutil", "pyarrow", "pyspark", "rich", "tabulate", "tomllib", "zoneinfo",
)  # fmt: skip
"""Modules that take long to import, and that none of these lines needs."""
OF_REDPANDA = (
    "logtool.checks.redpanda", "logtool.formats.redpanda.base_index",
    "logtool.formats.redpanda.kvstore", "logtool.log.kvstore",
    "logtool.startup.redpanda_start", "logtool.startup.redpanda_forecast",
)  # fmt: skip
OF_A_START = ("logtool.loading", "logtool.startup", "logtool.repair", "logtool.actions")
OF_LESS_WORK = ("logtool.loading.supplement", "logtool.loading.trusting")
NOT_NEEDED = {
    "dump {log} --limit 1": (
        "logtool.formats.messages", "logtool.formats.producer_snapshot",
        "logtool.formats.redpanda.record_batch", "logtool.formats.time_index", "logtool.checks",
        "logtool.metadata", "logtool.apply", *OF_A_START,
    ),
    "dump-index {index}": ("logtool.formats.messages", "logtool.metadata", *OF_A_START),
    "verify {partition}": ("logtool.apply", *OF_REDPANDA, *OF_A_START),
    "stat --json {partition}": ("numpy.ma", "logtool.apply", *OF_REDPANDA, *OF_A_START),
    "lookup {partition} --offset 1": ("logtool.apply", "logtool.startup.partition", *OF_LESS_WORK),
    "gaps {partition}": (
        "logtool.apply", "logtool.gaps.fill", "logtool.startup.partition", *OF_LESS_WORK,
        "logtool.checks.redpanda", "logtool.startup.redpanda_start",
        "logtool.startup.redpanda_forecast",
    ),
    "plan {partition}": ("logtool.apply", "logtool.checks.partition", *OF_REDPANDA, *OF_LESS_WORK),
    "recover --full {partition}": (
        "logtool.checks.partition", "logtool.checks.segment", "logtool.checks.schedule",
        *OF_REDPANDA, *OF_LESS_WORK,
    ),
    "watermark {partition}": (
        "logtool.apply", "logtool.watermark.raft", *OF_REDPANDA, *OF_LESS_WORK,
    ),
}  # fmt: skip
"""Modules, with those below them, that a line has no use for on a sound partition of Kafka."""


def test_explain_imports_no_format_and_nothing_slow(child_environment):
    # One entry of the catalogue is TOML.
    slow = {"numpy", *SLOW} - {"tomllib"}
    done = loaded(["explain", "batch/crc"], child_environment)
    assert (done.returncode, slow & set(done.stderr.split())) == (0, set())


@pytest.mark.parametrize("line", NOT_NEEDED)
def test_a_command_imports_nothing_that_its_input_has_no_use_for(child_environment, scenario, line):
    partition = scenario("4.3.1/clean") / "codec-none-0"
    names = {
        "partition": partition,
        "log": partition / f"{0:020d}.log",
        "index": partition / f"{0:020d}.index",
    }
    done = loaded([word.format_map(names) for word in line.split()], child_environment)
    modules = set(done.stderr.split())
    unwanted = (*SLOW, *NOT_NEEDED[line])
    # A misspelled name forbids nothing.
    assert all(importlib.util.find_spec(name) for name in NOT_NEEDED[line])
    assert done.returncode == (1 if line.startswith("recover") else 0)
    assert "logtool.commands.output" in modules
    assert {
        one for one in modules if any(f"{one}.".startswith(f"{no}.") for no in unwanted)
    } == set()


def test_no_garbage_is_looked_for_once_a_command_is_done(child_environment):
    code = (
        "import atexit, gc, sys; from logtool import cli;"
        "count = lambda: print(len(gc.get_objects()), gc.get_freeze_count(), file=sys.stderr);"
        "atexit.register(count); cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        capture_output=True, text=True, check=True, env=child_environment(),
    )  # fmt: skip
    looked_at, left_alone = map(int, done.stderr.split())
    assert done.stdout.startswith(f"logtool {__version__}")
    assert looked_at < 1000 < 10_000 < left_alone


def test_no_garbage_is_looked_for_in_a_short_run(child_environment):
    code = (
        "import atexit, gc, sys; from logtool.__main__ import main; looked = [];"
        "gc.callbacks.append(lambda *_: looked.append(1));"
        "atexit.register(lambda: print(len(looked), gc.isenabled(), file=sys.stderr)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "explain", "batch/crc"],
        capture_output=True, text=True, check=True, env=child_environment(),
    )  # fmt: skip
    assert done.stderr.split() == ["0", "True"]


def loaded(line: list[str], child_environment: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command line, and print on stderr the modules that it has imported, and no more."""
    code = (
        "import io, sys; from logtool import cli; real = sys.stderr; sys.stderr = io.StringIO();"
        "status = cli.run(sys.argv[1:]); print(*sys.modules, file=real); sys.exit(status)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *line],
        capture_output=True, text=True, check=False, env=child_environment(),
    )  # fmt: skip


def test_only_the_module_of_the_command_is_imported(child_environment):
    # Each command runs in a fork of a process that has run none.
    code = """
import json, os, sys
from logtool import cli
for name in ["", *cli.COMMANDS]:
    sys.stdout.flush()
    if os.fork() == 0:
        cli.run([*name.split(), "--help"])
        print(json.dumps([name, *sys.modules]), file=sys.stderr, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env=child_environment(),
    )  # fmt: skip
    found = {name: set(modules) for name, *modules in map(json.loads, done.stderr.splitlines())}
    assert found.keys() == {"", *cli.COMMANDS}
    modules = {f"logtool.commands.{one.split()[0].replace('-', '_')}" for one in cli.COMMANDS}
    for name, imported in found.items():
        own = {f"logtool.commands.{name.split()[0].replace('-', '_')}"} if name else set()
        assert modules & imported == own, name


def test_the_help_of_the_program_says_of_each_command_what_its_docstring_says():
    program: Any = typer.main.get_command(cli.app)
    commands = program.commands
    first_lines = {name: command.help.splitlines()[0] for name, command in commands.items()}
    assert first_lines == cli.COMMANDS
    assert {name for name, command in commands.items() if command.hidden} == set(cli.HIDDEN)


def test_the_help_of_the_program_lists_the_sections_with_whole_summaries():
    program = typer.main.get_command(cli.app)
    with program.make_context(
        "logtool", [], max_content_width=80, terminal_width=80, resilient_parsing=True
    ) as context:
        text = context.get_help()
    places = [text.index(f"\n{title}:\n") for title in cli.SECTIONS]
    assert places == sorted(places)
    assert max(map(len, text.split("\n"))) <= 80
    words = " ".join(text.split())
    for names in cli.SECTIONS.values():
        assert all(f"{name} {summary}" in words for name, summary in names.items())


def test_the_sections_of_the_help_have_each_visible_command_once():
    names = [name for names in cli.SECTIONS.values() for name in names]
    assert len(names) == len(set(names)) == 40
    assert {*names, *cli.HIDDEN} == set(cli.COMMANDS)


def test_the_help_of_a_command_has_the_groups_of_its_options(run):
    titles = re.findall(r"^(\w+):$", run("recover", "--help").stdout, re.M)
    assert titles == ["Arguments", "Options", "Selection", "Limits", "Broker", "Safety", "Output"]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_a_command_fits_a_terminal_apart_from_lines_to_copy(run, name):
    wide = [line for line in run(*name.split(), "--help").lines if len(line) > 80]
    to_copy = re.compile(r" +(logtool |\{ )|  -.*<.+>$")  # or choices, which are not folded
    assert [line for line in wide if not to_copy.match(line)] == []


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_explains_itself_with_examples_and_exit_statuses(run, name, option):
    result = run(name, option)
    assert result.status == 0
    assert result.stdout.startswith(f"Usage: logtool {name} [OPTIONS]")
    assert f"  Examples:\n    logtool {name}" in result.stdout
    assert "  Exit status:\n    0  " in result.stdout
    assert result.stderr == ""


def test_the_program_lists_its_commands_and_hides_the_generator(run):
    text = run("--help").stdout
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert "generate" not in text


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(run, option):
    result = run(option)
    assert (result.status, result.stderr) == (0, "")
    first, *others = result.stdout.splitlines()
    assert first.split()[:2] == ["logtool", __version__]
    assert [line.split()[0] for line in others] == ["kernels", "CPython", "numpy"]
    assert others[2].split()[1] == numpy.__version__


def test_no_command_shows_the_help_on_stderr_and_is_wrong_usage(run):
    result = run()
    assert (result.status, result.stdout) == (2, "")
    assert "Usage: logtool" in result.stderr


WRONG = {
    "a mistyped command": (["verfy"], "'verify'"),
    "a mistyped option": (["dump", "--recrods", "x"], "--records"),
    "an abbreviated option": (["dump", "--rec", "x"], "--rec"),
    "a format that does not exist": (["dump", "-f", "jsonl", "x"], "jsonl"),
    "a format of another command": (["verify", "-f", "kafka", "x"], "kafka"),
    "no path": (["verify"], "PATH"),
    "an empty path": (["dump", ""], "PATH"),
    "two formats": (["dump", "--json", "-f", "csv", "x"], "--json"),
    "quiet and verbose": (["dump", "-q", "-v", "x"], "--quiet"),
    "--null alone": (["dump", "--null", "x"], "--files-from"),
    "a list that cannot be read": (["dump", "--files-from", "/nonexistent"], "/nonexistent"),
    "no offset range": (["dump", "--offset", "a..b", "x"], "--offset a..b"),
    "an offset range of nothing": (["dump", "--offset", "9..3", "x"], "empty"),
    "no time": (
        ["dump", "--timestamp", "2026-01-32..", "x"],
        "--timestamp 2026-01-32..",
    ),
    "a limit of nothing": (["dump", "--limit", "0", "x"], "--limit"),
    "a code that does not exist": (["explain", "batch/crcc"], "batch/crc"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_command_line_says_what_is_wrong_and_prints_no_data(run, name):
    line, message = WRONG[name]
    result = run(*line)
    assert (result.status, result.stdout) == (2, "")
    assert message in result.stderr
    assert "--help'." in result.stderr
    assert "Traceback" not in result.stderr


def test_a_wrong_command_line_cannot_write_controls_to_the_terminal(run):
    assert "\x1b" not in run("dump", "--\x1b[31m").stderr
    assert "\x1b" not in run("\x1b[31m").stderr
    assert "\x1b" not in run("explain", "\x1b[31m").stderr


def test_the_choices_of_a_missing_option_have_no_controls(run):
    result = run("remote", "verify", "objects")
    assert result.status == 2
    assert "\\t" not in result.stderr
    assert "aiven, local" in result.stderr


def test_typer_runs_the_same_application():
    result = CliRunner().invoke(cli.app, ["explain", "batch/crc"])
    assert (result.exit_code, "batch/crc: " in result.stdout) == (0, True)


@pytest.fixture
def broken(monkeypatch):
    def fail(*args):
        raise ZeroDivisionError("by \x1b[31mzero")

    monkeypatch.setattr(options.Printing, "settings", fail)


def test_a_bug_asks_for_a_report_without_a_traceback(run, broken):
    result = run("explain")
    assert (result.status, result.stdout) == (70, "")
    assert f"logtool {__version__}: ZeroDivisionError: by \\x1b[31m" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("option", ["-v", "--verbose"])
def test_a_bug_shows_its_traceback_with_v(run, broken, option):
    result = run("dump", option, "x")
    assert result.status == 70
    assert "Traceback" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_bug_in_the_middle_still_ends_with_a_summary_that_is_not_complete(run, log, monkeypatch):
    def fail(*args):
        raise ZeroDivisionError

    monkeypatch.setattr("logtool.dump.stream.read_content", fail)
    result = run("dump", "-f", "ndjson", log, log.with_suffix(".index"))
    assert result.status == 70
    assert result.objects[-1]["type"] == "summary"
    assert result.objects[-1]["complete"] is False


def test_ctrl_c_before_the_work_begins_is_status_130(run, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(explain_view, "catalogue", interrupted)
    result = run("explain")
    assert (result.status, result.stdout, result.stderr) == (130, "", "")


def test_ctrl_c_leaves_whole_lines_and_a_summary_that_is_not_complete(scenario, child_environment):
    status, lines, errors = interrupted(
        "dump", "-f", "ndjson", "--records", scenario("4.3.1/clean"),
        environment=child_environment(),
    )  # fmt: skip
    objects = [json.loads(line) for line in lines]
    assert status == 130
    assert (objects[-1]["type"], objects[-1]["complete"]) == ("summary", False)
    assert "Traceback" not in errors


@pytest.mark.parametrize("line", [["dump", "--records"], ["dump", "-f", "ndjson"], ["--help"]])
def test_a_closed_pipe_is_quiet(log, tmp_path, line, child_environment):
    paths = [] if line == ["--help"] else [str(log)] * 2000
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "logtool", *line, *paths],
        stdout=writing, stderr=subprocess.PIPE, env=child_environment(),
    )  # fmt: skip
    os.close(writing)
    os.close(reading)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (141, b"")


def test_a_full_disk_is_said_and_is_not_a_bug(log, child_environment):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "logtool", "dump", str(log)],
            stdout=full, stderr=subprocess.PIPE, env=child_environment(), check=False,
        )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr.count(b"\n") == 1
    assert b"No space left" in done.stderr


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["help"], ["--help"]),
        (["help", "plan"], ["plan", "--help"]),
        (["help", "watermark", "simulate"], ["watermark", "simulate", "--help"]),
    ],
)
def test_help_is_the_help_of_a_command(run, words, same):
    asked, expected = run(*words), run(*same)
    assert (asked.status, asked.stdout) == (0, expected.stdout)
    assert run("help", "nosuch").status == 2


def test_a_usage_error_fits_a_terminal(tmp_path):
    words = [sys.executable, "-m", "logtool", "plan", "--limits", "none", str(tmp_path)]
    status, shown = shown_on(60, words, os.environ | {"COLUMNS": "60"})
    assert (status, max(map(len, shown.splitlines())) <= 60) == (2, True)
