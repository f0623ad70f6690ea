"""The answers to the questions across segments and brokers, from the summaries of one pass.

One function, `answers`, takes plain data and returns plain data: `Questions` calls it in the driver
or in executors. The rows of a partition come together, in the order of the log dirs and of the log.
The meaning of a table is declared with its columns in `tables`; the module named after a table
makes it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logtool.formats import control_record
from logtool.formats.record_batch import Column
from logtool.gaps.evidence import Facts
from logtool.gaps.table import GapPlace
from logtool.schemas import arrow
from logtool.spark.questions import producer_rows
from logtool.spark.questions.digests import Ranges
from logtool.spark.questions.gaps import Stretch, gaps_of
from logtool.spark.questions.range_summary import LISTS, STRETCHES, lists_of
from logtool.spark.questions.replicas import ComparedColumns, CopySummary, compare

NAMES: Final = ("gaps", "producers", "transactions", "replicas")
"""The tables that are answers."""
LISTS_OF: Final[Mapping[str, str]] = {
    "gaps": "inner", "producers": "producers", "transactions": "transactions",
    "replicas": "ranges",
}  # fmt: skip
"""The list of each stretch that an answer needs."""
ORDER: Final = (
    "topic", "partition", "log_dir", "directory", "segment", "start_position", "number",
)  # fmt: skip
"""Columns by which the rows are sorted."""
DIR: Final = ("log_dir", "node_id", "topic", "partition", "directory")
_EDGES: Final = [name for name in STRETCHES.names if name not in LISTS]

DirectoryKey = tuple[str, str]
"""A log dir and a directory in it."""
Look = Callable[[Sequence[str], DirectoryKey, Column], ComparedColumns]
"""Function that returns batches of a partition dir from files of the table ``batches``: those that
begin in ranges of offsets, see `digests`."""


def answers(
    rows: Any,
    asked: Sequence[str],
    facts: Mapping[DirectoryKey, Facts],
    look: Look | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield the rows of each table that is asked for as a `pyarrow.RecordBatch`.

    `rows` is a `pyarrow.Table` of `STRETCHES` in `ORDER`, with all rows of each of its partitions.
    A partition dir without `facts` has no gaps. Only the table ``replicas`` needs `look`.
    """
    if not len(rows):
        return
    where = _Where(rows)
    if "gaps" in asked:
        yield "gaps", _gaps(rows, where, facts)
    if "producers" in asked:
        yield "producers", _producers(rows, where)
    if "transactions" in asked:
        yield "transactions", _transactions(rows, where)
    if "replicas" in asked and look:
        yield "replicas", _replicas(rows, where, look)


class _Where:
    """The partition dir of each row."""

    def __init__(self, rows: Any) -> None:
        codes = [
            pc.dictionary_encode(rows.column(name).combine_chunks())
            for name in ("log_dir", "directory")
        ]
        numbers = [_flat(one).indices.to_numpy() for one in codes]
        changed = np.zeros(len(rows), bool)
        changed[0] = True
        for column in numbers:
            changed[1:] |= column[1:] != column[:-1]
        self.starts = np.flatnonzero(changed)
        self.number = np.cumsum(changed) - 1
        """Number of the directory of each row."""
        self.places = rows.select(DIR).take(pa.array(self.starts))

    def table(self, name: str, directories: Any, columns: Mapping[str, Any]) -> Any:
        """Return rows of a table from the directory number of each row and its other columns."""
        schema = arrow.schema(name)
        places = self.places.take(pa.array(np.asarray(directories, np.int64)))
        found = {one: places.column(one).combine_chunks() for one in DIR} | dict(columns)
        for field in schema:
            if field.name not in found and f"{field.name}_ms" in found:
                found[field.name] = found[f"{field.name}_ms"]
        arrays = [_flat(found[field.name]).cast(field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _flat(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def _known(column: Column) -> Any:
    """Return a column with null in place of -1."""
    return pa.array(column, mask=column == -1)


def _producers(rows: Any, where: _Where) -> Any:
    found, row = lists_of(rows, "producers")
    if len(row):
        found = producer_rows.producers(found._replace(directory=where.number[row]))
    unknown = (
        "producer_epoch",
        "first_sequence",
        "last_sequence",
        "first_timestamp_ms",
        "last_timestamp_ms",
    )
    columns = {name: pa.array(column) for name, column in found._asdict().items()}
    del columns["directory"]  # its number here
    columns |= {name: _known(getattr(found, name)) for name in unknown}
    return where.table("producers", found.directory, columns)


def _transactions(rows: Any, where: _Where) -> Any:
    found, row = lists_of(rows, "transactions")
    if len(row):
        found = producer_rows.transactions(found._replace(directory=where.number[row]))
        found = type(found)(*(column[found.batches > 0] for column in found))
    ended = found.marker >= 0
    words = pa.array(["open", "committed", "aborted"])
    outcome = ended * np.where(found.marker == int(control_record.COMMIT), 1, 2)
    return where.table(
        "transactions",
        found.directory,
        {
            "producer_id": pa.array(found.producer_id),
            "producer_epoch": _known(found.producer_epoch),
            "first_offset": pa.array(found.first_offset),
            "last_offset": pa.array(np.where(ended, found.marker_offset, found.last_offset)),
            "outcome": words.take(pa.array(outcome)),
            "batches": pa.array(found.batches),
            "records": pa.array(found.records),
            "first_timestamp_ms": _known(found.first_timestamp_ms),
            "last_timestamp_ms": _known(found.last_timestamp_ms),
            "coordinator_epoch": pa.array(found.coordinator_epoch, mask=~ended),
        },
    )


def _gaps(rows: Any, where: _Where, facts: Mapping[DirectoryKey, Facts]) -> Any:
    edges = rows.select(_EDGES).to_pylist()
    inner, row = lists_of(rows, "inner")
    spans = np.searchsorted(row, np.arange(len(edges) + 1)).tolist()
    numbers: list[Column] = []
    found: list[tuple[Any, Any, Any]] = []
    for number, (start, stop) in enumerate(_pairs(where.starts, len(edges))):
        key = edges[start]["log_dir"], edges[start]["directory"]
        known = facts.get(key)
        if known is None:
            continue
        stretches: list[Stretch] = []
        for at in range(start, stop):
            gaps = np.stack([column[spans[at] : spans[at + 1]] for column in inner])
            if edges[at]["number"]:
                before = stretches[-1]
                stretches[-1] = before[0], np.concatenate((before[1], gaps), axis=1)
            else:
                stretches.append((edges[at], gaps))
        table, verdicts, chosen = gaps_of(stretches, known, *key)
        if len(table):
            numbers.append(np.full(len(table), number))
            found.append(
                (
                    table,
                    pa.array([str(one.reason) for one in verdicts]).take(pa.array(chosen)),
                    pa.array([one.evidence for one in verdicts]).take(pa.array(chosen)),
                )
            )
    return _gap_table(where, numbers, found)


def _gap_table(where: _Where, numbers: list[Column], found: Sequence[tuple[Any, Any, Any]]) -> Any:
    def column(name: str) -> Column:
        return np.concatenate([np.empty(0, np.int64), *(getattr(one, name) for one, _, _ in found)])

    none = pa.array([], pa.string())
    labels = pa.array([kind.label for kind in GapPlace])
    return where.table(
        "gaps",
        np.concatenate([np.empty(0, np.int64), *numbers]),
        {
            **{name: pa.array(column(name)) for name in ("first_offset", "last_offset", "missing")},
            "kind": labels.take(pa.array(column("kind").astype(np.int64))),
            "reason": pa.concat_arrays([none, *(one for _, one, _ in found)]),
            "evidence": pa.concat_arrays([none, *(one for _, _, one in found)]),
            "before_segment": _known(column("before_segment")),
            "after_segment": _known(column("after_segment")),
            "damaged": pa.array(column("damaged") > 0),
        },
    )


def _pairs(starts: Column, count: int) -> Iterator[tuple[int, int]]:
    ends = [*starts.tolist()[1:], count]
    yield from zip(starts.tolist(), ends, strict=True)


def _replicas(rows: Any, where: _Where, look: Look) -> Any:
    directories: list[int] = []
    found: list[dict[str, Any]] = []
    spans = list(_pairs(where.starts, len(rows)))
    places = enumerate(where.places.to_pylist())
    live = (one for one in places if _is_live(one[1]))
    for _, some in groupby(live, lambda one: (one[1]["topic"], one[1]["partition"])):
        buffers = [
            _RangeBuffer(
                number=number,
                key=(place["log_dir"], place["directory"]),
                rows=rows,
                span=spans[number],
            )
            for number, place in some
        ]
        if len(buffers) < 2:
            continue
        copies = [one.copy for one in buffers]
        results = compare(copies, partial(_look, look, buffers))
        furthest = max(copy.log_end for copy in copies)
        for one, copy, about in zip(buffers, copies, results, strict=True):
            directories.append(one.number)
            found.append(
                {
                    "copies": len(copies),
                    "first_offset": copy.first_offset,
                    "last_offset": copy.last_offset,
                    "last_leader_epoch": copy.last_leader_epoch,
                    "batches": copy.batches,
                    "shared_batches": about.shared_batches,
                    "diverges_at": about.diverges_at,
                    "only_here": about.only_here,
                    "behind": furthest - copy.log_end,
                }
            )
    names = [name for name in arrow.schema("replicas").names if name not in DIR]
    columns = {name: pa.array([one[name] for one in found], pa.int64()) for name in names}
    return where.table("replicas", directories, columns)


def _look(
    look: Look, buffers: Sequence["_RangeBuffer"], at: int, ranges: Column
) -> ComparedColumns:
    return buffers[at].look(look, ranges)


def _is_live(place: Mapping[str, Any]) -> bool:
    """Return whether a broker serves a directory: not one that ends in ``-future``, for example."""
    return bool(place["directory"] == f"{place['topic']}-{place['partition']}")


class _RangeBuffer:
    """A partition dir of which another log dir may have a copy."""

    def __init__(self, number: int, key: DirectoryKey, rows: Any, span: tuple[int, int]) -> None:
        start, stop = span
        self.number = number
        self._key = key
        self._rows = rows.slice(start, stop - start)

    @cached_property
    def copy(self) -> CopySummary:
        """Return the summary of its stretches."""
        edges = [edge for edge in self._edges if not edge["number"]]
        found, _ = lists_of(self._rows, "ranges")
        return CopySummary.of(edges, Ranges(*found))

    def look(self, look: Look, ranges: Column) -> ComparedColumns:
        """Return its batches in ranges of offsets."""
        files = sorted({edge["file"] for edge in self._edges if edge["file"]})
        return look(files, self._key, ranges)

    @cached_property
    def _edges(self) -> list[dict[str, Any]]:
        edges: list[dict[str, Any]] = self._rows.select(_EDGES).to_pylist()
        return edges
