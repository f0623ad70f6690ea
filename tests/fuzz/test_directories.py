"""A part of ``make mutate``: commands on mutated log dirs keep to the contract."""

import json
import random
import struct

import pytest
from fuzz import directories, fields, mutated, mutated_report, mutations


@pytest.mark.long
def test_commands_on_mutated_log_dirs_keep_to_the_contract(tmp_path):
    found = directories.campaign(240, 7, tmp_path)
    runs = [run for one in found for run in one["runs"]]
    assert len(runs) >= 240
    assert [line for one in found for line in mutated_report.broken(one)] == []
    assert {run["status"] for run in runs} >= {0, 1, 4}
    # A campaign that goes on repeats nothing.
    assert directories.campaign(240, 7, tmp_path) == found


@pytest.mark.parametrize(
    ("words", "status", "out", "found"),
    [
        ((), 0, b"fine\n", []),
        ((), 70, b"", ["status 70", ""]),
        ((), -14, b"", ["signal 14"]),
        ((), 1, b"\x1b[2J", ["control characters ['\\x1b']"]),
        (("--color", "always"), 1, b"\x1b[1;31mx\x1b[0m", []),
        (("-f", "kafka"), 1, b"\x1b[2J", []),
    ],
)
def test_a_violation_of_the_contract_is_found(words, status, out, found):
    assert list(mutated.problems(("dump", *words), status, out, b"")) == found


@pytest.mark.parametrize("name", ["json", "ndjson"])
def test_json_that_does_not_parse_is_a_violation(name):
    (found,) = mutated.problems(("dump", "-f", name), 0, b'{"a":', b"")
    assert found.startswith(name)


def test_a_traceback_is_a_violation():
    assert list(mutated.problems(("dump",), 1, b"", b"Traceback (most")) == ["a traceback"]


def test_a_change_of_bytes_is_seen(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    before = mutated.looks(tmp_path)
    (tmp_path / "file").write_bytes(b"12354")
    assert mutated.looks(tmp_path) != before


@pytest.mark.parametrize("kind", sorted(mutations.KINDS))
def test_every_kind_of_change_changes_something(tmp_path, kind):
    home = tmp_path / "orders-0"
    home.mkdir()
    batch = struct.pack(">qiib", 0, 62 - 12, 0, 2) + bytes(45)
    (home / f"{0:020d}.log").write_bytes(batch)
    (home / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    before = mutated.looks(tmp_path)
    draw = random.Random(kind)
    for _ in range(9):
        if mutated.looks(tmp_path) == before:
            list(mutations.KINDS[kind](draw, tmp_path))
    assert mutated.looks(tmp_path) != before


@pytest.mark.parametrize("code", "bhiq")
def test_numbers_at_a_limit_fit(code):
    draw = random.Random(code)
    for _ in range(200):
        struct.pack(f">{code}", fields.at_a_limit(draw, code))


def test_the_report_counts_runs_by_command_and_status():
    runs = [
        {"words": ["dump", "x"], "status": 0, "problems": [], "peak": 1, "cpu": 0.1},
        {"words": ["checkpoint", "lint"], "status": 70, "problems": ["status 70"], "peak": 1,
         "cpu": 0.1},
    ]  # fmt: skip
    page = mutated_report.page(
        [{"directory": 3, "base": "b", "changes": ["dir-1: field: x"], "runs": runs}], 1
    )
    assert "| checkpoint lint | 1 | 0 | 1 |" in page
    assert "| 1 | status 70 |" in page
    assert "directory 3" in page


def test_a_line_that_was_cut_is_run_again(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text(json.dumps({"directory": 1}) + '\n{"direc')
    assert directories.done_before(kept) == [{"directory": 1}]
    assert kept.read_text() == '{"directory": 1}\n'
