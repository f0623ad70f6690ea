import csv
import json
import re

import pytest

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


@pytest.fixture
def home(scenario):
    return scenario("4.3.1/clean")


def test_a_table_has_partitions_topics_the_sum_and_a_histogram(run, home):
    result = run("stat", "--topic", "codec-*", home)
    assert result.status == 0
    assert [line.split()[0] for line in result.lines[2:9]] == [
        "codec-gzip-0", "codec-lz4-0", "codec-none-0", "codec-none-1", "codec-none-2",
        "codec-snappy-0", "codec-zstd-0",
    ]  # fmt: skip
    assert "in all" in result.stdout
    assert "█" in result.stdout.partition("batches by size")[2]
    assert not CONTROL.search(result.stdout)


def test_a_partition_named_alone_has_no_row_of_its_topic(run, partition):
    assert "topic" not in run("stat", partition).stdout


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_rows_are_partitions_or_segments_never_both(run, home, format):
    delimiter = "," if format == "csv" else "\t"
    for option, count in ((), 1), (("--segments",), 25):
        lines = run("stat", "-f", format, *option, home / "small-segments-0").lines
        rows = list(csv.DictReader(lines, delimiter=delimiter))
        assert len(rows) == count
        assert sum(int(row["records"]) for row in rows) == 900
        assert "\x1b" not in "".join(lines)


def test_markdown_is_tables_alone(run, partition):
    result = run("stat", "-f", "markdown", partition)
    assert {line[0] for line in result.lines if line} == {"|"}


def test_sorted_the_largest_comes_first_and_segments_stay_with_their_partition(run, home):
    for sort, key in ("size", "log_bytes"), ("records", "records"), ("ratio", "compression_ratio"):
        words = ["--sort", sort, "--level", "records", "--segments"]
        result = run("stat", "-f", "ndjson", *words, home)
        values = [obj[key] or 0 for obj in result.of_type("partition")]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) > 3
        path = None
        for obj in reversed(result.objects):
            if obj["type"] == "partition":
                path = obj["path"]
            elif obj["type"] == "segment":
                assert obj["path"].startswith(f"{path}/")


def test_topics_and_the_sum_add_up(run, home):
    result = run("stat", "-f", "ndjson", home)
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


def test_a_time_limit_is_status_6(run, home):
    result = run("stat", "--max-duration", "0.000000001", "-f", "ndjson", home)
    assert result.status == 6
    assert result.objects[-1]["complete"] is False


def test_a_topic_whose_name_holds_controls_prints_none(run, partition):
    odd = partition.rename(partition.with_name("or\x1b[31mders-0"))
    for format in ("table", "markdown", "csv", "ndjson"):
        assert not CONTROL.search(run("stat", "-f", format, odd).stdout)
