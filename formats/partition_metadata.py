"""The partition metadata (``partition.metadata``): the id of the topic.

Two lines of UTF-8, written without a line end after the second::

    version: 0
    topic_id: J8aAPcfLQt2bqs1JT_rMgQ

Higher versions are read too, so that a downgrade works. Kafka up to 4.0 ignores what stands before
the colon, later versions insist on the two words. What follows line 2 is ignored. Source:
``PartitionMetadataFile``, ``PartitionMetadataReadBuffer`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

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

KEYS = ("version", "topic_id")
LOWEST_VERSION = 0

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


def check(metadata: PartitionMetadata) -> Iterator[Finding]:
    """Yield every broken rule, in file order."""
    forms = ("'version: <number>'", "'topic_id: <UUID of 22 characters>'")
    values = (metadata.version, metadata.topic_id)
    for number, (key, form, value) in enumerate(zip(KEYS, forms, values, strict=True)):
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
