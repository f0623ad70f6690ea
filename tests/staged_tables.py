"""The tables of one pass over log dirs, made in this process and read by Spark."""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from logtool import data_dir, partition
from logtool.checks.batches import BatchRules
from logtool.files import LogFile
from logtool.formats.names import DirectoryKind
from logtool.partition import Segment
from logtool.pipeline import tables
from logtool.pipeline.gap_rows import EDGES, INNER, GapRows
from logtool.pipeline.homes import place_of_dir
from logtool.pipeline.rows import Place, batch_rows
from logtool.scan import scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Staged:
    """What was read so far."""

    edges: list[Any] = field(default_factory=list)
    inner: list[Any] = field(default_factory=list)
    batches: list[Any] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)

    def add(self, log_dir: Path, *, cut: bool = False) -> None:
        """Read a log dir; with `cut` sound segments in two pieces."""
        for folder, directory in data_dir.read(log_dir).partitions:
            if directory.kind is not DirectoryKind.DELETE:
                for segment in partition.read(folder).segments:
                    self._segment(place_of_dir(folder), segment, cut=cut)

    def _segment(self, place: Place, segment: Segment, *, cut: bool) -> None:
        rules, count, epoch = BatchRules(segment.base_offset), 0, None
        behind = segment.next_base_offset
        with LogFile(segment.log.path) as log:
            edges = _pieces(log, segment) if cut else [0, log.size]
            for start, stop in pairwise(edges):
                rows = GapRows(place, segment.base_offset, behind, start)
                for chunk in scan(log, base_offset=segment.base_offset, start=start, stop=stop):
                    for _ in rules.feed(chunk):
                        pass
                    rows.feed(chunk, rules.misplaced)
                    if len(chunk.table):
                        self.batches.append(batch_rows(place, segment.base_offset, chunk.table))
                        count, epoch = count + len(chunk.table), int(chunk.table.leader_epoch[-1])
                inner, edge = rows.finish()
                self.inner.append(inner)
                self.edges.append(edge)
        self.segments.append(place._asdict() | {
            "segment": segment.base_offset, "next_segment": behind, "batches": count, "read": True,
            "first_offset": rules.first_offset, "last_offset": rules.last_offset,
            "last_leader_epoch": epoch,
        })  # fmt: skip

    @staticmethod
    def is_table(found: "DataFrame", name: str) -> bool:
        """Return whether a DataFrame has the columns of a table, in its order, with its types."""
        from pyspark.sql.pandas.types import from_arrow_schema

        kinds = from_arrow_schema(tables.schema(name))
        one = [(field.name, field.dataType) for field in found.schema]
        return one == [(field.name, field.dataType) for field in kinds]

    def frames(self, spark: "SparkSession", home: Path) -> "dict[str, DataFrame]":
        """Return the DataFrames by the name of their table."""
        schema = tables.schema("segments")
        found = {
            "edges": pa.Table.from_batches(self.edges, EDGES),
            "inner": pa.Table.from_batches(self.inner, INNER),
            "batches": pa.Table.from_batches(self.batches, tables.schema("batches")),
            "segments": pa.Table.from_pylist(self.segments, schema),
        }
        home.mkdir(exist_ok=True)
        for name, table in found.items():
            parquet.write_table(table, home / f"{name}.parquet")
        return {name: spark.read.parquet(str(home / f"{name}.parquet")) for name in found}


def _pieces(log: LogFile, segment: Segment) -> list[int]:
    """Return where a segment begins, may be cut, and ends; a cut where nothing is wrong alone."""
    rules, positions, sound = BatchRules(segment.base_offset), [], True
    for chunk in scan(log, base_offset=segment.base_offset):
        sound &= not list(rules.feed(chunk)) and not chunk.damage
        positions += chunk.table.position.tolist()
    middle = positions[len(positions) // 2 :][:1] if sound and len(positions) > 1 else []
    return [0, *middle, log.size]
