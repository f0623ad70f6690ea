"""Two runs of `scan` held against each other: findings, growth by topic, replicas.

A finding is the same in both if code, place and what it is about are: its message may have other
numbers. Of replicas those are told that are further behind than before, or diverge and did not.
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
    """What became of a finding."""

    NEW = "new"
    GONE = "gone"
    STILL = "still"


class Lag(StrEnum):
    """What became of a replica."""

    BEHIND = "fell-behind"
    DIVERGED = "diverged"


@dataclass(frozen=True, slots=True)
class RunComparison:
    """What two runs say; every list is in the order of topics and places."""

    findings: list[tuple[FindingChange, dict[str, Any]]]
    """With the row of the later run, or of the earlier one where it is gone."""
    growth: list[dict[str, Any]]
    """For each topic in either: `_GROWTH` and the same with ``_before``; 0 where it is not."""
    replicas: list[tuple[Lag, dict[str, Any], dict[str, Any] | None]]
    """With the row of the later run, and that of the earlier one if there was one."""
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
    """Compare two complete runs; RefusedError where one is not there.

    UsageError where it is twice the same.
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
    """Yield each finding with its state; of several of one place as many are still there."""
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
