"""The directory that salvage makes: new partition dirs, rejects and a manifest.

    DIR/partitions/TOPIC-N/    logs, indexes, snapshots and epochs as a broker's recovery makes them
    DIR/rejects/TOPIC-N/       the bytes of each range that was not taken over; on request, the
                               objects that decode of them, as .ndjson; for a log that a failing
                               disk gives only in part, the bytes that were read, as .image, and
                               their ranges, as .map
    DIR/records/               on request, the records of each partition
    DIR/manifest.ndjson        a line for each of them, and for each partition; the last one says
                               whether the run has saved all that it could

``partitions`` has the form of a log dir, and nothing in it but partition dirs and a checkpoint. A
partition that comes a second time lies in ``partitions.2``; the metadata log, which only belongs
next to its own ``meta.properties``, in ``metadata``. Each of these directories and files gets its
place when it is complete (`logtool.apply.output_tree`), the manifest last.
"""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.apply import disk
from logtool.apply.dirfd import OpenDir
from logtool.apply.disk import CopiedRange
from logtool.apply.output_tree import OutputTree
from logtool.apply.steps import FileAttributes
from logtool.disk import files, shell
from logtool.disk.files import LogFile
from logtool.errors import RefusedError, UnreadableError, UnwritableError
from logtool.formats import names, offset_checkpoint, wording
from logtool.formats.crc import crc32c
from logtool.formats.names import FileKind, TopicPartition
from logtool.formats.record_batch import MAGIC
from logtool.loading import loader, trusting
from logtool.loading.result import LoadResult, StartConditions
from logtool.log import opening
from logtool.log.batches import read_batches
from logtool.log.dir import Partition
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.repair import disk_image, redpanda
from logtool.repair.bad_sectors import SectorTolerantFile
from logtool.repair.ranges import Kept, Part, Rejected
from logtool.repair.saved import KeptImage, KeptReject, Saved
from logtool.schemas.salvaged import DOCUMENT, NOTED_END, NOTED_REJECT

_BLOCK = 1024 * 1024
_METADATA = f"{names.CLUSTER_METADATA}-0"
_SPARE = 64 * 1024 * 1024
"""Bytes left free on the disk that is written to."""


class OutputDir:
    """A new directory with what was saved."""

    def __init__(self, path: Path) -> None:
        self.given = path
        self.path = path.resolve()
        self._tree = OutputTree(path)
        self._turns: Counter[str] = Counter()
        self._lines: list[bytes] = []
        self.images: dict[Path, Path] = {}
        """Image of each log that a failing disk gives only in part, by the path of the log."""
        self.of_redpanda: tuple[Path, tuple[Part, ...]] | None = None
        """Folder and parts of the partition of Redpanda that was written last; None before."""

    def check(self, log_dirs: Iterable[Path], size: int) -> None:
        """Raise RefusedError if it is in use, in a log dir, or without room for `size` bytes."""
        if image := next(self._images(), None):
            text = f"holds what a failing disk still gave ({image}): use another --output, with "
            raise RefusedError(f"{self.path}: {text}{shell.option('--retry', str(self.given))}")
        self._tree.check(log_dirs)
        if not self.path.parent.is_dir():
            raise UnwritableError(self.path.parent, "is not a directory; create it first")
        parent = next(path for path in (self.path, *self.path.parents) if path.exists())
        free = shutil.disk_usage(parent).free
        if free < size + _SPARE:
            need, there = wording.size(size + _SPARE), wording.size(free)
            raise RefusedError(f"{self.path}: needs up to {need}, but only {there} are free")

    def _images(self) -> Iterator[Path]:
        """Yield the images that a killed run has left: its disk may not give these bytes again."""
        if self._tree.work.is_dir():
            yield from self.path.glob(f"rejects*/**/*{disk_image.IMAGE}")

    def note(self, item: Saved) -> None:
        """Add a line to the manifest."""
        row = NOTED_REJECT.row(item) if isinstance(item, KeptReject) else DOCUMENT.row(item)
        self._lines.append(json.dumps(row).encode() + b"\n")

    def place(self, name: str) -> tuple[Path, Path]:
        """Return the directories for the saved logs and the rejects of the next partition."""
        self._turns[name] += 1
        turn = f".{self._turns[name]}" if self._turns[name] > 1 else ""
        kind = "metadata" if name == _METADATA else "partitions"
        return self.path / f"{kind}{turn}" / name, self.path / f"rejects{turn}" / name

    def coming_rejects(self, name: str) -> Path:
        """Return the directory, below this one, for the rejects of the next partition."""
        turn = f".{self._turns[name] + 1}" if self._turns[name] else ""
        return Path(f"rejects{turn}", name)

    def reject(self, folder: Path, kept: KeptReject) -> KeptReject:
        """Write the bytes of a reject, and return it with the file that has them."""
        one = kept.one
        if one.length and one.is_given:
            target = folder / f"{one.path.name}@{one.position}-{one.length}"
            digest = _Digest()
            self.write(self._place(target), digest.of(_bytes(one, self.images)))
            sha256 = digest.sha.hexdigest()
            kept = replace(kept, crc32c=digest.crc, sha256=sha256, target=target)
        self.note(kept)
        return kept

    def partition(
        self,
        folder: Path,
        logs: Sequence[tuple[int, Sequence[Kept]]],
        neighbours: dict[str, bytes],
        start: StartConditions,
    ) -> LoadResult:
        """Write the logs of a partition, and all that a broker's recovery makes of them."""
        place = self._place(folder)
        home = self._tree.folder(place)
        for base, extents in logs:
            target = home.path / names.format_partition_file(base, FileKind.LOG)
            self._copy(home, target, extents, base, KAFKA)
        for file, content in neighbours.items():
            disk.write_new(home, home.path / file, [content])
        sound = all(one.first.magic >= MAGIC for _, extents in logs for one in extents)
        loaded = self.recovered(place, start, trusted=sound)
        self._tree.complete(place)
        return loaded

    def _place(self, path: Path) -> Path:
        return path.relative_to(self.path)

    def _copy(
        self,
        home: OpenDir,
        target: Path,
        extents: Sequence[Kept],
        base: int,
        flavour: Flavour,
    ) -> None:
        """Write a log, and check each batch in the new file: nothing reads it again."""
        look = _look(extents) if flavour is KAFKA else None
        disk.copy_new(home, target, _runs(extents, self.images), look)
        batches = end = 0
        with LogFile(target) as log:
            form = flavour.form(target)
            for chunk in read_batches(log, base_offset=base, form=form, payload=False):
                if chunk.damage:
                    break
                batches, end = batches + len(chunk.table), chunk.end_position
        if (batches, end) != (sum(e.batches for e in extents), sum(e.size for e in extents)):
            disk.remove(home, target)
            raise _changed(extents, end)

    def image(self, name: str, log: Path, given: SectorTolerantFile) -> KeptImage:
        """Keep the bytes of a log that a failing disk gives, and a map of them.

        The saved parts of the log are then read from this image.
        """
        folder = self.coming_rejects(name)
        image, ranged = (folder / f"{log.name}{end}" for end in (disk_image.IMAGE, disk_image.MAP))
        self._tree.write(image, disk_image.blocks(given))
        content = disk_image.encode(given.bad, given.size, coarse=given.coarse)
        self._tree.write(ranged, [content])
        ranges, target = self._tree.complete(ranged), self._tree.complete(image)
        self.images[log] = target
        kept = KeptImage(log, target, ranges, given.size, unread=sum(given.bad.values()))
        self.note(kept)
        return kept

    def folder(self, path: Path) -> None:
        """Make a folder below the directory, if it is not there."""
        self._tree.final(self._place(path))

    def redpanda(self, folder: Path, listed: Partition, parts: Sequence[Part]) -> None:
        """Write the segments of a partition of Redpanda, each with its base index."""
        place = self._place(folder)
        home = self._tree.folder(place)
        for segment in redpanda.segments(listed, parts):
            target = segment.path(home.path)
            self._copy(home, target, segment.extents, segment.base_offset, listed.flavour)
            redpanda.write_index(home, target, segment)
        self._tree.complete(place)
        self.of_redpanda = (folder, tuple(parts))

    def write(self, path: Path, blocks: Iterable[bytes]) -> None:
        """Write a new file that is complete by itself; `path` is below the directory."""
        self._tree.write(path, blocks)
        self._tree.complete(path)

    def write_part(self, path: Path, blocks: Iterable[bytes]) -> int:
        """Write a new file of a folder that `complete` gives its place later; return its size."""
        return self._tree.write(path, blocks)

    def complete(self, folder: Path) -> Path:
        """Give a folder, whose files were all written, its place; return its path."""
        return self._tree.complete(folder)

    def recovered(
        self, place: Path, start: StartConditions, *, trusted: bool = False
    ) -> LoadResult:
        """Write the files that a broker's recovery makes of the logs of a folder next to them.

        `place` is the folder below the directory, before it is complete.
        For `trusted` logs only the headers are read again: each batch was checked as it was
        written. If anything in them is unusual, the whole recovery of a broker is run.
        """
        home = self._tree.folder(place)
        folder = home.path
        listed = opening.open_partition(folder, KAFKA)
        loaded = trusting.trust(listed, start) if trusted else loader.load(listed, start)
        if loaded.distrust:
            loaded = loader.load(listed, start)
        if loaded.outcome == "loads":
            for change in loaded.shadow.changes():
                if change.content is None:
                    text = f"a broker would change this file: {change.kind} {change.path.name}"
                    raise UnwritableError(folder, text)
                if change.path.exists():
                    disk.remove(home, change.path)
                disk.write_new(home, change.path, [change.content])
        disk.sync_dir(home, folder)
        return loaded

    def finish(self, log_starts: dict[TopicPartition, int], *, complete: bool) -> None:
        """Write the manifest, and the checkpoint of log starts that are not those of a segment.

        `complete` says that no time limit and no error has left anything out.
        """
        place = Path("partitions")
        self._tree.final(place)
        if log_starts:
            content = offset_checkpoint.encode(offset_checkpoint.build(log_starts))
            self.write(place / FileKind.LOG_START_CHECKPOINT.value, [content])
        end = json.dumps(NOTED_END.make(complete=complete)).encode() + b"\n"
        self.write(Path("manifest.ndjson"), [*self._lines, end])

    def close(self, *, ended: bool) -> None:
        """Let go of the directory; a run that has `ended` leaves nothing that is not complete."""
        if ended:
            self._tree.finish()
        self._tree.close()


class _Digest:
    def __init__(self) -> None:
        self.sha = hashlib.sha256()
        self.crc = 0

    def of(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self.sha.update(block)
            self.crc = crc32c(block, self.crc)
            yield block


def _bytes(one: Rejected, images: Mapping[Path, Path]) -> Iterator[bytes]:
    """Yield the bytes of a reject; zeros for those that the disk does not give."""
    with LogFile(images.get(one.path, one.path)) as log:
        source, done = SectorTolerantFile(log), 0
        while done < one.length:
            data = bytearray(min(_BLOCK, one.length - done))
            count = source.read_into(memoryview(data), one.position + done)
            if not count:
                return
            yield bytes(data[:count])
            done += count


def _runs(extents: Sequence[Kept], images: Mapping[Path, Path]) -> Iterator[CopiedRange]:
    """Yield the stretches of the files that extents are in."""
    for extent in extents:
        with LogFile(images.get(extent.path, extent.path)) as log:
            yield CopiedRange(log, extent.position, extent.size)


def _changed(extents: Sequence[Kept], end: int) -> UnreadableError:
    """Return which log is not any more what was read of it, by the end of what still is."""
    for extent in extents:
        if end < extent.size:
            text = f"changed at byte {extent.position + end} while logtool read it"
            return UnreadableError(extent.path, text)
        end -= extent.size
    return UnreadableError(extents[-1].path, "changed while logtool read it")


def _look(extents: Sequence[Kept]) -> FileAttributes | None:
    """Return the attributes of the file of the first extent: retention depends on its mtime."""
    if not extents or files.is_remote(extents[0].path):
        return None
    status = extents[0].path.stat()
    return FileAttributes(
        size=0,
        mtime_ns=status.st_mtime_ns,
        mode=status.st_mode & 0o777,
        user=os.geteuid(),
        group=os.getegid(),
    )
