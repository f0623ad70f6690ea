"""Sentences about timestamps in the future or in another unit, and about what they cause."""

from collections.abc import Iterator, Sequence

from logtool.commands.printing import text
from logtool.retention import settings
from logtool.retention.run import PartitionRetention
from logtool.retention.stamp import WrongTimestamp

_AGES_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))
_ONE_HOUR = 3_600_000


def age(milliseconds: int) -> str:
    """Return a setting of time in its largest whole unit."""
    factor, unit = next((one for one in _AGES_MS if milliseconds % one[0] == 0), (1, "ms"))
    return f"{milliseconds // factor:,} {unit}"


def described(found: WrongTimestamp) -> str:
    """Return the batch with the largest timestamp of a segment, and what that timestamp means."""
    line = f"segment {found.base_offset}: "
    if found.first_offset is not None:
        last = found.last_offset if found.last_offset is not None else found.first_offset
        line += f"first batch with the largest timestamp: {text.offsets(found.first_offset, last)}"
        line += "" if found.producer_id is None else f" of producer {found.producer_id}"
        line += ": "
    what = f"in {found.unit}" if found.unit else "in the future"
    return f"{line}timestamp {found.timestamp} is {what} ({found.meant or 'beyond the year 9999'})"


def of_retention(item: PartitionRetention) -> str:
    """Return the timestamp that keeps a log, or lets it go early, and what follows from it."""
    found = item.stamp
    assert found is not None
    line = f"{item.path.name}: {described(found)}"
    if item.early:
        line += f"; {_early(item)}"
        if item.obstacle == "future-timestamp":
            line += (
                f"; segment {item.blocked_at} then keeps the log: its timestamp is in the future"
            )
    elif (keeper := _keeper(item, found.base_offset)) is not None:
        line += f"; the older segment {keeper} keeps this one"
    if item.behind:
        when = (item.behind.timestamp or "beyond the year 9999")[:19]
        line += f"; once it is gone, segment {item.behind.base_offset} keeps the log ({when})"
    if found.counts:
        return line
    return f"{line}; it came after the clean marker: it counts only if the marker is moved away"


def _keeper(item: PartitionRetention, base_offset: int) -> int | None:
    """Return the base offset of the older segment that keeps a segment; None for none."""
    return next((one.held_by for one in item.segments if one.base_offset == base_offset), None)


def _early(item: PartitionRetention) -> str:
    """Return which records the first round deletes too early, and how young they are."""
    found, limit = item.early, item.limits.ms
    assert found is not None
    last = "the end" if found.last_offset is None else found.last_offset
    return (
        f"the first round deletes {text.offsets(found.first_offset, last)} too early: the newest "
        f"record is {text.duration(found.age_ms / 1000)} old, {limit.name} is {age(limit.number)}"
    )


def to_keep(early: Sequence[PartitionRetention]) -> Iterator[str]:
    """Yield how to keep the records that the first round would delete too early.

    Tried with Kafka 3.9.2 and 4.4.0: the interval between rounds does not delay the first one,
    ``log.retention.ms`` in the broker's file does not count for a topic with its own
    ``retention.ms``, and a change of a topic that is made while the broker is down counts at once.
    """
    if not early:
        return
    topics = {one.directory.topic for one in early}
    topic = text.escape(topics.pop()) if len(topics) == 1 else "TOPIC"
    many = "" if topic != "TOPIC" else " of each topic"
    ways = []
    if any(not one.limits.compacts for one in early):
        ways.append(f"{settings.FIRST_DELAY}={_ONE_HOUR} (Kafka 3.8 or later)")
    if any(one.limits.compacts for one in early):
        ways.append(f"{settings.CLEANER}=false (for topics that are compacted, too)")
    yield (
        "To keep the records that go too early, set in the broker's file before the start: "
        f"{' and '.join(ways)}; {settings.INTERVAL} does not delay the first round. After the "
        f"start, set retention.ms=-1{many}, and correct the producer. Where another node of the "
        "cluster runs, set it through that node before the start; the file may stay as it is then:"
    )
    yield (
        "  kafka-configs.sh --bootstrap-server HOST:9092 --entity-type topics --entity-name "
        f"{topic} --alter --add-config retention.ms=-1"
    )
