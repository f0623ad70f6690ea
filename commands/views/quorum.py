"""How the copies of a metadata log look, what they say together, and what other voters take."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from logtool.actions import Action
from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns, keep
from logtool.commands.views import actions
from logtool.errors import UnreadableError
from logtool.schemas.printed import ACTION

if TYPE_CHECKING:
    from logtool.quorum.run import Item
    from logtool.quorum.verdict import Quorum
    from logtool.running.summary import ActionSummary

SCHEMA = "logtool.quorum/1"
_COPY = keep(columns(
    "copy", "node", "role", "path", "cluster_id", "directory_id", "log_start_offset",
    "log_end_offset", "last_epoch", "batches", "records", "bytes", "kraft_version", "voters_from",
    "voters_offset", "leader", "leader_epoch", "voted_for", "damaged_ranges",
), "copy", "role", "log_end_offset", "last_epoch", "leader_epoch")  # fmt: skip
_NOBODY = (None, -1)


def make(settings: OutputSettings) -> View:
    """Return the view."""
    return View(
        schema=SCHEMA,
        columns=_COPY,
        layout=lambda obj: _COPY if obj["type"] == "copy" else None,
        lines={"table": lambda obj: _line(obj, settings)},
        row_types=frozenset({"copy"}),
        sparse=True,
    )


def _line(obj: Object, settings: OutputSettings) -> str | None:
    if obj["type"] == "copy":
        return "\n".join(_copy(obj))
    if obj["type"] == "quorum":
        return "\n".join(_quorum(obj, settings))
    if obj["type"] == "rewrite":
        return "\n".join(_rewrite(obj))
    if obj["type"] == "action":
        return _action(obj)
    return actions.undo_line(obj["path"]) if obj["type"] == "undo" else None


undo_object = actions.undo_object


class Printer:
    """Prints what a run yields, and in the end what it comes to."""

    def __init__(self, report: Report, summary: "ActionSummary", *, ordered: bool) -> None:
        self._report = report
        self._summary = summary
        self._ordered = ordered
        self._verdict: Quorum | None = None
        self._copies = self._changes = 0

    def show(self, item: "Item") -> None:
        """Print one copy, the verdict, what is rewritten, or what could not be read."""
        from logtool.quorum.copy import MetadataCopy
        from logtool.quorum.rewrite import Rewrite
        from logtool.quorum.verdict import Quorum

        summary = self._summary
        if isinstance(item, UnreadableError):
            summary.add(item)
            self._report.unreadable(item)
            return
        self._report.item(ACTION.row(item) if isinstance(item, Action) else item.as_json())
        if isinstance(item, MetadataCopy):
            self._copies += 1
            summary.partitions += 1
            summary.segments += item.batches.segments
            summary.batches += len(item.batches.batches)
            summary.records += item.batches.records
            summary.bytes += item.batches.bytes
        elif isinstance(item, Quorum):
            self._verdict = item
            summary.to_do = item.is_grave and not self._ordered
        elif isinstance(item, Rewrite):
            self._changes = len(item.actions)
            summary.to_do |= bool(item.actions)
            for action in item.actions:
                self._report.item(ACTION.row(action))
        else:  # an earlier change that was not finished
            summary.to_do = True

    def last_lines(self, *, applied: bool) -> Iterator[tuple[str, str | None]]:
        """Yield what it comes to, for people, with the style of each line."""
        found = self._verdict
        if found is None or self._summary.out_of_time:
            return
        if len(found.clusters) > 1:
            yield f"the copies are of {len(found.clusters)} clusters", "error"
        count = f"{text.state(self._summary)}{text.count(self._copies, 'copy', 'copies')}"
        if not self._ordered:
            state = "a person must act before these controllers serve" if found.is_grave else (
                "in order"
            )  # fmt: skip
            yield f"{count}: {state}", "error" if found.is_grave else "good"
        elif self._summary.refused or not self._summary.complete:
            yield f"{count}: nothing was written", "error"
        elif applied:
            yield f"{count}: the voters were written", "good"
        elif self._changes:
            yield f"{count}: nothing was written; add --apply to do it", "warning"
        else:
            yield f"{count}: these are the voters already; nothing to change", "good"


def _rewrite(obj: Object) -> Iterator[str]:
    voters = ", ".join(map(_voter, obj["voters"]))
    where = "" if obj["offset"] is None else f" from offset {obj['offset']} on"
    yield ""
    yield f"voters{where} in epoch {obj['leader_epoch']}: {voters}"
    if obj["gone"]:
        nodes = ", ".join(map(str, obj["gone"]))
        yield f"never start again on their old directories: the controllers of {nodes}"
    if obj["unclean_partitions"]:
        count = text.count(obj["unclean_partitions"], "partition")
        yield (
            f"{count} will have no leader until an unclean election: every replica in sync is on a "
            "node that is gone"
        )
    for key, value in obj["settings"].items():
        yield f"set on every node: {key}={text.escape(value)}"


def _action(obj: Object) -> str:
    place = text.escape(obj["path"])
    place += "" if obj["position"] is None else f" @{obj['position']}"
    size = f", {text.size(obj['length'])}" if obj["length"] else ""
    return f"  {obj['action']:<9} {place}{size}: {text.escape(obj['reason'])}"


def _copy(obj: Object) -> Iterator[str]:
    whose = obj["role"] or "of an unknown role"
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
    yield f"  {_voters(obj)}"
    yield from (f"  PROBLEM: {text.escape(problem)}" for problem in obj["problems"])


def _election(obj: Object) -> str:
    if obj["leader_epoch"] is None:
        return "no quorum-state"
    leader, vote = obj["leader"], obj["voted_for"]
    told = "no leader" if leader in _NOBODY else f"leader {leader}"
    voted = "" if vote in _NOBODY else f", voted for {vote}"
    return f"quorum-state: {told} in epoch {obj['leader_epoch']}{voted}"


def _voters(obj: Object) -> str:
    if obj["voters"] is None:
        return "nothing in it says who votes"
    where = {"log": "control record", "snapshot": "snapshot"}.get(obj["voters_from"])
    at = f" at offset {obj['voters_offset']}" if obj.get("voters_offset") is not None else ""
    source = f"{where}{at}" if where else text.escape(obj["voters_from"])
    return f"voters by the {source}: {', '.join(map(_voter, obj['voters']))}"


def _voter(voter: dict[str, Any]) -> str:
    name = str(voter["node"])
    if voter["directory_id"]:
        name += f"-{voter['directory_id']}"
    ends = [f"{text.escape(one['host'])}:{one['port']}" for one in voter["endpoints"]]
    return f"{name}@{'+'.join(ends)}" if ends else name


def _quorum(obj: Object, settings: OutputSettings) -> Iterator[str]:
    yield ""
    if obj["voters"] is not None:
        yield from _agreement(obj)
    else:
        yield "voters: unknown"
    if obj["diverging"]:
        yield output.paint_stdout(_divergence(obj["diverging"]), "error", settings.color)
    else:
        yield "the copies do not contradict each other"
    end, epoch = obj["keep_end_offset"], obj["keep_epoch"]
    yield (
        f"keep the copy of {text.escape(obj['keep'])}, as Raft would elect it: last epoch {epoch}, "
        f"log end {end}"
    )
    yield from _lost(obj)
    if obj["unknown"]:
        yield output.paint_stdout(text.escape(obj["unknown"]), "warning", settings.color)


def _agreement(obj: Object) -> Iterator[str]:
    voters = text.count(len(obj["voters"]), "voter")
    need = f"a majority is {obj['majority']} of {voters}"
    least = obj["committed_at_least"]
    snapshots = f"; snapshots show that all below {least} was committed" if least else ""
    if obj["majority_offset"] is None:
        yield f"{need}, and there are fewer copies: which offset it had is not known{snapshots}"
    elif obj["majority_at_most"] == obj["majority_offset"]:
        yield f"{need}: it had every offset below {obj['majority_offset']}{snapshots}"
    else:
        most = obj["majority_at_most"]
        upper = "more, if the missing copies go further" if most is None else f"at most {most}"
        yield f"{need}: it had every offset below {obj['majority_offset']}, {upper}{snapshots}"


def _divergence(pair: dict[str, Any]) -> str:
    sides = [f"{text.escape(pair[side])} has {_batch(pair[f'{side}_batch'])}" for side in
             ("left", "right")]  # fmt: skip
    return f"the copies DIVERGE at offset {pair['diverges_at']}: {'; '.join(sides)}"


def _batch(batch: dict[str, Any] | None) -> str:
    if batch is None:
        return "nothing"
    span = text.through(batch["base_offset"], batch["last_offset"])
    return f"{span} of epoch {batch['leader_epoch']} (CRC {batch['crc']})"


def _lost(obj: Object) -> Iterator[str]:
    if not obj["lost"]:
        yield "nothing that another copy here has is lost by that"
    for loss in obj["lost"]:
        span = text.offsets(loss["first_offset"], loss["last_offset"])
        count = text.count(loss["records"], "record")
        yield f"LOST by that: {count} of {text.escape(loss['copy'])}, {span}"
