"""``logtool salvage`` and ``verify`` on a disk that fails: a file system that withholds some bytes.

Where the system lets no test mount one, `bad_sectors` alone takes its place: see test_salvage.py.
"""

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from failing_disk import failing_disk, may_mount
from log_dir_damage import new_batch
from salvage_campaign import batches

from logtool.repair import disk_image

LOG = f"{0:020d}.log"
SECTOR, PAGE = 512, 4096
DISKS = ["FUSE"] if may_mount() else []


@pytest.fixture
def orders(tmp_path):
    """Return a partition dir with a log that is large enough to be mapped."""
    folder = tmp_path / "sound" / "orders-0"
    folder.mkdir(parents=True)
    rng = random.Random(1)
    batches = [new_batch(n, rng.randbytes(rng.randrange(4000)), epoch=0) for n in range(900)]
    (folder / LOG).write_bytes(b"".join(batches))
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return folder


def command(*words):
    """Run logtool in a process of its own: a signal that it does not expect ends that alone."""
    done = subprocess.run(
        [sys.executable, "-m", "logtool", *map(str, words)],
        capture_output=True, check=False, timeout=120, text=True,
    )  # fmt: skip
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def salvage(path, output, *more):
    status, objects, said = command("salvage", "-f", "ndjson", "--output", output, *more, path)
    assert status in (0, 1), said
    found = [one for one in objects if one["type"] == "image"]
    missing = [
        disk_image.parse(Path(), Path(one["map"]).read_bytes(), one["length"]) for one in found
    ]
    return objects, *missing


def untouched(log, missing):
    """Return the batches of which the disk gives every byte."""
    return [
        data
        for at, data in batches(log)
        if not any(first < at + len(data) and at < first + size for first, size in missing)
    ]


def saved(output):
    return [data for _, data in batches(output / "partitions/orders-0" / LOG)]


@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize("at", [0, 3 * PAGE + 5 * SECTOR, 1_300_001])
def test_what_a_real_failing_disk_does_not_give_is_skipped_and_a_second_run_asks_for_less(
    orders, tmp_path, at, disk
):
    log = orders / LOG
    there = tmp_path / disk / "orders-0"
    page, sector = at - at % PAGE, at - at % SECTOR
    with failing_disk(orders, there, {LOG: range(at, at + 1)}):
        objects, missing = salvage(there, tmp_path / "first")
        verified = command("verify", "-f", "ndjson", there)
        again, fewer = salvage(there, tmp_path / "second", "--retry", tmp_path / "first")
    assert missing == ((page, PAGE),)
    assert saved(tmp_path / "first") == untouched(log, missing)
    (reject,) = [one for one in objects if one["type"] == "reject"]
    image = bytearray(log.read_bytes())
    image[page : page + PAGE] = bytes(PAGE)
    kept = bytes(image[reject["position"] : reject["position"] + reject["length"]])
    assert reject["kind"] == "unreadable"
    assert Path(reject["target"]).read_bytes() == kept
    assert reject["sha256"] == hashlib.sha256(kept).hexdigest()
    status, _, said = verified
    assert status == 4
    assert f"{there / LOG}: byte {page}: " in said
    assert fewer == ((sector, SECTOR),)
    assert saved(tmp_path / "second") == untouched(log, fewer)
    assert [one["unread"] for one in again if one["type"] == "image"] == [SECTOR]
