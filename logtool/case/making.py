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
from logtool.case.renaming import Renaming
from logtool.copies.digest import check_place
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import (
    LogtoolError,
    NothingMatchedError,
    RefusedError,
    UnreadableError,
    UnwritableError,
)
from logtool.formats import names
from logtool.formats.names import (
    CLUSTER_METADATA,
    BadDirectory,
    FileKind,
    FileName,
    PartitionDirectory,
)
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
_WITH_TOPICS = frozenset(
    {
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


@dataclass(frozen=True, slots=True)
class _Home:
    """A directory that is written, and its place."""

    path: Path
    given: CaseDir
    is_log_dir: bool
    only: frozenset[str] | None = None
    """The names of directories in it that are meant; None for all."""


class CaseMaker:
    """Makes one case file; yields what could not be read, and then has the `manifest`."""

    def __init__(
        self,
        dirs: Sequence[NodeDir],
        output: Path,
        run: Run,
        made_ms: int,
        summary: Summary | None = None,
        renaming: Renaming | None = None,
        names_file: Path | None = None,
    ) -> None:
        """Begin; with `renaming`, other names stand for those of topics, groups, hosts and users.

        Then each name with its replacement is written to `names_file`, if that is given.
        """
        self._dirs, self._output, self._run = dirs, output, run
        self._renaming, self._names_file = renaming, names_file
        self._made_ms = made_ms
        self._totals = _Totals()
        self.summary = Summary() if summary is None else summary
        self.manifest: CaseManifest | None = None

    def __iter__(self) -> Iterator[LogtoolError | CaseManifest]:
        """Yield the inputs that cannot be read, and then the manifest of the complete file.

        An output that is refused or cannot be written is yielded as an error. A directory that is
        not of Kafka is left out; where no other is given, there is no file and no manifest.
        """
        homes = []
        for number, one in enumerate(self._dirs, 1):
            try:
                homes.append(self._home(number, one))
            except UnreadableError as error:
                place = f"{number}/{self._log_dir_name(own_name(one.path))}"
                is_other = isinstance(error, NothingMatchedError)
                reason = "is no log dir and no partition dir of Kafka" if is_other else error.reason
                self._totals.absent.append(LeftOut(place, reason))
                yield error
        if not homes:
            return
        try:
            for path in filter(None, (self._output, self._names_file)):
                check_place(path)
            yield from self._written(homes)
        except (RefusedError, UnwritableError) as error:
            yield error

    def _written(self, homes: "Sequence[_Home]") -> Iterator[UnreadableError | CaseManifest]:
        try:
            with unfinished.new_file(self._output) as out, _spool(self._output) as body:
                writer = ArchiveWriter(body)
                for home in homes:
                    yield from self._top(writer, home)
                writer.close()
                self.manifest = self._described([one.given for one in homes])
                data = encode(self.manifest)
                head = ArchiveWriter(out)
                head.add(CaseMember(NAME, len(data), self._made_ms * 1_000_000), [data])
                head.flush()
                body.seek(0)
                shutil.copyfileobj(body, out, _PIECE)
                self._write_names()
        except OSError as error:
            raise UnwritableError(self._output, error.strerror or str(error)) from error
        yield self.manifest

    def _home(self, number: int, one: NodeDir) -> "_Home":
        """Return a directory that was given, with its place; UnreadableError."""
        lacking = "a case file of Redpanda cannot be made"
        kind = inputs.kind_of(one.path, lacking=lacking)
        if kind is PathKind.FILE:
            raise UnreadableError(one.path, "expected a log dir or a partition dir")
        own = own_name(one.path)
        around = inputs.containing(one.path) if kind is PathKind.PARTITION_DIR else None
        if around is None:
            is_log_dir = kind is PathKind.LOG_DIR
            place = f"{number}/{self._log_dir_name(own) if is_log_dir else self._dir_name(own)}"
            return _Home(one.path, CaseDir(place, place, one.node), is_log_dir)
        place = f"{number}/{self._log_dir_name(own_name(around.path))}"
        known = [path.name for path, each in around.partitions if each.topic in _AROUND]
        only = frozenset({own, *known})
        given = CaseDir(place, f"{place}/{self._dir_name(own)}", one.node)
        return _Home(around.path, given, True, only)

    def _log_dir_name(self, name: str) -> str:
        return _LOG_DIR if self._renaming else name

    def _dir_name(self, name: str) -> str:
        return self._renaming.directory(name) if self._renaming else name

    def _file_name(self, name: str) -> str:
        return self._renaming.file(name) if self._renaming else name

    def _parsed(self, name: str) -> PartitionDirectory | BadDirectory:
        """Return the name of a directory of a log dir, and count a partition."""
        found = names.parse_directory(name)
        if isinstance(found, PartitionDirectory):
            topic = found.topic
            self._totals.names.add(self._renaming.topic(topic) if self._renaming else topic)
            self.summary.partitions += 1
        return found

    def _write_names(self) -> None:
        """Write the names and their replacements, which only the owner of the file may read."""
        if self._renaming and self._names_file:
            with unfinished.new_file(self._names_file, 0o600) as out:
                out.write(self._renaming.encode())

    def _top(self, writer: ArchiveWriter, home: "_Home") -> Iterator[UnreadableError]:
        """Write a directory that was given."""
        parsed = None if home.is_log_dir else self._parsed(own_name(home.path))
        yield from self._folder(writer, home.path, home.given.place, parsed, only=home.only)

    def _folder(
        self,
        writer: ArchiveWriter,
        path: Path,
        place: str,
        directory: PartitionDirectory | BadDirectory | None,
        depth: int = 0,
        *,
        only: frozenset[str] | None = None,
    ) -> Iterator[UnreadableError]:
        """Write a directory and everything in it, or the directories among `only`.

        `directory` is its own name, or that of the directory of a partition that it is in.
        """
        writer.add(CaseMember(place, is_dir=True))
        for entry in files.list_dir(path):
            inner, is_dir = path / entry.name, files.is_dir(entry)
            name = self._dir_name(entry.name) if is_dir else self._file_name(entry.name)
            inner_place = f"{place}/{name}"
            try:
                if is_dir:
                    if depth < _DEEPEST and (only is None or entry.name in only):
                        of = self._parsed(entry.name) if directory is None else directory
                        yield from self._folder(writer, inner, inner_place, of, depth + 1)
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
        directory: PartitionDirectory | BadDirectory | None,
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
                log = BlankedLog(file, base_offset, _CONTENT[treatment], renaming=self._renaming)
                writer.add(member, self._counted(path, log.blocks()))
                self._take(log, place)
            elif self._renaming and name.kind in _WITH_TOPICS:
                writer.add(member, self._with_other_topics(file))
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

    def _with_other_topics(self, file: LogFile) -> Iterator[bytes]:
        """Yield an offset checkpoint with other topics; one that no broker could read is zeros."""
        if self._renaming and file.size <= files.SMALL_FILE_LIMIT:
            yield self._renaming.checkpoint(b"".join(_content_of(file, WHOLE)))
        else:
            yield from _content_of(file, ZEROS)

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
        totals.counts.renamed += found.renamed
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
            renamed=totals.counts.renamed if self._renaming else None,
        )


_DEEPEST = 8
_LOG_DIR = "data"
"""Name of a log dir in place of its own, which may have that of a host."""


def _spool(output: Path) -> BinaryIO:
    """Return a file without a name next to the output; OSError."""
    return tempfile.TemporaryFile(dir=output.parent)


def _treatment(name: FileName, directory: PartitionDirectory | BadDirectory | None) -> str:
    if name.kind in _SNAPSHOTS:
        return MASKED
    if name.kind is FileKind.LOG:
        topic = directory.topic if isinstance(directory, PartitionDirectory) else None
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
