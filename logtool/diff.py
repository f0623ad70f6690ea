"""The same partitions on several brokers, from log dirs, partition dirs and digests.

One partition at a time is read, all its copies side by side, and some blocks of each are in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from logtool.copies import byte_difference, digest
from logtool.copies.absent_copies import AbsentCopy, LogDirCopies
from logtool.copies.byte_difference import CopyBytes
from logtool.copies.copy import Copy, CopyReading
from logtool.copies.copy_readers import Blocks, side_by_side
from logtool.copies.log_dirs import LogDirDifference, built_differences, differences
from logtool.copies.pair import CopyPair, Status
from logtool.copies.sources import ListedCopy, find
from logtool.copies.verdict import CopiesVerdict, DamageInCopy, LeaderCandidates, judge
from logtool.disk import files, shell
from logtool.errors import UnreadableError, UsageError
from logtool.formats.names import CLUSTER_METADATA, FileKind, TopicPartition
from logtool.loading import segment_twins
from logtool.loading.segment_twins import PlacedSegment
from logtool.log import inputs, opening
from logtool.log.flavour import Flavour
from logtool.log.inputs import NodeDir, PathKind
from logtool.log.selection import Selection
from logtool.metadata import image
from logtool.metadata.log_start import is_tiered
from logtool.metadata.state import MetadataImage
from logtool.node import dir_copies
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError

Compared = CopiesVerdict | AbsentCopy | LogDirDifference


class Diff:
    """One run: iterate for a verdict on each partition, and for what cannot be read.

    With `save` there is one source, and what is scanned of it is saved there. With `whole`,
    indexes and producer snapshots of copies with the same batches are compared too, and log dirs
    apart from their partitions, each with the first.
    """

    def __init__(
        self,
        sources: Sequence[NodeDir],
        *,
        selection: Selection | None = None,
        run: Run | None = None,
        save: Path | None = None,
        whole: bool = False,
        flavour: Flavour | None = None,
    ) -> None:
        if save and len(sources) != 1:
            raise UsageError("--digest saves the scan of one DIR; give only one DIR")
        if not save and len(sources) == 1 and not _is_file(sources[0].path):
            raise UsageError("give at least two DIRs to compare, or one with --digest")
        self._sources, self._flavour = sources, flavour
        self._selection = selection or Selection()
        self._run = run or Run()
        self._save, self._whole = save, whole
        self.whole_log_dirs = 0
        """Log dirs that were compared as a whole."""
        self.without_indexes = 0
        """Copies in digests, which contain no indexes to compare."""
        if save:
            digest.check_place(save)
        self._log_dirs = LogDirCopies([])
        self._by_path: frozenset[str] = frozenset()
        """Paths of the copies in log dirs that have the same node, because one is a copy."""
        self._images: list[MetadataImage] = []
        self._places: list[PlacedSegment] = []
        """Every segment of the copies that are directories."""

    @property
    def saves(self) -> bool:
        """Return whether what is scanned is saved, and nothing compared."""
        return self._save is not None

    def __iter__(self) -> Iterator[Compared | UnreadableError]:
        copies: list[ListedCopy] = []
        for source in self._sources:
            try:
                for one in find(source.path, source.node, self._selection, flavour=self._flavour):
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
        self._places = [
            place
            for one in copies
            if one.listed and one.listed.flavour.has_checkpoints
            for place in segment_twins.places_of(one.key, one.listed)
        ]
        groups = _grouped(copies)
        if not self._save:
            yield from self._copies_of_log_dirs(copies)
            yield from self._all(groups, None)
            if self._whole and not self._run.ran_out:
                yield from self._of_log_dirs()
            return
        try:
            with digest.DigestWriter(self._save, self._sources[0].path) as writer:
                yield from self._all(groups, writer)
                if self._run.ran_out:
                    raise OutOfTimeError  # what is not whole must not be taken for it
        except OutOfTimeError:
            return

    def _copies_of_log_dirs(self, copies: Sequence[ListedCopy]) -> Iterator[AbsentCopy]:
        """Yield the partitions that only one of several copies of a log dir has.

        A node id from the command line names a copy, even if another one has the same files.
        """
        nodes = {source.path: source.node for source in self._sources}
        log_dirs = [one for one in map(dir_copies.identity_of, nodes) if one]
        self._log_dirs = LogDirCopies(log_dirs)
        named = {path for path in self._log_dirs.paths if nodes[path] is None}
        self._by_path = frozenset(str(one.path) for one in copies if one.path.parent in named)
        there: dict[Path, dict[TopicPartition, Path]] = {}
        for one in copies:
            there.setdefault(one.path.parent, {})[one.key] = one.path
        yield from self._log_dirs.absent(there)

    def _all(
        self, groups: Sequence[Sequence[ListedCopy]], writer: digest.DigestWriter | None
    ) -> Iterator[Compared | UnreadableError]:
        def judged(
            _: Sequence[ListedCopy], readings: Sequence[CopyReading], blocks: Blocks
        ) -> CopiesVerdict:
            if not writer:
                return judge(readings, blocks, self._by_path)
            saved = [writer.copy() for _ in blocks]
            kept = [one.keeping(some) for one, some in zip(saved, blocks, strict=True)]
            verdict = judge(readings, kept)
            for copy, one in zip(verdict.copies, saved, strict=True):
                writer.add(copy, one)
            return verdict

        try:
            for group in groups:
                verdict = yield from side_by_side(group, self._run, judged)
                if verdict:
                    standing = _standing(verdict.copies[0], self._images)
                    later = frozenset(self._may_begin_later(group))
                    verdict = replace(
                        verdict,
                        standing=standing,
                        may_begin_later=later,
                        is_new_topic=self._log_dirs.has_new_topic(verdict.copies),
                    )
                    if not self._save and verdict.wounds:
                        verdict = self._with_bytes(verdict, group)
                    if not self._save and verdict.diverges_at is not None:
                        verdict = self._with_cause(verdict)
                    yield _with_plans(verdict)
                    if self._whole and verdict.status in (Status.SAME, Status.DAMAGED):
                        yield from self._of_indexes(group)
        except OutOfTimeError:
            return

    def _with_cause(self, verdict: CopiesVerdict) -> CopiesVerdict:
        """Return the verdict on copies that diverge, with their segments of other partitions."""
        labels = {copy.path: copy.label for copy in verdict.copies}
        key = verdict.copies[0].topic, verdict.copies[0].partition
        foreign = tuple(
            f"segment {one.wrong.segment.base_offset} of "
            f"{labels.get(str(one.wrong.partition.path), one.wrong.partition.path)} is that of "
            f"{one.right.partition.path}"
            for one in segment_twins.twins(self._places, key)
        )
        paths = [source.path for source in self._sources]
        is_here = bool(self._places) and not any(map(files.is_remote, paths))
        if not is_here or any(map(_is_file, paths)):
            return replace(verdict, foreign=foreign)
        words = [
            shell.path(one.path) if one.node is None else f"{one.node}={shell.path(one.path)}"
            for one in self._sources
        ]
        topic = shell.option("--topic", key[0])
        command = (
            "watermark" if any(_is_partition_dir(path) for path in paths) else f"cluster {topic}"
        )
        if foreign or any(map(_is_in_one_epoch, verdict.pairs)):
            command = "verify --wrong-topic"
        elif self._by_path.intersection(copy.path for copy in verdict.copies):
            return verdict
        return replace(
            verdict, foreign=foreign, next_command=f"logtool {command} {' '.join(words)}"
        )

    def _with_bytes(self, verdict: CopiesVerdict, group: Sequence[ListedCopy]) -> CopiesVerdict:
        """Return the verdict with what a comparison of damaged bytes shows.

        A digest has no bytes. What cannot be read is reported where its copy is read.
        """
        known = {
            str(copy.path): CopyBytes(copy.segments, self._run.budget.pace.spend)
            for copy in group
            if copy.listed
        }
        wounds = tuple(_with_difference(wound, known) for wound in verdict.wounds)
        damages = verdict.copies[0].damages
        same = len(verdict.copies) > 1 and all(
            copy.path in known and _places(copy) == _places(verdict.copies[0])
            for copy in verdict.copies
        )
        if same:
            try:
                readers = [known[copy.path] for copy in verdict.copies]
                same = byte_difference.has_same(damages, readers)
            except UnreadableError:
                same = False
        return replace(verdict, wounds=wounds, same_damage=same)

    def _of_indexes(
        self, group: Sequence[ListedCopy]
    ) -> Iterator[LogDirDifference | UnreadableError]:
        """Yield the differences of the indexes and producer snapshots of copies of a partition."""
        found = [copy.listed for copy in group if copy.listed]
        self.without_indexes += len(group) - len(found)
        for other in found[1:]:
            yield from built_differences(found[0], other, self._spend)

    def _of_log_dirs(self) -> Iterator[LogDirDifference | UnreadableError]:
        """Yield the differences between log dirs of Kafka apart from the batches."""
        found = []
        for source in self._sources:
            with suppress(UnreadableError):  # reported where its copies were listed
                if inputs.kind_of(source.path, self._flavour, redpanda=True) is PathKind.LOG_DIR:
                    root = opening.open_log_dir(source.path, self._flavour)
                    found += [root] if root.flavour.has_checkpoints else []
        self.whole_log_dirs = len(found) if len(found) > 1 else 0
        try:
            for other in found[1:]:
                yield from differences(found[0], other, self._selection, self._spend)
        except OutOfTimeError:
            return

    def _spend(self, path: Path, size: int) -> None:
        self._run.advance(size, path)
        self._run.budget.pace.spend(size)

    def _may_begin_later(self, copies: Sequence[ListedCopy]) -> Iterator[str]:
        """Yield the paths of copies that begin later by their row of the log start, or tiering.

        A metadata log begins at one of its snapshots.
        """
        for copy in copies:
            row = copy.rows.get(FileKind.LOG_START_CHECKPOINT, 0)
            begins_by_row = row > 0 and all(row >= one.base_offset for one in copy.segments[:1])
            is_explained = begins_by_row or copy.key[0] == CLUSTER_METADATA
            if is_explained or any(is_tiered(known, copy.key[0]) for known in self._images):
                yield str(copy.path)


def _places(copy: Copy) -> list[tuple[int, int, int]]:
    """Return the segment, the first byte and the size of each range without a sound batch."""
    return [(one.segment, one.position, one.length) for one in copy.damages]


def _with_difference(wound: DamageInCopy, known: Mapping[str, CopyBytes]) -> DamageInCopy:
    """Return damage with the first byte that differs from its sound batch, if that is known."""
    if wound.sound is None:
        return wound
    copy, batch = wound.sound
    own, other = known.get(wound.copy.path), known.get(copy.path)
    if not own or not other:
        return wound
    with suppress(UnreadableError):
        found = byte_difference.difference(wound.damage, own, batch, other)
        return replace(wound, difference=found)
    return wound


def _with_plans(verdict: CopiesVerdict) -> CopiesVerdict:
    """Return the verdict with the commands that repair copies, and with what these leave unfilled.

    A command is proposed only if `recover`, planned on the same copies, fills a range with it.
    """
    paths = {copy.label: Path(copy.path) for copy in verdict.copies}
    hurt: dict[str, dict[Path, None]] = {}
    for wound in verdict.wounds:
        for label in (*wound.filled_by, *wound.partly_by):
            hurt.setdefault(wound.copy.label, {}).setdefault(paths[label])
    for pair in verdict.pairs:
        sides = (pair.left, pair.right, pair.left_lacks), (pair.right, pair.left, pair.right_lacks)
        for copy, other, lacks in sides if pair.diverges_at is None and pair.comparable else ():
            if lacks.missing or (copy.real_damages and not other.real_damages):
                hurt.setdefault(copy.label, {}).setdefault(paths[other.label])
    fixes: list[str] = []
    unfilled: dict[str, int] = {}
    for label, others in hurt.items():
        from logtool.startup.fill_plan import plan_fill

        plan = plan_fill(paths[label], list(others))
        if plan is None:
            continue
        fixes += [plan.command] if plan.command else []
        copy = next(one for one in verdict.copies if one.label == label)
        tails = {(one.segment, one.position) for one in copy.damages if one.tail}
        unfilled[label] = len(set(plan.unfilled) - tails)
    return replace(verdict, fixes=tuple(fixes), planned=unfilled)


def _images(path: Path) -> list[MetadataImage]:
    """Return the metadata image of a log dir; nothing if it has none, or is remote.

    Errors in its metadata log are reported where its copies are compared.
    """
    with suppress(UnreadableError):
        if not files.is_remote(path) and files.has_dir(path / image.DIRECTORY):
            return [image.read(path)]
    return []


def _is_in_one_epoch(pair: CopyPair) -> bool:
    """Return whether copies diverge in batches of one leader epoch, which no election explains."""
    epochs = {one.leader_epoch for one in (pair.left_batch, pair.right_batch) if one}
    return pair.diverges_at is not None and len(epochs) == 1


def _is_partition_dir(path: Path) -> bool:
    """Return whether a source is a partition dir."""
    return inputs.kind_of(path, redpanda=True) is PathKind.PARTITION_DIR


def _is_file(path: Path) -> bool:
    """Return whether a source is a digest, which may be looked at alone."""
    return not files.is_remote(path) and path.is_file()


def _standing(copy: Copy, newest_first: Sequence[MetadataImage]) -> LeaderCandidates | None:
    """Return who may lead, by the newest image that has the partition."""
    for known in newest_first:
        topic_id = known.topics.get(copy.topic, "")
        state = known.partitions.get(topic_id, {}).get(copy.partition)
        if state and copy.topic_id in (None, topic_id):
            return LeaderCandidates(tuple(state.isr), tuple(state.elr))
    return None


def _grouped(copies: Sequence[ListedCopy]) -> list[list[ListedCopy]]:
    """Return the copies of each partition.

    If only partition dirs were given, they are copies of one partition, even with different names.
    """
    if copies and all(copy.given for copy in copies):
        return [[replace(copy, key=copies[0].key) for copy in copies]]
    groups: dict[TopicPartition, list[ListedCopy]] = {}
    for copy in copies:
        groups.setdefault(copy.key, []).append(copy)
    return [groups[key] for key in sorted(groups)]
