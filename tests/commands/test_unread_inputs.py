"""Files and directories that a user may not read: they are no damage, and no run is complete."""

import json
import shlex
import shutil

import pytest
from processes import without_rights
from verification import logs, small_log_dir

CLOSED, UNREAD = "codec-gzip-0", "codec-none-0"


@pytest.fixture
def data(scenario, tmp_path):
    """Return a log dir with a partition dir that cannot be listed, and a log that cannot be read.

    The directory may be removed again.
    """
    names = (CLOSED, UNREAD, "codec-zstd-0", "__cluster_metadata-0")
    data = small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", *names)
    copy = shutil.copytree(data, tmp_path / "copy")
    assert logs(copy / CLOSED)
    (data / CLOSED).chmod(0)
    logs(data / UNREAD)[0].chmod(0)
    yield data
    (data / CLOSED).chmod(0o755)


def objects(*words):
    status, stdout, _ = without_rights(*words, "-f", "ndjson")
    assert status == 4
    return [json.loads(line) for line in stdout.splitlines()]


def test_a_copy_that_cannot_be_read_is_not_damaged_nor_behind(data):
    found = objects("diff", data, data.parent / "copy")
    (one,) = (
        each for each in found if each["type"] == "partition" and each["topic"] == "codec-none"
    )
    expected = str(data / UNREAD)
    assert (one["status"], one["unread"], one["damaged"], one["behind"], one["fixes"]) == (
        "unread", [expected], [], [], [],
    )  # fmt: skip


def test_a_fingerprint_says_that_the_log_was_not_read(data):
    found = objects("diff", "--fingerprint", data)
    (one,) = (each for each in found if each.get("path") == str(data / UNREAD))
    assert (one["damaged_ranges"], one["unread"]) == (0, True)


def test_a_log_that_cannot_be_read_may_hold_a_marker(data):
    found = objects("txns", data)
    states = {
        one["topic"]: (one["damaged"], one["unread"]) for one in found if one["type"] == "partition"
    }
    assert states["codec-none"] == (False, True)
    assert states["codec-zstd"] == (False, False)


@pytest.mark.parametrize("command", ["retention", "space", "recover"])
def test_the_last_line_says_that_it_is_not_all(data, command):
    status, _, stderr = without_rights(command, data)
    assert status == 4
    assert stderr.splitlines()[-1].startswith("incomplete, ")


def test_a_log_dir_that_cannot_be_listed_is_named(data):
    home = data.parent / "broker"
    inner = home / "one"
    inner.mkdir(parents=True)
    inner.chmod(0)
    found = objects("doctor", home)
    inner.chmod(0o755)
    (proposed,) = (one for one in found if one["type"] == "next")
    assert shlex.split(proposed["command"]) == ["ls", "-ld", str(inner)]
    assert [one["path"] for one in found if one["type"] == "error"] == [str(inner)]
