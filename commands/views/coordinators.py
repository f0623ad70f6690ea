"""How the entries of ``__transaction_state`` look, and what one says of an open transaction."""

from typing import TYPE_CHECKING, Any

from logtool.commands.printing import text
from logtool.commands.printing.writers import Column, Object, columns, keep
from logtool.dump.values import or_null
from logtool.times import rfc3339

if TYPE_CHECKING:
    from logtool.txns.coordinator import Account, Entry
    from logtool.txns.joining import JoinedEntry


def age(age_ms: int | None) -> str | None:
    """Return an age for people."""
    return None if age_ms is None else text.duration(max(age_ms, 0) / 1000)


ENTRY = keep((
    *columns("transactional_id", "state", "producer_id", "producer_epoch"),
    Column("age", lambda obj: age(obj["age_ms"])),
    *columns("open", "committed", "aborted", "nothing", "not_here"),
    Column("what_to_do", lambda obj: obj["advice"]),
), "transactional_id", "state", "what_to_do")  # fmt: skip
"""Columns of an entry in a table."""


def of_account(account: "Account | None", now_ms: int) -> dict[str, Any] | None:
    """Return what the coordinators say of an open transaction; None where none was asked."""
    if account is None:
        return None
    entry = account.entry
    return {
        "relation": str(account.relation),
        "transactional_id": account.transactional_id,
        **(dict.fromkeys(_STATE) if entry is None else _state(entry, now_ms)),
    }


def of_entry(joined: "JoinedEntry", bootstrap: str, now_ms: int) -> Object:
    """Return an entry with how its transaction stands in its partitions."""
    from logtool.txns.coordinator import ONGOING, TOPIC
    from logtool.txns.joining import Part, advice_on
    from logtool.txns.open_transactions import terminate_command

    entry = joined.entry
    ongoing = entry.state == ONGOING
    return {
        "type": "coordinator",
        "path": str(entry.path),
        "topic": TOPIC,
        "partition": entry.number,
        "offset": entry.offset,
        "transactional_id": entry.transactional_id,
        **_state(entry, now_ms),
        "previous_producer_id": or_null(entry.previous_producer_id),
        "next_producer_id": or_null(entry.next_producer_id),
        "next_producer_epoch": or_null(entry.next_producer_epoch),
        "transaction_version": entry.transaction_version,
        **{str(part).replace("-", "_"): joined.count(part) for part in Part},
        "partitions": [
            {"topic": topic, "partition": number, "state": str(part)}
            for (topic, number), part in joined.parts.items()
        ],
        "advice": advice_on(entry, now_ms, refused=joined.refused),
        "terminate": terminate_command(bootstrap, entry.transactional_id) if ongoing else None,
    }


_STATE = (
    "state", "producer_id", "producer_epoch", "started_ms", "started", "age_ms", "timeout_ms",
    "times_out_ms", "times_out", "last_update_ms", "last_update",
)  # fmt: skip


def _state(entry: "Entry", now_ms: int) -> dict[str, Any]:
    started, ends = entry.started_ms, entry.times_out_ms
    values = (
        entry.state, entry.producer_id, entry.producer_epoch, started, rfc3339(started),
        None if started is None else now_ms - started, entry.timeout_ms, ends, rfc3339(ends),
        entry.last_update_ms, rfc3339(entry.last_update_ms),
    )  # fmt: skip
    return dict(zip(_STATE, values, strict=True))
