"""The rows that are wanted: by partition, offset and time, as the options give them.

The filter decides which rows are returned, not only which bytes are read: each row is held against
all conditions, even where names and indexes could not leave it out.
"""

import json
import re
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final

from logtool.errors import UsageError
from logtool.formats import names
from logtool.formats.names import PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import OffsetTimeRange, Selection

if TYPE_CHECKING:
    from logtool.spark.source.kafka_options import Times

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
    topic_pattern: str | None = None
    """Regular expression of whole names of topics."""
    times: "Times | None" = None
    """Times that a broker would turn into offsets; they count more than the offsets here."""

    @property
    def takes_all(self) -> bool:
        """Return whether every partition is wanted."""
        return self.selection == EVERY_PARTITION and self.topic_pattern is None

    def takes(self, directory: str | None) -> bool:
        """Return whether a directory is wanted by its name; one of no partition only with all."""
        found = names.parse_directory(directory or "")
        if not isinstance(found, PartitionDirectory):
            return self.takes_all
        return self.takes_partition(found)

    def takes_partition(self, directory: PartitionDirectory) -> bool:
        """Return whether a partition is wanted."""
        if self.topic_pattern and not re.fullmatch(self.topic_pattern, directory.topic):
            return False
        return self.selection.takes(directory)

    def missing(self, found: "set[tuple[str, int]]") -> list[str]:
        """Return the topics and partitions that are named and not among `found`."""
        topics = {topic for topic, _ in found}
        named = [one for one in self.selection.topics if not set("*?[") & set(one)]
        return [one for one in named if one not in topics] + [
            f"{topic}-{number}" for topic, number in sorted(self.selection.keys - found)
        ]

    def span(self, topic: str | None, partition: int | None) -> OffsetTimeRange:
        """Return the offsets and times wanted of a partition; UsageError if it has no offset."""
        first = offset_of("startingOffsets", self.starting_offsets, topic, partition)
        end = offset_of("endingOffsets", self.ending_offsets, topic, partition)
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
    expected = "earliest, latest, one offset for all partitions, or one for each as JSON"
    return parse_by_partition(option, text, expected, EARLIEST)


def parse_by_partition(
    option: str, text: str, expected: str = "a time for each partition as JSON", least: int = 0
) -> Mapping[str, Mapping[int, int]]:
    """Parse JSON with a number for each partition; UsageError if it makes no sense."""
    try:
        return {
            str(topic): {_number(number): _value(value, least) for number, value in some.items()}
            for topic, some in json.loads(text).items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        example = '{"orders":{"0":23,"1":42}}'
        raise UsageError(
            f"option {option}: expected {expected}, such as {example}; found {text!r}"
        ) from error


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def _value(value: Any, least: int) -> int:
    if type(value) is not int or value < least:
        raise ValueError(value)
    return value


def offset_of(option: str, offsets: Offsets, topic: str | None, partition: int | None) -> int:
    """Return the number that an option gives a partition; UsageError if it gives none."""
    if isinstance(offsets, int):
        return offsets
    found = offsets.get(topic or "", {}).get(-1 if partition is None else partition)
    if found is None:
        raise UsageError(
            f"option {option} has no value for {topic}-{partition}: add one (for offsets, "
            "-2 is the start of the log and -1 its end), or exclude the partition with the "
            "options topic and partition"
        )
    return found
