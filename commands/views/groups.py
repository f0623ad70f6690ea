"""Groups, their offsets and what happened to them: how they are read and look."""

from collections.abc import Sequence

from logtool.commands import options
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep, moment
from logtool.commands.program import parsing
from logtool.commands.program.coordinator_options import ANY_BROKER
from logtool.commands.views import group_restore
from logtool.commands.views.group_printer import GroupPrinter, GroupSizePrinter
from logtool.commands.views.group_restore import RestorePrinter
from logtool.commands.views.group_tables import DOCUMENT
from logtool.disk import shell
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.formats import wording
from logtool.groups.run import Groups
from logtool.log.inputs import GivenPaths
from logtool.running.summary import Summary

SCHEMA = DOCUMENT.schema
_ROWS = columns(
    "type", "group", "group_type", "state", "members", "epoch", "topic", "partition", "offset",
    "log_start_offset", "log_end_offset", "last_stable_offset", "lag", "stable_lag", "place",
    "topic_is", "member", "commit_ms", "committed", "expires_ms", "expired", "pending",
    "producer_id", "metadata", "leader_epoch", "topic_id", "record_offset", "event", "time",
    "records", "bytes", "superseded_records", "superseded_bytes", "later", "command", "removal",
    "deleted", "start_offset", "delivered", "written", "set_back", "ended", "outside",
    "aborted", "aborted_offset", "sets_back", "removed_left_out", "in_doubt", "next_offset",
    "acknowledged", "archived", "first_offset", "last_offset", "delivery_state", "deliveries",
    "again",
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
    *columns("topic", "partition", "start_offset", "next_offset", "log_end_offset", "lag"),
    *columns("acknowledged", "archived"),
    TableColumn("note", lambda obj: _share_note(obj)),
    *columns("written", "topic_id"),
), "topic", "partition", "start_offset", "next_offset", "lag", where_said=("note",))  # fmt: skip
_DELIVERY = keep((
    *columns("topic", "partition"),
    TableColumn("offsets", lambda obj: wording.through(obj["first_offset"], obj["last_offset"])),
    *columns("delivery_state", "deliveries", "again"),
    TableColumn("record", lambda obj: obj["record_offset"]),
), "topic", "partition", "offsets", "delivery_state", "deliveries")  # fmt: skip
_REMOVED = keep((
    *columns("topic", "partition"),
    TableColumn("removed_offset", lambda obj: obj["offset"]),
    *columns("committed"),
), "topic", "partition", "removed_offset")  # fmt: skip
_MEMBER = columns("member", "client_id", "client_host", "instance_id", "epoch", "assigned")
_EVENT = keep((
    TableColumn("record", lambda obj: obj["record_offset"]),
    *columns("time"),
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
"""Records or offsets that one cell or line names."""
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
    removed: bool,
    retention: str,
    now: str | None,
    at: str | None,
    bootstrap: str,
    fail_on: Severity,
) -> Exit:
    """Print the groups that match `groups`, or the history of one; return the exit status.

    With `sizes`, print how much of the topic each group takes up; with `restore_plan`, the commands
    that commit its offsets again; with `removed` only its removed offsets. `at` is the moment of
    the state; None for the end of the log.
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
        restores_removed=removed,
        retention_ms=round(1000 * parsing.parse_duration("--offsets-retention", retention)),
    )  # fmt: skip
    if meaning:
        report.note(meaning, "dim")
    again = _again(inputs, given, groups, bootstrap)
    printer: GroupPrinter
    if restore_plan:
        printer = RestorePrinter(report, job, again, bootstrap, removed=removed)
    elif sizes:
        printer = GroupSizePrinter(report, job)
    else:
        printer = GroupPrinter(report, job, again if at is None else None)
    return report.consume(job, printer, fail_on)


def _again(
    inputs: options.AnyInputs, given: GivenPaths, groups: Sequence[str], bootstrap: str
) -> str:
    """Return the command that prints how the removed offsets are committed again."""
    words = [
        "logtool groups --restore-plan --removed",
        *(shell.option("--group", glob) for glob in groups),
        str(given.selection),
        "" if bootstrap == ANY_BROKER else shell.option("--bootstrap-server", bootstrap),
        f"--flavour {inputs.flavour}" if inputs.flavour else "",
        *map(shell.path, given.paths),
    ]
    return " ".join(word for word in words if word)


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
            case "share-delivery":
                return _DELIVERY
            case "member":
                return _MEMBER if settings.verbose else None
            case "pending":
                return _pending_line(obj)
            case "event":
                return _EVENT
            case "restore":
                return group_restore.lines(obj)
            case "finding":
                found = _finding(obj, settings, for_shell=for_shell)
                return f" # {found}" if for_shell else found
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
                "share-delivery",
                "pending",
                "event",
                "restore",
            }
        ),
        of_redpanda=f"# {_REDPANDA}" if for_shell else _REDPANDA,
    )


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
    parts += ["which has lost records"] if obj["in_doubt"] else []
    lines = [f"{text.escape(obj['group'])}: {text.escape(', '.join(parts))}"]
    if obj["lacking"]:
        named = text.some(obj["lacking"], _MOST)
        lines.append(f"  __share_group_state has no start offset of {named} any more")
    if obj["aborted"]:
        named = ", ".join(obj["aborted"][:_MOST])
        more = len(obj["aborted"]) - _MOST
        named += f" and {more} more" if more > 0 else ""
        lines.append(f"  newer commits in aborted transactions do not count: {text.escape(named)}")
    return "\n".join(lines)


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
    notes += ["EXPIRED"] if obj["expired"] else []
    notes += ["NEWER COMMIT MAY BE LOST"] if obj["in_doubt"] else []
    return ", ".join(notes) or None


def _share_note(obj: Object) -> str | None:
    notes = [_NOTES[obj["place"]]] if obj["lag"] and obj["place"] in _NOTES else []
    notes += ["NEWER STATE MAY BE LOST"] if obj["in_doubt"] else []
    return ", ".join(notes) or None


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


def _finding(obj: Object, settings: OutputSettings, *, for_shell: bool) -> str:
    severity = obj["severity"]
    label = f"{severity.upper():<7}"
    if not for_shell:
        label = terminal.paint_stdout(label, severity, settings.color)
    place = text.escape(str(obj["path"]))
    place += "" if obj["position"] is None else f" @{obj['position']}"
    return f"{label}  {obj['code']}  {place}  {text.escape(obj['message'])}"
