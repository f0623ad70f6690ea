"""Differences between logtool and a broker in the load and recovery of damaged partitions."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from broker import agreement
from broker.damaged import Case
from broker.install import minor
from broker.recovery import LOADED, Outcome, files_in, fill, groups

from logtool.errors import LogtoolError
from logtool.formats import names
from logtool.loading.loader import load
from logtool.loading.result import LoadResult, StartConditions
from logtool.log import opening
from logtool.node.options import StartOptions
from logtool.startup.partition import PartitionForecast
from logtool.startup.recover import ApplyConsent, Recover

Outcomes = Mapping[str, Outcome]


def forecast(version: str, cases: Sequence[Case], outcomes: Outcomes) -> list[str]:
    """Return the differences in the outcome, the offsets and the files."""
    wrong = []
    for case in cases:
        outcome = outcomes[case.name]
        found = _loaded(version, case, outcome)
        kind = {"loads": LOADED}.get(found.outcome, str(found.outcome))
        files = {name: file.read() for name, file in found.shadow.files.items()}
        emptied = _emptied_in(found)
        predicted = agreement.Prediction(
            kind, _without_residue(files, emptied) if kind == LOADED else {}, found.log_start,
            found.log_end,
        )  # fmt: skip
        is_now = dataclasses.replace(outcome, files=_without_residue(outcome.files, emptied))
        wrong += _described(case, agreement.compare(case, is_now, predicted))
    return wrong


def recovery(version: str, cases: Sequence[Case], outcomes: Outcomes, work: Path) -> list[str]:
    """Recover the partitions that the broker loads; return the differences in the files.

    All log dirs of one broker, with and without a clean marker, are recovered together.
    """
    wrong: list[str] = []
    fit = [case for case in cases if outcomes[case.name].kind == LOADED]
    by_settings: dict[object, list[Case]] = defaultdict(list)
    for case in fit:
        by_settings[case.settings].append(case)
    for number, (_, given) in enumerate(sorted(by_settings.items(), key=str)):
        homes: dict[str, Path] = {}
        for part in groups(given):
            home = work / f"log-dir-{number}-{len(homes)}"
            home.mkdir(parents=True)
            fill(home, part)
            homes |= {case.name: home for case in part}
        settings = given[0].settings
        wrong += _recover(version, given, sorted(set(homes.values())), settings.index_interval,
                          settings.index_size)  # fmt: skip
        for case in given:
            outcome = outcomes[case.name]
            emptied = _emptied_in(_loaded(version, case, outcome))
            left = files_in(homes[case.name] / case.directory)
            is_now = dataclasses.replace(outcome, files=_without_residue(outcome.files, emptied))
            again = agreement.Prediction(LOADED, _without_residue(left, emptied))
            wrong += _described(case, agreement.compare(case, is_now, again))
    return wrong


def _recover(
    version: str, cases: Sequence[Case], homes: Sequence[Path], interval: int, size: int
) -> list[str]:
    assumed = StartOptions(minor(version), interval, size)
    accepted = frozenset((case.name, 0) for case in cases)
    items = list(Recover(homes, assumed, ApplyConsent(apply=True, accepted=accepted)))
    wrong = [str(item) for item in items if isinstance(item, LogtoolError)]
    forecasts = [item for item in items if isinstance(item, PartitionForecast)]
    wrong += [
        f"{item.request.path}: {item.outcome} {item.reason}, the broker loads it"
        for item in forecasts
        if item.outcome != "loads"
    ]
    if len(forecasts) != len(cases):
        wrong.append(f"{len(cases)} cases given, {len(forecasts)} recovered")
    return wrong


def _loaded(version: str, case: Case, outcome: Outcome) -> LoadResult:
    """Load a case with the settings and the clock of the broker's start."""
    found = opening.open_partition(case.path)
    found = dataclasses.replace(found, directory=names.parse_directory(case.directory))
    start = StartConditions(
        case.clean, case.recovery_point or 0, case.log_start or 0, now_ms=outcome.started_ms,
        index_interval=case.settings.index_interval, max_index_size=case.settings.index_size,
        kafka=minor(version),
    )  # fmt: skip
    return load(found, start)


def _without_residue(files: Mapping[str, bytes], emptied: Collection[int]) -> dict[str, bytes]:
    """Return the files without the indexes of segments that were emptied.

    A broker leaves the entries that it had written in a file longer than the index. logtool leaves
    an empty file.
    """
    gone = {f"{base:020d}{suffix}" for base in emptied for suffix in (".index", ".timeindex")}
    return {name: data for name, data in files.items() if name not in gone}


def _emptied_in(found: LoadResult) -> list[int]:
    return [one.base_offset for one in found.recovered if one.emptied]


def _described(case: Case, differences: Sequence[str]) -> list[str]:
    return [f"{difference} | {case.description}" for difference in differences]
