"""The remedy of each finding, compared with what `recover` and `plan` do with the table of damage.

One row for each code runs always; the others are marked long.
"""

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damage_rows.rows import Row
from damage_rows.table import TABLE, log_dir_of
from verification import batches, log_dirs, verify

from logtool.checks import segment
from logtool.findings import Remedy, rule
from logtool.log.selection import Selection
from logtool.running.remedies import FILLED, Remedies

WRITTEN_BY_A_BROKER = {
    "checkpoint/negative-offset", "checkpoint/empty",
    "checkpoint/high-watermark-below-start", "checkpoint/high-watermark-behind",
    "checkpoint/recovery-point-behind", "checkpoint/cleaner-out-of-range",
    "checkpoint/unknown-partition", "checkpoint/no-recovery-point", "clean-shutdown/malformed",
    "partition/pending-delete",
}  # fmt: skip
"""Codes about files that a running broker writes or removes, and `recover` leaves as they are."""
JUDGED = {Remedy.BROKER, Remedy.RECOVER, Remedy.LOSS}
STOPS = {"checkpoint/version", "data-dir/duplicate-partition"}


def _codes(row: Row) -> set[str]:
    return {code for code, _, _ in row.expected}


def _judged(row: Row) -> bool:
    return any(rule(code).remedy in JUDGED for code in _codes(row)) and not _codes(row) & STOPS


NOT_COUNTED = {
    "a control batch with a bad count behind the snapshot of a clean log",
    "a control batch with a bad count behind a log that was killed",
}
"""Rows whose unsound batch gives no credible number of records: `recover` counts no lost record."""


def _rows() -> list[Any]:
    seen: set[str] = set()
    rows = []
    for row in filter(_judged, TABLE):
        new = {code for code in _codes(row) if rule(code).remedy in JUDGED} - seen
        seen |= new
        rows.append(pytest.param(row, id=row.id, marks=() if new else pytest.mark.long))
    return rows


def _sound(home: Path) -> Counter[tuple[str, int, int]]:
    """Return the sound batches of the segments by partition and offsets."""
    found: Counter[tuple[str, int, int]] = Counter()
    for log in home.rglob("*.log"):
        if re.fullmatch(r"\d{20}\.log", log.name):
            table = batches(log)
            for first, last in zip(table.base_offset, table.last_offset, strict=True):
                found[log.parent.name, int(first), int(last)] += 1
    return found


@pytest.mark.parametrize("row", _rows())
def test_recover_does_what_the_remedy_says(
    row: Row,
    scenario: Callable[[str], Path],
    run: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segment, "MAX_SEGMENT_SIZE", row.largest_log)
    home = log_dir_of(scenario, row.home, tmp_path / "log-dir")
    row.damage(home)
    dirs = log_dirs(home)
    remedy_of = {f.code: f.remedy for f in verify(*dirs).findings if f.code in _codes(row)}
    before, remedies = _sound(home), set(remedy_of.values())
    if Remedy.LOSS in remedies:
        status = 0 if row.id in NOT_COUNTED else 5
        assert run("recover", "--full", "--apply", *dirs).status == status
        assert _sound(home) == before
        return
    options = ["--full"] if Remedy.RECOVER in remedies else []
    planned = run("plan", "-f", "ndjson", *dirs).objects
    losing = [obj for obj in planned if obj["type"] == "action" and obj["lost_records"]]
    # A start with a bad offset index may hide batches, which the recovery makes readable again.
    assert [obj for obj in losing if obj["action"] != "hide"] == []
    assert run("recover", *options, "--apply", *dirs).status == 0
    assert not before - _sound(home)
    mended = {code for code, remedy in remedy_of.items() if remedy in JUDGED}
    left = {finding.code for finding in verify(*dirs).findings}
    assert not mended & left - WRITTEN_BY_A_BROKER


NOT_IN_THE_COPY = {
    "a high watermark behind the end",  # nothing is lost
    "zeros behind the last batch of a clean log",  # `recover --full` mends it
    "zeros behind the last batch of an inactive segment",
    "a log larger than a broker can open",
    "a control batch with a bad count behind the snapshot of a clean log",
    "a control batch with a bad count behind a log that was killed",
    "a damaged batch of records behind the snapshot of a clean log",
}
"""Rows whose damage stands behind the data that a copy has."""
FILLED_ROWS = [
    pytest.param(row, id=row.id)
    for row in TABLE
    if FILLED & _codes(row) and row.id not in NOT_IN_THE_COPY
]


@pytest.mark.parametrize("row", FILLED_ROWS)
def test_recover_fills_what_the_remedy_says(
    row: Row, scenario: Callable[[str], Path], run: Callable[..., Any], tmp_path: Path
) -> None:
    home = log_dir_of(scenario, row.home, tmp_path / "log-dir")
    copy = shutil.copytree(home, tmp_path / "copy", symlinks=True)
    row.damage(home)
    dirs = log_dirs(home)
    remedies = Remedies(dirs, Selection())
    wrong = [one for one in verify(*dirs).findings if one.code in FILLED & _codes(row)]
    for finding in wrong:
        remedies.add(finding)
    proposed = list(remedies.counts())
    assert {one.remedy for one in proposed} <= {Remedy.LOSS, Remedy.REPLICA}
    (command,) = {one.command for one in proposed}
    assert command
    words = shlex.split(command.replace(" COPY ", f" {copy} "))
    run(*words[1:], "--apply")
    assert not {one.code for one in wrong} & {one.code for one in verify(*dirs).findings}


CHECKPOINT_ROWS = [
    pytest.param(row, id=row.id)
    for row in TABLE
    if any(rule(code).remedy is Remedy.CHECKPOINT for code in _codes(row))
    # Damaged batches contradict any checkpoint.
    and not any(rule(code).remedy in (Remedy.LOSS, Remedy.REPLICA) for code in _codes(row))
]


@pytest.mark.parametrize("row", CHECKPOINT_ROWS)
def test_checkpoint_rebuild_does_what_the_remedy_says(
    row: Row, scenario: Callable[[str], Path], run: Callable[..., Any], tmp_path: Path
) -> None:
    home = log_dir_of(scenario, row.home, tmp_path / "log-dir")
    row.damage(home)
    dirs = log_dirs(home)

    def wrong() -> set[str]:
        return {f.code for f in verify(*dirs).findings if f.remedy is Remedy.CHECKPOINT}

    before, found = _sound(home), wrong()
    results = [run("checkpoint", "rebuild", "--apply", "-f", "ndjson", path) for path in dirs]
    # partition.metadata, where no other file of the log dir has the topic id.
    kept = [one for result in results for one in result.of_type("action")
            if one["action"] == "damaged"]  # fmt: skip
    assert {result.status for result in results} == ({0, 1} if kept else {0}) or len(dirs) == 1
    assert found
    left = {code for code in found & wrong() if not code.startswith("partition-metadata/")}
    assert not left
    assert bool(found & wrong()) == bool(kept)
    assert _sound(home) == before
