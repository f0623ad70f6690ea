"""Make a case file of log dirs: every file, the logs without payload, and the manifest before them.

The members are written to a file without a name first, because the manifest counts them.
"""

import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

import logtool
from logtool.apply import unfinished
from logtool.case.archive import ArchiveWriter, CaseMember
from logtool.case.blanking import BlankedCounts, KeptContent
from logtool.case.logs import BlankedLog
from logtool.case.manifest import NAME, CaseDir, CaseFiles, CaseManifest, LeftOut, encode
from logtool.copies.digest import check_place
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import LogtoolError, RefusedError, UnreadableError, UnwritableError
from logtool.formats import names
from logtool.formats.names import CLUSTER_METADATA, FileKind, FileName, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs
from logtool.log.dir import own_name
from logtool.log.inputs import NodeDir, PathKind
from logtool.running.run import Run
from logtool.running.summary import Summary

WHOLE, HEADERS, MASKED, STATE, ZEROS = "whole", "headers", "masked", "state", "zeros"
"""Treatments: the file as it is; headers of batches; all but secrets; sound batches; zeros."""
_CONTENT = {
    HEADERS: KeptContent.NOTHING, MASKED: KeptContent.METADATA, STATE: KeptContent.STATE,
}  # fmt: skip
_STATE_TOPIC = "__transaction_state"
_AROUND = (CLUSTER_METADATA, _STATE_TOPIC)
"""Topics that commands look at around a partition dir."""
_WHOLE_KINDS = frozenset(
    {
        FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX,
        FileKind.PRODUCER_SNAPSHOT, FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA,
        FileKind.QUORUM_STATE, FileKind.META_PROPERTIES, FileKind.CLEAN_SHUTDOWN,
        FileKind.RECOVERY_POINT_CHECKPOINT, FileKind.REPLICATION_CHECKPOINT,
        FileKind.LOG_START_CHECKPOINT, FileKind.CLEANER_CHECKPOINT,
    }
)  # fmt: skip
_SNAPSHOTS = (FileKind.KRAFT_SNAPSHOT, FileKind.BOOTSTRAP_CHECKPOINT)
_COPIED_NS = 2_000_000_000
"""Time from the last write to the last change of the status from which on a file may be a copy."""
_PIECE = 1024 * 1024


@dataclass(slots=True)
class _Totals:
    """The numbers of the manifest, added up member by member."""

    kinds: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Files and bytes by kind and treatment."""
    files: int = 0
    bytes: int = 0
    log_bytes: int = 0
    counts: BlankedCounts = field(default_factory=BlankedCounts)
    inexact: list[LeftOut] = field(default_factory=list)
    absent: list[LeftOut] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


class CaseMaker:
    """Makes one case file; yields what could not be read, and then has the `manifest`."""

    def __init__(
        self,
        dirs: Sequence[NodeDir],
        output: Path,
        run: Run,
        made_ms: int,
        summary: Summary | None = None,
    ) -> None:
        self._dirs, self._output, self._run = dirs, output, run
        self._made_ms = made_ms
        self._totals = _Totals()
        self.summary = Summary() if summary is None else summary
        self.manifest: CaseManifest | None = None

    def __iter__(self) -> Iterator[LogtoolError | CaseManifest]:
        """Yield the inputs that cannot be read, and then the manifest of the complete file.

        An output that is refused or cannot be written is yielded as an error.
        """
        homes = [self._home(number, one) for number, one in enumerate(self._dirs, 1)]
        try:
            check_place(self._output)
            yield from self._written(homes)
        except (RefusedError, UnwritableError) as error:
            yield error

    def _written(
        self, homes: "Sequence[tuple[tuple[Path, str], CaseDir, frozenset[str] | None]]"
    ) -> Iterator[UnreadableError | CaseManifest]:
        try:
            with unfinished.new_file(self._output) as out, _spool(self._output) as body:
                writer = ArchiveWriter(body)
                for home, _, only in homes:
                    yield from self._folder(writer, *home, only)
                writer.close()
                self.manifest = self._described([one for _, one, _ in homes])
                data = encode(self.manifest)
                head = ArchiveWriter(out)
                head.add(CaseMember(NAME, len(data), self._made_ms * 1_000_000), [data])
                head.flush()
                body.seek(0)
                shutil.copyfileobj(body, out, _PIECE)
        except OSError as error:
            raise UnwritableError(self._output, error.strerror or str(error)) from error
        yield self.manifest

    def _home(
        self, number: int, one: NodeDir
    ) -> tuple[tuple[Path, str], CaseDir, frozenset[str] | None]:
        """Return a directory with its place, and the names in it that are meant; None for all."""
        lacking = "a case file of Redpanda cannot be made"
        kind = inputs.kind_of(one.path, lacking=lacking)
        if kind is PathKind.FILE:
            raise UnreadableError(one.path, "expected a log dir or a partition dir")
        own = own_name(one.path)
        around = inputs.containing(one.path) if kind is PathKind.PARTITION_DIR else None
        if around is None:
            place = f"{number}/{own}"
            return (one.path, place), CaseDir(place, place, one.node), None
        place = f"{number}/{own_name(around.path)}"
        known = [path.name for path, each in around.partitions if each.topic in _AROUND]
        only = frozenset({own, *known})
        return (around.path, place), CaseDir(place, f"{place}/{own}", one.node), only

    def _folder(
        self,
        writer: ArchiveWriter,
        path: Path,
        place: str,
        only: frozenset[str] | None = None,
        directory: PartitionDirectory | None = None,
        depth: int = 0,
    ) -> Iterator[UnreadableError]:
        """Write a directory and everything in it, or the directories among `only`."""
        writer.add(CaseMember(place, is_dir=True))
        parsed = names.parse_directory(own_name(path))
        if directory is None and isinstance(parsed, PartitionDirectory):
            directory = parsed
            self._totals.names.add(parsed.topic)
            self.summary.partitions += 1
        for entry in files.list_dir(path):
            inner, inner_place = path / entry.name, f"{place}/{entry.name}"
            try:
                if files.is_dir(entry):
                    if depth < _DEEPEST and (only is None or entry.name in only):
                        yield from self._folder(writer, inner, inner_place, None, None, depth + 1)
                elif stat.S_ISREG(inner.lstat().st_mode):
                    self._file(writer, inner, inner_place, directory)
                else:
                    self._totals.absent.append(LeftOut(inner_place, "is no file"))
            except UnreadableError as error:
                if not files.has_vanished(error):
                    self._totals.absent.append(LeftOut(inner_place, error.reason))
                    yield error
            except FileNotFoundError:
                continue  # a broker deleted it

    def _file(
        self,
        writer: ArchiveWriter,
        path: Path,
        place: str,
        directory: PartitionDirectory | None,
    ) -> None:
        """Write one file; UnreadableError."""
        self._run.budget.pace.spend(0)
        name = names.parse_root_file(path.name)
        if name.kind is FileKind.UNKNOWN:
            name = names.parse_partition_file(path.name)
        status = path.stat()
        changed_ns = (
            status.st_ctime_ns if status.st_ctime_ns <= status.st_mtime_ns + _COPIED_NS else None
        )
        treatment = _treatment(name, directory)
        with LogFile(path) as file:
            member = CaseMember(place, file.size, status.st_mtime_ns, changed_ns)
            if treatment in _CONTENT:
                base_offset = 0 if name.kind in _SNAPSHOTS else name.offset or 0
                log = BlankedLog(file, base_offset, _CONTENT[treatment])
                writer.add(member, self._counted(path, log.blocks()))
                self._take(log, place)
            else:
                writer.add(member, _content_of(file, treatment))
            if name.kind is FileKind.LOG:
                self._totals.log_bytes += file.size
                self.summary.segments += 1
                self.summary.bytes += file.size
            of_kind = self._totals.kinds.setdefault((_label(name), treatment), [0, 0])
            of_kind[0] += 1
            of_kind[1] += file.size
            self._totals.files += 1
            self._totals.bytes += file.size

    def _counted(
        self, path: Path, blocks: Iterator[bytes | bytearray]
    ) -> Iterator[bytes | bytearray]:
        for block in blocks:
            self._run.advance(len(block), path)
            self._run.budget.pace.spend(len(block))
            yield block

    def _take(self, log: BlankedLog, place: str) -> None:
        """Add the numbers of a log."""
        found, totals = log.counts, self._totals
        totals.counts.batches += found.batches
        totals.counts.records += found.records
        totals.counts.replaced += found.replaced
        totals.inexact += (
            LeftOut(place, reason, position, damage) for position, reason, damage in found.inexact
        )
        self.summary.batches += found.batches
        self.summary.records += found.records

    def _described(self, dirs: Sequence[CaseDir]) -> CaseManifest:
        totals = self._totals
        return CaseManifest(
            version=logtool.__version__,
            made_ms=self._made_ms,
            dirs=tuple(dirs),
            kinds=tuple(
                CaseFiles(kind, treatment, *numbers)
                for (kind, treatment), numbers in sorted(totals.kinds.items())
            ),
            files=totals.files,
            bytes=totals.bytes,
            log_bytes=totals.log_bytes,
            batches=totals.counts.batches,
            records=totals.counts.records,
            replaced=totals.counts.replaced,
            inexact=tuple(totals.inexact),
            absent=tuple(totals.absent),
            names=tuple(sorted(totals.names)),
        )


_DEEPEST = 8


def _spool(output: Path) -> BinaryIO:
    """Return a file without a name next to the output; OSError."""
    return tempfile.TemporaryFile(dir=output.parent)


def _treatment(name: FileName, directory: PartitionDirectory | None) -> str:
    if name.kind in _SNAPSHOTS:
        return MASKED
    if name.kind is FileKind.LOG:
        topic = directory.topic if directory else None
        return MASKED if topic == CLUSTER_METADATA else STATE if topic == _STATE_TOPIC else HEADERS
    return WHOLE if name.kind in _WHOLE_KINDS else ZEROS


def _label(name: FileName) -> str:
    return str(name.kind) or "others"


def _content_of(file: LogFile, treatment: str) -> Iterator[bytes]:
    """Yield the content of a file, or zeros in its place."""
    for at in range(0, file.size, _PIECE):
        size = min(_PIECE, file.size - at)
        data = bytes(size) if treatment == ZEROS else file.read(at, size)
        if len(data) < size:
            raise UnreadableError(file.path, "became shorter while logtool read it")
        yield data
