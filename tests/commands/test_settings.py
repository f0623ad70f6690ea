"""Settings of one's own: the command line before a variable, a variable before the file."""

import json
import os
import subprocess
import sys

import pytest

from logtool import cli
from logtool.commands.program import settings

HELP = ("-h", "--help")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Return a function that writes the file of settings, where it is looked for."""
    file = tmp_path / "config" / "logtool" / "config.toml"
    monkeypatch.delenv(settings.FILE_VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def write(text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


def explained(run, *options):
    """Return the format in which a command prints."""
    out = run("explain", *options, "batch/crc").stdout
    return "json" if out.startswith("{") else "csv" if out.startswith("code,") else "table"


def test_without_any_the_options_have_their_defaults(run, config):
    assert explained(run) == "table"


def test_the_line_counts_before_the_variable_and_that_before_the_file(run, config, monkeypatch):
    config('format = "json"')
    assert explained(run) == "json"
    monkeypatch.setenv("LOGTOOL_FORMAT", "csv")
    assert explained(run) == "csv"
    assert explained(run, "--format", "table") == "table"
    monkeypatch.setenv("LOGTOOL_FORMAT", "")
    assert explained(run) == "json", "an empty variable sets nothing"


def test_a_file_can_be_named_or_left_out(run, config, monkeypatch, tmp_path):
    config('format = "json"')
    other = tmp_path / "other.toml"
    other.write_text('format = "csv"')
    monkeypatch.setenv("LOGTOOL_CONFIG", str(other))
    assert explained(run) == "csv"
    monkeypatch.setenv("LOGTOOL_CONFIG", "")
    assert explained(run) == "table"


def test_the_file_is_looked_for_in_the_home_directory(run, config, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for xdg in ("", "relative/to/what"):
        monkeypatch.setenv("XDG_CONFIG_HOME", xdg)
        assert settings.path() == tmp_path / ".config" / "logtool" / "config.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    file = tmp_path / ".config" / "logtool" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('format = "json"')
    assert explained(run) == "json"


def test_a_user_without_a_home_has_no_file(child_environment):
    environment = child_environment(LOGTOOL_FORMAT="json")
    for name in ("HOME", "XDG_CONFIG_HOME", settings.FILE_VARIABLE):
        environment.pop(name, None)
    code = (  # once before, for what is imported may lie where this user cannot go
        "import os, sys; from logtool import cli; line = ['explain', 'batch/crc'];"
        "cli.run(line); os.geteuid() or os.setuid(54321); sys.exit(cli.run(line))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout.count('"schema": ')) == (0, 2), done.stderr


BAD = {
    "an unknown key": ("jobs = 2\n\njob = 3", ":3: unknown setting job;"),
    "a table": ('[verify]\nformat = "json"', ":1: unknown setting verify;"),
    "an unknown format": ('format = "xml"', ":1: format: "),
    "a format that one command has": ('format = "kafka"', ":1: format: "),
    "no number": ('\njobs = "many"', ":2: jobs: "),
    "no job": ("jobs = 0", ":1: jobs: "),
    "a truth for a number": ("jobs = true", ":1: jobs: "),
    "a rate that is no number": ('"max-rate" = "fast"', ":1: max-rate: "),
    "a rate that is a list": ("max-rate = [1]", ":1: max-rate: "),
    "neither true nor false": ('wide = "very"', ":1: wide: "),
    "no TOML": ("format = \n", "(at line 1, column 10)"),
    "consent to write": ("apply = true", ":1: unknown setting apply;"),
    "consent to a loss": ('accept-loss = "orders-0"', ":1: unknown setting accept-loss;"),
    "a directory to write to": ('undo-dir = "/tmp"', ":1: unknown setting undo-dir;"),
    "controls": ('"\\u001b[31m" = 1', "\\x1b[31m"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_one_line_with_file_and_line(run, config, log, name):
    text, place = BAD[name]
    file = config(text)
    result = run("verify", log)
    assert (result.status, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"logtool: {file}:"), line
    assert place in line


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("LOGTOOL_JOBS", "0", "LOGTOOL_JOBS: "),
        ("LOGTOOL_COLOR", "blue", "LOGTOOL_COLOR: "),
        ("LOGTOOL_MAX_RATE", "-1", "LOGTOOL_MAX_RATE: "),
        ("LOGTOOL_WIDE", "2", "LOGTOOL_WIDE: "),
        ("LOGTOOL_CONFIG", "/nonexistent/x.toml", " /nonexistent/x.toml"),
        ("LOGTOOL_CONFIG", "/", " /: Is a directory"),
    ],
)
def test_a_bad_variable_is_named(run, log, monkeypatch, variable, value, named):
    monkeypatch.setenv(variable, value)
    result = run("verify", log)
    assert (result.status, result.stdout) == (2, "")
    assert named in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_help_and_version_need_no_sound_settings(run, config):
    config("format = ")
    for line in (["--help"], ["--version"], ["verify", "--help"], ["checkpoint", "show", "-h"]):
        assert run(*line).status == 0
    assert run("verify").status == 2


def test_every_command_takes_those_that_it_has_an_option_for(run, config):
    """All at once, even where a command knows another set of formats."""
    config(
        'format = "ndjson"\ncolor = "never"\nwide = true\nprogress = false\njobs = 1\n'
        'max-rate = "1G"\nmax-batch-memory = "1M"\nread-rate = 1000000\n'
    )
    for name in cli.COMMANDS:
        words = name.split()
        for line in ([*words, *HELP[:1]], [*words, "--no-such-option"]):
            result = run(*line)
            assert "Invalid value" not in result.stderr, line
    assert "[default: ndjson]" in " ".join(run("verify", "--help").stdout.split())


def test_numbers_and_flags_arrive(run, config, scenario, monkeypatch):
    config('format = "ndjson"\nread-rate = "1M"')
    home = scenario("4.3.1/torn")
    (one,) = run("plan", home).of_type("duration")
    assert one["bytes_per_second"] == 1 << 20
    monkeypatch.setenv("LOGTOOL_READ_RATE", "2M")
    (one,) = run("plan", home).of_type("duration")
    assert one["bytes_per_second"] == 2 << 20
    (one,) = run("plan", "--read-rate", "3M", home).of_type("duration")
    assert one["bytes_per_second"] == 3 << 20


def test_an_option_of_another_name_counts_before_a_setting_too(run, config, log):
    config('format = "csv"\njobs = 2\nmax-rate = "1G"')
    assert run("verify", "--json", log).stdout.startswith("{")
    config('format = "json"')
    assert run("verify", "--csv-safe", "--format", "csv", log).stdout.startswith("severity,")
    config('jobs = 2\nmax-rate = "1G"')
    for engine in (["--engine", "spark"], ["--engine=spark"]):
        errors = run("verify", *engine, "--resume", "/nonexistent/state", log).stderr
        line = errors.splitlines()[0]
        assert ("--resume" in line, "--jobs" in line) == (True, False)


def test_the_groups_of_commands_take_them_too(run, config, scenario):
    config('format = "ndjson"')
    home = scenario("4.3.1/clean")
    assert run("checkpoint", "show", home).objects
    assert run("watermark", home).objects
    assert run("watermark", "simulate", "walk-through").objects


def components(run):
    found = json.loads(run("doctor", "--environment", "--json").stdout)["items"]
    return {one["name"]: one for one in found}


def test_the_doctor_shows_what_counts_and_where_it_comes_from(run, config, monkeypatch):
    file = config('jobs = 3\nformat = "csv"\n\nmax-rate = "1M"')
    monkeypatch.setenv("LOGTOOL_MAX_RATE", "2M")
    monkeypatch.setenv("LOGTOOL_MAXRATE", "2M")
    found = components(run)
    assert (found["settings"]["found"], found["settings"]["detail"]) == (True, str(file))
    jobs, rate, wide = (found[f"setting {name}"] for name in ("jobs", "max-rate", "wide"))
    assert (jobs["version"], f"{file}:1" in jobs["detail"]) == ("3", True)
    assert (rate["version"], "LOGTOOL_MAX_RATE" in rate["detail"]) == ("2M", True)
    assert (wide["found"], wide["version"]) == (False, None)
    assert found["LOGTOOL_MAXRATE"]["state"] == "warning"
    file.unlink()
    without = components(run)["settings"]
    assert (without["found"], str(file) in without["detail"]) == (False, True)
    config("jobs = 0")
    bad = components(run)["settings"]
    assert (bad["state"], "jobs: " in bad["detail"]) == ("error", True)


@pytest.mark.parametrize("text", [None, "jobs = 2"])
def test_nothing_is_imported_for_settings_that_are_not_there(tmp_path, child_environment, text):
    """TOML is read, and a size is parsed, where there is something to read."""
    home = tmp_path / "logtool"
    home.mkdir()
    if text:
        (home / "config.toml").write_text(text)
    code = (
        "import sys; from logtool import cli; cli.run(['verify']);print('tomllib' in sys.modules)"
    )
    environment = child_environment(XDG_CONFIG_HOME=str(tmp_path))
    del environment[settings.FILE_VARIABLE]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert done.stdout.split() == [str(bool(text))]


def test_the_tests_see_no_settings_of_their_user():
    assert os.environ[settings.FILE_VARIABLE] == ""
    assert settings.load() == {}
