"""Fingerprints of partitions: a hash of their batches, to be kept and compared later.

The hash does not depend on the segments that hold the batches, on indexes or on checkpoints. It is
the SHA-256 of four little-endian int64 for each sound batch in the order of the log: base offset,
last offset, leader epoch, CRC.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from logtool.copies.batches import CopyBatches
from logtool.copies.copy import CopyReading
from logtool.copies.copy_readers import Blocks, side_by_side
from logtool.copies.sources import ListedCopy, find
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.names import DirectoryKind, PartitionDirectory, TopicPartition
from logtool.formats.record_batch import records_of_each
from logtool.lazy_dataclass import dataclass
from logtool.log.flavour import Flavour
from logtool.log.inputs import NodeDir
from logtool.log.selection import Selection
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError

_HASHED = ("base_offset", "last_offset", "leader_epoch", "crc")
_TYPE = "fingerprint"
_KEPT_FIELDS = {"topic": str, "partition": int, "first_offset": int, "last_offset": int,
                "batches": int, "sha256": str}  # fmt: skip


class FingerprintStatus(StrEnum):
    """Results of the comparison of a partition with a kept fingerprint."""

    SAME = "same"
    """It has exactly the batches of the kept fingerprint."""
    LONGER = "longer"
    """It has these batches, and later ones."""
    NEW = "new"
    """No fingerprint of it was kept."""
    SHORTER = "shorter"
    """It ends before the last kept offset."""
    BEGINS_LATER = "begins-later"
    """It begins behind the first kept offset, so that the hash cannot be compared."""
    CHANGED = "changed"
    """It has other batches at the offsets of the kept fingerprint."""
    OTHER_TOPIC = "other-topic-id"
    """It is of a topic with the same name and another id."""
    ABSENT = "absent"
    """There is no such partition."""
    UNREAD = "unread"
    """A part of it could not be read, and the hash lacks the batches there."""

    @property
    def is_grave(self) -> bool:
        """Return whether batches of the kept fingerprint are not here, as far as can be known."""
        return self not in (self.SAME, self.LONGER, self.NEW, self.UNREAD)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of one partition."""

    topic: str
    partition: int
    path: str | None = None
    """Its directory; None for a partition that is absent."""
    topic_id: str | None = None
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    first_offset: int | None = None
    """Base offset of the first batch; None without a batch."""
    last_offset: int | None = None
    """Last offset of the last batch; None without a batch."""
    batches: int = 0
    records: int = 0
    sha256: str | None = None
    damaged_ranges: int = 0
    unread: bool = False
    """True if a part of the log could not be read, so that the hash lacks batches."""
    status: FingerprintStatus | None = None
    """The result of the comparison; None if there is nothing to compare with."""
    kept: "Fingerprint | None" = field(default=None, repr=False)
    """The kept fingerprint."""

    @property
    def key(self) -> TopicPartition:
        """Return the topic and the number of the partition."""
        return self.topic, self.partition

    @property
    def kept_last_offset(self) -> int | None:
        """Return the last offset of the kept fingerprint."""
        return self.kept.last_offset if self.kept else None

    @property
    def kept_sha256(self) -> str | None:
        """Return the hash of the kept fingerprint."""
        return self.kept.sha256 if self.kept else None


class Fingerprints:
    """One run: iterate for the fingerprint of each partition, and for what cannot be read."""

    def __init__(
        self,
        sources: Sequence[NodeDir],
        *,
        selection: Selection | None = None,
        run: Run | None = None,
        kept: Sequence[Fingerprint] | None = None,
        flavour: Flavour | None = None,
    ) -> None:
        """Prepare a run; with `kept` the partitions are compared with these fingerprints."""
        self._sources, self._flavour = sources, flavour
        self._selection = selection or Selection()
        self._run = run or Run()
        self._kept = None if kept is None else {one.key: one for one in kept}

    def __iter__(self) -> Iterator[Fingerprint | UnreadableError]:
        copies: list[ListedCopy] = []
        unread: list[Path] = []
        is_listed = True
        for source in self._sources:
            try:
                for one in find(source.path, source.node, self._selection, flavour=self._flavour):
                    if isinstance(one, UnreadableError):
                        unread.append(one.path)
                        yield one
                    else:
                        copies.append(one)
            except UnreadableError as error:
                is_listed = False
                yield error
        self._run.bytes_total = sum(segment.log.size for one in copies for segment in one.segments)
        try:
            for copy in sorted(copies, key=lambda one: (one.key, one.path)):
                found = yield from side_by_side([copy], self._run, self._fingerprint)
                if found:
                    yield found
        except OutOfTimeError:
            return
        if is_listed and not (copies and all(copy.given for copy in copies)):
            yield from self._missing({copy.key for copy in copies}, unread)

    def _fingerprint(
        self, listed: Sequence[ListedCopy], readings: Sequence[CopyReading], blocks: Blocks
    ) -> Fingerprint:
        if self._kept is None:
            return fingerprint_of(readings[0], blocks[0])
        kept = self._kept.get(listed[0].key)
        found = fingerprint_of(readings[0], blocks[0], kept.last_offset if kept else None)
        return replace(found, kept=kept, status=_status(found, kept))

    def _missing(self, seen: set[TopicPartition], unread: list[Path]) -> Iterator[Fingerprint]:
        """Yield the kept partitions that were not seen; `unread` has the paths of unread dirs."""
        for key, kept in sorted((self._kept or {}).items()):
            directory = PartitionDirectory("", DirectoryKind.LIVE, *key, None, exact=True)
            if key not in seen and self._selection.takes(directory):
                is_unread = any(_is_dir_of(path, *key) for path in unread)
                status = FingerprintStatus.UNREAD if is_unread else FingerprintStatus.ABSENT
                yield Fingerprint(*key, status=status, kept=kept, unread=is_unread)


def _is_dir_of(path: Path, topic: str, partition: int) -> bool:
    """Return whether this is the partition dir, by the names of Kafka or of Redpanda."""
    if path.name == f"{topic}-{partition}":
        return True
    return path.parent.name == topic and path.name.startswith(f"{partition}_")


def fingerprint_of(
    reading: CopyReading, blocks: Iterable[CopyBatches], until: int | None = None
) -> Fingerprint:
    """Return the fingerprint of a copy, whose `blocks` are read to their end.

    With `until` the hash and the counts end with the batch that holds this offset.
    """
    digest = hashlib.sha256()
    first: int | None = None
    last: int | None = None
    batches = records = 0
    for block in blocks:
        taken = block if until is None else block[block.base_offset <= until]
        if not len(taken):
            continue
        first = int(taken.base_offset[0]) if first is None else first
        last = int(taken.last_offset[-1])
        rows = np.stack([getattr(taken, name) for name in _HASHED], axis=1)
        digest.update(rows.astype("<i8").tobytes())
        batches += len(taken)
        records += int(records_of_each(taken.record_count, taken.magic).sum())
    copy = reading.copy
    return Fingerprint(
        topic=copy.topic,
        partition=copy.partition,
        path=copy.path,
        topic_id=copy.topic_id,
        log_start_offset=copy.log_start,
        log_end_offset=copy.log_end,
        first_offset=first,
        last_offset=last,
        batches=batches,
        records=records,
        sha256=digest.hexdigest(),
        damaged_ranges=0 if copy.is_unread else copy.damaged_ranges,
        unread=copy.is_unread,
    )


def _status(found: Fingerprint, kept: Fingerprint | None) -> FingerprintStatus:
    """Return the result for a fingerprint that was taken up to the end of the kept one."""
    if kept is None:
        return FingerprintStatus.NEW
    if kept.topic_id and found.topic_id and kept.topic_id != found.topic_id:
        return FingerprintStatus.OTHER_TOPIC
    if found.unread and found.sha256 != kept.sha256:
        return FingerprintStatus.UNREAD
    end = (found.log_end_offset or 0) - 1
    if kept.first_offset is None or kept.last_offset is None:
        return FingerprintStatus.LONGER if found.batches else FingerprintStatus.SAME
    if end < kept.last_offset:
        return FingerprintStatus.SHORTER
    if found.first_offset is None or found.first_offset > kept.first_offset:
        return FingerprintStatus.BEGINS_LATER
    if found.sha256 != kept.sha256:
        return FingerprintStatus.CHANGED
    return FingerprintStatus.LONGER if end > kept.last_offset else FingerprintStatus.SAME


def parse(path: Path) -> list[Fingerprint]:
    """Return the fingerprints in a file of `diff --fingerprint`, NDJSON or JSON.

    UnreadableError if the file cannot be read, or holds anything else.
    """
    data = files.read_small(path)
    try:
        found = [_parsed(one) for one in _objects(data.decode("utf-8")) if one["type"] == _TYPE]
    except (ValueError, LookupError, TypeError) as error:
        reason = "not a file of logtool diff --fingerprint in NDJSON or JSON"
        raise UnreadableError(path, f"{reason}: {error}") from error
    if not found:
        raise UnreadableError(path, "holds no fingerprint")
    return found


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of a JSON document, or of lines; ValueError, LookupError, TypeError."""
    try:
        document = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return [document] if "items" not in document else list(document["items"])


def _parsed(one: dict[str, Any]) -> Fingerprint:
    for name, kind in _KEPT_FIELDS.items():
        is_empty = one[name] is None and name.endswith("_offset")
        if not (is_empty or (isinstance(one[name], kind) and not isinstance(one[name], bool))):
            raise ValueError(f"{name} is {one[name]!r}")
    names = (*_KEPT_FIELDS, "topic_id", "path", "log_start_offset", "log_end_offset", "records")
    return Fingerprint(**{name: one[name] for name in names})
