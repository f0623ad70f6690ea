"""The same partitions on several brokers, from log dirs, partition dirs and digests.

To be compared, the copies of a partition are read side by side, each in a thread of its own if they
are large, and some blocks of each are in memory. Who asks for the copies themselves (`read_groups`)
gets those of one partition at a time, with all of their batches.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from logtool.beside import Beside
from logtool.checks import root, small_files
from logtool.checks.identity import listed_topic_id
from logtool.diff import digest
from logtool.diff.copy import (
    Batches,
    Copy,
    Part,
    WholeCopy,
    parts_of,
    reading_of,
    try_segment,
    unreadable_segment,
)
from logtool.diff.digest import Digest
from logtool.diff.verdict import Standing, Verdict, judge
from logtool.disk import files, log_dir, partition
from logtool.disk.log_dir import OF_TODAY, DataDir, PathKind, Selection
from logtool.disk.node_dir import NodeDir
from logtool.disk.partition import Partition, Segment
from logtool.errors import UnreadableError, UsageError
from logtool.formats import leader_epoch_checkpoint
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.metadata import image
from logtool.metadata.state import MetadataImage
from logtool.running.budget import WORTH_A_POOL
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError, Pace


@dataclass(frozen=True, slots=True)
class ListedCopy:
    """A copy that is not read yet: a directory, or a partition of a digest."""

    key: TopicPartition
    node: int | None
    path: Path
    listed: Partition | None = None
    rows: dict[FileKind, int] = field(default_factory=dict)
    """Its offsets in the checkpoints of its log dir."""
    saved: tuple[Digest, int] | None = None
    given: bool = False
    """Whether its directory was named itself, and not its log dir."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments that are to be read."""
        return self.listed.segments if self.listed else ()


class Comparison:
    """One run: iterate for a verdict on each partition, and for what cannot be read.

    With `save` there is one source, and what is scanned of it is saved there.
    """

    def __init__(
        self,
        sources: Sequence[NodeDir],
        *,
        selection: Selection | None = None,
        run: Run | None = None,
        save: Path | None = None,
    ) -> None:
        if save and len(sources) != 1:
            raise UsageError("--digest saves the scan of one DIR; give one")
        if not save and len(sources) == 1 and not _is_file(sources[0].path):
            raise UsageError("give at least two DIRs to compare, or one with --digest")
        self._sources = sources
        self._selection = selection or Selection()
        self._run = run or Run()
        self._save = save
        if save:
            digest.check_place(save)
        self.out_of_time = False
        self._images: list[MetadataImage] = []

    @property
    def saves(self) -> bool:
        """Return whether what is scanned is saved, and nothing compared."""
        return self._save is not None

    def __iter__(self) -> Iterator[Verdict | UnreadableError]:
        copies: list[ListedCopy] = []
        for source in self._sources:
            try:
                for one in find(source.path, source.node, self._selection):
                    if isinstance(one, UnreadableError):
                        yield one
                    else:
                        copies.append(one)
            except UnreadableError as error:
                yield error
            else:
                self._images += [] if self._save else _images(source.path)
        self._images.sort(key=lambda one: one.offset, reverse=True)
        self._run.bytes_total = sum(segment.log.size for one in copies for segment in one.segments)
        groups = _grouped(copies)
        if not self._save:
            yield from self._all(groups, None)
            return
        try:
            with digest.Writer(self._save, self._sources[0].path) as writer:
                yield from self._all(groups, writer)
                if self.out_of_time:
                    raise OutOfTimeError  # what is not whole must not be taken for it
        except OutOfTimeError:
            return

    def _all(
        self, groups: Sequence[Sequence[ListedCopy]], writer: digest.Writer | None
    ) -> Iterator[Verdict | UnreadableError]:
        try:
            for group in groups:
                yield from self._group(group, writer)
        except OutOfTimeError:
            self.out_of_time = True

    def _group(
        self, group: Sequence[ListedCopy], writer: digest.Writer | None
    ) -> Iterator[Verdict | UnreadableError]:
        """Compare the copies of one partition; one that turns out to be unreadable is left out."""
        while group:
            opened = []
            for listed in group:
                try:
                    opened.append(_Opened(listed, self._run.budget.pace))
                except UnreadableError as error:
                    yield error
            if not opened:
                return
            try:
                verdict = self._judged(opened, writer)
            except _BrokenCopyError as broken:
                yield broken.error
                group = [one.listed for one in opened if one.listed is not broken.listed]
                continue
            for one in opened:
                yield from one.errors
            verdict = replace(verdict, standing=_standing(verdict.copies[0], self._images))
            yield replace(verdict, fixes=tuple(_fixes(verdict)))
            return

    def _judged(self, opened: Sequence["_Opened"], writer: digest.Writer | None) -> Verdict:
        """Read the copies of one partition side by side."""
        run = self._run
        large = sum(one.size for one in opened) >= WORTH_A_POOL
        with ExitStack() as stack:
            blocks = []
            for number, one in enumerate(opened):
                beside = large and number < run.budget.jobs and run.budget.jobs > 1
                own = stack.enter_context(_ahead(one)) if beside else iter(one)
                told = _told(one, own, run)
                blocks.append(writer.keeping(told) if writer else told)
            try:
                verdict = judge([one.reading for one in opened], blocks)
            except _BrokenCopyError:
                raise
            except BaseException:
                run.budget.pace.end()  # nobody waits for a thread that keeps to a rate
                raise
        if writer:
            writer.add(verdict.copies[0])
        return verdict


class _BrokenCopyError(Exception):
    """A copy that cannot be read to its end, and of which nothing is to be told."""

    def __init__(self, listed: ListedCopy, error: UnreadableError) -> None:
        super().__init__(listed, error)
        self.listed, self.error = listed, error


class _Opened:
    """A copy to be read, in whatever thread; iterate for its blocks."""

    def __init__(self, listed: ListedCopy, pace: Pace) -> None:
        self.listed = listed
        self.errors: list[UnreadableError] = []
        """Of segments that cannot be read to their ends."""
        self.size = sum(segment.log.size for segment in listed.segments)
        self.done = 0
        """Bytes that were read."""
        self._pace = pace
        if listed.saved:
            saved, number = listed.saved
            self.reading = saved.reading(number, listed.key, listed.node)
        else:
            start = listed.rows.get(FileKind.LOG_START_CHECKPOINT, 0)
            self.reading = reading_of(_place(listed), listed.segments, start, self._parts())

    def __iter__(self) -> Iterator[Batches]:
        try:
            yield from self.reading
        except UnreadableError as error:
            raise _BrokenCopyError(self.listed, error) from error

    def _parts(self) -> Iterator[Part]:
        for segment in self.listed.segments:
            self._pace.spend(0)
            try:
                yield from parts_of(segment, self._on_bytes)
            except UnreadableError as error:
                self.errors.append(error)

    def _on_bytes(self, count: int) -> None:
        self.done += count
        self._pace.spend(count)


def _told(one: _Opened, blocks: Iterable[Batches], run: Run) -> Iterator[Batches]:
    """Yield blocks, and tell the run how far it is."""
    seen = 0
    for block in blocks:
        run.path = one.listed.path
        now = one.done
        run.advance(now - seen)
        seen = now
        yield block
    run.advance(one.done - seen)


@contextmanager
def _ahead(one: _Opened) -> Iterator[Iterator[Batches]]:
    """Give the blocks of a copy, of which a thread reads the next one meanwhile."""
    beside: Beside[Batches | None] = Beside()
    blocks = iter(one)

    def taken() -> Iterator[Batches]:
        beside.begin(partial(next, blocks, None))
        while (block := beside.end()) is not None:
            beside.begin(partial(next, blocks, None))
            yield block

    try:
        yield taken()
    finally:
        beside.close()


def _fixes(verdict: Verdict) -> Iterator[str]:
    """Yield the commands that repair copies that are damaged, or lack offsets in their middle."""
    paths = {copy.label: Path(copy.path) for copy in verdict.copies}
    hurt: dict[str, dict[Path, None]] = {}
    for wound in verdict.wounds:
        for label in (*wound.filled_by, *wound.partly_by):
            hurt.setdefault(wound.copy.label, {}).setdefault(paths[label])
    for pair in verdict.pairs:
        sides = (pair.left, pair.right, pair.left_lacks), (pair.right, pair.left, pair.right_lacks)
        for copy, other, lacks in sides if pair.diverges_at is None and pair.comparable else ():
            if lacks.missing:
                hurt.setdefault(copy.label, {}).setdefault(paths[other.label])
    for label, others in hurt.items():
        from logtool.salvage import proposing

        command = proposing.repair(paths[label], list(others))
        if command:
            yield command


def read_groups(
    groups: Sequence[Sequence[ListedCopy]], run: Run
) -> Iterator[list[WholeCopy] | UnreadableError]:
    """Read the copies of each group; what cannot be read comes before its group, which is shorter.

    OutOfTimeError once the time of the run is over.
    """
    with run.workers(try_segment) as workers:
        for group in groups:
            copies = []
            segments = [segment for one in group for segment in one.segments]
            results = workers.run(segments, lambda _: 0)
            for one in group:
                run.path = one.path
                try:
                    copies.append((yield from _copy(one, islice(results, len(one.segments)))))
                except UnreadableError as error:
                    yield error
            yield copies


def _copy(
    listed: ListedCopy, results: Iterator[Part | UnreadableError | OutOfTimeError]
) -> Generator[UnreadableError, None, WholeCopy]:
    if listed.saved:
        saved, number = listed.saved
        return saved.reading(number, listed.key, listed.node).whole()
    parts = []
    for segment, result in zip(listed.segments, results, strict=True):
        if isinstance(result, OutOfTimeError):
            raise result
        if isinstance(result, UnreadableError):
            yield result
            result = unreadable_segment(segment, result.reason)
        parts.append(result)
    start = listed.rows.get(FileKind.LOG_START_CHECKPOINT, 0)
    return reading_of(_place(listed), listed.segments, start, parts).whole()


def _images(path: Path) -> list[MetadataImage]:
    """Return what a log dir knows of its cluster; nothing where it does not, or is far away.

    What of its metadata log cannot be read is told where its copies are compared.
    """
    with suppress(UnreadableError):
        if not files.is_remote(path) and files.has_dir(path / image.DIRECTORY):
            return [image.read(path)]
    return []


def _standing(copy: Copy, newest_first: Sequence[MetadataImage]) -> Standing | None:
    """Return who may lead, by the newest image that has the partition."""
    for known in newest_first:
        topic_id = known.topics.get(copy.topic, "")
        state = known.partitions.get(topic_id, {}).get(copy.partition)
        if state and copy.topic_id in (None, topic_id):
            return Standing(tuple(state.isr), tuple(state.elr))
    return None


def _is_file(path: Path) -> bool:
    """Return whether a source is a digest, which may be looked at alone."""
    return not files.is_remote(path) and path.is_file()


def find(
    path: Path,
    node: int | None,
    selection: Selection,
    *,
    kinds: Sequence[DirectoryKind] = OF_TODAY,
) -> Iterator[ListedCopy | UnreadableError]:
    """Yield the copies that a source holds; UnreadableError where it is none.

    Of a log dir directories of these `kinds` are taken.
    """
    kind = log_dir.classify(path, redpanda=True)
    if kind is PathKind.FILE:
        saved = digest.read(path)
        for number, place in enumerate(saved.partitions):
            key = place["topic"], place["partition"]
            directory = PartitionDirectory("", DirectoryKind.LIVE, *key, None, exact=True)
            if selection.takes(directory):
                yield ListedCopy(key=key, node=node, path=path, saved=(saved, number))
    elif kind is PathKind.LOG_DIR:
        home = _LogDir(log_dir.read(path), node)
        yield from home.unread
        for folder, directory in home.root.partitions:
            if directory.kind in kinds and selection.takes(directory):
                try:
                    yield home.copy(folder, (directory.topic, directory.partition))
                except UnreadableError as error:
                    if not files.has_vanished(error):
                        yield error
    else:
        listed = partition.read(path)
        try:
            home = _LogDir(log_dir.read(path.resolve().parent), node)
        except UnreadableError:
            home = _LogDir(
                DataDir(
                    path=path,
                    partitions=(),
                    bad_directories=(),
                    files={},
                    leftovers=(),
                    strangers=(),
                    odd_entries=(),
                ),
                node,
            )  # it stands alone
        yield from home.unread
        key = listed.topic or path.resolve().name, listed.number or 0
        yield replace(home.copy(path, key), given=True)


class _LogDir:
    """A log dir: whose it is, and its checkpoints, as far as they can be read."""

    def __init__(self, found: DataDir, node: int | None) -> None:
        self.root = found
        self.unread: list[UnreadableError] = []
        """Its files that could not be read; what they say is taken for not being there."""
        meta = self._read(FileKind.META_PROPERTIES)
        self._node = meta.node_id if node is None and meta else node
        self._rows = {
            kind: root.by_key(value) if (value := self._read(kind)) else {}
            for kind in log_dir.OFFSET_CHECKPOINTS
        }

    def copy(self, folder: Path, key: TopicPartition) -> ListedCopy:
        """Return one of its partitions."""
        rows = {kind: rows[key].offset for kind, rows in self._rows.items() if key in rows}
        return ListedCopy(
            key=key, node=self._node, path=folder, listed=partition.read(folder), rows=rows
        )

    def _read(self, kind: FileKind) -> Any:
        file = self.root.files.get(kind)
        try:
            return small_files.check_file(file)[0] if file else None
        except UnreadableError as error:
            self.unread.append(error)
            return None


def _place(copy: ListedCopy) -> dict[str, Any]:
    """Return what is known of a copy besides its segments."""
    fixed = copy.listed.fixed if copy.listed else {}
    epochs: tuple[tuple[int, int], ...] = ()
    if file := fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT):
        epochs = tuple(leader_epoch_checkpoint.parse(files.read_small(file.path)).epochs)
    return {
        "topic": copy.key[0],
        "partition": copy.key[1],
        "path": str(copy.path),
        "node": copy.node,
        "topic_id": listed_topic_id(copy.listed) if copy.listed else None,
        "high_watermark": copy.rows.get(FileKind.REPLICATION_CHECKPOINT),
        "cleaner_offset": copy.rows.get(FileKind.CLEANER_CHECKPOINT),
        "epochs": epochs,
    }


def _grouped(copies: Sequence[ListedCopy]) -> list[list[ListedCopy]]:
    """Return the copies of each partition.

    Where nothing but partition dirs was given they are copies of one, whatever they are called.
    """
    if copies and all(copy.given for copy in copies):
        return [[replace(copy, key=copies[0].key) for copy in copies]]
    groups: dict[TopicPartition, list[ListedCopy]] = {}
    for copy in copies:
        groups.setdefault(copy.key, []).append(copy)
    return [groups[key] for key in sorted(groups)]
