"""Output of replicas and their groups."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from logtool.actions import Action
from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, columns, keep
from logtool.commands.program import broker_config, parsing
from logtool.commands.views.metrics import MetricsFile
from logtool.commands.views.watermark_plan import plan_lines
from logtool.commands.views.watermark_tables import CHOICE, DOCUMENT, GROUP, TRUNCATION
from logtool.disk import shell
from logtool.exits import Exit
from logtool.findings import Finding, Severity
from logtool.formats.names import TopicPartition
from logtool.log.inputs import NodeDir
from logtool.node.options import StartOptions
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.watermark.replica import Replica
from logtool.watermark.replica_group import Choice, ReplicaGroup, loss_of
from logtool.watermark.run import Found, Watermarks

SCHEMA = DOCUMENT.schema
MOST_CHOICES = 10
"""Partitions for which a person is shown the cost of each leader in one line."""
_REPLICA = keep(columns(
    "topic", "partition", "node", "log_start_offset", "recovery_point", "high_watermark",
    "last_stable_offset", "log_end_offset", "uncommitted_records", "leader_epoch", "tail",
    "acknowledged_gone", "lost_records",
), "topic", "partition", "node", "high_watermark", "log_end_offset", where_said=(
    "acknowledged_gone", "lost_records",
))  # fmt: skip
_GROUP = keep(columns(
    "topic", "partition", "in_sync", "in_sync_from", "expected_high_watermark", "committed_offset",
    "furthest", "assumed_leader", "acknowledged_lost", "may_be_lost",
), "topic", "partition", "assumed_leader", "acknowledged_lost", "may_be_lost")  # fmt: skip
_TRUNCATION = keep(columns(
    "topic", "partition", "leader", "follower", "log_end_offset", "by_high_watermark",
    "diverges_from", "by_leader_epoch", "removed_by_leader_epoch", "acknowledged_lost",
), "topic", "partition", "follower", "by_leader_epoch", "acknowledged_lost")  # fmt: skip
_CHOICE = keep(columns(
    *(name for name in CHOICE.names(Way.CSV) if name != "path"),
), "topic", "partition", "node", "election", "acknowledged_lost", "may_be_lost")  # fmt: skip
_NOT_KNOWN = (
    "partition/absent", "metadata/lost", "metadata/absent", "metadata/hole",
    "metadata/end-lost", "metadata/end-absent",
    "kraft-snapshot/missing", "data-dir/not-given", "checkpoint/high-watermark-ahead",
)  # fmt: skip
"""Findings after which it is not known what the log dirs should hold, or hold."""
_FINDING = keep(
    columns("severity", "code", "path", "position", "message"), "code", "path", "message"
)
_LAYOUTS = {
    "replica": _REPLICA, "group": _GROUP, "truncation": _TRUNCATION, "choice": _CHOICE,
    "finding": _FINDING,
}  # fmt: skip
_TITLES = {
    "group": "Replicas together:",
    "truncation": "Truncation if the assumed leader led:",
    "choice": "Possible next leaders, and the loss with each:",
    "finding": "Findings:",
}
_CSV = columns(
    "type", "path", "topic", "partition", "node", "outcome", "log_start_offset",
    "local_log_start_offset", "recovery_point",
    "high_watermark", "initial_high_watermark", "expected_high_watermark", "committed_offset",
    "committed_from", "last_stable_offset",
    "log_end_offset", "uncommitted_records", "leader_epoch", "epoch_start_offset", "tail",
    "acknowledged_gone", "lost_records", "in_sync", "in_sync_from", "least_in_sync",
    "not_looked_at", "not_given", "leader", "furthest",
    "assumed_leader", "best_leader", "keep_stopped", "follower", "by_high_watermark",
    "diverges_from", "by_leader_epoch", "removed_by_leader_epoch", "epoch_unknown",
    "acknowledged_lost", "may_be_lost", "other_topic",
    "election", "eligible", "unclean_stop",
    "topic_id",
    "severity", "code", "message",
)  # fmt: skip


def run(
    inputs: options.AnyLocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    kafka_version: str,
    leader: int | None,
    fail_on: Severity,
    metrics_file: Path | None,
) -> Exit:
    """Print the replicas of log dirs and partition dirs, and what they add up to."""
    settings, dirs = printing.settings(), inputs.node_dirs()
    version = parsing.parse_kafka_version(kafka_version)
    given = inputs.resolved([source.path for source in dirs])
    metrics = MetricsFile(metrics_file, "watermark", given.paths)
    summary = ActionSummary()
    view = View(
        schema=SCHEMA, columns=_CSV, layout=_layout, row_types=frozenset(_LAYOUTS), sparse=True
    )
    report = Report(settings=settings, view=view, summary=summary, inputs=given)
    job = Watermarks(
        dirs,
        StartOptions(version, static=inputs.broker.take(broker_config.LEAST_IN_SYNC)),
        selection=given.selection, leader=leader, flavour=given.flavour,
        run=running.run(report), summary=summary,
    )  # fmt: skip
    return metrics.write(summary, report.consume(job, WatermarkPrinter(report, job, dirs), fail_on))


def _layout(obj: Object) -> Columns | str | None:
    return str(obj["text"]) if obj["type"] == "title" else _LAYOUTS.get(obj["type"])


class WatermarkPrinter(Printer[Found]):
    """Prints replicas as they come; in a table, what they add up to stands behind all of them."""

    def __init__(self, report: Report, job: Watermarks, places: Sequence[NodeDir]) -> None:
        self._report = report
        self._places = places
        self._job = job
        self._table = report.settings.format in ("table", "markdown")
        self._later: dict[str, list[Object]] = {
            kind: [] for kind in ("group", "truncation", "choice", "finding")
        }
        self._lost_offsets = self._nowhere = self._unread = 0
        self._partitions = self._lost = self._offline = self._dropped = self._twins = 0
        self._uncompared: list[ReplicaGroup] = []
        """Groups whose replica is compared with none, as no copy of the others was given."""
        self._unsure: list[ReplicaGroup] = []
        """Groups whose leader may lack records that were acknowledged."""
        self._other: list[str] = []
        self._advised: list[ReplicaGroup] = []
        """Groups in which an election that no person asks for loses more than another one."""
        self._differing: list[ReplicaGroup] = []
        """Groups in which the loss depends on the leader."""
        self._unloaded: set[TopicPartition] = set()
        """Partitions with a replica that no broker loads, and without one that loads."""
        self._found: Counter[str] = Counter()
        """Findings above info by code."""
        self._lacking: list[Finding] = []
        """Findings above info about offsets that a log lacks."""

    def show(self, item: Found) -> None:
        """Print one item, of which an action is for people alone."""
        if isinstance(item, Action):
            refused = " (no broker starts with this replica)" if item.action == "refuse" else ""
            self._report.note(f"{item.path}: {item.reason}{refused}", "warning")
        elif isinstance(item, ReplicaGroup):
            self._group(item)
        else:
            if isinstance(item, Replica) and not item.usable:
                self._unloaded.add((item.topic, item.partition))
            self._unread += item.unread_bytes if isinstance(item, Replica) else 0
            if isinstance(item, Finding) and item.severity is not Severity.INFO:
                self._found[item.code] += 1
                lacks = item.code.startswith("log/") or item.code.endswith("beyond-end")
                self._lacking += [item] if lacks else []
            self._item(DOCUMENT.row(item))

    def _item(self, obj: Object) -> None:
        """Print one object, now or at the end."""
        if obj["type"] == "replica":
            self._offline += obj["outcome"] != "loads"
            # Of Redpanda, which keeps no high watermark.
            self._dropped += obj["lost_records"] if obj["initial_high_watermark"] is None else 0
        if self._table and obj["type"] in self._later:
            self._later[obj["type"]].append(obj)
        else:
            self._report.item(obj)

    def _group(self, group: ReplicaGroup) -> None:
        """Print the conclusions from all replicas of a partition; a table omits a lone one."""
        self._partitions += 1
        self._unloaded.discard((group.topic, group.partition))
        self._advised += [group] if group.keep_stopped else []
        self._nowhere += group.nowhere
        losses = {(one.acknowledged_lost, one.may_be_lost) for one in group.choices}
        self._differing += [group] if len(losses) > 1 else []
        self._lost += group.acknowledged_lost > 0
        self._lost_offsets += group.acknowledged_lost
        self._unsure += [group] if group.may_be_lost != 0 and group.not_looked_at else []
        self._uncompared += [group] if group.is_uncompared else []
        self._twins += bool(group.other_topic) and group.topic_id is None
        for replica in group.other_topic:
            who = f"{replica.path}: topic id {replica.topic_id}"
            if group.topic_id is None:
                first = group.replicas[0]
                who += (
                    f", but {first.path} has {first.topic_id}: NOT KNOWN which is right; give the "
                    "metadata log of a controller"
                )
            else:
                who += f", ANOTHER TOPIC with this name: the others have {group.topic_id}"
            self._other.append(who)
        if self._table and len(group.replicas) + len(group.other_topic) < 2:
            return
        self._item(GROUP.row(group))
        for truncation in group.truncations:
            obj = TRUNCATION.row(truncation)
            cut = min(truncation.by_high_watermark, truncation.by_leader_epoch)
            if not self._table or self._report.settings.verbose or cut < obj["log_end_offset"]:
                self._item(obj)
        everybody = all(one.standing.election == "clean" for one in group.choices)
        if not self._table or self._report.settings.verbose or not everybody:
            for one in group.choices:
                self._item(CHOICE.row(one))

    def finish(self) -> None:
        """Print the objects that a table shows after all replicas."""
        for kind, objects in self._later.items():
            if objects:
                self._report.item({"type": "title", "text": _TITLES[kind]})
            for obj in objects:
                self._report.item(obj)

    def last_lines(self) -> Iterator[Line]:
        """Yield notes on unknown watermarks, replicas and records at risk, the verdict last."""
        if not self._job.keeps_watermarks:
            yield (
                "Redpanda keeps no high watermark on disk: records that a majority of the given "
                "replicas has count as committed; for a single replica nothing is known",
                None,
            )
        problems = self._problems()
        is_calm = not problems and not self._job.summary.to_do
        style = "good" if is_calm else "warning"
        if self._offline:
            yield f"{text.count(self._offline, 'replica')} with which no broker starts", style
        for path in self._other:
            yield text.escape(path), style
        for group in self._unsure:
            yield f"{text.escape(group.topic)}-{group.partition}: {_may_be_lost(group)}", style
        for group in self._differing[:MOST_CHOICES]:
            yield f"{text.escape(group.topic)}-{group.partition}: {_leaders(group)}", style
        if len(self._differing) > MOST_CHOICES:
            more = text.count(len(self._differing) - MOST_CHOICES, "more partition")
            yield f"{more} in which leaders differ in what is lost; see the table", style
        for line in plan_lines(self._advised, self._places):
            yield line, style
        if self._differing and (voters := self._job.controllers_not_given):
            named = ", ".join(map(str, voters))
            yield (
                "no log dir of a controller was given: who is in sync may have changed since these "
                f"copies; give those of the controllers, too ({named})",
                style,
            )
        if self._uncompared:
            yield _uncompared(self._uncompared), None
        partitions = text.count(self._partitions, "partition")
        sound = "no given copy has lost an acknowledged record"
        verdict = "; ".join(problems) or (
            sound if self._uncompared else "no acknowledged record is lost"
        )
        if self._unread:
            command = " ".join(["logtool verify", *(shell.path(one.path) for one in self._places)])
            yield (
                f"NOT READ: {text.size(self._unread)} of logs below the recovery points, which may "
                f"be damaged; to check them: {command}",
                "warning",
            )
            verdict = verdict if problems else f"by the offsets, {verdict}"
        yield f"{text.state(self._report.summary)}{partitions}: {verdict}", style

    def _loss(self) -> str:
        """Return the loss in all partitions as a text: what no copy has is a fact."""
        offsets = text.count(self._lost_offsets, "acknowledged offset")
        where = text.count(self._lost, "partition")
        if self._lost_offsets == self._nowhere:
            return f"{offsets} {'is' if self._lost_offsets == 1 else 'are'} lost in {where}"
        line = f"{offsets} would be lost in {where} with the assumed leaders"
        return f"{line}, of which no copy has {self._nowhere:,}" if self._nowhere else line

    def _problems(self) -> list[str]:
        """Return the losses, and the questions that are open, each as a text; may be empty."""
        found = []
        if self._lost:
            found.append(self._loss())
        if self._unsure:
            found.append(f"acknowledged records may be lost in {len(self._unsure)}")
        if self._dropped:
            records = text.count(self._dropped, "record")
            found.append(f"the next start cuts {records}, which may have been acknowledged")
        if gone := self._found["partition/lost"]:
            found.append(f"{text.count(gone, 'other partition')} absent and lost")
        if self._unloaded:
            others = text.count(len(self._unloaded), "other partition")
            found.append(f"{others} of which no broker starts with a replica")
        if self._twins:
            found.append(f"it is not known which topic is right in {self._twins:,}")
        if above := self._found["leader-epoch/above-metadata"]:
            found.append(f"followers skip batches in {above:,}")
        if unknown := sum(self._found[code] for code in _NOT_KNOWN):
            named = text.count(unknown, "finding")
            found.append(f"it is not known what else is lost, because of {named}")
        if self._lacking and not self._lost:
            count = sum(map(_offsets, self._lacking))
            known = f"up to {text.count(count, 'offset')}" if count else "offsets"
            found.append(f"a log lacks {known} that may be acknowledged: see the findings")
        if not self._report.summary.complete and not (self._lost or self._unsure):
            found.append("not every replica was read, so acknowledged records may be lost")
        return found


def _offsets(finding: Finding) -> int:
    """Return the number of offsets that a finding is about; 0 if it names no range."""
    first, last = finding.first_offset, finding.last_offset
    return 0 if first is None or last is None else last - first + 1


def _uncompared(groups: Sequence[ReplicaGroup]) -> str:
    """Return a text: the nodes with replicas that were not compared, and those in sync."""
    number = text.count(len(groups), "partition")
    in_sync = {node for one in groups for node in one.not_looked_at}
    others = {node for one in groups for node in one.not_given} | in_sync
    which = "replicas in sync" if others == in_sync else "replicas"
    line = f"{number} not compared with the {which} on {_nodes(others)}, of which no copy was given"
    return f"{line}; in sync were those on {_nodes(in_sync)}" if others > in_sync > set() else line


def _nodes(ids: Iterable[int | None]) -> str:
    names = sorted(map(str, ids))
    return f"{'node' if len(names) == 1 else 'nodes'} {', '.join(names)}"


def _leaders(group: ReplicaGroup) -> str:
    """Return a text: who should lead, the cost of the others, and whom controllers elect."""
    costs: dict[str, list[str]] = {}
    best = [one for one in group.choices if not group.loses_more(one)]
    for one in sorted(group.choices, key=loss_of):
        if one not in best:
            costs.setdefault(_cost(one), []).append(str(one.replica.node))
    safe = " or ".join(str(one.replica.node) for one in best)
    said = f"let {safe} lead" if safe else "each leader loses records"
    if group.nowhere:
        gone = text.count(group.nowhere, "acknowledged record")
        said = f"{gone} in no copy, lost with every leader; {said}"
    said += "".join(f"; if {' or '.join(nodes)} leads, {cost}" for cost, nodes in costs.items())
    said += _why_acknowledged(group)
    elected = [str(one.replica.node) for one in group.choices if one.standing.election != "unclean"]
    if elected:
        return f"{said}; controllers elect {' or '.join(elected)} by themselves"
    return f"{said}; controllers elect none of them without an unclean election"


def _why_acknowledged(group: ReplicaGroup) -> str:
    """Return why offsets above the checkpointed high watermarks count as acknowledged, or ""."""
    if group.committed_from == "in-sync":
        return (
            f"; all replicas in sync have the offsets below {group.committed}, so that these count "
            "as acknowledged"
        )
    alone = [one for one in group.replicas if one.alone and one.log_end > one.high_watermark]
    return "".join(
        f"; {one.node} was alone in the ISR, so that its offsets below {one.log_end} count as "
        "acknowledged"
        for one in alone
    )


def _cost(choice: Choice) -> str:
    """Return the loss with a leader in words."""
    lost, more = choice.acknowledged_lost, choice.may_be_lost
    parts = []
    if lost:
        verb = "is" if lost == 1 else "are"
        parts.append(f"{text.count(lost, 'acknowledged record')} {verb} lost")
    if more != 0:
        count = "an unknown number" if more is None else f"up to {more:,}"
        what = "records" if more else "of records"
        parts.append(f"{count} more may be" if lost else f"{count} {what} may be lost")
    return ", and ".join(parts)


def _may_be_lost(group: ReplicaGroup) -> str:
    """Return a text: how many acknowledged records a leader may lack, and why this is not known."""
    offsets = group.may_be_lost
    much = "an unknown number of records" if offsets is None else f"up to {offsets:,} records"
    given = [node for node in group.not_looked_at if node not in group.unusable]
    why = []
    for nodes, what in ((given, "not given"), (group.unusable, "given, but does not load")):
        named = [str(node) for node in nodes if node in group.not_looked_at]
        if named:
            who = "node" if len(named) == 1 else "nodes"
            verb = "was" if len(named) == 1 else "were"
            why.append(f"{who} {', '.join(named)}, in sync, {verb} {what}")
    return f"node {group.assumed.node} lacks {much} that may be acknowledged: {'; '.join(why)}"
