import json

import pytest


def test_a_sound_directory_is_timed_both_ways(run, partition):
    home = partition.parent
    result = run("sanity", home)
    assert result.status == 0
    assert f"{home}: " in result.stdout
    (directory,) = run("sanity", "-f", "ndjson", home).of_type("directory")
    assert (directory["partitions"], directory["segments"]) == (1, 1)
    rows = [line.split() for line in result.lines if line.startswith(("eager ", "lazy "))]
    assert [row[0] for row in rows] == ["eager", "lazy"]
    assert "1 partition, 1 segment" in result.stderr


@pytest.mark.parametrize("mode", ["eager", "lazy"])
def test_one_way_alone(run, partition, mode):
    (measurement,) = run("sanity", "--mode", mode, "-f", "ndjson", partition).of_type("measurement")
    assert measurement["mode"] == mode
    assert measurement["files_opened"] == 2


def test_an_index_that_only_an_eager_start_finds_bad_gives_status_1(run, partition):
    index = partition / f"{0:020d}.index"
    index.write_bytes(index.read_bytes() + b"x")
    result = run("sanity", "-f", "ndjson", partition)
    assert result.status == 1
    (finding,) = result.of_type("finding")
    assert (finding["code"], finding["seen_by"]) == ("offset-index/length", "eager")
    eager, lazy = result.of_type("measurement")
    assert (eager["seen"], eager["missed"], lazy["seen"], lazy["missed"]) == (1, 0, 0, 1)
    lazily = run("sanity", "--mode", "lazy", "-f", "ndjson", partition)
    assert (lazily.status, lazily.of_type("finding")) == (0, [])


def test_without_verify_faults_that_the_checks_pass_over_are_not_found(run, partition):
    index = partition / f"{0:020d}.index"
    index.write_bytes(index.read_bytes() + bytes(8))
    assert run("sanity", partition).status == 0  # preallocated, which is no fault
    index.write_bytes(index.read_bytes()[:-8] + b"\x7f" + bytes(7))
    assert run("sanity", partition).status == 1
    result = run("sanity", "--no-verify", "-f", "ndjson", partition)
    assert (result.status, result.of_type("finding")) == (0, [])
    assert {one["missed"] for one in result.of_type("measurement")} == {None}


@pytest.mark.parametrize("command", ["sanity", "plan"])
def test_limits_of_another_host_are_compared_with_what_the_logs_need(run, partition, command):
    words = (command, "-f", "ndjson", "--limits")
    assert run(*words, "nofile=152,max_map_count=402,heap=1G", partition).status == 0
    result = run(*words, "nofile=150,max_map_count=401", partition)
    assert result.status == 1
    assert [(one["code"], one["severity"]) for one in result.of_type("finding")] == [
        ("host/open-files", "error"), ("host/maps", "error"),
    ]  # fmt: skip
    assert result.of_type("summary")[0]["next"] == [
        "logtool explain host/open-files", "logtool explain host/maps",
    ]  # fmt: skip
    table = run(command, "--limits", "nofile=150", partition).stdout
    assert "151 open files" in table


@pytest.mark.parametrize("limits", ["", "files=9", "nofile", "nofile=0", "nofile=1,nofile=2"])
@pytest.mark.parametrize("command", ["sanity", "plan"])
def test_limits_that_make_no_sense_are_refused(run, partition, command, limits):
    result = run(command, "--limits", limits, partition)
    assert (result.status, "--limits" in result.stderr) == (2, True)


def test_every_format_is_printed(run, partition):
    home = partition.parent
    document = json.loads(run("sanity", "--json", home).stdout)
    assert [item["type"] for item in document["items"]][:3] == [
        "directory", "measurement", "measurement",
    ]  # fmt: skip
    header, *rows = run("sanity", "-f", "csv", home).lines
    assert header.startswith("path,mode,threads") and len(rows) == 2
    assert run("sanity", "-f", "tsv", home).lines[0].count("\t") == header.count(",")
    assert "| eager" in run("sanity", "-f", "markdown", home).stdout


def test_bad_input_is_one_clear_line(run, partition, log, tmp_path):
    for path in (log, tmp_path / "no"):
        result = run("sanity", path)
        assert result.status == 4
        assert result.stderr.startswith(f"logtool: {path}: ")
    result = run("sanity")
    assert (result.status, "PATH" in result.stderr) == (2, True)
    assert run("sanity", "--threads", "0", partition).status == 2
    assert run("sanity", "--mode", "slow", partition).status == 2


def test_when_time_is_over_it_says_so(run, partition):
    result = run("sanity", "--max-duration", "0.000001", "-f", "ndjson", partition)
    assert result.status == 6
    assert result.of_type("summary")[0]["complete"] is False


def test_the_proposal_of_the_kip_its_readers_and_other_sizes(run, scenario):
    result = run(
        "sanity", "-f", "ndjson", "--first-access", "10", "--background-threads", "2",
        "--project", "segments=31800,partitions=6360", "--project", "partitions=100",
        scenario("4.3.1/clean"),
    )  # fmt: skip
    modes = {item["mode"]: item for item in result.of_type("measurement")}
    assert list(modes) == ["eager", "lazy", "first-access", "background"]
    assert modes["first-access"]["service_seconds"] is None
    assert modes["background"]["service_seconds"] < modes["background"]["seconds"]
    assert modes["background"]["files_opened"] == modes["eager"]["files_opened"]
    assert modes["background"]["readers"] == modes["first-access"]["readers"] == 10
    assert [item["mode"] for item in result.of_type("model")] == ["eager", "lazy"]
    assert [item["mode"] for item in result.of_type("load")] == ["eager", "lazy"]
    sizes = [(item["partitions"], item["segments"]) for item in result.of_type("projection")]
    assert sizes[0] == sizes[1] == (6360, 31800)
    table = run("sanity", "--first-access", "10", scenario("4.3.1/clean")).stdout
    assert "max" in table and "model of" not in table
    assert "model of" in run("sanity", "--project", "segments=9", scenario("4.3.1/clean")).stdout


@pytest.mark.parametrize(
    "size",
    [
        "segments",
        "segments=0",
        "segments=-1",
        "bytes=5",
        "segments=1,segments=2",
        "",
        "rate=8M",
        "retention=7d",
        "rate=8M,retention=7d,segments=5",
        "segments=1,segment-bytes=1G",
    ],
)
def test_a_size_that_makes_no_sense_is_one_clear_line(run, partition, size):
    result = run("sanity", "--project", size, partition)
    assert result.status == 2
    assert "--project" in result.stderr


def test_brokers_need_a_size(run, partition):
    result = run("sanity", "--brokers", "3", partition)
    assert (result.status, "--project" in result.stderr) == (2, True)


def test_help_shows_the_cluster_of_the_kip_and_the_exit_statuses(run):
    page = run("sanity", "--help").stdout
    assert "--project partitions=6360,segments=31800" in page
    assert "Exit status:" in page
