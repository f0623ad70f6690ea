"""Files with the records that `salvage` saves, and with records decoded from rejected bytes."""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logtool.commands.output import OutputError
from logtool.disk import files, shell
from logtool.dump import damaged, saved_redpanda
from logtool.dump.blocks import Origin
from logtool.dump.export import Kcat
from logtool.dump.log import Filter
from logtool.dump.stream import Dump
from logtool.dump.values import Values, show_record
from logtool.errors import LogtoolError, RefusedError, UnwritableError
from logtool.formats import compression
from logtool.lazy_dataclass import dataclass
from logtool.log.decoded import has_decoder
from logtool.log.redpanda_dir import term_of
from logtool.repair.ranges import RejectReason
from logtool.repair.saved import DecodedReject, KeptReject, Saved, SavedPartition, SavedRecords
from logtool.txns.outcomes import Outcomes, of_saved

if TYPE_CHECKING:
    from logtool.commands.printing.dump_parquet import ParquetFile
    from logtool.repair.output import OutputDir

Object = dict[str, Any]
Found = Callable[[], Iterator[Object]]
_TOGETHER = 256 * 1024
_DECODED = (RejectReason.DAMAGE, RejectReason.UNREADABLE)
_LARGEST = 2**31 - 1
"""Bytes of a range that is decoded: more than a segment can have."""


@dataclass(frozen=True, slots=True)
class Extras:
    """Writer of additional files, as soon as a partition or a rejected range is saved."""

    output: "OutputDir"
    records: str | None = None
    """`ndjson`, `parquet` or `kcat`; None for none."""
    damaged: bool = False
    """True if rejected bytes are decoded as far as possible."""

    def after(self, item: Saved) -> Iterator[Saved | LogtoolError]:
        """Write the files that belong to an item of `Salvage`; yield their results and errors.

        Raises UnwritableError if the disk takes no more: the same command then replaces the output.
        No records of brokers' own topics are written: no client will produce these again.
        """
        try:
            if isinstance(item, SavedPartition) and self.records and not self._is_internal(item):
                yield from self._records(item)
            elif isinstance(item, KeptReject) and self.damaged and item.one.kind in _DECODED:
                yield from self._decoded(item)
        except UnwritableError as error:
            text = f"{self.output.given} is incomplete; to replace it, run this command again"
            raise UnwritableError(error.path, error.reason, text) from error
        except LogtoolError as error:
            yield error

    def _records(self, saved: SavedPartition) -> Iterator[Saved]:
        kind, *home = saved.target.relative_to(self.output.path).parts
        folder = Path(self.output.path, kind.replace("partitions", "records"), *home)
        target = folder.with_name(f"{saved.target.name}.{self.records}")
        found = partial(self._of, saved)
        command = None
        if self.records == "kcat":
            count, kcat = self._kcat(found, target)
            command = f"{kcat} < {shell.path(target)}"
        elif self.records == "parquet":
            count = self._parquet(found, target)
        else:
            lines = _RecordLines(found, self._outcomes(saved))
            self._write(target, lines.blocks())
            count = lines.count
        made = SavedRecords(saved.topic, saved.partition, saved.path, target, count, command)
        self.output.note(made)
        yield made

    def _outcomes(self, saved: SavedPartition) -> Outcomes:
        """Return the outcomes of the transactions of a partition; of Redpanda's none is known."""
        written = self.output.of_redpanda
        if written and written[0] == saved.target:
            return Outcomes()
        return of_saved(saved.target, saved.path, time.time_ns() // 1_000_000)

    def _kcat(self, found: Found, target: Path) -> tuple[int, str]:
        export = Kcat()
        try:
            for record in found():
                export.look(record)
            export.settle()
        except RefusedError as error:
            text = str(error).replace("nothing was written", f"{target} was not written")
            raise RefusedError(text) from error
        self._write(target, _together(export.line(record) for record in found()))
        return export.records, export.command()

    def _parquet(self, found: Found, target: Path) -> int:
        from logtool.commands.printing import dump_parquet

        self.output.folder(target.parent)
        table: ParquetFile = dump_parquet.ParquetFile(target, records=True)
        count = 0
        try:
            with table.open():
                for record in found():
                    table.item(record)
                    count += 1
        except OutputError as error:
            raise UnwritableError(target, str(error)) from error
        return count

    def _decoded(self, kept: KeptReject) -> Iterator[Saved]:
        if kept.target is None:
            return
        one = kept.one
        target = kept.target.with_name(f"{kept.target.name}.ndjson")
        origin = damaged.origin_of(one.path, kept.topic, kept.partition)
        data = memoryview(files.read_small(kept.target, _LARGEST))
        term = term_of(one.path)
        found = damaged.decode(origin, data, one.position, compression.DEFAULT_LIMIT, term)
        counted = _Counted()
        self._write(target, _together(counted.lines(found)))
        made = DecodedReject(kept, target, counted.records, counted.proven, counted.reason)
        self.output.note(made)
        yield made

    def _is_internal(self, saved: SavedPartition) -> bool:
        """Return whether brokers wrote the records of a partition, not clients."""
        written = self.output.of_redpanda
        if written and written[0] == saved.target:
            namespace = saved.path.absolute().parents[1].name
            return namespace in saved_redpanda.INTERNAL or has_decoder(saved.topic)
        return has_decoder(saved.topic)

    def _of(self, saved: SavedPartition) -> Iterator[Object]:
        """Yield the records of a partition that was just saved."""
        written = self.output.of_redpanda
        if written is None or written[0] != saved.target:
            return _of(saved.target)
        origin = Origin(saved.path, saved.topic, saved.partition, None)
        return saved_redpanda.records(origin, written[1], self.output.images)

    def _write(self, target: Path, blocks: Iterator[bytes]) -> None:
        self.output.write(target.relative_to(self.output.path), blocks)


class _RecordLines:
    """The records of a partition as lines of JSON."""

    def __init__(self, found: Found, outcomes: Outcomes) -> None:
        self._found = found
        self._outcomes = outcomes
        self.count = 0

    def blocks(self) -> Iterator[bytes]:
        """Yield the lines, many at once."""
        yield from _together(self._lines())

    def _lines(self) -> Iterator[bytes]:
        for record in self._found():
            self.count += 1
            outcome = None
            if record["transactional"]:
                outcome = self._outcomes.of(record["producer_id"], record["offset"])
            yield _line({**record, "transaction_outcome": outcome})


class _Counted:
    """Counts the decoded records while their lines are made."""

    def __init__(self) -> None:
        self.records = self.proven = 0
        self.reason: str | None = None
        """Why the last of it did not decode; None where all did."""

    def lines(self, found: Iterator[Object]) -> Iterator[bytes]:
        """Yield each object as a line."""
        for obj in found:
            self.records += obj["type"] == "record"
            self.proven += obj.get("crc_valid") is True
            self.reason = obj["message"] if obj["type"] == "error" else self.reason
            yield _line(obj)


def _of(saved: Path) -> Iterator[Object]:
    """Yield the records of a partition dir that a client wrote."""
    for item in Dump([saved], chosen=Filter(records=True, decode=False)):
        if isinstance(item, LogtoolError):
            raise item
        if isinstance(item, dict) and item["type"] == "record" and not item["control"]:
            yield item


def _line(obj: Object) -> bytes:
    return json.dumps(show_record(obj, Values.UTF8)).encode() + b"\n"


def _together(lines: Iterator[bytes]) -> Iterator[bytes]:
    waiting = bytearray()
    for line in lines:
        waiting += line
        if len(waiting) > _TOGETHER:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)
