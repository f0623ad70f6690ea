"""Records of the saved parts of a partition of Redpanda, in the form of a dump of Kafka's logs.

A record has its Kafka offset if it is known, and None behind damage that no copy filled: a batch
without a Kafka offset may have been lost there. The record also has its Raft offset.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from logtool.disk.files import LogFile
from logtool.dump.blocks import Origin
from logtool.dump.log import batch_objects
from logtool.dump.records import Object, read_records
from logtool.errors import UnreadableError
from logtool.formats import compression
from logtool.formats.record_batch import CONTROL
from logtool.formats.redpanda import names
from logtool.formats.redpanda.record_batch import RAFT_DATA
from logtool.log.batches import read_batches
from logtool.log.kafka_offsets import NONE, KafkaOffsets
from logtool.log.redpanda import REDPANDA
from logtool.repair.bad_sectors import SectorTolerantFile
from logtool.repair.ranges import Kept, Part

INTERNAL = ("redpanda", "kafka_internal")
"""Namespaces whose records no client wrote."""


def records(origin: Origin, parts: Sequence[Part], images: Mapping[Path, Path]) -> Iterator[Object]:
    """Yield the records of data in `parts`, without markers; the path of `origin` is the folder.

    `images` are the readable bytes of logs that a failing disk gives only in part. UnreadableError
    if a log cannot be read any more.
    """
    offsets = KafkaOffsets()
    segment: int | None = None
    for part in parts:
        base = names.parse_partition_file(part.path.name).base_offset or 0
        filled = isinstance(part, Kept) and part.filled
        if not filled and base != segment:
            segment = base
            offsets.begin(origin.path / part.path.name, base)
        if isinstance(part, Kept):
            yield from _of_extent(origin, part, images, offsets)
        elif part.filled_from is None:
            offsets.lose()


def _of_extent(
    origin: Origin, extent: Kept, images: Mapping[Path, Path], offsets: KafkaOffsets
) -> Iterator[Object]:
    base = extent.first.base_offset
    segment = names.parse_partition_file(extent.path.name).base_offset
    with LogFile(images.get(extent.path, extent.path)) as log:
        source, form = SectorTolerantFile(log), REDPANDA.form(extent.path)
        for chunk in read_batches(
            source, base_offset=base, form=form, start=extent.position, stop=extent.end
        ):
            if chunk.damage:
                text = f"changed at byte {chunk.damage.position} while logtool read it"
                raise UnreadableError(extent.path, text)
            first = offsets.add(chunk.table)[0]
            table = chunk.table
            rows = np.flatnonzero(
                (table.batch_type == RAFT_DATA) & (table.attributes & CONTROL == 0)
            )
            made = batch_objects(
                Origin(extent.path, origin.topic, origin.partition, segment), table[rows]
            )
            for row, batch in zip(rows.tolist(), made, strict=True):
                delta = None if first[row] == NONE else batch["base_offset"] - int(first[row])
                read = read_records(batch, chunk, row, compression.DEFAULT_LIMIT, source)
                yield from _of_batch(read, delta)


def _of_batch(objects: Iterator[Object], delta: int | None) -> Iterator[Object]:
    for obj in objects:
        if obj["type"] == "record":
            offset = obj["offset"]
            yield obj | {
                "offset": None if delta is None else offset - delta,
                "raft_offset": offset,
            }
