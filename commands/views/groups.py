"""Groups, their offsets and what happened to them: how they are read and look."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep, moment
from logtool.commands.program import parsing
from logtool.commands.views.group_tables import (
    DOCUMENT,
    GROUP,
    MEMBER,
    OFFSET,
    PENDING,
    REMOVED,
    RESTORE,
    SHARE,
)
from logtool.disk import shell
from logtool.exits import Exit
from logtool.findings import Finding, Severity
from logtool.groups import restoring
from logtool.groups.run import Groups, Item, OffsetsPartition
from logtool.groups.state import DEAD, GroupState
from logtool.running.summary import Summary

SCHEMA = DOCUMENT.schema
_ROWS = columns(
    "type", "group", "group_type", "state", "members", "epoch", "topic", "partition", "offset",
    "log_start_offset", "log_end_offset", "last_stable_offset", "lag", "stable_lag", "place",
    "topic_is", "member", "commit_ms", "committed", "expires_ms", "expired", "pending",
    "producer_id", "metadata", "leader_epoch", "topic_id", "record_offset", "event", "time",
    "records", "bytes", "superseded_records", "superseded_bytes", "later", "command", "removal",
    "deleted", "start_offset", "delivered", "written", "set_back", "ended", "outside",
)  # fmt: skip
_NOTES = {
    "below-start": "BELOW LOG START", "beyond-end": "BEYOND LOG END", "other": "OTHER TOPIC ID",
    "gone": "TOPIC IS DELETED",
}  # fmt: skip
_OFFSET = keep((
    *columns("topic", "partition", "offset", "log_end_offset", "lag"),
    TableColumn("note", lambda obj: _note(obj)),
    TableColumn("committed", lambda obj: moment(obj, "committed", "commit_ms")),
    *columns("stable_lag"),
    *columns("expires", "member", "metadata"),
), "topic", "partition", "offset", "lag", "committed", where_said=("note",))  # fmt: skip
_SHARE = keep((
    *columns("topic", "partition", "start_offset", "delivered", "log_end_offset", "lag"),
    TableColumn("note", lambda obj: _NOTES.get(obj["place"]) if obj["lag"] else None),
    *columns("written", "topic_id"),
), "topic", "partition", "start_offset", "lag", where_said=("note",))  # fmt: skip
_REMOVED = keep((
    *columns("topic", "partition"),
    TableColumn("removed_offset", lambda obj: obj["offset"]),
    *columns("committed"),
), "topic", "partition", "removed_offset")  # fmt: skip
_MEMBER = columns("member", "client_id", "client_host", "instance_id", "epoch", "assigned")
_EVENT = keep((
    *columns("record_offset", "time"),
    TableColumn("event", lambda obj: _what(obj)),
    TableColumn("partition", lambda obj: _committed_for(obj)),
    *columns("offset", "member", "producer_id", "state", "members", "epoch"),
), "time", "event", where_said=("partition", "offset"))  # fmt: skip
_SIZE = keep((
    *columns("group", "group_type", "state", "records", "bytes", "superseded_records"),
    TableColumn("superseded", lambda obj: text.share(obj["superseded_bytes"], obj["bytes"])),
    *columns("offsets_partition"),
), "group", "records", "bytes", "superseded")  # fmt: skip

_MOST = 10
"""Records or partitions that one cell or line names."""
_REDPANDA = (
    "flavour: redpanda; committed offsets are Kafka offsets, offsets of records are Raft offsets"
)


def run(
    inputs: options.AnyInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    groups: Sequence[str],
    history: str | None,
    sizes: bool,
    restore_plan: bool,
    retention: str,
    now: str | None,
    at: str | None,
    bootstrap: str,
    fail_on: Severity,
) -> Exit:
    """Print the groups that match `groups`, or the history of one; return the exit status.

    With `sizes`, print how much of the topic each group takes up; with `restore_plan`, the commands
    that commit its offsets again. `at` is the moment of the state; None for the end of the log.
    """
    settings, summary, given = printing.settings(), Summary(), inputs.of_one_cluster()
    now_ms, meaning = parsing.now_ms(), None
    if now is not None:
        now_ms, meaning = parsing.parse_moment("--now", now)
    elif at is not None:
        now_ms, meaning = parsing.parse_moment("--at", at)
    report = Report(settings, make(settings, for_shell=restore_plan), summary, given)
    job = Groups(
        paths=given.paths, now_ms=now_ms, groups=groups, selection=given.selection,
        summary=summary, history_of=history, flavour=given.flavour, run=running.run(report),
        at_ms=None if at is None else now_ms, compares_with_end=restore_plan,
        retention_ms=round(1000 * parsing.parse_duration("--offsets-retention", retention)),
    )  # fmt: skip
    if meaning:
        report.note(meaning, "dim")
    if restore_plan:
        return report.consume(job, RestorePrinter(report, job, bootstrap), fail_on)
    printer = GroupSizePrinter(report, job) if sizes else GroupPrinter(report, job)
    return report.consume(job, printer, fail_on)


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
            case "removed-offset":
                return _REMOVED
            case "share-offset":
                return _SHARE
            case "member":
                return _MEMBER if settings.verbose else None
            case "pending":
                return _pending_line(obj)
            case "event":
                return _EVENT
            case "restore":
                return _restore(obj)
            case "finding":
                return _finding(obj, settings)
        return None

    return View(
        schema=SCHEMA,
        columns=_ROWS,
        layout=layout,
        row_types=frozenset(
            {
                "group",
                "offset",
                "removed-offset",
                "share-offset",
                "pending",
                "event",
                "restore",
            }
        ),
        of_redpanda=f"# {_REDPANDA}" if for_shell else _REDPANDA,
    )


class GroupPrinter(Printer[Item]):
    """Prints group after group, and counts."""

    def __init__(self, report: Report, job: Groups) -> None:
        self._report = report
        self._job = job
        self._in_table = report.settings.format in ("table", "markdown")
        self._states: Counter[str] = Counter()
        self._removed = self._offsets = self._shares = self._pending = self._events = 0
        self._unknown = 0

    def show(self, item: Item) -> None:
        """Print one item of a run, and count it."""
        if isinstance(item, Finding):
            self._report.item(DOCUMENT.row(item))
        elif isinstance(item, OffsetsPartition):
            self._unknown += item.loaded.unknown_records
            self._partition(item)
        elif isinstance(item, GroupState):
            self._states[item.state] += 1
            self._offsets += len(item.offsets)
            self._removed += bool(item.removed)
            self._pending += len(item.pending)
            self._shares += len(item.shares)
            self._group(item)
        else:
            self._events += 1
            self._report.item(DOCUMENT.row(item))

    def _partition(self, item: OffsetsPartition) -> None:
        """Print one partition of __consumer_offsets that was read."""
        self._report.item(DOCUMENT.row(item))

    def _group(self, state: GroupState) -> None:
        """Print one group: a table leaves out a deleted one whose offsets the log has no more."""
        is_left_out = self._in_table and not self._report.settings.verbose
        if state.state == DEAD and not state.removed and is_left_out:
            return
        self._report.item(GROUP.row(state))
        for member in state.members:
            self._report.item(MEMBER.row(member))
        for one in state.offsets:
            self._report.item(OFFSET.row(one))
        for removed in state.removed:
            self._report.item(REMOVED.row(removed))
        for share in state.shares:
            self._report.item(SHARE.row(share))
        for waiting in state.pending:
            self._report.item(PENDING.row(waiting))

    def last_lines(self) -> Iterator[Line]:
        """Yield warnings about a damaged metadata log and missing partitions, and the counts."""
        if self._job.metadata_damage:
            known = "topic ids are known only from partition.metadata"
            why = self._job.metadata_damage
            yield f"the metadata log cannot be read to its end; {known}: {why}", "warning"
        if self._job.absent:
            count = f"{text.count(self._job.absent, 'partition')} of __consumer_offsets"
            are, them = ("is", "it") if self._job.absent == 1 else ("are", "them")
            where = f"{count} {are} missing from these log dirs"
            yield f"{where}; groups stored in {them} are not shown", "warning"
        if not self._job.is_listed:
            missing = "groups in absent partitions of __consumer_offsets are not known"
            yield f"no file here lists the partitions that should exist: {missing}", "warning"
        yield self._last_line()

    def _last_line(self) -> Line:
        """Return the line with the counts."""
        summary = self._report.summary
        alive = sum(count for state, count in self._states.items() if state != DEAD)
        parts = [text.count(alive, "group"), text.count(self._offsets, "committed offset")]
        if self._events:
            parts = [text.count(self._events, "event")]
        if self._shares:
            parts.append(f"{text.count(self._shares, 'start offset')} of share groups")
        if self._removed:
            parts.append(f"{text.count(self._removed, 'group')} with removed offsets")
        if self._pending:
            parts.append(f"{text.count(self._pending, 'commit')} in open transactions")
        if self._unknown:
            parts.append(f"{text.count(self._unknown, 'record')} of unknown type")
        findings = sum(summary.codes.values())
        parts += [text.count(findings, "finding")] if findings else []
        good = summary.complete and not findings
        return text.state(summary) + ", ".join(parts), "good" if good else "warning"


class GroupSizePrinter(GroupPrinter):
    """Prints what the groups take up, the largest first."""

    def __init__(self, report: Report, job: Groups) -> None:
        super().__init__(report, job)
        self._kept: list[Object] = []

    def _group(self, state: GroupState) -> None:
        """Keep the row with the sizes of a group for `finish`."""
        self._kept.append(GROUP.row(replace(state, only_sizes=True)))

    def finish(self) -> None:
        """Print the groups."""
        for obj in sorted(self._kept, key=lambda one: (-one["bytes"], one["group"])):
            self._report.item(obj)


class RestorePrinter(GroupPrinter):
    """Prints the commands that commit the offsets again."""

    def __init__(self, report: Report, job: Groups, bootstrap: str) -> None:
        super().__init__(report, job)
        self._bootstrap = bootstrap
        self._number = self._left_out = self._later = 0
        self._in_use: list[str] = []
        self._outside: list[str] = []
        self._without_metadata: list[str] = []

    def show(self, item: Item) -> None:
        """Print one item of a run; in a table, which a shell reads, a finding becomes a note."""
        if self._in_table and isinstance(item, Finding):
            line = f"{item.severity} {item.code}  {item.path}  {item.message}"
            self._report.note(line, "warning")
        else:
            super().show(item)

    def _partition(self, item: OffsetsPartition) -> None:
        """Print a partition where that is not for a shell."""
        if not self._in_table:
            super()._partition(item)

    def _group(self, state: GroupState) -> None:
        """Print the command of a group, if it has any offset to restore."""
        restore = restoring.plan(state, self._bootstrap, self._number + 1)
        self._left_out += restore.left_out
        self._later += len(state.later)
        if restore.command is None and restore.removal is None:
            return
        self._number += restore.command is not None
        if state.member_count:
            self._in_use.append(state.name)
        self._outside += restore.outside
        if restore.metadata_count:
            self._without_metadata.append(state.name)
        self._report.item(RESTORE.row(restore))

    def last_lines(self) -> Iterator[Line]:
        """Yield the names of groups whose metadata is lost, and the lines of all groups."""
        if self._without_metadata:
            names = ", ".join(shell.quote(one) for one in self._without_metadata)
            what = "the metadata that was committed with offsets, which Kafka's tool cannot set"
            yield f"the commands leave out {what}; groups with metadata: {names}", "warning"
        if self._outside:
            named = ", ".join(self._outside[:_MOST])
            more = len(self._outside) - _MOST
            named += f" and {more} more" if more > 0 else ""
            count = text.count(len(self._outside), "offset")
            yield (
                f"{count} outside of the log: Kafka's tool commits the log end or the log start "
                f"instead, and warns: {named}",
                "warning",
            )
        yield from super().last_lines()

    def _last_line(self) -> Line:
        """Return the line with the counts, and what the commands do not do."""
        line, style = super()._last_line()
        if self._left_out:
            count = text.count(self._left_out, "offset")
            line += f"; {count} of deleted topics left out"
        if self._later:
            count = text.count(self._later, "partition")
            line += f"; {count} without an offset at that moment keep the present one"
        if self._in_use:
            line += f"; first stop the members of {', '.join(map(shell.quote, self._in_use))}"
        return line, style


def _heading(obj: Object) -> str:
    parts = [obj["group_type"], obj["state"], text.count(obj["members"], "member")]
    if obj["epoch"] is not None:
        word = "generation" if obj["group_type"] == "classic" else "epoch"
        parts.append(f"{word} {obj['epoch']}")
    if obj["protocol"]:
        parts.append(obj["protocol"])
    if obj["source_topics"]:
        parts.append(f"reads {', '.join(obj['source_topics'])}")
    if since := moment(obj, "state_since", "state_ms"):
        parts.append(f"since {since}")
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
        f"{text.escape(where)}, since {moment(obj, 'committed', 'commit_ms')}"
    )


def _note(obj: Object) -> str | None:
    notes = [_NOTES[key] for key in (obj["topic_is"], obj["place"]) if key in _NOTES]
    return ", ".join([*notes, *(["EXPIRED"] if obj["expired"] else [])]) or None


def _what(obj: Object) -> str:
    event = str(obj["event"])
    if obj["set_back"]:
        return f"{event}, back by {obj['set_back']}"
    if obj["ended"]:
        records = ", ".join(map(str, obj["ended"][:_MOST]))
        more = len(obj["ended"]) - _MOST
        return f"{event}: {records}" + (f" and {more} more" if more > 0 else "")
    is_said = event == "delete-offset" or not obj["deleted"]
    return event if is_said else f"{event} removed"


def _committed_for(obj: Object) -> str | None:
    """Return the partition that an event is about: in one cell, so that the time fits too."""
    return None if obj["topic"] is None else f"{obj['topic']}-{obj['partition']}"


def _restore(obj: Object) -> str:
    """Return the command of a group, and comments of a shell about what it leaves as it is.

    Each line begins with a space, so that a terminal does not fold it: the lines are pasted.
    """
    lines = [obj["command"]] if obj["command"] else []
    if obj["later"]:
        kept = ", ".join(obj["later"])
        lines += [
            f"# group {obj['group']} had no offset at that moment in these partitions, and keeps "
            f"the present one: {kept}; to remove it:",
            f"# {obj['removal']}",
        ]
    return "\n".join(f" {text.escape(line)}" for line in lines)


def _finding(obj: Object, settings: OutputSettings) -> str:
    severity = obj["severity"]
    label = terminal.paint_stdout(f"{severity.upper():<7}", severity, settings.color)
    place = text.escape(str(obj["path"]))
    place += "" if obj["position"] is None else f" @{obj['position']}"
    return f"{label}  {obj['code']}  {place}  {text.escape(obj['message'])}"
