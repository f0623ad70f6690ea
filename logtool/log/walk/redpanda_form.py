"""The form of Redpanda's segments: another header before the records of Kafka."""

from typing import Any

from logtool.formats import _kernels
from logtool.formats.record_batch import NO_EPOCH, BatchTable, Column
from logtool.formats.redpanda import record_batch as redpanda_batch
from logtool.log.walk import redpanda_damage
from logtool.log.walk.forms import Form
from logtool.log.walk.redpanda_resync import RedpandaResync

_TERMS = range(2**31)
"""The terms that fit in the place of Kafka's leader epoch."""


def form_of(term: int) -> Form:
    """Return the form of Redpanda's segments of a term; the name of a segment has the term."""
    epoch = term if term in _TERMS else NO_EPOCH

    def walk(
        data: memoryview, start: int, end: int, base: int, rows: Any, first: int
    ) -> tuple[int, int, int]:
        found = _kernels.walk_redpanda(data, start, end, base, epoch, rows, first)
        if not data.readonly:
            _kernels.turn_headers(data, base, epoch, rows, first, found[0])
        return found

    def batch(content: memoryview) -> memoryview:
        if not content.readonly:
            return content
        copied = bytearray(content)
        header = redpanda_batch.parse(content[: redpanda_batch.HEADER_SIZE])
        copied[: redpanda_batch.HEADER_SIZE] = redpanda_batch.to_kafka(header, term=epoch)
        return memoryview(copied)

    def header(head: memoryview) -> BatchTable:
        return redpanda_damage.header_alone(head, epoch)

    return Form(
        walk=walk,
        walk_records=None,
        unwritten=_kernels.CONTROL_COLUMNS,
        head=redpanda_batch.HEADER_SIZE,
        longest_stub=redpanda_batch.HEADER_SIZE - 1,
        least_size=redpanda_batch.HEADER_SIZE,
        zeros=1,
        reserves=True,
        entry_size=redpanda_damage.entry_size,
        describe=redpanda_damage.describe,
        search=RedpandaResync,
        header=header,
        batch=batch,
        is_plain=_is_data,
    )


def _is_data(types: Column) -> bool:
    return bool((types == redpanda_batch.RAFT_DATA).all())
