"""One partition: from the findings of `verify` to the actions that repair its indexes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from logtool.actions import Action
from logtool.checks import compaction
from logtool.checks import partition as partition_checks
from logtool.checks.partition import CheckRequest
from logtool.checks.report import PartitionSummary, SegmentReport, SegmentTask
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.rebuild import building, producer_states, targets
from logtool.rebuild.building import IMPOSSIBLE, Built, IndexesToBuild
from logtool.rebuild.producer_states import Producers
from logtool.rebuild.scope import PartitionSettings
from logtool.rebuild.targets import FileChoice, FileKey, PartitionFindings

DAMAGED = "damaged"
"""Action that is reported for a log whose indexes cannot be built before it is recovered."""
_SNAPSHOT = FileKind.PRODUCER_SNAPSHOT

Build = Callable[[Sequence[IndexesToBuild]], Iterator[Built]]


@dataclass(slots=True)
class PartitionToRebuild:
    """A partition to be checked, and the facts that were found."""

    partition: Partition
    settings: PartitionSettings
    wanted: FileChoice
    only: frozenset[FileKey] | None
    cleaner_rows: compaction.CleanerRows = field(default_factory=dict)
    """Rows that were read before, which partitions of one run share."""
    facts: PartitionSummary = field(default_factory=PartitionSummary)
    _more: dict[int, int] = field(default_factory=dict)
    """Offsets at which more producer snapshots are wanted, each with the base of its segment."""

    @property
    def request(self) -> CheckRequest:
        """Return the request to `verify`."""
        clean = self.settings.clean
        cleaning = compaction.next_to(self.partition.path, clean=clean, read=self.cleaner_rows)
        return CheckRequest(
            clean=clean, log_start_offset=self.settings.log_start, cleaning=cleaning
        )

    def tasks(self) -> list[SegmentTask]:
        """Return a task for each segment to be checked."""
        tasks = partition_checks.plan(self.partition, self.request)
        every = self.wanted.snapshot_every
        if every is None:
            return tasks
        self._more = targets.frequent_offsets(self.partition, every)
        return [self._cut(task) for task in tasks]

    def _cut(self, task: SegmentTask) -> SegmentTask:
        """Return a task that also gives the producers at the additional snapshots."""
        base = task.segment.base_offset
        inside = {offset for offset, its in self._more.items() if its == base and offset > base}
        return replace(task, cuts=tuple(sorted(inside.union(task.cuts))))

    def actions(
        self, reports: Sequence[SegmentReport], build: Build
    ) -> Iterator[Action | UnreadableError]:
        """Yield the actions, also for files that cannot be built; `build` builds indexes."""
        partition = self.partition
        items = partition_checks.check_partition(partition, self.request, self.facts, reports)
        judged = targets.sort_findings(items, clean=self.settings.clean)
        needed = targets.needed_snapshots(
            [segment.base_offset for segment in partition.segments],
            clean=self.settings.clean,
            log_start=self.settings.log_start,
            log_end=self.facts.log_end_offset,
        )
        chosen = targets.select(partition, judged, self.wanted, self.only, needed)
        chosen = self._with_frequent(judged, chosen)
        yield from self._hindrances(judged)
        producers = self._producers(reports, judged, chosen)
        for built in build(list(self._pieces(judged, chosen, producers))):
            yield from map(self._placed, building.index_actions(built))
        span = self._span(reports)
        for key, why in chosen.items():
            if key[0] is _SNAPSHOT:
                before = producers.get(key[1])
                for action in building.snapshot_actions(
                    partition, key, why, before, span, bad=key in judged.bad
                ):
                    yield self._placed(action)

    def _with_frequent(
        self, judged: PartitionFindings, chosen: dict[FileKey, str]
    ) -> dict[FileKey, str]:
        """Return the files to be built, with the additional snapshots that no broker takes."""
        there = {file.name.offset for file in self.partition.snapshots}
        bases = [segment.base_offset for segment in self.partition.segments[:1]]
        start = max([self.settings.log_start, *bases])
        more = targets.frequent_snapshots(judged, chosen, self._more)
        extra = {
            key: why
            for key, why in more.items()
            if key[1] not in there and key[1] > start and self.wanted.takes(key, self.only)
        }
        return {**extra, **chosen}

    def _hindrances(self, judged: PartitionFindings) -> Iterator[Action | UnreadableError]:
        """Yield errors for files that cannot be read, and actions for damage and orphan indexes."""
        for key, error in judged.unread.items():
            if key[0] is FileKind.LOG or self.wanted.takes(key, self.only):
                yield error
        for base, finding in judged.damage.items():
            command = f"logtool recover {shell.path(self.partition.path)}"
            text = (
                f"{finding.message}; this command does not change the log; to repair it, run: "
                f"{command}"
            )
            log = self.partition.path / names.format_partition_file(base, FileKind.LOG)
            yield self._placed(
                Action(
                    action=DAMAGED,
                    path=log,
                    reason=text,
                    position=finding.position,
                    length=finding.length,
                )
            )
        for key, path in judged.orphans.items():
            if self.wanted.takes(key, self.only):
                yield self._placed(
                    Action(
                        action=IMPOSSIBLE, path=path, reason="there is no log with that base offset"
                    )
                )

    def _producers(
        self,
        reports: Sequence[SegmentReport],
        judged: PartitionFindings,
        chosen: dict[FileKey, str],
    ) -> dict[int, Producers]:
        """Return the producers before each segment and each snapshot, if they are known."""
        bad = [offset for kind, offset in (*judged.bad, *judged.unread) if kind is _SNAPSHOT]
        sound = producer_states.read_sound(self.partition.snapshots, bad, self.settings.log_start)
        return producer_states.at(self.partition, reports, sound, {offset for _, offset in chosen})

    def _pieces(
        self, judged: PartitionFindings, chosen: dict[FileKey, str], producers: dict[int, Producers]
    ) -> Iterator[IndexesToBuild]:
        for segment in self.partition.segments:
            base = segment.base_offset
            reasons = {k: chosen[k, base] for k in names.INDEX_KINDS if (k, base) in chosen}
            if reasons and (FileKind.LOG, base) not in judged.unread:
                yield IndexesToBuild(
                    segment=segment,
                    reasons=reasons,
                    producers=producers.get(base),
                    index_interval=self.settings.index_interval,
                    max_index_size=self.settings.max_index_size,
                )

    def _span(self, reports: Sequence[SegmentReport]) -> range:
        """Return the offsets at which a broker may have a producer snapshot."""
        if not reports:
            return range(0)
        last = self.partition.segments[-1]
        start = max(self.settings.log_start, self.partition.segments[0].base_offset)
        end = last.next_base_offset
        if end is None:
            # What was not read may reach anywhere.
            end = reports[-1].next_offset if reports[-1].scanned else 2**63 - 2
        return range(start + 1, end + 1)

    def _placed(self, action: Action | UnreadableError) -> Action | UnreadableError:
        if isinstance(action, UnreadableError):
            return action
        offset = names.parse_partition_file(action.path.name).offset
        is_segment = action.path.suffix != _SNAPSHOT
        return replace(
            action,
            topic=self.partition.topic,
            partition=self.partition.number,
            segment=offset if is_segment else None,
        )
