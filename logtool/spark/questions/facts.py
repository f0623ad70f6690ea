"""Facts about partitions that are not in their batches: one row each, made where its files are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from logtool.checks.compaction import Cleaning
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.gaps.evidence import Facts, GapCauses
from logtool.gaps.partition_facts import GapOptions, subjects, with_past
from logtool.gaps.table import GapReason
from logtool.log.selection import Selection
from logtool.metadata.policies import Past
from logtool.spark.identity import place_of_dir

_ALL: Final = Selection()

FACTS: Final = pa.schema(
    [
        ("log_dir", pa.string()),
        ("node_id", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("directory", pa.string()),
        ("log_start", pa.int64()),
        ("policy", pa.string()),
        ("policy_source", pa.string()),
        ("cleaner_offset", pa.int64()),
        ("clean", pa.bool_()),
        # Former values of `cleanup.policy`: the offset of the metadata log from which on they are
        # known, and the offset at which the topic was compacted for the first time.
        ("past_since", pa.int64()),
        ("past_compacted_at", pa.int64()),
        ("first_base", pa.int64()),
        # Why the offsets from the log start to the first segment are absent; null: they are not.
        ("beginning_reason", pa.string()),
        ("beginning_evidence", pa.string()),
        # The rows of the checkpoints of the log dir, and the largest offset that any file names.
        ("high_watermark", pa.int64()),
        ("recovery_point", pa.int64()),
        ("claimed_end", pa.int64()),
        # Offset and name of index files without a log, and of producer snapshots.
        ("witness_offsets", pa.list_(pa.int64())),
        ("witness_names", pa.list_(pa.string())),
        ("witness_snapshots", pa.list_(pa.bool_())),
    ]
)
"""`logtool.gaps.evidence.Facts` without the facts from indexes: only those before a gap are
read."""


def facts_of(
    log_dir: Path | str,
    selection: Selection = _ALL,
    on_unreadable: Callable[[UnreadableError], None] = lambda _: None,
) -> Any:
    """Return the rows of a log dir or partition dir; an unreadable partition has none.

    `selection` chooses partitions of a log dir; `on_unreadable` takes what cannot be read.
    """
    rows = []
    path = files.path_of(log_dir) if isinstance(log_dir, str) else log_dir
    for one in subjects(path, GapOptions(), selection):
        if isinstance(one, UnreadableError):
            on_unreadable(one)
            continue
        known, folder = with_past(one, one.facts), one.partition.path
        cleaning, begins = known.cleaning, known.beginning
        columns = [[witness[at] for witness in known.witnesses] for at in range(3)]
        rows.append(
            {
                "log_start": known.log_start,
                "first_base": known.first_base,
                "beginning_reason": str(begins.reason) if begins else None,
                "beginning_evidence": begins.evidence if begins else None,
                "high_watermark": known.high_watermark,
                "recovery_point": known.recovery_point,
                "claimed_end": known.claimed_end,
                "policy": cleaning.policy,
                "policy_source": cleaning.policy_source,
                "cleaner_offset": cleaning.offset,
                "clean": cleaning.clean,
                "past_since": cleaning.past.since if cleaning.past else None,
                "past_compacted_at": cleaning.past.compacted_at if cleaning.past else None,
            }
            | place_of_dir(folder)._asdict()
            | dict(zip(FACTS.names[-3:], columns, strict=True))
        )
    return pa.RecordBatch.from_pylist(rows, schema=FACTS)


def facts_by_directory(rows: Any) -> dict[tuple[str, str], Facts]:
    """Return the facts in rows of `FACTS`, by log dir and directory."""
    return {
        (row["log_dir"], row["directory"]): _facts_in(row)
        for row in rows.select(FACTS.names).to_pylist()
    }


def _facts_in(row: dict[str, Any]) -> Facts:
    """Return the facts of a row."""
    witnesses = zip(
        row["witness_offsets"], row["witness_names"], row["witness_snapshots"], strict=True
    )
    since, compacted_at = row["past_since"], row["past_compacted_at"]
    reason = row["beginning_reason"]
    return Facts(
        log_start=row["log_start"],
        beginning=GapCauses(GapReason(reason), row["beginning_evidence"]) if reason else None,
        high_watermark=row["high_watermark"],
        recovery_point=row["recovery_point"],
        claimed_end=row["claimed_end"],
        cleaning=Cleaning(
            topic=row["topic"],
            offset=row["cleaner_offset"],
            clean=row["clean"],
            policy=row["policy"],
            policy_source=row["policy_source"],
            past=None if since is None else Past(since, compacted_at),
        ),
        first_base=row["first_base"],
        witnesses=tuple(witnesses),
    )
