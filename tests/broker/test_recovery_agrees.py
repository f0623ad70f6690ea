"""What a broker does to damaged partitions when it starts; what logtool says and does to them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest
from broker import agreement, recovery, sources
from broker.damaged import SETTINGS, Case, cases
from broker.kafka import Broker, format_log_dir
from broker.recovery import LOADED, OFFLINE, REFUSES, Outcome

from logtool import partition
from logtool.errors import LogtoolError
from logtool.forecast import PartitionForecast, Settings
from logtool.formats import names
from logtool.loading.loader import Loaded, Start, load
from logtool.recover import Consent, Recover

pytestmark = pytest.mark.broker

COUNT = 300
SEED = 1


@pytest.fixture(scope="module")
def given(
    scenario: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[list[Case], dict[str, Outcome]]]:
    """Return a function from a release to its cases and their outcomes, made once."""
    made: dict[str, tuple[list[Case], dict[str, Outcome]]] = {}

    def of(version: str) -> tuple[list[Case], dict[str, Outcome]]:
        if version not in made:
            work = tmp_path_factory.mktemp(f"recovery-{version}")
            made_cases = cases(version, scenario, work / "cases", seed=SEED, count=COUNT)
            made[version] = made_cases, recovery.outcomes(version, made_cases, work)
        return made[version]

    return of


Given = Callable[[str], tuple[list[Case], dict[str, Outcome]]]


def test_each_case_has_an_outcome_and_each_outcome_occurs(given: Given, kafka_version: str) -> None:
    made, found = given(kafka_version)
    assert found.keys() == {case.name for case in made}
    kinds = Counter(outcome.kind for outcome in found.values())
    print(kafka_version, dict(kinds))
    assert kinds[LOADED] > COUNT * 0.7
    assert kinds[REFUSES] > 5
    assert kinds[OFFLINE] > 2
    assert all(outcome.error for outcome in found.values() if outcome.kind != LOADED)


def test_what_is_sound_stays_as_it_is(given: Given, kafka_version: str) -> None:
    made, found = given(kafka_version)
    sound = [case for case in made if not case.damage and found[case.name].kind == LOADED]
    for case in sound:
        outcome = found[case.name]
        end = sources.end_offset(case.path)
        assert outcome.log_end == max(end, case.log_start or 0), case.description
        if (case.log_start or 0) <= end:
            for path in sources.logs(case.path):
                assert outcome.files[path.name] == path.read_bytes(), case.description
    assert len(sound) > COUNT // 40


def test_a_broker_with_no_gate_does_the_same_and_leaves_stray_logs_alone(
    given: Given, kafka_version: str, tmp_path: Path
) -> None:
    made, found = given(kafka_version)
    fit = [
        case
        for case in made
        if case.settings == SETTINGS[1]
        and (case.clean, case.purpose) == (False, "stray")
        and found[case.name].kind == LOADED
    ][:60]
    log_dir = tmp_path / "log-dir"
    format_log_dir(kafka_version, [log_dir])
    recovery.fill(log_dir, fit)
    with Broker(kafka_version, [log_dir], recovery.config(SETTINGS[1])) as broker:
        broker.start()
        broker.kill()
    for case in fit:
        files = recovery.files_in(log_dir / case.directory)
        again = dataclasses.replace(found[case.name], files=files)
        assert agreement.compare(case, again, found[case.name]) == [], case.description


@pytest.mark.parametrize("kind", [REFUSES, OFFLINE])
def test_a_broker_with_no_gate_refuses_to_start_or_gives_up_the_log_dir(
    kind: str, given: Given, kafka_version: str, tmp_path: Path
) -> None:
    made, found = given(kafka_version)
    case = next(case for case in made if found[case.name].kind == kind)
    dirs = [tmp_path / "first", tmp_path / "second"]
    format_log_dir(kafka_version, dirs)
    recovery.fill(dirs[1], [case])
    with Broker(kafka_version, dirs, recovery.config(case.settings)) as broker:
        if kind == REFUSES:
            with pytest.raises(Exception, match="ended with 1"):
                broker.start()
            assert found[case.name].error.partition("/")[0] in broker.log
        else:
            broker.start()
            assert f"Stopping serving logs in dir {dirs[1]}" in broker.log


def kafka(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def loaded(case: Case, outcome: Outcome, version: str) -> Loaded:
    """Load a case as the broker was started on it."""
    found = partition.read(case.path)
    found = dataclasses.replace(found, directory=names.parse_directory(case.directory))
    start = Start(
        case.clean, case.recovery_point or 0, case.log_start or 0, now_ms=outcome.started_ms,
        index_interval=case.settings.index_interval, max_index_size=case.settings.index_size,
        kafka=kafka(version),
    )  # fmt: skip
    return load(found, start)


def without_residue(files: Mapping[str, bytes], emptied: Collection[int]) -> dict[str, bytes]:
    """Leave out the indexes of segments that were emptied.

    A broker leaves the entries that it had written until then behind the end of the index, in a
    file that is longer than that: logtool leaves an empty one.
    """
    gone = {f"{base:020d}{suffix}" for base in emptied for suffix in (".index", ".timeindex")}
    return {name: data for name, data in files.items() if name not in gone}


def emptied_in(found: Loaded) -> list[int]:
    return [one.base_offset for one in found.recovered if one.emptied]


def test_the_forecast_says_what_the_broker_does(given: Given, kafka_version: str) -> None:
    made, outcomes = given(kafka_version)
    wrong = []
    for case in made:
        outcome = outcomes[case.name]
        found = loaded(case, outcome, kafka_version)
        kind = {"loads": LOADED}.get(found.outcome, str(found.outcome))
        emptied = emptied_in(found)
        files = {name: file.read() for name, file in found.shadow.files.items()}
        predicted = agreement.Prediction(
            kind, without_residue(files, emptied) if kind == LOADED else {}, found.log_start,
            found.log_end,
        )  # fmt: skip
        is_now = dataclasses.replace(outcome, files=without_residue(outcome.files, emptied))
        differences = agreement.compare(case, is_now, predicted)
        wrong += [f"{difference} | {case.description}" for difference in differences]
    assert wrong == []


def test_recovery_leaves_the_files_that_the_broker_leaves(
    given: Given, kafka_version: str, tmp_path: Path
) -> None:
    made, outcomes = given(kafka_version)
    fit = [case for case in made if outcomes[case.name].kind == LOADED]
    groups = {(case.settings, case.clean) for case in fit}
    for number, (settings, clean) in enumerate(sorted(groups, key=str)):
        log_dir = tmp_path / f"log-dir-{number}"
        log_dir.mkdir()
        cases = [case for case in fit if (case.settings, case.clean) == (settings, clean)]
        recovery.fill(log_dir, cases)
        assumed = Settings(kafka(kafka_version), settings.index_interval, settings.index_size)
        accepted = frozenset((case.name, 0) for case in cases)
        items = list(Recover([log_dir], assumed, Consent(apply=True, accepted=accepted)))
        assert [item for item in items if isinstance(item, LogtoolError)] == []
        assert {i.outcome for i in items if isinstance(i, PartitionForecast)} == {"loads"}
        for case in cases:
            outcome = outcomes[case.name]
            emptied = emptied_in(loaded(case, outcome, kafka_version))
            files = without_residue(recovery.files_in(log_dir / case.directory), emptied)
            is_now = dataclasses.replace(outcome, files=without_residue(outcome.files, emptied))
            again = agreement.Prediction(LOADED, files)
            assert agreement.compare(case, is_now, again) == [], case.description
