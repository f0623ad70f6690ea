"""Facts about a partition before its batches are read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from logtool.checks import compaction
from logtool.checks.compaction import Cleaning
from logtool.checks.fast_path import PlainPartitions
from logtool.checks.indexes import OffsetIndexRules, TimeIndexRules
from logtool.checks.producers import last_batch_within
from logtool.checks.report import PartitionSummary
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.formats import compression
from logtool.formats.names import DirectoryKind, FileKind, FileState, PartitionDirectory, Reception
from logtool.gaps import lost_ranges
from logtool.gaps.coverage import Coverage, CoverageTask
from logtool.gaps.evidence import Facts
from logtool.lazy_dataclass import dataclass
from logtool.loading.epochs import EpochCache
from logtool.log import inputs, opening, small_files
from logtool.log.dir import OF_TODAY, LogDir, Partition, without_files
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA, given_up_segments, is_compacted, is_reserved_room
from logtool.log.selection import Selection
from logtool.metadata.log_start import is_tiered, log_start
from logtool.node import settings, surroundings
from logtool.node.identity import topic_id_of
from logtool.node.log_dir_state import LogDirState
from logtool.node.options import StartOptions
from logtool.node.settings import Settings
from logtool.node.surroundings import Surroundings

Epochs = tuple[tuple[int, int], ...]
"""Leader epochs and their start offsets."""


@dataclass(frozen=True, slots=True)
class GapOptions:
    """Options for each partition."""

    exact: bool = False
    """True if batches with holes are decoded."""
    isolation: bool = False
    """True if offsets that a `read_committed` consumer does not get are listed too."""
    policy: str | None = None
    """``cleanup.policy`` of all partitions; None: from the metadata log."""
    max_batch_memory: int = compression.DEFAULT_LIMIT
    """Bytes that the records of one batch may decompress to."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Settings in the broker's properties file."""
    sums_alone: bool = False
    """True if the caller does not read batches again, as a copy with filled gaps needs it: then the
    segments of a plain partition are not in its result."""


@dataclass(frozen=True, slots=True)
class PlainLog:
    """A partition that was read, and has a record at each offset from its log start on."""

    partition: "PartitionToRead"
    """Its names and facts, without files."""
    summary: PartitionSummary


@dataclass(frozen=True, slots=True)
class PartitionToRead:
    """One partition before it is read."""

    partition: Partition
    facts: Facts
    ahead_ms: int | None = None
    """Largest time that a timestamp of a producer may be ahead, in ms; None: not known."""
    unread: tuple[UnreadableError, ...] = ()
    """Errors of reading the files that give reasons for gaps."""
    settings: Settings = field(default_factory=Settings)
    """Known settings of its topic."""
    topic_id: str | None = None
    """Topic id in its partition.metadata."""
    home: LogDir | None = None
    """The log dir around it; None for a single log, and for a log that objects make up."""

    @property
    def has_unknown_end(self) -> bool:
        """Return whether no checkpoint shows where the log ended, so that a loss may not show."""
        listed = self.partition
        is_live = getattr(listed.directory, "kind", None) is DirectoryKind.LIVE
        is_judged = self.home is not None and is_live and not listed.is_metadata_log
        return is_judged and self.facts.checkpointed_end is None

    def looks(self, wanted: GapOptions) -> list[CoverageTask]:
        """Return the segments that are to be read, as tasks."""
        start = self.facts.log_start
        return [
            CoverageTask(
                segment=segment,
                start=start,
                exact=wanted.exact,
                limit=wanted.max_batch_memory,
                ahead_ms=self.ahead_ms,
            )
            for segment in self.partition.segments
            if segment.next_base_offset is None or segment.next_base_offset > start
        ]


class _LogDirRows:
    """A log dir, and the rows of its checkpoints that name ends of logs."""

    def __init__(self, state: LogDirState) -> None:
        self.state = state
        self.ends = lost_ranges.checkpointed_ends(state.log_dir)
        self.shared = replace(surroundings.of_log_dir(state.log_dir), clean=state.clean)

    def around(
        self, listed: Partition, known: Settings, start: int | None, cleaned: int | None
    ) -> Surroundings | None:
        """Return the facts about a partition in its log dir; None if they decide nothing."""
        if files.is_assembled(listed.path) or not listed.flavour.has_checkpoints:
            return None
        if not self.state.log_dir.files:  # a copy of a partition dir, anywhere
            return surroundings.alone(listed.path, known)
        if not isinstance(listed.directory, PartitionDirectory):
            return None
        return surroundings.of(self.shared, known, listed.directory, start or 0, cleaned)


def subjects(
    path: Path, wanted: GapOptions, selection: Selection, flavour: Flavour | None = None
) -> Iterator[PartitionToRead | UnreadableError]:
    """Yield the partitions at a path, and errors of reading it."""
    for item in with_plain(path, wanted, selection, flavour, None):
        if not isinstance(item, PlainLog):
            yield item


def with_plain(
    path: Path,
    wanted: GapOptions,
    selection: Selection,
    flavour: Flavour | None,
    looks: PlainPartitions | None,
) -> Iterator[PartitionToRead | PlainLog | UnreadableError]:
    """Yield the same; with `looks` the plain partitions of a log dir are read at once."""
    try:
        kind = inputs.kind_of(path, flavour, redpanda=True)
        if kind is PathKind.FILE:
            yield _single(path, wanted, flavour)
            return
        top = path if kind is PathKind.LOG_DIR else path.resolve().parent
        options = StartOptions(static=wanted.static)
        home = _LogDirRows(LogDirState(opening.open_log_dir(top, flavour), options))
        yield from home.state.unread
    except UnreadableError as error:
        yield error
        return
    known = settings.of_node(home.state.node)
    if kind is not PathKind.LOG_DIR:
        # It has its own flavour: its log dir may hold anything.
        yield from _listed(path, flavour, home, wanted, known, given=True)
        return
    flavour = home.state.log_dir.flavour
    for folder, directory in home.state.log_dir.partitions:
        if directory.kind is DirectoryKind.DELETE or not selection.takes(directory):
            continue
        plain = None
        if looks and flavour.has_checkpoints:
            plain = _plain(folder, directory, home, wanted, known, looks)
        yield from [plain] if plain else _listed(folder, flavour, home, wanted, known)


def _listed(
    folder: Path,
    flavour: Flavour | None,
    home: _LogDirRows,
    wanted: GapOptions,
    known: Settings,
    *,
    given: bool = False,
) -> Iterator[PartitionToRead | UnreadableError]:
    """Yield a partition, or the error of listing it; no error if it vanished and was not given."""
    try:
        listed = opening.open_partition(folder, flavour)
        epochs, unread = _epochs(listed)
        topic_id = topic_id_of(listed.path)
        first = listed.segments[0].base_offset if listed.segments else 0
        facts = _facts(listed, first, home, wanted, epochs, known, topic_id)
        around = None if files.is_assembled(folder) else home.state.log_dir
        ahead_ms = known.ahead_ms(listed.topic)
        yield PartitionToRead(listed, facts, ahead_ms, unread, known, topic_id, around)
    except UnreadableError as error:
        if given or not files.has_vanished(error):
            yield error


def _plain(
    folder: Path,
    directory: PartitionDirectory,
    home: _LogDirRows,
    wanted: GapOptions,
    known: Settings,
    looks: PlainPartitions,
) -> PlainLog | None:
    """Return a plain partition that begins at its log start; None for any other."""
    ahead_ms = known.ahead_ms(directory.topic)
    summary = looks.look(folder, 0, ahead_ms)
    first = summary.first_base_offset if summary else None
    if summary is None or first is None:
        return None
    listed, topic_id = without_files(folder, KAFKA, directory), summary.topic_id
    facts = _facts(listed, first, home, wanted, looks.files.epochs, known, topic_id)
    if facts.log_start != first or facts.claimed_end > (summary.log_end_offset or 0):
        return None
    place = home.state.log_dir
    subject = PartitionToRead(
        listed, facts, ahead_ms, settings=known, topic_id=topic_id, home=place
    )
    return PlainLog(subject, summary)


def _single(path: Path, wanted: GapOptions, flavour: Flavour | None) -> PartitionToRead:
    """Return a single log; nothing but its start offset depends on its neighbours."""
    flavour = opening.flavour_of_file(path, flavour)
    name = flavour.file_name(path.name)
    exact = name.state is FileState.LIVE and name.reception is Reception.EXACT
    if name.kind is not FileKind.LOG or not exact:
        raise UnreadableError(path, "expected a log dir, a partition dir or a .log")
    listed = opening.open_partition(path.parent, flavour)
    segment = next(
        (candidate for candidate in listed.segments if candidate.log.path.name == path.name), None
    )
    if segment is None:
        raise UnreadableError(path, "No such file or directory", missing=True)
    alone = replace(listed, path=path, segments=(replace(segment, next_base_offset=None),))
    base = segment.base_offset
    epochs, unread = _epochs(listed)
    known, topic_id = settings.around(path.parent, wanted.static), topic_id_of(path.parent)
    cleaning = _with_policy(compaction.next_to(path.parent), listed, wanted, known, topic_id)
    facts = Facts(log_start=base, cleaning=cleaning, first_base=base, epochs=epochs)
    return PartitionToRead(alone, facts, known.ahead_ms(listed.topic), unread, known, topic_id)


def _with_policy(
    cleaning: Cleaning,
    listed: Partition,
    wanted: GapOptions,
    known: Settings,
    topic_id: str | None,
) -> Cleaning:
    """Return `cleaning` with the policy of the command line, of names or of settings."""
    if wanted.policy is not None:
        return replace(cleaning, policy=wanted.policy, policy_source="the command line")
    if listed.flavour is REDPANDA:
        policy, source = _of_redpanda(listed)
        return replace(cleaning, policy=policy, policy_source=source)
    return cleaning.with_policy(known, topic_id)


def _facts(
    listed: Partition,
    first: int,
    home: _LogDirRows,
    wanted: GapOptions,
    epochs: Epochs,
    known: Settings,
    topic_id: str | None,
) -> Facts:
    """Return the facts about a partition; `first` is the base offset of its first segment."""
    directory, state = listed.directory, home.state
    key = live = None
    if isinstance(directory, PartitionDirectory) and directory.kind in OF_TODAY:
        key = directory.topic, directory.partition
        # The rows of a log that a broker moves to another log dir are those of its old one.
        is_live = directory.kind is DirectoryKind.LIVE and not listed.is_metadata_log
        live = key if is_live else None
    row = state.rows(FileKind.LOG_START_CHECKPOINT).get(key) if key else None
    tiered = key is not None and is_tiered(state.image, key[0])
    cleaner = state.rows(FileKind.CLEANER_CHECKPOINT).get(key) if key else None
    around = home.around(listed, known, row, cleaner)
    lost = lost_ranges.beginning(listed, around) if around else None
    start = lost[0] if lost else log_start(first, row, tiered=tiered)
    gone = [file for file in given_up_segments(listed) if not is_reserved_room(file)]
    there = (*listed.orphans, *gone)
    witnesses = [(file.name.offset or 0, file.name.name, False) for file in there]
    bases = {segment.base_offset for segment in listed.segments}
    witnesses += [
        (file.name.offset or 0, file.name.name, True)
        for file in listed.snapshots
        if file.name.offset not in bases
    ]
    cleaning = Cleaning(listed.topic, cleaner, state.clean)
    watermark = home.ends.high_watermarks.get(live) if live else None
    point = home.ends.recovery_points.get(live) if live else None
    named = [offset for offset, _, _ in witnesses] + [first_offset for _, first_offset in epochs]
    return Facts(
        log_start=start,
        beginning=lost[1] if lost else None,
        high_watermark=watermark,
        recovery_point=point,
        claimed_end=max([watermark or 0, point or 0, *named]),
        cleaning=_with_policy(cleaning, listed, wanted, known, topic_id),
        first_base=first,
        is_tiered=tiered,
        witnesses=tuple(sorted(witnesses)),
        epochs=epochs,
    )


def _of_redpanda(listed: Partition) -> tuple[str, str]:
    """Return the policy of a log of Redpanda, and its source: names of topic and files."""
    if is_compacted(listed):
        return "compact", "the topic name, or files of compaction"
    return "delete", "no files of compaction are present"


def _epochs(listed: Partition) -> tuple[Epochs, tuple[UnreadableError, ...]]:
    """Return the entries of leader-epoch-checkpoint that a broker keeps, and errors of reading it.

    There are no entries if a broker cannot read the file, or if it could not be read here; only
    then there is an error.
    """
    file = listed.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if file is None:
        return (), ()
    try:
        value, wrong = small_files.check_file(file)
    except UnreadableError as error:
        return (), () if files.has_vanished(error) else (error,)
    if any(finding.severity is Severity.ERROR for finding in wrong):
        return (), ()
    return tuple(EpochCache(value.epochs).rows), ()


def with_past(subject: PartitionToRead, facts: Facts) -> Facts:
    """Return the facts with the past policies of its topic in the metadata log."""
    past = subject.settings.past(subject.partition.topic, subject.topic_id)
    return replace(facts, cleaning=replace(facts.cleaning, past=past))


def indexed(
    subject: PartitionToRead,
    segments: Sequence[Coverage],
    on_unreadable: Callable[[UnreadableError], None] = lambda _: None,
) -> Facts:
    """Return the facts from the indexes before a gap, and from the producer snapshot behind it."""
    ends = {
        coverage.base_offset: coverage.last.offset + 1 if coverage.last else coverage.base_offset
        for coverage in segments
    }
    offsets: list[tuple[int, int]] = []
    produced: list[tuple[int, str]] = []
    for segment in subject.partition.segments:
        end, behind = ends.get(segment.base_offset), segment.next_base_offset
        if end is None or behind is None or end >= behind:
            continue
        highest = -1
        for rules, kind in (
            (OffsetIndexRules, FileKind.OFFSET_INDEX),
            (TimeIndexRules, FileKind.TIME_INDEX),
        ):
            if file := segment.indexes.get(kind):
                try:
                    highest = max(highest, rules(segment, file).last_offset)
                except UnreadableError as error:
                    if not files.has_vanished(error):
                        on_unreadable(error)
        offsets.append((segment.base_offset, highest))
        named = last_batch_within(subject.partition.snapshots, behind, range(end, behind))
        produced += [(named[1], named[0].name.name)] if named else []
    return replace(subject.facts, indexed=tuple(offsets), produced=tuple(sorted(produced)))
