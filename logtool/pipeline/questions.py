"""What is asked across segments and brokers, in DataFrame operations on the tables of one pass.

Each function returns a DataFrame with the columns of the table of its name, and reads nothing yet:
Spark does when the answer is written. No row comes to the driver on the way. What a table means
stands with its columns in `tables`, how it is made in the module named after it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# pyspark is imported when something is asked: whoever has none is told so before.


def facts(spark: "SparkSession", log_dirs: Sequence[Path | str]) -> "DataFrame":
    """Return what files beside the logs tell of the partitions of log dirs, for `gaps`."""
    from logtool.pipeline import questions_facts

    return questions_facts.facts(spark, log_dirs)


def gaps(edges: "DataFrame", inner: "DataFrame", facts: "DataFrame") -> "DataFrame":
    """Return the table ``gaps``; `edges` and `inner` are those of `gap_rows`."""
    from logtool.pipeline import questions_gaps

    return questions_gaps.gaps(edges, inner, facts)


def producers(batches: "DataFrame") -> "DataFrame":
    """Return the table ``producers``."""
    from logtool.pipeline import questions_producers

    return questions_producers.producers(batches)


def transactions(batches: "DataFrame") -> "DataFrame":
    """Return the table ``transactions``."""
    from logtool.pipeline import questions_producers

    return questions_producers.transactions(batches)


def replicas(batches: "DataFrame", segments: "DataFrame") -> "DataFrame":
    """Return the table ``replicas``."""
    from logtool.pipeline import questions_replicas

    return questions_replicas.replicas(batches, segments)
