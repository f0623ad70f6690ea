"""Helpers of the tests of verify: one run, small log dirs, and the places of findings."""

import hashlib
import io
import os
import re
import shutil
import stat
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import metadata_records
import numpy as np
import sparse

from logtool.checks.fast_path import PlainPartitions
from logtool.checks.partition_numbers import numbers_of
from logtool.checks.report import SegmentReport
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.formats import offset_checkpoint, record_batch
from logtool.formats.names import FileKind, parse_partition_file, parse_root_file
from logtool.formats.record_batch import BatchTable
from logtool.gaps.coverage import Coverage
from logtool.log import opening
from logtool.log.batches import read_batches
from logtool.log.dir import Segment
from logtool.log.producer_state import ProducerState
from logtool.metadata import image as metadata_image
from logtool.metadata.image import DIRECTORY
from logtool.running.summary import Summary
from logtool.running.workers import OutOfTimeError, Pace
from logtool.verify import Level, Verification

Place = tuple[str, str, int | None]
"""(code, file name, byte position)."""
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def segment_at(log: Path) -> Segment:
    """Return the segment of a log, as the listing of its directory shows it."""
    (found,) = (one for one in opening.open_partition(log.parent).segments if one.log.path == log)
    return found


@dataclass(frozen=True)
class Outcome:
    """Findings, errors and summary of one run."""

    findings: list[Finding]
    unreadable: list[UnreadableError]
    summary: Summary

    @property
    def places(self) -> Counter[Place]:
        return Counter((f.code, f.path.name if f.path else "", f.position) for f in self.findings)

    @property
    def codes(self) -> Counter[str]:
        return Counter(f.code for f in self.findings)

    @property
    def exit_status(self) -> int:
        return int(self.summary.exit_status())

    def above_info(self) -> list[str]:
        """Return the findings that would make a script fail, as text."""
        return [described(f) for f in self.findings if f.severity is not Severity.INFO]

    def one(self, code: str) -> Finding:
        """Return the only finding of that code."""
        (found,) = (f for f in self.findings if f.code == code)
        return found


class BytesLeft(Pace):
    """A time that is over after a number of bytes, however busy the machine is."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self._left = left

    def spend(self, count: int) -> None:
        with self._lock:
            self._left -= count
        if self._left < 0:
            self.ran_out = True
            raise OutOfTimeError


def ignored(count: int) -> None:
    """Take the number of bytes that were read, and show no progress."""


def described(finding: Finding) -> str:
    return f"{finding.code} {finding.path} {finding.position}: {finding.message}"


def numbers_in(message: str) -> list[int]:
    """Return the whole numbers of a message, in order."""
    return [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", message)]


def has_numbers(message: str, *wanted: int) -> bool:
    """Return whether these numbers stand in a message one after the other."""
    found, size = numbers_in(message), len(wanted)
    return list(wanted) in [found[at : at + size] for at in range(len(found))]


def verify(
    *paths: Path, level: Level = Level.RECORDS, at_rest: bool = True, **options: Any
) -> Outcome:
    """Run verify to its end, and check the rules that every answer keeps to.

    Log dirs without a metadata log are those of a broker that has it in another one. `at_rest` says
    that no one writes to the paths meanwhile.
    """
    if not any(files.has_dir(path / DIRECTORY) for path in paths):
        with_another = ",".join(
            ["/", *(str(path) for path in paths if not isinstance(path, Path) or path.is_dir())]
        )
        own = {"process.roles": "broker", "log.dirs": with_another}
        options["static"] = {**own, **options.get("static", {})}
    run = Verification(paths, level=level, **options)
    items = list(run)
    findings = [item for item in items if isinstance(item, Finding)]
    unreadable = [item for item in items if isinstance(item, UnreadableError)]
    for finding in findings:
        assert finding.path is not None, finding
        assert finding.message
        assert "\n" not in finding.message, finding
        assert finding.position is None or finding.position >= 0, finding
        assert finding.length is None or finding.length >= 0, finding
    assert run.summary.complete == (not unreadable and not run.summary.out_of_time)
    # Where a broker is at work, a later look is at other files.
    if at_rest and all(finding.code != "data-dir/in-use" for finding in findings):
        hold_quick_look(paths, findings)
    return Outcome(findings, unreadable, run.summary)


BEYOND = ("batch/record", "batch/codec", "batch/max-timestamp", "batch/too-large",
          "batch/timestamp", "partition-metadata/topic-id")  # fmt: skip
"""Findings that need the level of records, the settings of a topic, or another partition."""


def hold_quick_look(paths: Iterable[Path], findings: Iterable[Finding]) -> list[Path]:
    """Check that nothing was found in what a quick look takes for plain; returns what that is."""
    looks = PlainPartitions()
    homes = [entry for path in paths for entry in (path, *entries_of(path))]
    plain = [home for home in homes if looks.look(home, 0, None) and _is_counted(looks, home)]
    for finding in findings:
        more = finding.code.startswith(BEYOND)
        place = finding.path.parent if finding.path else None
        assert more or place not in plain, described(finding)
    return plain


def _is_counted(looks: PlainPartitions, home: Path) -> bool:
    """Check that the last look has the numbers that a listing has."""
    assert looks.files.numbers == numbers_of(opening.open_partition(home)), home
    return True


def entries_of(path: Path) -> list[Path]:
    """Return the entries of a local directory; [] for any other path."""
    return list(path.iterdir()) if isinstance(path, Path) and path.is_dir() else []


_DIGESTS: dict[tuple[int, ...], str] = {}
"""SHA-256 by device, inode, size and times of files that have been as they are for a while."""
_SETTLED_NS = 50_000_000
"""Age of the newest time of a file from which on a write to it gives it another time."""


def fingerprint(path: Path) -> dict[str, tuple[int, int, int, str]]:
    """Return mode, time, size and SHA-256 of everything under a path, by its relative name."""
    found = {}
    waiting = [(os.fsencode(path), b"")]
    while waiting:
        place, name = waiting.pop()
        status = os.lstat(place)
        digest = _digest(place, status) if stat.S_ISREG(status.st_mode) else ""
        found[(name or b".").hex()] = (status.st_mode, status.st_mtime_ns, status.st_size, digest)
        if stat.S_ISDIR(status.st_mode) and os.access(place, os.R_OK | os.X_OK):
            inside = name + b"/" if name else b""
            with os.scandir(place) as entries:
                waiting += [(entry.path, inside + entry.name) for entry in entries]
    return found


def _digest(place: bytes, status: os.stat_result) -> str:
    """Return the SHA-256 of a file; that of an earlier call if its change time is the same."""
    if not os.access(place, os.R_OK):
        return ""
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    digest = _DIGESTS.get(key)
    if digest is None:
        digest = _digest_of_content(place, status.st_size)
        if time.time_ns() - status.st_ctime_ns > _SETTLED_NS:
            _DIGESTS[key] = digest
    return digest


_BLOCK = 1 << 16
_ZEROS = bytes(_BLOCK)


def _digest_of_content(place: bytes, size: int) -> str:
    """Return the digest of a file, see `digest_of`; the holes of a large one are not read."""
    with Path(os.fsdecode(place)).open("rb", buffering=0) as file:
        if size <= _BLOCK:
            return digest_of([(0, file.read())])
        return digest_of(_blocks(file, size))


def digest_of(blocks: Iterable[tuple[int, bytes]]) -> str:
    """Return the SHA-256 of the blocks of 64 KiB of a file that are not zeros, with their places.

    Files of one size that have the same digest are equal.
    """
    found = hashlib.sha256()
    for at, block in blocks:
        if block != _ZEROS[: len(block)]:
            found.update(at.to_bytes(8) + block)
    return found.hexdigest()


def blocks_of(data: bytes) -> Iterable[tuple[int, bytes]]:
    """Return the blocks of the content of a file for `digest_of`."""
    return ((at, data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK))


def _blocks(file: io.FileIO, size: int) -> Iterable[tuple[int, bytes]]:
    """Yield the blocks that are not in holes, which preallocated indexes of 10 MiB are full of."""
    at = 0
    while at < size:
        try:
            at = os.lseek(file.fileno(), at, os.SEEK_DATA) // _BLOCK * _BLOCK
        except OSError:  # only a hole follows
            return
        file.seek(at)
        block = file.read(_BLOCK)
        if not block:
            return
        yield at, block
        at += _BLOCK


def small_log_dir(source: Path, target: Path, *partitions: str) -> Path:
    """Copy the files of a log dir's root and the named partitions, with no rows of others.

    A metadata log among them gives all other partitions to another node in its last batch.
    """
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.is_file():
            shutil.copy2(entry, target)
        elif entry.name in partitions:
            sparse.copytree(entry, target / entry.name)
    for name in CHECKPOINTS:
        path = target / name
        if path.exists() and path.stat().st_size:
            offsets = offset_checkpoint.parse(path.read_bytes()).offsets
            kept = {key: at for key, at in offsets.items() if f"{key[0]}-{key[1]}" in partitions}
            rewrite(path, offset_checkpoint.encode(offset_checkpoint.build(kept)))
    if (target / DIRECTORY).is_dir():
        give_away(target / DIRECTORY, partitions)
    return target


def give_away(metadata_log: Path, kept: Sequence[str]) -> None:
    """Append a batch that gives all partitions but the named ones to another node."""
    image = metadata_image.read(metadata_log)
    other, no_dir = metadata_records.numbers(9), metadata_records.uuid("A" * 22)
    tags = {0: other, 1: metadata_records.int32(9), 2: other, 8: metadata_records.array(no_dir)}
    values = [
        metadata_records.change(topic_id, number, tags)
        for topic_id, of_topic in image.partitions.items()
        for number in of_topic
        if f"{image.names[topic_id]}-{number}" not in kept
    ]
    if not values:
        return
    batch = bytearray(metadata_records.batch(image.offset, *values))
    batch[12:16] = image.epoch.to_bytes(4, "big")  # The CRC does not cover the leader epoch.
    log = max(metadata_log.glob("*.log"))
    rewrite(log, log.read_bytes() + bytes(batch))


def rewrite(path: Path, data: bytes) -> None:
    """Give a file another content and leave its times alone."""
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def set_offsets(path: Path, offsets: Mapping[tuple[str, int], int]) -> None:
    """Change rows of an offset checkpoint, or add them."""
    rows = offset_checkpoint.parse(path.read_bytes()).offsets | dict(offsets)
    rewrite(path, offset_checkpoint.encode(offset_checkpoint.build(rows)))


def batches(log: Path) -> BatchTable:
    """Return the table of the sound batches of a ``.log``."""
    with files.LogFile(log) as source:
        tables = [chunk.table for chunk in read_batches(source, base_offset=int(log.name[:20]))]
    return record_batch.concat(tables)


def logs(directory: Path) -> list[Path]:
    """Return the ``.log`` files of a partition, oldest first."""
    return [segment.log.path for segment in opening.open_partition(directory).segments]


def kind_of(path: Path) -> FileKind:
    """Return the kind of a file by its name, in a partition or in the root."""
    kind = parse_partition_file(path.name).kind
    return kind if kind is not FileKind.UNKNOWN else parse_root_file(path.name).kind


def log_dirs(home: Path) -> list[Path]:
    """Return the log dirs of a scenario: the folder itself, or those in it."""
    inner = sorted(path.parent for path in home.glob("*/meta.properties"))
    return inner or [home]


def plain_files(directory: Path) -> Iterable[Path]:
    return (path for path in sorted(directory.rglob("*")) if path.is_file())


def as_data(value: object) -> object:
    """Return plain data that can be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value):
        return {field.name: as_data(getattr(value, field.name)) for field in fields(value)}
    return value


Looked = TypeVar("Looked", SegmentReport, Coverage)


def assert_same(report: Looked, whole: Looked) -> None:
    """Both say the same, and their rows of producers lead to the same state."""
    for field in fields(whole):
        if field.name != "producer_rows":
            one, other = getattr(report, field.name), getattr(whole, field.name)
            assert as_data(one) == as_data(other), field.name
    outcomes = []
    for one in (report, whole):
        state = ProducerState()
        outcomes.append((state.apply(one.producer_rows)[0], state))
    assert outcomes[0] == outcomes[1]
