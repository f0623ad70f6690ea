"""Printers of groups, their offsets and the sizes of their records."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from logtool.commands.output import Line, Printer, Report
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.views.group_tables import (
    DOCUMENT,
    GROUP,
    MEMBER,
    OFFSET,
    PENDING,
    REMOVED,
    SHARE,
)
from logtool.findings import Finding
from logtool.groups.history import GroupEvent
from logtool.groups.run import Groups, Item, OffsetsPartition
from logtool.groups.state import DEAD, GroupState

_MOST = 10
"""Partitions that one line names."""


class GroupPrinter(Printer[Item]):
    """Prints group after group, and counts."""

    def __init__(self, report: Report, job: Groups, again: str | None = None) -> None:
        """Begin; `again` is the command that commits removed offsets again, None to not name it."""
        self._report = report
        self._job = job
        self._again = again
        self._in_table = report.settings.format in ("table", "markdown")
        self._states: Counter[str] = Counter()
        self._removed = self._offsets = self._shares = self._pending = self._events = 0
        self._unknown = self._restorable = 0

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
            self._restorable += item.removed_count
            self._pending += len(item.pending)
            self._shares += len(item.shares)
            self._group(item)
        else:
            self._events += isinstance(item, GroupEvent)
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
        if self._job.doubtful:
            names = [f"{topic}-{number}" for topic, number in sorted(self._job.doubtful)]
            have = "has" if len(names) == 1 else "have"
            yield (
                f"{text.some(names, _MOST)} {have} lost records: groups and start offsets that are "
                "stored there may be missing, or older than they were",
                "warning",
            )
        yield from ((one, "warning") for one in self._job.not_found)
        if not self._job.is_listed:
            missing = "groups in absent partitions of __consumer_offsets are not known"
            yield f"no file here lists the partitions that should exist: {missing}", "warning"
        if self._restorable and self._again:
            count = text.count(self._restorable, "removed offset")
            yield f"{count} can be committed again; to print the commands: {self._again}", None
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
