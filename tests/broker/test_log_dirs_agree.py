"""`plan` and `verify` predict the start of a broker with several log dirs.

A sample of the faults of `log_dirs`; ``make log-dirs`` tests all of them with all releases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from broker import log_dirs
from broker.log_dirs import Home, Outcome

from logtool.findings import Finding, Severity
from logtool.verify import Level, Verification

pytestmark = pytest.mark.broker

SAMPLE = (
    "b-missing", "b-empty", "b-version-9", "b-same-id", "a-version-9", "two-metadata-logs",
    "twice", "twice-stray", "stray-unclean", "no-index", "future-alone", "future-assigned",
    "future-assigned-offline",
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function from a release to three log dirs that its broker wrote once."""

    @cache
    def made(version: str) -> Path:
        path = tmp_path_factory.mktemp(f"base-{version}")
        log_dirs.make_base(version, path)
        return path

    return made


def errors(home: Home, level: Level) -> list[str]:
    found = Verification(home.dirs, level=level)
    return [
        item.code for item in found if isinstance(item, Finding) and item.severity is Severity.ERROR
    ]


def test_plan_and_verify_predict_a_start_on_log_dirs_with_faults(
    base: Callable[[str], Path], kafka_version: str, tmp_path: Path
) -> None:
    said: dict[str, Outcome] = {}
    done: dict[str, Outcome] = {}
    alarmed: dict[str, list[bool]] = {}
    for fault, home in log_dirs.cases(kafka_version, base(kafka_version), tmp_path, SAMPLE):
        said[fault.name] = log_dirs.predicted(kafka_version, home)
        alarmed[fault.name] = [bool(errors(home, level)) for level in Level]
        done[fault.name] = log_dirs.outcome(kafka_version, home)
    assert done.keys() == set(SAMPLE)
    assert said == {name: log_dirs.without_error(one) for name, one in done.items()}
    assert said["no-index"].indexes == done["no-index"].indexes != {}
    # verify reports errors at every level exactly if a log dir or the broker stops.
    stops = {name: not one.starts or bool(one.offline) for name, one in done.items()}
    assert alarmed == {name: [stop] * len(Level) for name, stop in stops.items()}
    assert len(set(stops.values())) == 2
