"""Description of damage where a batch of Redpanda should begin."""

import numpy as np

from logtool.formats import _kernels, wording
from logtool.formats.record_batch import BatchTable
from logtool.formats.redpanda import record_batch
from logtool.formats.redpanda.record_batch import HEADER_SIZE
from logtool.log.damage import DamageReason


def entry_size(head: bytes | memoryview) -> int | None:
    """Return the size of the batch that `head` begins, in bytes; None if the header CRC is wrong.

    Without that CRC the size means nothing: a torn header may have any.
    """
    if len(head) < HEADER_SIZE:
        return None
    header = record_batch.parse(head)
    sound = header.size >= HEADER_SIZE and header.header_crc == record_batch.header_crc(header)
    return header.size if sound else None


def describe(head: bytes, reason: DamageReason, left: int) -> str:
    """Return the expected and the found value as text, for damage that begins with `head`.

    `left` is the number of bytes from the start of the damage to the end of the file.
    """
    if left < HEADER_SIZE:
        return f"the last {wording.count(left, 'byte')} cannot hold the header of a batch"
    header = record_batch.parse(head)
    if reason is DamageReason.INCOMPLETE:
        return f"of a batch of {header.size:,} bytes only {left:,} are there"
    if reason is DamageReason.HEADER:
        return f"CRC-32C of the header does not match the stored {header.header_crc}"
    if reason is DamageReason.SIZE:
        return f"size field holds {header.size}, but at least {HEADER_SIZE} is needed"
    return f"CRC-32C does not match the stored {header.crc}"


def header_alone(head: memoryview, epoch: int) -> BatchTable:
    """Return the row of a batch from its header, which is replaced by Kafka's in `head`."""
    header = record_batch.parse(head)
    head[:HEADER_SIZE] = record_batch.to_kafka(header, term=epoch)
    rows = np.full((_kernels.BATCH_COLUMNS, 1), -1, np.int64)
    _kernels.walk_headers(head, 0, HEADER_SIZE, header.size, 0, rows, 0)
    rows[-_kernels.TYPE_COLUMNS] = header.type
    return BatchTable(*rows)
