"""Truncation of a log to an offset, as ``LocalLog.truncateTo`` does it."""

from collections.abc import Sequence
from dataclasses import replace

from logtool.formats import names
from logtool.formats.names import FileKind, FileState
from logtool.loading import cuts
from logtool.loading.recovery import CutBatches, OffsetOverflowError
from logtool.loading.result import RecoveredSegment, StartConditions
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import Shadow
from logtool.log.damage import Damage, DamageReason


class LogTruncation:
    """The truncation of a log to the offset in `start`; without an offset it does nothing.

    It does nothing either if nothing of the log would stay. The batches that a segment lost to the
    truncation, or to a cut at a batch that stops brokers, are added when it is recovered.
    """

    def __init__(self, shadow: Shadow, start: StartConditions) -> None:
        self._shadow = shadow
        self._offset = start.truncate_to
        self._least = start.log_start
        self._cuts: dict[int, tuple[int, CutBatches, Damage | None]] = {}
        """By base offset of a segment that was cut: its size before, the batches that were cut, and
        the batch that stops brokers; None for the truncation."""

    def behind(self, segments: Sequence[LoadedSegment]) -> list[LoadedSegment]:
        """Return the segments that are removed: those that begin behind the offset."""
        offset = self._named(segments)
        return [] if offset is None else [one for one in segments if one.base_offset > offset]

    def cut(self, segments: Sequence[LoadedSegment]) -> None:
        """Cut the last segment that stays in front of the first batch that reaches the offset."""
        offset = self._named(segments)
        if offset is None:
            return
        log = segments[-1].name(FileKind.LOG)
        size = self._shadow.files[log].size
        position = cuts.first_behind(self._shadow, segments[-1], offset)
        if position < size:
            lost = cuts.count(self._shadow, segments[-1], position)
            self._cuts[segments[-1].base_offset] = size, lost, None
            self._shadow.truncate(log, position)

    def cut_at(self, segment: LoadedSegment, error: OffsetOverflowError) -> None:
        """Cut a segment where a batch begins whose offset is out of its reach."""
        log = segment.name(FileKind.LOG)
        size, lost, _ = self._cuts.get(
            segment.base_offset, (self._shadow.files[log].size, CutBatches(), None)
        )
        lost = _both(cuts.count(self._shadow, segment, error.position), lost)
        text = f"{error.what}, with which a broker would not start"
        stop = Damage(
            position=error.position,
            length=0,
            reason=DamageReason.SIZE,
            message=text,
            resynchronised=True,
        )
        self._cuts[segment.base_offset] = size, lost, stop
        self._shadow.truncate(log, error.position)

    def with_cut(self, recovered: RecoveredSegment) -> RecoveredSegment:
        """Return the recovered segment, with the batches that were cut before its recovery."""
        if recovered.base_offset not in self._cuts:
            return recovered
        size, lost, stop = self._cuts[recovered.base_offset]
        both = _both(recovered.lost, lost)
        if stop is None:
            return replace(recovered, size=size, lost=both, truncated_to=self._offset)
        if both.first_offset is not None:
            both.first_offset = recovered.next_offset  # The first that is cut has a wrong one.
        return replace(
            recovered,
            size=size,
            stop=recovered.stop or stop,
            lost=both,
            behind=_both(recovered.behind, lost),
            precise=True,
        )

    def _named(self, segments: Sequence[LoadedSegment]) -> int | None:
        if self._offset is None or not segments:
            return None
        least = max(segments[0].base_offset, self._least)
        return self._offset if self._offset >= least else None


def live_behind(shadow: Shadow, base_offset: int) -> list[int]:
    """Return the base offsets of the logs behind that of `base_offset`."""
    found = (names.parse_partition_file(name) for name in shadow)
    return [
        file.offset
        for file in found
        if file.kind is FileKind.LOG and file.state is FileState.LIVE
        if file.offset is not None and file.offset > base_offset
    ]


def _both(one: CutBatches, other: CutBatches) -> CutBatches:
    firsts = [lost.first_offset for lost in (one, other) if lost.first_offset is not None]
    lasts = [lost.last_offset for lost in (one, other) if lost.last_offset is not None]
    return CutBatches(
        batches=one.batches + other.batches,
        records=one.records + other.records,
        first_offset=min(firsts, default=None),
        last_offset=max(lasts, default=None),
        unsound=[*one.unsound, *other.unsound],
    )
