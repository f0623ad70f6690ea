"""The samples of `verify --sample`: together they are the whole, and each stands alone."""

import pytest
from damage import flip

from logtool.commands.program import parsing

COUNT = 5
DAY = 86_400_000


def objects(run, *arguments, status):
    result = run("verify", "-f", "ndjson", *arguments)
    assert result.status == status, result.stderr
    *findings, summary = result.objects
    return findings, summary


@pytest.fixture
def damaged(copy_of):
    """Return a log dir with one damaged batch in each of several partitions."""
    home = copy_of("4.3.1/clean")
    for log in sorted(home.glob("codec-*-0/*.log")):
        log.write_bytes(flip(log.read_bytes(), 70))
    return home


def test_the_samples_together_find_what_a_whole_run_finds(run, damaged):
    whole, summary = objects(run, damaged, status=1)
    damages = [one for one in whole if one["code"].startswith("batch/")]
    assert len(damages) >= 4
    found, partitions, bytes_ = [], 0, 0
    for number in range(1, COUNT + 1):
        result = run("verify", "-f", "ndjson", "--sample", f"{number}/{COUNT}", damaged)
        *some, part = result.objects
        errors = [one for one in some if one["code"].startswith("batch/")]
        assert result.status == bool(errors)
        found += errors
        partitions += part["partitions"]
        bytes_ += part["bytes"]
        assert part["partitions"] < summary["partitions"]
    assert sorted(one["path"] for one in found) == sorted(one["path"] for one in damages)
    assert (partitions, bytes_) == (summary["partitions"], summary["bytes"])


def test_one_sample_of_one_is_the_whole(run, damaged):
    whole, _ = objects(run, damaged, status=1)
    assert objects(run, "--sample", "1/1", damaged, status=1)[0] == whole


def test_a_sample_without_a_partition_is_sound(run, clean):
    counts = [
        objects(run, "--topic", "codec-zstd", "--sample", f"{number}/3", clean, status=0)[1]
        for number in (1, 2, 3)
    ]
    assert sorted(one["partitions"] for one in counts) == [0, 0, 1]
    assert objects(run, "--topic", "none", "--sample", "1/3", clean, status=4)[1]["partitions"] == 0


def test_a_percentage_takes_another_sample_each_day(monkeypatch):
    taken = []
    for day in range(20):
        monkeypatch.setattr(parsing, "now_ms", lambda day=day: (20_000 + day) * DAY)
        taken.append(parsing.parse_sample("5%"))
    assert sorted(taken) == [(number, 20) for number in range(1, 21)]


@pytest.mark.parametrize("text", ["0/7", "8/7", "7", "5", "0%", "101%", "-1/3", "1/0", "x%", ""])
def test_a_wrong_share_is_a_usage_error(run, clean, text):
    assert run("verify", f"--sample={text}", clean).status == 2
