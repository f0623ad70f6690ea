import errno
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import give_up_rights

from logtool.disk import files
from logtool.errors import UnreadableError


def reason_of(path: Path, function=files.LogFile) -> str:
    with pytest.raises(UnreadableError) as caught:
        function(path)
    assert caught.value.path == path
    assert str(caught.value) == f"{path}: {caught.value.reason}"
    return caught.value.reason


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.fixture(autouse=True)
def _no_descriptor_is_left_open():
    gc.collect()  # which closes files of earlier tests
    before = open_descriptors()
    yield
    assert open_descriptors() == before


@pytest.fixture
def ten(tmp_path):
    path = tmp_path / "ten"
    path.write_bytes(b"0123456789")
    return path


def test_a_file_is_read_whole(ten):
    assert files.read_small(ten) == b"0123456789"


def test_an_empty_file_is_empty(tmp_path):
    (tmp_path / "empty").touch()

    assert files.read_small(tmp_path / "empty") == b""


def test_a_file_above_the_limit_is_refused_and_one_at_the_limit_is_not(ten):
    assert files.read_small(ten, 10) == b"0123456789"

    with pytest.raises(UnreadableError, match=r"\b10\b.*\b9\b"):
        files.read_small(ten, 9)


def test_a_symbolic_link_is_refused_even_if_it_dangles(ten, tmp_path):
    for target in (ten, tmp_path / "nowhere"):
        link = tmp_path / f"to-{target.name}"
        link.symlink_to(target)

        assert "symbolic link" in reason_of(link)


def test_a_link_in_the_middle_of_the_path_is_followed(ten, tmp_path):
    (tmp_path / "dir").symlink_to(tmp_path)

    assert files.read_small(tmp_path / "dir" / "ten") == b"0123456789"


@pytest.mark.timeout(10)
def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    assert "regular" in reason_of(tmp_path / "pipe")


def test_a_directory_and_a_device_are_refused(tmp_path):
    assert "regular" in reason_of(tmp_path)
    assert "regular" in reason_of(Path("/dev/null"))


def test_a_socket_is_refused(tmp_path):
    import socket

    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))

        assert reason_of(path)


def test_a_missing_file_is_reported_with_the_reason_of_the_system(ten, tmp_path):
    assert reason_of(tmp_path / "nothing") == os.strerror(errno.ENOENT)
    assert reason_of(ten / "below-a-file") == os.strerror(errno.ENOTDIR)
    assert reason_of(tmp_path / ("x" * 300)) == os.strerror(errno.ENAMETOOLONG)


def test_a_file_without_permission_is_reported(tmp_path):
    program = """
import pathlib, sys
from logtool.disk import files
from logtool.errors import UnreadableError
for function in (files.LogFile, files.read_small, files.list_dir):
    try:
        function(pathlib.Path(sys.argv[1]))
    except UnreadableError as error:
        print(error.reason)
"""
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    secret.chmod(0)

    done = subprocess.run(
        [sys.executable, "-c", program, str(secret)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=give_up_rights,
    )

    assert done.stdout.splitlines()[:2] == ["Permission denied"] * 2
    assert len(done.stdout.splitlines()) == 3


def test_bytes_are_read_at_positions(ten):
    with files.LogFile(ten) as file:
        buffer = bytearray(4)

        assert file.size == file.size_now() == 10
        assert file.read_into(memoryview(buffer), 3) == 4
        assert bytes(buffer) == b"3456"
        assert file.read_into(memoryview(buffer), 0) == 4
        assert bytes(buffer) == b"0123"


def test_a_read_across_the_end_returns_what_there_is(ten):
    with files.LogFile(ten) as file:
        for position in range(15):
            buffer = bytearray(4)

            count = file.read_into(memoryview(buffer), position)

            assert count == min(4, max(0, 10 - position))
            assert bytes(buffer[:count]) == b"0123456789"[position : position + 4]
            assert bytes(buffer[count:]) == bytes(4 - count)


def test_no_bytes_are_read_into_an_empty_buffer(ten):
    with files.LogFile(ten) as file:
        assert file.read_into(memoryview(b""), 0) == 0


def test_short_reads_of_the_system_are_continued(ten, monkeypatch):
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, views, at: whole(fd, [views[0][:3]], at))

    assert files.read_small(ten) == b"0123456789"


def test_a_file_that_shrinks_while_open_returns_less(ten):
    with files.LogFile(ten) as file:
        os.truncate(ten, 2)
        buffer = bytearray(10)

        assert file.size == 10
        assert file.size_now() == 2
        assert file.read_into(memoryview(buffer), 0) == 2


def test_a_file_that_grows_while_open_keeps_its_size(ten):
    with files.LogFile(ten) as file:
        with ten.open("ab") as more:
            more.write(b"more")

        assert file.size == 10
        assert file.size_now() == 14


def test_a_file_that_is_deleted_or_replaced_while_open_stays_the_one_opened(ten, tmp_path):
    with files.LogFile(ten) as file:
        (tmp_path / "other").write_bytes(b"other")
        (tmp_path / "other").rename(ten)
        buffer = bytearray(10)

        assert file.read_into(memoryview(buffer), 0) == 10
        assert bytes(buffer) == b"0123456789"


def test_an_error_of_the_disk_is_reported_with_the_path(ten, monkeypatch):
    def fails(*_):
        raise OSError(5, "Input/output error")

    with files.LogFile(ten) as file:
        monkeypatch.setattr(os, "preadv", fails)

        with pytest.raises(UnreadableError, match="Input/output error"):
            file.read_into(memoryview(bytearray(1)), 0)


def test_nothing_can_be_written_through_a_descriptor_and_reading_changes_no_file(ten):
    before = ten.stat()
    fd = files.open_readonly(ten)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(fd, b"x")
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)

    after = ten.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)


def test_entries_of_a_directory_are_sorted_and_a_missing_one_is_reported(tmp_path):
    for name in ("b", "a", "c d", "ü"):
        (tmp_path / name).touch()

    assert [entry.name for entry in files.list_dir(tmp_path)] == ["a", "b", "c d", "ü"]
    assert reason_of(tmp_path / "nothing", files.list_dir) == os.strerror(errno.ENOENT)
    assert reason_of(tmp_path / "a", files.list_dir) == os.strerror(errno.ENOTDIR)


def test_names_that_are_no_utf_8_are_listed_and_opened(tmp_path):
    name = os.fsdecode(b"\xff\xfe.log")
    (tmp_path / name).write_bytes(b"x")

    (entry,) = files.list_dir(tmp_path)

    assert files.read_small(Path(entry.path)) == b"x"
