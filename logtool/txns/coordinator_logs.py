"""The logs of ``__transaction_state`` in log dirs, with the entries that they lost at their end."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from logtool.checks import log_absence
from logtool.disk import files, in_use
from logtool.errors import UnreadableError
from logtool.formats.names import DirectoryKind, FileKind, TopicPartition
from logtool.log import opening
from logtool.log.dir import LogDir, Partition
from logtool.node import lost_end, surroundings
from logtool.txns.coordinator import TOPIC
from logtool.txns.joining import Joining

_SILENT_MS = 60_000
"""A running broker writes replication-offset-checkpoint every 5 seconds."""


def read(
    joining: Joining,
    homes: Mapping[Path, LogDir],
    spend: Callable[[int], None] = lambda _: None,
) -> Iterator[UnreadableError]:
    """Read the coordinators' entries of log dirs, by path; yield what cannot be read.

    `spend` is called with the bytes that were read.
    """
    joining.homes = list(homes)
    yield from joining.read(
        [
            (folder, home.flavour)
            for home in homes.values()
            for folder, directory in home.partitions
            if directory.kind is DirectoryKind.LIVE and directory.topic == TOPIC
        ],
        spend,
    )
    for log in joining.logs:
        home = homes.get(log.path.parent)
        if home:
            log.is_clean = home.is_clean
            log.high_watermark = watermarks(home, []).get((TOPIC, log.number))
        listed = home and opening.try_partition(log.path, home.flavour)
        if home and isinstance(listed, Partition):
            lost, was = _lost(home, listed, log.end_offset)
            if lost:
                log.lose_end(lost, was)
                log.is_lost_exactly = log.is_clean and _recovery_point(home, listed) == lost.stop


def until_ms(home: LogDir, now_ms: int) -> int:
    """Return the time up to which the broker of a log dir ran: now, while it runs.

    Now too where no file shows when it stopped. A broker in another container may run without a
    lock that is seen here: one without the marker has stopped if it wrote no checkpoint for long.
    """
    stopped_ms = surroundings.of_log_dir(home).stopped_ns // 1_000_000
    if not stopped_ms or files.is_remote(home.path) or in_use.holder(home.path):
        return now_ms
    has_stopped = home.is_clean or now_ms - stopped_ms > _SILENT_MS
    return min(now_ms, stopped_ms) if has_stopped else now_ms


def watermarks(home: LogDir, problems: list[UnreadableError]) -> dict[TopicPartition, int]:
    """Return the high watermarks in a log dir; an error is added to `problems`."""
    try:
        return lost_end.watermarks(home)
    except UnreadableError as error:
        problems.append(error)
        return {}


def _lost(home: LogDir, listed: Partition, end: int) -> tuple[range | None, str]:
    """Return the offsets that a log lost at its end, and what shows where it ended."""
    lost = lost_end.lost(home, watermarks(home, []), listed, end)
    if lost:
        return lost, "its high watermark was"
    point = lost_end.witness(home, FileKind.RECOVERY_POINT_CHECKPOINT)
    lost = lost_end.lost_offsets(point, listed, end, _recovery_point(home, listed))
    if lost:
        return lost, "its recovery point was"
    found = log_absence.missing_end(listed, end, clean=home.is_clean)
    if found is None or found.last_offset is None:
        return None, ""
    return range(end, found.last_offset + 1), "other files of the partition show the offset"


def _recovery_point(home: LogDir, listed: Partition) -> int:
    """Return the recovery point of a partition: its log end, if its broker stopped in order.

    0 without one.
    """
    flushed = None
    with suppress(UnreadableError):
        rows = home.rows(FileKind.RECOVERY_POINT_CHECKPOINT)
        flushed = rows.get((listed.topic or "", listed.number or 0))
    return flushed.offset if flushed else 0
