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

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]

RELEASES = [KAFKA_4, pytest.param(KAFKA_3, marks=pytest.mark.long)]


def printed(*words: object) -> list[dict[str, Any]]:
    done = run("remote", *words, "-f", "ndjson")
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


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

    dumped = run("dump", "--records", "--exclude-topic", "__*", "-f", "ndjson",
                 tmp_path / "remote", tmp_path / "data")  # fmt: skip
    assert dumped.returncode == 0, dumped.stderr
    read: dict[str, list[int]] = {}
    for one in map(json.loads, dumped.stdout.splitlines()):
        if one["type"] == "record" and not one["control"]:
            read.setdefault(f"{one['topic']}-{one['partition']}", []).append(one["offset"])
    assert read == answers["consumed"]

    objects = printed("verify", "--rsm", "local", tmp_path / "remote", tmp_path / "data")
    rows = [one for one in objects if one["type"] == "remote-objects"]
    assert {(one["content"], one["state"]) for one in rows} == {("checked", "copy-finished")}
    assert [one for one in objects if one["type"] == "finding"] == []
