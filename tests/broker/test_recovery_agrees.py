"""`plan` and `recover` agree with brokers that start on damaged partitions."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from broker import agreement, damaged, differences, recovery, sources
from broker.damaged import SETTINGS, Case, cases
from broker.install import LOADING_VERSIONS
from broker.kafka import Broker, format_log_dir
from broker.recovery import LOADED, OFFLINE, REFUSES, Outcome

pytestmark = pytest.mark.broker

COUNT = 250
"""Number of cases of each release; `make campaign` makes more."""
SEED = 1


Given = Callable[[str], tuple[list[Case], dict[str, Outcome]]]


@pytest.fixture(scope="module")
def given(scenario: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Return a function from a release to its cases and their outcomes, made once."""

    @cache
    def of(version: str) -> tuple[list[Case], dict[str, Outcome]]:
        work = tmp_path_factory.mktemp(f"recovery-{version}")
        made = cases(version, scenario, work / "cases", seed=SEED, count=COUNT)
        return made, recovery.outcomes(version, made, work)

    return of


def test_each_case_has_an_outcome_and_each_outcome_occurs(
    given: Given, loading_version: str
) -> None:
    made, found = given(loading_version)
    assert found.keys() == {case.name for case in made}
    kinds = Counter(outcome.kind for outcome in found.values())
    print(loading_version, dict(kinds))
    assert kinds[LOADED] > COUNT * 0.7
    assert kinds[REFUSES] > 5
    assert kinds[OFFLINE] > 2
    assert all(outcome.error for outcome in found.values() if outcome.kind != LOADED)


def test_sound_logs_stay_unchanged(given: Given, loading_version: str) -> None:
    made, found = given(loading_version)
    sound = [case for case in made if not case.damage and found[case.name].kind == LOADED]
    for case in sound:
        outcome = found[case.name]
        end = sources.end_offset(case.path)
        assert outcome.log_end == max(end, case.log_start or 0), case.description
        if (case.log_start or 0) <= end:
            for path in sources.logs(case.path):
                assert outcome.files[path.name] == path.read_bytes(), case.description
    assert len(sound) > COUNT // 40


@pytest.mark.parametrize(
    "loading_version", [v for v in LOADING_VERSIONS if damaged.knows_stray(v)], indirect=True
)
def test_a_broker_with_no_gate_does_the_same_and_leaves_stray_logs_alone(
    given: Given, loading_version: str, tmp_path: Path
) -> None:
    made, found = given(loading_version)
    fit = [
        case
        for case in made
        if case.settings == SETTINGS[1]
        and (case.clean, case.purpose) == (False, "stray")
        and found[case.name].kind == LOADED
    ][:60]
    log_dir = tmp_path / "log-dir"
    format_log_dir(loading_version, [log_dir])
    recovery.fill(log_dir, fit)
    with Broker(loading_version, [log_dir], recovery.config(SETTINGS[1])) as broker:
        broker.start()
        broker.kill()
    for case in fit:
        files = recovery.files_in(log_dir / case.directory)
        again = dataclasses.replace(found[case.name], files=files)
        assert agreement.compare(case, again, found[case.name]) == [], case.description


@pytest.mark.parametrize("kind", [REFUSES, OFFLINE])
def test_a_broker_with_no_gate_refuses_to_start_or_gives_up_the_log_dir(
    kind: str, given: Given, loading_version: str, tmp_path: Path
) -> None:
    made, found = given(loading_version)
    case = next(case for case in made if found[case.name].kind == kind)
    dirs = [tmp_path / "first", tmp_path / "second"]
    format_log_dir(loading_version, dirs)
    recovery.fill(dirs[1], [case])
    with Broker(loading_version, dirs, recovery.config(case.settings)) as broker:
        if kind == REFUSES:
            with pytest.raises(Exception, match="ended with 1"):
                broker.start()
            assert found[case.name].error.partition("/")[0] in broker.log
        else:
            broker.start()
            assert f"Stopping serving logs in dir {dirs[1]}" in broker.log


def test_the_forecast_agrees_with_the_broker(given: Given, loading_version: str) -> None:
    made, outcomes = given(loading_version)
    assert differences.forecast(loading_version, made, outcomes) == []


def test_recovery_leaves_the_files_that_the_broker_leaves(
    given: Given, loading_version: str, tmp_path: Path
) -> None:
    made, outcomes = given(loading_version)
    assert differences.recovery(loading_version, made, outcomes, tmp_path) == []
