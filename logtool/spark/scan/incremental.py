"""The reports that a run keeps for a later run: one for each segment, with the state of its files.

The table ``_reports`` of a run has a row for each segment that was read to its end. A later run
asks for the reports of its segments, and gets those that still hold. For these all of the following
must be unchanged: size, mtime and inode or ETag of the log and its indexes, the options by which
the segment is checked, the release of logtool, and without an ETag the CRC of the last batch on the
disk. Findings across segments are made again, from old and new reports.

A byte that rotted in place changes none of these: only a full run reads it.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from logtool import __version__
from logtool.checks import kept_report
from logtool.checks.report import SegmentReport, SegmentTask
from logtool.disk.files import text_of
from logtool.errors import UnreadableError
from logtool.formats.record_batch import MAGIC
from logtool.lazy_dataclass import dataclass
from logtool.log.file import File

TABLE: Final = "_reports"
REPORTS: Final = pa.schema(
    [
        ("log_dir", pa.string()),
        ("directory", pa.string()),
        ("segment", pa.int64()),
        ("log", pa.binary()),  # path of the .log as it is, which need not be text
        ("state", pa.string()),  # of its files, and what was asked
        ("tail_position", pa.int64()),  # of the last sound batch; null: there is no sound batch
        ("tail_magic", pa.int8()),
        ("tail_crc", pa.int64()),
        ("files", pa.list_(pa.string())),  # that have its rows in other tables, below the output
        ("totals", pa.string()),  # `unit_rows.Totals` as JSON
        ("report", pa.string()),  # `SegmentReport` as JSON, without
        ("producer_rows", pa.binary()),  # these: the columns of a `BatchTable`, one after the other
    ]
)
_CRC_AT: Final = {True: 17, False: 12}
"""Byte of the CRC in a batch, for magic 2 and before."""


class SegmentKey(NamedTuple):
    """The columns that identify a segment in the rows of every table."""

    log_dir: str
    directory: str
    segment: int


class Tail(NamedTuple):
    """The last sound batch of a log."""

    position: int
    magic: int
    crc: int

    def is_in(self, log: File) -> bool:
        """Return whether a log still has that batch; only the CRC of the batch is read."""
        at = self.position + _CRC_AT[self.magic >= MAGIC]
        try:
            with log.open() as file:
                return file.read(at, 4) == self.crc.to_bytes(4, "big")
        except UnreadableError:
            return False


@dataclass(frozen=True, slots=True)
class KeptSegment:
    """The data that a run keeps of one segment."""

    key: SegmentKey
    task: SegmentTask
    tail: Tail | None
    files: Sequence[str]
    totals: Mapping[str, Any]
    report: SegmentReport

    def row(self) -> dict[str, Any] | None:
        """Return its row; None for a segment that the next run must read again."""
        report = self.report
        known = report.scanned and not report.changed and not report.skipped
        if not known or any(isinstance(one, UnreadableError) for one in report.findings):
            return None
        position, magic, crc = self.tail or (None, None, None)
        return {
            **self.key._asdict(),
            "log": _bytes_of(self.task.segment.log.path),
            "state": state_of(self.task),
            "tail_position": position,
            "tail_magic": magic,
            "tail_crc": crc,
            "files": list(self.files),
            "totals": json.dumps(self.totals),
            "report": kept_report.as_text(report),
            "producer_rows": kept_report.columns_of(report.producer_rows),
        }


def state_of(task: SegmentTask) -> str:
    """Return the state of a segment: while it is unchanged, the findings in it are, too."""
    segment = task.segment
    indexes = {str(kind): _state_of(file) for kind, file in sorted(segment.indexes.items())}
    asked = [str(task.level), task.clean, list(task.cuts), task.limit, segment.next_base_offset]
    return json.dumps([__version__, asked, _state_of(segment.log), indexes])


def _state_of(file: File) -> list[Any]:
    return [file.size, file.mtime_ns, file.identity]


@dataclass(slots=True)
class KeptReports:
    """The reports of an earlier run; `kept` has the rows that were taken."""

    rows: Any
    """A `pyarrow.Table` of `REPORTS`."""
    check_tails: Callable[[Sequence[tuple[Tail, File]]], Sequence[bool]] = field(
        default=lambda some: [tail.is_in(log) for tail, log in some]
    )
    kept: list[int] = field(default_factory=list)
    """Numbers of rows."""
    on_known: Callable[[SegmentTask, dict[str, Any]], None] = lambda _task, _totals: None
    """Receiver of each segment that is known, with the totals kept with its report."""
    _numbers: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = {log: at for at, log in enumerate(self.rows.column("log").to_pylist())}

    def known(self, tasks: Sequence[SegmentTask]) -> list[SegmentReport | None]:
        """Return the report of each segment; None for one whose files or options have changed."""
        states, tails = self.rows.column("state"), self.rows.column("tail_position")
        numbers: list[int | None] = []
        questions: list[tuple[int, Tail, File]] = []
        for at, task in enumerate(tasks):
            log = task.segment.log
            number = self._numbers.get(_bytes_of(log.path))
            if number is not None and states[number].as_py() != state_of(task):
                number = None
            if number is not None and not isinstance(log.identity, str):
                position = tails[number].as_py()
                if position is not None:
                    questions.append((at, self._tail(number, position), log))
            numbers.append(number)
        answers = self.check_tails([(tail, log) for _, tail, log in questions])
        for (at, _, _), same in zip(questions, answers, strict=True):
            if not same:
                numbers[at] = None
        return [
            None if number is None else self._take(number, task)
            for number, task in zip(numbers, tasks, strict=True)
        ]

    def _tail(self, number: int, position: int) -> Tail:
        magic, crc = (self.rows.column(name)[number].as_py() for name in ("tail_magic", "tail_crc"))
        return Tail(position, magic, crc)

    def _take(self, number: int, task: SegmentTask) -> SegmentReport | None:
        row = {
            name: self.rows.column(name)[number].as_py()
            for name in ("totals", "report", "producer_rows")
        }
        try:
            totals = dict(json.loads(row["totals"]))
            report = kept_report.parse(row["report"], row["producer_rows"])
        except kept_report.NOT_WRITTEN:
            return None  # this release did not write such a row
        self.kept.append(number)
        self.on_known(task, totals)
        return report

    def files_of(self) -> dict[str, tuple[set[SegmentKey], bool]]:
        """Return for each file the kept segments with rows in it, and whether all were kept."""
        kept = set(self.kept)
        found: dict[str, tuple[set[SegmentKey], bool]] = {}
        columns = [self.rows.column(name).to_pylist() for name in (*SegmentKey._fields, "files")]
        for number, (*key, names) in enumerate(zip(*columns, strict=True)):
            for name in names:
                keys, every = found.get(name, (set[SegmentKey](), True))
                if number in kept:
                    keys.add(SegmentKey(*key))
                found[name] = keys, every and number in kept
        return found

    def rows_with(self, renamed: Mapping[str, str]) -> Iterator[Any]:
        """Yield the rows that were kept, with the names that their files have in this run."""
        rows = self.rows.take(pa.array(sorted(self.kept), pa.int64()))
        names = [
            [renamed[name] for name in some if name in renamed]
            for some in rows.column("files").to_pylist()
        ]
        at = REPORTS.get_field_index("files")
        column = pa.array(names, REPORTS.field(at).type)
        yield from rows.set_column(at, REPORTS.field(at), column).to_batches()


def rows_of(found: Iterable[KeptSegment]) -> Any:
    """Return the rows of segments as a `pyarrow.RecordBatch` of `REPORTS`."""
    rows = [row for row in (one.row() for one in found) if row]
    return pa.RecordBatch.from_pylist(rows, REPORTS)


def key_of(task: SegmentTask) -> SegmentKey:
    """Return the key that identifies the rows of a segment."""
    home = task.segment.log.path.parent
    return SegmentKey(text_of(home.parent), text_of(home.name), task.segment.base_offset)


def _bytes_of(path: Path) -> bytes:
    return str(path).encode(sys.getfilesystemencoding(), "surrogateescape")
