"""Groups, replicas and index checks of Redpanda's directories."""

import shutil
import struct
from pathlib import Path

import pytest
import redpanda_files as rp

PLAIN = rp.batch(0, b"config", kind=rp.CONFIGURATION) + rp.batch(
    1,
    body=rp.records(
        rp.commit(b"g", b"orders", 0, 5),
        rp.commit(b"g", b"orders", 7, 1),
        rp.commit(b"far", b"orders", 0, 99),
    ),
    count=3,
)


@pytest.fixture
def groups_of(run, tmp_path):
    """Return a function that reads a log of offsets, next to a log of 12 offsets for clients."""

    def read(log: bytes, *options: object) -> object:
        data = tmp_path / "data"
        if not data.exists():
            rp.data_dir(tmp_path, {"0-1-v1.log": rp.log(0, 4) + bytes(4096)})
        folder = data / "kafka" / "__consumer_offsets" / "3_9"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "0-1-v1.log").write_bytes(log + bytes(4096))
        return run("groups", "-f", "ndjson", *options, data)

    return read


def offsets(found) -> dict[tuple[str, str, int], tuple[int, int | None]]:
    return {
        (one["group"], one["topic"], one["partition"]): (one["offset"], one["lag"])
        for one in found.of_type("offset")
    }


def test_lag_is_counted_in_kafka_offsets(groups_of):
    found = groups_of(PLAIN)
    assert found.status == 1
    assert found.objects[0]["flavour"] == "redpanda"
    # Of the 13 Raft offsets one is no Kafka offset.
    assert offsets(found) == {
        ("g", "orders", 0): (5, 7), ("g", "orders", 7): (1, None), ("far", "orders", 0): (99, -87),
    }  # fmt: skip
    (finding,) = found.of_type("finding")
    assert finding["code"] == "group/offset-beyond-end"


def test_a_commit_counts_once_its_transaction_is_committed(groups_of):
    log = PLAIN + rp.prepared(4, 70, b"g", (b"orders", 0, 9, b"why"), (b"new", 1, 3, None))
    open_one = groups_of(log)
    assert offsets(open_one)["g", "orders", 0] == (5, 7)
    assert [one["offset"] for one in open_one.of_type("pending")] == [9, 3]
    committed = groups_of(log + rp.ended(5, 70, b"g", commits=True))
    assert offsets(committed)["g", "orders", 0] == (9, 3)
    assert offsets(committed)["g", "new", 1] == (3, None)
    assert not committed.of_type("pending")
    aborted = groups_of(log + rp.ended(5, 70, b"g", commits=False))
    assert offsets(aborted)["g", "orders", 0] == (5, 7)
    history = groups_of(log + rp.ended(5, 70, b"g", commits=True), "--history", "g")
    events = [(one["event"], one["offset"]) for one in history.of_type("event")]
    assert events == [
        ("commit", 5), ("commit", 1), ("transactional-commit", 9), ("transactional-commit", 3),
        ("committed", None),
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_offsets_of_a_transaction_that_are_not_whole_are_reported(groups_of, cut):
    value = struct.pack("<bi", 0, 1) + b"g" + struct.pack("<qhqi", 70, 0, 5, 2)
    value += struct.pack("<i", 6) + b"orders" + struct.pack("<iqib", 0, 9, -1, 0)
    found = groups_of(PLAIN + rp.of_transaction(4, 70, 14, value[:-cut]))
    assert found.status == 1
    assert found.of_type("finding")
    assert offsets(found)["g", "orders", 0] == (5, 7)


def test_no_lag_is_shown_where_kafka_offsets_are_not_known(groups_of, tmp_path):
    groups_of(PLAIN)
    folder = tmp_path / "data" / "kafka" / "orders" / "0_22"
    log = bytearray((folder / "0-1-v1.log").read_bytes())
    log[200] ^= 1
    (folder / "0-1-v1.log").write_bytes(log)
    found = groups_of(PLAIN)
    assert found.status == 4
    assert offsets(found)["g", "orders", 0] == (5, None)
    assert f"{folder}: " in found.stderr
    assert "damaged" in found.stderr
    (folder / "0-1-v1.log").unlink()
    (folder / "9-1-v1.log").write_bytes(rp.log(9, 4))
    found = groups_of(PLAIN)
    assert found.status == 4
    assert offsets(found)["g", "orders", 0] == (5, None)
    assert "kvstore" in found.stderr
    assert "9" in found.stderr.replace(str(tmp_path), "")


def test_the_older_form_of_groups_is_refused(run, tmp_path):
    rp.data_dir(tmp_path, {"0-1-v1.log": rp.log()})
    old = tmp_path / "data" / "kafka_internal" / "group" / "0_3"
    old.mkdir(parents=True)
    (old / "0-1-v1.log").write_bytes(rp.log())
    found = run("groups", tmp_path / "data")
    assert found.status == 4
    assert "__consumer_offsets" in found.stderr


def test_groups_are_those_of_the_same_log_of_kafka(run, scenario, tmp_path):
    home = scenario("4.3.1/running")
    logs = sorted(home.glob("__consumer_offsets-*/*.log"))
    out = tmp_path / "out"
    assert run("convert", "--to", "redpanda", "--output", out, *logs).status in (0, 1)
    (out / ".redpanda_data_dir").touch()
    keys = ("group", "topic", "partition", "offset", "metadata", "commit_ms", "expires_ms")
    of_kafka, of_redpanda = (
        sorted(
            tuple(one[key] for key in keys)
            for one in run("groups", "-f", "ndjson", path).of_type("offset")
        )
        for path in (home, out)
    )
    assert of_kafka == of_redpanda
    assert len(of_kafka) == 6


def test_what_redpanda_cuts_at_its_start_may_have_been_acknowledged(run, tmp_path):
    sound = rp.data_dir(tmp_path / "a", {"0-1-v1.log": rp.log(0, 4), "13-2-v1.log": rp.log(13, 4)})
    shutil.copytree(tmp_path / "a" / "data", tmp_path / "b" / "data")
    log = tmp_path / "b" / "data" / "kafka/orders/0_22/13-2-v1.log"
    data = bytearray(log.read_bytes())
    data[rp.positions(bytes(data))[2] + 70] ^= 1
    log.write_bytes(data)
    alone = run("watermark", "-f", "ndjson", sound.parents[2])
    assert alone.status == 0, alone.stderr
    (replica,) = alone.of_type("replica")
    assert (replica["log_end_offset"], replica["leader_epoch"]) == (26, 2)
    assert replica["high_watermark"] is replica["committed_offset"] is None
    cut = run("watermark", tmp_path / "b" / "data")
    assert cut.status == 1
    assert "9 records" in cut.stderr
    assert "high watermark" in cut.stderr
    both = run("watermark", "-f", "ndjson", f"1={tmp_path}/a/data", f"2={tmp_path}/b/data")
    (group,) = both.of_type("group")
    assert (group["furthest"], group["committed_offset"]) == (1, 17)


def test_a_majority_decides_what_is_committed(run, tmp_path):
    logs = {1: (4, 2, 4), 2: (4, 2, 1), 3: (6, 0, 0)}
    given = []
    for node, (first, term, second) in logs.items():
        segments = {"0-1-v1.log": rp.log(0, first)}
        segments |= {f"13-{term}-v1.log": rp.log(13, second)} if term else {}
        folder = rp.data_dir(tmp_path / str(node), segments)
        given.append(f"{node}={folder.parents[2]}")
    found = run("watermark", "--leader", 2, "-f", "ndjson", *given)
    (group,) = found.of_type("group")
    assert (group["furthest"], group["least_in_sync"], group["committed_offset"]) == (1, 2, 17)
    cuts = {one["follower"]: one["by_leader_epoch"] for one in found.of_type("truncation")}
    assert cuts == {1: 17, 3: 13}
    assert group["acknowledged_lost"] == 0
    assert run("watermark", "--leader", 3, *given).status == 1


def test_the_checks_of_a_start_of_redpanda_are_timed(run, tmp_path):
    segments = {"0-1-v1.log": rp.log(0, 4), "13-1-v1.log": rp.log(13, 4)}
    folder = rp.data_dir(tmp_path, segments)
    (folder / "0-1-v1.base_index").write_bytes(rp.index(0, 12, (0, 0), (7, 5)))
    (folder / "13-1-v1.base_index").write_bytes(rp.index(13, 25, (0, 0), (0, 9)))
    sound = run("sanity", "-f", "ndjson", folder.parents[2])
    (measured,) = sound.of_type("measurement")
    assert (measured["mode"], measured["files_opened"]) == ("eager", 2)
    (seen,) = sound.of_type("finding")
    assert (seen["code"], seen["seen_by"]) == ("base-index/order", "neither")
    (folder / "0-1-v1.base_index").write_bytes(rp.index(0, 12, (0, 0))[:-1])
    bad = run("sanity", "-f", "ndjson", folder)
    assert bad.status == 1
    seen_by = {one["code"]: one["seen_by"] for one in bad.of_type("finding")}
    assert seen_by == {"base-index/unreadable": "lazy", "base-index/order": "neither"}
    refused = run("sanity", "--mode", "lazy", folder)
    assert refused.status == 2
    assert "--mode" in refused.stderr


def test_what_lies_in_no_known_directory_is_no_log_of_redpanda(run, tmp_path: Path):
    for command in ("groups", "watermark", "sanity"):
        assert run(command, tmp_path / "nowhere").status == 4
