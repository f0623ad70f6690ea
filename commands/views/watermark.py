"""How replicas, their groups and simulated steps look."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logtool.commands.output import Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, columns, keep
from logtool.commands.views.watermark_tables import (
    CHOICE,
    DOCUMENT,
    GROUP,
    STATE,
    SUB_STEP,
    TRUNCATION,
)
from logtool.schemas.columns import Way

if TYPE_CHECKING:
    from logtool.watermark.replica_group import Group
    from logtool.watermark.simulation.scenario import Verdict

SCHEMA = DOCUMENT.schema
_REPLICA = keep(columns(
    "topic", "partition", "node", "log_start_offset", "recovery_point", "high_watermark",
    "last_stable_offset", "log_end_offset", "uncommitted_records", "leader_epoch", "tail",
    "lost_records",
), "topic", "partition", "node", "high_watermark", "log_end_offset", "lost_records")  # fmt: skip
_GROUP = keep(columns(
    "topic", "partition", "in_sync", "in_sync_from", "expected_high_watermark", "committed_offset",
    "furthest", "assumed_leader", "acknowledged_lost", "may_be_lost",
), "topic", "partition", "committed_offset", "assumed_leader", "acknowledged_lost")  # fmt: skip
_TRUNCATION = columns(
    "topic", "partition", "leader", "follower", "log_end_offset", "by_high_watermark",
    "diverges_from", "by_leader_epoch", "removed_by_leader_epoch", "acknowledged_lost",
)  # fmt: skip
_CHOICE = keep(columns(
    *(name for name in CHOICE.names(Way.CSV) if name != "path"),
), "topic", "partition", "node", "election", "acknowledged_lost")  # fmt: skip
_FINDING = columns("severity", "code", "path", "position", "message")
_LAYOUTS = {
    "replica": _REPLICA, "group": _GROUP, "truncation": _TRUNCATION, "choice": _CHOICE,
    "finding": _FINDING,
}  # fmt: skip
_TITLES = {
    "group": "Replicas together; expected_high_watermark is the least log end in sync:",
    "truncation": "What would be cut if the assumed leader led:",
    "choice": "Who may lead next, and what it costs:",
    "finding": "Findings:",
}
_CSV = columns(
    "type", "path", "topic", "partition", "node", "outcome", "log_start_offset", "recovery_point",
    "high_watermark", "initial_high_watermark", "expected_high_watermark", "committed_offset",
    "last_stable_offset",
    "log_end_offset", "uncommitted_records", "leader_epoch", "epoch_start_offset", "tail",
    "acknowledged_gone", "lost_records", "in_sync", "in_sync_from", "least_in_sync",
    "not_looked_at", "leader", "furthest",
    "assumed_leader", "follower", "by_high_watermark", "diverges_from", "by_leader_epoch",
    "removed_by_leader_epoch", "epoch_unknown", "acknowledged_lost", "may_be_lost", "other_topic",
    "election", "eligible", "unclean_stop",
    "topic_id",
    "severity", "code", "message",
)  # fmt: skip


_STATE = columns(*(name for name in STATE.names(Way.CSV) if name != "time_ms"))


def of_replicas() -> View:
    """Return the view of `watermark`."""
    return View(
        schema=SCHEMA, columns=_CSV, layout=_layout, row_types=frozenset(_LAYOUTS), sparse=True
    )


def _layout(obj: Object) -> Columns | str | None:
    return str(obj["text"]) if obj["type"] == "title" else _LAYOUTS.get(obj["type"])


_SUB_STEP = columns(*(name for name in SUB_STEP.names(Way.CSV) if name != "event"))
_STEPS_CSV = columns("type", *dict.fromkeys(c.title for c in (*_STATE, *_SUB_STEP)))


def of_states(*, steps: bool = False) -> View:
    """Return the view of `watermark simulate`, with what is done for each event if `steps`."""
    layouts = {"state": _STATE, "substep": _SUB_STEP}
    return View(
        schema=SCHEMA,
        columns=_STEPS_CSV if steps else _STATE,
        layout=lambda obj: layouts.get(obj["type"]),
        row_types=frozenset(layouts if steps else ("state",)),
        sparse=steps,
    )


def outcome(verdict: "Verdict") -> str:
    """Return for people what a simulation came to."""
    parts = [f"by {verdict.truncation}: {verdict.committed_offset} committed"]
    parts += [f"offset {offset} LOST" for offset in verdict.lost_offsets]
    parts += [
        f"replica {one.node} DIFFERS from its leader from offset {one.from_offset} on"
        for one in verdict.diverged
    ]
    parts += [f"{name}, which was acknowledged, LOST" for name in verdict.acknowledged_lost]
    parts += [f"the producer of {records} still waits" for records in verdict.waiting]
    return ", ".join(parts)


class Printer:
    """Prints replicas as they come; in a table, what they add up to stands behind all of them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._table = report.settings.format in ("table", "markdown")
        self._later: dict[str, list[Object]] = {
            kind: [] for kind in ("group", "truncation", "choice", "finding")
        }
        self._partitions = self._lost = self._offline = self._dropped = 0
        self._unsure: list[Group] = []
        """Those whose leader may lack what was acknowledged."""
        self._other: list[str] = []

    def show(self, obj: Object) -> None:
        """Print one object, now or at the end."""
        if obj["type"] == "replica":
            self._offline += obj["outcome"] != "loads"
            # Of Redpanda, which keeps no high watermark.
            self._dropped += obj["lost_records"] if obj["initial_high_watermark"] is None else 0
        if self._table and obj["type"] in self._later:
            self._later[obj["type"]].append(obj)
        else:
            self._report.item(obj)

    def group(self, group: "Group") -> None:
        """Print what the replicas of a partition add up to; of one alone that is nothing new."""
        self._partitions += 1
        self._lost += group.acknowledged_lost > 0
        self._unsure += [group] if group.may_be_lost != 0 else []
        self._other += [str(replica.path) for replica in group.other_topic]
        if self._table and len(group.replicas) + len(group.other_topic) < 2:
            return
        self.show(GROUP.row(group))
        for truncation in group.truncations:
            obj = TRUNCATION.row(truncation)
            cut = min(truncation.by_high_watermark, truncation.by_leader_epoch)
            if not self._table or self._report.settings.verbose or cut < obj["log_end_offset"]:
                self.show(obj)
        everybody = all(one.standing.election == "clean" for one in group.choices)
        if not self._table or self._report.settings.verbose or not everybody:
            for one in group.choices:
                self.show(CHOICE.row(one))

    def finish(self) -> None:
        """Print what was held back."""
        for kind, objects in self._later.items():
            if objects:
                self._report.item({"type": "title", "text": _TITLES[kind]})
            for obj in objects:
                self._report.item(obj)

    def last_lines(self) -> Iterator[str]:
        """Yield what is said in the end, for people."""
        if self._offline:
            yield f"{text.count(self._offline, 'replica')} that no broker comes up with"
        for path in self._other:
            yield f"{text.escape(path)}: ANOTHER TOPIC of that name, by its topic id"
        for group in self._unsure:
            yield f"{text.escape(group.topic)}-{group.partition}: {_may_be_lost(group)}"
        verdict = "no acknowledged record is lost"
        if self._lost:
            verdict = f"acknowledged records are lost in {self._lost}"
        elif self._unsure:
            verdict = f"acknowledged records may be lost in {len(self._unsure)}"
        elif self._dropped:
            records = text.count(self._dropped, "record")
            verdict = f"the next start cuts {records}, which may have been acknowledged"
        summary = self._report.summary
        if not summary.complete and not (self._lost or self._unsure):
            verdict = "not everything was looked at, so acknowledged records may be lost"
        partitions = text.count(self._partitions, "partition")
        yield f"{text.state(summary)}{partitions}: {verdict}"


def _may_be_lost(group: "Group") -> str:
    """Return what a leader may lack that was acknowledged, and why that cannot be told."""
    offsets = group.may_be_lost
    much = "records that nobody can count" if offsets is None else f"up to {offsets:,} records"
    given = [node for node in group.not_looked_at if node not in group.unusable]
    why = []
    for nodes, what in ((given, "not given"), (group.unusable, "given, but does not load")):
        named = [str(node) for node in nodes if node in group.not_looked_at]
        if named:
            who = "node" if len(named) == 1 else "nodes"
            verb = "was" if len(named) == 1 else "were"
            why.append(f"{who} {', '.join(named)}, in sync, {verb} {what}")
    return f"{much} may be acknowledged that node {group.assumed.node} lacks: {'; '.join(why)}"
