"""Output of the volumes of a cluster, of its controllers and partitions, and of the steps."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from logtool.cluster.run import ClusterRun, ClusterVerdict, Found
from logtool.cluster.volumes import WRONG, is_new_disk
from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object, columns, keep
from logtool.commands.program import broker_config, parsing
from logtool.commands.views.cluster_tables import DOCUMENT
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.exits import Exit
from logtool.findings import Finding, Severity
from logtool.formats import wording
from logtool.node.options import StartOptions
from logtool.quorum.voters import parse_named
from logtool.running.summary import ActionSummary
from logtool.times import shown

_ROWS = keep(columns(
    "type", "path", "topic", "partition", "status", "node", "directory_id", "partitions",
    "metadata_end_offset", "metadata_timestamp_ms", "image_leader", "in_sync", "elected",
    "best_leader", "missing", "strays", "nowhere", "detail",
), "type", "path", "topic", "partition", "status")  # fmt: skip
_CALM = ("online", "metadata", "cordoned", "unregistered", "unknown", "in-order")
_GRAVE = frozenset({"loses", "leaderless", "no-copy", *WRONG})
_MOST_PARTITIONS = 50
"""Partitions in order that a table shows one by one."""


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    kafka_version: str | None,
    controller: int | None,
    fail_on: Severity,
) -> Exit:
    """Print the volumes of a cluster and what their start does; return the exit status."""
    settings, places = printing.settings(), inputs.node_dirs()
    # A new disk has nothing that a selection could match.
    with_files = [place.path for place in places if not _is_new_disk(place.path)]
    given = inputs.resolved(with_files or [place.path for place in places])
    version = parsing.kafka_version(kafka_version)
    summary = ActionSummary()
    view = View(
        schema=DOCUMENT.schema,
        columns=_ROWS,
        layout=lambda obj: _ROWS if obj["type"] in ("volume", "partition") else None,
        lines={"table": lambda obj: _line(obj, settings)},
        row_types=frozenset({"volume", "partition"}),
        sparse=True,
    )
    report = Report(settings=settings, view=view, summary=summary, inputs=given)
    taken = inputs.broker.take(broker_config.VOTERS, broker_config.LEAST_IN_SYNC)
    voters = taken.get(broker_config.VOTERS)
    static = {name: value for name, value in taken.items() if name != broker_config.VOTERS}
    job = ClusterRun(
        places=places,
        settings=StartOptions(version, static=static),
        selection=given.selection,
        run=running.run(report),
        configured=parse_named(voters, broker_config.VOTERS) if voters else None,
        controller=controller,
        summary=summary,
    )
    return report.consume(job, ClusterPrinter(report), fail_on)


def _is_new_disk(path: Path) -> bool:
    with suppress(UnreadableError):
        return is_new_disk(path)
    return False


class ClusterPrinter(Printer[Found | ClusterVerdict]):
    """Prints the page in its order; findings after the volumes that they are about."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._verdict: ClusterVerdict | None = None
        self._table = report.settings.format == "table"
        self._in_order = self._left_out = 0

    def show(self, item: Found | ClusterVerdict) -> None:
        """Print one item; a table leaves out most partitions that are in order."""
        obj = DOCUMENT.row(item)
        if isinstance(item, ClusterVerdict):
            self._verdict = item
            if item.verify:
                self._report.summary.next.setdefault(item.verify)
        if self._table and obj.get("status") == "in-order" and not self._report.settings.verbose:
            self._in_order += 1
            if self._in_order > _MOST_PARTITIONS:
                self._left_out += 1
                return
        if not (self._table and isinstance(item, Finding) and item.severity is Severity.INFO):
            self._report.item(obj)

    def last_lines(self) -> Iterator[Line]:
        """Yield the number of partitions that were left out, and the verdict."""
        if self._left_out:
            yield f"{text.count(self._left_out, 'more partition')} in order (-v shows all)", "dim"
        found = self._verdict
        if found is None:
            return
        words = {
            "start": "the nodes may start in any order",
            "in-order": "the nodes should start as the steps say",
            "do-not-start": "do not start before the first steps are done",
        }
        parts = [
            f"{what} in {text.count(number, 'partition')}"
            for number, what in (
                (found.losing, "a leader that may be elected loses acknowledged records"),
                (found.may_lose, "such a leader may lose acknowledged records"),
                (found.without_leader, "it is not sure that a leader is elected"),
                (found.without_copy, "no volume has a copy"),
            )
            if number
        ]
        if found.ahead_offsets:
            parts.append(f"{text.count(found.ahead_offsets, 'committed offset')} ahead of a leader")
        if found.strays:
            parts.append(f"{text.count(found.strays, 'directory', 'directories')} become strays")
        if found.repairs:
            replicas = text.count(found.repairs, "replica")
            parts.append(f"another volume can fill {replicas}")
        summary = self._report.summary
        if not (parts or summary.severities or summary.unreadable):
            parts = ["by their offsets, no volume lacks what another one has"]
        if found.verify:
            size = text.size(found.unread_bytes)
            parts.append(
                f"NOT READ: {size} of logs below the recovery points, which may be damaged; to "
                f"check them: {found.verify}"
            )
        if found.undelete:
            dirs = text.count(found.deleted, "-delete directory is", "-delete directories are")
            parts.append(
                f"{dirs} deleted after the start; to save their records first: {found.undelete}"
            )
        count = text.count(found.partitions, "partition")
        line = f"{text.state(summary)}{count}: {'; '.join([words[found.start], *parts])}"
        yield line, "good" if found.is_calm else "error"


def _line(obj: Object, settings: OutputSettings) -> str | None:
    kind = {
        "volume": _volume, "controllers": _controllers, "partition": _partition,
        "other-topic": _other_topic, "step": _step, "cluster": _times, "finding": _finding,
        "action": _action, "ahead": _ahead,
    }[str(obj["type"])]  # fmt: skip
    status = obj.get("status")
    if status is None:
        return kind(obj)
    style = "good" if status in _CALM else "error" if status in _GRAVE else "warning"
    return f"{terminal.paint_stdout(f'{status:<17}', style, settings.color)} {kind(obj)}"


def _volume(obj: Object) -> str:
    place = "not given" if obj["path"] is None else text.escape(obj["path"])
    parts = [f"{place}: node {'unknown' if obj['node'] is None else obj['node']}"]
    if obj["directory_id"]:
        parts.append(f"directory id {obj['directory_id']}")
    parts.append(text.count(obj["partitions"], "partition"))
    if obj["metadata_end_offset"] is not None:
        moment = obj["metadata_timestamp_ms"]
        when = "" if moment is None else f" ({shown(moment)})"
        parts.append(f"metadata log ends at {obj['metadata_end_offset']}{when}")
    if obj["clean"] is not None:
        parts.append("stopped cleanly" if obj["clean"] else "not stopped cleanly")
    line = ", ".join(parts)
    return f"{line}; {text.escape(obj['detail'])}" if obj["detail"] and obj["path"] else line


def _controllers(obj: Object) -> str:
    voters = ", ".join(map(str, obj["voters"])) or "not known"
    lines = [f"controllers: voters {voters}"]
    if obj["missing"]:
        lines[0] += f"; no metadata log given of: {', '.join(map(str, obj['missing']))}"
    if obj["has_majority"] is False:
        lines.append("  NO MAJORITY: no controller can be elected")
    elif obj["may_win"]:
        lines.append(f"  may win the election: {', '.join(map(str, obj['may_win']))}")
    if obj["not_assumed"]:
        lines.append(f"  the node of --controller is not taken to win: {obj['not_assumed']}")
    if obj["unlikely"]:
        lines.append(
            f"  node {obj['node']} is taken to win, as --controller asks, but is not expected to: "
            f"{obj['unlikely']}"
        )
    behind = f", {text.count(obj['behind'], 'offset')} behind the longest" if obj["behind"] else ""
    if behind and not obj["lacks_changes"]:
        behind += " (NoOp records, which change nothing)"
    lines.append(
        f"  metadata log of node {obj['node']}, which the brokers get, ends at "
        f"{obj['log_end_offset']}, epoch {obj['last_epoch']}{behind}"
    )
    if obj["problem"]:
        lines.append(
            f"  this metadata log cannot be read to its end: {text.escape(obj['problem'])}"
        )
    return "\n".join(lines)


def _partition(obj: Object) -> str:
    no_one = "none without an unclean election" if obj["leaders"] else "none"
    elected = " or ".join(map(str, obj["elected"])) or no_one
    lines = [f"{text.escape(obj['topic'])}-{obj['partition']}: elected: {elected}"]
    if obj["may_be_leaderless"] and obj["elected"]:
        lines[0] += ", or none"
    if obj["missing"]:
        lines[0] += f"; no copy on {', '.join(map(str, obj['missing']))}"
    if obj["strays"]:
        lines[0] += f"; becomes a stray on {', '.join(map(str, obj['strays']))}"
    if obj["nowhere"]:
        gone = text.count(obj["nowhere"], "acknowledged offset")
        lines.append(f"  {gone} on no volume, lost with every leader")
    costs = {(one["acknowledged_lost"], one["may_be_lost"]) for one in obj["leaders"]}
    for one in obj["leaders"] if costs != {(0, 0)} else ():
        lines += _leader(one)
    for one in obj["leaders"]:
        if one["open_transaction"] is not None:
            lines.append(
                f"  on node {one['node']} a transaction is open from offset "
                f"{one['open_transaction']}"
            )
    return "\n".join(lines)


def _leader(one: Object) -> Iterator[str]:
    """Yield lines that begin with a space: they are short, and are not folded."""
    end = "an empty log, because it has no copy"
    end = end if one["is_new"] else f"log end {one['log_end_offset']}"
    lost, more = one["acknowledged_lost"], one["may_be_lost"]
    costs = [f"{text.count(lost, 'acknowledged offset')} lost" if lost else "none known to be lost"]
    if more != 0:
        costs.append("more may be lost" if more is None else f"{more:,} more may be lost")
    if one["unread_bytes"]:
        end += f" ({text.size(one['unread_bytes'])} not read)"
    yield f"  node {one['node']} leads ({one['election']}): {end}, {costs.pop(0)}"
    yield from (f"    {cost}" for cost in costs)
    for cut in one["cuts"]:
        offsets = wording.offsets(cut["offset"], cut["log_end_offset"] - 1)
        yield f"    node {cut['node']} cuts {offsets}"


def _other_topic(obj: Object) -> str:
    nodes = ", ".join(map(str, obj["nodes"]))
    name = text.escape(obj["topic"])
    line = f"topic {name} on {nodes} has topic id {obj['topic_id']}"
    other = f"topic id {obj['image_id']}" if obj["image_id"] else "no topic of this name"
    line += f", the metadata log of the controllers has {other}"
    if obj["removed_offset"] is not None:
        return f"{line}: it was deleted at offset {obj['removed_offset']}"
    return f"{line}: it was deleted before, or created after the end of that log"


def _ahead(obj: Object) -> str:
    nodes = " or ".join(map(str, obj["nodes"]))
    return (
        f"group {text.quote(obj['group'])} has committed {obj['offset']} of "
        f"{text.escape(obj['topic'])}-{obj['partition']}, but the log ends at "
        f"{obj['log_end_offset']} if {nodes} leads"
    )


def _action(obj: Object) -> str:
    return f"node {obj['node']}: {obj['action']}: {text.escape(obj['path'])}: " + text.escape(
        obj["reason"]
    )


def _finding(obj: Object) -> str:
    return f"{obj['severity']} {obj['code']}: {text.escape(obj['path'] or '')}: " + text.escape(
        obj["message"]
    )


def _step(obj: Object) -> str:
    lines = [f"step {obj['number']}: {text.escape(obj['text'])}"]
    if obj["command"]:
        lines.append(f"  {obj['command']}")
    if obj["file_name"]:
        lines.insert(1, f"  echo {shell.quote(obj['file'])} > {obj['file_name']}")
    return "\n".join(lines)


def _times(obj: Object) -> str | None:
    if obj["spread_ms"] is None:
        return None
    spread = wording.duration(obj["spread_ms"] / 1000)
    first, last = shown(obj["first_timestamp_ms"]), shown(obj["last_timestamp_ms"])
    return f"volumes from {first} to {last}: {spread} apart"
