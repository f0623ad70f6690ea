"""Two runs of `scan` compared: findings, growth by topic, replicas.

Two findings are the same if `_SAME_FINDING` is the same in both: their messages may have different
numbers. Replicas are reported that are further behind than before, or that diverge and did not
before.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from logtool.errors import UsageError
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass
from logtool.spark.scan import history, manifest
from logtool.spark.scan.manifest import Manifest

_SAME_FINDING: Final = ("severity", "code", "log_dir", "directory", "path", "segment", "position")
_COPY: Final = ("log_dir", "topic", "partition")
_GROWTH: Final = ("partition_dirs", "segments", "log_bytes", "records")


class FindingChange(StrEnum):
    """The change of a finding from one run to the other."""

    NEW = "new"
    GONE = "gone"
    STILL = "still"


class Lag(StrEnum):
    """The change of a replica that is worse off than in the earlier run."""

    BEHIND = "fell-behind"
    DIVERGED = "diverged"


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The differences between two runs."""

    findings: list[tuple[FindingChange, dict[str, Any]]]
    """Each finding with its row of the later run, or of the earlier run if it is gone."""
    growth: list[dict[str, Any]]
    """For each topic of either run: `_GROWTH` of the later run, and of the earlier run with
    ``_before`` behind the names; 0 for a run without the topic."""
    replicas: list[tuple[Lag, dict[str, Any], dict[str, Any] | None]]
    """Each replica with its row of the later run, and that of the earlier run, None without one."""
    skipped: list[str]
    """Tables that one of the two lacks."""

    def count(self, state: FindingChange) -> int:
        """Return the number of findings of a state."""
        return sum(one is state for one, _ in self.findings)

    @property
    def is_worse(self) -> bool:
        """Return whether a finding above info is new, or a replica fell behind or diverged."""
        bad = (
            row["severity"] != Severity.INFO
            for one, row in self.findings
            if one is FindingChange.NEW
        )
        return any(bad) or bool(self.replicas)


def compare(output: str, before: str, after: str) -> RunComparison:
    """Compare two complete runs; RefusedError for one that does not exist.

    UsageError if both are the same run.
    """
    if before == after:
        raise UsageError(f"--compare {before} {after}: expected two runs")
    runs = manifest.find(output, before), manifest.find(output, after)
    skipped = [
        name for name in ("findings", "replicas") if not all(name in run.rows for run in runs)
    ]
    old, new = ([] if "findings" in skipped else _rows(output, run, "findings") for run in runs)
    copies, now = ([] if "replicas" in skipped else _rows(output, run, "replicas") for run in runs)
    return RunComparison(
        findings=list(_findings(old, new)),
        growth=_growth(*(_rows(output, run, history.TABLE) for run in runs)),
        replicas=list(_replicas(copies, now)),
        skipped=skipped,
    )


def _rows(output: str, run: Manifest, table: str) -> list[dict[str, Any]]:
    return list(history.rows_of(output, run, table))


def _findings(
    old: Iterable[dict[str, Any]], new: Iterable[dict[str, Any]]
) -> Iterator[tuple[FindingChange, dict[str, Any]]]:
    """Yield each finding with its state; several findings of one place are counted."""
    left = Counter(map(_place_of, old))
    for row in sorted(new, key=lambda row: row["number"]):
        place = _place_of(row)
        yield FindingChange.STILL if left[place] > 0 else FindingChange.NEW, row
        left[place] -= left[place] > 0
    for row in sorted(old, key=lambda row: -row["number"]):
        if left[_place_of(row)] > 0:
            left[_place_of(row)] -= 1
            yield FindingChange.GONE, row


def _place_of(row: Mapping[str, Any]) -> Hashable:
    return tuple(row[name] for name in _SAME_FINDING)


def _growth(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    before, after = ({row["topic"]: row for row in rows if row["topic"]} for rows in (old, new))
    nothing = dict.fromkeys(_GROWTH, 0)
    return [
        {"topic": topic}
        | {name: after.get(topic, nothing)[name] for name in _GROWTH}
        | {f"{name}_before": before.get(topic, nothing)[name] for name in _GROWTH}
        for topic in sorted({*before, *after})
    ]


def _replicas(
    old: list[dict[str, Any]], new: list[dict[str, Any]]
) -> Iterator[tuple[Lag, dict[str, Any], dict[str, Any] | None]]:
    before = {tuple(row[name] for name in _COPY): row for row in old}
    for row in sorted(new, key=lambda row: (row["topic"], row["partition"], row["log_dir"])):
        known = before.get(tuple(row[name] for name in _COPY))
        if row["diverges_at"] is not None and (not known or known["diverges_at"] is None):
            yield Lag.DIVERGED, row, known
        elif (row["behind"] or 0) > ((known["behind"] if known else 0) or 0):
            yield Lag.BEHIND, row, known
