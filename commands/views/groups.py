"""How groups, their offsets and what happened to them look, and the last line about them."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Column, Columns, Object, columns, keep
from logtool.commands.views.group_tables import (
    DOCUMENT,
    GROUP,
    MEMBER,
    OFFSET,
    PENDING,
    RESTORE,
    SHARE,
)
from logtool.findings import Finding

if TYPE_CHECKING:
    from logtool.groups.judging import GroupState
    from logtool.groups.run import Item, OffsetsPartition

SCHEMA = DOCUMENT.schema
_ROWS = columns(
    "type", "group", "group_type", "state", "members", "epoch", "topic", "partition", "offset",
    "log_start_offset", "log_end_offset", "last_stable_offset", "lag", "stable_lag", "place",
    "topic_is", "member", "commit_ms", "committed", "expires_ms", "expired", "pending",
    "producer_id", "metadata", "leader_epoch", "topic_id", "record_offset", "event", "time",
    "records", "bytes", "superseded_records", "superseded_bytes", "command",
    "deleted", "start_offset", "delivered", "written",
)  # fmt: skip
_NOTES = {
    "below-start": "BELOW LOG START", "beyond-end": "BEYOND LOG END", "other": "OTHER TOPIC ID",
    "gone": "TOPIC IS GONE",
}  # fmt: skip
_OFFSET = keep((
    *columns("topic", "partition", "offset", "log_end_offset", "lag"),
    Column("note", lambda obj: _note(obj)),
    *columns("committed", "stable_lag"),
    Column("expires", lambda obj: _expiry(obj)),
    *columns("member", "metadata"),
), "topic", "partition", "offset", "lag", where_said=("note",))  # fmt: skip
_SHARE = keep((
    *columns("topic", "partition", "start_offset", "delivered", "log_end_offset", "lag"),
    Column("note", lambda obj: _NOTES.get(obj["place"]) if obj["lag"] else None),
    *columns("written", "topic_id"),
), "topic", "partition", "start_offset", "lag", where_said=("note",))  # fmt: skip
_MEMBER = columns("member", "client_id", "client_host", "instance_id", "epoch", "assigned")
_EVENT = keep((
    *columns("record_offset", "time"),
    Column("event", lambda obj: _what(obj)),
    Column("partition", lambda obj: _committed_for(obj)),
    *columns("offset", "member", "producer_id", "state", "members", "epoch"),
), "time", "event", where_said=("partition", "offset"))  # fmt: skip
_SIZE = keep((
    *columns("group", "group_type", "state", "records", "bytes", "superseded_records"),
    Column("superseded", lambda obj: text.share(obj["superseded_bytes"], obj["bytes"])),
    *columns("offsets_partition"),
), "group", "records", "bytes", "superseded")  # fmt: skip


_REDPANDA = "flavour: redpanda; offsets are Kafka's, those of records are Raft's"


def make(settings: OutputSettings, *, for_shell: bool = False) -> View:
    """Return the view of `groups`; a table that is `for_shell` holds commands and comments."""

    def layout(obj: Object) -> Columns | str | None:
        match obj["type"]:
            case "partition":
                return _copies(obj) if obj["other_copies"] or settings.verbose else None
            case "group":
                return _SIZE if obj["only_sizes"] else _heading(obj)
            case "offset":
                return _OFFSET
            case "share-offset":
                return _SHARE
            case "member":
                return _MEMBER if settings.verbose else None
            case "pending":
                return _pending_line(obj)
            case "event":
                return _EVENT
            case "restore":
                return text.escape(obj["command"])
            case "finding":
                return _finding(obj, settings)
        return None

    return View(
        schema=SCHEMA,
        columns=_ROWS,
        layout=layout,
        row_types=frozenset({"group", "offset", "share-offset", "pending", "event", "restore"}),
        of_redpanda=f"# {_REDPANDA}" if for_shell else _REDPANDA,
    )


class Printer:
    """Prints group after group, and counts."""

    def __init__(self, report: Report, bootstrap: str) -> None:
        self.report = report
        self.bootstrap = bootstrap
        self._in_table = report.settings.format in ("table", "markdown")
        self.states: Counter[str] = Counter()
        self.offsets = self.shares = self.pending = self.events = 0
        self.unknown = 0

    def show(self, item: "Item") -> None:
        """Print what a run yields."""
        from logtool.groups.judging import GroupState
        from logtool.groups.run import OffsetsPartition

        if isinstance(item, Finding):
            self.report.item(DOCUMENT.row(item))
        elif isinstance(item, OffsetsPartition):
            self.unknown += item.loaded.unknown_records
            self.partition(item)
        elif isinstance(item, GroupState):
            self.states[item.state] += 1
            self.offsets += len(item.offsets)
            self.pending += len(item.pending)
            self.shares += len(item.shares)
            self.group(item)
        elif not isinstance(item, Exception):
            self.events += 1
            self.report.item(DOCUMENT.row(item))

    def partition(self, item: "OffsetsPartition") -> None:
        """Print a partition of the topic that was read."""
        self.report.item(DOCUMENT.row(item))

    def group(self, state: "GroupState") -> None:
        """Print one group: a table leaves out what is deleted."""
        if state.state == "Dead" and self._in_table and not self.report.settings.verbose:
            return
        self.report.item(GROUP.row(state))
        for member in state.members:
            self.report.item(MEMBER.row(member))
        for one in state.offsets:
            self.report.item(OFFSET.row(one))
        for share in state.shares:
            self.report.item(SHARE.row(share))
        for waiting in state.pending:
            self.report.item(PENDING.row(waiting))

    def finish(self) -> None:
        """Print what was held back."""

    def last_line(self) -> tuple[str, str]:
        """Return what is said in the end, for people, and its style."""
        summary = self.report.summary
        alive = sum(count for state, count in self.states.items() if state != "Dead")
        parts = [text.count(alive, "group"), text.count(self.offsets, "committed offset")]
        if self.events:
            parts = [text.count(self.events, "event")]
        if self.shares:
            parts.append(f"{text.count(self.shares, 'start offset')} of share groups")
        if self.pending:
            parts.append(f"{text.count(self.pending, 'commit')} in open transactions")
        if self.unknown:
            parts.append(f"{text.count(self.unknown, 'record')} of unknown type")
        findings = sum(summary.codes.values())
        parts += [text.count(findings, "finding")] if findings else []
        good = summary.complete and not findings
        return text.state(summary) + ", ".join(parts), "good" if good else "warning"


class Sizes(Printer):
    """Prints what the groups take up, the largest first."""

    def __init__(self, report: Report, bootstrap: str) -> None:
        super().__init__(report, bootstrap)
        self._held: list[Object] = []

    def group(self, state: "GroupState") -> None:
        """Keep what is printed of a group."""
        self._held.append(GROUP.row(replace(state, only_sizes=True)))

    def finish(self) -> None:
        """Print the groups."""
        for obj in sorted(self._held, key=lambda one: (-one["bytes"], one["group"])):
            self.report.item(obj)


class Restoring(Printer):
    """Prints the commands that commit the offsets again."""

    def __init__(self, report: Report, bootstrap: str) -> None:
        super().__init__(report, bootstrap)
        self._number = self._left_out = self._in_use = 0

    def show(self, item: "Item") -> None:
        """Print what a run yields; a table is for a shell, and has commands alone."""
        if self._in_table and isinstance(item, Finding):
            self.report.note(f"{item.severity} {item.code}  {item.path}  {item.message}", "warning")
        else:
            super().show(item)

    def partition(self, item: "OffsetsPartition") -> None:
        """Print a partition where that is not for a shell."""
        if not self._in_table:
            super().partition(item)

    def group(self, state: "GroupState") -> None:
        """Print the command of a group, if it has any offset to restore."""
        from logtool.groups import restoring

        restore = restoring.plan(state, self.bootstrap, self._number + 1)
        self._left_out += restore.left_out
        if restore.command is None:
            return
        self._number += 1
        self._in_use += bool(state.member_count)
        self.report.item(RESTORE.row(restore))

    def last_line(self) -> tuple[str, str]:
        """Return what the commands do not do."""
        line, style = super().last_line()
        if self._left_out:
            count = text.count(self._left_out, "offset")
            line += f"; {count} of deleted topics left out"
        if self._in_use:
            line += f"; stop the members of {text.count(self._in_use, 'group')} first"
        return line, style


def _heading(obj: Object) -> str:
    parts = [obj["group_type"], obj["state"], text.count(obj["members"], "member")]
    if obj["epoch"] is not None:
        word = "generation" if obj["group_type"] == "classic" else "epoch"
        parts.append(f"{word} {obj['epoch']}")
    if obj["protocol"]:
        parts.append(obj["protocol"])
    if obj["state_since"]:
        parts.append(f"since {obj['state_since']}")
    parts.append(f"in __consumer_offsets-{obj['offsets_partition']}")
    return f"{text.escape(obj['group'])}: {text.escape(', '.join(parts))}"


def _copies(obj: Object) -> str:
    line = f"{text.escape(obj['path'])}: {text.count(obj['records'], 'record')} read"
    if obj["other_copies"]:
        others = ", ".join(
            f"{one['path']} (epoch {one['leader_epoch']}, end {one['log_end_offset']})"
            for one in obj["other_copies"]
        )
        mine = f"epoch {obj['leader_epoch']}, end {obj['log_end_offset']}"
        line += f" ({mine}), not {text.escape(others)}"
    return line


def _pending_line(obj: Object) -> str:
    where = f"{obj['topic']}-{obj['partition']}"
    return (
        f"  in an open transaction of producer {obj['producer_id']}: offset {obj['offset']} of "
        f"{text.escape(where)}, since {obj['committed']}"
    )


def _note(obj: Object) -> str | None:
    notes = [_NOTES[key] for key in (obj["topic_is"], obj["place"]) if key in _NOTES]
    return ", ".join(notes) or None


def _what(obj: Object) -> str:
    event = str(obj["event"])
    is_said = event == "delete-offset" or not obj["deleted"]
    return event if is_said else f"{event} removed"


def _committed_for(obj: Object) -> str | None:
    """Return the partition that an event is about: in one cell, the time fits beside it."""
    return None if obj["topic"] is None else f"{obj['topic']}-{obj['partition']}"


def _expiry(obj: Object) -> str | None:
    return "EXPIRED" if obj["expired"] else obj["expires"]


def _finding(obj: Object, settings: OutputSettings) -> str:
    severity = obj["severity"]
    label = output.paint_stdout(f"{severity.upper():<7}", severity, settings.color)
    place = text.escape(str(obj["path"]))
    place += "" if obj["position"] is None else f" @{obj['position']}"
    return f"{label}  {obj['code']}  {place}  {text.escape(obj['message'])}"
