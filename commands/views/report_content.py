"""The content of a report, in whatever form it is written."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from logtool.commands.printing.writers import Object
from logtool.doctor.log_map import LogMap
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.startup.partition import PartitionForecast

MOST_LOGS = 200
"""Logs in the map: those with the most damage, then the largest."""
_WEIGHTS = ("good", "info", "warning", "error")
_VERDICTS: Mapping[str, str] = {
    "good": "Nothing is wrong in what was checked",
    "info": "Nothing is wrong in what was checked",
    "warning": "There are warnings",
    "error": "There is damage, or the next start loses or refuses something",
}


@dataclass(frozen=True, slots=True)
class Content:
    """The results of `doctor`, with the logs that it looked at."""

    paths: Sequence[Path]
    version: str
    made_at: str
    """Time in UTC."""
    status: int
    """Exit status."""
    rows: Sequence[Object]
    """Findings, actions and answers, in the order of `doctor`."""
    forecasts: Sequence[PartitionForecast]
    logs: Sequence[LogMap]
    unread: Sequence[UnreadableError]
    is_complete: bool

    @property
    def state(self) -> str:
        """Return the worst state of an answer."""
        states = [row["state"] for row in self.rows if row.get("state") in _WEIGHTS]
        return max(states, key=_WEIGHTS.index, default="info")

    @property
    def verdict(self) -> str:
        """Return the result in one sentence."""
        return _VERDICTS[self.state] + ("" if self.is_complete else "; not everything was checked")

    def rows_of(self, kind: str) -> list[Object]:
        """Return the objects of one type."""
        return [row for row in self.rows if row["type"] == kind]

    def nodes(self) -> Iterator[list[Object]]:
        """Yield the answers about each broker; those of one broker end with the next commands."""
        found: list[Object] = []
        for row in self.rows:
            if row["type"] in ("finding", "action"):
                continue
            if found and found[-1]["type"] == "next" != row["type"]:
                yield found
                found = []
            found.append(row)
        if found:
            yield found

    def relative(self, path: str | None) -> str:
        """Return a path without the log dir, if there is only one."""
        prefix = f"{self.paths[0]}/" if len(self.paths) == 1 else ""
        return (path or "").removeprefix(prefix)

    def logs_by_damage(self) -> list[LogMap]:
        """Return the logs that hold anything, those with the most damage first."""
        nonempty = [log for log in self.logs if log.size]
        return sorted(nonempty, key=lambda log: (-len(log.marks), -log.size))
