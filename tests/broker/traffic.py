"""Clients that write in the background while a broker is copied or killed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from broker.install import HarnessError
from broker.workloads import EPOCH_MS, Message, Writer, messages, now_ms, transactional
from confluent_kafka import KafkaException


class Traffic:
    """Writes to several topics at once, in the background, until the broker is gone."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self.written: Counter[str] = Counter()
        jobs = (
            self._plain("small-segments", "none"),
            self._plain("codec-lz4", "lz4"),
            self._plain("preallocated.log", "none"),
            self._transactions("tx.mixed"),
        )
        self._threads = [threading.Thread(target=job, daemon=True) for job in jobs]

    def start(self) -> None:
        """Begin to write."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop writing and wait for the threads; raise HarnessError if one never wrote."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        if len(self.written) < len(self._threads):
            raise HarnessError(f"background writers wrote to {sorted(self.written)} only")

    def _plain(self, topic: str, codec: str) -> Callable[[], None]:
        def run() -> None:
            writer = Writer(self._bootstrap, codec)
            writer.patience = 2.0
            content = list(messages(f"traffic-{topic}", 4000, EPOCH_MS + 20_000_000))
            for start in range(0, len(content), 5):
                part = content[start : start + 5]
                if self._stop.wait(0.01) or not self._try(writer, topic, part):
                    return

        return run

    def _transactions(self, topic: str) -> Callable[[], None]:
        def run() -> None:
            writer = transactional(self._bootstrap, "fixture-traffic")
            writer.patience = 2.0
            content = list(messages(f"traffic-{topic}", 4000, now_ms()))
            for start in range(0, len(content), 40):
                writer.producer.begin_transaction()
                for part in range(start, start + 40, 10):
                    fine = self._try(writer, topic, content[part : part + 10])
                    if self._stop.wait(0.02) or not fine:
                        return
                if start % 120 == 0:
                    writer.producer.abort_transaction(5)
                else:
                    writer.producer.commit_transaction(5)

        return run

    def _try(self, writer: Writer, topic: str, part: list[Message]) -> bool:
        if try_batch(writer, topic, part):
            self.written[topic] += len(part)
            return True
        return False


def try_batch(writer: Writer, topic: str, part: list[Message], partition: int = 0) -> bool:
    """Write a batch; return False if the broker has gone, as the scenario intends."""
    try:
        writer.batch(topic, part, partition)
    except (HarnessError, KafkaException):
        writer.producer.purge()
        return False
    return True
