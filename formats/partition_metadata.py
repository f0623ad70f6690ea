"""The partition metadata (``partition.metadata``): the id of the topic.

Two lines of UTF-8, written without a line end after the second::

    version: 0
    topic_id: J8aAPcfLQt2bqs1JT_rMgQ

Higher versions are read too, so that a downgrade works, but not by Kafka 3.3. What stands before
the colon is ignored up to 4.3, and so is what follows line 2. Source:
``PartitionMetadataFile``, ``PartitionMetadataReadBuffer`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

import re
from collections.abc import Iterator

from logtool.findings import Finding
from logtool.formats.java_text import (
    SPACE,
    ZERO_UUID,
    Line,
    parse_int,
    parse_uuid,
    split,
    split_lines,
)
from logtool.formats.refusal import Refusal
from logtool.lazy_dataclass import dataclass

KEYS = ("version", "topic_id")
LOWEST_VERSION = 0

_ONLY_VERSION_0 = (3, 3)
"""The newest release known to take no other version."""
_FORMS = ("'version: <number>'", "'topic_id: <UUID of 22 characters>'")
_COLON = re.compile(f":{SPACE}+")


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """The lines of the file and what the first two say."""

    lines: tuple[Line, ...]
    """Every line with its bytes: the whole file."""
    version: int | None
    """None where line 1 cannot be read."""
    topic_id: str | None
    """The UUID in the 22 characters Kafka prints; None where line 2 cannot be read."""


def parse(data: bytes) -> PartitionMetadata:
    """Split `data` into lines and read the first two. Never fails; see `check`."""
    lines = split_lines(data)
    version = _value(lines[:1])
    topic_id = _value(lines[1:2])
    return PartitionMetadata(
        lines,
        version=None if version is None else parse_int(version),
        topic_id=None if topic_id is None else parse_uuid(topic_id),
    )


def encode(metadata: PartitionMetadata) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return b"".join(line.raw for line in metadata.lines)


def build(topic_id: str) -> PartitionMetadata:
    """Return the file that a broker writes for a topic id of 22 characters."""
    return parse(f"version: {LOWEST_VERSION}\ntopic_id: {topic_id}".encode())


def check(metadata: PartitionMetadata) -> Iterator[Finding]:
    """Yield every broken rule, in file order; only one if the file is empty."""
    if not metadata.lines:
        text = "the file is empty, expected a version and a topic id"
        yield Finding("partition-metadata/malformed", text, position=0, length=0)
        return
    values = (metadata.version, metadata.topic_id)
    for number, (key, form, value) in enumerate(zip(KEYS, _FORMS, values, strict=True)):
        if number >= len(metadata.lines):
            size = len(encode(metadata))
            yield Finding(
                "partition-metadata/malformed",
                f"line {number + 1}: expected {form}, found the end of the file",
                position=size,
                length=0,
            )
            continue
        line = metadata.lines[number]
        if value is None:
            yield _finding("malformed", line, form)
        elif not (line.text or "").startswith(f"{key}:"):
            yield _finding("key", line, form)
    if metadata.version is not None and metadata.version < LOWEST_VERSION:
        yield _finding("version", metadata.lines[0], f"a version of at least {LOWEST_VERSION}")
    if metadata.topic_id == ZERO_UUID:
        yield _finding("zero-id", metadata.lines[1], "a topic id other than zero")


def refusal(metadata: PartitionMetadata, kafka: tuple[int, int]) -> Refusal | None:
    """Return where the reader of a release gives up; None where it takes the file.

    A line that is not there and an id that is no UUID are no I/O errors. Source:
    ``PartitionMetadataReadBuffer`` (Kafka 3.3 to 4.3; 3.3 takes version 0 only).
    """
    for line in metadata.lines:
        # Characters are decoded ahead of the lines.
        if line.text is None:
            return _refused(line, "UTF-8", is_io_error=True)
    for number, form in enumerate(_FORMS):
        if number >= len(metadata.lines):
            text = f"line {number + 1}: expected {form}, found the end of the file"
            return Refusal(text, len(encode(metadata)), is_io_error=False)
        line = metadata.lines[number]
        if _value((line,)) is None or (number == 0 and metadata.version is None):
            return _refused(line, form, is_io_error=True)
        if number == 0 and (metadata.version or 0) < LOWEST_VERSION:
            return _refused(line, f"a version of at least {LOWEST_VERSION}", is_io_error=True)
        if number == 0 and metadata.version and kafka <= _ONLY_VERSION_0:
            return _refused(line, "version 0", is_io_error=True)
    if metadata.topic_id is None:
        return _refused(metadata.lines[1], _FORMS[1], is_io_error=False)
    if metadata.topic_id == ZERO_UUID:
        return _refused(metadata.lines[1], "a topic id other than zero", is_io_error=True)
    return None


def _refused(line: Line, expected: str, *, is_io_error: bool) -> Refusal:
    text = f"line {line.number}: expected {expected}, found {line.quoted}"
    return Refusal(text, line.position, is_io_error)


def _value(lines: tuple[Line, ...]) -> str | None:
    text = lines[0].text if lines else None
    parts = [] if text is None else split(text, _COLON)
    return parts[1] if len(parts) == 2 else None


def _finding(rule: str, line: Line, expected: str) -> Finding:
    return Finding(
        f"partition-metadata/{rule}",
        f"line {line.number}: expected {expected}, found {line.quoted}",
        position=line.position,
        length=len(line.raw),
    )
