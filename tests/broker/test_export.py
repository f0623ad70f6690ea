"""Real tools produce the records that `dump` exports; consumers read the same records."""

from __future__ import annotations

import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broker.command import run
from broker.consuming import messages
from broker.install import java_command, major
from broker.kafka import Broker
from broker.topics import Topic
from producers import as_kcat
from readme import ROOT

pytestmark = pytest.mark.broker

# The records are years old, and retention would delete them half a minute after the start.
KEPT = {"retention.ms": "-1"}
SOURCE = Topic("source", "what is exported", partitions=3, config=KEPT)
TEXT = Topic("text.only", "text, with and without headers, null and empty", config=KEPT)
AGAIN = (
    Topic("again", "all of it, by the script of the guide", partitions=3, config=KEPT),
    Topic("by-console", "text, by the console producer"),
    Topic("by-kcat", "without headers, by kcat or its library"),
)
Got = tuple[bytes | None, bytes | None, Any, int]
Records = dict[int, list[Got]]


def exported(*arguments: object) -> tuple[bytes, str]:
    """Return the stdout and stderr of `dump`."""
    done = run("dump", *arguments, text=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.decode()


def consumed(broker: Broker, topic: Topic) -> Records:
    """Return key, value, headers and timestamp of every record of a topic, by partition."""
    found = messages(broker, [(topic.name, number) for number in range(topic.partitions)])
    return {
        number: [
            (one.key(), one.value(), list(one.headers() or []), one.timestamp()[1])
            for one in of_partition
        ]
        for (_, number), of_partition in found.items()
    }


def without_times(records: list[Got]) -> list[Any]:
    return [(key, value, headers) for key, value, headers, _ in records]


@pytest.fixture
def written(broker: Broker, log_dir: Path) -> Broker:
    """Return a broker with records of every kind in each partition of a topic."""
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import workloads
    from broker.workloads import Message

    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, [SOURCE, TEXT, *AGAIN])
    start = workloads.EPOCH_MS
    odd: Any = [("", b""), ("null", None), ("twice", b"1"), ("twice", b"2"), ("bytes", b"\xff\0")]
    for number, codec in enumerate(("none", "zstd", "gzip")):
        writer = workloads.Writer(broker.bootstrap, codec)
        writer.batches(SOURCE.name, workloads.messages(codec, 200, start), (1, 9, 25), number)
        edges = [
            Message(None, None, start), Message(b"", b"", start + 1), Message(None, b"", start + 2),
            Message(b"", None, start + 3), Message(b"tombstone", None, start - 9_999, odd),
            Message(b"\x00\xff\xfe", b"\n\r\t\x00: , __NULL__", start + 4),
            Message(b"big", workloads.text(random.Random(1), 300_000), start + 5),
        ]  # fmt: skip
        writer.batch(SOURCE.name, edges, number)
    plain = [
        Message(b"key \xd0\xba", "a value with spaces, a colon: \U0001f5ce".encode(), start),
        Message(b"none", None, start + 1),
        Message(None, b"no key", start + 2),
        Message(None, None, start + 3),
        Message(b"{", b'{"a": [1, 2]}', start + 4),
    ]
    workloads.Writer(broker.bootstrap, "lz4").batch(TEXT.name, plain)
    return broker


def test_the_script_of_the_guide_produces_a_range_with_all_fields(
    written: Broker, log_dir: Path, tmp_path: Path
) -> None:
    guide = (ROOT / "man" / "logtool-recipes.md").read_text("utf-8")
    (script,) = re.findall(r'```python\n("""Produce the records.*?)```', guide, re.DOTALL)
    (tmp_path / "produce.py").write_text(script)
    options = ["--records", "-f", "ndjson", "--values", "base64"]
    lines, _ = exported(*options, "--topic", SOURCE.name, "--offset", "3..", log_dir)
    command = [sys.executable, str(tmp_path / "produce.py"), written.bootstrap, "again"]
    done = subprocess.run(command, input=lines, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    source = consumed(written, SOURCE)
    assert consumed(written, AGAIN[0]) == {number: all_[3:] for number, all_ in source.items()}
    assert [len(all_) for all_ in source.values()] == [207] * 3
    # The script reports a dump that ended early.
    part = b"".join(lines.splitlines(keepends=True)[:-1])
    done = subprocess.run(command, input=part, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"incomplete" in done.stderr


def test_the_console_producer_produces_text_with_headers(written: Broker, log_dir: Path) -> None:
    from broker import workloads
    from broker.workloads import Message

    odd: Any = [("", b""), ("null", None), ("twice", b"1"), ("twice", "\u00e9 =".encode())]
    more = [Message(b"", b"", 5), Message(b"", None, 6, odd), Message(None, b"", 7, odd[:1])]
    workloads.Writer(written.bootstrap).batch(TEXT.name, more)
    lines, errors = exported("-f", "console-producer", log_dir / f"{TEXT.name}-0")
    (said,) = re.findall(r"kafka-console-producer\.sh .*", errors)
    words = shlex.split(said.replace("HOST:PORT", written.bootstrap))[1:]
    words[words.index(TEXT.name)] = "by-console"
    if major(written.version) < 4:
        words = [word.replace("--reader-property", "--property") for word in words]
        main = "kafka.tools.ConsoleProducer"
    else:
        main = "org.apache.kafka.tools.ConsoleProducer"
    command = [*java_command(written.version, main, heap="256m", level="WARN"), *words]
    done = subprocess.run(command, input=lines, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    source = without_times(consumed(written, TEXT)[0])
    assert without_times(consumed(written, AGAIN[1])[0]) == source
    assert len(source) == 8


def test_kcat_produces_the_exported_records(written: Broker, log_dir: Path) -> None:
    from confluent_kafka import Producer

    place = log_dir / f"{SOURCE.name}-2"
    sets: dict[str, tuple[list[Any], Topic, slice]] = {
        # Without headers: kcat cannot set the headers of single records.
        "text": ([log_dir / f"{TEXT.name}-0"], TEXT, slice(None)),
        "binary": (["--offset", "205..206", place], SOURCE, slice(205, 207)),
        "empty ones": (["--offset", "201..201", place], SOURCE, slice(201, 202)),
    }
    kcat = shutil.which("kcat")
    for options, topic, part in sets.values():
        data, errors = exported("-f", "kcat", *options)
        (said,) = re.findall(r"kcat -P .*", errors)
        before = len(consumed(written, AGAIN[2])[0])
        if kcat:
            words = shlex.split(said.replace("HOST:PORT", written.bootstrap))[1:]
            words[words.index("-t") + 1], words[words.index("-p") + 1] = "by-kcat", "0"
            done = subprocess.run([kcat, *words], input=data, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr
        else:
            producer = Producer(
                {"bootstrap.servers": written.bootstrap, "enable.idempotence": True}
            )
            for key, value in as_kcat(data, said):
                producer.produce("by-kcat", key=key, value=value, partition=0)
            assert producer.flush(30) == 0
        source = without_times(consumed(written, topic)[max(consumed(written, topic))][part])
        assert without_times(consumed(written, AGAIN[2])[0][before:]) == source
        assert source
