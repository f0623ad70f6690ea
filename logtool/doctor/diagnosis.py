"""The answers of `doctor` from the results of an examination, and the command to run next.

The limits of the host for a broker are added: disk space, open files, maps.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.actions import Action
from logtool.checks import topic_id_support
from logtool.disk import in_use, shell
from logtool.doctor.answers import (
    Answer,
    BrokerState,
    DamageAnswer,
    DiskAnswer,
    ExaminedNode,
    FindingGroup,
    Gravity,
    HighWatermark,
    Identity,
    KeptDirty,
    Limit,
    Next,
    NextStart,
    OldFormats,
    SoonAfterStart,
    VersionsAnswer,
)
from logtool.doctor.examination import Examination
from logtool.doctor.holdings import LogDirNumbers
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.findings import Broker, Finding, Remedy, Severity
from logtool.loading.result import Outcome
from logtool.log.buckets import is_bucket
from logtool.metadata import releases
from logtool.metadata.releases import METADATA_VERSION
from logtool.node import host_limits, written_by
from logtool.running.remedies import Remedies
from logtool.running.summary import SeverityCounts
from logtool.startup import rates
from logtool.startup.duration import duration

_STATES = {
    Severity.ERROR: Gravity.ERROR, Severity.WARNING: Gravity.WARNING, Severity.INFO: Gravity.INFO,
}  # fmt: skip
_HARM = frozenset(
    {"refuse", "offline", "discard", "lacks", "unknown", "zombie", "overlap", "lost", "erase"}
)
"""Actions that are errors even if nothing is counted as lost."""
_FROM_A_COPY = (Remedy.LOSS, Remedy.REPLICA)
"""Remedies of findings about data that another copy can still have."""
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
    for run in runs:
        yield from run.findings
        yield from run.actions
        yield from run.unread
        yield from answers(run, [one for one in runs if one is not run])
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
        given += brokers(run)
        given += [versions(run)] if of_kafka else []
    given += old_formats(run)
    given += disks(run.homes)
    if of_kafka:
        holder = run.holder
        given += limits(run.homes, holder.pid if holder else None)
    yield from given
    remedies = Remedies(run.paths, run.selection)
    for one in run.findings:
        remedies.add(one)
    yield from remedies.counts()
    yield next_command(run, given, others)


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


def soon_after_start(run: Examination) -> Iterator[SoonAfterStart]:
    """Yield the effects of retention and of the cleaner, if there are any."""
    found = run.after_start
    if run.has_too_many_logs:
        command = _logtool(run, "retention")
        yield SoonAfterStart(Gravity.INFO, None, None, None, None, None, (), command)
    if found is None or not (found.first.segments or found.kept):
        return
    first = found.first
    yield SoonAfterStart(
        state=Gravity.INFO,
        delay_ms=found.delay_ms,
        segments=first.segments,
        bytes=first.bytes,
        partitions=first.partitions,
        oldest=first.oldest,
        kept=[
            KeptDirty(one.path, one.producer_id, one.transaction_first_offset) for one in found.kept
        ],
        command=_logtool(run, "retention" if first.segments else "cleaner"),
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


def next_command(
    run: Examination, given: Sequence[Answer], others: Sequence[Examination] = ()
) -> Next:
    """Return the command to run next, for the gravest of the problems in these answers.

    Where one of `others` has a sound copy of what is damaged, that is the copy to repair it from.
    """
    start = next((one for one in given if isinstance(one, NextStart)), None)
    by_severity = {severity: [one for one in run.findings if one.severity is severity]
                   for severity in Severity}  # fmt: skip
    errors = by_severity[Severity.ERROR]
    refusing = next(
        (one for one in run.findings if one.broker is Broker.REFUSES),
        next((one for one in errors if one.remedy is Remedy.CHECKPOINT), None),
    )
    if run.unread and not any(home.partitions for home in run.homes):
        return _unread(run, run.unread[0])
    if several := _of_several_nodes(given):
        return several
    if start and start.refuses:
        return _finding(run, refusing) if refusing else _plan(run, "what prevents the start")
    for found in errors:
        if found.code == "partition/lost" and found.next:
            return Next(found.next, "the logs that the next start deletes")
    if filled := _fill(run, others):
        return filled
    if start and (start.losing or start.state is Gravity.ERROR):
        return _plan(run, "what the next start does, and what is lost")
    if start and start.not_reached and any(one.remedy in _FROM_A_COPY for one in errors):
        return _plan(run, "what the next start does, and what is lost, without a time limit")
    for found in errors:
        return _finding(run, found)
    if run.unread:
        return _unread(run, run.unread[0])
    if any(isinstance(one, DiskAnswer) and one.state is Gravity.ERROR for one in given):
        return Next(_logtool(run, "stat --level quick --top 10"), "what takes up disk space")
    if start and start.state is Gravity.WARNING:
        return _plan(run, "what the next start does, and which damage it does not notice")
    for found in by_severity[Severity.WARNING]:
        return _finding(run, found)
    if not run.deep.is_whole:
        return Next(_logtool(run, "verify"), "every batch, without a time limit")
    return Next(
        _logtool(run, "verify --level records"), ("also every record; nothing is wrong so far")
    )


def _of_several_nodes(given: Sequence[Answer]) -> Next | None:
    """Return the examination of each node by itself, where log dirs are not of one node."""
    versions = next((one for one in given if isinstance(one, VersionsAnswer)), None)
    found = versions.identities if versions else ()
    if len({one.node_id for one in found}) < 2:
        return None
    words = [
        shell.path(one.path) if one.node_id is None else f"{one.node_id}={shell.path(one.path)}"
        for one in found
    ]
    return Next(f"logtool doctor {' '.join(words)}", "each node by itself; these are several nodes")


def _logtool(run: Examination, command: str) -> str:
    words = [f"logtool {command}", str(run.selection), *map(shell.path, run.paths)]
    return " ".join(word for word in words if word)


def _plan(run: Examination, reason: str) -> Next:
    return Next(_logtool(run, "plan"), reason)


def _fill(run: Examination, others: Sequence[Examination]) -> Next | None:
    """Return the repair of damaged partitions from other brokers; None if no copy is sound."""
    damaged, copies = _damaged(run), []
    for other in others:
        is_bad = _damaged(other)
        sound = {one for home in other.homes for one in home.partitions}
        if any(name in sound and name not in is_bad for name in damaged):
            copies += [f"--fill-from {shell.path(path)}" for path in other.paths]
    if not copies:
        return None
    return Next(
        _logtool(run, " ".join(["recover", *copies])),
        "the repair with sound batches of the other copies; nothing is written without --apply",
    )


def _damaged(run: Examination) -> set[tuple[str | None, int | None]]:
    """Return topic and partition of the logs that have damage or lose records at the start."""
    lost = {(one.request.topic, one.request.partition) for one in run.forecasts if one.losses}
    return lost | {
        (one.topic, one.partition)
        for one in run.findings
        if one.severity is Severity.ERROR and one.remedy in _FROM_A_COPY
    }


def _finding(run: Examination, found: Finding) -> Next:
    remedies = Remedies(run.paths, run.selection)
    remedies.add(found)
    if found.remedy in (Remedy.RECOVER, Remedy.CHECKPOINT):
        for one in remedies.counts():
            if one.command:
                return Next(one.command, f"the repair of {found.code}")
    if found.next and found.remedy is not Remedy.NONE:
        return Next(found.next, f"the place where {found.code} was found")
    return Next(f"logtool explain {found.code}", "what it means and what to do")


def _unread(run: Examination, error: UnreadableError) -> Next:
    """Return a command that shows why a path could not be read."""
    path = error.path
    if is_bucket(path):
        return _plan(run, "what the node recovers; doctor reads no bucket")
    if isinstance(error, NothingMatchedError):
        return Next(f"ls -la {shell.path(path)}", "what the directory holds")
    if path.exists():
        return Next(f"ls -ld {shell.path(path)}", "who may read the path")
    there: Path = next((one for one in path.absolute().parents if one.exists()), Path("/"))
    return Next(f"ls -la {shell.path(there)}", "what the directory holds")
