"""One run of `salvage` or `undelete`: log by log, into one output."""

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from logtool.disk import files
from logtool.errors import (
    LogtoolError,
    RefusedError,
    UnreadableError,
    UnwritableError,
)
from logtool.findings import Finding
from logtool.formats import leader_epoch_checkpoint
from logtool.formats.names import DirectoryKind, FileKind, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.loading.result import LoadResult, Outcome, StartConditions
from logtool.log import opening
from logtool.log.automq import AUTOMQ
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.inputs import GivenPaths, PathKind, kind_of
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection
from logtool.repair import (
    disk_image,
    filling,
    header_tampering,
    reading,
    redpanda,
    sound,
    transactions,
)
from logtool.repair.disk_image import Image
from logtool.repair.output import OutputDir
from logtool.repair.ranges import FILLABLE, Kept, Part, Rejected, RejectReason, missing, with_gaps
from logtool.repair.reading import LogRanges, LogToRead
from logtool.repair.saved import (
    KeptImage,
    KeptReject,
    Saved,
    SavedPartition,
    TornTransaction,
    saved,
)
from logtool.repair.sources import DamagedLog, sources, usable
from logtool.running.run import Run
from logtool.running.summary import ActionSummary
from logtool.running.workers import OutOfTimeError

Segments = list[tuple[int, Sequence[Kept]]]
_UNKNOWN_OFFSETS = frozenset({RejectReason.DAMAGE, RejectReason.UNREADABLE, RejectReason.MISSING})


@dataclass(slots=True)
class Salvage:
    """One run: iterate to get the saved partitions, rejects and other objects, with errors.

    A finding among them is an error, by the rules of `verify`, in what was saved.
    """

    paths: Sequence[Path]
    output: OutputDir
    fill_from: Sequence[Path] = ()
    """Log dirs or partition dirs of other copies; the first that helps is taken."""
    retry: Path | None = None
    """The output of an earlier run: bytes of logs that it has are not read from the disk again."""
    deleted: bool = False
    """True to save only segments that wait for their deletion."""
    selection: Selection = field(default_factory=Selection)
    flavour: Flavour | None = None
    """The value of ``--flavour``; None: each directory by its names."""
    run: Run = field(default_factory=Run)
    summary: ActionSummary = field(default_factory=ActionSummary)
    strays: list[Path] = field(default_factory=list)
    """Directories that are set aside as stray, which `deleted` does not save."""
    _complete: bool = True
    """True as long as nothing was left out because of an error."""

    def __iter__(self) -> Iterator[Saved | Finding | LogtoolError]:
        ended = False
        try:
            for item in self._saved():
                self._complete &= not isinstance(item, LogtoolError)
                yield item
            ended = True
        except UnwritableError as error:
            if not self.output.path.exists():
                raise
            text = f"{self.output.given} is incomplete; to replace it, run this command again"
            raise UnwritableError(error.path, error.reason, text) from error
        finally:
            self.output.close(ended=ended)

    def _saved(self) -> Iterator[Saved | Finding | LogtoolError]:
        found: list[DamagedLog] = []
        whole = []
        if not self.deleted:
            written_by = {path: opening.try_flavour(path, self.flavour) for path in self.paths}
            whole = [path for path in self.paths if written_by[path] is REDPANDA]
        paths = [path for path in self.paths if path not in whole]
        for one in sources(paths, self.selection, deleted=self.deleted, flavour=self.flavour):
            if isinstance(one, DamagedLog):
                # The metadata log of AutoMQ has records that Kafka does not know.
                if not (one.listed.is_metadata_log and one.listed.flavour is AUTOMQ):
                    found.append(one)
            else:
                yield one
        listings: list[Partition] = []
        for path in whole:
            for listed in redpanda.partitions(path, self.selection):
                if isinstance(listed, Partition):
                    listings.append(listed)
                else:
                    yield listed
        yield from not_there(self.fill_from, self.flavour)
        if self.retry and not files.has_dir(self.retry / "rejects"):
            yield UnreadableError(self.retry, "is not an output of salvage with rejects")
        size = sum(one.size for one in found)
        size += sum(piece.log.size for one in listings for piece in redpanda.pieces(one))
        homes = {one.listed.path.resolve().parent for one in found}
        homes = {home for home in homes if not files.is_remote(home)}
        homes |= {path.resolve() for path in GivenPaths(paths).places_of_buckets}
        homes |= {path.resolve() for path in whole}
        self.output.check([*homes, *(path.resolve() for path in self.fill_from)], size)
        self.run.bytes_total += size
        log_starts: dict[TopicPartition, int] = {}
        for source in found:
            try:
                yield from self._partition(source, log_starts)
            except (UnreadableError, RefusedError) as error:
                yield error
            except OutOfTimeError:
                break
        for listed in () if self.run.ran_out else listings:
            try:
                yield from self._redpanda(listed)
            except (UnreadableError, RefusedError) as error:
                yield error
            except OutOfTimeError:
                break
        self._complete &= not any(GivenPaths(paths).late_problems())
        if found or listings:
            self.output.finish(log_starts, complete=self._complete and not self.run.ran_out)
        if self.deleted:
            self._find_strays()

    def _find_strays(self) -> None:
        """Note the directories that are set aside as stray; `undelete` does not restore them."""
        for path in self.paths:
            with suppress(UnreadableError):
                entries = opening.open_log_dir(path, self.flavour).partitions
                self.strays += [
                    folder
                    for folder, directory in entries
                    if directory.kind is DirectoryKind.STRAY and self.selection.takes(directory)
                ]
        self.summary.to_do |= bool(self.strays)

    def _redpanda(self, listed: Partition) -> Iterator[Saved | Finding | LogtoolError]:
        """Save a partition of Redpanda in its own form."""
        self.run.path = listed.path
        name = redpanda.place_of(listed)
        found: list[Part] = []
        for item in self._found_of_redpanda(listed, name):
            if isinstance(item, LogtoolError | KeptImage):
                yield item
            else:
                found.append(item)
        parts = found
        replicas = redpanda.copies(listed, self.fill_from)
        if replicas:
            parts = []
            rows = redpanda.terms(listed)
            bases = [piece.base_offset for piece in redpanda.pieces(listed)]
            sure = list(bounded(list(with_gaps(found, listed.path))))
            for filled in filling.fill(listed, sure, replicas, rows, bases):
                if isinstance(filled, LogtoolError):
                    yield filled
                else:
                    parts.append(filled)
        target, rejected = self.output.place(name)
        self.output.redpanda(target, listed, parts)
        made = redpanda.saved_of(listed, parts, target)
        yield self._noted(made)
        place = listed.topic, listed.number
        for torn in transactions.torn(parts, self.output.images, listed.flavour):
            yield self._noted(TornTransaction(torn, *place))
        rejects = [part for part in parts if isinstance(part, Rejected)]
        for one in rejects:
            yield self.output.reject(rejected, KeptReject(one, *place))
        self._add(made, to_do=any(one.filled_from is None for one in rejects))
        yield from sound.faults(target, listed.flavour)

    def _noted(self, item: Saved) -> Saved:
        self.output.note(item)
        return item

    def _found_of_redpanda(
        self, listed: Partition, name: str
    ) -> Iterator[Part | KeptImage | LogtoolError]:
        """Yield the parts of all segments of a partition of Redpanda, in order."""
        pieces = []
        for piece in redpanda.pieces(listed):
            try:
                pieces.append(replace(piece, earlier=self._earlier(name, piece.log)))
            except UnreadableError as error:
                yield error
                pieces.append(piece)
        found: list[Part] = []
        with self.run.workers(reading.read, sum(piece.log.size for piece in pieces)) as workers:
            for read in workers.run(pieces, lambda piece: -piece.log.size):
                if isinstance(read, OutOfTimeError):
                    raise read
                if isinstance(read, UnreadableError):
                    yield read
                    found += (_unread(one, read) for one in pieces if one.log.path == read.path)
                    continue
                if read.bad or read.piece.earlier:
                    yield self._image(name, read.piece)
                found += read.found
        found += redpanda.missing(listed)
        found.sort(key=redpanda.base_of)
        yield from bounded(list(redpanda.ordered(found)))

    def _partition(
        self, source: DamagedLog, log_starts: dict[TopicPartition, int]
    ) -> Iterator[Saved | Finding | LogtoolError]:
        self.run.path = source.listed.path
        found: list[Part] = []
        for item in self._found(source):
            if isinstance(item, LogtoolError | KeptImage):
                yield item
            else:
                found.append(item)
        parts: list[Part] = []
        for item in self._filled(source, found):
            if isinstance(item, LogtoolError):
                yield item
            else:
                parts.append(item)
        logs = _segments(parts, source)
        extents = [part for part in parts if isinstance(part, Kept)]
        end = extents[-1].last.last_offset + 1 if extents else 0
        start = source.log_start if source.log_start <= end else 0
        target, rejected = self.output.place(source.name)
        loaded = self.output.partition(
            target,
            logs,
            _small_files(source, end),
            StartConditions(clean=False, log_start=start, now_ms=time.time_ns() // 1_000_000),
        )
        if logs and start > logs[0][0]:
            log_starts[source.key] = start
        rejects = [part for part in parts if isinstance(part, Rejected)]
        ends = loaded.log_start, loaded.log_end
        made = saved(source.key, (source.listed.path, target), parts, ends, loaded)
        again = _readable_again(source.epochs(), extents, loaded.log_start)
        yield self._noted(replace(made, readable_again=again))
        for torn in transactions.torn(parts, self.output.images):
            yield self._noted(TornTransaction(torn, *source.key))
        for one in rejects:
            yield self.output.reject(rejected, KeptReject(one, *source.key))
        self._count(made, rejects, loaded)
        if loaded.outcome is Outcome.LOADS:
            yield from sound.faults(target, KAFKA)

    def _found(self, source: DamagedLog) -> Iterator[Part | KeptImage | LogtoolError]:
        """Yield the parts of all segments, in order."""
        zombies = source.zombies()
        logs = [(base, file) for base, file in source.logs if base not in zombies]
        ends = [*(base for base, _ in logs[1:]), None]
        pieces = []
        for (base, file), end in zip(logs, ends, strict=bool(logs)):
            earlier = None
            try:
                earlier = self._earlier(source.name, file)
            except UnreadableError as error:
                yield error
            pieces.append(LogToRead(file, base, end, KAFKA, earlier))
        by_base: dict[int, list[Part]] = {}
        total = sum(piece.log.size for piece in pieces)
        with self.run.workers(reading.read, total) as workers:
            for read in workers.run(pieces, lambda piece: -piece.log.size):
                if isinstance(read, OutOfTimeError):
                    raise read
                if isinstance(read, LogRanges):
                    by_base[read.piece.base_offset] = list(read.found)
                    if read.bad or read.piece.earlier:
                        yield self._image(source.name, read.piece)
                else:
                    yield read
                    for piece in (one for one in pieces if one.log.path == read.path):
                        by_base[piece.base_offset] = [_unread(piece, read)]
        for base, file in source.logs:
            if base in zombies:
                zombie = zombies[base]
                one = Rejected(file.path, 0, file.size, RejectReason.ZOMBIE, zombie.reason, base)
                by_base[base] = [replace(one, last_offset=zombie.last_offset)]
        for base in source.lost_logs:
            text = "the log is missing, but one of its indexes is left"
            by_base.setdefault(base, []).append(missing(source.listed.path, base, text))
        if not by_base:
            by_base[0] = [missing(source.listed.path, 0, "no log is left in the directory")]
        found = [part for base in sorted(by_base) for part in by_base[base]]
        if not source.deleted:  # of a log that goes on only some segments wait for their deletion
            found = list(with_gaps(found, source.listed.path))
        yield from bounded(found, min(by_base))

    def _earlier(self, name: str, log: File) -> Image | None:
        """Return the image of a log from an earlier run."""
        if self.retry is None:
            return None
        return disk_image.find(self.retry / self.output.coming_rejects(name), log.path, log.size)

    def _image(self, name: str, piece: LogToRead) -> KeptImage:
        """Keep the readable bytes of a log that a failing disk gives only in part."""
        with reading.opened(piece) as given:
            return self.output.image(name, piece.log.path, given)

    def _filled(self, source: DamagedLog, found: list[Part]) -> Iterator[Part | LogtoolError]:
        if not self.fill_from:
            yield from found
            return
        epochs, home = source.epochs(), source.listed.path
        listed: list[Partition] = []
        refused: list[str] = []
        for one in usable(source.listed, source.name, self.fill_from):
            if isinstance(one, Partition):
                listed.append(one)
            elif isinstance(one, str):
                refused.append(one)
            else:
                yield one
        sure = list(header_tampering.without_altered(found, epochs, listed))
        sure = list(bounded(list(with_gaps(sure, home)), min(source.bases, default=0)))
        there = [one.path for one in listed]
        filled = filling.fill(source.listed, sure, there, epochs, source.bases) if there else sure
        for part in filled:
            if refused and isinstance(part, Rejected) and not part.filled_from:
                yield part.refused(refused) if part.kind in FILLABLE else part
            else:
                yield part

    def _count(self, made: SavedPartition, rejects: Sequence[Rejected], loaded: LoadResult) -> None:
        lost = any(one.filled_from is None for one in rejects)
        self._add(made, to_do=lost or loaded.outcome is not Outcome.LOADS)

    def _add(self, made: SavedPartition, *, to_do: bool) -> None:
        summary = self.summary
        summary.partitions += 1
        summary.segments += made.segments
        summary.batches += made.batches
        summary.records += made.records
        summary.bytes += made.bytes
        summary.to_do |= to_do


def _unread(piece: LogToRead, why: UnreadableError) -> Rejected:
    """Return the reject for a log that could not be read at all."""
    one = Rejected(piece.log.path, 0, piece.log.size, RejectReason.UNREADABLE, why.reason)
    return replace(one, is_given=False)


def bounded(found: list[Part], start: int | None = None) -> Iterator[Part]:
    """Yield the parts; rejects without offsets get the offsets that are missing there.

    `start` is the first offset of the log, if it is known.
    """
    before = None if start is None else start - 1
    for number, part in enumerate(found):
        if isinstance(part, Kept):
            before = part.last.last_offset
        elif part.kind in _UNKNOWN_OFFSETS:
            behind = next((p for p in found[number:] if isinstance(p, Kept)), None)
            first = None if before is None else before + 1
            last = None if behind is None else behind.first.start - 1
            if first is not None and last is not None and last < first:
                first = last = None
            part = replace(part, first_offset=first, last_offset=last)
        yield part


def not_there(
    fill_from: Sequence[Path], flavour: Flavour | None = None
) -> Iterator[UnreadableError]:
    """Yield errors for other copies that cannot be read: nothing is filled from them."""
    for path in fill_from:
        try:
            if kind_of(path, flavour, redpanda=True) is PathKind.FILE:
                yield UnreadableError(path, "is not a log dir and not a partition dir")
        except UnreadableError as error:
            yield error


def _segments(parts: Sequence[Part], source: DamagedLog) -> Segments:
    """Return the segments to be written: those of the log, and of another copy behind its end."""
    grouped: dict[int, list[Kept]] = {base: [] for base in source.bases}
    own = [part for part in parts if isinstance(part, Kept) and not part.filled]
    end = own[-1].last.last_offset if own else -1
    for part in parts:
        if not isinstance(part, Kept):
            continue
        first = part.first.base_offset
        theirs = int(part.path.name.partition(".")[0])
        at = bisect_right(sorted(grouped), first) - 1
        base = sorted(grouped)[at] if at >= 0 else theirs
        if part.filled and first > end and theirs > max(base, end):
            base = theirs
        grouped.setdefault(base, []).append(part)
    last = max(grouped, default=0)
    empty = {base for base, file in source.logs if not file.size}
    kept = (base for base in sorted(grouped) if grouped[base] or base in empty or base == last)
    return [(base, grouped[base]) for base in kept]


def _readable_again(
    rows: Sequence[tuple[int, int]], extents: Sequence[Kept], log_start: int
) -> int | None:
    """Return the offset up to which saved batches had been deleted; None if none had been.

    DeleteRecords raises the first row of leader-epoch-checkpoint, also behind the first batches of
    its epoch. The row of the log start is gone with a deleted partition, or after a kill.
    """
    if not rows or not extents:
        return None
    (epoch, begin), first = rows[0], extents[0].first
    has_epoch = 0 <= first.leader_epoch <= epoch
    is_inside = log_start < begin and first.start < begin <= extents[-1].last.last_offset + 1
    return begin if has_epoch and is_inside else None


def _small_files(source: DamagedLog, end: int) -> dict[str, bytes]:
    """Return the small files that are taken over."""
    rows = [(epoch, start) for epoch, start in source.epochs() if start < end]
    content = leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(rows))
    found = {FileKind.LEADER_EPOCH_CHECKPOINT.value: content}
    file = source.listed.fixed.get(FileKind.PARTITION_METADATA)
    with suppress(UnreadableError):
        if file and file.size:
            found[FileKind.PARTITION_METADATA.value] = files.read_small(file.path)
    return found
