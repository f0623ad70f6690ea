"""Ways to repair the findings of a run: counted by remedy, each with its command."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.disk import expanded, files, shell
from logtool.findings import Finding, Remedy, Severity
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import Selection

MOST_PARTITIONS = 3
"""Partition dirs that a command names; it takes the log dirs if more need it."""


@dataclass(frozen=True, slots=True)
class RemedyCount:
    """Findings with one remedy, and the command that mends them or shows what mending costs."""

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
        self._counts: Counter[Remedy] = Counter()
        self._worst: dict[Remedy, Finding] = {}
        """The first of the gravest findings of each remedy."""
        self._partitions: dict[Remedy, dict[Path, None]] = {}
        """The partition dirs of the findings, in their order."""
        self._outside: set[Remedy] = set()
        """Remedies of findings that are not in a partition dir."""

    def add(self, finding: Finding) -> None:
        """Count one finding."""
        if finding.severity is Severity.INFO:
            return
        remedy = finding.remedy
        self._counts[remedy] += 1
        worst = self._worst.setdefault(remedy, finding)
        if finding.severity.weight > worst.severity.weight:
            self._worst[remedy] = finding
        if folder := _partition_dir(finding):
            self._partitions.setdefault(remedy, {})[folder] = None
        else:
            self._outside.add(remedy)

    def counts(self) -> Iterator[RemedyCount]:
        """Yield the remedies that findings have, in the order in which to apply them."""
        for remedy in _ORDER:
            if self._counts[remedy]:
                yield RemedyCount(remedy, self._counts[remedy], self._command(remedy))

    def _command(self, remedy: Remedy) -> str | None:
        worst = self._worst[remedy]
        explain = f"logtool explain {worst.code}"
        if remedy is Remedy.BROKER:
            return None
        if any(files.is_remote(one) or expanded.is_expanded(one) for one in self._paths):
            return explain
        if remedy is Remedy.CHECKPOINT and worst.path:
            folders = list(self._partitions.get(remedy, {}))
            is_one = remedy not in self._outside and len(folders) == 1
            home = folders[0] if is_one else (_partition_dir(worst) or worst.path).parent
            return f"logtool checkpoint rebuild {shell.path(home)}"
        if remedy not in _RECOVER:
            return explain
        losing = self._partitions.get(Remedy.LOSS, {})
        folders = list(self._partitions.get(remedy, {}))
        if remedy is Remedy.RECOVER:
            # recover refuses to change a log dir in which something is lost.
            folders = [one for one in folders if one not in losing]
        by_name = remedy not in self._outside and 0 < len(folders) <= MOST_PARTITIONS
        targets = folders if by_name else self._paths
        if not targets:
            return explain
        is_safe = remedy is Remedy.RECOVER and (by_name or not self._counts[Remedy.LOSS])
        words = [
            "logtool recover --full" + (" --apply" if is_safe else ""),
            *([] if by_name else [str(self._selection)]),
            *map(shell.path, targets),
        ]
        return " ".join(word for word in words if word)


_ORDER = (
    Remedy.BROKER,
    Remedy.CHECKPOINT,  # which `recover` may need to load a partition
    Remedy.RECOVER,
    Remedy.LOSS,
    Remedy.REPLICA,
    Remedy.NONE,
)
_RECOVER = (Remedy.RECOVER, Remedy.LOSS)


def _partition_dir(finding: Finding) -> Path | None:
    """Return the partition dir that a finding is in; None for one about a log dir or a broker."""
    if finding.path is None or finding.topic is None:
        return None
    name = f"{finding.topic}-{finding.partition}"
    return next((one for one in (finding.path, finding.path.parent) if one.name == name), None)
