"""A digest: the scan of all partitions of one replica in a file, to be compared elsewhere.

A zip of arrays, as ``numpy.savez`` writes it and ``numpy.load`` reads it, some 30 bytes a batch::

    header.json   {"schema": "logtool.digest/2", "columns": [NAME, ...], "path": "...",
                   "partitions": [{"topic", "partition", "path", "node", "topic_id", "log_start",
                                   "log_end", "segments", "bytes", "high_watermark",
                                   "cleaner_offset", "epochs": [[epoch, offset], ...],
                                   "damages": [{...}], "batches": COUNT, "number": N,
                                   "blocks": COUNT}, ...]}
    N-B.npy       int64, one row for each column, of block B, from 0 on, of the batches of the
                  partition with number N

The first version, "logtool.digest/1", has all batches of partition N, from 0 on, in N.npy; it can
be read too. A digest holds offsets, epochs, CRCs, sizes, counts and producers, but no records. The
header is written last, so that an unfinished file has no header.
"""

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from logtool.apply import outside, unfinished
from logtool.copies.batches import COLUMNS, NOTHING, CopyBatches, CopyPart, DamagedRange
from logtool.copies.copy import Copy, CopyReading
from logtool.disk import files
from logtool.errors import RefusedError, UnreadableError, UnwritableError
from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass

T = TypeVar("T")
SCHEMA, _FIRST_SCHEMA = "logtool.digest/2", "logtool.digest/1"
_HEADER = "header.json"
_FIELDS = ("topic", "partition", "path", "node", "topic_id", "log_start", "log_end", "segments",
           "bytes", "high_watermark", "cleaner_offset")  # fmt: skip
_PLACE = ("topic", "partition", "path", "node", "topic_id", "high_watermark", "cleaner_offset")
_MOST_HEADER = 1 << 30
_BROKEN = (OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError, EOFError,
           MemoryError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)  # fmt: skip
"""Exceptions of the libraries for a file that is not a digest file, or is damaged."""


class DigestWriter:
    """Writer of a digest; the file gets its name only when the context ends without an error."""

    def __init__(self, path: Path, source: Path) -> None:
        self._path = path
        self._source = source
        self._partitions: list[dict[str, Any]] = []
        self._begun = 0
        """Number of copies that were begun, including those that were given up."""
        self._context = self._opened()
        self._zip: zipfile.ZipFile | None = None

    def __enter__(self) -> "DigestWriter":
        check_place(self._path)
        self._context.__enter__()
        return self

    def copy(self) -> "SavedCopy":
        """Return a writer for the next copy; several copies may be written at the same time."""
        self._begun += 1
        return SavedCopy(self, self._begun - 1)

    def write(self, name: str, block: CopyBatches) -> None:
        """Write a block under its own name."""
        if self._zip is None:
            raise ValueError("the digest is not open")
        columns = np.stack([getattr(block, name) for name in COLUMNS])
        try:
            with self._zip.open(name, "w", force_zip64=True) as out:
                np.lib.format.write_array(out, columns, allow_pickle=False)
        except OSError as error:
            raise UnwritableError(self._path, error.strerror or str(error)) from error

    def add(self, copy: Copy, saved: "SavedCopy") -> None:
        """Add a copy whose blocks were all written."""
        self._partitions.append(
            {name: getattr(copy, name) for name in _FIELDS}
            | {"epochs": copy.epochs, "damages": [asdict(damage) for damage in copy.damages]}
            | {"batches": copy.tally.batches, "number": saved.number, "blocks": saved.blocks}
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._context.__exit__(kind, error, trace)
        except OSError as problem:
            raise UnwritableError(self._path, problem.strerror or str(problem)) from problem

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with (
            unfinished.new_file(self._path) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as self._zip,
        ):
            yield
            header = {
                "schema": SCHEMA,
                "columns": COLUMNS,
                "path": str(self._source),
                "partitions": self._partitions,
            }
            self._zip.writestr(_HEADER, json.dumps(header))


class SavedCopy:
    """The blocks of one copy in a digest."""

    def __init__(self, writer: DigestWriter, number: int) -> None:
        self._writer = writer
        self.number, self.blocks = number, 0

    def keeping(self, blocks: Iterable[CopyBatches]) -> Iterator[CopyBatches]:
        """Yield blocks, and write each of them."""
        for block in blocks:
            self._writer.write(f"{self.number}-{self.blocks}.npy", block)
            self.blocks += 1
            yield block


def check_place(path: Path) -> None:
    """Raise RefusedError for a file that exists, or that would lie among files of a broker."""
    if os.path.lexists(path):
        raise RefusedError(f"{path}: already exists; logtool does not overwrite it")
    real = path.parent.resolve() / path.name
    for parent in real.parents:
        if outside.belongs_to_broker(parent):
            raise RefusedError(f"{path}: is inside {parent}, which holds files of a broker")


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest that was opened; its content is read partition by partition."""

    path: Path
    partitions: tuple[dict[str, Any], ...]
    in_blocks: bool = True
    """True unless it is of the first version."""

    def reading(
        self, number: int, key: TopicPartition | None = None, node: int | None = None
    ) -> CopyReading:
        """Return one partition; reading it raises UnreadableError if the file is broken.

        `key` and `node`, if given, replace the topic and partition, and the node, in the digest.
        """
        place = self.partitions[number]
        epochs = _guarded(
            self.path, lambda: tuple((int(epoch), int(at)) for epoch, at in place["epochs"])
        )
        damages = tuple(DamagedRange(**damage) for damage in place["damages"])
        return CopyReading(
            {name: place[name] for name in _PLACE}
            | {"epochs": epochs}
            | ({"topic": key[0], "partition": key[1]} if key else {})
            | ({} if node is None else {"node": node}),
            self._parts(number),
            segments=place["segments"],
            log_start=place["log_start"],
            least_end=place["log_end"],
            damages=damages,
        )

    def _parts(self, number: int) -> Iterator[CopyPart]:
        place, end = self.partitions[number], -1
        yield CopyPart(NOTHING, size=place["bytes"])
        names: Iterable[str] = [f"{number}.npy"]
        if self.in_blocks:
            names = (f"{place['number']}-{block}.npy" for block in range(place["blocks"]))
        left = place["batches"]
        with _opened(self.path) as archive:
            for name in names:
                batches = _guarded(self.path, partial(_block, archive, name))
                left -= len(batches)
                if len(batches):
                    if int(batches.base_offset[0]) <= end:
                        raise _no_digest(self.path, ValueError("offsets that do not increase"))
                    end = int(batches.last_offset[-1])
                    yield CopyPart(batches)
        if left:
            raise _no_digest(self.path, ValueError(f"{left} batches fewer than the header counts"))


def _block(archive: zipfile.ZipFile, name: str) -> CopyBatches:
    with archive.open(name) as data:
        columns = np.lib.format.read_array(data, allow_pickle=False)
    if columns.dtype != np.int64 or columns.ndim != 2 or len(columns) != len(COLUMNS):
        raise ValueError(f"array of {columns.dtype} {columns.shape}")
    batches = CopyBatches(*np.ascontiguousarray(columns))
    if (batches.base_offset[1:] <= batches.last_offset[:-1]).any():
        raise ValueError("offsets that do not increase")
    return batches


def _guarded(path: Path, work: Callable[[], T]) -> T:
    """Return the result of `work`; its errors for a broken file become UnreadableError."""
    try:
        return work()
    except _BROKEN as error:
        raise _no_digest(path, error) from error


def read(path: Path) -> Digest:
    """Open a digest; UnreadableError for any other file."""
    with _opened(path) as archive:
        try:
            if archive.getinfo(_HEADER).file_size > _MOST_HEADER:
                raise ValueError("the header is too large")
            header = json.loads(archive.read(_HEADER))
            if (
                header["schema"] not in (SCHEMA, _FIRST_SCHEMA)
                or tuple(header["columns"]) != COLUMNS
            ):
                raise ValueError(f"schema {header['schema']!r}")
            in_blocks = header["schema"] == SCHEMA
            places = [_checked(place) for place in header["partitions"]]
            places = [_in_blocks(place) for place in places] if in_blocks else places
            return Digest(path, tuple(places), in_blocks)
        except _BROKEN as error:
            raise _no_digest(path, error) from error


def _checked(place: dict[str, Any]) -> dict[str, Any]:
    """Return the place of a partition if its required fields have the right types."""
    for name in ("partition", "log_start", "log_end", "segments", "bytes", "batches"):
        if type(place[name]) is not int:
            raise ValueError(f"{name} is {place[name]!r}")
    for name in ("node", "high_watermark", "cleaner_offset"):
        if not isinstance(place[name], int | None):
            raise ValueError(f"{name} is {place[name]!r}")
    if not (isinstance(place["topic"], str) and isinstance(place["path"], str)):
        raise ValueError(f"topic is {place['topic']!r}")
    if not isinstance(place["topic_id"], str | None):
        raise ValueError(f"topic_id is {place['topic_id']!r}")
    for damage in place["damages"]:
        _check_damage(DamagedRange(**damage))
    return place


def _in_blocks(place: dict[str, Any]) -> dict[str, Any]:
    """Return the place of a partition if it has the fields of its blocks."""
    for name in ("number", "blocks"):
        if type(place[name]) is not int or place[name] < 0:
            raise ValueError(f"{name} is {place[name]!r}")
    return place


def _check_damage(damage: DamagedRange) -> None:
    numbers = damage.segment, damage.position, damage.length, damage.first_offset
    texts = damage.reason, damage.message
    if not (
        all(type(number) is int for number in numbers)
        and isinstance(damage.last_offset, int | None)
        and all(isinstance(text, str) for text in texts)
    ):
        raise ValueError(f"damage is {damage!r}")


class _OpenDigest:
    """An open zip, opened read-only as all inputs are."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> zipfile.ZipFile:
        self._file = os.fdopen(files.open_readonly(self._path), "rb")
        try:
            self._zip = zipfile.ZipFile(self._file)
        except _BROKEN as error:
            self._file.close()
            raise _no_digest(self._path, error) from error
        return self._zip

    def __exit__(self, *error: object) -> None:
        self._zip.close()
        self._file.close()


def _opened(path: Path) -> _OpenDigest:
    return _OpenDigest(path)


def _no_digest(path: Path, error: BaseException) -> UnreadableError:
    return UnreadableError(path, f"is not a log dir, a partition dir or a sound digest ({error})")
