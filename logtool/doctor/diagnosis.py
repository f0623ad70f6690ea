"""The answers of `doctor` from the results of an examination.

The limits of the host for a broker are added: disk space, open files, maps.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

from logtool.actions import Action
from logtool.checks import topic_id_support
from logtool.checks.identity import Effect
from logtool.disk import in_use
from logtool.doctor.answers import (
    Answer,
    BrokerState,
    DamageAnswer,
    DeletedEarly,
    DiskAnswer,
    ExaminedNode,
    FindingGroup,
    FutureStamped,
    Gravity,
    HighWatermark,
    Identity,
    KeptDirty,
    Limit,
    Next,
    NextStart,
    OldFormats,
    OpenTransactionsAnswer,
    SoonAfterStart,
    UncleanablePartition,
    VersionsAnswer,
)
from logtool.doctor.controllers import controllers
from logtool.doctor.coordinators import coordinators
from logtool.doctor.examination import Examination
from logtool.doctor.holdings import LogDirNumbers
from logtool.doctor.next_command import (
    command_line,
    compared_quorum,
    comparison,
    copies_of,
    early_recovery,
    next_command,
    remote_lineage,
    saved_first,
    stuck_transactions,
    with_copies,
)
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.loading.result import Outcome
from logtool.metadata import releases
from logtool.metadata.releases import METADATA_VERSION
from logtool.node import host_limits, own_file, written_by
from logtool.running.remedies import Remedies
from logtool.running.summary import SeverityCounts
from logtool.startup import rates, recovery_points
from logtool.startup.duration import duration
from logtool.txns.open_transactions import TransactionState

_STATES = {
    Severity.ERROR: Gravity.ERROR, Severity.WARNING: Gravity.WARNING, Severity.INFO: Gravity.INFO,
}  # fmt: skip
_HARM = frozenset(
    {"refuse", "offline", "discard", "lacks", "unknown", "zombie", "overlap", "lost", "erase"}
)
"""Actions that are errors even if nothing is counted as lost."""
_MAY_NOT_END = (TransactionState.HANGING, TransactionState.UNKNOWN, TransactionState.MARKER_LOST)
_OLD_FORMAT = "batch/old-format"
_OPEN_FILES = re.compile(r"^Max open files +(\S+) +(\S+)", re.MULTILINE)


Diagnosed = Finding | Action | UnreadableError | Answer


def diagnose(runs: Sequence[Examination]) -> Iterator[Diagnosed]:
    """Examine the log dirs of each broker; yield what was found, and the answers.

    Findings, grave actions and paths that cannot be read come first.

    After a signal the answers cover the part examined until then; then the signal is raised again.
    """
    end = None
    for run in runs:
        end = end or run.look()
    named: list[Next] = []
    for run in runs:
        yield from run.findings
        yield from run.actions
        yield from run.unread
        for answer in answers(run, [one for one in runs if one is not run]):
            named += [answer] if isinstance(answer, Next) else []
            yield answer
    if quorum := controllers(runs):
        runs[0].summary.to_do = True
        yield quorum
    if groups := coordinators(runs):
        yield groups
    yield from comparison(runs, named)
    if end:
        raise end


def answers(run: Examination, others: Sequence[Examination] = ()) -> Iterator[Answer]:
    """Yield the answer to each question that can be answered, and the command to run next.

    `others` are the examinations of other brokers, whose copies can replace damage.
    """
    if others and run.node is not None:
        yield ExaminedNode(run.node, run.paths)
    given: list[Answer] = [damage(run)]
    # Redpanda keeps no high watermark, and its files do not show its release.
    of_kafka = any(one.flavour.has_checkpoints for one in run.homes)
    if run.forecast.log_dirs:
        given.append(next_start(run))
        given += [high_watermark(run)] if of_kafka else []
        given += soon_after_start(run)
        given += open_transactions(run)
        given += brokers(run)
        given += [versions(run)] if of_kafka else []
    given += old_formats(run)
    given += disks(run.homes)
    if of_kafka:
        holder = run.holder
        given += limits(run.homes, holder.pid if holder else None)
    yield from given
    remedies = Remedies(run.paths, run.selection, copies_of(run, others))
    for one in with_copies(run, others):
        remedies.add(one)
    yield from remedies.counts()
    chosen, quorum = next_command(run, given, others), compared_quorum(run)
    yield from saved_first(run)
    yield chosen
    if quorum and quorum != chosen:
        yield quorum
    yield from early_recovery(run)
    if remote := remote_lineage(run):
        yield remote
    stuck = stuck_transactions(given)
    if stuck and stuck.command != chosen.command:
        yield stuck


def damage(run: Examination) -> DamageAnswer:
    """Return the findings of verify, and the extent of its checks."""
    deep, unread = run.deep, len(run.unread)
    counts = Counter(one.severity for one in run.findings)
    found = SeverityCounts(*(counts[one] for one in reversed(Severity)))
    # Files that could not be read are a reason for a warning.
    warned = found.warning or unread
    state = Gravity.ERROR if found.error else Gravity.WARNING if warned else Gravity.GOOD
    if state is Gravity.GOOD and (found.info or not run.summary.complete):
        state = Gravity.INFO
    return DamageAnswer(
        state=state,
        complete=deep.is_whole and not unread,
        partitions=sum(len(home.partitions) for home in run.homes),
        segments=sum(home.segments for home in run.homes),
        looked_at=run.quick.summary.segments,
        checked=deep.summary.segments,
        log_bytes=sum(home.log_bytes for home in run.homes),
        checked_bytes=deep.summary.bytes,
        unreadable=unread,
        findings=found,
        groups=_grouped((one.code, _STATES[one.severity], one) for one in run.findings),
    )


def next_start(run: Examination) -> NextStart:
    """Return the effects of the next start."""
    forecasts, actions = run.forecasts, run.actions
    losing = [f"{one.request.topic}-{one.request.partition}" for one in forecasts if one.losses]
    not_loaded = sum(one.outcome is not Outcome.LOADS for one in forecasts)
    # A finding about a setting that does not keep the broker from its start says it all.
    said = {(one.path, one.message) for one in run.findings}
    groups = _grouped(
        (one.action, _state_of(one), one)
        for one in actions
        if one.action != Effect.IGNORE or (one.path, one.reason) not in said
    )
    recovered = sum(one.recovered for one in forecasts)
    reached = run.forecast_is_whole and not run.unread
    worst = max((list(Gravity).index(group.state) for group in groups), default=0)
    state = list(Gravity)[worst]
    if state is Gravity.GOOD and (recovered or not reached):
        state = Gravity.INFO
    missing = recovery_points.missing(run.forecast.log_dirs, forecasts)
    known = rates.known(forecasts, disks=run.forecast.disks if reached else None)
    return NextStart(
        state=state,
        complete=reached,
        refuses=any(one.action == "refuse" for one in actions),
        partitions=len(forecasts),
        not_reached=run.forecast.not_reached,
        not_loaded=not_loaded,
        metadata_log=run.forecast.has_metadata_log,
        segments=sum(one.segments for one in forecasts),
        recovered_segments=recovered,
        cause=recovery_points.cause(missing),
        changed_files=run.changed_files,
        lost_records=sum(loss.records for one in forecasts for loss in one.losses),
        losing=losing,
        purged=run.purged,
        reappearing=run.reappearing,
        offline=sum(one.action == "offline" and one.topic is None for one in actions),
        read_bytes=sum(one.bytes_read for one in forecasts),
        time=duration(forecasts, 1, known) if known else None,
        groups=groups,
    )


def soon_after_start(run: Examination) -> Iterator[SoonAfterStart]:
    """Yield the effects of retention and of the cleaner, if there are any."""
    found, off = run.after_start, own_file.switch(run.policies, own_file.CLEANER) is False
    if run.has_too_many_logs:
        command = command_line(run, "retention")
        yield SoonAfterStart(
            Gravity.INFO, None, None, None, None, None, (), (), (), (), off, command
        )
    stays = found and (found.kept or found.future_stamped or run.uncleanable)
    if found is None or not (found.first.segments or stays):
        return
    first = found.first
    command = "retention" if first.segments or found.future_stamped else "cleaner"
    if off and command == "cleaner":
        command += f" --with {own_file.CLEANER}=true"
    yield SoonAfterStart(
        state=Gravity.WARNING if run.uncleanable or found.early else Gravity.INFO,
        delay_ms=found.delay_ms,
        segments=first.segments,
        bytes=first.bytes,
        partitions=first.partitions,
        oldest=first.oldest,
        kept=[
            KeptDirty(one.path, one.producer_id, one.transaction_first_offset) for one in found.kept
        ],
        future_stamped=[
            FutureStamped(one.path, one.blocked_at, one.next_ms, one.next)
            for one in found.future_stamped
            if one.blocked_at is not None and one.next_ms is not None
        ],
        early=[
            DeletedEarly(
                path=one.path,
                segments=one.early.segments,
                first_offset=one.early.first_offset,
                last_offset=one.early.last_offset,
                newest_ms=one.early.newest_ms,
                newest=one.early.newest,
                age_ms=one.early.age_ms,
            )
            for one in found.early
            if one.early is not None
        ],
        uncleanable=[
            UncleanablePartition(one.fault_path, one.fault_position)
            for one in run.uncleanable
            if one.fault_path is not None and one.fault_position is not None
        ],
        cleaner_off=off,
        command=command_line(run, command),
    )


def open_transactions(run: Examination) -> Iterator[OpenTransactionsAnswer]:
    """Yield the transactions that are open after the start, if there are any."""
    found = run.transactions
    partitions = found.partitions if found else []
    every = [(one, each) for one in partitions for each in one.open]
    if not found or not every:
        return
    states = Counter(each.state for _, each in every)
    hanging = states[TransactionState.HANGING]
    marker_lost = states[TransactionState.MARKER_LOST]
    aged = [
        (each.age_ms, one.path.name, each.first_offset)
        for one, each in every
        if each.age_ms is not None
    ]
    age, place, offset = max(aged, key=itemgetter(0), default=(None, None, None))
    is_loaded = all(one.outcome is Outcome.LOADS for one in run.forecasts)
    yield OpenTransactionsAnswer(
        state=Gravity.WARNING if hanging or marker_lost else Gravity.INFO,
        complete=run.forecast_is_whole and is_loaded and not (run.unread or found.errors),
        partitions=len({one.path for one, _ in every}),
        open=len(every),
        hanging=hanging,
        unknown=states[TransactionState.UNKNOWN],
        marker_lost=marker_lost,
        oldest=place,
        oldest_offset=offset,
        age_ms=age,
        command=command_line(run, "txns --open"),
        stuck=list(
            dict.fromkeys(one.path.name for one, each in every if each.state in _MAY_NOT_END)
        ),
    )


def high_watermark(run: Examination) -> HighWatermark:
    """Return the partitions that end below their high watermark once they are loaded."""
    below = [one for one in run.forecasts if one.lost_acknowledged]
    known = sum(one.request.high_watermark is not None for one in run.forecasts)
    is_whole = known and run.forecast_is_whole
    state = Gravity.ERROR if below else Gravity.GOOD if is_whole else Gravity.INFO
    return HighWatermark(state, known, below, run.forecast.not_reached)


def brokers(run: Examination) -> Iterator[BrokerState]:
    """Yield the state of each log dir, with the process that holds it."""
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
    written = written_by.of_node(node)
    levels = dict(sorted(node.image.features.items())) if node.image else {}
    if node.image and node.image.kraft_version:
        levels["kraft.version"] = node.image.kraft_version
    finalized = levels.get(METADATA_VERSION)
    return VersionsAnswer(
        state=Gravity.INFO if node.is_kafka_assumed else Gravity.GOOD,
        kafka=releases.text(node.starting_kafka or node.kafka),
        shown=releases.text(node.shown_kafka) if node.shown_kafka else None,
        metadata_version=node.shown_level,
        written_by=written.text,
        evidence=written.reasons,
        finalized=levels,
        finalized_name=None if finalized is None else releases.feature_name(finalized),
        mode=mode,
        identities=identities,
    )


def old_formats(run: Examination) -> Iterator[OldFormats]:
    """Yield the partitions with batches of magic 0 or 1, as far as batches were checked."""
    holding = [one.path.name for one in run.findings if one.code == _OLD_FORMAT and one.path]
    if holding:
        yield OldFormats(
            state=Gravity.INFO,
            complete=run.deep.is_whole and not run.summary.unreadable,
            partitions=sorted(set(holding)),
            newest_reader=releases.text(releases.NEWEST),
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
            partitions=list(
                dict.fromkeys(
                    f"{one.topic}-{one.partition}" for one in some if one.topic is not None
                )
            ),
        )
        for (name, state), some in found.items()
    ]
    return sorted(groups, key=lambda group: -list(Gravity).index(group.state))


def disks(homes: Sequence[LogDirNumbers]) -> Iterator[DiskAnswer]:
    """Yield the file systems of log dirs, each once, without those that cannot be queried."""
    together: dict[int, list[LogDirNumbers]] = {}
    for home in homes:
        with suppress(OSError):
            together.setdefault(home.path.stat().st_dev, []).append(home)
    for some in together.values():
        with suppress(OSError):
            yield disk(some)


def disk(homes: Sequence[LogDirNumbers]) -> DiskAnswer:
    """Return the file system that log dirs share; OSError if it cannot be queried."""
    system = os.statvfs(homes[0].path)
    unit = system.f_frsize
    return DiskAnswer(
        paths=[home.path for home in homes],
        total=system.f_blocks * unit,
        used=(system.f_blocks - system.f_bfree) * unit,
        available=system.f_bavail * unit,
        inodes=system.f_files,
        free_inodes=system.f_favail,
        read_only=bool(system.f_flag & os.ST_RDONLY),
        logs=sum(home.bytes for home in homes),
    )


def limits(homes: Sequence[LogDirNumbers], pid: int | None) -> Iterator[Limit]:
    """Yield the open files and maps that a broker needs, with the limits for them.

    `pid` is that of the running broker, whose limit of open files is then read. Without it, that
    of this process is taken, which a broker that is started from here inherits. A JVM raises its
    soft limit of open files to the hard one, so the hard one counts. For maps, the need is that of
    a broker that has used every index.
    """
    needed = sum((home.needs for home in homes), host_limits.Needs())
    limits = host_limits.of_host()
    limit = pid and open_files_of(pid)
    if limit:
        yield Limit("open-files", needed.open_files, limit[1], pid)
    else:
        yield Limit("open-files", needed.open_files, limits.open_files)
    yield Limit("max-map-count", needed.most_maps, limits.maps)


def open_files_of(pid: int) -> tuple[int | None, int | None] | None:
    """Return soft and hard limit of open files of a process; None if they are not shown."""
    with suppress(OSError):
        found = _OPEN_FILES.search(Path(f"/proc/{pid}/limits").read_text())
        if found:
            soft, hard = (int(one) if one.isdigit() else None for one in found.groups())
            return soft, hard
    return None
