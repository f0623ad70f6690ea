"""Ways to repair the findings of a run: counted by remedy, each with its command.

No command loses records, and none has ``--apply``: each prints first what it would change.
"""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from logtool.disk import expanded, files, shell
from logtool.findings import FOREIGN_SEGMENT, Finding, Remedy, Severity
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.selection import Selection

MOST_PARTITIONS = 3
"""Partition dirs that a command names; it takes the log dirs if more need it."""
MOST_COPIED = 20
"""Partition dirs that a command copies; `explain` says the rest if there are more."""
FILLED = frozenset(
    {"batch/crc", "batch/hole", "batch/leader-epoch-order", "batch/magic", "batch/offset-order",
     "batch/offset-range", "batch/size", "batch/zero-run", "checkpoint/high-watermark-ahead",
     "checkpoint/high-watermark-beyond-end", "checkpoint/recovery-point-beyond-end",
     "log/beginning-absent", "log/beginning-lost", "log/torn-tail-clean", "log/truncated",
     "segment/hole", "segment/missing", "segment/overlap", FOREIGN_SEGMENT}
)  # fmt: skip
"""Codes with the remedies `LOSS` and `REPLICA` that `recover --fill-from` mends."""


@dataclass(frozen=True, slots=True)
class RemedyCount:
    """Findings with one remedy, and the command that mends them or explains them.

    `LOSS` and `REPLICA` come more than once if a copy of a partition mends some findings, and not
    the others, or if the copies are of different brokers.
    """

    remedy: Remedy
    findings: int
    command: str | None
    """Command line for a shell; None where a start of the broker suffices."""


class Remedies:
    """Counts findings above info by remedy."""

    def __init__(
        self, paths: Sequence[Path], selection: Selection, copies: Sequence[Path] = ()
    ) -> None:
        """Begin with the arguments of the run, which its commands repeat.

        `copies` are the log dirs of other brokers that have sound copies of damaged partitions.
        """
        self._paths = paths
        self._selection = selection
        self._copies = copies
        self._counts: Counter[_Way] = Counter()
        self._worst: dict[_Way, Finding] = {}
        """The first of the gravest findings of each way."""
        self._partitions: dict[_Way, dict[Path, None]] = {}
        """The partition dirs of the findings, in their order."""
        self._outside: set[_Way] = set()
        """Remedies of findings that are not in a partition dir."""
        self._in_doubt: set[Path] = set()
        """Partition dirs with a segment that may hold batches of another partition."""

    def add(self, finding: Finding) -> None:
        """Count one finding; an info or a log dir that was given with its copy needs no repair."""
        is_copy = finding.code == "data-dir/duplicate-partition" and finding.topic is None
        if finding.severity is Severity.INFO or is_copy:
            return
        way = _way_of(finding)
        self._counts[way] += 1
        worst = self._worst.setdefault(way, finding)
        if finding.severity.weight > worst.severity.weight:
            self._worst[way] = finding
        if way.is_copied:
            self._partitions.setdefault(way, {})[Path(shlex.split(finding.next or "")[2])] = None
        elif folder := _log_of(finding) if way.is_filled else _partition_dir(finding):
            self._partitions.setdefault(way, {})[folder] = None
            if finding.code == FOREIGN_SEGMENT:
                self._in_doubt.add(folder)
        else:
            self._outside.add(way)

    def counts(self) -> Iterator[RemedyCount]:
        """Yield the remedies that findings have, in the order in which to apply them."""
        for remedy, is_filled in _ORDER:
            for way, count in self._counts.items():
                if (way.remedy, way.is_filled) == (remedy, is_filled):
                    yield RemedyCount(remedy, count, self._command(way))

    def _command(self, way: "_Way") -> str | None:
        worst, remedy = self._worst[way], way.remedy
        explain = f"logtool explain {worst.code}"
        if remedy is Remedy.BROKER:
            return None
        if any(files.is_remote(one) or expanded.is_expanded(one) for one in self._paths):
            return explain
        if remedy is Remedy.REMOTE:
            return self._restore(way)
        if remedy is Remedy.CHECKPOINT and worst.path:
            folders = list(self._partitions.get(way, {}))
            is_one = way not in self._outside and len(folders) == 1
            home = folders[0] if is_one else (_partition_dir(worst) or worst.path).parent
            return f"logtool checkpoint rebuild {shell.path(home)}"
        if way.is_filled:
            return self._fill(way)
        if way.is_copied and len(self._partitions[way]) <= MOST_COPIED:
            return shell.join(["cp", "-a", *map(str, self._partitions[way]), way.copies[-1]])
        if remedy is not Remedy.RECOVER:
            return explain
        # recover refuses to change a log dir in which something is lost.
        losing = {
            one
            for each, folders in self._partitions.items()
            if each.remedy is Remedy.LOSS
            for one in folders
        }
        left_out = losing | self._in_doubt
        folders = [one for one in self._partitions.get(way, {}) if one not in left_out]
        if way not in self._outside and not folders:
            # Filling mends these findings, too.
            filled = [each for each in self._counts if each[:2] == (Remedy.LOSS, True)]
            return self._fill(filled[0]) if len(filled) == 1 and not self._in_doubt else explain
        if self._in_doubt and not self._is_by_name(way, folders):
            return explain
        return self._recover("--full", way, folders)

    def _restore(self, way: "_Way") -> str:
        """Return the command that takes from remote storage; PREFIX is the place of the objects."""
        folders = list(self._partitions.get(way, {}))
        homes = dict.fromkeys([*(one.parent for one in folders), *self._paths])
        places = [one for one in homes if one not in folders]
        words = ["logtool remote restore --output restored", str(self._selection), "PREFIX"]
        return " ".join(word for word in [*words, *map(shell.path, places)] if word)

    def _fill(self, way: "_Way") -> str:
        """Return the command that fills logs from a copy."""
        folders = list(self._partitions[way])
        if way.copies:
            several = len(folders) > MOST_PARTITIONS
            places = dict.fromkeys(one.parent if several else one for one in folders)
            chosen = str(self._selection) if several else ""
            first = [shell.join(["logtool", "recover", *way.copies]), chosen]
            return " ".join(filter(None, [*first, *map(shell.path, places)]))
        options = [f"--fill-from {shell.path(copy)}" for copy in self._copies]
        words = " ".join(options) or "--fill-from COPY"
        return self._recover(words, way, folders)

    def _recover(self, options: str, way: "_Way", folders: Sequence[Path]) -> str:
        by_name = self._is_by_name(way, folders)
        words = [
            f"logtool recover {options}",
            *([] if by_name else [str(self._selection)]),
            *map(shell.path, folders if by_name else self._paths),
        ]
        return " ".join(word for word in words if word)

    def _is_by_name(self, way: "_Way", folders: Sequence[Path]) -> bool:
        """Return whether the command names the partition dirs, and not the paths of the run."""
        return way not in self._outside and 0 < len(folders) <= MOST_PARTITIONS


class _Way(NamedTuple):
    """A way to mend findings."""

    remedy: Remedy
    is_filled: bool
    """True if `recover` fills the log from a copy."""
    copies: tuple[str, ...] = ()
    """The options that name the copies, if a finding has a command with them."""

    @property
    def is_copied(self) -> bool:
        """Return whether the directory of the partition is copied into its log dir."""
        return self.copies[:1] == ("cp",)


_ORDER = (
    (Remedy.REMOTE, False),  # before any start
    (Remedy.CHECKPOINT, False),  # which `recover` may need to load a partition
    (Remedy.RECOVER, False),
    (Remedy.LOSS, True),
    (Remedy.REPLICA, True),
    (Remedy.LOSS, False),
    (Remedy.REPLICA, False),
    (Remedy.BROKER, False),  # a start may cut a log that a copy could fill
    (Remedy.NONE, False),
)


def _way_of(finding: Finding) -> _Way:
    words = shlex.split(finding.next or "")
    if words[:2] == ["cp", "-a"]:
        return _Way(finding.remedy, False, ("cp", words[-1]))
    is_filled = finding.remedy in (Remedy.LOSS, Remedy.REPLICA) and finding.code in FILLED
    if not is_filled or _log_of(finding) is None:
        return _Way(finding.remedy, False)
    if words[:2] == ["logtool", "diff"]:  # which copy is right is not known
        return _Way(finding.remedy, False)
    if words[:2] != ["logtool", "recover"] or "--fill-from" not in words:
        return _Way(finding.remedy, True)
    return _Way(finding.remedy, True, tuple(one for one in words[2:-1] if one != "--apply"))


def _log_of(finding: Finding) -> Path | None:
    """Return the partition dir whose log a copy can fill; None without one.

    None also for the metadata log, and for Redpanda.
    """
    folder = _partition_dir(finding)
    if finding.path and folder is None and finding.topic is not None:
        # A row of a checkpoint in the log dir.
        place = finding.path.parent / f"{finding.topic}-{finding.partition}"
        folder = place if not files.is_remote(place) and place.is_dir() else None
    if folder is None or finding.topic == CLUSTER_METADATA or _is_of_redpanda(folder):
        return None
    return folder


@cache
def _is_of_redpanda(folder: Path) -> bool:
    flavour = None if files.is_remote(folder) else opening.try_flavour(folder)
    return flavour is not None and flavour.has_raft_offsets


def _partition_dir(finding: Finding) -> Path | None:
    """Return the partition dir that a finding is in; None for one about a log dir or a broker."""
    if finding.path is None or finding.topic is None:
        return None
    name = f"{finding.topic}-{finding.partition}"
    return next((one for one in (finding.path, finding.path.parent) if one.name == name), None)
