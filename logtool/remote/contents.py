"""The content of one remote segment: its log as `verify` reads it, and its indexes against it.

The objects of a segment become the files of a local one: those of `local` are, and those of the
plugin of Aiven are unpacked while they are read. Findings name the objects.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import cast

import cramjam

from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.segment import check_segment
from logtool.disk import files
from logtool.disk.assembled import AssembledFile, AssembledPath, AssembledTree, Entries
from logtool.disk.files import LogFile
from logtool.errors import FormatError, UnreadableError
from logtool.findings import Broker, Finding, Remedy
from logtool.formats import (
    leader_epoch_checkpoint,
    names,
    producer_snapshot,
    rsm_manifest,
    transaction_index,
)
from logtool.formats.names import FileKind
from logtool.formats.rsm_manifest import SegmentManifest
from logtool.formats.rsm_names import LOG, Plugin
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.log.kafka import KAFKA
from logtool.remote import object_findings as findings
from logtool.remote.objects import ObjectSet

CHECKED, ENCRYPTED, UNREAD = "checked", "encrypted", "unread"
CONTENTS = (CHECKED, ENCRYPTED, UNREAD)
"""Batches were checked, or are encrypted, or were not read as objects are missing or broken."""
_FILES = {"index": "offset", "timeindex": "timestamp", "txnindex": "transaction",
          "snapshot": "producerSnapshot", "leader_epoch_checkpoint": "leaderEpoch"}  # fmt: skip
"""Suffixes of `local`, with the names of the same content in a manifest."""
_KINDS = {"index": FileKind.OFFSET_INDEX, "timeindex": FileKind.TIME_INDEX}


@dataclass(slots=True)
class SegmentContent:
    """The content of one remote segment, as far as it could be checked."""

    content: str = UNREAD
    """One of `CONTENTS`."""
    findings: list[Finding | UnreadableError] = field(default_factory=list)
    log_size: int | None = None
    """Bytes of the log, as the objects have it; None if they do not say."""
    report: SegmentReport | None = None
    """The pass over its batches; None if they were not read."""
    epochs: tuple[tuple[int, int], ...] | None = None
    """Leader epochs with their first offsets; None if they could not be read."""
    manifest: SegmentManifest | None = None

    @property
    def manifest_range(self) -> tuple[int, int] | None:
        """Return the first and the last offset in the manifest; None if it does not say."""
        segment = self.manifest.segment if self.manifest else None
        start, end = (segment or {}).get("startOffset"), (segment or {}).get("endOffset")
        return (start, end) if type(start) is int and type(end) is int else None


class _Unpacked:
    """The log of a segment whose chunks are compressed: bytes at positions."""

    def __init__(self, path: Path, size: int, manifest: SegmentManifest) -> None:
        self.size = manifest.log_size
        self._path, self._object_size, self._manifest = path, size, manifest
        self._chunk, self._data = -1, b""
        self.fault: Finding | None = None
        """The first chunk that could not be unpacked, or None."""

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; UnreadableError for a chunk that cannot be unpacked."""
        done = 0
        while done < len(buffer) and position + done < self.size:
            number, at = divmod(position + done, self._manifest.chunk_size)
            data = self._unpack(number)
            part = data[at : at + len(buffer) - done]
            buffer[done : done + len(part)] = part
            done += len(part)
            if not part:
                break
        return done

    def _unpack(self, number: int) -> bytes:
        if number != self._chunk:
            manifest = self._manifest
            at, size = sum(manifest.chunks[:number]), manifest.chunks[number]
            with LogFile(self._path, self._object_size) as file:
                packed = file.read(at, size)
            expected = manifest.original_size(number)
            try:
                data = bytes(cramjam.zstd.decompress(packed, output_len=expected))
            except (cramjam.DecompressionError, ValueError) as error:
                raise self._bad(number, at, size, str(error)) from error
            if len(data) != expected:
                reason = f"it has {len(data)} bytes of the log, but {expected} were written"
                raise self._bad(number, at, size, reason)
            self._chunk, self._data = number, data
        return self._data

    def _bad(self, number: int, position: int, size: int, reason: str) -> UnreadableError:
        self.fault = self.fault or findings.bad_chunk(number, position, size, reason)
        return UnreadableError(self._path, self.fault.message)


class _Pieces(AssembledTree):
    """The files of one segment: name and content."""

    def __init__(self) -> None:
        self.pieces: dict[str, AssembledFile] = {}

    def entries(self, folder: str) -> Entries:
        return dict(self.pieces)


def check(
    plugin: Plugin, found: ObjectSet, on_bytes: Callable[[int], None], level: Level
) -> SegmentContent:
    """Check the content of a segment; what cannot be read is in its findings."""
    result = SegmentContent()
    try:
        files_of = pieces(plugin, found, result)
        if result.content != ENCRYPTED and LOG in files_of:
            _check_log(found, files_of, result, on_bytes, level)
        for kind in ("txnindex", "snapshot", "leader_epoch_checkpoint"):
            if kind in files_of and result.content != ENCRYPTED:
                _check_small(found, kind, files_of[kind], result)
    except UnreadableError as error:
        result.findings.append(error)
    return result


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a segment: its path, and the object that it is part of."""

    path: Path
    size: int
    source: Path
    shift: int = 0
    """Position in the object at which the file begins."""
    packed: _Unpacked | None = None
    """The chunks of a compressed log: positions in it are not positions in the object."""


def pieces(plugin: Plugin, found: ObjectSet, result: SegmentContent) -> dict[str, Piece]:
    """Return the files of a segment by their suffixes; UnreadableError.

    Findings about the manifest, and whether the objects are encrypted, go into `result`.
    """
    return _local(found) if plugin is Plugin.LOCAL else _aiven(found, result)


def _local(found: ObjectSet) -> dict[str, Piece]:
    return {kind: Piece(one.path, one.size, one.path) for kind, one in found.objects.items()}


def _aiven(found: ObjectSet, result: SegmentContent) -> dict[str, Piece]:
    """Return the files in the objects, as far as the manifest leads to them."""
    given = found.objects.get("rsm-manifest")
    if given is None:
        return {}
    try:
        manifest = rsm_manifest.parse(files.read_small(given.path))
    except FormatError as error:
        finding = findings.bad_manifest(error.reason, error.position)
        result.findings.append(finding.placed(given.path))
        return {}
    own_id, name = found.name.segment_id, manifest.segment_id
    if name is not None and name != own_id:
        finding = findings.other_manifest(own_id, name)
        result.findings.append(finding.placed(given.path))
        manifest = replace(manifest, segment=None)  # Its offsets are those of the other segment.
    result.manifest, result.log_size = manifest, manifest.log_size
    log, indexes = found.objects.get(LOG), found.objects.get("indexes")
    if log and log.size != manifest.object_size:
        finding = findings.object_size(log.size, manifest.object_size, "by the manifest")
        result.findings.append(finding.placed(log.path))
        log = None
    if indexes and indexes.size != manifest.indexes_size:
        finding = findings.object_size(indexes.size, manifest.indexes_size, "by the manifest")
        result.findings.append(finding.placed(indexes.path))
    result.findings += [
        finding.placed(given.path) for finding in findings.index_ranges(manifest.indexes)
    ]
    if manifest.is_encrypted:
        result.content = ENCRYPTED
        return {}
    tree, made = _Pieces(), {}
    if log and manifest.is_compressed:
        content = _Unpacked(log.path, log.size, manifest)
        tree.pieces[LOG] = AssembledFile(content, manifest.log_size)
        path = cast(Path, AssembledPath(tree, str(log.path.parent), LOG))
        made[LOG] = Piece(path, manifest.log_size, log.path, packed=content)
    elif log:
        made[LOG] = Piece(log.path, log.size, log.path)
    if indexes:
        data = files.read_small(indexes.path, limit=max(indexes.size, 1))
        for kind, name in _FILES.items():
            if name in manifest.indexes:
                at, size = manifest.indexes[name]
                tree.pieces[kind] = AssembledFile(data[at : at + size], len(data[at : at + size]))
                path = cast(Path, AssembledPath(tree, str(indexes.path.parent), kind))
                made[kind] = Piece(path, size, indexes.path, at)
    return made


def _check_log(
    found: ObjectSet,
    pieces: dict[str, Piece],
    result: SegmentContent,
    on_bytes: Callable[[int], None],
    level: Level,
) -> None:
    """Read the log once, and its two indexes against it."""
    base = found.name.base_offset
    segment = Segment(
        base_offset=base,
        log=_file(pieces[LOG], base, FileKind.LOG),
        indexes={kind: _file(pieces[name], base, kind) for name, kind in _KINDS.items()
                 if name in pieces},
        next_base_offset=2**63 - 1,  # closed: no segment behind it is known
        flavour=KAFKA,
    )  # fmt: skip
    report = check_segment(SegmentTask(segment, level, clean=True), on_bytes)
    result.log_size = pieces[LOG].size
    by_path = {str(one.path): one for one in pieces.values()}
    packed = pieces[LOG].packed
    if packed and packed.fault:
        result.findings.append(packed.fault.placed(pieces[LOG].source))
        result.findings += [
            _placed(one, by_path) for one in report.findings if isinstance(one, Finding)
        ]
        return
    result.findings += [_placed(one, by_path) for one in report.findings]
    result.content = CHECKED if report.scanned else UNREAD
    result.report = report


def _file(piece: Piece, base: int, kind: FileKind) -> File:
    name = names.parse_partition_file(f"{base:020d}{_suffix(kind)}")
    return File(path=piece.path, name=name, size=piece.size, mtime_ns=0)


def _suffix(kind: FileKind) -> str:
    return {FileKind.OFFSET_INDEX: ".index", FileKind.TIME_INDEX: ".timeindex"}.get(kind, ".log")


def _placed(
    item: Finding | UnreadableError, by_path: dict[str, Piece]
) -> Finding | UnreadableError:
    """Return a finding with the object that it is about, and the position there.

    No start of a broker reads objects, and no command changes them.
    """
    piece = by_path.get(str(item.path))
    if piece is None:
        return item
    if isinstance(item, UnreadableError):
        return UnreadableError(piece.source, item.reason)
    position = None
    if item.position is not None and not piece.packed:
        position = item.position + piece.shift
    return replace(
        item, path=piece.source, position=position, next=None, broker_override=Broker.NEVER,
        remedy_override=Remedy.REPLICA,
    )  # fmt: skip


def _check_small(found: ObjectSet, kind: str, piece: Piece, result: SegmentContent) -> None:
    data = files.read_small(piece.path)
    base = found.name.base_offset
    checked: Iterator[Finding] | Sequence[Finding]
    match kind:
        case "txnindex":
            checked = transaction_index.check(transaction_index.parse(data), base_offset=base)
        case "snapshot":
            checked = producer_snapshot.check(producer_snapshot.parse(data))
        case _:
            parsed = leader_epoch_checkpoint.parse(data)
            checked = list(leader_epoch_checkpoint.check(parsed))
            if not checked:
                result.epochs = tuple(parsed.epochs)
    by_path = {str(piece.path): piece}
    result.findings += [_placed(replace(one, path=piece.path), by_path) for one in checked]
