"""A segment of Redpanda as a log of Kafka.

Kafka has no types: what is no data is left out, for Kafka would give it to consumers. It is kept
in a JSON document, damage and the length of reserved room too, from which the way back makes the
same bytes.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from logtool.convert.pieces import (
    LEFT_OUT,
    LEFT_OUT_SCHEMA,
    PARTITIONS,
    TOPIC,
    OutputSegment,
    runs,
)
from logtool.disk.files import LogFile
from logtool.errors import RefusedError, UnreadableError
from logtool.formats import names, record_batch
from logtool.formats.names import FileKind
from logtool.formats.redpanda.names import SEGMENTS
from logtool.formats.redpanda.offset_translation import FILTERED
from logtool.formats.redpanda.record_batch import RAFT_DATA
from logtool.log import kafka_offsets, redpanda_dir
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.flavour import FlavourName
from logtool.log.kafka_offsets import NONE, KafkaOffsets
from logtool.log.redpanda import REDPANDA


def piece_of(path: Path, start_delta: int | None) -> OutputSegment:
    """Return the log that a segment becomes.

    Its offsets are Kafka's if the folder shows how many offsets below the segment are Raft's alone,
    or if `start_delta` says so; otherwise they are Raft's. UnreadableError for a file that is not a
    segment of Redpanda.
    """
    place = redpanda_dir.place(path)
    if place is None or place.name.kind not in SEGMENTS:
        raise UnreadableError(path, "expected a Redpanda segment (for example 0-1-v1.log)")
    base = place.name.base_offset or 0
    offsets = kafka_offsets.before(path, base)
    if start_delta is not None:
        offsets.delta = start_delta
    known = offsets.delta is not None
    first = base - (offsets.delta or 0)
    named = f"{place.topic or TOPIC}-{place.partition or 0}"
    log = names.format_partition_file(first, FileKind.LOG)
    document: dict[str, Any] = {
        "schema": LEFT_OUT_SCHEMA, "name": path.name, "folder": path.absolute().parent.name,
        "offsets": "kafka" if known else "raft", "base_offset": base, "delta": offsets.delta or 0,
    }  # fmt: skip

    def blocks(piece: OutputSegment) -> Iterator[bytes]:
        yield from _blocks(path, base, piece, offsets if known else None, document)
        aside = Path(LEFT_OUT, named, log).with_suffix(".json")
        piece.neighbours[aside] = json.dumps(document, indent=1).encode() + b"\n"

    return OutputSegment(
        source=path,
        target=Path(PARTITIONS, named, log),
        flavour=FlavourName.KAFKA,
        blocks=blocks,
        offsets=document["offsets"],
    )


def _blocks(
    path: Path,
    base: int,
    piece: OutputSegment,
    offsets: KafkaOffsets | None,
    document: dict[str, Any],
) -> Iterator[bytes]:
    """Yield the batches of data with Kafka's headers; `document` gets all else."""
    aside: list[dict[str, Any]] = []
    end = 0
    with LogFile(path) as log:
        for chunk in read_batches(log, base_offset=base, form=REDPANDA.form(path)):
            end = chunk.end_position
            if chunk.damage:
                at, length = chunk.damage.position, chunk.damage.length
                piece.damaged += 1
                aside.append(_aside(at, log.read(at, length), None, 0))
                continue
            yield from _data(chunk, piece, offsets, log, aside)
        document |= {"room": log.size - end, "batches": aside}


def _data(
    chunk: Chunk,
    piece: OutputSegment,
    offsets: KafkaOffsets | None,
    log: LogFile,
    aside: list[dict[str, Any]],
) -> Iterator[bytes]:
    table = chunk.table
    first = offsets.add(table)[0] if offsets else table.base_offset
    is_data = table.batch_type == RAFT_DATA
    for row in np.flatnonzero(~is_data).tolist():
        at, size, kind = (int(c[row]) for c in (table.position, table.size, table.batch_type))
        length = int(table.last_offset[row] - table.base_offset[row]) + 1
        aside.append(_aside(at, log.read(at, size), kind, length if kind in FILTERED else 0))
        piece.left_out += 1
    for rows in runs(is_data):
        some, offset = table[rows], first[rows]
        data = chunk.stretch(rows)
        if len(data) < some.size.sum():
            at, size = int(some.position[0]), int(some.size[0])
            raise RefusedError(f"{log.path}: the batch at byte {at} is too large: {size:,} bytes")
        unknown = np.flatnonzero(offset == NONE)
        if len(unknown):
            at = int(some.position[unknown[0]])
            text = f"the Raft offsets decrease at byte {at}, so the Kafka offsets are not known"
            raise RefusedError(f"{log.path}: {text}")
        made = bytearray(data)
        record_batch.put_base_offsets(made, some.position - some.position[0], offset)
        piece.count(some, offset)
        yield bytes(made)


def _aside(position: int, data: bytes, kind: int | None, filtered: int) -> dict[str, Any]:
    """Return the entry of a left-out part: bytes, type (None: damage), count of Raft's offsets."""
    return {
        "position": position,
        "type": kind,
        "filtered": filtered,
        "data": base64.b64encode(data).decode(),
    }
