"""Base indexes as logtool builds them, against the steps of a broker, batch by batch.

The steps are those of ``index_state::maybe_index`` and ``truncate`` in Redpanda's source; no index
of a real broker is public together with its segment.
"""

import random
import struct

import numpy as np
import pytest
import redpanda_files as rp
from crc32c import crc32c

from logtool.formats.redpanda import base_index, record_batch
from logtool.log.base_index import Builder, table_of

HALF = 2**31
STEP = 32 * 1024
FILTERED = (2, 19, 23, 25, 34, 38)


class Broker:
    """Does as the source says, one batch after the other."""

    def __init__(self, base: int, all_data: bool) -> None:
        self.base, self.all_data = base, all_data
        self.entries: list[tuple[int, int, int]] = []
        self.base_timestamp = self.max_timestamp = 0
        self.max_offset = self.compactible = self.since = 0
        self.monotonic, self.non_data = 1, 0
        self.last_timestamp = -1

    def track(self, at: int, header: record_batch.RedpandaHeader) -> None:
        first, last = header.base_timestamp, header.max_timestamp
        self.since += header.size
        self.monotonic &= int(last >= self.last_timestamp)
        self.last_timestamp = max(first, last)
        user_data = self.all_data or header.type == 1
        if user_data and self.non_data:
            ((offset, _, position),) = self.entries
            self.entries = [(offset, cut(last), position)]
            self.base_timestamp = self.max_timestamp = first
            self.non_data = 0
        add = not self.entries
        if add:
            self.non_data = int(not user_data)
            self.base_timestamp = self.max_timestamp = first
        self.max_offset = header.base_offset + header.last_offset_delta
        if user_data:
            last = max(first, last)
            self.max_timestamp = max(self.max_timestamp, last)
        control = header.attributes & 0x20 and header.type not in (14, 15, 16, 33)
        if header.type not in (*FILTERED, 29) and not control:
            self.compactible += header.record_count
        if add or (self.since >= STEP and user_data):
            offset, time = header.base_offset - self.base, cut(last - self.base_timestamp)
            self.entries.append((offset, time, at))
            self.since = 0

    def truncate(self) -> None:
        """Do the work of a start after the replay of the segment."""
        end = self.max_offset - self.base
        self.entries = [one for one in self.entries if one[0] < end]
        if not self.entries:
            self.non_data = 0

    def stored(self, clean: bytes = b"\0", tombstones: int = 1) -> bytes:
        blob = struct.pack("<Iqqqq", 0, self.base, self.max_offset, self.base_timestamp,
                           self.max_timestamp)  # fmt: skip
        for column, form in zip((0, 1, 2), "IIQ", strict=True):
            values = [entry[column] for entry in self.entries]
            blob += struct.pack(f"<I{len(values)}{form}", len(values), *values)
        blob += struct.pack("<bbbb", self.monotonic, 1, self.non_data, 0)
        blob += struct.pack("<bQ", 1, self.compactible) + clean + struct.pack("<b", tombstones)
        front = struct.pack("<BBII", 9, 4, len(blob) + 8, len(blob))
        return front + blob + struct.pack("<I", crc32c(blob))


def cut(delta: int) -> int:
    return min(max(delta, -HALF), HALF - 1) + HALF


def a_log(seed: int) -> tuple[int, list[tuple[int, record_batch.RedpandaHeader]]]:
    """Return the base offset of a segment and its batches, with their positions."""
    random_of = random.Random(seed)
    base = random_of.choice([0, 7, 2**33])
    batches: list[tuple[int, record_batch.RedpandaHeader]] = []
    at, offset = 0, base
    for _ in range(random_of.randint(1, 60)):
        kind = random_of.choice([1, 1, 1, 1, 1, 2, 10, 15, 29, 38, 77])
        count = 0 if kind == rp.PLACEHOLDER else random_of.randint(1, 3)
        data = rp.batch(
            offset, *(b"x" * random_of.choice([5, 900, 9000]) for _ in range(count)), kind=kind,
            last=offset + max(count, 1) - 1, stamp=rp.START + random_of.randint(-9, 9),
            attributes=0x20 if kind in (10, 15) else 0,
        )  # fmt: skip
        batches.append((at, record_batch.parse(data)))
        at += len(data)
        offset += max(count, 1) + random_of.choice([0, 0, 0, 5])
    return base, batches


@pytest.mark.parametrize("recovered", [False, True])
@pytest.mark.parametrize("all_data", [False, True])
def test_an_index_is_that_of_the_steps_of_a_broker_however_batches_come(recovered, all_data):
    for seed in range(150):
        base, batches = a_log(seed)
        broker = Broker(base, all_data)
        for at, header in batches:
            broker.track(at, header)
        if recovered:
            broker.truncate()
        table = table_of(batches)
        for width in (1, 3, len(batches)):
            builder = Builder(base, all_data=all_data)
            for first in range(0, len(batches), width):
                builder.add(table[first : first + width])
            assert builder.finish(recovered=recovered) == broker.stored(), (seed, width)


def test_what_compaction_noted_stays_where_a_start_replays_the_segment():
    base, batches = a_log(3)
    broker = Broker(base, all_data=False)
    for at, header in batches:
        broker.track(at, header)
    broker.truncate()
    clean = struct.pack("<bq", 1, rp.START)
    before = base_index.parse(broker.stored(clean, tombstones=0))
    assert isinstance(before, base_index.BaseIndex)

    builder = Builder(base)
    builder.add(table_of(batches))

    assert builder.finish(recovered=True, before=before) == broker.stored(clean, tombstones=0)
    old = base_index.parse(rp.index_4(base, base, (0, 0)))
    assert isinstance(old, base_index.BaseIndex)
    assert builder.finish(recovered=True, before=old) == broker.stored()


def test_the_index_of_a_configuration_alone_has_no_entry_once_it_was_replayed():
    header = record_batch.parse(rp.batch(5, b"config", kind=rp.CONFIGURATION))
    builder = Builder(5)
    builder.add(table_of([(0, header)]))
    closed, replayed = (base_index.parse(builder.finish(recovered=one)) for one in (False, True))
    assert isinstance(closed, base_index.BaseIndex)
    assert isinstance(replayed, base_index.BaseIndex)
    assert (len(closed), closed.flags.non_data_timestamps) == (1, 1)
    assert (len(replayed), replayed.flags.non_data_timestamps) == (0, 0)
    assert np.array_equal(closed.entries.position, [0])
