"""The form of a log: Kafka's here, Redpanda's with another header before the same records.

A scan is bound to neither. What it asks of a header stands in a `Form`: how sound batches are
walked, how many bytes the entry takes that a header begins, what is wrong with it in words, and how
the next sound batch is found. The walk of Redpanda's form leaves Kafka's headers in the buffer, so
that a caller which takes the bytes of a chunk needs no second way to read them. In bytes that
cannot be written, as those of a mapping, it leaves Redpanda's headers, and `Form.batch` returns a
batch with Kafka's.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from logtool.formats import _kernels, record_batch
from logtool.formats.record_batch import LOG_OVERHEAD, MIN_ENTRY_SIZE, BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log import damage
from logtool.log.damage import LONGEST_STUB, DamageReason
from logtool.log.walk.candidates import OffsetBounds
from logtool.log.walk.resync import Resync, ScannedBytes


class Search(Protocol):
    """The search for the next sound batch behind damage; see `Resync`."""

    budget: int

    def holds(self, position: int, size: int, magic: int | None = None) -> bool:
        """Return whether the CRC of the entry at `position` holds."""

    def frames(self, at: int, behind: int, offsets: OffsetBounds) -> bool:
        """Return whether damage at `at` is framed: whether a sound batch of the log is `behind`."""

    def next_batch(
        self, at: int, behind: int | None, offsets: OffsetBounds, *, torn: bool
    ) -> int | None:
        """Return where the log goes on behind damage at `at`; None where it does not."""


@dataclass(frozen=True, slots=True)
class Form:
    """The functions and sizes with which a scan reads the headers of a log."""

    walk: Callable[[memoryview, int, int, int, Any, int], tuple[int, int, int]]
    """The walk over batches, with the signature of `_kernels.walk_batches`."""
    walk_records: Callable[[memoryview, int, int, int, Any, int, Any], tuple[int, int, int]] | None
    """The walk with records, with the signature of `_kernels.walk_records`; None without one."""
    unwritten: int
    """Number of columns, the last ones, that the walk does not write."""
    head: int
    """Bytes from which the size of an entry is read."""
    longest_stub: int
    """Bytes that no walk looks at: too few for a header."""
    least_size: int
    """Bytes of the smallest entry."""
    zeros: int
    """Number of zero bytes that are a run of zeros and not a damaged header."""
    reserves: bool
    """True if zeros up to the end of the file are room that a broker reserved, and no damage."""
    entry_size: Callable[[bytes | memoryview], int | None]
    describe: Callable[[bytes, DamageReason, int], str]
    search: Callable[[ScannedBytes, int, int], Search]
    header: Callable[[memoryview], BatchTable]
    """The row of a batch of which there is the header alone, at position 0."""
    batch: Callable[[memoryview], memoryview]
    """The bytes of a batch with Kafka's header."""
    is_plain: Callable[[Column], bool]
    """Return whether `_kernels.plain_facts` knows batches of these types."""


def _kafka_header(head: memoryview) -> BatchTable:
    from logtool.formats import legacy_batch

    table = record_batch.parse(head, [0])
    legacy_batch.fill(table, head, np.zeros(1, np.int64))
    return table


KAFKA_FORM = Form(
    walk=_kernels.walk_batches,
    walk_records=_kernels.walk_records,
    unwritten=_kernels.TYPE_COLUMNS,
    head=LOG_OVERHEAD,
    longest_stub=LONGEST_STUB,
    least_size=MIN_ENTRY_SIZE,
    zeros=LOG_OVERHEAD,
    reserves=False,
    entry_size=damage.entry_size,
    describe=damage.describe,
    search=Resync,
    header=_kafka_header,
    batch=lambda content: content,
    is_plain=lambda _: True,
)
