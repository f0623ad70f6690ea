"""Compares `remote` with what a broker and its tools say of a log with a remote part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from broker import tiered
from broker.command import run
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_4
from broker.kafka import Broker

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]

RELEASES = [KAFKA_4, pytest.param(KAFKA_3, marks=pytest.mark.long)]


def printed(*words: object) -> list[dict[str, Any]]:
    done = run("remote", *words, "-f", "ndjson")
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def records(*paths: Path) -> dict[str, list[int]]:
    """Return the offsets of the records that logtool reads, by partition."""
    done = run("dump", "--records", "--exclude-topic", "__*", "-f", "ndjson", *paths)
    assert done.returncode == 0, done.stderr
    read: dict[str, list[int]] = {}
    for one in map(json.loads, done.stdout.splitlines()):
        if one["type"] == "record" and not one["control"]:
            read.setdefault(f"{one['topic']}-{one['partition']}", []).append(one["offset"])
    return read


def remote_retention(home: Path, *words: str) -> list[dict[str, Any]]:
    done = run("retention", *words, "-f", "ndjson", home / "data")
    assert done.returncode == 0, done.stderr
    found = map(json.loads, done.stdout.splitlines())
    return [one for one in found if one["type"] == "remote"]


def expected_snapshot(home: Path) -> int:
    """Return the local log start of aged-0, at which the plan keeps a snapshot."""
    base = min(tiered.local(home / "data", "aged-0"))
    planned = run("plan", "--topic", "aged", "-f", "ndjson", home / "data").stdout.splitlines()
    gone = {one["path"] for one in map(json.loads, planned) if one.get("action") == "remove"}
    assert not any(path.endswith(f"{base:020d}.snapshot") for path in gone)
    return base


def with_smaller_limit(release: str, home: Path, topic: str, size: int, start: int) -> None:
    """Start the broker, set retention.bytes, and wait until its objects begin at an offset."""
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )  # fmt: skip

    remote, entry = home / "remote", ConfigEntry(
        "retention.bytes", str(size), incremental_operation=AlterConfigOpType.SET
    )  # fmt: skip
    last = max(tiered.objects(remote, topic))[1]
    expected = {(0, at) for at in range(start, last + 1)}
    version = runnable(release)
    with Broker(version, [home / "data"], tiered.settings(version, remote)) as broker:
        broker.start()
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        client.incremental_alter_configs([resource])[resource].result(60)
        tiered.wait(lambda: tiered.objects(remote, topic) == expected, broker, "not deleted")
        # A snapshot at the local log start is above the log start, so that no start removes it.
        assert (home / "data" / "aged-0" / f"{expected_snapshot(home):020d}.snapshot").is_file()
        broker.stop()


@pytest.mark.parametrize("release", RELEASES)
def test_offsets_and_places_are_those_of_the_broker(release: str, tmp_path: Path) -> None:
    answers = tiered.run(runnable(release), tmp_path)
    found = printed("lineage", tmp_path / "data")
    assert [one for one in found if one["type"] == "finding"] == []
    partitions = {f"{one['topic']}-{one['partition']}": one for one in found
                  if one["type"] == "partition"}  # fmt: skip
    for name, offsets in answers["offsets"].items():
        if name == "plain-0":
            continue
        one = partitions[name]
        assert (
            one["log_start_offset"], one["log_end_offset"], one["local_start_offset"],
            one["remote_end_offset"],
        ) == (
            offsets["earliest"], offsets["latest"], offsets["earliest-local"],
            offsets["latest-tiered"] + 1,
        ), name  # fmt: skip
    here = {(one["topic"], one["partition"], at) for one in found if one["type"] == "range"
            and one["place"] in ("remote", "local", "both")
            for at in range(one["first_offset"], one["last_offset"] + 1)}  # fmt: skip
    for name, consumed in answers["consumed"].items():
        topic, _, number = name.rpartition("-")
        assert topic == "plain" or {(topic, int(number), at) for at in consumed} <= here

    assert records(tmp_path / "remote", tmp_path / "data") == answers["consumed"]
    ends = {name: one.get("latest-tiered", -1) for name, one in answers["offsets"].items()}
    in_remote = {name: [at for at in consumed if at <= ends[name]]
                 for name, consumed in answers["consumed"].items() if ends[name] >= 0}  # fmt: skip
    assert records(tmp_path / "remote") == in_remote

    # The broker has deleted all that it may, and deletes what is foreseen for another limit.
    rows = remote_retention(tmp_path)
    assert len(rows) == 6 and {one["due_segments"] for one in rows} == {0}
    (kept,) = remote_retention(tmp_path, "--topic", "kept", "--with", "retention.bytes=4000")
    assert kept["due_segments"] == kept["log_start_offset"] > 0

    objects = printed("verify", "--rsm", "local", tmp_path / "remote", tmp_path / "data")
    rows = [one for one in objects if one["type"] == "remote-objects"]
    assert {(one["content"], one["state"]) for one in rows} == {("checked", "copy-finished")}
    assert [one for one in objects if one["type"] == "finding"] == []

    with_smaller_limit(release, tmp_path, "kept", 4000, kept["log_start_offset"])
