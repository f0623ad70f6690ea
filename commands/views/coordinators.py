"""The columns of the entries of ``__transaction_state`` in a table."""

from logtool.commands.printing import text
from logtool.commands.printing.writers import TableColumn, columns, keep


def age(age_ms: int | None) -> str | None:
    """Return an age for people."""
    return None if age_ms is None else text.duration(max(age_ms, 0) / 1000)


ENTRY = keep((
    *columns("transactional_id", "state", "producer_id", "producer_epoch"),
    TableColumn("age", lambda obj: age(obj["age_ms"])),
    *columns("open", "committed", "aborted", "nothing", "not_here"),
    TableColumn("what_to_do", lambda obj: obj["advice"]),
), "transactional_id", "state", "what_to_do")  # fmt: skip
"""Columns of an entry in a table."""
