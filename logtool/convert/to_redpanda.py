"""A log of Kafka as segments of Redpanda: one for each leader epoch, which becomes its term."""

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from logtool.convert.pieces import LEFT_OUT, LEFT_OUT_SCHEMA, TOPIC, OutputSegment
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import RefusedError, UnreadableError
from logtool.formats import names
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.formats.record_batch import HEADER_SIZE, MAGIC
from logtool.formats.redpanda import names as redpanda_names
from logtool.formats.redpanda import record_batch
from logtool.formats.redpanda.names import KAFKA_NAMESPACE
from logtool.formats.redpanda.record_batch import RAFT_DATA
from logtool.lazy_dataclass import dataclass
from logtool.log.base_index import Builder, table_of
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.flavour import FlavourName

_LAST_OFFSET = 2**63 - 1
MOST_ROOM = 64 * 1024 * 1024
"""Bytes of the most room that a broker reserves behind a segment: twice what it does."""


@dataclass(frozen=True, slots=True)
class _TermRange:
    """Neighbouring batches of one leader epoch."""

    epoch: int
    base_offset: int
    start: int
    stop: int
    """Bytes of Kafka's log."""


def pieces_of(path: Path) -> Iterator[OutputSegment]:
    """Yield the segments that a log becomes.

    What an earlier conversion left out is put in its place again, if it lies where that conversion
    wrote it. UnreadableError for what is no log; RefusedError for one that is damaged, or has
    batches that Redpanda has no form for.
    """
    name = names.parse_partition_file(path.name)
    if name.kind is not FileKind.LOG or name.offset is None:
        raise UnreadableError(path, "expected a Kafka log")
    directory = names.parse_directory(path.absolute().parent.name)
    topic, number = TOPIC, 0
    if isinstance(directory, PartitionDirectory):
        topic, number = directory.topic, directory.partition
    kept = _left_out(path)
    folder = Path(KAFKA_NAMESPACE, topic, kept["folder"] if kept else f"{number}_0")
    stretches = list(_stretches(path, name.offset))
    if kept:
        term = redpanda_names.parse_partition_file(kept["name"]).term or 0
        end = stretches[-1].stop if stretches else 0
        stretches = [_TermRange(term, kept["base_offset"], 0, end)]
    for part in stretches:
        text = redpanda_names.format_segment(part.base_offset, part.epoch)
        target = folder / (kept["name"] if kept else text)
        yield OutputSegment(
            source=path,
            target=target,
            flavour=FlavourName.REDPANDA,
            blocks=_Writer(path, name.offset, part, kept).blocks,
            offsets="raft",
            term=part.epoch,
        )


def _stretches(path: Path, base: int) -> Iterator[_TermRange]:
    """Yield the stretches of a sound log of magic 2."""
    current: _TermRange | None = None
    with LogFile(path) as log:
        for chunk in read_batches(log, base_offset=base, payload=False):
            if chunk.damage:
                text = f"{chunk.damage.message} at byte {chunk.damage.position}"
                raise RefusedError(f"{path}: {text}; save the sound batches with logtool salvage")
            table = chunk.table
            bad = np.flatnonzero((table.magic != MAGIC) | (table.leader_epoch < 0))
            if len(bad):
                row = table.row(int(bad[0]))
                text = f"magic {row['magic']} and leader epoch {row['leader_epoch']}"
                raise RefusedError(f"{path}: the batch at byte {row['position']} has {text}")
            changes = np.flatnonzero(np.diff(table.leader_epoch)) + 1
            starts = [0, *changes.tolist()]
            for first, end in zip(starts, [*starts[1:], len(table)], strict=True):
                epoch, at = int(table.leader_epoch[first]), int(table.position[first])
                if current is None or epoch != current.epoch:
                    if current:
                        yield current
                    offset = int(table.base_offset[first]) if current else base
                    current = _TermRange(epoch, offset, at, at)
                stop = int(table.end_position[end - 1])
                current = _TermRange(current.epoch, current.base_offset, current.start, stop)
    if current:
        yield current


def _left_out(path: Path) -> dict[str, Any] | None:
    """Return the parts that an earlier conversion left out of a log; None without such a file."""
    folder = path.absolute().parent
    aside = folder.parent.parent / LEFT_OUT / folder.name / path.with_suffix(".json").name
    try:
        found = json.loads(files.read_small(aside))
    except UnreadableError as error:
        if files.has_vanished(error):
            return None
        raise
    except ValueError as error:
        raise UnreadableError(aside, f"is not JSON: {error}") from error
    if not _is_sound(found):
        raise UnreadableError(aside, f"expected a document of the schema {LEFT_OUT_SCHEMA}")
    return _decoded(aside, found)


def _is_sound(found: Any) -> bool:
    """Return whether a document is what a conversion wrote: its names become names of files."""
    numbers = ("base_offset", "delta", "room")
    if not isinstance(found, dict) or found.get("schema") != LEFT_OUT_SCHEMA:
        return False
    name, folder = str(found.get("name")), str(found.get("folder"))
    return (
        redpanda_names.parse_partition_file(name).kind in redpanda_names.SEGMENTS
        and Path(name).name == name
        and Path(folder).name == folder
        and folder not in (".", "..")
        and all(isinstance(found.get(key), int) and found[key] >= 0 for key in numbers)
        and found["room"] <= MOST_ROOM
        and found.get("offsets") in ("kafka", "raft")
        and isinstance(found.get("batches"), list)
    )


def _decoded(aside: Path, found: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the bytes of its batches."""
    try:
        batches: list[dict[str, Any]] = [
            {
                "position": int(one["position"]),
                "type": None if one["type"] is None else int(one["type"]),
                "filtered": int(one["filtered"]),
                "data": base64.b64decode(one["data"], validate=True),
            }
            for one in found["batches"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableError(aside, f"one of its batches cannot be read: {error}") from error
    if any(one["type"] is not None and len(one["data"]) < HEADER_SIZE for one in batches):
        raise UnreadableError(aside, "one of its batches is shorter than a header")
    return {**found, "batches": batches}


class _Writer:
    """Makes one segment of batches of Kafka, with what was left out of it."""

    def __init__(
        self, source: Path, log_base: int, part: _TermRange, kept: dict[str, Any] | None
    ) -> None:
        self._source, self._log_base, self._part = source, log_base, part
        self._kept = list(kept["batches"]) if kept else []
        self._translates = bool(kept and kept["offsets"] == "kafka")
        self._delta = int(kept["delta"]) if kept and self._translates else 0
        self._room = int(kept["room"]) if kept else 0
        self._at = 0
        """Bytes of the segment that is written."""
        self._index = Builder(part.base_offset)

    def blocks(self, piece: OutputSegment) -> Iterator[bytes]:
        """Yield the bytes of the segment."""
        part = self._part
        with LogFile(self._source) as log:
            chunks = read_batches(log, base_offset=self._log_base, start=part.start, stop=part.stop)
            for chunk in chunks if part.stop > part.start else ():
                if chunk.damage:
                    raise UnreadableError(self._source, "has changed while it was read")
                yield from self._converted(chunk, piece)
        yield from self._put_back(piece)
        if self._kept:
            text = (
                f"the batch that was left out at byte {self._kept[0]['position']} no longer fits "
                "into the log"
            )
            raise RefusedError(f"{self._source}: {text}: the log has changed since")
        yield bytes(self._room)
        piece.neighbours[piece.target.with_suffix(".base_index")] = self._index.finish()

    def _converted(self, chunk: Chunk, piece: OutputSegment) -> Iterator[bytes]:
        """Yield the batches of a chunk, with left-out bytes in their places."""
        ends = np.cumsum(chunk.table.size)
        done = 0
        while done < len(ends):
            yield from self._put_back(piece)
            stop = len(ends)
            if self._kept:
                before = int(ends[done - 1]) if done else 0
                at = self._kept[0]["position"] - self._at + before
                place = done + int(np.searchsorted(ends[done:], at))
                if place < stop and ends[place] == at:
                    stop = place + 1
            yield self._turned(chunk, slice(done, stop), piece)
            done = stop

    def _turned(self, chunk: Chunk, rows: slice, piece: OutputSegment) -> bytes:
        """Return neighbouring batches with Redpanda's headers, and note them."""
        table, data = chunk.table[rows], bytearray(chunk.stretch(rows))
        if len(data) < table.size.sum():
            raise RefusedError(f"{self._source}: a batch is too large to keep in memory")
        highest = max(int(table.base_offset.max()), int(table.last_offset.max()))
        if highest > _LAST_OFFSET - self._delta:
            raise RefusedError(f"{self._source}: an offset is too large for a Raft offset")
        first, positions = table.base_offset + self._delta, table.position - table.position[0]
        record_batch.put_headers(data, positions, table, first)
        piece.count(table, first)
        moved = replace(
            table,
            position=positions + self._at,
            base_offset=first,
            last_offset=table.last_offset + self._delta,
            batch_type=np.full(len(table), RAFT_DATA, np.int64),
        )
        self._index.add(moved)
        self._at += len(data)
        return bytes(data)

    def _put_back(self, piece: OutputSegment) -> Iterator[bytes]:
        """Yield the left-out bytes whose position is the current one."""
        while self._kept and self._kept[0]["position"] == self._at:
            one = self._kept.pop(0)
            data: bytes = one["data"]
            if one["type"] is None:
                self._at += len(data)
                piece.damaged += 1
            else:
                header = record_batch.parse(data)
                self._index.add(table_of([(self._at, header)]))
                self._at += header.size
                self._delta += one["filtered"] if self._translates else 0
            yield data
