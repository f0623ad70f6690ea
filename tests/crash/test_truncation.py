"""A truncation that is killed at any call: the recovery point comes down first, the log second.

KAFKA-615: "we may need to immediately fsync the file to avoid a case where we lose an entry in the
file and therefore think we have flushed more than we actually have."
"""

import pytest
from changes import failing
from crash import kills
from crash.commands_killed import JOBS, Command
from verification import batches

from logtool.apply import disk
from logtool.formats import offset_checkpoint

# From Python 3.12 on; the child only does what is tested here, and no thread is waited for.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
NAME, TO = "small-segments-0", 20
POINTS, MARKER = "recovery-point-offset-checkpoint", ".kafka_cleanshutdown"


@pytest.fixture
def command(scenario, tmp_path):
    return Command(JOBS["recover, truncated"], scenario("4.3.1/killed"), tmp_path)


def logs(log_dir):
    return {path.name: path.read_bytes() for path in sorted((log_dir / NAME).glob("*.log"))}


def point(log_dir):
    return offset_checkpoint.parse((log_dir / POINTS).read_bytes()).offsets["small-segments", 0]


def test_at_every_moment_the_recovery_point_is_no_further_than_what_is_left_for_good(command):
    command.begin()
    before, old = logs(command.log_dir), point(command.log_dir)
    whole = list(before)
    assert len(whole) == 3
    assert old > TO
    seen = []
    for number in range(1, command.calls() + 1):
        command.begin()
        assert kills.kill(command.run, number)
        now, low = logs(command.log_dir), point(command.log_dir) <= TO
        # What is left is the beginning of the log, with no hole in it.
        assert list(now) == whole[: len(now)]
        assert b"".join(before.values()).startswith(b"".join(now.values()))
        assert low or now == before, f"call {number}: the log was cut before the recovery point"
        # Its indexes and the producer state are shorter before it is: a start finds none too long.
        seen.append((low, len(now), len(now[whole[0]])))
    assert seen == sorted(seen, key=lambda state: (state[0], -state[1], -state[2]))
    size = len(before[whole[0]])
    stages = list(dict.fromkeys(seen))
    table = batches(command.log_dir / NAME / whole[0])
    assert stages == [
        (False, 3, size), (True, 3, size), (True, 2, size), (True, 1, size),
        (True, 1, int(table.position[-1] + table.size[-1])),
    ]  # fmt: skip


def test_the_recovery_point_is_durable_before_the_first_segment_is_touched(command, monkeypatch):
    synced, calls = [], []
    sync_dir = disk.sync_dir

    def noted(home, path):
        synced.append((len(calls), path))
        sync_dir(home, path)

    monkeypatch.setattr(disk, "sync_dir", noted)
    command.begin()
    with failing(0, lambda: None) as made:
        calls = made
        assert command.run() == 0
    segment = next(
        i for i, path in enumerate(made) if path.parent.name == NAME and path.suffix == ".log"
    )
    renamed = max(i for i, path in enumerate(made[:segment]) if path.name.startswith(POINTS))
    root = command.log_dir.resolve()
    assert any(renamed < at <= segment and path == root for at, path in synced)


def test_points_fall_then_the_log_is_cut_then_points_rise_and_the_marker_comes_last(
    scenario, tmp_path, monkeypatch
):
    """A kill at a call that changes something leaves the files as they were before the call."""
    command = Command(JOBS["recover, points fall and rise"], scenario("4.3.1/killed"), tmp_path)
    home, change, seen = command.log_dir, disk.change, []
    log = home / NAME / f"{77:020d}.log"

    def look():
        points = offset_checkpoint.parse((home / POINTS).read_bytes()).offsets
        falls, rises = points["small-segments", 0] < 114, points["codec-none", 0] == 360
        seen.append((falls, log.stat().st_size < 4073, rises, (home / MARKER).exists()))

    def noted(*arguments):
        look()
        return change(*arguments)

    command.begin()
    with failing(0, lambda: None):
        monkeypatch.setattr(disk, "change", noted)
        assert command.run() == 0
    look()
    stages = list(dict.fromkeys(seen))
    assert stages == [tuple(step < done for step in range(4)) for done in range(5)]
    with failing(0, lambda: None):
        assert command.undo() == [0]
    assert command.is_as_at_first()
