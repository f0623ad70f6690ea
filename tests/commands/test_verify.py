import csv
import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from processes import interrupted

from logtool.commands.views import verify as view
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity, catalogue
from logtool.running.run import Progress
from logtool.running.summary import Summary
from logtool.schemas.tables import FINDING
from logtool.verify import Level

LOG = Path("/data/orders-0/00000000000000000000.log")


def code_of(severity: Severity) -> str:
    """Return some code of that severity."""
    return next(code for code, rule in catalogue().items() if rule.severity is severity)


ERROR = Finding(
    "batch/crc", "CRC-32C does not match", position=4096, length=120, first_offset=7,
    last_offset=9, path=LOG, topic="orders", partition=0, segment=0,
    next="logtool dump /data/orders-0/00000000000000000000.log --offset 7..9",
)  # fmt: skip
WARNING = Finding(code_of(Severity.WARNING), "is inconsistent", path=LOG)
INFO = Finding(code_of(Severity.INFO), "is worth knowing", path=LOG)
UNREADABLE = UnreadableError(Path("/data/other"), "Permission denied")


class Fake:
    """An engine with the findings that a test gives it."""

    found: tuple[Any, ...] = ()
    too_large: tuple[Any, ...] = ()
    read_in_part: ClassVar[dict[Path, int]] = {}
    last: "Fake"

    def __init__(
        self, paths, *, level, selection, budget, limit, on_progress, static, node_ids, flavour
    ):
        self.arguments = paths, level, selection
        self.budget, self.limit, self.static = budget, limit, static
        Fake.last = self
        self.on_progress = on_progress
        self.summary = Summary(partitions=1, segments=2, batches=3, records=4, bytes=5 << 20)

    def __iter__(self):
        for item in self.found:
            self.on_progress(Progress(1, 2, LOG))
            if isinstance(item, BaseException) and not isinstance(item, UnreadableError):
                raise item
            self.summary.add(item)
            yield item


@pytest.fixture
def verify(run, monkeypatch):
    """Return a function: `logtool verify` with an engine that finds the given."""
    monkeypatch.setattr(view, "Verification", Fake)

    def verified(found, *options):
        monkeypatch.setattr(Fake, "found", tuple(found))
        return run("verify", *options, "/data")

    return verified


STATUSES = {
    "nothing": ([], [], 0),
    "info": ([INFO], [], 0),
    "a warning": ([WARNING], [], 1),
    "an error": ([ERROR], [], 1),
    "info, and it counts": ([INFO], ["--fail-on", "info"], 1),
    "a warning, and only errors count": ([WARNING], ["--fail-on", "error"], 0),
    "an error, and only errors count": ([ERROR], ["--fail-on", "error"], 1),
    "an input that cannot be read": ([UNREADABLE], [], 4),
    "an error and an input that cannot be read": ([ERROR, UNREADABLE], [], 4),
    "ctrl-c": ([KeyboardInterrupt()], [], 130),
    "ctrl-c after an error": ([ERROR, KeyboardInterrupt()], [], 130),
    "a bug": ([ZeroDivisionError()], [], 70),
}


@pytest.mark.parametrize("format", ["table", "json", "ndjson", "csv", "tsv", "markdown"])
@pytest.mark.parametrize("name", STATUSES)
def test_the_verdict_is_the_exit_status(verify, name, format):
    found, options, status = STATUSES[name]
    assert verify(found, "-f", format, *options).status == status


@pytest.mark.parametrize("name", STATUSES)
def test_the_last_line_is_always_a_summary(verify, name):
    found, options, status = STATUSES[name]
    last = verify(found, "-f", "ndjson", *options).objects[-1]
    assert (last["type"], last["complete"]) == ("summary", status in (0, 1))
    document = json.loads(verify(found, "--json", *options).stdout)
    assert document["summary"]["complete"] is (status in (0, 1))


def test_a_finding_is_one_line_and_an_error_says_what_a_broker_does_and_what_is_next(verify):
    result = verify([ERROR, WARNING])
    assert result.lines[0] == f"ERROR    batch/crc  {LOG} @4096  {ERROR.message}"
    assert f"next: {ERROR.next}" in result.lines[1]
    assert result.lines[2] == f"WARNING  {WARNING.code}  {LOG}  {WARNING.message}"
    assert len(result.lines) == 3


def test_infos_are_counted_by_code_unless_asked_for(verify):
    result = verify([INFO] * 3)
    assert result.stdout == ""
    assert f"{INFO.code}  x3  {catalogue()[INFO.code].title}" in result.stderr
    assert len(verify([INFO] * 3, "-v").lines) == 3
    assert len(verify([INFO] * 3, "-f", "ndjson").of_type("finding")) == 3


def test_an_info_that_occurs_once_has_its_place(verify):
    assert f"info     {INFO.code}  {INFO.path}" in verify([INFO]).stderr
    assert f"{INFO.path}" not in verify([INFO] * 2).stderr
    placed = replace(INFO, position=7)
    assert f"info     {INFO.code}  {INFO.path} @7  {INFO.message}\n" in verify([placed]).stderr


def test_the_last_line_for_people_is_the_verdict(verify):
    result = verify([ERROR, ERROR, WARNING, INFO])
    verdict = result.stderr.splitlines()[-1]
    counts = [
        "2 errors",
        "1 warning",
        "1 info",
        "1 partition",
        "2 segments",
        "3 batches",
        "5.0 MiB",
    ]
    assert [one for one in counts if one not in verdict] == []
    assert re.search(r"^Next:\n  logtool dump .* --offset 7\.\.9$", result.stderr, re.M)
    assert verify([]).stderr.startswith("no errors, no warnings")
    assert "no warnings, 1 info" in verify([INFO]).stderr
    assert "incomplete, 1 input" in verify([UNREADABLE]).stderr
    assert "interrupted: 1 error" in verify([ERROR, KeyboardInterrupt()]).stderr


def test_quiet_leaves_the_findings_and_the_errors(verify):
    result = verify([ERROR, UNREADABLE], "-q")
    assert len(result.lines) == 2
    assert result.stderr == "logtool: /data/other: Permission denied\n"


def test_quiet_counts_the_warnings_that_it_does_not_show(verify):
    few = verify([WARNING] * 3, "-q")
    assert len(few.lines) == 3
    many = verify([WARNING] * 5, "-q")
    assert (len(many.lines), many.stderr) == (4, "")
    assert {WARNING.code, "x5"} <= set(many.lines[-1].split())
    assert " (2 " in many.lines[-1]
    limited = verify([ERROR] * 5, "-q", "--max-findings", 1)
    assert limited.lines[-1].split()[0] == "4"
    for form in ("ndjson", "csv"):
        objects = verify([WARNING] * 5, "-q", "-f", form).lines
        assert len(objects) == 6, "each warning, and the summary or the heading"


def test_max_findings_limits_what_is_printed_and_not_what_is_counted(verify):
    result = verify([ERROR] * 5, "--max-findings", 2, "-f", "ndjson")
    assert len(result.of_type("finding")) == 2
    assert result.objects[-1]["findings"]["error"] == 5
    assert "3 more findings" in result.stderr
    assert verify([ERROR] * 5, "--max-findings", 0).stdout == ""
    assert verify([INFO, ERROR], "--max-findings", 1).lines[0].startswith("ERROR")


def test_a_finding_in_json_has_every_key_of_the_contract(verify):
    (finding, *_) = verify([ERROR], "-f", "ndjson").objects
    assert finding.pop("schema") == "logtool.verify/1"
    assert finding == FINDING.row(ERROR)
    (error, _) = verify([UNREADABLE], "-f", "ndjson").objects
    assert (error["type"], error["path"], error["message"]) == (
        "error", "/data/other", "Permission denied",
    )  # fmt: skip


def test_csv_and_markdown_are_tables_of_findings(verify):
    result = verify([ERROR, INFO, UNREADABLE], "-f", "csv")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["code"] for row in rows] == ["batch/crc", INFO.code]
    assert rows[0]["next"] == ERROR.next
    assert verify([ERROR], "-f", "markdown").lines[0].startswith("| severity")


def test_a_message_cannot_write_controls_to_the_terminal(verify):
    bad = Finding("batch/crc", "\x1b[31m\nERROR", path=Path("/x/\x1b]0;pwn\x07"), next="\x1b")
    result = verify([bad])
    assert "\x1b" not in result.stdout + result.stderr
    assert len(result.lines) == 2


def test_the_engine_gets_level_and_selection(verify):
    verify([], "--level", "records", "--topic", "a*", "--topic", "b", "--exclude-topic", "c",
           "--partition", 3)  # fmt: skip
    paths, level, selection = Fake.last.arguments
    assert (paths, level) == ([Path("/data")], Level.RECORDS)
    assert (selection.topics, selection.exclude_topics) == (("a*", "b"), ("c",))
    assert selection.partitions == (3,)
    verify([])
    assert Fake.last.arguments[1] is Level.BATCHES


def test_ctrl_c_in_a_real_run_is_130_and_not_complete(scenario, child_environment):
    home = scenario("4.3.1/clean")
    status, lines, errors = interrupted(
        "verify", "-v", "-f", "ndjson", home, environment=child_environment()
    )
    assert (status, json.loads(lines[-1])["complete"]) == (130, False)
    assert "interrupted: " in errors


@pytest.mark.parametrize("level", ["quick", "batches", "records"])
def test_what_a_broker_left_in_order_is_clean(run, scenario, level):
    result = run("verify", "--level", level, scenario("4.3.1/clean"))
    assert (result.status, result.stdout) == (0, "")


def test_a_flipped_bit_is_found(run, scenario, tmp_path):
    home = tmp_path / "copy"
    shutil.copytree(scenario("4.3.1/clean"), home)
    log = home / "codec-none-0" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    result = run("verify", home)
    assert result.status == 1
    assert result.lines[0].startswith(f"ERROR    batch/crc  {log} @")
    (command,) = re.findall(r"^Next:\n  logtool (.*)$", result.stderr, re.M)
    assert run(*command.split()).status == 1, "the command that is proposed works"


def test_what_needs_more_than_a_whole_run_is_named_with_the_command_for_it(copy_of, run, tmp_path):
    home = copy_of("4.3.1/killed") / "codec-none-0"
    memory = tmp_path / "memory.json"
    result = run("verify", "--max-duration", "0.000001s", "--resume", memory, home)
    log = home / "00000000000000000000.log"
    assert result.status == 6
    assert f"{log} (" in result.stderr
    assert f"{log}: " in result.stderr
    assert f"  logtool verify {log}\n" in result.stderr


def test_a_log_dir_and_its_copy_are_one_finding(run, copy_of, tmp_path):
    """The replicas of a partition are in two log dirs of one broker only by mistake."""
    first = copy_of("4.3.1/killed")
    second = shutil.copytree(first, tmp_path / "second")

    def twice(*paths: str) -> list[dict[str, Any]]:
        items = json.loads(run("verify", "--format", "json", *paths).stdout)["items"]
        kinds = ("data-dir/duplicate-partition", "meta-properties/duplicate-id")
        return [one for one in items if one["code"] in kinds]

    command = f"logtool diff {first} {second}"
    for names in ((f"{first}", f"{second}"), (f"1={first}", f"1={second}")):
        (one,) = twice(*names)
        assert (one["path"], one["topic"], one["next"]) == (str(second), None, command)
        assert one["broker"] == "refuses-to-start"
    table = run("verify", first, second).stderr
    assert command in table
    assert "logtool explain data-dir/duplicate-partition" not in table
    assert twice(f"1={first}", f"2={second}") == []
    planned = run("plan", "-f", "ndjson", first, second)
    assert [one["path"] for one in planned.of_type("action") if one["action"] == "refuse"] == [
        str(second)
    ]
    (diff,) = [one for one in planned.of_type("summary")[0]["next"] if " diff " in one]
    assert run(*shlex.split(diff)[1:]).status == 0


def test_the_partitions_of_a_log_dir_that_is_no_copy_stay_one_by_one(run, copy_of, tmp_path):
    first = copy_of("4.3.1/killed")
    second = shutil.copytree(first, tmp_path / "second")
    for name in ("codec-none-0", "tx.mixed-0"):
        shutil.rmtree(second / name)
    assert len(refusals(run, first, second)) == 1
    for name in ("codec-gzip-0", "small-segments-0"):
        shutil.rmtree(first / name)
    found = refusals(run, first, second)
    live = [one.name for one in first.iterdir() if (second / one.name).is_dir()
            and not one.name.endswith("-delete")]  # fmt: skip
    assert len(found) == len(live)


def refusals(run, *paths):
    """Return the places at which a start of these log dirs stops because something is twice."""
    items = json.loads(run("verify", "--format", "json", *paths).stdout)["items"]
    return [one["path"] for one in items if one["code"] == "data-dir/duplicate-partition"]


def test_log_dirs_of_different_ids_are_judged_as_different_brokers(run, copy_of, tmp_path):
    first = copy_of("4.3.1/killed")
    second = shutil.copytree(first, tmp_path / "second")

    def codes(*paths: str) -> set[str]:
        result = run("verify", "--format", "json", *paths)
        return {one["code"] for one in json.loads(result.stdout)["items"]}

    apart = codes(f"1={first}", f"2={second}")
    assert "data-dir/duplicate-partition" not in apart
    assert apart == codes(f"{first}")
