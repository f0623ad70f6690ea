"""Directories that wait for their deletion, in `plan` and `recover`."""

from pathlib import Path

import pytest
from changes import everything
from crc32c import crc32c

from logtool.formats import record

RECORDS = [record.Record(number, number, b"key", b"value") for number in range(5)]
GOING = f"orders-0.{'c' * 32}-delete"


def log_dir(home: Path, name: str, batch: bytes) -> Path:
    """Write a log dir with one partition dir and return it."""
    (home / name).mkdir(parents=True)
    (home / name / f"{0:020d}.log").write_bytes(batch)
    for kind in ("recovery-point", "replication"):
        (home / f"{kind}-offset-checkpoint").write_text("0\n1\norders 1 0\n")
    return home


@pytest.fixture
def too_far(make_batch) -> bytes:
    """Return a batch whose last offset is too large for its segment, and one behind it."""
    batch = bytearray(make_batch(30, RECORDS))
    batch[23:27] = (2**31 - 1).to_bytes(4, "big")
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch) + make_batch(35, RECORDS)


def test_what_waits_for_its_deletion_is_no_loss(run, tmp_path, too_far):
    home = log_dir(tmp_path / "data", GOING, too_far)
    assert run("plan", home).status == 1
    planned = run("recover", "-f", "ndjson", home)
    assert planned.status == 1
    (one,) = (one for one in planned.of_type("partition") if one["path"].endswith("-delete"))
    assert (one["lost_records"], one["lost_bytes"]) == (0, 0)
    cut, purge = (
        one for one in planned.of_type("action") if one["action"] in ("truncate", "purge")
    )
    assert (cut["action"], cut["lost_records"], cut["position"]) == ("truncate", 0, 0)
    assert (purge["path"], purge["length"]) == (str(home / GOING), len(too_far))
    before = everything(home)
    assert run("recover", "--apply", "--undo-dir", tmp_path / "undo", home).status == 0
    assert run("plan", home).status == 0
    assert run("undo", "--apply", tmp_path / "undo").status == 0
    assert everything(home) == before


def test_the_same_damage_in_a_partition_is_a_loss(run, tmp_path, too_far):
    home = log_dir(tmp_path / "data", "orders-0", too_far)
    assert run("recover", "--apply", home).status == 5


def test_plan_shows_what_is_deleted_with_a_sound_directory(run, tmp_path, make_batch):
    batch = make_batch(0, RECORDS)
    home = log_dir(tmp_path / "data", GOING, batch)
    planned = run("plan", "-f", "ndjson", home)
    assert planned.status == 0
    (purge,) = (one for one in planned.of_type("action") if one["action"] == "purge")
    assert (purge["path"], purge["length"]) == (str(home / GOING), len(batch))
