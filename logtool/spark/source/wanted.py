"""The rows that are wanted: by partition, offset and time, as the options give them.

The filter decides which rows are returned, not only which bytes are read: each row is held against
all conditions, even where names and indexes could not leave it out.
"""

import json
from collections.abc import Mapping
from math import inf
from typing import Any, Final

from logtool.errors import UsageError
from logtool.formats import names
from logtool.formats.names import PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import OffsetTimeRange, Selection

EARLIEST: Final = -2
LATEST: Final = -1
"""Kafka's words for the start and the end of a log, where a JSON document gives offsets."""


EVERY_PARTITION: Final = Selection()
Offsets = int | Mapping[str, Mapping[int, int]]
"""One offset for every partition, or one for each by topic and number."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The partitions, offsets and times that are wanted of log dirs."""

    selection: Selection = EVERY_PARTITION
    starting_offsets: Offsets = EARLIEST
    """Included."""
    ending_offsets: Offsets = LATEST
    """Not included, as in Kafka."""
    starting_timestamp: int | None = None
    """Milliseconds, included."""
    ending_timestamp: int | None = None
    """Milliseconds, not included."""

    def takes(self, directory: str | None) -> bool:
        """Return whether a directory is wanted by its name; one of no partition only with all."""
        found = names.parse_directory(directory or "")
        if not isinstance(found, PartitionDirectory):
            return self.selection == EVERY_PARTITION
        return self.selection.takes(found)

    def span(self, topic: str | None, partition: int | None) -> OffsetTimeRange:
        """Return the offsets and times wanted of a partition; UsageError if it has no offset."""
        first = _offset_of("startingOffsets", self.starting_offsets, topic, partition)
        end = _offset_of("endingOffsets", self.ending_offsets, topic, partition)
        since, until = self.starting_timestamp, self.ending_timestamp
        return OffsetTimeRange(
            first=-inf if first == EARLIEST else inf if first == LATEST else first,
            last=inf if end == LATEST else -inf if end == EARLIEST else end - 1,
            since=-inf if since is None else since,
            until=inf if until is None else until - 1,
        )


EVERYTHING: Final = RowFilter()


def parse_offsets(option: str, text: str) -> Offsets:
    """Parse the value of startingOffsets or endingOffsets; UsageError if it makes no sense."""
    default = {"earliest": EARLIEST, "latest": LATEST}
    plain = text.strip()
    if plain.lower() in default:
        return default[plain.lower()]
    if plain.isdecimal():
        return int(plain)
    try:
        found = json.loads(plain)
        return {
            str(topic): {_number(number): _offset(offset) for number, offset in some.items()}
            for topic, some in found.items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        example = '{"orders":{"0":23,"1":-2}}'
        raise UsageError(
            f"option {option}: expected earliest, latest, one offset for all partitions, or one "
            f"for each as JSON, such as {example}; found {text!r}"
        ) from error


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def _offset(value: Any) -> int:
    if type(value) is not int or value < EARLIEST:
        raise ValueError(value)
    return value


def _offset_of(option: str, offsets: Offsets, topic: str | None, partition: int | None) -> int:
    if isinstance(offsets, int):
        return offsets
    found = offsets.get(topic or "", {}).get(-1 if partition is None else partition)
    if found is None:
        raise UsageError(
            f"option {option} has no offset for {topic}-{partition}: add one (-2 is the "
            "start of the log, -1 its end), or exclude the partition with the options "
            "topic and partition"
        )
    return found
