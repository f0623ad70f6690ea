"""The commands that commit the offsets of groups again: how they are printed."""

from collections.abc import Iterator

from logtool.commands.output import Line, Report
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.views.group_printer import GroupPrinter
from logtool.commands.views.group_tables import RESTORE
from logtool.disk import shell
from logtool.findings import Finding
from logtool.groups import restoring
from logtool.groups.run import DOUBTS, Groups, Item, OffsetsPartition
from logtool.groups.state import GroupState

_MOST = 10
"""Offsets that one line names."""
_INCOMPLETE = DOUBTS | {"group/absent-partitions"}
"""Findings that mean that commands may be missing, or commit older offsets."""


class RestorePrinter(GroupPrinter):
    """Prints the commands that commit the offsets again."""

    def __init__(
        self, report: Report, job: Groups, again: str, bootstrap: str, *, removed: bool
    ) -> None:
        """Begin; `again` as `GroupPrinter`. With `removed`, print commands for removed offsets."""
        super().__init__(report, job, None if removed else again)
        self._bootstrap = bootstrap
        self._of_removed = removed
        self._number = self._left_out = self._later = self._back = 0
        self._committed = 0
        self._in_use: list[str] = []
        self._outside: list[str] = []
        self._without_metadata: list[str] = []

    def show(self, item: Item) -> None:
        """Print one item of a run.

        In a table, which a shell reads, a finding becomes a note, or a comment if it concerns the
        commands.
        """
        if self._in_table and isinstance(item, Finding) and item.code not in _INCOMPLETE:
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
        restore = restoring.plan(state, self._bootstrap, self._number + 1, removed=self._of_removed)
        self._left_out += restore.left_out
        self._later += len(state.later)
        if restore.is_empty:
            return
        self._number += restore.command is not None
        self._committed += restore.offset_count
        self._back += len(restore.sets_back)
        if state.member_count and (restore.command or restore.removal):
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
        if self._of_removed:
            line += f"; the commands commit {text.count(self._committed, 'removed offset')} again"
        if self._left_out:
            count = text.count(self._left_out, "offset")
            line += f"; {count} of deleted topics left out"
        if self._later:
            count = text.count(self._later, "partition")
            line += f"; {count} without an offset at that moment keep the present one"
        if self._back:
            line += f"; {text.count(self._back, 'partition')} set back"
        if self._in_use:
            line += f"; first stop the members of {', '.join(map(shell.quote, self._in_use))}"
        return line, style


def lines(obj: Object) -> str:
    """Return the command of a group, and comments of a shell about what it leaves as it is.

    Each line begins with a space, so that a terminal does not fold it: the lines are pasted.
    """
    found = []
    group = shell.quote(obj["group"])
    if obj["in_doubt"] and obj["command"]:
        found.append(
            f"# IN DOUBT: the partition of __consumer_offsets that stores group {group} has "
            "lost records; the group may have committed newer offsets than these:"
        )
    found += [obj["command"]] if obj["command"] else []
    found += _of_share(obj)
    found += map(_set_back, obj["sets_back"][:_MOST])
    if len(obj["sets_back"]) > _MOST:
        more = text.count(len(obj["sets_back"]) - _MOST, "more partition")
        found.append(f"# sets back {more}; --json names them")
    if obj["later"]:
        kept = ", ".join(obj["later"])
        found += [
            f"# group {group} had no offset at that moment in these partitions, and keeps "
            f"the present one: {kept}; to remove it:",
            f"# {obj['removal']}",
        ]
    if obj["removed_left_out"]:
        count = text.count(obj["removed_left_out"], "removed offset")
        are = "is" if obj["removed_left_out"] == 1 else "are"
        found.append(f"# {count} of group {group} {are} left out; --removed prints the command")
    return "\n".join(f" {text.escape(line)}" for line in found)


def _of_share(obj: Object) -> list[str]:
    """Return comments about a share group, whose start offsets no file of offsets can set."""
    found = []
    if obj["share_commands"]:
        group = shell.quote(obj["group"])
        found += [
            f"# share group {group} is left out; its start offsets are set one by one, "
            "while it has no members, and all records from there on are delivered again:",
            *(f"# {one}" for one in obj["share_commands"]),
        ]
    if obj["shares_in_doubt"]:
        found.append(
            "# IN DOUBT: the partition of __share_group_state has lost records; delivery may have "
            f"gone further in: {', '.join(obj['shares_in_doubt'])}"
        )
    return found


def _set_back(one: str) -> str:
    """Return a comment about a partition in `sets_back`."""
    place, _, offsets = one.rpartition("=")
    present, restored = map(int, offsets.split(":"))
    count = text.count(present - restored, "record")
    are = "is" if present - restored == 1 else "are"
    return f"# sets back {place} from {present} to {restored}: up to {count} {are} read again"
