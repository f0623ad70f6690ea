"""The hot loops over bytes: batches, records, and what plain batches come to.

`_kernels` has the loops, which are compiled where that can be; this is what others take from it.
`COMPILED` says whether they are.
"""

from logtool.formats._kernels import (
    BAD_CRC,
    BAD_HEADER,
    BAD_MAGIC,
    BAD_SIZE,
    BATCH_COLUMNS,
    COMPILED,
    CONTROL_COLUMNS,
    DONE,
    FACTS,
    FULL,
    MORE,
    RECORD_COLUMNS,
    SEGMENT_FACTS,
    SMALLEST_RECORD,
    TYPE_COLUMNS,
    decode_batches,
    due_entries,
    judge_records,
    plain_facts,
    plain_segment,
    walk_batches,
    walk_headers,
    walk_redpanda,
)

__all__ = [
    "BAD_CRC",
    "BAD_HEADER",
    "BAD_MAGIC",
    "BAD_SIZE",
    "BATCH_COLUMNS",
    "COMPILED",
    "CONTROL_COLUMNS",
    "DONE",
    "FACTS",
    "FULL",
    "MORE",
    "RECORD_COLUMNS",
    "SEGMENT_FACTS",
    "SMALLEST_RECORD",
    "TYPE_COLUMNS",
    "decode_batches",
    "due_entries",
    "judge_records",
    "plain_facts",
    "plain_segment",
    "walk_batches",
    "walk_headers",
    "walk_redpanda",
]
