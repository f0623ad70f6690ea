"""The description of a case file: its first member, ``manifest.json``.

The person who has to approve that a case file is sent reads it with ``logtool case --show``; a
command that takes a case file learns from it where the log dirs are, and which answers are exact.
"""

import json
from dataclasses import asdict, field
from typing import Any

from logtool.errors import FormatError
from logtool.lazy_dataclass import dataclass
from logtool.times import rfc3339

NAME = "manifest.json"
SCHEMA = "logtool.case/1"
LARGEST = 64 * 1024 * 1024
"""Bytes of the largest manifest that is read."""


@dataclass(frozen=True, slots=True)
class CaseDir:
    """A directory that was given, as it stands in the case file."""

    place: str
    """Path in the archive: the log dir, or the directory that was given."""
    given: str
    """Path in the archive of what was given: the log dir or a partition dir in it."""
    node: int | None = None
    """The id in ``ID=DIR``."""


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """Files of one kind."""

    kind: str
    """The kind, such as ``.log`` or ``meta.properties``."""
    treatment: str
    """``whole``, ``headers``, ``masked`` or ``zeros``."""
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file, or batches of it, that the case file does not have as they are."""

    path: str
    """Path in the archive."""
    reason: str
    position: int | None = None
    """First byte of it; None for the whole file."""
    damage: bool = False
    """True for damage; otherwise only the framing of the records of a batch is missing."""


@dataclass(frozen=True, slots=True)
class CaseManifest:
    """Everything that a case file says about itself."""

    version: str
    """Release of logtool that made it."""
    made_ms: int
    dirs: tuple[CaseDir, ...]
    kinds: tuple[CaseFiles, ...]
    files: int
    bytes: int
    """Bytes of all files, which is what they take expanded, holes included."""
    log_bytes: int
    batches: int
    records: int
    replaced: int
    """Batches with another CRC than that of the log."""
    inexact: tuple[LeftOut, ...] = ()
    """Batches whose records, and damage whose bytes, could not be kept as they are."""
    absent: tuple[LeftOut, ...] = ()
    """Files that could not be read, and entries that are no files."""
    names: tuple[str, ...] = field(default=())
    """Topics."""
    renamed: int | None = None
    """Batches with another CRC, because names in them were replaced; None if no name was."""

    @property
    def made(self) -> str | None:
        """Return the time at which it was made as text; None if it is not a date."""
        return rfc3339(self.made_ms)


def encode(manifest: CaseManifest) -> bytes:
    """Return a manifest as JSON."""
    return json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1).encode("ascii")


def parse(data: bytes) -> CaseManifest:
    """Return the manifest in JSON; FormatError for anything else."""
    try:
        raw: dict[str, Any] = json.loads(data)
        if raw.pop("schema") != SCHEMA:
            raise FormatError("the schema of the manifest is not known")
        found = CaseManifest(
            **{
                **raw,
                "dirs": tuple(CaseDir(**one) for one in raw["dirs"]),
                "kinds": tuple(CaseFiles(**one) for one in raw["kinds"]),
                "inexact": tuple(LeftOut(**one) for one in raw["inexact"]),
                "absent": tuple(LeftOut(**one) for one in raw["absent"]),
                "names": tuple(map(str, raw["names"])),
            }
        )
        numbers = (found.files, found.bytes, found.log_bytes, found.batches, found.records,
                   found.replaced, found.made_ms, found.renamed or 0)  # fmt: skip
        if any(type(number) is not int or number < 0 for number in numbers):
            raise FormatError("a number of the manifest is missing")
        return found
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FormatError(f"the manifest cannot be read: {type(error).__name__}") from error
