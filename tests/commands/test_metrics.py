"""The file of --metrics-file: the format, its values, and what a kill leaves."""

import re
from pathlib import Path

import pytest
from processes import killed_at
from prometheus_client.parser import text_string_to_metric_families

from logtool.commands.views.metrics import Metric, MetricsFile
from logtool.exits import Exit
from logtool.findings import catalogue
from logtool.running.summary import Summary

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
_SAMPLE = re.compile(rf"({_NAME.pattern})\{{((?:{_LABEL.pattern})(?:,{_LABEL.pattern})*)\}} (\S+)")
_ESCAPES = {r"\\": "\\", r"\n": "\n", r"\"": '"'}
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


def parsed(text: str) -> Samples:
    """Return the samples by the strict grammar of text-based format 0.0.4, gauges alone.

    The parser of Prometheus' own client, which is less strict, has to find the same.
    """
    found: Samples = {}
    assert text.endswith("\n")
    lines = text.splitlines()
    while lines:
        name = re.fullmatch(rf"# HELP ({_NAME.pattern}) .+", lines.pop(0))[1]
        assert lines.pop(0) == f"# TYPE {name} gauge"
        assert name not in found
        assert lines[0].startswith(f"{name}{{")
        found[name] = {}
        while lines and not lines[0].startswith("#"):
            sample = _SAMPLE.fullmatch(lines.pop(0))
            assert sample[1] == name
            labels = tuple(
                (key, re.sub(r'\\["\\n]', lambda one: _ESCAPES[one[0]], value))
                for key, value in _LABEL.findall(sample[2])
            )
            assert labels not in found[name]
            found[name][labels] = float(sample[sample.lastindex])
    assert found == {
        family.name: {tuple(one.labels.items()): one.value for one in family.samples}
        for family in text_string_to_metric_families(text)
        if family.type == "gauge"
    }
    return found


def value(samples: Samples, name: str, **labels: str) -> float:
    (found,) = [
        one
        for key, one in samples[f"logtool_{name}"].items()
        if labels.items() <= dict(key).items()
    ]
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "collector"
    folder.mkdir()
    return folder / "logtool.prom"


@pytest.mark.parametrize("text", ["", "a b", 'quo"te', "back\\slash", "a\nb", r"\n", '\\"', "é"])
def test_a_label_is_read_back_as_it_was(text: str) -> None:
    lines = Metric("logtool_x", "Text.", [({"code": text, "b": "2"}, 1.5)]).lines()
    assert parsed("".join(f"{line}\n" for line in lines)) == {
        "logtool_x": {(("code", text), ("b", "2")): 1.5}
    }


@pytest.mark.parametrize("command", ["verify", "watermark", "plan"])
def test_the_metrics_of_a_run(run, scenario, file: Path, command: str) -> None:
    found = run(command, "--metrics-file", file, "-f", "ndjson", scenario("4.3.1/killed"))
    samples = parsed(file.read_text())
    summary = found.objects[-1]
    assert {dict(key)["command"] for one in samples.values() for key in one} == {command}
    assert value(samples, "exit_status") == found.status
    assert value(samples, "complete") == 1
    assert value(samples, "partitions") == summary["partitions"] > 0
    assert value(samples, "checked_bytes") == summary["bytes"]
    assert value(samples, "last_success_timestamp_seconds") == value(
        samples, "last_run_timestamp_seconds"
    )
    by_severity = {one: value(samples, "run_findings", severity=one) for one in summary["findings"]}
    assert by_severity == summary["findings"]
    of_codes = samples.get("logtool_findings", {})
    assert {dict(key)["code"]: number for key, number in of_codes.items()} == summary["codes"]
    for key in map(dict, of_codes):
        assert key["severity"] == str(catalogue()[key["code"]].severity)
    assert file.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_run_that_is_not_complete_keeps_the_time_of_the_last_that_was(
    run, partition, file: Path
) -> None:
    run("verify", "--metrics-file", file, partition)
    before = value(parsed(file.read_text()), "last_success_timestamp_seconds")
    found = run("verify", "--metrics-file", file, partition, partition / "missing")
    samples = parsed(file.read_text())
    assert (found.status, value(samples, "exit_status"), value(samples, "complete")) == (4, 4, 0)
    assert value(samples, "last_success_timestamp_seconds") == before
    assert value(samples, "last_run_timestamp_seconds") >= before
    file.unlink()
    run("verify", "--metrics-file", file, partition / "missing")
    assert "logtool_last_success_timestamp_seconds" not in parsed(file.read_text())


def test_scrub_has_coverage_and_open_findings(run, damaged_log, file: Path, tmp_path: Path) -> None:
    home = damaged_log.parent
    words = ("scrub", "--state", tmp_path / "scrub.db", "--metrics-file", file, "--cycle", "1d")
    assert run(*words, home).status == 1
    samples = parsed(file.read_text())
    assert value(samples, "findings", code="batch/crc") == 1
    assert value(samples, "coverage_ratio", age="day") == 1
    assert value(samples, "coverage_ratio", age="never") == 0
    assert value(samples, "oldest_unchecked_age_seconds") == 0
    assert value(samples, "checked_bytes") == damaged_log.stat().st_size
    assert run(*words, "--max-duration", "0.000001s", home).status == 1
    assert value(parsed(file.read_text()), "findings", code="batch/crc") == 1


@pytest.mark.parametrize("command", ["verify", "plan", "watermark", "scrub"])
def test_a_place_in_a_log_dir_is_refused(run, scenario, tmp_path: Path, command: str) -> None:
    home = scenario("4.3.1/clean")
    words = (command, "--state", tmp_path / "s.db") if command == "scrub" else (command,)
    for folder in (home, home / "codec-none-0"):
        assert run(*words, "--metrics-file", folder / "a.prom", home).status == 5
    assert run(*words, "--metrics-file", tmp_path / "a.txt", home).status == 2


def test_a_file_that_cannot_be_written_is_incomplete(run, partition, tmp_path: Path) -> None:
    found = run("verify", "--metrics-file", tmp_path / "absent" / "a.prom", partition)
    assert found.status == 4
    assert str(tmp_path / "absent" / "a.prom") in found.stderr


def test_a_kill_at_any_moment_leaves_a_file_that_is_whole(file: Path) -> None:
    def write(bytes_read: int) -> None:
        summary = Summary(bytes=bytes_read, partitions=1)
        MetricsFile(file, "verify", []).write(summary, Exit.OK)

    number = kills = 0
    for before in (None, 1):
        number = 0
        while True:
            number += 1
            file.unlink(missing_ok=True)
            if before:
                write(before)
            died = killed_at(number, lambda: write(2), file.parent)
            if file.exists():
                assert value(parsed(file.read_text()), "checked_bytes") in (before, 2)
            write(3)
            assert value(parsed(file.read_text()), "checked_bytes") == 3
            if not died:
                break
            kills += 1
    assert kills >= 8
