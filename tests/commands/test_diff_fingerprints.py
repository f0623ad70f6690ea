"""Fingerprints of partitions: the hash, and the result of a comparison with kept ones."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from damage import damage_file, flip
from processes import without_rights
from verification import logs, small_log_dir

TOPIC = "small-segments-0"


@pytest.fixture
def home(scenario: Any, tmp_path: Path) -> Path:
    """Return a log dir with two partitions."""
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "log", TOPIC, "codec-none-0")


@pytest.fixture
def kept(run: Any, home: Path, tmp_path: Path) -> Path:
    """Return a file with the fingerprints of that log dir."""
    path = tmp_path / "kept.ndjson"
    path.write_text(run("diff", "--fingerprint", "-f", "ndjson", home).stdout)
    return path


def checked(run: Any, kept: Path, *paths: Path) -> tuple[int, dict[str, str]]:
    """Return the exit status, and the statuses of the partitions."""
    result = run("diff", "--check", kept, "-f", "ndjson", *paths)
    found = result.of_type("fingerprint")
    return result.status, {f"{one['topic']}-{one['partition']}": one["status"] for one in found}


def by_hand(partition: Path) -> str:
    """Return the hash by the fields of Kafka's ``DefaultRecordBatch``."""
    digest = hashlib.sha256()
    for path in logs(partition):
        data, at = path.read_bytes(), 0
        while at < len(data):
            base, size, epoch, _, crc, _, delta = struct.unpack_from(">qiibIhi", data, at)
            digest.update(struct.pack("<4q", base, base + delta, epoch, crc))
            at += 12 + size
    return digest.hexdigest()


def test_the_hash_covers_every_batch(run: Any, home: Path) -> None:
    result = run("diff", "--fingerprint", "-f", "ndjson", home)
    assert result.status == 0
    found = {f"{one['topic']}-{one['partition']}": one for one in result.of_type("fingerprint")}
    assert {name: one["sha256"] for name, one in found.items()} == {
        name: by_hand(home / name) for name in (TOPIC, "codec-none-0")
    }
    one = found[TOPIC]
    assert (one["first_offset"], one["last_offset"], one["log_end_offset"]) == (0, 899, 900)
    assert (one["status"], one["kept_sha256"]) == (None, None)


def test_a_partition_in_other_segments_is_the_same(run: Any, home: Path, kept: Path) -> None:
    first, second, *_ = logs(home / TOPIC)
    first.write_bytes(first.read_bytes() + second.read_bytes())
    second.unlink()
    assert checked(run, kept, home) == (0, {TOPIC: "same", "codec-none-0": "same"})


def _drop_beginning(partition: Path) -> None:
    logs(partition)[0].unlink()


def _drop_end(partition: Path) -> None:
    logs(partition)[-1].unlink()


def _lower_epoch(partition: Path) -> None:
    """Change a field that no CRC covers."""
    damage_file(logs(partition)[-1], lambda data: flip(data, 15))


def _replace_topic(partition: Path) -> None:
    path = partition / "partition.metadata"
    path.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (_drop_beginning, "begins-later"),
        (_drop_end, "shorter"),
        (_lower_epoch, "changed"),
        (_replace_topic, "other-topic-id"),
        (shutil.rmtree, "absent"),
    ],
)
def test_a_changed_partition_has_a_status(
    run: Any, home: Path, kept: Path, change: Any, status: str
) -> None:
    change(home / TOPIC)
    assert checked(run, kept, home) == (1, {TOPIC: status, "codec-none-0": "same"})


def test_later_batches_and_other_partitions_are_no_change(
    run: Any, home: Path, tmp_path: Path
) -> None:
    last = logs(home / TOPIC)[-1]
    aside = last.rename(tmp_path / last.name)
    shutil.move(home / "codec-none-0", tmp_path)
    kept = tmp_path / "kept.json"
    kept.write_text(run("diff", "--fingerprint", "--json", home).stdout)
    aside.rename(last)
    shutil.move(tmp_path / "codec-none-0", home)
    assert checked(run, kept, home) == (0, {TOPIC: "longer", "codec-none-0": "new"})


def test_of_a_partition_dir_only_its_own_fingerprint_is_checked(
    run: Any, home: Path, kept: Path
) -> None:
    assert checked(run, kept, home / TOPIC) == (0, {TOPIC: "same"})


def test_nothing_is_absent_from_a_log_dir_that_cannot_be_read(
    run: Any, kept: Path, tmp_path: Path
) -> None:
    assert checked(run, kept, tmp_path / "nosuch") == (4, {})


@pytest.mark.parametrize("name", ["00000000000000000000.log", "00000000000000000869.log", "."])
def test_a_partition_that_cannot_be_read_is_not_called_changed(
    home: Path, kept: Path, name: str
) -> None:
    (home / TOPIC / name).chmod(0)
    status, stdout, _ = without_rights("diff", "--check", kept, "-f", "ndjson", home)
    (home / TOPIC).chmod(0o755)
    found = [one for one in map(json.loads, stdout.splitlines()) if one["type"] == "fingerprint"]
    assert status == 4
    assert {one["topic"]: one["status"] for one in found} == {
        "small-segments": "unread", "codec-none": "same",
    }  # fmt: skip


def test_later_batches_need_not_be_read_for_the_same_hash(
    run: Any, home: Path, tmp_path: Path
) -> None:
    last = logs(home / TOPIC)[-1]
    aside = last.rename(tmp_path / last.name)
    kept = tmp_path / "kept.json"
    kept.write_text(run("diff", "--fingerprint", "--json", home / TOPIC).stdout)
    aside.rename(last)
    last.chmod(0)
    status, stdout, _ = without_rights("diff", "--check", kept, "-f", "ndjson", home / TOPIC)
    found = [one for one in map(json.loads, stdout.splitlines()) if one["type"] == "fingerprint"]
    assert status == 4
    assert [(one["status"], one["unread"]) for one in found] == [("same", True)]


def test_damage_is_reported_with_the_fingerprint(run: Any, home: Path) -> None:
    damage_file(logs(home / TOPIC)[0], lambda data: flip(data, 100))
    result = run("diff", "--fingerprint", "-f", "ndjson", home)
    assert result.status == 1
    assert [one["damaged_ranges"] for one in result.of_type("fingerprint")] == [0, 1]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b'{"type": "summary"}\n',
        b'{"type": "fingerprint", "topic": "a"}\n',
        b'{"items": [{"type": "fingerprint", "topic": "a", "partition": true}]}',
        b"[1]",
    ],
)
def test_a_file_of_anything_else_is_refused(
    run: Any, home: Path, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "kept"
    path.write_bytes(content)
    result = run("diff", "--check", path, home)
    assert (result.status, len(result.stderr.splitlines())) == (4, 1)


def test_one_question_at_a_time(run: Any, home: Path, kept: Path) -> None:
    assert run("diff", "--check", kept, "--identical", home).status == 2
    assert run("diff", "--fingerprint", "--digest", kept, home).status == 2
