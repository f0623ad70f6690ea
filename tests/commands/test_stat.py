import csv
import json
import re
import subprocess
import sys

import pytest

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def test_a_table_has_partitions_topics_the_sum_and_a_histogram(run, clean):
    result = run("stat", "--topic", "codec-*", clean)
    assert result.status == 0
    assert [line.split()[0] for line in result.lines[2:9]] == [
        "codec-gzip-0", "codec-lz4-0", "codec-none-0", "codec-none-1", "codec-none-2",
        "codec-snappy-0", "codec-zstd-0",
    ]  # fmt: skip
    assert "in all" in result.stdout
    assert "█" in result.stdout.partition("by size")[2]
    assert not CONTROL.search(result.stdout)


def test_a_partition_named_alone_has_no_row_of_its_topic(run, partition):
    assert "topic" not in run("stat", partition).stdout


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_rows_are_partitions_or_segments_never_both(run, clean, format):
    delimiter = "," if format == "csv" else "\t"
    for option, count in ((), 1), (("--segments",), 25):
        lines = run("stat", "-f", format, *option, clean / "small-segments-0").lines
        rows = list(csv.DictReader(lines, delimiter=delimiter))
        assert len(rows) == count
        assert sum(int(row["records"]) for row in rows) == 900
        assert "\x1b" not in "".join(lines)


def test_markdown_is_tables_alone(run, partition):
    result = run("stat", "-f", "markdown", partition)
    assert {line[0] for line in result.lines if line} == {"|"}


def test_sorted_the_largest_comes_first_and_segments_stay_with_their_partition(run, clean):
    for sort, key in ("size", "log_bytes"), ("records", "records"), ("ratio", "compression_ratio"):
        words = ["--sort", sort, "--level", "records", "--segments"]
        result = run("stat", "-f", "ndjson", *words, clean)
        values = [obj[key] or 0 for obj in result.of_type("partition")]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) > 3
        path = None
        for obj in reversed(result.objects):
            if obj["type"] == "partition":
                path = obj["path"]
            elif obj["type"] == "segment":
                assert obj["path"].startswith(f"{path}/")


def test_topics_and_the_sum_add_up(run, clean):
    result = run("stat", "-f", "ndjson", clean)
    (total,) = result.of_type("total")
    partitions, topics = result.of_type("partition"), result.of_type("topic")
    summary = result.objects[-1]
    for key in ("segments", "log_bytes", "index_bytes", "batches", "records"):
        assert total[key] == sum(o[key] for o in partitions) == sum(o[key] for o in topics)
    assert (summary["records"], summary["bytes"]) == (total["records"], total["log_bytes"])
    assert total["topics"] == len(topics)


def test_damage_is_counted_and_not_fatal(run, damaged_log):
    result = run("stat", "--json", damaged_log.parent)
    obj = json.loads(result.stdout)["items"][0]
    assert (result.status, obj["damaged_ranges"], obj["batches"]) == (0, 1, 2)
    assert "1 range" in run("stat", damaged_log.parent).stdout


def test_what_cannot_be_read_is_one_line_and_the_rest_is_counted(run, partition, tmp_path):
    result = run("stat", tmp_path / "missing", partition)
    assert (result.status, result.stderr.count("\n")) == (4, 1)
    assert "orders-0" in result.stdout


def test_a_time_limit_is_status_6(run, clean):
    result = run("stat", "--max-duration", "0.000000001", "-f", "ndjson", clean)
    assert result.status == 6
    assert result.objects[-1]["complete"] is False


def test_a_topic_whose_name_holds_controls_prints_none(run, partition):
    odd = partition.rename(partition.with_name("or\x1b[31mders-0"))
    for format in ("table", "markdown", "csv", "ndjson"):
        escaped = ["--csv-escaped"] if format == "csv" else []
        assert not CONTROL.search(run("stat", "-f", format, odd, *escaped).stdout)


def opened(clean, child_environment, *words):
    """Run stat in a process of its own; return what it printed and the files below that it opened.

    The audit hook of Python sees every open, of any code.
    """
    code = (
        "import sys\n"
        "seen = []\n"
        "note = lambda event, args: event == 'open' and seen.append(str(args[0]))\n"
        "sys.addaudithook(note)\n"
        "from logtool import cli\n"
        "status = cli.run(sys.argv[1:])\n"
        "print(*seen, sep='\\n', file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "stat", *words, "-f", "ndjson", str(clean)],
        capture_output=True, text=True, check=False, env=child_environment(),
    )  # fmt: skip
    below = [path for path in done.stderr.splitlines() if path.startswith(str(clean))]
    return [json.loads(line) for line in done.stdout.splitlines()], below


def test_a_quick_look_opens_no_file(clean, child_environment):
    objects, files = opened(clean, child_environment, "--level", "quick")
    assert files == []
    assert objects[-1]["complete"] and objects[-1]["bytes"] == 0
    assert opened(clean, child_environment)[1], "the hook sees nothing"


def test_a_quick_look_adds_up_the_files_and_their_blocks(run, scenario):
    clean = scenario("4.3.1/default-settings")
    objects = run("stat", "--level", "quick", "-f", "ndjson", clean).objects
    files = [path.stat() for path in clean.glob("*/*") if path.is_file()]
    (total,) = (one for one in objects if one["type"] == "total_size")
    assert total["files"] == len(files)
    assert total["bytes"] == sum(one.st_size for one in files)
    assert total["disk_bytes"] == sum(one.st_blocks * 512 for one in files)
    for kind in ("partition_size", "topic_size"):
        rows = [one for one in objects if one["type"] == kind]
        for key in ("bytes", "disk_bytes", "log_bytes", "segments", "disk_index_bytes"):
            assert sum(one[key] for one in rows) == total[key]
        taken = [one["disk_bytes"] for one in rows]
        assert taken == sorted(taken, reverse=True)
    assert total["partitions"] == len([path for path in clean.iterdir() if path.is_dir()])


def test_a_preallocated_index_takes_up_what_was_written(run, partition):
    index = partition / f"{0:020d}.index"
    before = run("stat", "--level", "quick", "-f", "ndjson", partition).objects[-2]
    with index.open("r+b") as file:
        file.truncate(10 * 2**20)
    after = run("stat", "--level", "quick", "-f", "ndjson", partition).objects[-2]
    assert after["index_bytes"] - before["index_bytes"] > 10_000_000
    assert after["disk_index_bytes"] == before["disk_index_bytes"]


def test_what_waits_for_its_deletion_is_counted(run, partition):
    (partition / f"{0:020d}.log").rename(partition / f"{0:020d}.log.deleted")
    size = (partition / f"{0:020d}.log.deleted").stat().st_size
    total = run("stat", "--level", "quick", "-f", "ndjson", partition).objects[-2]
    assert (total["going_bytes"], total["segments"]) == (size, 0)
    partition = partition.rename(partition.parent / f"orders-0.{'ab' * 16}-delete")
    total = run("stat", "--level", "quick", "-f", "ndjson", partition).objects[-2]
    assert total["going_bytes"] == total["bytes"] > size


def test_the_table_has_the_largest_topics_and_the_sum(run, clean):
    result = run("stat", "--level", "quick", "--top", "3", clean)
    assert result.status == 0
    assert len(result.lines) == 2 + 3 + 1
    assert result.lines[-1].startswith("in all")
    assert "%" in result.lines[2]
    rows = list(csv.DictReader(run("stat", "--level", "quick", "-f", "csv", clean).lines))
    assert {row["topic"] for row in rows} >= {"small-segments", "__cluster_metadata"}


def test_the_largest_of_other_levels_are_those_that_sort_says(run, clean):
    every = run("stat", "-f", "ndjson", "--sort", "records", clean)
    top = run("stat", "-f", "ndjson", "--sort", "records", "--top", "2", clean)
    for kind in ("partition", "topic"):
        assert [one["records"] for one in top.of_type(kind)] == [
            one["records"] for one in every.of_type(kind)
        ][:2]
    assert top.of_type("total")[0]["records"] == every.of_type("total")[0]["records"]
    sizes = [one["log_bytes"] for one in run("stat", "-f", "ndjson", clean).of_type("partition")]
    (largest,) = run("stat", "-f", "ndjson", "--top", "1", clean).of_type("partition")
    assert largest["log_bytes"] == max(sizes)


@pytest.mark.parametrize("words", [["--segments"], ["--sort", "records"]])
def test_a_quick_look_knows_nothing_that_is_only_in_batches(run, clean, words):
    assert run("stat", "--level", "quick", *words, clean).status == 2


def test_a_quick_look_at_nothing_is_incomplete(run, clean, tmp_path):
    assert run("stat", "--level", "quick", tmp_path / "nosuch").status == 4
    assert run("stat", "--level", "quick", "--topic", "nosuch", clean).status == 4
