"""The last line begins with the inputs that could not be read."""

import pytest


@pytest.fixture
def unreadable(partition):
    """Return a log dir whose only log cannot be opened."""
    log = partition / f"{0:020d}.log"
    away = log.rename(partition.parent.parent / "away.log")
    log.symlink_to(away)
    return partition.parent


@pytest.mark.parametrize(
    "command",
    ["verify", "plan", "recover", "gaps", "rebuild-index", "txns", "dump"],
)
def test_the_last_line_begins_with_what_could_not_be_read(run, unreadable, command):
    result = run(command, unreadable)
    assert result.status == 4
    last = result.stderr.splitlines()[-1]
    assert last.startswith("incomplete, 1 input "), last
