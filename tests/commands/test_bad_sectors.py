"""A disk that cannot read a part of one file: one line names file and byte, the rest is done."""

import errno
import mmap
import os
import shutil

import pytest
from bad_sectors import SECTOR, bad_sector

BAD = "codec-none-0/00000000000000000000.log"
AT = 2 * SECTOR
PLACE = f"{BAD}: byte {AT}: "


@pytest.fixture
def home(copy_of):
    """Return the log dir of a killed broker, with the metadata and a fourth of the partitions."""
    home = copy_of("4.3.1/killed")
    kept = {BAD.partition("/")[0], "__cluster_metadata-0"}
    others = [path for path in sorted(home.iterdir()) if path.is_dir() and path.name not in kept]
    for number, path in enumerate(others):
        if number % 4:
            shutil.rmtree(path)
    return home


READING = [
    ("verify",),
    ("doctor", "--max-duration", "10m"),
    ("verify", "--level", "records"),
    ("verify", "-j", "1"),
    ("dump", "--records"),
    ("stat",),
    ("stat", "--level", "records"),
    ("gaps",),
    ("gaps", "--level", "records"),
    ("txns",),
    ("plan",),
    ("recover",),
    ("watermark",),
    ("rebuild-index", "--all"),
    ("dump-index", "--join-log"),
]


def errors_of_the_disk(result):
    return [line for line in result.stderr.splitlines() if os.strerror(errno.EIO) in line]


def of_others(result):
    """Return the NDJSON objects of a run, without the partition of the bad sector and the sums.

    A finding about the recovery points of all partitions is a sum too.
    """
    sum_of_points = ("checkpoint/no-recovery-point", None)
    name = BAD.partition("/")[0]
    sums = {
        "summary",
        "total",
        "topic",
        "damage",
        "start",
        "high_watermark",
        "disk",
        "next",
        "transactions",
    }
    return [
        {key: value for key, value in obj.items() if key not in ("elapsed_s", "age_ms")}
        for obj in result.objects
        if obj["type"] not in sums
        and name not in str(obj)
        and "codec-none" not in str(obj)
        and (obj.get("code"), obj.get("topic")) != sum_of_points
    ]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_bad_sector_in_a_log_is_one_line_and_everything_else_is_done(home, run, words):
    (home / "recovery-point-offset-checkpoint").unlink()
    healthy = run(*words, "-f", "ndjson", home)
    with bad_sector(home / BAD, AT) as met:
        result = run(*words, "-f", "ndjson", home)
    assert met, "the sector was not read"
    assert result.status == 4
    (line,) = errors_of_the_disk(result)
    assert PLACE in line
    assert "Traceback" not in result.stderr
    assert result.objects[-1]["type"] == "summary"
    assert not result.objects[-1]["complete"]
    assert of_others(result) == of_others(healthy)


def test_a_bad_sector_stops_a_lookup_that_needs_it(copy_of, run):
    home = copy_of("4.3.1/killed")
    with bad_sector(home / BAD, AT) as met:
        result = run("lookup", "--offset", "300", (home / BAD).parent)
    assert met, "the sector was not read"
    assert result.status == 4
    (line,) = errors_of_the_disk(result)
    assert PLACE in line


def test_a_bad_sector_in_an_index_is_one_line_of_sanity(copy_of, run):
    home = copy_of("4.3.1/killed")
    path = next(path for path in sorted(home.rglob("*.txnindex")) if path.stat().st_size)
    with bad_sector(path, 0) as met:
        result = run("sanity", home)
    assert met, "the sector was not read"
    assert result.status == 4
    lines = errors_of_the_disk(result)
    assert lines
    assert all(f"{path}: byte 0: " in line for line in lines)


def test_a_mapped_index_that_loses_its_pages_ends_nothing(copy_of, run, watch, monkeypatch):
    """Reading a map of a file with a bad sector, or of a file cut meanwhile, raises SIGBUS."""
    home = copy_of("4.3.1/killed")
    path = next(path for path in sorted(home.rglob("*.index")) if path.stat().st_size)
    status, honest, lost = path.stat(), mmap.mmap, []

    def losing(fd, *rest):
        content = honest(fd, *rest)
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino):
            os.truncate(path, 0)
            watch.forget()
            lost.append(path)
        return content

    monkeypatch.setattr(mmap, "mmap", losing)
    result = run("sanity", "--mode", "eager", home)
    assert lost
    assert result.status == 4
    assert f"{path}: " in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "command", [("recover", "--full"), ("rebuild-index", "--all")], ids=" ".join
)
def test_nothing_is_applied_to_a_partition_with_a_bad_sector(copy_of, run, command):
    home = copy_of("4.3.1/killed")
    before = {path.name: path.read_bytes() for path in (home / BAD).parent.iterdir()}
    with bad_sector(home / BAD, AT):
        result = run(*command, "--apply", home)
    assert result.status == 4
    assert PLACE in result.stderr
    assert {path.name: path.read_bytes() for path in (home / BAD).parent.iterdir()} == before
