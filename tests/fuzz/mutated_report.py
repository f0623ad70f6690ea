"""The report of ``make mutate``, made of what every log dir gave."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

_SLOW = 10
"""CPU seconds."""


def broken(result: dict[str, Any]) -> list[str]:
    """Return a line for each run of a log dir that broke the contract."""
    return [
        f"directory {result['directory']} ({result['base']}: {'; '.join(result['changes'])}): "
        f"logtool {shlex.join(run['words'])}: {'; '.join(run['problems'])}"
        for run in result["runs"]
        if run["problems"]
    ]


def page(results: Sequence[dict[str, Any]], seed: int) -> str:
    """Return the text of the committed report."""
    runs = [run for one in results for run in one["runs"]]
    statuses = Counter(run["status"] for run in runs)
    by_command: dict[str, Counter[int]] = defaultdict(Counter)
    for run in runs:
        by_command[_command(run["words"])][run["status"]] += 1
    shown = sorted(statuses)
    bad = [line for one in sorted(results, key=_number) for line in broken(one)]
    counts = {
        "runs": len(runs),
        "log dirs": len(results),
        "status 70": statuses[70],
        "ended by the time limit of one minute": statuses[-14],
        "ended by another signal": sum(
            count for status, count in statuses.items() if status < 0 and status != -14
        ),
        "with a traceback on standard error": _with(runs, "a traceback"),
        "that changed a log dir without `--apply`": _with(runs, "it changed its input"),
        "whose JSON or CSV does not parse": _with(runs, "does not parse", "not accepted"),
        "with another violation of the contract": sum(
            bool(run["problems"]) for run in runs
        ) - sum(run["status"] == 70 or run["status"] < 0 for run in runs),
    }  # fmt: skip
    lines = [
        "# All commands on mutated log dirs",
        "",
        "Written by `make mutate`. Seed and number of a log dir make it again:",
        f"`make mutate MUTATE_ARGS='--seed {seed} --directory N'`.",
        "",
        "| count | |",
        "| ---: | --- |",
        *(f"| {count:,} | {name} |" for name, count in counts.items()),
        f"| {max((run['peak'] for run in runs), default=0)} MiB | most memory of a run, with "
        "all modules of logtool |",
        f"| {max((run['cpu'] for run in runs), default=0)} s | most CPU time of a run |",
        f"| {sum(run['cpu'] for run in runs) / 60:,.0f} min | CPU time of all runs |",
        "",
        "## Runs by command and exit status",
        "",
        "| command | runs |" + "".join(f" {_status(one)} |" for one in shown),
        "| --- | ---: |" + " ---: |" * len(shown),
        *(
            f"| {name} | {counted.total():,} |"
            + "".join(f" {counted[one]:,} |" for one in shown)
            for name, counted in sorted(by_command.items())
        ),
        f"| all | {len(runs):,} |" + "".join(f" {statuses[one]:,} |" for one in shown),
        "",
        *_counted("Runs by format", "format", Counter(_format(run["words"]) for run in runs)),
        *_counted("Log dirs by origin", "origin", Counter(one["base"] for one in results)),
        *_counted("Changes by kind", "kind", Counter(_kinds(results))),
        *_slowest(runs),
        "## Runs that broke the contract",
        "",
        *([f"- {line}" for line in bad] or ["None."]),
    ]  # fmt: skip
    return "\n".join(lines).rstrip("\n") + "\n"


def _number(result: dict[str, Any]) -> int:
    number: int = result["directory"]
    return number


def _with(runs: Sequence[dict[str, Any]], *texts: str) -> int:
    return sum(any(text in one for one in run["problems"] for text in texts) for run in runs)


def _command(words: Sequence[str]) -> str:
    both = words[0] in ("checkpoint", "metadata")
    return " ".join(words[: 1 + both])


def _format(words: Sequence[str]) -> str:
    return words[words.index("-f") + 1] if "-f" in words else "(no option)"


def _status(status: int) -> str:
    return f"signal {-status}" if status < 0 else str(status)


def _kinds(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    for one in results:
        for change in one["changes"]:
            yield change.split(": ")[1]


def _counted(title: str, of: str, counts: Counter[str]) -> list[str]:
    return [
        f"## {title}",
        "",
        f"| {of} | count |",
        "| --- | ---: |",
        *(f"| {name} | {count:,} |" for name, count in sorted(counts.items())),
        "",
    ]


def _slowest(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return a section for runs that took long, if there are any."""
    slow = sorted((run for run in runs if run["cpu"] > _SLOW), key=lambda run: -run["cpu"])
    if not slow:
        return []
    rows = [f"- {run['cpu']:.0f} s: `logtool {shlex.join(run['words'])}`" for run in slow[:10]]
    return [f"## Runs of more than {_SLOW} CPU seconds: {len(slow)}", "", *rows, ""]
