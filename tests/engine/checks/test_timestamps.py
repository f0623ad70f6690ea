"""Timestamps are judged by when the log was last written, never by the clock."""

import os

import metadata_records as made
import numpy as np
import pytest
from conftest import SCENARIOS
from log_dir_damage import new_batch
from verification import batches, log_dirs, verify

from logtool.checks.timestamps import AHEAD_MS
from logtool.findings import Severity
from logtool.verify import Level

WRITTEN = 1_700_000_000_000
DAY = 24 * 3600 * 1000
ODD = {"batch/timestamp-future", "batch/timestamp-unit"}


@pytest.fixture
def reported(tmp_path):
    """Return a function: what verify says of the timestamps of a log written at a time."""

    def reported(*stamps, written=WRITTEN, **more):
        log = tmp_path / "orders-0" / f"{0:020d}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_bytes(b"".join(
            new_batch(number, b"x", base_timestamp=stamp, max_timestamp=stamp, **more)
            for number, stamp in enumerate(stamps)
        ))  # fmt: skip
        os.utime(log, ns=(written * 1_000_000,) * 2)
        return [one for one in verify(log.parent).findings if one.code in ODD]

    return reported


def codes(findings):
    return [one.code for one in findings]


def test_only_what_is_more_than_a_day_behind_the_last_write_is_in_the_future(reported):
    assert reported(WRITTEN, WRITTEN + AHEAD_MS) == []
    (found,) = reported(WRITTEN, WRITTEN + AHEAD_MS + 1, WRITTEN + 9 * DAY)
    assert (found.code, found.severity) == ("batch/timestamp-future", Severity.INFO)
    assert (found.first_offset, found.last_offset) == (1, 1)
    for named in (
        "1700086400001",
        "2023-11-15T22:13:20.001Z",
        "2023-11-14T22:13:20.000Z",
        "1 more",
    ):
        assert named in found.message


def test_the_same_log_written_later_is_sound(reported):
    late = WRITTEN + 9 * DAY
    assert codes(reported(late)) == ["batch/timestamp-future"]
    assert reported(late, written=late) == []


def test_of_a_log_without_a_time_of_its_own_nothing_is_said(reported):
    for written in (0, 315_532_800_000):  # 1970 and 1980, as archives without times have
        assert reported(WRITTEN, written=written) == []


@pytest.mark.parametrize("past", [-1, 0, 1, 5000, 10**8, 10**11, 10**12, WRITTEN - 1])
def test_the_past_is_legal(reported, past):
    assert reported(WRITTEN, past, WRITTEN) == []


@pytest.mark.parametrize(
    ("stamp", "unit"),
    [
        (WRITTEN // 1000, "seconds"),
        (WRITTEN * 1000, "microseconds"),
        (WRITTEN * 1_000_000, "nanoseconds"),
    ],
)
def test_a_plausible_time_in_another_unit_is_reported_with_offset_and_producer(
    reported, stamp, unit
):
    (found,) = reported(WRITTEN, stamp, producer_id=7, producer_epoch=0, base_sequence=0)
    assert (found.code, found.severity) == ("batch/timestamp-unit", Severity.INFO)
    assert found.first_offset == 1
    assert found.segment == 0
    for named in ("producer 7", str(stamp), "2023-11-14T22:13:20.000Z", unit):
        assert named in found.message


def test_what_is_plausible_in_no_unit_is_the_future(reported):
    (found,) = reported(2**63 - 1)
    assert found.code == "batch/timestamp-future"
    assert "9999" in found.message


def test_a_finding_stands_for_all_batches_of_its_kind_in_a_segment(reported):
    found = reported(*[WRITTEN * 1000] * 500, WRITTEN // 1000)
    assert codes(found) == ["batch/timestamp-unit"] * 2
    assert any("499 more" in one.message for one in found)


def test_a_quick_look_reads_no_batch_for_it(reported, tmp_path):
    assert reported(WRITTEN * 1000)
    quick = verify(tmp_path / "orders-0", level=Level.QUICK)
    assert not ODD & set(quick.codes)


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_real_brokers_wrote_has_no_such_timestamp(scenario, name):
    assert not ODD & set(verify(*log_dirs(scenario(name)), level=Level.BATCHES).codes)


def test_the_real_topic_of_odd_timestamps_is_judged_by_the_time_of_its_log(copy_of):
    """A producer has stamped these; the log is made to look as if written ten years before."""
    folder = copy_of("4.3.1/clean") / "odd.timestamps-0"
    (log,) = folder.glob("*.log")
    table = batches(log)
    assert (np.diff(table.max_timestamp) < 0).any(), "no longer out of order"
    early = int(table.max_timestamp.max()) - 10 * 365 * DAY
    os.utime(log, ns=(early * 1_000_000,) * 2)
    (found,) = (one for one in verify(folder).findings if one.code in ODD)
    ahead = table.max_timestamp > early + AHEAD_MS
    assert found.code == "batch/timestamp-future"
    assert found.first_offset == int(table.base_offset[ahead][0])
    assert (found.topic, found.partition, found.path) == ("odd.timestamps", 0, log)


HOUR = 3600 * 1000
TOPIC, BROKER = 2, 4
"""Kinds of resource in the metadata log."""


@pytest.fixture
def allowing(reported, tmp_path):
    """Return a function like `reported`, in a log dir whose metadata log has these settings."""

    def allowing(settings, *stamps, **more):
        home = tmp_path / "__cluster_metadata-0"
        home.mkdir(exist_ok=True)
        values = [made.config(kind, name, key, value) for kind, name, key, value in settings]
        (home / f"{0:020d}.log").write_bytes(made.batch(0, *values))
        return reported(*stamps, **more)

    return allowing


AFTER = "message.timestamp.after.max.ms"
BEFORE = "message.timestamp.before.max.ms"
DIFFERENCE = "message.timestamp.difference.max.ms"
SETTINGS = {
    "the topic's": [(TOPIC, "orders", AFTER, str(HOUR))],
    "that of all brokers": [(BROKER, "", f"log.{AFTER}", str(HOUR))],
    "the older one": [(TOPIC, "orders", DIFFERENCE, str(HOUR))],
    "the newer one before the older": [
        (TOPIC, "orders", DIFFERENCE, "5"), (TOPIC, "orders", AFTER, str(HOUR)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_topic_that_allows_less_than_a_day_is_held_to_that(allowing, settings):
    assert allowing(settings, WRITTEN + HOUR) == []
    (found,) = allowing(settings, WRITTEN, WRITTEN + HOUR + 1)
    assert (found.code, found.first_offset) == ("batch/timestamp-future", 1)
    assert "message.timestamp.after.max.ms" in found.message
    assert "1 h 00 min" in found.message


def test_a_topic_that_allows_more_than_a_day_has_no_future_before_that(allowing):
    week = [(TOPIC, "orders", AFTER, str(7 * DAY))]
    assert allowing(week, WRITTEN + 6 * DAY) == []
    assert codes(allowing(week, WRITTEN + 8 * DAY)) == ["batch/timestamp-future"]
    anything = [(TOPIC, "orders", AFTER, str(2**63 - 1))]
    assert allowing(anything, 2**63 - 1) == []
    assert codes(allowing(anything, WRITTEN * 1000)) == ["batch/timestamp-unit"], "a mistake still"


def test_what_a_broker_has_stamped_is_not_held_to_the_setting(allowing):
    hour = [(TOPIC, "orders", AFTER, str(HOUR))]
    log_append_time = 8
    assert allowing(hour, WRITTEN + 2 * HOUR, attributes=log_append_time) == []
    assert codes(allowing(hour, WRITTEN + 2 * DAY, attributes=log_append_time)) == [
        "batch/timestamp-future"
    ]


def test_settings_that_say_nothing_of_it_leave_the_day(allowing):
    for settings in (
        [(TOPIC, "payments", AFTER, "1")],
        [(TOPIC, "orders", BEFORE, "1")],
        [(TOPIC, "orders", AFTER, "soon")],
    ):
        assert allowing(settings, 1, WRITTEN + DAY) == []
        assert len(allowing(settings, WRITTEN + DAY + 1)) == 1


def test_a_file_a_partition_and_a_log_dir_are_judged_alike(allowing, tmp_path):
    hour = [(TOPIC, "orders", AFTER, str(HOUR))]
    (found,) = allowing(hour, WRITTEN + HOUR + 1)
    (log,) = (tmp_path / "orders-0").glob("*.log")
    for path in (tmp_path, log):
        odd = [one for one in verify(path).findings if one.code in ODD]
        assert [(one.message, one.next) for one in odd] == [(found.message, found.next)]
