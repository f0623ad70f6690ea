"""The findings of the state file: open until what they are about was looked at without them."""

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field

from logtool.checks import kept_report
from logtool.errors import UsageError
from logtool.findings import Finding, Severity, catalogue
from logtool.lazy_dataclass import dataclass
from logtool.scrub.listing import SegmentListing, home_of
from logtool.scrub.reports import SegmentsOfRun
from logtool.scrub.state import ScrubState
from logtool.times import rfc3339

_KEPT_MS = 366 * 86_400_000
"""Time for which a finding that is gone stays in the file."""
Key = tuple[bytes | None, int | None, bytes | None, str, int | None, int | None]
"""Partition dir, base offset of the segment, path, code, position and first offset."""


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding of the state file."""

    home: bytes | None
    base_offset: int | None
    finding: Finding
    first_seen_ms: int
    last_seen_ms: int
    gone_ms: int | None

    @property
    def state(self) -> str:
        """Return "open" or "gone"."""
        return "open" if self.gone_ms is None else "gone"

    @property
    def first_seen(self) -> str | None:
        """Return `first_seen_ms` as RFC 3339."""
        return rfc3339(self.first_seen_ms)

    @property
    def last_seen(self) -> str | None:
        """Return `last_seen_ms` as RFC 3339."""
        return rfc3339(self.last_seen_ms)

    @property
    def gone(self) -> str | None:
        """Return `gone_ms` as RFC 3339."""
        return rfc3339(self.gone_ms)


@dataclass(slots=True)
class FindingsOfRun:
    """The findings of one run, and those that were open before it."""

    state: ScrubState
    listing: SegmentListing
    now_ms: int
    _open: dict[Key, int] = field(default_factory=dict)
    """The ids of open findings."""
    _seen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        columns = "home, base_offset, path, code, position, first_offset, id"
        rows = self.state.execute(f"SELECT {columns} FROM finding WHERE gone_ms IS NULL")
        self._open = {row[:-1]: row[-1] for row in rows}

    def saw(self, finding: Finding) -> None:
        """Note a finding of this run."""
        home, base = self._place(finding)
        path = None if finding.path is None else os.fsencode(finding.path)
        key = home, base, path, finding.code, finding.position, finding.first_offset
        content = json.dumps(kept_report.finding_as_json(finding))
        if (number := self._open.get(key)) is None:
            cursor = self.state.execute(
                "INSERT INTO finding (home, base_offset, path, code, position, first_offset, "
                "severity, content, first_seen_ms, last_seen_ms) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, str(finding.severity), content, self.now_ms, self.now_ms),
            )
            number = self._open[key] = cursor.lastrowid or 0
        elif number not in self._seen:
            self.state.execute(
                "UPDATE finding SET last_seen_ms = ?, content = ? WHERE id = ?",
                (self.now_ms, content, number),
            )
        self._seen.add(number)

    def _place(self, finding: Finding) -> tuple[bytes | None, int | None]:
        """Return the partition dir and the segment that a finding is about; None for neither."""
        if finding.path is None:
            return None, None
        path = os.fsencode(finding.path)
        for home in (path, home_of(path)):
            if home in self.listing.homes:
                return home, finding.segment
        if finding.topic is not None:
            name = os.fsencode(f"{finding.topic}-{finding.partition}")
            if (home := home_of(path) + b"/" + name) in self.listing.homes:
                return home, None
        return None, None

    def settle(self, segments: SegmentsOfRun, *, complete: bool) -> None:
        """Note which of the open findings that this run did not see are gone.

        `complete` is True if the run came to its end, and everything could be read.
        """
        present = {
            (partition.home, one.base_offset): one.path
            for partition in self.listing.partitions
            for one in partition.segments
        }
        looked = {one.home for one in self.listing.partitions}
        late = {home_of(path) for path in segments.due if path not in segments.fresh}
        whole = looked - segments.partial - late if complete else set()
        for key, number in self._open.items():
            if number in self._seen:
                continue
            home, base, path, *_ = key
            if home is None:
                gone = complete and looked == self.listing.homes and self._is_given(path)
            elif home not in self.listing.homes:
                gone = home_of(home) in self.listing.log_dirs
            elif base is not None and home in looked and (home, base) not in present:
                gone = True
            else:
                checked = base is not None and present.get((home, base)) in segments.fresh
                gone = checked or home in whole
            if gone:
                values = (self.now_ms, number)
                self.state.execute("UPDATE finding SET gone_ms = ? WHERE id = ?", values)
        before = self.now_ms - _KEPT_MS
        self.state.execute("DELETE FROM finding WHERE gone_ms < ?", (before,))

    def _is_given(self, path: bytes | None) -> bool:
        """Return whether a path is in one of the log dirs of this run."""
        return path is not None and not self.listing.log_dirs.isdisjoint((path, home_of(path)))

    def unseen(self, paths: Sequence[bytes]) -> Counter[Severity]:
        """Return how many findings below `paths` are open that this run did not see."""
        found: Counter[Severity] = Counter()
        rows = self.state.execute("SELECT id, path, severity FROM finding WHERE gone_ms IS NULL")
        for number, path, severity in rows:
            if number not in self._seen and is_below(path, paths):
                found[Severity(severity)] += 1
        return found


def is_below(path: bytes | None, paths: Collection[bytes]) -> bool:
    """Return whether a path is one of `paths` or lies below one."""
    return path is not None and any(
        path == one or path.startswith(one.rstrip(b"/") + b"/") for one in paths
    )


def open_codes(state: ScrubState, paths: Sequence[bytes]) -> Counter[str]:
    """Return how many findings of each code are open below `paths`.

    A code that an earlier release had is left out.
    """
    rows = state.execute("SELECT path, code FROM finding WHERE gone_ms IS NULL")
    return Counter(code for path, code in rows if is_below(path, paths) and code in catalogue())


def stored(state: ScrubState) -> Iterator[StoredFinding]:
    """Yield the findings of the file: those that are open first, the oldest first.

    A code that an earlier release had is left out. UsageError for a row that no release wrote.
    """
    rows = state.execute(
        "SELECT home, base_offset, content, first_seen_ms, last_seen_ms, gone_ms, id FROM finding "
        "ORDER BY gone_ms IS NOT NULL, first_seen_ms, id"
    )
    for home, base, content, first_ms, last_ms, gone_ms, number in rows:
        try:
            finding = kept_report.finding_of(json.loads(content))
        except kept_report.NOT_WRITTEN as error:
            where = f"row {number} of its findings"
            raise UsageError(
                f"{state.path}: {where} was not written by logtool scrub: {error}"
            ) from error
        if finding.code in catalogue():
            yield StoredFinding(home, base, finding, first_ms, last_ms, gone_ms)
