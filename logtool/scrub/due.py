"""The segments that are due in a run, in the order of their turns.

A run takes, in this order, the segments whose last check found something, the closed segments that
are new or changed, those that would be older than the cycle at the next run, and the oldest. The
first and the third are always due. New segments and the oldest each get up to one share: the part
of all bytes that keeps pace with the cycle. So many new segments do not hold up the old ones.
"""

from collections.abc import Iterable, Sequence

from logtool.lazy_dataclass import dataclass
from logtool.times import DAY_MS


@dataclass(frozen=True, slots=True)
class KnownSegment:
    """A segment of the state file, as far as it matters when it is due."""

    path: bytes
    home: bytes
    topic: bytes | None
    size: int
    active: bool
    first_seen_ms: int
    unchecked_ms: int
    """Column ``since_ms``."""
    checked_ms: int | None
    """Start of the run that checked it last; None for never."""
    level: str | None
    """Level of that check."""
    findings: int
    begun_ms: int | None
    """Start of the last run whose time ran out in it; None if it was checked since."""

    @property
    def since_ms(self) -> int:
        """Return the time since which it is not checked, in ms since 1970."""
        return self.unchecked_ms if self.checked_ms is None else self.checked_ms


@dataclass(frozen=True, slots=True)
class Pacing:
    """The times by which a run decides, in ms (since 1970)."""

    now_ms: int
    cycle_ms: int
    begun_ms: int
    """Start of the first run of all."""
    last_complete_ms: int | None = None
    """Start of the last run that checked all that was due; None without one."""

    @property
    def elapsed_ms(self) -> int:
        """Return the time since the last complete run: that until the next one, it is assumed.

        Without a complete run, one day counts before the first run of all.
        """
        if self.last_complete_ms is None:
            return max(self.now_ms - self.begun_ms, 0) + DAY_MS
        return max(self.now_ms - self.last_complete_ms, 0)

    def share(self, total: int) -> int:
        """Return the share of a run of `total` bytes; 1 without any, for logs that are empty."""
        return min(total, -(-total * self.elapsed_ms // self.cycle_ms)) if total else 1

    def is_done(self, segment: KnownSegment) -> bool:
        """Return whether a segment was checked after the last complete run: by one cut short."""
        if segment.checked_ms is None:
            return False
        return self.last_complete_ms is None or segment.checked_ms > self.last_complete_ms

    def is_overdue(self, segment: KnownSegment) -> bool:
        """Return whether a segment would be older than the cycle at the next run."""
        return self.now_ms + self.elapsed_ms - segment.since_ms > self.cycle_ms

    def is_new(self, segment: KnownSegment) -> bool:
        """Return whether a closed segment came or changed after the first run of all."""
        return not segment.active and segment.first_seen_ms > self.begun_ms


def choose(segments: Sequence[KnownSegment], pacing: Pacing) -> list[KnownSegment]:
    """Return the segments that are due, in the order of their turns.

    Segments that a run which was cut short has checked count for the share. A segment in which time
    ran out stays due, and takes nothing of the share. It comes after all others but those that were
    checked since then, so that each has its turn.
    """
    share = pacing.share(_size(segments))
    done = [one for one in segments if pacing.is_done(one)]
    done_new = [one for one in done if pacing.is_new(one)]
    begun = [one for one in segments if one.begun_ms]
    others = [one for one in segments if not one.begun_ms]
    bad = [one for one in others if one.findings]
    rest = [one for one in others if not one.findings]
    overdue = sorted((one for one in rest if pacing.is_overdue(one)), key=_age)
    rest = [one for one in rest if not pacing.is_overdue(one)]
    never = (one for one in rest if one.checked_ms is None and pacing.is_new(one))
    new = list(_until(sorted(never, key=_newest), share - _size(done_new)))
    taken = {one.path for one in new}
    oldest = sorted((one for one in rest if one.path not in taken), key=_age)
    left = share - _size(overdue) - (_size(done) - _size(done_new))
    chosen = [*sorted(bad, key=_age), *new, *overdue, *_until(oldest, left)]
    first_begun = min((one.begun_ms or 0 for one in begun), default=0)
    before = [one for one in chosen if (one.checked_ms or 0) <= first_begun or not begun]
    after = [one for one in chosen if begun and (one.checked_ms or 0) > first_begun]
    return [*before, *sorted(begun, key=lambda one: one.begun_ms or 0), *after]


def _size(segments: Iterable[KnownSegment]) -> int:
    return sum(one.size for one in segments)


def _until(segments: Iterable[KnownSegment], size: int) -> Iterable[KnownSegment]:
    """Yield segments until they have `size` bytes; the last one may go beyond."""
    for one in segments:
        if size <= 0:
            return
        yield one
        size -= one.size


def _age(segment: KnownSegment) -> tuple[int, bool, bytes]:
    return segment.since_ms, segment.checked_ms is not None, segment.path


def _newest(segment: KnownSegment) -> tuple[int, bytes]:
    return -segment.first_seen_ms, segment.path
