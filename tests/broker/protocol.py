"""Requests to one broker that no client library sends, such as for the offsets of its replica.

ListOffsets and Fetch have their last version without tagged fields, see ``ListOffsetsRequest.json``
and ``FetchRequest.json``. A broker answers them for any partition that it hosts. Two more requests
send a batch of a fenced producer, and the end of a transaction of transaction version 2.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from broker.install import HarnessError
from deadlines import deadline_in

from logtool.formats import record, record_batch

_LIST_OFFSETS, _FETCH, _PRODUCE, _END_TRANSACTION = (2, 5), (1, 11), (0, 3), (26, 5)
"""Request and version."""
_DEBUGGING_REPLICA = -2
"""``ListOffsetsRequest.DEBUGGING_REPLICA_ID``: a broker that does not lead returns the log end."""
_CONSUMER = -1
_LATEST, _EARLIEST = -1, -2
_NOT_HOSTED = frozenset({3, 6, 9})
"""Codes of ``Errors.java``: unknown topic or partition, not leader or follower, replica not
available."""


class NotHostedError(HarnessError):
    """A broker has no replica of the partition, or not yet."""


@dataclass(frozen=True)
class Offsets:
    """The offsets that a running broker reports for its replica."""

    log_start: int
    high_watermark: int
    last_stable: int
    log_end: int
    leader_epoch: int
    """Epoch of the current or last leader that this broker knows."""


def offsets(bootstrap: str, topic: str, partition: int = 0, patience: float = 60) -> Offsets:
    """Return the offsets of the replica on one broker; raise HarnessError without a replica.

    A broker answers a moment before it hosts the partitions on its disks, so the request is
    repeated for ``patience`` seconds.
    """
    deadline = deadline_in(patience)
    while True:
        try:
            return _offsets(bootstrap, topic, partition)
        except NotHostedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _offsets(bootstrap: str, topic: str, partition: int) -> Offsets:
    end, epoch = _list_offset(bootstrap, topic, partition, _LATEST)
    body = struct.pack(">iiiibii", _CONSUMER, 0, 0, 1, 0, 0, -1)
    # A fetch of version 11 and later names a rack, and so may be answered by a follower.
    start, _ = _list_offset(bootstrap, topic, partition, _EARLIEST)
    asked = struct.pack(">iiqqi", partition, -1, start, -1, 1)
    body += _one_topic(topic, asked) + struct.pack(">i", 0) + _text("")
    answer = _Answer(_exchange(bootstrap, _FETCH, body))
    _, error, _, _ = answer.take(">ihii")
    _fine(error, "fetch")
    answer.text()
    _, _, error, watermark, stable, log_start = answer.take(">iihqqq")
    _fine(error, "fetch")
    return Offsets(log_start, watermark, stable, end, epoch)


def produce(bootstrap: str, topic: str, transactional_id: str | None, batch: bytes) -> None:
    """Have the leader of partition 0 append a batch, of a transaction without the coordinator.

    A broker that verifies transactions with their coordinator refuses it.
    """
    records = struct.pack(">ii", 0, len(batch)) + batch
    name = struct.pack(">h", -1) if transactional_id is None else _text(transactional_id)
    body = name + struct.pack(">hi", -1, 30_000) + _one_topic(topic, records)
    answer = _Answer(_exchange(bootstrap, _PRODUCE, body))
    answer.take(">i")
    answer.text()
    _, _, error = answer.take(">iih")
    _fine(error, "produce")


def commit_in_version_2(
    bootstrap: str, transactional_id: str, producer_id: int, producer_epoch: int
) -> None:
    """Have the coordinator commit a transaction and raise the epoch with it (KIP-890).

    The coordinator answers after its decision. The version of the request selects KIP-890.
    """
    name = transactional_id.encode()
    body = b"\0" + bytes([len(name) + 1]) + name
    body += struct.pack(">qh?", producer_id, producer_epoch, True) + b"\0"
    _, _, error = _Answer(_exchange(bootstrap, _END_TRANSACTION, body)).take(">bih")
    _fine(error, "end transaction")


def _list_offset(bootstrap: str, topic: str, partition: int, timestamp: int) -> tuple[int, int]:
    asked = struct.pack(">iiq", partition, -1, timestamp)
    body = struct.pack(">ib", _DEBUGGING_REPLICA, 0) + _one_topic(topic, asked)
    answer = _Answer(_exchange(bootstrap, _LIST_OFFSETS, body))
    answer.take(">ii")
    answer.text()
    _, _, error, _, offset, epoch = answer.take(">iihqqi")
    _fine(error, "list offsets")
    return offset, epoch


def _one_topic(topic: str, partition: bytes) -> bytes:
    return struct.pack(">i", 1) + _text(topic) + struct.pack(">i", 1) + partition


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _exchange(bootstrap: str, request: tuple[int, int], body: bytes) -> bytes:
    host, _, port = bootstrap.rpartition(":")
    message = struct.pack(">hhi", *request, 1) + _text("harness") + body
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(struct.pack(">i", len(message)) + message)
        with connection.makefile("rb") as answer:
            (size,) = struct.unpack(">i", answer.read(4))
            return answer.read(size)[4:]


class _Answer:
    """Takes fields off the front of an answer."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def take(self, layout: str) -> tuple[int, ...]:
        size = struct.calcsize(layout)
        found, self._data = struct.unpack(layout, self._data[:size]), self._data[size:]
        return found

    def text(self) -> None:
        (length,) = self.take(">h")
        self._data = self._data[length:]


def _fine(error: int, what: str) -> None:
    if error in _NOT_HOSTED:
        raise NotHostedError(f"{what}: the broker has no such replica (error {error})")
    if error:
        raise HarnessError(f"{what}: the broker answered with error {error}")


def batch_of(entry: dict[str, Any], *, newer: int = 0, sequence: int = 0) -> bytes:
    """Return a batch of now of the producer of an entry, with its epoch or a newer one."""
    from broker import workloads

    now = workloads.now_ms()
    return record_batch.encode(
        record.encode([record.Record(offset_delta=0, key=b"a", value=b"record")]),
        base_offset=0, last_offset_delta=0, record_count=1,
        attributes=record_batch.TRANSACTIONAL, base_timestamp=now, max_timestamp=now,
        producer_id=entry["producer_id"],
        producer_epoch=entry["producer_epoch"] + newer, base_sequence=sequence,
    )  # fmt: skip
