"""Gaps, producers and transactions from batches in the order of the log, one batch at a time.

This shares no code with logtool either: it is the truth for the tables about whole partitions. The
batches are rows of `pipeline.plain_parse`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

Row = dict[str, Any]


def gaps(segments: Iterable[tuple[int, int, list[Row]]], log_start: int) -> Iterator[Row]:
    """Yield the ranges from the log start on that no batch covers.

    A segment is its base offset, the bytes of its log and its batches. The last one has batches.
    """
    before, damaged, expected = None, False, log_start
    for segment, size, batches in segments:
        at = 0
        for batch in batches:
            damaged |= batch["position"] > at
            if batch["base_offset"] > expected:
                kind = "between-batches" if before == segment else "between-segments"
                yield {
                    "first_offset": expected, "last_offset": batch["base_offset"] - 1,
                    "missing": batch["base_offset"] - expected,
                    "kind": "head" if before is None else kind,
                    "before_segment": before, "after_segment": segment, "damaged": damaged,
                }  # fmt: skip
            if batch["last_offset"] >= log_start:
                before, expected = segment, batch["last_offset"] + 1
            at, damaged = batch["position"] + batch["size"], False
        damaged |= at < size


def producers(batches: Iterable[Row]) -> Iterable[Row]:
    """Return a row for each producer id and epoch."""
    found: dict[tuple[int, int], Row] = {}
    for batch in batches:
        if batch["control"] or batch["producer_id"] is None:
            continue
        row = found.setdefault((batch["producer_id"], batch["producer_epoch"]), {
            "producer_id": batch["producer_id"], "producer_epoch": batch["producer_epoch"],
            "first_sequence": batch["base_sequence"], "sequence_breaks": 0,
        })  # fmt: skip
        if "last_sequence" in row:
            follows = (row["last_sequence"] + 1) % 2**31 == batch["base_sequence"]
            row["sequence_breaks"] += not follows
        row["last_sequence"] = batch["last_sequence"]
        _add(row, batch)
    return found.values()


def transactions(batches: Iterable[Row]) -> Iterator[Row]:
    """Yield a row for each transaction; those without a marker come last."""
    found: dict[int, Row] = {}
    for batch in batches:
        if batch["control"]:
            if row := found.pop(batch["producer_id"], None):
                last = max(row["last_timestamp_ms"], batch["max_timestamp_ms"])
                outcome = {"COMMIT": "committed", "ABORT": "aborted"}[batch["control_type"]]
                yield row | {
                    "last_offset": batch["base_offset"], "last_timestamp_ms": last,
                    "outcome": outcome, "coordinator_epoch": batch["coordinator_epoch"],
                }  # fmt: skip
        elif batch["transactional"]:
            _add(found.setdefault(batch["producer_id"], {
                "producer_id": batch["producer_id"], "producer_epoch": batch["producer_epoch"],
                "outcome": "open", "coordinator_epoch": None,
            }), batch)  # fmt: skip
    yield from found.values()


def _add(row: Row, batch: Row) -> None:
    """Add a batch with data to the offsets, times and sums of a row."""
    row.setdefault("first_offset", batch["base_offset"])
    row["last_offset"] = batch["last_offset"]
    row["batches"] = row.get("batches", 0) + 1
    row["records"] = row.get("records", 0) + batch["record_count"]
    times = batch["base_timestamp_ms"], batch["max_timestamp_ms"]
    row["first_timestamp_ms"] = min(row.get("first_timestamp_ms", times[0]), times[0])
    row["last_timestamp_ms"] = max(row.get("last_timestamp_ms", times[1]), times[1])
