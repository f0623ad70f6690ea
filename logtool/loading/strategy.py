"""Strategies for recovering segments: their interface for a loader, and that of a broker."""

from typing import TYPE_CHECKING, Protocol

from logtool.loading import cuts
from logtool.loading.recovery import Recovery
from logtool.loading.result import RecoveredSegment, RecoveryReason
from logtool.loading.segments import LoadedSegment

if TYPE_CHECKING:
    from logtool.loading.loader import Loader


class RecoveryStrategy(Protocol):
    """A strategy for recovering segments; a `Loader` calls it at each step that may differ."""

    def needs_recovery(self, segment: LoadedSegment) -> RecoveryReason | None:
        """Return why a segment is recovered when it is opened; None if it is not."""

    def is_done(self, segment: LoadedSegment) -> bool:
        """Return whether it was recovered when it was opened, and is not recovered once more."""

    def recover(self, segment: LoadedSegment, why: RecoveryReason) -> RecoveredSegment:
        """Read a segment from its first byte, cut its log and write its indexes."""

    def take_emptied(self, segment: LoadedSegment, emptied: RecoveredSegment) -> None:
        """Note that a segment was emptied."""

    def finish(self) -> None:
        """Do the work that is left when all unflushed segments are recovered."""

    def settle_producers(self) -> None:
        """Bring the producer state and its snapshots to the end of the log."""


class RebuildStrategy:
    """The strategy of a broker: build indexes again, and replay producers through the log."""

    def __init__(self, loader: "Loader") -> None:
        self._loader = loader

    def needs_recovery(self, segment: LoadedSegment) -> RecoveryReason | None:
        """Return why a broker recovers a segment when it opens it."""
        return self._loader.needs_recovery(segment)

    def is_done(self, segment: LoadedSegment) -> bool:
        """Return False: a broker recovers a segment again that it recovered at its opening."""
        return False

    def recover(self, segment: LoadedSegment, why: RecoveryReason) -> RecoveredSegment:
        """Recover a segment as ``LogSegment.recover`` does, and take a snapshot at its end."""
        loader, start = self._loader, self._loader.start
        manager = loader.new_manager(is_sole=True)
        manager.rebuild(loader.segments, start.log_start, segment.base_offset, clean=False)
        loader.count_replay(manager)
        recovery = Recovery(
            segment.base_offset,
            producers=manager.state,
            epochs=loader.epochs,
            interval=start.index_interval,
            max_index_size=start.max_index_size,
        )
        recovered = loader.read_segment(segment, why, recovery)
        result = recovery.result
        cuts.write(loader.shadow, segment, result)
        loader.loaded.bytes_applied += result.valid_size
        loader.loaded.records_applied += result.records
        if result.next_offset is not None:
            manager.map_end = result.next_offset
        manager.take_snapshot()
        return recovered

    def take_emptied(self, segment: LoadedSegment, emptied: RecoveredSegment) -> None:
        """Do nothing: an empty segment is like any other."""

    def finish(self) -> None:
        """Do nothing: flushed segments are not looked at."""

    def settle_producers(self) -> None:
        """Remove snapshots that belong to no segment, and replay from the newest one."""
        loader, loaded, manager = self._loader, self._loader.loaded, self._loader.manager
        manager.remove_strays([segment.base_offset for segment in loader.segments])
        manager.rebuild(loader.segments, loaded.log_start, loaded.log_end, clean=loader.start.clean)
        loader.count_replay(manager)
        loaded.take_producers(manager.state)
        loader.find_first_unstable(manager)
