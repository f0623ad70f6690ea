"""Missing offsets: the gaps inside stretches of logs, and those between them by windows.

As `logtool gaps` tells them without ``--exact``, from the log start on, but for two kinds: holes
inside a batch, which only decoding can list, and an end that cannot be told. A partition with a
segment that could not be read has no rows, as it has no ledger there.

Reasons come from the same function, `logtool.gaps.evidence.decide`, once for each partition that
has gaps. It is asked about every gap that may have a reason of its own; of the many between the
batches of one segment only about one of each sort, and the answer holds for all of that sort.

What may differ from the local command: whether a batch lacks records which a log start, or an
overlap, cuts in two. There it decodes the batch, here its header counts. That can only be told
apart in a partition where nothing else is compacted and no policy is known.
"""

from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from logtool import files, partition
from logtool.errors import UnreadableError
from logtool.gaps import table as gap_table
from logtool.gaps.coverage import Coverage, Edge
from logtool.gaps.evidence import Facts, Traces, decide
from logtool.gaps.subjects import Subject, indexed
from logtool.gaps.table import Kind
from logtool.pipeline.questions_common import DIR, KEY, as_table
from logtool.pipeline.questions_facts import FACTS, facts_in

_STRETCH: Final = [*KEY, "segment", "start_position"]
_PLAIN, _ABOVE, _DAMAGED = -1, -2, -3
"""Sorts of gaps between the batches of one stretch: below the cleaner checkpoint, above, damaged.
The sort of any other gap is its first offset, so it is the only one of it."""
_VERDICTS: Final = pa.schema(
    [
        ("log_dir", pa.string()),
        ("directory", pa.string()),
        ("sort", pa.int64()),
        ("reason", pa.string()),
        ("evidence", pa.string()),
    ]
)


def gaps(edges: DataFrame, inner: DataFrame, facts: DataFrame) -> DataFrame:
    """Return the table ``gaps``."""
    stretches = _stretches(edges, facts)
    found = _between(stretches).unionByName(_inside(inner, stretches))
    reasoned = (
        found.join(_verdicts(found, stretches, facts), [*KEY, "sort"])
        .withColumn("missing", sql.col("last_offset") - sql.col("first_offset") + 1)
        .withColumn("kind", _label(sql.col("kind")))
    )
    return as_table(reasoned, "gaps")


def _stretches(edges: DataFrame, facts: DataFrame) -> DataFrame:
    """Return the stretches that count, each with what is known of those before it.

    Offsets below ``floor`` were there before, or lie below the log start. ``counts`` is whether any
    batch reaches it; ``damaged_before`` whether damage lies behind the last batch that does.
    """
    own = Window.partitionBy(*KEY)
    order = own.orderBy("segment", "start_position")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    damaged = sql.when(sql.col("counts"), sql.col("damaged_tail")).otherwise(sql.col("damages") > 0)
    return (
        edges.join(facts.select(*KEY, "log_start", "cleaner_offset"), KEY)
        .withColumn("whole", sql.bool_and("read").over(own))
        .where(sql.col("whole"))
        .where(sql.col("next_segment").isNull() | (sql.col("next_segment") > sql.col("log_start")))
        .withColumn("floor", sql.greatest("log_start", sql.max("last_offset").over(before) + 1))
        .withColumn(
            "counts", sql.coalesce(sql.col("last_offset") >= sql.col("floor"), sql.lit(False))
        )
        .withColumn("row", sql.row_number().over(order))
        .withColumn("counted", sql.max(sql.when(sql.col("counts"), sql.col("row"))).over(before))
        .withColumn("wounded", sql.max(sql.when(damaged, sql.col("row"))).over(before))
        .withColumn(
            "damaged_before",
            sql.coalesce(sql.col("wounded") >= sql.coalesce("counted", sql.lit(0)), sql.lit(False)),
        )
        .withColumn(
            "before_segment", sql.max(sql.when(sql.col("counts"), sql.col("segment"))).over(before)
        )
        .withColumn("at_end", sql.lead("row").over(order).isNull())
    )


def _between(stretches: DataFrame) -> DataFrame:
    """Return the gaps in front of stretches, and that in front of an empty last segment."""
    empty = ~sql.col("counts") & sql.col("at_end")
    damaged = sql.when(empty, sql.col("damages") > 0).otherwise(sql.col("damaged_head"))
    return (
        stretches.where(sql.col("counts") | empty)
        .withColumn(
            "behind", sql.when(empty, sql.col("segment")).otherwise(sql.col("first_offset"))
        )
        .where(sql.col("behind") > sql.col("floor"))
        .select(
            *DIR,
            sql.col("floor").alias("first_offset"),
            (sql.col("behind") - 1).alias("last_offset"),
            _kind().alias("kind"),
            "before_segment",
            sql.col("segment").alias("after_segment"),
            (sql.col("damaged_before") | damaged).alias("damaged"),
            sql.col("floor").alias("sort"),
        )
    )


def _inside(inner: DataFrame, stretches: DataFrame) -> DataFrame:
    """Return the gaps inside stretches; one that reaches below the floor begins there."""
    known = stretches.where(sql.col("counts")).select(
        *_STRETCH, "floor", "cleaner_offset", "before_segment", "damaged_before"
    )
    cut = sql.col("first_offset") <= sql.col("floor")
    sort = (
        sql.when(cut, sql.col("floor"))
        .when(sql.col("damaged"), _DAMAGED)
        .when(sql.col("first_offset") >= sql.col("cleaner_offset"), _ABOVE)
        .otherwise(_PLAIN)
    )
    return (
        inner.join(known, _STRETCH)
        .where(sql.col("last_offset") >= sql.col("floor"))
        .withColumn("sort", sort.cast("long"))
        .select(
            *DIR,
            sql.greatest("first_offset", "floor").alias("first_offset"),
            "last_offset",
            sql.when(cut, _kind()).otherwise(Kind.BATCHES.value).alias("kind"),
            sql.when(cut, sql.col("before_segment"))
            .otherwise(sql.col("segment"))
            .alias("before_segment"),
            sql.col("segment").alias("after_segment"),
            (sql.col("damaged") | (cut & sql.col("damaged_before"))).alias("damaged"),
            "sort",
        )
    )


def _kind() -> Column:
    """Return the kind of a gap in front of a stretch."""
    return (
        sql.when(sql.col("before_segment").isNull(), Kind.HEAD.value)
        .when(sql.col("before_segment") == sql.col("segment"), Kind.BATCHES.value)
        .otherwise(Kind.SEGMENTS.value)
    )


def _label(kind: Column) -> Column:
    first, *rest = (Kind.HEAD, Kind.BATCHES, Kind.SEGMENTS)
    return reduce(
        lambda found, one: found.when(kind == one.value, one.label),
        rest,
        sql.when(kind == first.value, first.label),
    )


def _verdicts(found: DataFrame, stretches: DataFrame, facts: DataFrame) -> DataFrame:
    """Return reason and evidence for every sort of gaps of every partition."""
    traces = stretches.groupBy(*KEY).agg(
        sql.count_if(sql.col("last_horizon") >= sql.col("floor")).alias("horizons"),
        sql.count_if(sql.col("last_hole") >= sql.col("floor")).alias("with_holes"),
    )
    asked = found.groupBy(*KEY, "sort").agg(
        *(sql.min(name).alias(name) for name in ("first_offset", "last_offset", "kind",
                                                 "before_segment", "after_segment", "damaged")),
        sql.count("*").alias("count"),
    )  # fmt: skip
    return (
        asked.join(traces, KEY)
        .join(facts, KEY)
        .groupBy(*KEY)
        .applyInArrow(judge, from_arrow_schema(_VERDICTS))
    )


def judge(rows: Any) -> Any:
    """Return the verdicts (`pyarrow.Table`) on the sorts of gaps of one partition."""
    rows = rows.sort_by("first_offset")

    def column(name: str) -> Any:
        return rows.column(name).cast(pa.int64()).fill_null(-1).to_numpy()

    names = ("first_offset", "last_offset", "kind", "before_segment", "after_segment", "damaged")
    found = gap_table.make(len(rows), **{name: column(name) for name in names})
    one = rows.slice(0, 1).select(
        [*FACTS.names, "horizons", "with_holes"]
    ).to_pylist()[0]  # fmt: skip
    inner = (found.kind == Kind.BATCHES) & (found.damaged == 0)
    traces = Traces(one["horizons"], one["with_holes"], int(column("count")[inner].sum()))
    known = _with_indexes(facts_in(one), one["log_dir"], one["directory"], found)
    verdicts, chosen = decide(found, known, traces)
    return pa.Table.from_arrays(
        [
            *(rows.column(name) for name in (*KEY, "sort")),
            pa.array([str(verdicts[number].reason) for number in chosen.tolist()]),
            pa.array([verdicts[number].evidence for number in chosen.tolist()]),
        ],
        schema=_VERDICTS,
    )


def _with_indexes(known: Facts, log_dir: str, directory: str, gaps: gap_table.GapTable) -> Facts:
    """Return the facts with what the indexes name of segments that a gap follows."""
    behind = np.flatnonzero((gaps.kind == Kind.SEGMENTS) & (gaps.damaged == 0))
    if not len(behind):
        return known
    try:
        found = partition.read(files.path_of(log_dir) / directory)
    except UnreadableError:
        return known  # it went after the pass over its bytes
    ends = zip(
        gaps.before_segment[behind].tolist(), gaps.first_offset[behind].tolist(), strict=True
    )
    segments = [Coverage(base, last=Edge(end - 1, -1, -1, -1)) for base, end in ends]
    return indexed(Subject(found, known), segments)
