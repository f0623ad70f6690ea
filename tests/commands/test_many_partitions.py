"""The cost of log dirs of many partitions, counted in calls: a clock depends on the machine."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from logtool.formats import offset_checkpoint
from logtool.log import opening

CLEANER = "cleaner-offset-checkpoint"
ROWS = (
    CLEANER, "log-start-offset-checkpoint", "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)  # fmt: skip
SOURCE, END = "index.dense-0", 450


@pytest.fixture
def many(scenario, tmp_path):
    """Return a function that makes a log dir of copies of one partition, closed in order."""
    source = scenario("4.3.1/clean")

    def made(count, damaged=False):
        home = tmp_path / f"data-{count}"
        home.mkdir()
        for name in ("meta.properties", ".kafka_cleanshutdown"):
            shutil.copy2(source / name, home)
        for number in range(count):
            shutil.copytree(source / SOURCE, home / f"orders-{number}")
            if damaged:
                (home / f"orders-{number}" / "stranger").touch()
        for name in ROWS:
            end = END if name[0] == "r" else 0
            rows = {("orders", number): end for number in range(count)}
            built = offset_checkpoint.build(rows)
            (home / name).write_bytes(offset_checkpoint.encode(built))
        return home

    return made


@pytest.fixture
def opened(monkeypatch):
    """Return how often each file is opened, by its name."""
    found: Counter[str] = Counter()
    real = os.open

    def noted(path, *arguments, **named):
        found[Path(os.fspath(path)).name if isinstance(path, str | Path) else ""] += 1
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", noted)
    return found


@pytest.mark.parametrize(
    "command", [("txns",), ("rebuild-index",), ("gaps",), ("stat",), ("plan",), ("watermark",)],
    ids=lambda command: command[0],
)  # fmt: skip
def test_the_rows_of_a_log_dir_are_not_read_again_for_each_partition(run, many, opened, command):
    counts = []
    for size in (3, 9):
        home = many(size, damaged=True)
        opened.clear()
        run(*command, home)
        counts.append({name: opened[name] for name in ROWS})
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    "command",
    [("plan",), ("recover",), ("watermark",), ("verify",), ("checkpoint", "lint")],
    ids=lambda command: command[-1],
)
def test_a_sound_small_partition_that_was_closed_in_order_is_not_listed(
    run, many, monkeypatch, command
):
    home, listed = many(3), []
    real = opening.open_partition

    def noted(path, *others):
        listed.append(path)
        return real(path, *others)

    monkeypatch.setattr(opening, "open_partition", noted)
    run(*command, home)
    assert listed == []
    (home / "orders-1" / "stranger").touch()
    run(*command, home)
    assert {path.name for path in listed} == {"orders-1"}


@pytest.mark.parametrize("command", [("plan",), ("recover",), ("watermark",)])
def test_each_file_of_a_sound_small_partition_is_opened_once(run, many, opened, command):
    run(*command, many(3))
    assert opened["leader-epoch-checkpoint"] == opened[f"{0:020d}.log"] == 3
