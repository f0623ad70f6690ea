"""`txns` and a broker agree on a transaction whose coordinator's log was rolled back."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from broker import protocol
from broker.command import Object, objects, of_type
from broker.install import KAFKA_4, HarnessError
from broker.kafka import Broker, run_tool
from broker.topics import Topic

pytestmark = pytest.mark.broker

TOPIC = Topic("payouts", "its last transaction hangs")
NAME = "payout-worker"
TOOL = "org.apache.kafka.tools.TransactionsCommand"
CONFIG = {"transaction.state.log.num.partitions": "1"}


class Application:
    """A producer that has just started."""

    def __init__(self, broker: Broker) -> None:
        # Imported here: without confluent-kafka these tests are skipped.
        from broker import workloads

        config: dict[str, Any] = {"enable_idempotence": True, "transaction_timeout_ms": 900_000}
        self._writer = workloads.Writer(broker.bootstrap, transactional_id=NAME, **config)
        self._writer.producer.init_transactions(10)

    def transact(self, *, commit: bool = True) -> None:
        """Write a transaction of ten records."""
        from broker import workloads

        self._writer.producer.begin_transaction()
        content = workloads.messages(NAME, 10, workloads.now_ms())
        self._writer.batches(TOPIC.name, content, (5,))
        if commit:
            self._writer.producer.commit_transaction(30)


def starts(broker: Broker) -> bool:
    """Start the application; return whether it commits a transaction."""
    from confluent_kafka import KafkaException

    try:
        Application(broker).transact()
    except (HarnessError, KafkaException, SystemError):
        return False
    return True


def offsets(broker: Broker) -> tuple[int, int]:
    """Return last stable offset and log end offset of the topic."""
    found = protocol.offsets(broker.bootstrap, TOPIC.name)
    return found.last_stable, found.log_end


def moves_to_the_end(broker: Broker) -> bool:
    """Wait until no transaction is open; the last marker may still be on its way."""
    from broker import workloads

    def ended() -> bool:
        stable, end = offsets(broker)
        return stable >= end

    workloads.wait_for(ended, 20, "the last stable offset to be the log end offset")
    return True


def asked(broker: Broker, *arguments: str) -> list[list[str]]:
    """Return the cells that ``kafka-transactions.sh`` prints below its titles."""
    shown = run_tool(broker.version, TOOL, "--bootstrap-server", broker.bootstrap, *arguments)
    return [line.split() for line in shown.splitlines() if line.strip()][1:]


def roll_back(broker: Broker, log_dir: Path, epoch: int) -> None:
    """Leave a transaction of this epoch open, stop, and put an older coordinator's log back.

    The copy has the first transaction of the application, of epoch 0.
    """
    from broker import workloads

    broker.extra_config.update(CONFIG)
    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, [TOPIC])
    Application(broker).transact()
    # The answer to a commit comes before its markers are written.
    workloads.wait_for(
        lambda: "CompleteCommit" in asked(broker, "describe", "--transactional-id", NAME)[0],
        60, "the first transaction to be complete",
    )  # fmt: skip
    broker.stop()
    state = log_dir / "__transaction_state-0"
    older = shutil.copytree(state, log_dir.parent / "older")
    broker.start()
    kept: list[Any] = [Application(broker)]
    kept[0].transact()
    kept += [Application(broker) for _ in range(epoch - 1)]
    kept[-1].transact(commit=False)
    broker.stop()
    shutil.rmtree(state)
    shutil.copytree(older, state)


def hanging(log_dir: Path) -> Object:
    """Return the only transaction that hangs, by `txns` on a log dir."""
    said = objects("txns", "--all", log_dir, statuses=(1,))
    (found,) = (one for one in of_type(said, "transaction") if one["state"] == "hanging")
    (entry,) = of_type(said, "coordinator")
    assert (entry["producer_epoch"], entry["log_epoch"]) == (0, found["producer_epoch"])
    return found


def abort(broker: Broker, transaction: Object) -> None:
    """Run the command that logtool printed for a transaction."""
    script, _, _, *words = shlex.split(str(transaction["abort"]))
    assert script == "kafka-transactions.sh"
    run_tool(broker.version, TOOL, "--bootstrap-server", broker.bootstrap, *words)


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_transaction_of_a_rolled_back_coordinator_hangs_until_the_printed_abort(
    broker: Broker, log_dir: Path, epoch: int
) -> None:
    roll_back(broker, log_dir, epoch)
    found = hanging(log_dir)
    first = int(str(found["first_offset"]))
    assert (found["producer_epoch"], found["coordinator"]["is_older"]) == (epoch, True)
    assert found["after_restart"] is not None
    kept = shutil.copytree(log_dir, log_dir.parent / "kept")

    broker.start()
    (row,) = asked(broker, "find-hanging", "--topic", TOPIC.name, "--max-transaction-timeout", "0")
    assert (row[0], row[2], row[3], row[5]) == (TOPIC.name, "0", str(epoch), str(first))
    assert offsets(broker)[0] == first
    abort(broker, found)
    assert moves_to_the_end(broker)
    # The coordinator hands out the epochs of before again.
    assert [starts(broker) for _ in range(2)] == [False, True]
    assert moves_to_the_end(broker)
    broker.stop()

    shutil.rmtree(log_dir)
    shutil.copytree(kept, log_dir)
    broker.start()
    assert not starts(broker)
    assert offsets(broker)[0] == first
    # The abort of what the first start began ends the hanging transaction as well, unless the
    # leader refuses its marker, which then has the epoch of what is open.
    is_refused = epoch == 2 and broker.version == KAFKA_4
    assert starts(broker) is not is_refused
    assert is_refused or moves_to_the_end(broker)
    assert not is_refused or offsets(broker)[0] == first
    broker.stop()
    said = of_type(objects("txns", "--all", log_dir, statuses=(0, 1)), "transaction")
    (state,) = (one["state"] for one in said if one["first_offset"] == first)
    assert (state == "aborted") is not is_refused
