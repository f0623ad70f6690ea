"""The partitions of AutoMQ, shown as the log dir that Kafka would have with the same content.

`logtool.metadata.automq_tree` makes that log dir of a bucket and a metadata log.
"""

from collections.abc import Sequence
from pathlib import Path

from logtool.disk import files
from logtool.formats.names import FileKind
from logtool.log.flavour import FlavourName
from logtool.log.kafka import Kafka


class _Automq(Kafka):
    """The flavour of AutoMQ: names and batches are Kafka's, but no file exists."""

    name = FlavourName.AUTOMQ
    index_kinds = frozenset({FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX})

    def __reduce__(self) -> str:
        return "AUTOMQ"

    def holds(self, path: Path, entries: Sequence[str]) -> bool:
        """Return whether a path stands for what a bucket and a metadata log hold together."""
        return files.is_assembled(path) and path.tree.flavour == self.name  # type: ignore[attr-defined]


AUTOMQ = _Automq()
