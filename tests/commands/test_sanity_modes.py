"""``logtool sanity``: eager and lazy checks of indexes, and projections to larger brokers.

The names of the tests and the numbers are those of KIP-263.
"""

import pytest
from answers import assert_valid, numbers
from damage import damage_file
from verification import small_log_dir


@pytest.fixture
def many_segments(scenario, tmp_path):
    """Return a log dir of two partitions with many segments, stopped in order."""
    return small_log_dir(
        scenario("4.3.1/clean"), tmp_path / "data", "small-segments-0", "mixed_codecs-0"
    )


def sanity(run, home, *words):
    result = run("sanity", *words, "-f", "ndjson", home)
    assert_valid("sanity", result.objects)
    return result


def by_mode(result, kind="measurement"):
    return {one["mode"]: one for one in result.of_type(kind)}


def append_to_index(home):
    index = sorted((home / "small-segments-0").glob("*.index"))[4]
    damage_file(index, lambda data: data + b"x")
    return index


def test_a_broker_checks_the_index_files_of_all_log_segments_only_when_it_is_eager(
    run, many_segments
):
    modes = by_mode(sanity(run, many_segments))
    indexes = len([*many_segments.glob("*/*index")])
    active = 2 * len([*many_segments.glob("*-0")])
    assert modes["eager"]["files_opened"] == indexes
    assert modes["lazy"]["files_opened"] == active < indexes


def test_the_time_to_restart_is_proportional_to_the_segments_which_are_all_open(run, many_segments):
    needed = 150 + len([*many_segments.glob("*/*.log")])
    assert sanity(run, many_segments, "--limits", f"nofile={needed}").status == 0
    result = sanity(run, many_segments, "--limits", f"nofile={needed - 1}")
    assert [one["code"] for one in result.of_type("finding")] == ["host/open-files"]
    assert result.status == run("plan", "--limits", "nofile=9", many_segments).status == 1


def test_roughly_3000_log_segments_for_a_broker_do_not_go_with_31_8k_partitions(run):
    replicas_of_a_broker = 31_800 * 3 // 15
    assert replicas_of_a_broker == 6_360 > 3_000
    assert {6_360, 3_000} <= set(numbers(run("sanity", "--help").stdout))


def test_the_cost_increases_with_the_usage_for_example_partitions_and_total_bytes_in_rate(
    run, many_segments
):
    day = "--project", "rate=80M,retention=1d,partitions=6360"
    week = "--project", "rate=80M,retention=7d,partitions=6360"
    result = sanity(run, many_segments, *day, *week)
    per_day = 80 * 86_400 / 1024
    found = [one["segments"] for one in result.of_type("projection") if one["mode"] == "lazy"]
    assert found == [round(6_360 + per_day), round(6_360 + 7 * per_day)]


def test_a_cluster_rolling_bounce_takes_as_long_as_15_brokers_one_after_the_other(
    run, many_segments
):
    words = ("--project", "partitions=6360,segments=31800", "--brokers", "15")
    for one in sanity(run, many_segments, *words).of_type("projection"):
        assert one["brokers"] == 15
        for end in "low", "high":
            bounce, load = one[f"bounce_seconds_{end}"], one[f"load_seconds_{end}"]
            assert bounce == pytest.approx(15 * load, abs=1e-4)


def test_a_projection_from_two_partitions_has_doubts(run, many_segments):
    words = ("--project", "partitions=6360,segments=31800")
    projections = sanity(run, many_segments, *words).of_type("projection")
    assert [one["mode"] for one in projections] == ["eager", "lazy"]
    lines = run("sanity", *words, many_segments).stderr.splitlines()
    for one, line in zip(projections, lines, strict=False):
        assert [2] in map(numbers, one["doubts"])
        assert f" {one['mode']} " in line
        assert 31_800 in numbers(line)
        assert all(doubt in line for doubt in one["doubts"])


DELAYED = ("--first-access", "99", "--become-leader", "9", "--background-threads", "1")


def test_inactive_segments_are_checked_after_it_becomes_leader_by_threads_or_by_first_access(
    run, many_segments
):
    modes = by_mode(sanity(run, many_segments, *DELAYED))
    assert [*modes] == ["eager", "lazy", "first-access", "become-leader", "background"]
    logs = len([*many_segments.glob("*/*.log")])
    delayed = [modes[mode]["segments_opened"] for mode in ("first-access", "become-leader")]
    assert delayed == [logs - 2, logs - 2]
    assert modes["become-leader"]["readers"] == 2
    assert modes["background"]["segments_opened"] == logs
    assert modes["background"]["service_seconds"] < modes["background"]["seconds"]


def test_with_corruption_in_any_segment_all_segments_prior_to_it_will_be_checked_as_well(
    run, many_segments
):
    append_to_index(many_segments)
    result = sanity(run, many_segments, *DELAYED)
    assert result.status == 1
    assert by_mode(result)["become-leader"]["forced"] == 4
    table = run("sanity", *DELAYED, many_segments).stdout
    header = next(line for line in table.splitlines() if line.startswith("start "))
    row = next(line for line in table.splitlines() if line.startswith("become-leader"))
    assert row[header.index("forced") :].split()[0] == "4"


def test_the_risk_of_the_delay_is_shown_with_the_finding_and_the_next_command(run, many_segments):
    index = append_to_index(many_segments)
    (found,) = sanity(run, many_segments).of_type("finding")
    assert (found["code"], found["seen_by"]) == ("offset-index/length", "eager")
    shown = " ".join(run("sanity", many_segments).stderr.split())
    assert "2.3" in found["risk"]
    assert f"offset-index/length: {found['risk']} " in shown
    assert f" logtool dump-index {index}" in shown


def test_estimates_and_measurements_have_tables_of_their_own(run, many_segments):
    result = sanity(run, many_segments)
    for mode, load in by_mode(result, "load").items():
        measured = by_mode(result)[mode]
        assert load["check_seconds"] == measured["seconds"]
        assert 0 < load["seconds_low"] < load["seconds_high"]
    lines = run("sanity", many_segments).lines
    first, second = (n for n, line in enumerate(lines) if line.startswith("eager"))
    assert "estimate" not in lines[first - 2]
    assert "estimate" in lines[second - 2]
