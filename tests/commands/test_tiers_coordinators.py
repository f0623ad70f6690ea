"""`groups` and `txns` on logs of which a part is in remote storage: the answers of whole logs."""

import json
import shutil
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from remote_events import EventLog, segment_id
from verification import small_log_dir

from logtool.formats import leader_epoch_checkpoint, partition_metadata

GROUPS = ("__consumer_offsets-0", "__consumer_offsets-1", "groups.input-0", "groups.input-1")
TRANSACTIONS = (
    "__transaction_state-0", "__transaction_state-1", "tx-interleaved_v2-0", "tx-interleaved_v2-1",
    "tx.mixed-0",
)  # fmt: skip


@pytest.fixture
def log_dir(scenario, tmp_path):
    """Return a function: a log dir with partitions that a broker wrote, and no metadata log."""

    def made(*names):
        return small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", *names)

    return made


def batches(log: Path) -> list[tuple[int, int, bytes]]:
    """Return the batches of a log with their first and last offsets."""
    data, ends = log.read_bytes(), [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 12 + struct.unpack_from(">i", data, ends[-1] + 8)[0])
    found = []
    for first, end in pairwise(ends):
        (base,) = struct.unpack_from(">q", data, first)
        (delta,) = struct.unpack_from(">i", data, first + 23)
        found.append((base, base + delta, data[first:end]))
    return found


def copied(home: Path, name: str, log: EventLog, *, keeps: bool) -> None:
    """Copy the first half of a log to remote storage; the rest too, unless it `keeps` that."""
    folder, bucket = home / name, home.parent / "bucket"
    topic, _, number = name.rpartition("-")
    topic_id = partition_metadata.parse((folder / "partition.metadata").read_bytes()).topic_id
    assert topic_id
    log.of = {"name": topic, "id": topic_id, "partition": int(number)}
    target = bucket / f"{name}-{topic_id}"
    target.mkdir(parents=True)
    found = [one for path in sorted(folder.glob("*.log")) for one in batches(path)]
    rows = leader_epoch_checkpoint.parse((folder / "leader-epoch-checkpoint").read_bytes()).epochs
    half = len(found) // 2
    for at, part in enumerate((found[:half], found[half:])):
        data = b"".join(batch for *_, batch in part)
        base, last = part[0][0], part[-1][1]
        if at and keeps:
            for path in folder.glob("0*"):
                path.unlink()
            (folder / f"{base:020d}.log").write_bytes(data)
            return
        key = len(log.batches) + 1
        (target / f"{base:020d}-{segment_id(key)}.log").write_bytes(data)
        until = [row for row in rows if row[1] <= last]
        name_of = f"{base:020d}-{segment_id(key)}.leader_epoch_checkpoint"
        content = leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(until))
        (target / name_of).write_bytes(content)
        after = [first for _, first in until[1:]] + [last + 1]
        own = [(epoch, max(first, base)) for (epoch, first), end in zip(until, after, strict=True)
               if end > base]  # fmt: skip
        log.copy(key, first=base, last=last, size=len(data), epochs=own)
    shutil.rmtree(folder)


def tiered(home: Path, names, *, keeps: bool) -> Path:
    """Copy partitions to remote storage; return its folder."""
    log = EventLog()
    for name in names:
        copied(home, name, log, keeps=keeps)
    log.write(home)
    return home.parent / "bucket"


CHANGING = ("path", "segments", "age_ms", "log_dir")
"""Fields with places, ages, and the number of segments."""


def plain(value):
    """Return a value of JSON without the fields that change."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in CHANGING}
    return [plain(one) for one in value] if isinstance(value, list) else value


def answer(found, *kinds):
    """Return the objects of some types."""
    return sorted(json.dumps(plain(one)) for one in found.objects if one["type"] in kinds)


@pytest.mark.parametrize("keeps", [True, False], ids=["in part", "alone"])
def test_groups_of_offsets_in_remote_storage(run, log_dir, keeps):
    home = log_dir(*GROUPS)
    whole = run("groups", "-f", "ndjson", home)
    expected = answer(whole, "group", "offset")
    assert expected
    prefix = tiered(home, GROUPS, keeps=keeps)
    found = run("groups", "-f", "ndjson", home, prefix)
    assert (answer(found, "group", "offset"), found.status) == (expected, whole.status)
    without = run("groups", "-f", "ndjson", home)
    assert answer(without, "group", "offset") != expected


@pytest.mark.parametrize("keeps", [True, False], ids=["in part", "alone"])
def test_transactions_in_remote_storage(run, log_dir, keeps):
    home = log_dir(*TRANSACTIONS)
    whole = run("txns", "--all", "-f", "ndjson", home)
    kinds = ("producer", "transaction", "coordinator")
    expected = answer(whole, *kinds)
    assert expected
    prefix = tiered(home, TRANSACTIONS, keeps=keeps)
    found = run("txns", "--all", "-f", "ndjson", home, prefix)
    assert answer(found, *kinds) == expected
    assert found.of_type("summary")[0]["complete"]
    # The copies have no transaction index.
    assert {one["code"] for one in found.of_type("finding")} == {"transaction-index/missing-entry"}


def test_transactions_of_a_broker_with_remote_storage(run, copy_of):
    home = copy_of("tiered/4.3.1")
    given = ("txns", "--all", "-f", "ndjson", "--topic", "aborted")
    whole = run(*given, home / "data")
    kinds = ("partition", "producer", "transaction")
    for path in (home / "data" / "aborted-0").glob("0*"):
        if int(path.name[:20]) < 10:
            path.unlink()
    found = run(*given, home / "data", home / "objects")
    assert (answer(found, *kinds), found.status) == (answer(whole, *kinds), 0)
    shutil.rmtree(home / "data" / "aborted-0")
    alone = run(*given, home / "data", home / "objects")
    transactions = {one["first_offset"]: one["state"] for one in whole.of_type("transaction")}
    assert {one["first_offset"]: one["state"] for one in alone.of_type("transaction")} == {
        first: state for first, state in transactions.items() if first < 18
    }
    assert [one["code"] for one in alone.of_type("finding")] == []
