"""The copies of a key for people: two lines for each on a terminal, else a table.

A terminal has no room for a table with the names of files and the reasons.
"""

from collections.abc import Sequence
from typing import Final

from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn
from logtool.erasure.fates import Refuge
from logtool.erasure.states import ReadableBy
from logtool.retention.rules import DeletionRule, Obstacle
from logtool.times import rfc3339

_MOST = 8
"""Offsets that are named one by one."""
_READERS: Final = {
    ReadableBy.ANY: "any consumer",
    ReadableBy.UNCOMMITTED: "read_uncommitted only",
    ReadableBy.NONE: "no consumer",
}


class CopyLines:
    """The lines of copies, with a heading for each broker."""

    def __init__(self) -> None:
        """Begin without a heading."""
        self._node: int | None = None

    def of(self, obj: Object) -> str | None:
        """Return the lines of an object."""
        if obj["type"] != "copy":
            return shown_error(obj)
        lines = [] if obj["node"] in (None, self._node) else [f"node {obj['node']}"]
        self._node = obj["node"]
        kind = f" ({_kind(obj)})" if _kind(obj) else ""
        what = f"at {offsets_in(obj['offsets'])}{kind}: {_reader(obj)}; {_end(obj)}"
        return "\n".join([*lines, text.escape(_file(obj)), f"  {what}"])


def shown_error(obj: Object) -> str | None:
    """Return the line of damage in its place."""
    if obj["type"] != "error" or obj["position"] is None:
        return None
    return text.escape(f"!! {obj['path']}: byte {obj['position']}: {obj['message']}")


def offsets_in(offsets: Sequence[int]) -> str:
    """Return offsets one by one if they are few, else the range and their number."""
    if len(offsets) <= _MOST:
        return ", ".join(map(str, offsets))
    return f"{offsets[0]} to {offsets[-1]} ({text.count(len(offsets), 'record')})"


def moment(at_ms: int) -> str:
    """Return a time in UTC, to the second."""
    date = rfc3339(at_ms)
    return f"{date[:19].replace('T', ' ')} UTC" if date else "a time after the year 9999"


def _file(obj: Object) -> str:
    return "/".join(obj["path"].rsplit("/", 2)[-2:])


def _kind(obj: Object) -> str:
    words = (
        ("tombstone", obj["is_tombstone"] and obj["obstacle"] != Refuge.TOMBSTONE),
        ("aborted", obj["transaction"] == "aborted"),
        ("open transaction", obj["transaction"] == "open"),
        ("below the log start", obj["is_below_start"]),
    )
    return ", ".join(word for word, holds in words if holds)


def _reader(obj: Object) -> str:
    return _READERS[obj["readable_by"]]


def _end(obj: Object) -> str:
    rule, why = obj["rule"], obj["obstacle"]
    if obj["gone_ms"] is None:
        horizon = obj["delete_horizon_ms"]
        is_waiting = why == Refuge.TOMBSTONE and horizon is not None
        return f"stays: {why}" + (f", horizon {moment(horizon)}" if is_waiting else "")
    is_plain = why is None or (rule, why) == (DeletionRule.TIME, Obstacle.AGE)
    return f"gone {moment(obj['gone_ms'])} ({rule if is_plain else f'{rule}; {why} before'})"


COLUMNS: Columns = (
    TableColumn("node", lambda obj: obj["node"]),
    TableColumn("file", _file),
    TableColumn("offsets", lambda obj: offsets_in(obj["offsets"])),
    TableColumn("kind", _kind),
    TableColumn("readable by", _reader),
    TableColumn("end", _end),
)
