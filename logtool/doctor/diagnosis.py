"""The answers of `doctor`, out of what an examination found."""

from collections.abc import Iterable, Iterator, Sequence

from logtool.actions import Action
from logtool.checks import topic_id_support
from logtool.disk import in_use
from logtool.doctor import host, next_step
from logtool.doctor.answers import (
    Answer,
    BrokerState,
    DamageAnswer,
    FindingGroup,
    Gravity,
    HighWatermark,
    Identity,
    NextStart,
    VersionsAnswer,
)
from logtool.doctor.examination import Examination
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.loading.result import Outcome
from logtool.metadata import releases
from logtool.startup import rates
from logtool.startup.duration import duration

_STATES = {
    Severity.ERROR: Gravity.ERROR, Severity.WARNING: Gravity.WARNING, Severity.INFO: Gravity.INFO,
}  # fmt: skip
_HARM = frozenset({"refuse", "offline", "discard", "lacks", "unknown", "zombie", "overlap"})
"""Actions that are errors even where nothing is counted as lost."""


def told(run: Examination) -> Iterator[Finding | Action | UnreadableError | Answer]:
    """Look, and yield findings, grave actions, what could not be read, and the answers.

    What a signal interrupts is told as far as it came; then the signal goes on.
    """
    end = run.look()
    yield from run.findings
    yield from run.actions
    yield from run.unread
    yield from answers(run)
    if end:
        raise end


def answers(run: Examination) -> Iterator[Answer]:
    """Yield the answer to each question that can be answered, and the command to run next."""
    given: list[Answer] = [damage(run)]
    # Redpanda keeps no high watermark, and writes down nowhere which release it is.
    of_kafka = any(one.flavour.has_checkpoints for one in run.homes)
    if run.forecast.log_dirs:
        given.append(next_start(run))
        given += [high_watermark(run)] if of_kafka else []
        given += brokers(run)
        given += [versions(run)] if of_kafka else []
    given += host.disks(run.homes)
    if of_kafka:
        holder = run.holder
        given += host.limits(run.homes, holder.pid if holder else None)
    yield from given
    yield next_step.choose(run, given)


def damage(run: Examination) -> DamageAnswer:
    """Return what verify finds, and how far it has come."""
    summary, deep = run.summary, run.deep
    found = summary.severity_counts
    # What could not be read calms nobody.
    warned = found.warning or summary.unreadable
    state = Gravity.ERROR if found.error else Gravity.WARNING if warned else Gravity.GOOD
    if state is Gravity.GOOD and (found.info or not summary.complete):
        state = Gravity.INFO
    sizes = [one.log.size for home in run.homes for partition in home.partitions
             for one in partition.segments]  # fmt: skip
    return DamageAnswer(
        state=state,
        complete=deep.is_whole and not summary.unreadable,
        partitions=sum(len(home.partitions) for home in run.homes),
        segments=len(sizes),
        looked_at=run.quick.summary.segments,
        checked=deep.summary.segments,
        log_bytes=sum(sizes),
        checked_bytes=deep.summary.bytes,
        unreadable=summary.unreadable,
        findings=found,
        groups=_grouped((one.code, _STATES[one.severity], one) for one in run.findings),
    )


def next_start(run: Examination) -> NextStart:
    """Return what the next start does."""
    forecasts, actions = run.forecasts, run.actions
    losing = [f"{one.request.topic}-{one.request.partition}" for one in forecasts if one.losses]
    not_loaded = sum(one.outcome is not Outcome.LOADS for one in forecasts)
    groups = _grouped((one.action, _state_of(one), one) for one in actions)
    recovered = sum(one.recovered for one in forecasts)
    reached = run.forecast_is_whole and not run.unread
    worst = max((list(Gravity).index(group.state) for group in groups), default=0)
    state = list(Gravity)[worst]
    if state is Gravity.GOOD and (recovered or not reached):
        state = Gravity.INFO
    known = rates.known(forecasts, disks=run.forecast.disks if reached else None)
    return NextStart(
        state=state,
        complete=reached,
        refuses=any(one.action == "refuse" for one in actions),
        partitions=len(forecasts),
        not_reached=run.forecast.not_reached,
        not_loaded=not_loaded,
        segments=sum(one.segments for one in forecasts),
        recovered_segments=recovered,
        changed_files=run.changed_files,
        lost_records=sum(loss.records for one in forecasts for loss in one.losses),
        losing=losing,
        offline=sum(one.action == "offline" and one.topic is None for one in actions),
        read_bytes=sum(one.bytes_read for one in forecasts),
        time=duration(forecasts, 1, known) if known else None,
        groups=groups,
    )


def high_watermark(run: Examination) -> HighWatermark:
    """Return which partitions end below their high watermark, once they are loaded."""
    below = [one for one in run.forecasts if one.lost_acknowledged]
    known = sum(one.request.high_watermark is not None for one in run.forecasts)
    state = Gravity.ERROR if below else Gravity.GOOD if known else Gravity.INFO
    return HighWatermark(state, known, below)


def brokers(run: Examination) -> Iterator[BrokerState]:
    """Yield who holds each log dir."""
    for start in run.forecast.log_dirs:
        path = start.log_dir.path
        holder = in_use.holder(path)
        # Redpanda has no marker of a clean shutdown.
        clean = start.clean if start.log_dir.flavour.has_checkpoints else None
        state = Gravity.INFO if holder or clean is False else Gravity.GOOD
        yield BrokerState(path, state, holder, clean)


def versions(run: Examination) -> VersionsAnswer:
    """Return the releases and identities that the files of the log dirs show."""
    node = run.forecast.broker.node
    identities = [
        Identity(one.path, meta.version, meta.node_id, meta.cluster_id, meta.directory_id)
        for one in node.log_dirs
        if (meta := one.meta)
    ]
    has_era = [one for one in node.log_dirs if one.meta or one.has_metadata_log]
    mode = "kraft" if node.is_kraft else None
    if has_era and not any(topic_id_support.needs_topic_ids(one.root, one.meta) for one in has_era):
        mode = "zookeeper"
    level = None
    if node.image and node.node_id is not None:
        level = node.image.metadata_version_of(node.node_id)
    return VersionsAnswer(
        state=Gravity.INFO if node.is_kafka_assumed else Gravity.GOOD,
        kafka=releases.text(node.kafka),
        shown=releases.text(node.shown_kafka) if node.shown_kafka else None,
        metadata_version=level,
        mode=mode,
        identities=identities,
    )


def _state_of(action: Action) -> Gravity:
    return Gravity.ERROR if action.loss or action.action in _HARM else Gravity.WARNING


def _grouped(items: Iterable[tuple[str, Gravity, Finding | Action]]) -> Sequence[FindingGroup]:
    """Return the items by name, the worst first, then in the order in which they were found."""
    found: dict[tuple[str, Gravity], list[Finding | Action]] = {}
    for name, state, one in items:
        found.setdefault((name, state), []).append(one)
    groups = [
        FindingGroup(
            name=name,
            state=state,
            count=len(some),
            path=some[0].path,
            position=some[0].position,
            message=some[0].message if isinstance(some[0], Finding) else some[0].reason,
        )
        for (name, state), some in found.items()
    ]
    return sorted(groups, key=lambda group: -list(Gravity).index(group.state))
