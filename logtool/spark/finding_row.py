"""The rows of the table ``findings``."""

from pathlib import Path
from typing import Any

from logtool.disk.files import text_of
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.schemas.tables import FINDING
from logtool.spark.identity import place_of


def finding_row(
    item: Finding | UnreadableError, number: int, log_dirs: frozenset[Path]
) -> dict[str, Any]:
    """Return the row of the table ``findings`` for an item; `number` is its place in the order.

    `log_dirs` are the log dirs of the run, which decide the partition that a path belongs to.
    """
    path = item.path
    row: dict[str, Any] = {"number": number, "path": None if path is None else text_of(path)}
    if path is not None:
        row |= place_of(path, log_dirs)._asdict()
    if isinstance(item, Finding):
        finding = FINDING.row(item)
        columns = (
            "topic",
            "partition",
            "segment",
            "severity",
            "code",
            "broker",
            "remedy",
            "position",
            "length",
            "first_offset",
            "last_offset",
            "next",
        )
        # A line of a checkpoint is about a partition that the checkpoint does not lie in.
        row |= {name: finding[name] for name in columns if finding[name] is not None}
        texts = {name: text_of(row[name]) for name in ("topic", "next") if row.get(name)}
        return row | texts | {"message": text_of(item.message)}
    return row | {"severity": "unreadable", "message": text_of(item.reason)}
