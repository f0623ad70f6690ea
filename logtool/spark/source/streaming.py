"""The data source ``kafka-log`` as a stream: the new rows of log dirs, in micro-batches.

Spark writes the positions of `growing` into its checkpoint before it reads a micro-batch. After a
failure it reads between these positions again, and gets the same rows. A sink that takes a
micro-batch once, such as files or Delta, has each row exactly once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from logtool.spark.source.read_tasks import ReadTask
from logtool.spark.source.stream_offsets import Growing, Positions
from logtool.spark.worker_errors import in_one_sentence

Rows = Callable[[Sequence[ReadTask]], Iterator[Any]]
"""Function that yields the rows of pieces as `pyarrow.RecordBatch`es; LostDataError for a file that
was removed, if the stream is not to go on."""


class Share(InputPartition):
    """The pieces that one task reads of a micro-batch."""

    def __init__(self, pieces: Sequence[ReadTask]) -> None:
        """Take pieces of one or more segments."""
        super().__init__(None)
        self.pieces = tuple(pieces)


class KafkaLogStreamReader(DataSourceStreamReader):
    """The reader of a stream: it plans in a process of the driver and reads in executors.

    The process of the driver lives as long as the query.
    """

    def __init__(self, growing: Growing, rows: Rows) -> None:
        self._growing = growing
        self._rows = rows
        self._known: Positions = {}

    def initialOffset(self) -> Positions:  # noqa: N802  (Spark's names, here and below)
        """Return the positions at which a query without a checkpoint begins."""
        with in_one_sentence():
            return self._growing.initial()

    def latestOffset(self) -> Positions:  # type: ignore[override]  # noqa: N802
        """Return the ends of the logs now. Spark before 4.2 passes no arguments here."""
        with in_one_sentence():
            self._known = self._growing.latest(self._known)
            return self._known

    def partitions(self, start: Positions, end: Positions) -> Sequence[InputPartition]:
        """Return the pieces of each task, from one position to another."""
        with in_one_sentence():
            return [Share(pieces) for pieces in self._growing.between(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task."""
        pieces = partition.pieces if isinstance(partition, Share) else ()
        with in_one_sentence():
            yield from self._rows(pieces)
