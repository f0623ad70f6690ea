"""Options of Spark's own source ``kafka``, as the table ``kafka`` takes them.

A query that moves from a broker to log dirs keeps its options. Those that choose topics, offsets
and times have the same meaning. Those about the connection and its consumer have no effect.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass
from logtool.spark.source.wanted import Offsets, parse_by_partition

ISOLATION: Final = "kafka.isolation.level"
CHOOSING: Final = ("topic", "subscribe", "subscribePattern", "assign")
"""Options that choose partitions, of which a query has one."""
TIMES: Final = ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp")
STRATEGY: Final = "startingOffsetsByTimestampStrategy"
LIMITS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""Options by which Spark's own source limits micro-batches; it ignores them in other reads."""
ONLY_KAFKA: Final = (
    "subscribe", "subscribePattern", "assign", "includeHeaders", "minPartitions", *TIMES, STRATEGY,
    ISOLATION,
)  # fmt: skip
_OF_A_CONSUMER: Final = (
    "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs", "maxRecordsPerPartition",
)  # fmt: skip


def without_effect(given: Mapping[str, str], *, stream: bool) -> tuple[str, ...]:
    """Return the options about a broker, a consumer or micro-batches, which change no row."""
    more = ("minPartitions",) if stream else LIMITS
    names = {name.lower() for name in (*_OF_A_CONSUMER, *more)}
    return tuple(
        sorted(
            name
            for name in given
            if name in names or (name.startswith("kafka.") and name != ISOLATION)
        )
    )


def warning(names: Sequence[str]) -> str:
    """Return the line about options without an effect."""
    return f"the table kafka reads log dirs, so these options have no effect: {', '.join(names)}"


def check_choice(given: Mapping[str, str]) -> None:
    """Raise UsageError if more than one option chooses topics."""
    found = [name for name in CHOOSING if name.lower() in given]
    if len(found) > 1:
        raise UsageError(f"options {found[0]} and {found[1]}: use only one of them")
    if "assign" in given and "partition" in given:
        raise UsageError("options assign and partition: use only one of them")
    if given.get(ISOLATION, "read_uncommitted") != "read_uncommitted":
        raise UsageError(
            f"option {ISOLATION}: the table kafka shows the records of "
            "read_uncommitted, including those of aborted and open transactions; the "
            "table transactions of logtool scan lists these transactions"
        )


def assigned(text: str | None) -> frozenset[tuple[str, int]]:
    """Parse the option assign; UsageError for anything but partitions by topic."""
    if text is None:
        return frozenset()
    example = '{"orders":[0,1]}'
    try:
        found = {
            (str(topic), _partition(one))
            for topic, some in json.loads(text).items()
            for one in some
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"option assign: expected {example}, found {text!r}") from error
    if not found:
        raise UsageError(f"option assign names no partition; expected {example}")
    return frozenset(found)


def _partition(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def pattern(text: str | None) -> str | None:
    """Return the option subscribePattern; UsageError for no regular expression."""
    try:
        re.compile(text or "")
    except re.error as error:
        raise UsageError(f"option subscribePattern: {text!r}: {error}") from error
    return text


@dataclass(frozen=True, slots=True)
class Times:
    """The times at which partitions begin and end, as a broker finds the offset of a time."""

    start: Offsets | None = None
    """Milliseconds; the first record that is not older is the first that is wanted."""
    end: Offsets | None = None
    """Milliseconds; the first record that is not older is the first that is not wanted."""
    late_is_latest: bool = False
    """True if a partition without a record from `start` on has no rows; False: it is an error."""


def times(given: Mapping[str, str], starting: int | None, ending: int | None) -> Times | None:
    """Return the times that options give; None without any. UsageError for no such time."""
    strategy = given.get(STRATEGY.lower(), "error").lower()
    if strategy not in ("error", "latest"):
        raise UsageError(f"option {STRATEGY}: expected error, latest; found {strategy!r}")
    found = [
        parse_by_partition(name, given[name.lower()]) if name.lower() in given else None
        for name in TIMES
    ]
    # One time for all partitions comes first, as in Spark's own source.
    start = found[0] if starting is None else starting
    end = found[1] if ending is None else ending
    if start is None and end is None:
        return None
    return Times(start, end, strategy == "latest")
