"""A broker serves converted segments of Redpanda: consumers read all records."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import redpanda_files as rp
from broker.command import succeed
from broker.conftest import runnable
from broker.consuming import consumed
from broker.install import KAFKA_4
from broker.kafka import Broker

pytestmark = pytest.mark.broker

CONFIG = {"log.cleaner.enable": "false", "log.retention.ms": "-1"}
PLACE = ("codec-none", 0)


def transaction(base: int, *, commit: bool) -> bytes:
    """Return a fence, two records and their marker: four Raft offsets."""
    fence = rp.batch(base, b"f", kind=rp.TX_FENCE, attributes=0x20, producer=(9, base, -1))
    data = rp.batch(base + 1, b"%d" % base, b"t", attributes=0x10, producer=(9, base, 0))
    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 4)
    marker = rp.a_record(0, value, key=key)
    end = rp.batch(base + 3, attributes=0x30, producer=(9, base, -1), body=marker, count=1)
    return fence + data + end


def test_a_broker_serves_what_was_converted(copy_of: Callable[[str], Path], tmp_path: Path) -> None:
    version = runnable(KAFKA_4)
    log_dir = copy_of(f"{version}/clean")
    segments = {
        "0-1-v1.log": rp.log(0, 4) + transaction(13, commit=True) + bytes(4096),
        "17-2-v1.log": rp.log(17, 200, size=500) + transaction(618, commit=False) + bytes(99),
    }
    folder = rp.data_dir(tmp_path / "redpanda", segments, PLACE[0])
    succeed("convert", "--to", "kafka", "--output", tmp_path / "kafka", folder)
    partition = tmp_path / "kafka" / "partitions" / "codec-none-0"
    logs = {path.name: path.read_bytes() for path in partition.glob("*.log")}
    served = log_dir / partition.name
    identity = (served / "partition.metadata").read_bytes()
    shutil.rmtree(served)
    shutil.copytree(partition, served)
    (served / "partition.metadata").write_bytes(identity)
    (log_dir / ".kafka_cleanshutdown").unlink()

    with Broker(version, [log_dir], CONFIG) as broker:
        broker.start()
        everything = consumed(broker, [PLACE], "read_uncommitted")[PLACE]
        committed = consumed(broker, [PLACE], "read_committed")[PLACE]
        broker.stop()

    # Each configuration has a Raft offset and no Kafka offset; a fence or a marker has both.
    data = [*range(12), 13, 14, *range(16, 616), 617, 618]
    assert [offset for offset, _, _ in everything] == data
    assert [offset for offset, _, _ in committed] == data[:-2]
    assert everything[12][1:] == (b"k", b"13")
    assert {path.name: path.read_bytes() for path in served.glob("*.log")} == logs
    succeed("convert", "--to", "redpanda", "--output", tmp_path / "back", partition)
    for name, content in segments.items():
        assert (tmp_path / "back/kafka/codec-none/0_22" / name).read_bytes() == content
