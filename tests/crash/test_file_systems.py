"""Every command with --apply on real file systems: full, read-only, bound, with shared blocks.

Where nothing may be mounted, the same tests run with errors that are made up, and with plain
copies. The property `file_system` of each test names the file system in the report.
"""

import re
import shutil

import pytest
from changes import everything
from crash import mounts
from crash.commands_killed import JOBS, Command

every_job = pytest.mark.parametrize("name", JOBS)
LINE = re.compile(r"logtool: (?P<path>/\S+): (?P<reason>[^;]+)(; .+)?")


@pytest.fixture
def source(scenario):
    return scenario("4.3.1/killed")


def assert_one_line(path, reason):
    """Check that one line names a file and why it could not be written."""
    lines = [line for line in path.read_text().splitlines() if reason in line]
    assert len(lines) == 1, path.read_text()
    assert LINE.fullmatch(lines[0]), lines[0]
    assert "Traceback" not in path.read_text()


@every_job
def test_a_full_disk_is_one_line_and_the_rest_is_done_when_there_is_room(
    source, tmp_path, name, record_property
):
    errors = tmp_path / "errors"
    record_property("file_system", "tmpfs" if mounts.may_mount() else "made up")
    with mounts.small_disk(tmp_path / "disk", 24 << 20) as disk:
        command = Command(JOBS[name], source, disk)
        statuses = []
        for call, room in ((1, 0), (2, 8192), (4, 32768)):
            command.begin()
            with mounts.full(disk, room, call):
                status = command.run(errors)
            statuses.append(status)
            if status:
                assert status == 4, errors.read_text()
                assert_one_line(errors, "No space left on device")
                # Once there is room, the same command ends it, and all can be taken back.
                assert command.run() == 0
            assert command.looks() == command.done
            assert set(command.undo()) <= {0}
            assert command.is_as_at_first(but_for_its_time=True)
        assert statuses[0] == 4


@every_job
def test_a_read_only_log_dir_is_one_line_and_stays_as_it_is(
    source, tmp_path, name, record_property
):
    errors = tmp_path / "errors"
    record_property("file_system", "bind, ro" if mounts.may_mount() else "made up")
    command = Command(JOBS[name], source, tmp_path)
    command.begin()
    before = everything(command.log_dir)
    with mounts.read_only(command.log_dir):
        assert command.run(errors) == 4
    assert_one_line(errors, "Read-only file system")
    assert everything(command.log_dir) == before
    assert command.run() == 0
    assert command.looks() == command.done


@every_job
def test_what_shares_its_blocks_keeps_every_byte(source, tmp_path, name, record_property):
    with mounts.copies_share_blocks(tmp_path) as (disk, kind):
        record_property("file_system", kind)
        command = Command(JOBS[name], source, disk)
        command.begin()
        mounts.clone(command.log_dir, disk / "snapshot", kind)
        before = everything(disk / "snapshot")
        assert command.run() == 0
        assert command.looks() == command.done
        assert everything(disk / "snapshot") == before
        assert set(command.undo()) <= {0}
        assert everything(disk / "snapshot") == before
        assert command.is_as_at_first(but_for_its_time=True)
        shutil.rmtree(disk / "snapshot")
