"""Sentences about what a broker deletes and does not compact soon after a start."""

import time
from collections.abc import Iterator, Mapping, Sequence

from logtool.cleaner import after_start
from logtool.cleaner.after_start import AfterStart
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.program.broker_config import BrokerConfig
from logtool.log.inputs import GivenPaths
from logtool.node.node import Node
from logtool.retention import settings

_MOST = 3
"""Partitions that are named."""


def static(config: BrokerConfig) -> Mapping[str, str]:
    """Return the settings in the broker's own file that retention and the cleaner depend on."""
    return config.take(*dict.fromkeys((*settings.FROM_FILE, *settings.CLEANER_FROM_FILE)))


def look(given: GivenPaths, config: Mapping[str, str], node: Node) -> AfterStart | None:
    """Return the effects of a start that is now; None if the settings of topics are not known."""
    return after_start.after_start(
        given.paths,
        node,
        time.time_ns() // 1_000_000,
        config,
        selection=given.selection,
        flavour=given.flavour,
    )


def lines(found: AfterStart | None) -> Iterator[str]:
    """Yield a line about retention, and one for each of the first partitions that stay dirty."""
    if found is None:
        return
    first = found.first
    if first.segments:
        what = f"{text.count(first.segments, 'segment')} ({text.size(first.bytes)})"
        yield (
            f"{text.duration(found.delay_ms / 1000)} after the start retention deletes {what} of "
            f"{text.count(first.partitions, 'partition')}, the oldest of {first.oldest}; "
            "logtool retention lists them"
        )
    yield from early_lines(found)
    if first.copied:
        yield (
            f"{first.copied:,} of these go by local retention: each stays in remote storage, and "
            "goes only if its copy is finished"
        )
    for one in found.kept[:_MOST]:
        yield (
            f"{one.path.name} is not compacted: the transaction of producer {one.producer_id} is "
            f"open from offset {one.transaction_first_offset}"
        )
    if len(found.kept) > _MOST:
        more = text.count(len(found.kept) - _MOST, "more partition")
        yield f"{more} not compacted because of open transactions; logtool cleaner lists them"
    for each in found.future_stamped[:_MOST]:
        assert each.blocked_at is not None
        said = keeps(each.path.name, each.blocked_at, each.next)
        yield f"retention {said}; logtool retention shows it"
    if len(found.future_stamped) > _MOST:
        more = text.count(len(found.future_stamped) - _MOST, "more partition")
        yield f"{more} kept by a timestamp; logtool retention lists them"


def early_lines(found: AfterStart | None) -> Iterator[str]:
    """Yield a warning about the partitions that lose records too early, if there are any."""
    early = [(one.path.name, one.early) for one in (found.early if found else ()) if one.early]
    if not early:
        return
    more = f" and {len(early) - _MOST:,} more" if len(early) > _MOST else ""
    named = ", ".join(text.escape(name) for name, _ in early[:_MOST]) + more
    segments = sum(one.segments for _, one in early)
    said = _too_early(named, segments, min(one.age_ms for _, one in early))
    yield f"{said}; logtool retention shows how to keep them"


def too_early(named: str, early: Sequence[Object]) -> str:
    """Return how many segments of the partitions in an answer go too early, and why."""
    segments = sum(one["segments"] for one in early)
    return _too_early(named, segments, min(one["age_ms"] for one in early))


def _too_early(named: str, segments: int, age_ms: int) -> str:
    go, its = ("goes", "its") if segments == 1 else ("go", "their")
    return (
        f"{text.count(segments, 'segment')} of {named} {go} too early, because {its} timestamps "
        f"are in seconds; the newest record is {text.duration(age_ms / 1000)} old"
    )


def keeps(name: str, base_offset: int, until: str | None) -> str:
    """Return the verb and the object for a partition that a timestamp in the future keeps.

    `until` is the time in UTC at which retention deletes the segment; None beyond the year 9999.
    """
    when = f"until {until[:10]}" if until else "beyond the year 9999"
    return f"keeps {text.escape(name)} {when} because of a timestamp in segment {base_offset}"


def gives_up(named: str, *, cleaner_off: bool) -> str:
    """Return the sentence about damaged partitions that the log cleaner does not clean."""
    line = f"the log cleaner gives up {named} because of the damage"
    if not cleaner_off:
        return line
    return f"once log.cleaner.enable is true, {line}: repair it before you switch the cleaner on"
