"""Verdicts of the campaign of deletions, without a broker."""

import pytest

from absences.deletions import BY_NAME, DELETIONS, assigned
from absences.outcomes import spans
from absences.sayings import Said, Sayings
from absences.traffic import java_hash, names_for
from absences.verdicts import (
    FALSE_ALARM,
    FALSE_CALM,
    MENDED,
    RIGHT,
    UNPROVABLE,
    UNREAD,
    WRONG,
    judge,
)

WHOLE = {"start": 0, "end": 60, "lacks": []}
LOST = {"start": 0, "end": 0, "lacks": [], "read_uncommitted_misses": [[0, 59]]}
FORECAST = {"log_start_offset": 0, "broker_log_end_offset": 60}


def sayings(severity="", end=60, code="log/lost"):
    words = [f"{severity} {code}: gone"] if severity else []
    said = {one: {"t-0": Said(severity or "info", words)}
            for one in ("verify", "plan", "doctor", "watermark")}  # fmt: skip
    forecast = {**FORECAST, "broker_log_end_offset": end}
    return Sayings({}, {}, said, {"t-0": forecast}, {})


@pytest.mark.parametrize(
    ("said", "seen", "expected"),
    [
        (sayings(), WHOLE, [RIGHT]),
        (sayings("error", end=0), LOST, [RIGHT]),
        (sayings(end=0), LOST, [FALSE_CALM]),
        (sayings(), LOST, [FALSE_CALM, WRONG]),
        (sayings("error"), WHOLE, [FALSE_ALARM]),
        (sayings("warning"), WHOLE, [MENDED]),
        (sayings("warning"), {**WHOLE, "lacks": ["0.index"]}, [FALSE_ALARM]),
        (
            sayings("warning", code="time-index/missing"),
            {**WHOLE, "lacks": ["0.timeindex"]},
            [UNREAD],
        ),
        (
            sayings("error", code="time-index/missing"),
            {**WHOLE, "lacks": ["0.timeindex"]},
            [FALSE_ALARM],
        ),
        (sayings(end=50), WHOLE, [WRONG]),
    ],
)
def test_verdict_on_a_partition(said, seen, expected):
    assert judge("t-0", said, sayings(), seen, seen, end=60).kinds == expected


def test_only_a_command_that_nothing_could_alarm_is_excused():
    calm = judge("t-0", sayings(end=0), sayings(), LOST, LOST, end=60, unprovable=True)
    assert calm.kinds == [UNPROVABLE]


def test_findings_of_the_base_itself_do_not_count():
    said = sayings("warning")
    assert judge("t-0", said, said, WHOLE, WHOLE, end=60).kinds == [RIGHT]


def test_each_deletion_changes_its_own_partition(tmp_path):
    partitions = [f"plain-{number}" for number in range(len(DELETIONS) + 2)]
    cases = list(assigned(partitions))
    assert len(cases) == len(DELETIONS) == len(BY_NAME)
    folder = tmp_path / cases[0].partition
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"x")
    assert [cases[0].apply([tmp_path]), cases[1].apply([tmp_path])] == [True, False]
    assert not folder.exists()


def test_offsets_as_runs():
    assert spans([3, 1, 2, 7]) == [[1, 3], [7, 7]]


def test_a_name_for_each_partition_of_a_coordinator():
    assert java_hash("g") == 103
    assert [java_hash(name) % 5 for name in names_for("group", 5)] == [0, 1, 2, 3, 4]
