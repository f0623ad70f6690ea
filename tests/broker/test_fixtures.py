"""The archives in tests/data agree with the manifest and have the features of their scenarios."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from broker.install import VERSIONS, major

DATA = Path(__file__).resolve().parents[1] / "data"
SCENARIOS: list[dict[str, Any]] = json.loads((DATA / "manifest.json").read_text())["scenarios"]


def label(scenario: dict[str, Any]) -> str:
    return f"{scenario['kafka_version']}-{scenario['name']}"


def facts(scenario: dict[str, Any], partition: str) -> dict[str, int]:
    found: dict[str, int] = scenario["partitions"][partition]
    return found


@pytest.mark.parametrize("scenario", SCENARIOS, ids=label)
def test_an_archive_holds_the_files_of_the_manifest(scenario: dict[str, Any]) -> None:
    archive = DATA / scenario["archive"]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == scenario["archive_sha256"]
    found = {}
    with tarfile.open(archive) as packed:
        for member in packed:
            assert member.uid == member.gid == 0
            content = packed.extractfile(member) if member.isfile() else None
            if content is not None:
                data = content.read()
                name = member.name.removeprefix(f"{scenario['name']}/")
                found[name] = [len(data), hashlib.sha256(data).hexdigest()]
    assert found == scenario["files"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=label)
def test_kafka_dumped_every_log(scenario: dict[str, Any]) -> None:
    logs = {name for name in scenario["files"] if name.endswith((".log", ".checkpoint"))}
    top = f"{scenario['name']}.expected/batches/"
    with tarfile.open(DATA / scenario["expected"]) as packed:
        names = {name for name in packed.getnames() if name.startswith(top)}
    dumped = {name.removeprefix(top).removesuffix(".txt") for name in names}
    assert logs <= dumped


@pytest.mark.parametrize(
    "scenario", [s for s in SCENARIOS if s["name"] in ("clean", "running", "killed")], ids=label
)
def test_the_full_workload_left_its_traces(scenario: dict[str, Any]) -> None:
    cleaned = facts(scenario, "compacted.keys-0")
    assert cleaned["empty_batches"] > 0
    assert cleaned["delete_horizons"] > 0
    assert facts(scenario, "compacted-tx-0")["delete_horizons"] > 0
    assert facts(scenario, "small-segments-0")["segments"] >= 20
    assert facts(scenario, "tx.mixed-0")["aborted_transactions"] > 3
    assert facts(scenario, "deleted-pending-0")["files_waiting_for_deletion"] > 0
    assert "deleted_segments-0/00000000000000000000.log" not in scenario["files"]
    deleted = [name for name in scenario["partitions"] if name.endswith("-delete")]
    assert len(deleted) == (0 if scenario["name"] == "running" else 2)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert facts(scenario, f"codec-{codec}-0")[f"codec_{codec}"] > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=label)
def test_only_an_orderly_stop_left_a_clean_marker(scenario: dict[str, Any]) -> None:
    marked = any(name.endswith(".kafka_cleanshutdown") for name in scenario["files"])
    locked = any(name.endswith(".lock") for name in scenario["files"])
    killed = scenario["name"] in (
        "killed", "running", "torn", "default-settings", "replicas", "magic-1"
    )  # fmt: skip
    # Releases before 3.0 leave the lock file behind at each stop.
    assert locked == (killed or major(scenario["kafka_version"]) < 3)
    # One of the three nodes of "replicas" was stopped in order.
    expected = scenario["name"] == "replicas" or not (killed or scenario["name"] == "formatted")
    assert marked == expected


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("replicas", "node-3/replica.stray-0.*-stray"),
        ("replicas", "node-2/replica.stray-0.*-delete"),
        ("two-log-dirs", "dir-*/moving.topic-0.*-future"),
        ("java-clients", "java-tx-0"),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_scenario_has_the_directory_it_was_made_for(
    version: str, name: str, pattern: str
) -> None:
    (scenario,) = (s for s in SCENARIOS if (s["kafka_version"], s["name"]) == (version, name))
    assert any(fnmatch.fnmatch(folder, pattern) for folder in scenario["partitions"])


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s["name"] == "torn"], ids=label)
def test_kafka_itself_cut_the_torn_logs(scenario: dict[str, Any]) -> None:
    (after,) = (
        s
        for s in SCENARIOS
        if s["kafka_version"] == scenario["kafka_version"] and s["name"] == "torn-recovered"
    )
    torn = [note.split(":")[0] for note in scenario["notes"]]
    assert torn
    for partition in torn:
        log = f"{partition}/00000000000000000000.log"
        assert after["files"][log][0] < scenario["files"][log][0]
