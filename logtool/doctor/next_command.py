"""The command to run next, after the answers of `doctor`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.checks import access
from logtool.copies import absent_copies
from logtool.disk import shell
from logtool.doctor.answers import (
    Answer,
    DiskAnswer,
    Gravity,
    Next,
    NextStart,
    OpenTransactionsAnswer,
    SoonAfterStart,
    VersionsAnswer,
)
from logtool.doctor.examination import Examination
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.findings import FOREIGN_SEGMENT, Broker, Finding, Remedy, Severity
from logtool.formats import wording
from logtool.formats.messages.remote_log import TOPIC as REMOTE_LOG_METADATA
from logtool.formats.names import CLUSTER_METADATA
from logtool.log.buckets import is_bucket
from logtool.log.inputs import kind_of, log_dirs_in
from logtool.metadata.log_start import is_tiered
from logtool.node.identity import ids_of
from logtool.running.remedies import Remedies

_FROM_A_COPY = (Remedy.LOSS, Remedy.REPLICA)
"""Remedies of findings about data that another copy can still have."""

_MISSES = ("lost", "lacks", "absent", "discard")
"""Actions on a partition of which something is missing, or goes."""
_COPY = "data-dir/duplicate-partition"
"""Code of a log dir that was given with a copy of it."""
_LOST = "partition/lost"
"""Code of a partition that no log dir of its node has."""
_WRONG_TIMES = (
    "the timestamps that hold back retention or let it delete records early, and their producers"
)
_MOST_TOPICS = 8
"""Topics that a command names; it takes all if there are more."""


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
    for found in errors:
        if found.code == "data-dir/unfinished-change" and found.next:
            return Next(found.next, "which takes back a change that was not finished")
    quorum = compared_quorum(run)
    if quorum and any(one.topic == CLUSTER_METADATA for one in errors):
        return quorum
    if refusing and refusing.code == _COPY and (filled := _filled_by_a_copy(errors)):
        return filled
    if start and start.refuses:
        return _finding(run, refusing) if refusing else _plan(run, "what prevents the start")
    if waiting := [one for one in errors if one.code == _LOST and one.next]:
        return _undelete(run, waiting)
    copies = copies_of(run, others)
    if hidden := _shown_again(run, is_filled=bool(copies)):
        return hidden
    if copies:
        return _fill(run, copies)
    if start and (start.losing or start.state is Gravity.ERROR):
        return _plan(run, "what the next start does, and what is lost")
    if start and start.not_reached and any(one.remedy in _FROM_A_COPY for one in errors):
        return _plan(run, "what the next start does, and what is lost, without a time limit")
    for found in errors:
        return _finding(run, found)
    if run.unread:
        return _unread(run, run.unread[0])
    if any(isinstance(one, DiskAnswer) and one.state is Gravity.ERROR for one in given):
        return Next(command_line(run, "stat --level quick --top 10"), "what takes up disk space")
    soon = next((one for one in given if isinstance(one, SoonAfterStart)), None)
    if soon and soon.early:
        return Next(soon.command, _WRONG_TIMES)
    if start and start.state is Gravity.WARNING:
        return _plan(run, "what the next start does, and which damage it does not notice")
    txns = next((one for one in given if isinstance(one, OpenTransactionsAnswer)), None)
    stuck = stuck_transactions(given)
    if stuck and txns and txns.hanging:
        return stuck
    for found in by_severity[Severity.WARNING]:
        return _finding(run, found)
    if start and start.cause:
        return _plan(run, "how long the next start takes, and why, with the largest partitions")
    if stuck:
        return stuck
    if not run.deep.is_whole:
        return Next(command_line(run, "verify"), "every batch, without a time limit")
    if soon and soon.future_stamped:
        return Next(soon.command, _WRONG_TIMES)
    verdict = "nothing is wrong so far"
    if others:
        verdict = "nothing is wrong with this broker by itself"
    return Next(command_line(run, "verify --level records"), f"also every record; {verdict}")


def _shown_again(run: Examination, *, is_filled: bool) -> Next | None:
    """Return the command after which a start finds the end of a log; None if it hides none.

    `is_filled`: a copy may fill what recovery cuts from a damaged log, and is to be asked first.
    """
    for one in run.forecasts:
        if one.hidden and not (one.hidden.is_damaged and is_filled):
            what = wording.count(one.hidden.offsets, "sound offset")
            text = f"the repair of the index with which the start hides {what}"
            return Next(one.hidden.command, text)
    return None


def saved_first(run: Examination) -> Iterator[Next]:
    """Yield the command that saves what the repair of a hidden end cuts; it comes before that."""
    if any(one.hidden and one.hidden.is_damaged for one in run.forecasts):
        yield Next(command_line(run, "salvage --output salvaged"), "every sound batch, saved first")


def early_recovery(run: Examination) -> Iterator[Next]:
    """Yield the command that does a long recovery before the start, if nothing is lost by it."""
    command = run.forecast.early_recovery(run.forecasts)
    if command and not any(one.losses for one in run.forecasts):
        yield Next(
            command, "the recovery before the start, which then recovers nothing; shown first"
        )


def stuck_transactions(given: Sequence[Answer]) -> Next | None:
    """Return the command that shows transactions that hang, or may hang; None without one."""
    for one in given:
        if isinstance(one, OpenTransactionsAnswer) and (one.hanging or one.marker_lost):
            return Next(one.command, "the transactions that hold back read_committed consumers")
        if isinstance(one, OpenTransactionsAnswer) and one.unknown:
            return Next(
                one.command,
                "old transactions of which the coordinator's state is lost or not here",
            )
    return None


def comparison(runs: Sequence[Examination], named: Sequence[Next] = ()) -> Iterator[Next]:
    """Yield the command that compares the replicas of several brokers, which `doctor` does not.

    Where another broker has a sound copy of damaged replicas, the fill comes before it: the
    comparison does not read what is damaged. A fill that is already among the `named` commands is
    not named again. Examinations of one node are of copies of its log dirs made at different
    times, which `diff` compares. Nothing is yielded for one broker, and for Redpanda, whose
    replicas no command compares.
    """
    of_kafka = all(one.flavour.has_checkpoints for run in runs for one in run.homes)
    if len(runs) < 2 or not of_kafka:
        return
    nodes = [run.node for run in runs if run.node is not None]
    has_copies = len(set(nodes)) < len(nodes)
    command = "watermark" if any(run.has_partition_dirs for run in runs) else "cluster"
    command = "diff" if has_copies else command
    words = [
        _node_dir(None if has_copies else run.node, path) for run in runs for path in run.paths
    ]
    when, known = "", {one.command for one in named}
    for run in runs:
        if copies := copies_of(run, [one for one in runs if one is not run]):
            first = _fill(run, copies)
            if first.command in known:
                when = when or "after these repairs, "
                continue
            yield Next(first.command, f"{'then' if when else 'first'} {first.reason}")
            when = "then "
    reason = "the replicas of these brokers compared: which of them may lead, and what is then lost"
    if has_copies:
        reason = "the copies of one log dir compared: what only one of them has, and what differs"
    yield Next(f"logtool {command} {' '.join(words)}", f"{when}{reason}")


def _node_dir(node: int | None, path: Path) -> str:
    """Return ``ID=DIR`` as a shell takes it; the path alone without an id."""
    return shell.path(path) if node is None else f"{node}={shell.path(path)}"


def _of_several_nodes(given: Sequence[Answer]) -> Next | None:
    """Return the examination of each node by itself, where log dirs are not of one node."""
    versions = next((one for one in given if isinstance(one, VersionsAnswer)), None)
    found = versions.identities if versions else ()
    if len({one.node_id for one in found}) < 2:
        return None
    words = [_node_dir(one.node_id, one.path) for one in found]
    return Next(f"logtool doctor {' '.join(words)}", "each node by itself; these are several nodes")


def command_line(run: Examination, command: str) -> str:
    """Return the command line of a command of logtool for the log dirs that were examined."""
    words = [f"logtool {command}", str(run.selection), *map(shell.path, run.paths)]
    return " ".join(word for word in words if word)


def _plan(run: Examination, reason: str) -> Next:
    return Next(command_line(run, "plan"), reason)


def _undelete(run: Examination, waiting: Sequence[Finding]) -> Next:
    """Return the command that saves lost partitions whose directories wait to be deleted."""
    commands = {one.next for one in waiting}
    topics = list(dict.fromkeys(one.topic for one in waiting if one.topic))
    chosen = topics if len(topics) <= _MOST_TOPICS else []
    words = [
        "logtool undelete --output undeleted",
        *(shell.option("--topic", topic) for topic in chosen),
        *map(shell.path, run.paths),
    ]
    command = commands.pop() if len(commands) == 1 else None
    return Next(command or " ".join(words), "the logs that the next start deletes")


def copies_of(run: Examination, others: Sequence[Examination]) -> list[Path]:
    """Return the paths of other brokers that have a sound copy of a damaged partition."""
    missing = damaged(run)
    copies: list[Path] = []
    for other in others:
        is_bad = damaged(other)
        sound = {one for home in other.homes for one in home.partitions}
        if any(name in sound and name not in is_bad for name in missing):
            copies += other.paths
    return copies


def with_copies(run: Examination, others: Sequence[Examination]) -> Iterator[Finding]:
    """Yield the findings, those about lost partitions with the command that copies them back.

    A partition is copied only from another copy of the log dir that lacks it.
    """
    places = [path for other in others for path in other.paths]
    is_asked = places and any(one.code == _LOST for one in run.findings)
    absent = absent_copies.missing(run.paths, places) if is_asked else ()
    known = {(one.topic, one.partition): one for one in absent}
    for one in run.findings:
        found = known.get((one.topic or "", one.partition or 0))
        is_copied = one.code == _LOST and found and not one.next
        yield replace(one, next=found.next) if found and is_copied else one


def _fill(run: Examination, copies: Sequence[Path]) -> Next:
    """Return the repair of damaged partitions from other brokers."""
    words = ["recover", *(f"--fill-from {shell.path(path)}" for path in copies)]
    return Next(
        command_line(run, " ".join(words)),
        "the repair with sound batches of the other copies; nothing is written without --apply",
    )


def compared_quorum(run: Examination) -> Next | None:
    """Return the comparison of the voters' metadata logs, where this one is damaged.

    None if the node is not one of several voters.
    """
    node = run.forecast.broker.node
    is_bad = any(one.topic == CLUSTER_METADATA for one in run.findings if _is_serious(one))
    if not is_bad or node.node_id not in node.voters or len(node.voters) < 2:
        return None
    words = ["logtool quorum", *map(shell.path, run.paths)]
    return Next(" ".join(words), "the metadata log; give the log dirs of the other voters, too")


def remote_lineage(run: Examination) -> Next | None:
    """Return the command that shows what remote storage has of partitions that lack something.

    None without the records of remote segments, and if no topic with remote storage is concerned.
    """
    node = run.forecast.broker.node
    found = (one.topic for one in run.findings if one.remedy in (*_FROM_A_COPY, Remedy.REMOTE))
    acted = (one.topic for one in run.actions if one.loss or one.action in _MISSES)
    concerned = any(is_tiered(node.image, topic) for topic in {*found, *acted})
    topics = {one.topic for home in node.log_dirs for _, one in home.root.partitions}
    if not concerned or REMOTE_LOG_METADATA not in topics:
        return None
    words = [str(run.selection), *(shell.path(home.path) for home in node.log_dirs)]
    return Next(
        " ".join(word for word in ("logtool remote lineage", *words) if word),
        "what remote storage has of the topics that it is enabled for; give the log dirs of all "
        "brokers",
    )


def _is_serious(found: Finding) -> bool:
    return found.severity is not Severity.INFO


def damaged(run: Examination) -> set[tuple[str | None, int | None]]:
    """Return topic and partition of the logs that have damage or lose records at the start."""
    lost = {(one.request.topic, one.request.partition) for one in run.forecasts if one.losses}
    return lost | {
        (one.topic, one.partition)
        for one in run.findings
        if one.severity is Severity.ERROR and one.remedy in _FROM_A_COPY
    }


def _filled_by_a_copy(errors: Sequence[Finding]) -> Next | None:
    """Return the repair of the first finding that a copy mends which was given; None without one.

    The copy is a second log dir of the broker in name only.
    """
    for one in errors:
        if one.next and one.next.startswith("logtool recover "):
            command = one.next.replace(" --apply", "", 1)
            return Next(command, f"the repair of {one.code} from the copy")
    return None


def _finding(run: Examination, found: Finding) -> Next:
    remedies = Remedies(run.paths, run.selection)
    for each in (found, *(other for other in run.findings if other.code == FOREIGN_SEGMENT)):
        remedies.add(each)
    if found.remedy in (Remedy.RECOVER, Remedy.CHECKPOINT):
        for one in remedies.counts():
            if one.command:
                return Next(one.command, f"the repair of {found.code}")
    if found.code in access.CODES and found.next:
        commands = {one.next: None for one in run.findings if one.code in access.CODES and one.next}
        return Next(
            " && ".join(commands), "the repair of owners and modes, as root; check the user first"
        )
    if found.code == _COPY and found.next:
        return Next(found.next, "a comparison of the two copies; move the shorter one away")
    if found.next and found.remedy is not Remedy.NONE:
        return Next(found.next, f"the place where {found.code} was found")
    return Next(f"logtool explain {found.code}", "what it means and what to do")


def _log_dirs_below(run: Examination) -> list[str]:
    """Return the paths of a run, with the log dirs that lie in them in place of other directories.

    With their node ids, if there are several. Of copies of one log dir only the first is named.
    Nothing if no other directory holds a log dir.
    """
    wrong = {one.path for one in run.unread if isinstance(one, NothingMatchedError)}
    inner = {path: log_dirs_in(path) for path in run.paths if path in wrong}
    if not any(inner.values()):
        return []
    found = [one for path in run.paths for one in inner.get(path, [path])]
    chosen: dict[object, tuple[int | None, Path]] = {}
    for path in found:
        node, directory_id = ids_of(path)
        chosen.setdefault(directory_id or path, (node, path))
    several = len({node for node, _ in chosen.values()}) > 1
    paths = [_node_dir(node if several else None, path) for node, path in chosen.values()]
    return [*filter(None, [str(run.selection)]), *paths]


def _of_file(path: Path) -> Next:
    """Return the command for a file that was given in place of a directory."""
    try:
        kind_of(path.parent)
    except UnreadableError:
        return Next(f"logtool verify {shell.path(path)}", "the file by itself")
    return Next(f"logtool doctor {shell.path(path.parent)}", "the directory of the file")


def _unread(run: Examination, error: UnreadableError) -> Next:
    """Return a command that shows why a path could not be read."""
    path = error.path
    if is_bucket(path):
        return _plan(run, "what the node recovers; doctor reads no bucket")
    if inner := _log_dirs_below(run):
        return Next(f"logtool doctor {' '.join(inner)}", "the log dirs that the directory holds")
    if isinstance(error, NothingMatchedError):
        return Next(f"ls -la {shell.path(path)}", "what the directory holds")
    if path in run.paths and path.is_file():
        return _of_file(path)
    if path.exists():
        return Next(f"ls -ld {shell.path(path)}", "who may read the path")
    if run.named_by:
        words = f"logtool doctor --broker-config {shell.path(run.named_by)} DIR..."
        return Next(words, "with the places of these log dirs on this host as DIR")
    there: Path = next((one for one in path.absolute().parents if one.exists()), Path("/"))
    return Next(f"ls -la {shell.path(there)}", "what the directory holds")
