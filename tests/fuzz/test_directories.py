"""A part of ``make mutate``: commands on mutated log dirs keep to the contract."""

import random
import signal

import pytest
from fuzz import directories


@pytest.mark.long
def test_commands_on_mutated_log_dirs_keep_to_the_contract(tmp_path):
    before = signal.getsignal(signal.SIGALRM)
    try:
        tally = directories.campaign(240, 7, tmp_path)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert tally.runs >= 240
    assert tally.broken == []
    assert tally.statuses[0] and tally.statuses[1] and tally.statuses[4]


def test_a_violation_of_the_contract_is_found(tmp_path):
    assert list(directories.problems((), 0, "fine\n")) == []
    assert list(directories.problems((), 70, "Traceback")) == ["status 70", "a traceback"]
    assert list(directories.problems((), 1, "\x1b[2J")) == ["control characters ['\\x1b']"]
    (tmp_path / "file").write_bytes(b"12345")
    before = directories.looks(tmp_path)
    (tmp_path / "file").write_bytes(b"12354")
    assert directories.looks(tmp_path) != before
    assert directories.mutate(random.Random(1), tmp_path)
