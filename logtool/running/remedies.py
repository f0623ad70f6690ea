"""Ways to repair the findings of a run: counted by remedy, each with its command."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.disk import expanded, files, shell
from logtool.findings import Finding, Remedy, Severity
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import Selection

MOST_PARTITIONS = 3
"""Partition dirs that a command names; it takes the log dirs if more need it."""
FILLED = frozenset(
    {"batch/hole", "batch/leader-epoch-order", "batch/magic", "batch/offset-order",
     "batch/offset-range", "checkpoint/high-watermark-ahead",
     "checkpoint/high-watermark-beyond-end", "checkpoint/recovery-point-beyond-end",
     "segment/hole", "segment/missing", "segment/overlap"}
)  # fmt: skip
"""Codes with the remedy `REPLICA` that `recover --fill-from` mends."""


@dataclass(frozen=True, slots=True)
class RemedyCount:
    """Findings with one remedy, and the command that mends them or shows what mending costs.

    `REPLICA` comes twice if a copy of a partition mends some findings, and another way the others.
    """

    remedy: Remedy
    findings: int
    command: str | None
    """Command line for a shell; None where a start of the broker suffices."""


class Remedies:
    """Counts findings above info by remedy."""

    def __init__(self, paths: Sequence[Path], selection: Selection) -> None:
        """Begin with the arguments of the run, which its commands repeat."""
        self._paths = paths
        self._selection = selection
        self._counts: Counter[_Way] = Counter()
        self._worst: dict[_Way, Finding] = {}
        """The first of the gravest findings of each way."""
        self._partitions: dict[_Way, dict[Path, None]] = {}
        """The partition dirs of the findings, in their order."""
        self._fills: dict[str, None] = {}
        """The next commands of the findings that a copy mends."""
        self._outside: set[_Way] = set()
        """Remedies of findings that are not in a partition dir."""

    def add(self, finding: Finding) -> None:
        """Count one finding."""
        if finding.severity is Severity.INFO:
            return
        way = _way(finding)
        self._counts[way] += 1
        worst = self._worst.setdefault(way, finding)
        if finding.severity.weight > worst.severity.weight:
            self._worst[way] = finding
        if way == _FILL:
            self._fills[finding.next or ""] = None
        if folder := _log_of(finding) if way == _FILL else _partition_dir(finding):
            self._partitions.setdefault(way, {})[folder] = None
        else:
            self._outside.add(way)

    def counts(self) -> Iterator[RemedyCount]:
        """Yield the remedies that findings have, in the order in which to apply them."""
        for way in _ORDER:
            if self._counts[way]:
                yield RemedyCount(way[0], self._counts[way], self._command(way))

    def _command(self, way: "_Way") -> str | None:
        worst, remedy = self._worst[way], way[0]
        explain = f"logtool explain {worst.code}"
        if remedy is Remedy.BROKER:
            return None
        if any(files.is_remote(one) or expanded.is_expanded(one) for one in self._paths):
            return explain
        if remedy is Remedy.CHECKPOINT and worst.path:
            folders = list(self._partitions.get(way, {}))
            is_one = way not in self._outside and len(folders) == 1
            home = folders[0] if is_one else (_partition_dir(worst) or worst.path).parent
            return f"logtool checkpoint rebuild {shell.path(home)}"
        if remedy not in _RECOVER and way != _FILL:
            return explain
        if way == _FILL and (known := self._known_fill()):
            return known
        losing = self._partitions.get(_LOSS, {})
        folders = list(self._partitions.get(way, {}))
        if remedy is Remedy.RECOVER:
            # recover refuses to change a log dir in which something is lost.
            folders = [one for one in folders if one not in losing]
        by_name = way not in self._outside and 0 < len(folders) <= MOST_PARTITIONS
        targets = folders if by_name else self._paths
        if not targets:
            return explain
        is_safe = remedy is Remedy.RECOVER and (by_name or not self._counts[_LOSS])
        options = "--fill-from COPY" if way == _FILL else "--full" + (" --apply" if is_safe else "")
        words = [
            f"logtool recover {options}",
            *([] if by_name else [str(self._selection)]),
            *map(shell.path, targets),
        ]
        return " ".join(word for word in words if word)

    def _known_fill(self) -> str | None:
        """Return the one command that all findings have for a copy that was given, too."""
        known = next(iter(self._fills)) if len(self._fills) == 1 else ""
        return known if known.startswith("logtool recover ") else None


_Way = tuple[Remedy, bool]
"""A remedy, and whether `recover` fills the log from a copy."""
_FILL, _LOSS = (Remedy.REPLICA, True), (Remedy.LOSS, False)
_ORDER = (
    (Remedy.CHECKPOINT, False),  # which `recover` may need to load a partition
    (Remedy.RECOVER, False),
    _LOSS,
    _FILL,
    (Remedy.REPLICA, False),
    (Remedy.BROKER, False),  # a start may cut a log that a copy could fill
    (Remedy.NONE, False),
)
_RECOVER = (Remedy.RECOVER, Remedy.LOSS)


def _way(finding: Finding) -> _Way:
    is_filled = finding.remedy is Remedy.REPLICA and finding.code in FILLED
    return finding.remedy, is_filled and _log_of(finding) is not None


def _log_of(finding: Finding) -> Path | None:
    """Return the partition dir whose log a copy can fill; None without one, or for metadata."""
    folder = _partition_dir(finding)
    if finding.path and folder is None and finding.topic is not None:
        # A row of a checkpoint in the log dir.
        place = finding.path.parent / f"{finding.topic}-{finding.partition}"
        folder = place if not files.is_remote(place) and place.is_dir() else None
    return None if finding.topic == CLUSTER_METADATA else folder


def _partition_dir(finding: Finding) -> Path | None:
    """Return the partition dir that a finding is in; None for one about a log dir or a broker."""
    if finding.path is None or finding.topic is None:
        return None
    name = f"{finding.topic}-{finding.partition}"
    return next((one for one in (finding.path, finding.path.parent) if one.name == name), None)
