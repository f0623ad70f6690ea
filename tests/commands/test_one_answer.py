"""One answer from every path: a partition dir says what its log dir says of it."""

import ast
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pytest
from damage import cut, damage_file, flip

Copy = Callable[[str], Path]
NOW = "2026-11-28T00:00:00Z"


def partitions(home: Path) -> list[Path]:
    """Return the partition dirs that are in use."""
    return sorted(
        one for one in home.iterdir() if one.is_dir() and not one.name.endswith("-delete")
    )


def bad_night(home: Path) -> Path:
    """Damage logs, indexes, small files and rows of a log dir, and remove beginnings and ends."""
    live = [one for one in partitions(home) if "metadata" not in one.name]
    segments = {one: sorted(one.glob("*.log")) for one in live}
    several = [one for one in live if len(segments[one]) > 2]
    full = [one for one in live if segments[one] and segments[one][0].stat().st_size > 2000]
    for number, log in enumerate(one[0] for one in map(segments.get, several[:2]) if one):
        for file in log.parent.glob(f"{log.stem}.*"):
            file.unlink()
        if number:
            (log.parent / "leader-epoch-checkpoint").unlink()
    for log in (segments[one][0] for one in full[:3] if one not in several[:2]):
        damage_file(log, flip, log.stat().st_size // 2)
    for log in (segments[one][-1] for one in full[3:6] if one not in several[:2]):
        damage_file(log, cut, log.stat().st_size - 30)
    for one in full[6:9]:
        for index in sorted(one.glob("*.index"))[:1]:
            index.unlink()
    for one in full[9:11]:
        for snapshot in one.glob("*.snapshot"):
            snapshot.unlink()
    for one in full[11:12]:
        (one / "partition.metadata").unlink(missing_ok=True)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        checkpoint = home / name
        lines = checkpoint.read_text().splitlines()
        changed = [*lines[:2], *(line + "9" * (n % 5 == 0) for n, line in enumerate(lines[2:]))]
        checkpoint.write_text("\n".join(changed) + "\n")
    return home


def of_partitions(items: Iterable[dict[str, Any]], names: Collection[str]) -> list[str]:
    """Return the objects about these partition dirs as text, in an order of their own."""
    return sorted(
        str(one)
        for one in items
        if f"{one.get('topic')}-{one.get('partition')}" in names
        and not str(one.get("path")).endswith("-delete")
    )


@pytest.mark.parametrize("name", ["4.3.1/clean", "4.3.1/killed"])
def test_verify_finds_the_same_through_a_log_dir_and_through_its_partition_dirs(run, copy_of, name):
    home = bad_night(copy_of(name))
    live = {one.name: one for one in partitions(home)}
    found = of_partitions(run("verify", "--json", home).items, live)
    assert len({one["code"] for one in map(ast.literal_eval, found)}) > 12
    assert of_partitions(run("verify", "--json", *live.values()).items, live) == found


@pytest.mark.parametrize("command", ["gaps", "txns", "stat"])
def test_commands_say_the_same_through_both_paths(run, copy_of, command):
    home = bad_night(copy_of("4.3.1/killed"))
    live = {one.name: one for one in partitions(home)}
    now = ["--now", NOW] if command == "txns" else []
    args = [command, "--json", *now]
    found = of_partitions(run(*args, home).items, live)
    assert found
    assert of_partitions(run(*args, *live.values()).items, live) == found
