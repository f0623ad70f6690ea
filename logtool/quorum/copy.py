"""One copy of the metadata log: its end, its voters, and the files next to it."""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from logtool.copies.batches import CopyBatches, DamagedRange
from logtool.copies.copy import WholeCopy
from logtool.copies.copy_readers import read_groups
from logtool.copies.sources import ListedCopy, find
from logtool.disk import files, shell
from logtool.disk.files import LogFile
from logtool.errors import FormatError, NothingMatchedError, UnreadableError
from logtool.formats import control_record, names, wording
from logtool.formats.meta_properties import MetaProperties
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.formats.quorum_state import QuorumState
from logtool.formats.record_batch import CONTROL
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening, small_files
from logtool.log.batches import read_batches
from logtool.log.claims import Presence, unmet
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.inputs import NodeDir, PathKind
from logtool.log.partition_claims import end_claims
from logtool.log.records import one_batch
from logtool.log.selection import Selection
from logtool.metadata import image as metadata_image
from logtool.metadata.image import DIRECTORY, MetadataImage
from logtool.quorum import voters
from logtool.quorum.voters import Voter
from logtool.running.run import Run


@dataclass(frozen=True, slots=True)
class KRaftSnapshot:
    """A KRaft snapshot: its end, and its voters."""

    path: Path
    end_offset: int
    epoch: int
    damage: str | None
    """Why no controller starts from it; None if it is whole."""
    voters: tuple[Voter, ...] | None
    kraft_version: int | None


@dataclass(frozen=True, eq=False)
class MetadataCopy:
    """The copy of the metadata log in one directory."""

    path: Path
    """Path of ``__cluster_metadata-0``."""
    listed: Partition
    batches: WholeCopy
    """Batches of the whole log, with damage and the batches behind it."""
    meta: MetaProperties | None
    """``meta.properties`` next to the log; None if there is no such file."""
    state: QuorumState | None
    snapshots: tuple[KRaftSnapshot, ...]
    """Snapshots with a name that Kafka writes, by epoch and end offset."""
    problems: tuple[str, ...] = field(default=())
    """Faults in the log or in the files next to it that no controller could read, a line each."""
    changes: tuple[tuple[int, int, Any], ...] = ()
    """(offset of the batch, control type, message) of the records about voters."""
    missing: tuple[tuple[int, int], ...] = ()
    """First and last offset of each range that the log lacks and that no snapshot covers."""

    @property
    def node(self) -> int | None:
        """Return the id of the node that has the copy; None if it is not known."""
        return self.batches.node

    @property
    def argument(self) -> str:
        """Return the copy as an argument of a command, with its node id if no file has the id."""
        named = self.meta is None and self.node is not None
        return shell.quote(f"{self.node}={self.path}") if named else shell.path(self.path)

    @property
    def directory_id(self) -> str | None:
        """Return the id of its log dir; None if it is not known."""
        return self.meta.directory_id if self.meta else None

    @property
    def cluster_id(self) -> str | None:
        """Return the id of its cluster; None if it is not known."""
        return self.meta.cluster_id if self.meta else None

    @property
    def label(self) -> str:
        """Return the name of the copy in the output."""
        return self.batches.label or (str(self.path) if self.node is None else str(self.node))

    @cached_property
    def usable(self) -> CopyBatches:
        """Return the batches before the first damage: a controller cuts off all that follows it."""
        table = self.batches.batches
        starts = [(one.segment, one.position) for one in self.batches.damages]
        if not starts:
            return table
        segment, position = min(starts)
        before = (table.segment < segment) | (
            (table.segment == segment) & (table.position < position)
        )
        return table[before]

    @property
    def unfinished_position(self) -> int | None:
        """Return the position of an unfinished append in the last file, which a start cuts off."""
        return self._unfinished.position if self._unfinished else None

    @property
    def unfinished_bytes(self) -> int | None:
        """Return the length of this append in bytes; None without one."""
        return self._unfinished.length if self._unfinished else None

    @property
    def _unfinished(self) -> DamagedRange | None:
        return next((one for one in self.batches.damages if one.tail), None)

    @property
    def is_whole(self) -> bool:
        """Return whether no controller needs another copy to start: no range of it is missing."""
        return not self.missing

    @property
    def newest(self) -> KRaftSnapshot | None:
        """Return the newest snapshot that is whole; None without one."""
        return next((one for one in reversed(self.snapshots) if not one.damage), None)

    @property
    def _log_end(self) -> tuple[int, int]:
        """Return last epoch and end offset of the log, without its snapshots."""
        table = self.usable
        if len(table):
            return int(table.leader_epoch[-1]), int(table.last_offset[-1]) + 1
        newest = self.newest
        if newest and newest.end_offset == self.batches.log_start:
            return newest.epoch, newest.end_offset
        return 0, self.batches.log_start

    @property
    def position(self) -> tuple[int, int]:
        """Return last epoch and log end: Raft compares these of two candidates, in this order.

        A snapshot that is ahead of the log replaces it (``KafkaRaftLog``).
        """
        newest = self.newest
        return max(self._log_end, (newest.epoch, newest.end_offset)) if newest else self._log_end

    @property
    def log_end(self) -> int:
        """Return the offset behind the last record that a controller would have."""
        return self.position[1]

    @property
    def last_epoch(self) -> int:
        """Return the leader epoch of the last batch."""
        return self.position[0]

    @property
    def highest_epoch(self) -> int:
        """Return the highest leader epoch in the copy, that of an election included."""
        elected = self.state.leader_epoch if self.state else None
        return max(self.last_epoch, -1 if elected is None else elected)

    @cached_property
    def voted(self) -> "tuple[tuple[Voter, ...] | None, str | None, int | None]":
        """Return the voters, their source, and the offset; None if no file has voters."""
        snapshot, found = self.newest, None
        if snapshot and snapshot.voters is not None:
            found = snapshot.voters, "snapshot", snapshot.end_offset
        for at, kind, message in self._later(snapshot):
            if kind == control_record.KRAFT_VOTERS:
                found = voters.of_record(message), "log", at
        if found:
            return found
        if self.state and self.state.current_voters is not None:
            return tuple(map(Voter, sorted(self.state.current_voters))), "quorum-state", None
        return None, None, None

    @cached_property
    def kraft_version(self) -> int:
        """Return ``kraft.version``: 0 if it is not written, as in Kafka."""
        snapshot = self.newest
        found = (snapshot.kraft_version if snapshot else None) or 0
        for _, kind, message in self._later(snapshot):
            if kind == control_record.KRAFT_VERSION:
                found = message["kRaftVersion"]
        return found

    def _later(self, snapshot: KRaftSnapshot | None) -> Iterator[tuple[int, int, Any]]:
        end = min(self.log_end, int(self.usable.last_offset[-1]) + 1 if len(self.usable) else 0)
        start = snapshot.end_offset if snapshot else 0
        return (one for one in self.changes if start <= one[0] < end)

    @cached_property
    def image(self) -> MetadataImage:
        """Return the image of this copy; UnreadableError if it cannot be read."""
        return metadata_image.read(self.path)

    @property
    def role(self) -> str | None:
        """Return the role that its node has by this copy; None if no voters are known."""
        known = self.voted[0]
        if known is None or self.node is None:
            return None
        dynamic = {voter.key for voter in known}
        static = {voter.node for voter in known if voter.directory_id is None}
        votes = self.node in static or (self.node, self.directory_id) in dynamic
        return "voter" if votes else "observer"

    @property
    def voters(self) -> tuple[Voter, ...] | None:
        """Return the voters by this copy; None if no file has voters."""
        return self.voted[0]

    @property
    def voters_from(self) -> str | None:
        """Return the source of its voters; None if no file has voters."""
        return self.voted[1]

    @property
    def voters_offset(self) -> int | None:
        """Return the offset of the control record, or the end offset of the snapshot."""
        return self.voted[2]

    @property
    def usable_batches(self) -> int:
        """Return how many batches there are before the first damage."""
        return len(self.usable)

    @property
    def usable_records(self) -> int:
        """Return how many records these usable batches have."""
        return int(self.usable.record_count.sum())

    @property
    def snapshot_ends(self) -> tuple[tuple[int, int], ...]:
        """Return end offset and epoch of each snapshot."""
        return tuple((one.end_offset, one.epoch) for one in self.snapshots)

    @property
    def leader(self) -> int | None:
        """Return the leader by ``quorum-state``; -1 for no leader, None without the file."""
        return self.state.leader_id if self.state else None

    @property
    def leader_epoch(self) -> int | None:
        """Return the epoch of the last election in ``quorum-state``; None without the file."""
        return self.state.leader_epoch if self.state else None

    @property
    def voted_for(self) -> int | None:
        """Return its vote by ``quorum-state``: a node id; -1 for no vote, None without the file."""
        return self.state.voted_id if self.state else None


def read(sources: Sequence[NodeDir], run: Run) -> Iterator[MetadataCopy | UnreadableError]:
    """Read the metadata log of each source; OutOfTimeError when the time of the run is over."""
    listed: list[ListedCopy] = []
    for source in sources:
        try:
            listed += _listed(source)
        except UnreadableError as error:
            yield error
    run.bytes_total = sum(segment.log.size for one in listed for segment in one.segments)
    nodes = [one.node for one in listed]
    for item in read_groups([[one] for one in listed], run):
        if isinstance(item, UnreadableError):
            yield item
            continue
        for copy in item:
            path = Path(copy.path)
            twice = copy.node is not None and nodes.count(copy.node) > 1
            yield from _read(path, copy, is_named_by_path=twice)


def _listed(source: NodeDir) -> Iterator[ListedCopy]:
    """Yield the copy in a log dir or a directory of a metadata log; UnreadableError without one."""
    path = source.path
    if inputs.kind_of(path, lacking="Redpanda has no KRaft metadata log") is PathKind.LOG_DIR:
        if not files.has_dir(path / DIRECTORY):
            raise NothingMatchedError(path, f"holds no {DIRECTORY}")
        path = path / DIRECTORY
    everything = Selection()
    for one in find(path, source.node, everything):
        if isinstance(one, UnreadableError):
            raise one
        if one.listed is None or one.key[0] != CLUSTER_METADATA:
            raise NothingMatchedError(
                path, f"is not a metadata log: expected a log dir or {DIRECTORY}"
            )
        yield one


def _read(
    path: Path, copy: WholeCopy, *, is_named_by_path: bool
) -> Iterator[MetadataCopy | UnreadableError]:
    try:
        listed = opening.open_partition(path)
        problems: list[str] = []
        meta = _meta_next_to(path.resolve().parent, problems)
        state = _checked(listed.fixed.get(FileKind.QUORUM_STATE), problems)
        _checked(listed.fixed.get(FileKind.PARTITION_METADATA), problems)
        snapshots = tuple(map(_snapshot, _by_age(listed.kraft_snapshots)))
        problems += [f"{one.path.name}: {one.damage}" for one in snapshots if one.damage]
        problems += [
            f"{names.format_partition_file(one.segment, FileKind.LOG)}: byte {one.position}: "
            f"{one.message}"
            for one in copy.real_damages
        ]
        missing = tuple(_missing(copy, listed, snapshots))
        problems += [f"no batch and no snapshot holds {text}" for *_, text in missing]
        changes = tuple(_changes(listed, copy, problems))
    except UnreadableError as error:
        yield error
        return
    label = copy.path if is_named_by_path or copy.node is None else str(copy.node)
    yield MetadataCopy(
        path=path,
        listed=listed,
        batches=replace(copy, label=label),
        meta=meta,
        state=state,
        snapshots=snapshots,
        problems=tuple(problems),
        changes=changes,
        missing=tuple((first, last) for first, last, _ in missing),
    )


def _missing(
    copy: WholeCopy, listed: Partition, snapshots: Sequence[KRaftSnapshot]
) -> Iterator[tuple[int, int, str]]:
    """Yield the first and last offset of each range that the log lacks, and the range as text.

    A range lies before the first batch, between two batches, or behind the last one, where another
    file of the directory names an offset of the log.
    """
    table = copy.batches
    covered = max((one.end_offset for one in snapshots if not one.damage), default=0)
    if copy.real_damages:
        return
    if copy.log_start > covered:
        last = copy.log_start - 1
        yield covered, last, wording.offsets(covered, last)
    holes = np.flatnonzero(table.base_offset[1:] > table.last_offset[:-1] + 1)
    for row in holes.tolist():
        first, last = int(table.last_offset[row]) + 1, int(table.base_offset[row + 1]) - 1
        if last >= covered:
            yield first, last, wording.offsets(first, last)
    end = max([covered, copy.log_start, *table.last_offset[-1:].tolist()])
    end += int(len(table) > 0 and end == int(table.last_offset[-1]))
    claims = unmet(end_claims(listed), Presence(exists=True, end=end))
    if largest := max(claims, key=lambda one: one.offset, default=None):
        name, last = largest.evidence.path.name, largest.offset - 1
        yield end, last, f"{wording.offsets(end, last)} ({name}: {largest.kind} {largest.offset})"


def _meta_next_to(home: Path, problems: list[str]) -> MetaProperties | None:
    if inputs.kind_of(home, lacking="Redpanda has no KRaft metadata log") is not PathKind.LOG_DIR:
        return None
    meta: MetaProperties | None = _checked(
        opening.open_log_dir(home).files.get(FileKind.META_PROPERTIES), problems
    )
    return meta


def _checked(file: File | None, problems: list[str]) -> Any:
    if file is None:
        return None
    value, findings = small_files.check_file(file)
    problems += [f"{file.path.name}: {finding.message}" for finding in findings]
    return value


def _by_age(snapshots: Sequence[File]) -> list[File]:
    named = [one for one in snapshots if one.name.offset is not None and one.name.epoch is not None]
    return sorted(named, key=lambda one: (one.name.epoch, one.name.offset))


def _snapshot(file: File) -> KRaftSnapshot:
    """Read a snapshot and its voters; it is read whole, because a partial one is useless."""
    damage: str | None = None
    known: tuple[Voter, ...] | None = None
    version: int | None = None
    types: list[int] = []
    try:
        with LogFile(file.path) as log:
            for chunk in read_batches(log, base_offset=0):
                if chunk.damage:
                    raise FormatError(chunk.damage.message, chunk.damage.position, file.path)
                types += chunk.table.control_type.tolist()
                for row in np.flatnonzero(chunk.table.is_control).tolist():
                    for kind, message in voters.parse_batch(chunk, row):
                        if kind == control_record.KRAFT_VOTERS:
                            known = voters.of_record(message)
                        else:
                            version = message["kRaftVersion"]
        ends = types[:1], types[-1:]
        if ends != ([control_record.SNAPSHOT_HEADER], [control_record.SNAPSHOT_FOOTER]):
            damage = "has no header, or no footer"
    except FormatError as error:
        damage = f"byte {error.position}: {error.reason}"
    return KRaftSnapshot(
        path=file.path,
        end_offset=file.name.offset or 0,
        epoch=file.name.epoch or 0,
        damage=damage,
        voters=known,
        kraft_version=version,
    )


def _changes(
    listed: Partition, copy: WholeCopy, problems: list[str]
) -> Iterator[tuple[int, int, Any]]:
    """Read the control batches of a log again, at their known positions."""
    table = copy.batches
    rows = np.flatnonzero(table.attributes & CONTROL != 0).tolist()
    logs = {segment.base_offset: segment.log for segment in listed.segments}
    for row in rows:
        batch = table.row(row)
        file = logs[batch["segment"]]
        with file.open() as log:
            data = memoryview(log.read(batch["position"], batch["size"]))
        try:
            for kind, message in voters.parse_batch(one_batch(data), 0):
                yield batch["base_offset"], kind, message
        except FormatError as error:
            problems.append(
                f"{file.path.name} @{batch['position']}: the control records at offset "
                f"{batch['base_offset']} do not decode: {error.reason}"
            )
