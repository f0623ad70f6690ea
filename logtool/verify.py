"""Everything that can be checked about the given paths: a stream of findings and a summary."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from logtool import data_dir, partition
from logtool.checks import inventory, root, small_files
from logtool.checks.partition import Item, PartitionFacts, Request, check_partition
from logtool.checks.segment import Level
from logtool.checks.single_file import Neighbours, check_single_file
from logtool.data_dir import DataDir, PathKind, Selection
from logtool.errors import UnreadableError
from logtool.files import LogFile
from logtool.findings import Finding
from logtool.formats import compression
from logtool.formats.meta_properties import MetaProperties
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory
from logtool.formats.offset_checkpoint import Row
from logtool.summary import Summary

__all__ = ["Level", "Progress", "Selection", "Verification"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a verification is."""

    bytes_done: int
    bytes_total: int
    """Bytes of log known so far; grows with each log dir that is listed."""
    path: Path
    """What is being read."""


class Verification:
    """One run of `verify`: iterate over it for the findings, then read `summary`.

    Inputs that cannot be read come as `UnreadableError` among the findings, and everything else is
    still checked. Paths are checked in the order given.
    """

    def __init__(
        self, paths: Sequence[Path], *, level: Level = Level.BATCHES,
        selection: Selection | None = None, limit: int = compression.DEFAULT_LIMIT,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:  # fmt: skip
        self._paths = paths
        self._level = level
        self._limit = limit
        self._selection = selection or Selection()
        self._on_progress = on_progress
        self._bytes_done = self._bytes_total = 0
        self._metas: list[tuple[DataDir, MetaProperties]] = []
        self._homes: dict[tuple[str | None, str, int], Path] = {}
        self._neighbours: Neighbours = {}
        self.summary = Summary()

    def __iter__(self) -> Iterator[Item]:
        for item in self._all():
            self.summary.add(item)
            yield item

    def _all(self) -> Iterator[Item]:
        for path in _each_once(self._paths):
            try:
                kind = data_dir.classify(path)
                if kind is PathKind.LOG_DIR:
                    yield from self._log_dir(data_dir.read(path))
                elif kind is PathKind.PARTITION_DIR:
                    request = Request(self._level, limit=self._limit)
                    yield from self._partition(path, request, PartitionFacts())
                else:
                    yield from self._file(path)
            except UnreadableError as error:
                yield error
        yield from root.check_ensemble(self._metas)

    def _file(self, path: Path) -> Iterator[Item]:
        facts = PartitionFacts()
        with LogFile(path) as file:
            self._bytes_total += file.size
        yield from check_single_file(
            path, self._level, self._limit, facts, self._neighbours, self._tick(path)
        )
        self._add(facts, partitions=0)

    def _log_dir(self, home: DataDir) -> Iterator[Item]:
        yield from root.check_in_use(home)
        yield from inventory.check_root_names(home)
        checkpoints: dict[FileKind, dict[root.Key, Row]] = {}
        node: str | None = None
        for kind, file in home.files.items():
            if kind not in small_files.CHECKABLE:
                continue
            try:
                value, found = small_files.check_file(file)
            except UnreadableError as error:
                yield error
                continue
            yield from found
            if kind in data_dir.OFFSET_CHECKPOINTS:
                checkpoints[kind] = root.by_key(value)
            elif kind is FileKind.META_PROPERTIES:
                self._metas.append((home, value))
                node = root.node_of(value)
        yield from root.check_rows(home, checkpoints)
        yield from self._duplicates(home, node)
        yield from self._partitions(home, checkpoints)

    def _partitions(self, home: DataDir, checkpoints: root.Checkpoints) -> Iterator[Item]:
        facts: dict[PartitionDirectory, PartitionFacts] = {}
        chosen = [(p, d) for p, d in home.partitions if self._selection.takes(d)]
        for path, directory in chosen:
            facts[directory] = one = PartitionFacts()
            key = root.key_of(directory) if directory.kind is DirectoryKind.LIVE else None
            start = checkpoints.get(FileKind.LOG_START_CHECKPOINT, {}).get(key) if key else None
            request = Request(self._level, home.is_clean, start.offset if start else 0, self._limit)
            try:
                yield from self._partition(path, request, one)
            except UnreadableError as error:
                yield error
                continue
            if key:
                yield from root.check_partition_offsets(home, key, one, checkpoints)
                yield from root.check_missing_rows(home, key, one, checkpoints)
        yield from root.check_topic_ids(home, facts)
        yield from root.check_marker(home, list(facts.values()))

    def _duplicates(self, home: DataDir, node: str | None) -> Iterator[Finding]:
        """Yield partitions that another log dir of the same broker holds too."""
        for path, directory in home.partitions:
            if directory.kind is not DirectoryKind.LIVE or not self._selection.takes(directory):
                continue
            key = node, directory.topic, directory.partition
            other = self._homes.setdefault(key, path)
            if other.parent != path.parent:
                yield Finding("data-dir/duplicate-partition", f"is also in {other.parent}",
                              path=path, topic=key[1], partition=key[2])  # fmt: skip

    def _partition(self, path: Path, request: Request, facts: PartitionFacts) -> Iterator[Item]:
        found = partition.read(path)
        self._bytes_total += sum(segment.log.size for segment in found.segments)
        yield from check_partition(found, request, facts, self._tick(path))
        self._add(facts)

    def _add(self, facts: PartitionFacts, partitions: int = 1) -> None:
        summary = self.summary
        summary.partitions += partitions
        summary.segments += facts.segments
        summary.batches += facts.batches
        summary.records += facts.records
        summary.bytes += facts.bytes

    def _tick(self, path: Path) -> Callable[[int], None]:
        def on_bytes(count: int) -> None:
            self._bytes_done += count
            if self._on_progress:
                self._on_progress(Progress(self._bytes_done, self._bytes_total, path))

        return on_bytes


def _each_once(paths: Sequence[Path]) -> list[Path]:
    """Return the paths without those that lead to the same place as one before."""
    return list({os.path.realpath(path): path for path in reversed(paths)}.values())[::-1]
