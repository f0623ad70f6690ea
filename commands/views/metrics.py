"""Metrics of a run in the text format of Prometheus, for the textfile collector of node_exporter.

Each metric has a HELP and a TYPE line, then its samples: name, labels and value (exposition formats
of Prometheus, text-based format 0.0.4). The file is there with all of them or not at all: it is
written under another name, which the collector does not read, and gets its own when it is durable.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.commands import output
from logtool.errors import LogtoolError, UsageError
from logtool.exits import Exit
from logtool.findings import Severity, rule
from logtool.lazy_dataclass import dataclass
from logtool.running import own_file
from logtool.running.summary import Summary

_SUCCESS = "logtool_last_success_timestamp_seconds"
_LARGEST = 1 << 20
"""Bytes of an earlier file that are read."""
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge with its samples."""

    name: str
    help: str
    samples: Sequence[tuple[Labels, float]]

    def lines(self) -> Iterator[str]:
        """Yield its lines; none without samples."""
        if self.samples:
            yield f"# HELP {self.name} {_escaped(self.help)}"
            yield f"# TYPE {self.name} gauge"
        for labels, value in self.samples:
            pairs = ",".join(f'{name}="{_quoted(text)}"' for name, text in labels.items())
            yield f"{self.name}{{{pairs}}} {value!r}"


class MetricsFile:
    """The file of ``--metrics-file`` for one run of a command."""

    def __init__(self, path: Path | None, command: str, given: Sequence[Path]) -> None:
        """Take the path, None for no file; RefusedError for one in a log dir or a `given` path."""
        self._path, self._labels = path, {"command": command}
        if path is None:
            return
        own_file.require_outside(path, given)
        if path.suffix != ".prom":
            raise UsageError(f"--metrics-file {path}: expected a name that ends with .prom")

    def write(
        self,
        summary: Summary,
        status: Exit,
        *,
        found: Mapping[str, int] | None = None,
        more: Sequence[Metric] = (),
    ) -> Exit:
        """Write the metrics of a run; return its exit status, or INCOMPLETE if that fails.

        `found` has the findings by code, by default those of the run; `more` are further metrics.
        """
        if self._path is None:
            return status
        now_s = time.time()
        success = now_s if summary.complete and not summary.nothing_matched else self._before()
        metrics = [*self._of_run(summary, status, now_s), *more]
        if success is not None:
            text = "Time at which the last complete run ended, in seconds since 1970."
            metrics.insert(1, self.metric(_SUCCESS, text, success))
        counts = summary.codes if found is None else found
        samples = [
            ({**self._labels, "code": code, "severity": str(rule(code).severity)}, number)
            for code, number in sorted(counts.items())
        ]
        text = "Findings by code and severity; of scrub, those that are open."
        metrics.append(Metric("logtool_findings", text, samples))
        content = "".join(f"{line}\n" for one in metrics for line in one.lines())
        try:
            own_file.replace(self._path, content.encode("utf-8", "backslashreplace"))
        except LogtoolError as error:
            output.error(str(error))
            return status if status in (Exit.INTERRUPTED, Exit.TERMINATED) else Exit.INCOMPLETE
        return status

    def metric(self, name: str, text: str, value: float) -> Metric:
        """Return a metric with one sample."""
        return Metric(name, text, [(self._labels, value)])

    def labelled(self, name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
        """Return a metric with a sample for each value of a label."""
        samples = [({**self._labels, label: key}, value) for key, value in values.items()]
        return Metric(name, text, samples)

    def _of_run(self, summary: Summary, status: Exit, now_s: float) -> Iterator[Metric]:
        """Yield the metrics that every command has."""
        yield self.metric(
            "logtool_last_run_timestamp_seconds",
            "Time at which the last run ended, in seconds since 1970.",
            now_s,
        )
        yield self.metric(
            "logtool_run_duration_seconds", "Duration of the last run.", summary.elapsed_s
        )
        yield self.metric("logtool_exit_status", "Exit status of the last run.", int(status))
        yield self.metric(
            "logtool_complete",
            "1 if the last run read everything that was asked for, else 0.",
            int(summary.complete),
        )
        yield self.metric(
            "logtool_checked_bytes", "Bytes of logs that the last run read.", summary.bytes
        )
        yield self.metric(
            "logtool_partitions", "Partitions that the last run looked at.", summary.partitions
        )
        severities = {str(one): summary.severities[one] for one in Severity}
        text = "Findings of the last run by severity."
        yield self.labelled("logtool_run_findings", text, "severity", severities)

    def _before(self) -> float | None:
        """Return the time of the last complete run, from the file of the run before."""
        pattern = re.compile(rf'^{_SUCCESS}{{command="([^"\\]*)"}} ([0-9.e+]+)$', re.MULTILINE)
        if self._path is None:
            return None
        with suppress(OSError, ValueError):
            with self._path.open("rb") as file:
                text = file.read(_LARGEST).decode("utf-8", "replace")
            for command, value in pattern.findall(text):
                if command == self._labels["command"]:
                    return float(value)
        return None


def _escaped(text: str) -> str:
    """Return the text of a HELP line."""
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    """Return the value of a label."""
    return _escaped(text).replace('"', r"\"")
