"""Output of copies of a metadata log, of what they say together, and of plans for other voters."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object, columns, keep
from logtool.commands.program import broker_config, parsing
from logtool.commands.views import actions
from logtool.commands.views.quorum_tables import COPY, DOCUMENT
from logtool.disk import shell
from logtool.errors import RefusedError, UnreadableError, UnwritableError, UsageError
from logtool.exits import Exit
from logtool.quorum.copy import MetadataCopy
from logtool.quorum.rewrite import Rewrite
from logtool.quorum.run import Found, Inquiry, Order
from logtool.quorum.verdict import Quorum
from logtool.quorum.voters import Voter, parse_named
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.schemas.printed import ACTION

_COPY = keep(
    columns(*COPY.names(Way.CSV)), "copy", "role", "log_end_offset", "last_epoch", "leader_epoch"
)
_NO_NODE = (None, -1)
_MOST_NAMED = 5


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    voters: str | None,
    apply: bool,
    accept_loss: Sequence[str],
    undo_dir: Path | None,
) -> Exit:
    """Print the copies of the metadata log, and the changes that make `voters` the voters."""
    settings, sources = printing.settings(), inputs.node_dirs()
    order = _order(voters, accept_loss, undo_dir, apply=apply)
    given = inputs.resolved([source.path for source in sources])
    summary = ActionSummary()
    view = View(
        schema=DOCUMENT.schema,
        columns=_COPY,
        layout=lambda obj: _COPY if obj["type"] == "copy" else None,
        lines={"table": lambda obj: _line(obj, settings, is_ordered=order is not None)},
        row_types=frozenset({"copy"}),
        sparse=True,
    )
    report = Report(settings=settings, view=view, summary=summary, inputs=given)
    job = Inquiry(
        sources=sources,
        run=running.run(report),
        configured=_configured(inputs),
        order=order,
    )
    return report.consume(_items(job), QuorumPrinter(report, summary, job))


def _order(
    voters: str | None, accept_loss: Sequence[str], undo_dir: Path | None, *, apply: bool
) -> Order | None:
    """Return the order to change the voters; None if the run only reads the copies."""
    if voters is None:
        if apply or accept_loss or undo_dir:
            raise UsageError("use --apply, --accept-loss and --undo-dir only with --voters")
        return None
    return Order(
        voters=parse_named(voters),
        apply=apply,
        accepted=frozenset(
            parsing.parse_topic_partition("--accept-loss", name) for name in accept_loss
        ),
        undo_dir=undo_dir,
        command=shell.join(["logtool", *sys.argv[1:]]),
    )


def _configured(inputs: options.LocalInputs) -> tuple[Voter, ...] | None:
    """Return the voters that the broker's own file names; None where it names none."""
    key = broker_config.VOTERS
    value = inputs.broker.take(key).get(key)
    return parse_named(value, key) if value else None


def _items(job: Inquiry) -> Iterator[Found | RefusedError | UnwritableError | UnreadableError]:
    """Yield the items of a run, and last the error that keeps it from carrying out the order."""
    try:
        yield from job
    except (RefusedError, UnwritableError) as error:
        yield error


def _line(obj: Object, settings: OutputSettings, *, is_ordered: bool) -> str | None:
    if obj["type"] == "copy":
        return "\n".join(_copy(obj))
    if obj["type"] == "quorum":
        return "\n".join(_quorum(obj, settings, is_ordered=is_ordered))
    if obj["type"] == "rewrite":
        return "\n".join(_rewrite(obj))
    if obj["type"] == "action":
        return _action(obj)
    return actions.undo_line(obj["path"]) if obj["type"] == "undo" else None


class QuorumPrinter(Printer[Found | RefusedError | UnwritableError]):
    """Prints what a run yields, and in the end what it comes to."""

    def __init__(self, report: Report, summary: ActionSummary, job: Inquiry) -> None:
        self._report = report
        self._summary = summary
        self._job = job
        self._verdict: Quorum | None = None
        self._copies = 0
        self._rewrite: Rewrite | None = None

    def show(self, item: Found | RefusedError | UnwritableError) -> None:
        """Print one copy, the verdict, what is rewritten, or why nothing is."""
        summary = self._summary
        if isinstance(item, RefusedError):
            summary.refused = True
            self._report.refused(item)
            return
        if isinstance(item, UnwritableError):
            summary.unwritten += 1
            self._report.refused(item, "unwritable")
            return
        self._report.item(DOCUMENT.row(item))
        if isinstance(item, MetadataCopy):
            self._copies += 1
            summary.partitions += 1
            summary.segments += item.batches.segments
            summary.batches += len(item.batches.batches)
            summary.records += item.batches.records
            summary.bytes += item.batches.bytes
        elif isinstance(item, Quorum):
            self._verdict = item
            summary.to_do = item.is_grave and not self._job.order
        elif isinstance(item, Rewrite):
            self._rewrite = item
            summary.to_do |= bool(item.actions)
            for action in item.actions:
                self._report.item(ACTION.row(action))
        else:  # an earlier change that was not finished
            summary.to_do = True

    def finish(self) -> None:
        """Print the undo directories; what was to be done is done, or an error says why not."""
        for place in self._job.undo_dirs:
            self._report.item(actions.undo_object(place))
        if self._job.order and self._job.order.apply:
            self._summary.to_do = False

    def last_lines(self) -> Iterator[Line]:
        """Yield the outcome of the run for people, each line with its style."""
        found = self._verdict
        if found is None or self._summary.out_of_time:
            return
        if len(found.clusters) > 1:
            yield f"the copies belong to {len(found.clusters)} clusters", "error"
        count = f"{text.state(self._summary)}{text.count(self._copies, 'copy', 'copies')}"
        rewrite = self._rewrite
        strays = text.count(len(found.strays), "partition dir")
        if not self._job.order:
            state = "a person must act before these controllers can serve" if found.is_grave else (
                "no problems"
            )  # fmt: skip
            yield f"{count}: {state}", "error" if found.is_grave else "good"
        elif self._summary.unfinished:
            yield f"{count}: only part of the changes is made", "error"
        elif self._summary.refused or not self._summary.complete:
            yield f"{count}: nothing was written", "error"
        elif self._job.undo_dirs:
            after = f"; {strays} become strays at the next start" if found.strays else ""
            yield f"{count}: the voters were written{after}", "warning" if after else "good"
        elif rewrite and rewrite.unaccepted:
            yield f"{count}: nothing was written; {strays} would become strays", "error"
            accepted = (shell.option("--accept-loss", one) for one in rewrite.unaccepted_names)
            command = " ".join([self._job.order.command, "--apply", *accepted])
            yield f"to accept the loss: {command}", None
        elif rewrite and rewrite.actions:
            first = (
                "first look at the copies of the brokers, or " if found.brokers_not_given else ""
            )
            yield f"{count}: nothing was written; {first}add --apply to do it", "warning"
        else:
            yield f"{count}: the voters are already these; nothing to change", "good"


def _rewrite(obj: Object) -> Iterator[str]:
    voters = ", ".join(map(_voter, obj["voters"]))
    where = "" if obj["offset"] is None else f" from offset {obj['offset']} on"
    yield ""
    yield f"voters{where} in epoch {obj['leader_epoch']}: {voters}"
    if obj["gone"]:
        nodes = ", ".join(map(str, obj["gone"]))
        yield f"never start the controllers {nodes} again on their old directories"
    if obj["unclean_partitions"]:
        count = text.count(obj["unclean_partitions"], "partition")
        yield (
            f"{count} will have no leader until an unclean election: every in-sync replica is on a "
            "removed node"
        )
    if obj["lost_changes"]:
        yield from _changes(obj["lost_changes"])
    for key, value in obj["settings"].items():
        yield f"set on every node: {key}={text.escape(value)}"


def _changes(changes: list[dict[str, Any]], when: str = "LOST with this choice") -> Iterator[str]:
    """Yield the lost changes kind by kind."""
    outcomes = {"removed": "disappears", "added": "comes back", "changed": "gets an earlier state"}
    yield f"{when}: {text.count(len(changes), 'change')} of the metadata"
    groups: dict[str, list[str]] = {}
    for one in changes:
        groups.setdefault(f"{one['kind']} {outcomes[one['difference']]}", []).append(one["name"])
    for what, names in groups.items():
        named = ", ".join(map(text.escape, names[:_MOST_NAMED]))
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield f"  {what}: {named}{more}"


def _action(obj: Object) -> str:
    place = text.escape(obj["path"])
    place += "" if obj["position"] is None else f" @{obj['position']}"
    size = f", {text.size(obj['length'])}" if obj["length"] else ""
    return f"  {obj['action']:<9} {place}{size}: {text.escape(obj['reason'])}"


def _copy(obj: Object) -> Iterator[str]:
    whose = obj["role"] or "role unknown"
    extent = text.extent(obj["log_start_offset"], obj["log_end_offset"])
    path = text.escape(obj["path"])
    yield f"{text.escape(obj['copy'])}: {whose}, {extent}, last epoch {obj['last_epoch']}, {path}"
    snapshots = [f"{end}-{epoch}" for end, epoch in obj["snapshots"]]
    parts = [
        f"kraft.version {obj['kraft_version']}",
        f"{text.count(obj['batches'], 'batch', 'batches')}, {text.size(obj['bytes'])}",
        f"snapshots {', '.join(snapshots)}" if snapshots else "no snapshot",
        _election(obj),
    ]
    yield f"  {'; '.join(parts)}"
    if obj["unfinished_bytes"] is not None:
        yield (
            f"  an unfinished append of {text.size(obj['unfinished_bytes'])} at byte "
            f"{obj['unfinished_position']} of the last .log file, which the start cuts off"
        )
    yield f"  {_voters(obj)}"
    yield from (f"  PROBLEM: {text.escape(problem)}" for problem in obj["problems"])


def _election(obj: Object) -> str:
    if obj["leader_epoch"] is None:
        return "no quorum-state"
    leader, vote = obj["leader"], obj["voted_for"]
    leads = "no leader" if leader in _NO_NODE else f"leader {leader}"
    voted = "" if vote in _NO_NODE else f", voted for {vote}"
    return f"quorum-state: {leads} in epoch {obj['leader_epoch']}{voted}"


def _voters(obj: Object) -> str:
    if obj["voters"] is None:
        return "nothing in the copy names the voters"
    where = {"log": "control record", "snapshot": "snapshot"}.get(obj["voters_from"])
    at = f" at offset {obj['voters_offset']}" if obj.get("voters_offset") is not None else ""
    source = f"{where}{at}" if where else text.escape(obj["voters_from"])
    return f"voters from the {source}: {', '.join(map(_voter, obj['voters']))}"


def _voter(voter: dict[str, Any]) -> str:
    name = str(voter["node"])
    if voter["directory_id"]:
        name += f"-{voter['directory_id']}"
    ends = [f"{text.escape(one['host'])}:{one['port']}" for one in voter["endpoints"]]
    return f"{name}@{'+'.join(ends)}" if ends else name


def _quorum(obj: Object, settings: OutputSettings, *, is_ordered: bool) -> Iterator[str]:
    """Yield the verdict in lines; `is_ordered` if the run has --voters."""
    is_compared = len(obj["copies"]) > 1
    yield ""
    if obj["voters"] is not None:
        yield from _agreement(obj)
    else:
        yield "voters: unknown"
    if obj["diverging"]:
        yield terminal.paint_stdout(_divergence(obj["diverging"]), "error", settings.color)
    elif is_compared:
        yield "the copies do not contradict each other"
    end, epoch = obj["keep_end_offset"], obj["keep_epoch"]
    yield (f"keep the copy of {text.escape(obj['keep'])}: last epoch {epoch}, log end {end}")
    yield from _lost(obj) if is_compared and not obj["voters_are_behind"] else ()
    if obj["strays"]:
        yield terminal.paint_stdout(_strays(obj["strays"]), "error", settings.color)
    counted = ", ".join(f"{one['count']:,} {text.escape(one['record'])}" for one in obj["unvoted"])
    if obj["voters_are_behind"]:
        line = (
            f"NO VOTER given here has what {text.escape(obj['keep'])} has, which does not vote: "
            f"{counted}. These voters lost it, or are of an earlier moment. A broker that runs "
            "cannot go on, and one that starts cuts it"
        )
        yield terminal.paint_stdout(line, "error", settings.color)
        for lack in obj["lacking"]:
            span = text.offsets(lack["first_offset"], lack["last_offset"])
            yield f"  {text.escape(lack['copy'])} lacks {span}"
    elif counted:
        yield (
            f"only {text.escape(obj['keep'])}, which does not vote, has {counted}: these change "
            "nothing, and its next start cuts them"
        )
    for name in obj["rolled_back"]:
        line = (
            f"{text.escape(name)} WAS ROLLED BACK, or has lost its end: another copy has records "
            "that it wrote itself as the leader, behind the end of its log. It must not be elected "
            "as it is"
        )
        yield terminal.paint_stdout(line, "error", settings.color)
    if obj["copying"]:
        lost = [*_without(obj)]
        yield from (terminal.paint_stdout(line, "error", settings.color) for line in lost)
    if obj["unknown"]:
        yield terminal.paint_stdout(text.escape(obj["unknown"]), "warning", settings.color)
    if obj["brokers_not_given"]:
        named = ", ".join(map(str, obj["brokers_not_given"]))
        line = (
            f"the brokers {named} may have newer records than these copies: give their log dirs "
            "too, then logtool names the changes that are lost and the dirs that become strays"
        )
        yield terminal.paint_stdout(line, "warning", settings.color)
    if not is_ordered:
        yield from _commands(obj)


def _commands(obj: Object) -> Iterator[str]:
    if obj["copying"]:
        when = "to keep its copy" if obj["command"] is None else "if the missing copies are lost"
        others = [one["command"] for one in obj["lacking"] if one["command"] != obj["copying"]]
        each = "each of these controllers" if others else "a controller"
        yield (
            f"node {text.escape(obj['keep'])} has no vote and is not registered as a controller: "
            f"it cannot be elected; {when}, stop all nodes and give its copy to {each}, before "
            "any node starts. The command leaves meta.properties and quorum-state of the "
            "controller in place, and its old metadata log in a directory of another name:"
        )
        yield f"  {obj['copying']}"
        yield from (f"  {command}" for command in others)
    if obj["command"]:
        yield "find the missing copies; if they are lost, give the copy to keep other voters:"
        yield f"  {obj['command']}"
    elif obj["voters"] is not None and obj["majority_offset"] is None:
        yield (
            "find the missing copies: no copy given here is that of a node that can be a "
            "controller. If all are lost, give a node of this copy the role controller "
            "(process.roles), and name it with --voters"
        )


def _agreement(obj: Object) -> Iterator[str]:
    voters = text.count(len(obj["voters"]), "voter")
    need = f"a majority is {obj['majority']} of {voters}"
    least = obj["committed_at_least"]
    snapshots = f"; snapshots show that all records below {least} were committed" if least else ""
    if obj["majority_offset"] is None:
        yield f"{need}, and fewer copies were given: its last common offset is not known{snapshots}"
    elif obj["voters_are_behind"]:
        most = obj["majority_at_most"]
        upper = "" if most is None else f": perhaps all below {most}"
        yield (
            f"{need}: the given copies of a majority have all offsets below "
            f"{obj['majority_offset']}, but it had more once{upper}{snapshots}"
        )
    elif obj["majority_at_most"] == obj["majority_offset"]:
        yield f"{need}: a majority had all offsets below {obj['majority_offset']}{snapshots}"
    else:
        most = obj["majority_at_most"]
        upper = (
            "or more, if the missing copies reach further" if most is None else f"at most {most}"
        )
        lower = f"a majority had all offsets below {obj['majority_offset']}"
        yield f"{need}: {lower}, {upper}{snapshots}"


def _divergence(pair: dict[str, Any]) -> str:
    sides = [f"{text.escape(pair[side])} has {_batch(pair[f'{side}_batch'])}" for side in
             ("left", "right")]  # fmt: skip
    return f"the copies DIVERGE at offset {pair['diverges_at']}: {'; '.join(sides)}"


def _batch(batch: dict[str, Any] | None) -> str:
    if batch is None:
        return "nothing"
    span = text.through(batch["base_offset"], batch["last_offset"])
    return f"{span} of epoch {batch['leader_epoch']} (CRC {batch['crc']})"


def _without(obj: Object) -> Iterator[str]:
    """Yield the losses if no controller gets the copy to keep, that of a broker."""
    if obj["heir_losses"]:
        yield from _changes(obj["heir_losses"], "LOST if no controller gets this copy")
    if obj["heir_strays"]:
        yield f"without this copy, {_strays(obj['heir_strays'])}"


def _strays(strays: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(f"{one['topic']}-{one['partition']}" for one in strays))
    named = ", ".join(map(text.escape, names[:_MOST_NAMED]))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    deleted = any(one["action"] == "delete" for one in strays)
    outcome = "are DELETED" if deleted else "get names that end in -stray"
    return (
        f"{text.count(len(strays), 'partition dir')} with "
        f"{text.count(sum(one['offsets'] for one in strays), 'offset')} become strays at the "
        f"start, because the metadata log does not have them, and {outcome}: {named}{more}"
    )


def _lost(obj: Object) -> Iterator[str]:
    if not obj["lost"]:
        yield "this loses nothing that another given copy has"
    for loss in obj["lost"]:
        span = text.offsets(loss["first_offset"], loss["last_offset"])
        count = text.count(loss["records"], "record")
        yield f"LOST with this choice: {count} of {text.escape(loss['copy'])}, {span}"
