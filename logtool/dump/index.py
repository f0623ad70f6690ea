"""`dump-index`: every index of the given paths, with the batch that each entry points at.

The log of a segment is read once for all of its indexes, and only if `join_log` is set.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.dump.files import Input, find_inputs, log_next_to
from logtool.dump.join import UNKNOWN, Join, make_join
from logtool.dump.records import Object
from logtool.dump.state import entry, problems
from logtool.dump.stream import file_object, read_content
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.flavour import Flavour
from logtool.log.selection import Selection
from logtool.running.run import Progress
from logtool.running.summary import Summary

_LOGS = (FileKind.LOG, FileKind.REDPANDA_SEGMENT)


@dataclass(slots=True)
class IndexDump:
    """Iterate to get the objects; `summary` is filled meanwhile."""

    paths: Sequence[Path]
    selection: Selection = field(default_factory=Selection)
    join_log: bool = False
    progress: Progress = field(default_factory=Progress)
    summary: Summary = field(default_factory=Summary)
    flavour: Flavour | None = None
    """The value of ``--flavour``; None: each directory by its names."""
    _groups: dict[Path, list[Input]] = field(default_factory=dict)
    """The indexes of each log."""
    _unreadable: list[UnreadableError] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find the indexes."""
        inputs, self._unreadable = find_inputs(self.paths, self.selection, flavour=self.flavour)
        for item in inputs:
            if item.name.kind in (*names.INDEX_KINDS, FileKind.REDPANDA_BASE_INDEX):
                self._groups.setdefault(log_next_to(item), []).append(item)
            elif item.path in self.paths and item.name.kind not in _LOGS:
                self._unreadable.append(UnreadableError(item.path, "is not an index"))
        is_empty = not inputs and self.selection != Selection()
        if not self._groups and not self._unreadable and not is_empty:
            self._unreadable = [UnreadableError(path, "holds no index") for path in self.paths]

    def __iter__(self) -> Iterator[Object | UnreadableError]:
        """Yield the objects of every index, and the inputs that cannot be read."""
        inputs = [item for group in self._groups.values() for item in group]
        self.summary.partitions = len({i.path.parent for i in inputs if i.topic is not None})
        self.progress.bytes_total = sum(item.size for item in inputs)
        if self.join_log:
            self.progress.bytes_total += sum(map(_size, self._groups))
        for item in self._all():
            if isinstance(item, UnreadableError):
                self.summary.add(item)
            elif item["type"] == "error":
                self.summary.severities[Severity.ERROR] += 1
            elif item.get("verdict") not in (None, "right", UNKNOWN):
                self.summary.severities[Severity.WARNING] += 1
            yield item

    def _all(self) -> Iterator[Object | UnreadableError]:
        yield from self._unreadable
        for log, group in self._groups.items():
            self.summary.segments += 1
            contents = {}
            for item in group:
                try:
                    contents[item.path] = files.read_small(item.path)
                except UnreadableError as error:
                    yield error
            joins: dict[Path, Join] = {}
            if self.join_log and contents:
                try:
                    joins = self._join(log, group, contents)
                except UnreadableError as error:
                    yield error
            for item in group:
                if item.path in contents:
                    yield from self._index(item, contents[item.path], joins.get(item.path))

    def _join(self, log: Path, group: list[Input], contents: dict[Path, bytes]) -> dict[Path, Join]:
        joins = {
            item.path: make_join(item.name.kind, contents[item.path], item.name.offset or 0)
            for item in group
            if item.path in contents
        }
        base_offset = group[0].name.offset or 0
        with LogFile(log) as file:
            form = group[0].flavour.form(log)
            for chunk in read_batches(file, base_offset=base_offset, form=form):
                for join in joins.values():
                    join.feed(chunk)
                self.summary.batches += len(chunk.table)
                damaged = chunk.damage.length if chunk.damage else 0
                self._advance(log, int(chunk.table.size.sum()) + damaged)
        for join in joins.values():
            join.finish()
        return joins

    def _redpanda(self, item: Input, data: bytes, join: Join | None) -> Iterator[Object]:
        from logtool.dump import redpanda  # only if a file of Redpanda is dumped

        content = redpanda.read_index(item.path, item.name, data)
        yield file_object(item, len(data), None) | {"entries": content.count}
        for obj in content.objects:
            yield obj if obj["type"] == "error" else obj | _joined(join, obj["entry"])
        self._advance(item.path, len(data))

    def _index(self, item: Input, data: bytes, join: Join | None) -> Iterator[Object]:
        if item.name.kind is FileKind.REDPANDA_BASE_INDEX:
            yield from self._redpanda(item, data, join)
            return
        content = read_content(item, data)
        yield file_object(item, len(data), content)
        for fields in content.entries:
            joined = _joined(join, fields["entry"])
            yield entry(item.path, item.name.kind, fields | joined)
        yield from problems(item.path, content.findings)
        self._advance(item.path, len(data))

    def _advance(self, path: Path, count: int) -> None:
        self.summary.bytes += count
        self.progress.advance(count, path)


def _joined(join: Join | None, number: int) -> Object:
    """Return batch and verdict of an entry from the comparison with the log."""
    return {
        "batch": join.batch(number) if join else None,
        "verdict": join.verdict(number) if join else None,
    }


def _size(log: Path) -> int:
    try:
        return files.size_at(log)
    except UnreadableError:
        return 0
