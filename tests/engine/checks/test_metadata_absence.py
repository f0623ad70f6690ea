"""Absence within the metadata log: snapshots, segments that a snapshot covers, and the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import metadata_records as made
import numpy as np
import pytest
from metadata_logs import ELECTION, NO_OP, data, log_dir, voters_batch
from verification import verify

from logtool.actions import Action
from logtool.findings import Finding, Severity
from logtool.formats import producer_snapshot
from logtool.metadata.image import DIRECTORY
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.verify import Level, Verification

Damage = Callable[[Path], object]


def home_of(tmp_path: Path, *, old: int = 12) -> Path:
    """Return a log dir whose metadata log begins at 10; snapshots cover `old` and 38 of 40."""
    home = log_dir(tmp_path, 1)
    log = home / DIRECTORY
    (log / f"{0:020}.log").unlink()
    for base in (10, 20, 30):
        (log / f"{base:020}.log").write_bytes(data(base, *[NO_OP] * 10))
    for end in (old, 38):
        made.snapshot(log, end, NO_OP)
    (log / f"{40:020}.snapshot").write_bytes(
        producer_snapshot.encode(producer_snapshot.build(np.zeros(0, producer_snapshot.ENTRY)))
    )
    (log / "leader-epoch-checkpoint").write_text("0\n1\n1 10\n")
    (home / ".kafka_cleanshutdown").touch()
    return home


def remove(pattern: str) -> Damage:
    """Return a function that removes files of a directory."""
    return lambda path: [one.unlink() for one in path.glob(pattern)]


def empty(pattern: str) -> Damage:
    """Return a function that empties files of a directory."""
    return lambda path: [one.write_bytes(b"") for one in path.glob(pattern)]


def codes(home: Path, **static: str) -> list[str]:
    """Return the codes of verify, those of indexes left out."""
    findings = verify(home, static=static).findings
    return sorted({one.code for one in findings if "index/" not in one.code})


def planned(home: Path, **static: str) -> list[str]:
    """Return the kinds of the grave actions of the next start."""
    kinds: list[str] = []
    for item in Forecast([home], StartOptions(static=static)):
        actions = item.actions if isinstance(item, PartitionForecast) else [item]
        kinds += [one.action for one in actions if isinstance(one, Action) and one.is_grave]
    return kinds


def test_a_sound_metadata_log_lacks_nothing(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    assert codes(home) == []
    assert planned(home) == []


@pytest.mark.parametrize("damage", [empty("*38-*.checkpoint"), remove("*.checkpoint")])
def test_a_node_takes_no_older_snapshot_for_its_newest(tmp_path: Path, damage: Damage) -> None:
    home = home_of(tmp_path)
    damage(home / DIRECTORY)
    assert "kraft-snapshot/missing" in codes(home)
    assert planned(home)[0] == "refuse"


def test_an_older_snapshot_and_a_footer_do_not_stop_a_node(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    empty("*12-*.checkpoint")(home / DIRECTORY)
    made.snapshot(home / DIRECTORY, 38, NO_OP, footer=False)
    assert "kraft-snapshot/missing" not in codes(home)
    assert "refuse" not in planned(home)


@pytest.mark.parametrize("in_log", [False, True])
def test_the_first_voters_may_stand_in_the_log_alone(tmp_path: Path, *, in_log: bool) -> None:
    first = voters_batch(0, [1]) if in_log else data(0, NO_OP, NO_OP)
    home = log_dir(tmp_path, 1, first, data(2, NO_OP))
    made.snapshot(home / DIRECTORY, 0, NO_OP)
    empty("*.checkpoint")(home / DIRECTORY)
    assert ("kraft-snapshot/missing" in codes(home)) != in_log
    assert ("refuse" in planned(home)) != in_log


@pytest.mark.parametrize("pattern", ["*20.log", "*10.log"])
@pytest.mark.parametrize("how", [remove, empty])
def test_a_hole_that_a_snapshot_covers_costs_nothing(
    tmp_path: Path, pattern: str, how: Callable[[str], Damage]
) -> None:
    home = home_of(tmp_path)
    how(pattern)(home / DIRECTORY)
    gaps = [] if (how, pattern) == (remove, "*10.log") else ["segment/gap"]
    assert codes(home) == gaps
    assert planned(home) == []


def test_a_hole_behind_the_newest_snapshot_is_an_error(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    remove("*38-*.checkpoint")(home / DIRECTORY)
    remove("*20.log")(home / DIRECTORY)
    assert "metadata/hole" in codes(home)


@pytest.mark.parametrize("damage", [remove("*.log"), empty("*.log"), remove("*30.log")])
@pytest.mark.parametrize(
    ("voters", "code", "action"),
    [
        ("1@localhost:9093", "metadata/end-lost", "lost"),
        ("1@localhost:9093,2@localhost:9094", "metadata/end-absent", "absent"),
        ("", "metadata/end-absent", "absent"),
    ],
)
def test_records_behind_the_newest_snapshot_are_lost(
    tmp_path: Path, damage: Damage, voters: str, code: str, action: str
) -> None:
    home = home_of(tmp_path)
    damage(home / DIRECTORY)
    found = verify(home, static={"controller.quorum.voters": voters})
    one = found.one(code)
    assert (one.path, one.first_offset, one.last_offset) == (home / DIRECTORY, 38, 39)
    assert [one.code for one in found.findings if one.severity is Severity.ERROR] == (
        [code] if action == "lost" else []
    )
    assert action in planned(home, **{"controller.quorum.voters": voters})


def test_after_a_kill_the_lost_end_may_not_have_been_committed(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    remove("*.log")(home / DIRECTORY)
    (home / ".kafka_cleanshutdown").unlink()
    assert "metadata/end-absent" in codes(home, **{"controller.quorum.voters": "1@localhost:9093"})


@pytest.mark.parametrize("how", ["emptied", "removed"])
@pytest.mark.parametrize(
    ("state_version", "own", "action"),
    [
        (1, {}, "refuse"),
        (0, {}, "lost"),
        (1, {"controller.quorum.voters": "1@localhost:9093"}, "lost"),
        (0, {"controller.quorum.bootstrap.servers": "localhost:9093"}, "refuse"),
        (None, {}, "lost"),
    ],
)
def test_a_node_with_a_dynamic_quorum_waits_for_its_lost_voters(
    tmp_path: Path, state_version: int | None, own: dict[str, str], action: str, how: str
) -> None:
    home = home_of(tmp_path)
    orders = home / "orders-0"
    orders.mkdir()
    (orders / f"{0:020}.log").write_bytes(made.batch(0, b"a"))
    (orders / "partition.metadata").write_text("version: 0\ntopic_id: bG9ndG9vbC10b3BpYy0tMQ\n")
    log = home / DIRECTORY
    if state_version is None:
        (log / "quorum-state").unlink()
    else:
        state = ELECTION | {"data_version": state_version}
        if not state_version:
            state |= {"clusterId": "", "appliedOffset": 0, "currentVoters": [{"voterId": 1}]}
        (log / "quorum-state").write_text(json.dumps(state))
    remove("*.checkpoint")(log)
    remove("*[123]0.log")(log)
    (log / f"{0:020}.log").touch()
    static = {"log.dirs": str(home), "process.roles": "broker,controller", **own}
    if how == "removed":
        shutil.rmtree(log)
        action = action if own else "lost"  # quorum-state is gone too.
    run = Verification([home], level=Level.QUICK, static=static)
    assert "metadata/lost" in [one.code for one in run if isinstance(one, Finding)]
    kinds = planned(home, **static)
    assert action in kinds
    assert ("stray" in kinds) is (action == "lost")
