"""`verify` of logs with records that were deleted shortly before a kill, and are readable again."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.command import objects, of_type, run, succeed
from broker.consuming import ends
from broker.install import VERSIONS, major
from broker.kafka import Broker, format_log_dir

from logtool.formats import leader_epoch_checkpoint

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

RECORDS = 30
"""Records of each leader epoch: three epochs before the records are deleted."""

OFFSETS = {
    "first-epoch": 20,
    "edge-of-epochs": RECORDS,
    "second-epoch": 45,
    "third-epoch": 75,
    "log-end": 3 * RECORDS,
}
"""The offset up to which the records of each topic are deleted."""

LATE = "leader-epoch/begins-later"
BEHIND = "checkpoint/log-start-behind"
DELETED = {
    "first-epoch": {BEHIND},
    "edge-of-epochs": {LATE},
    "second-epoch": {BEHIND, LATE},
    "third-epoch": {BEHIND, LATE},
    "log-end": {BEHIND, LATE},
}
"""The findings about each topic directly after the kill."""


@pytest.mark.parametrize("version", VERSIONS)
def test_no_alarm_about_leader_epochs_that_a_killed_broker_removed(
    version: str, tmp_path: Path
) -> None:
    home = tmp_path / "log-dir"
    format_log_dir(version, [home])
    with Broker(version, [home]) as broker:
        _fill(broker)
        broker.kill()
        assert _findings(home) == DELETED
        broker.start()
        assert _ends(broker) == dict.fromkeys(OFFSETS, (0, 3 * RECORDS))
        for ending in (broker.stop, broker.kill, broker.stop):
            ending()
            found = _findings(home)
            # A new leader epoch, if the start has made one, takes the place of the row at the end.
            assert {**found, "log-end": found["log-end"] | {BEHIND}} == DELETED
            broker.start()
            _produce(broker)
        assert {low for low, _ in _ends(broker).values()} == {0}
        broker.stop()
    found = _findings(home)
    succeed("checkpoint", "rebuild", home, "--apply")
    # The rows are all that shows the deletion: they stay.
    assert _findings(home) == found


def _fill(broker: Broker) -> None:
    """Produce records with three leader epochs, and delete the first ones of each topic."""
    from broker import workloads
    from confluent_kafka.admin import AdminClient, NewTopic

    broker.start()
    key = "internal.segment.bytes" if major(broker.version) >= 4 else "segment.bytes"
    new = [NewTopic(topic, 1, 1, config={key: "1500"}) for topic in OFFSETS]
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in client.create_topics(new).values():
        future.result(60)
    _produce(broker)
    for _ in range(2):
        broker.stop()
        broker.start()
        _produce(broker)
    workloads.delete_records_up_to(broker.bootstrap, OFFSETS)
    # A broker of 4.x writes the file a moment after the answer.
    workloads.wait_for(lambda: _first_starts(broker) == OFFSETS, 60, "the leader epochs")


def _first_starts(broker: Broker) -> dict[str, int]:
    """Return the start offset of the first row of leader-epoch-checkpoint of each topic."""
    (home,) = broker.log_dirs
    paths = {topic: home / f"{topic}-0" / "leader-epoch-checkpoint" for topic in OFFSETS}
    return {
        topic: leader_epoch_checkpoint.parse(path.read_bytes()).rows[0].start_offset
        for topic, path in paths.items()
    }


def _produce(broker: Broker) -> None:
    """Produce `RECORDS` records to each topic, in batches of three."""
    from broker import workloads

    writer = workloads.Writer(broker.bootstrap)
    for topic in OFFSETS:
        content = workloads.messages(topic, RECORDS, workloads.now_ms())
        writer.batches(topic, content, (3,))


def _ends(broker: Broker) -> dict[str, tuple[int, int]]:
    """Return the log start and the log end of each topic, as a client sees them."""
    from broker import workloads

    client = workloads.consumer(broker.bootstrap, "unused", "classic")
    found = {topic: ends(client, topic, 0) for topic in OFFSETS}
    client.close()
    return found


def _findings(home: Path) -> dict[str, set[str]]:
    """Return the codes of `verify` about the epochs and the log start of each topic.

    The status shows that none of the findings is a warning, for a first `scrub` too.
    """
    found: dict[str, set[str]] = {topic: set() for topic in OFFSETS}
    for finding in of_type(objects("verify", "-v", home, statuses=(0,)), "finding"):
        if finding["topic"] in OFFSETS and finding["code"] in (LATE, BEHIND):
            found[finding["topic"]].add(finding["code"])
    state = home.with_name("scrub.db")
    state.unlink(missing_ok=True)
    assert run("scrub", "--state", state, "--cycle", "1s", home).returncode == 0
    return found
