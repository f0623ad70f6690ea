"""`logtool` beside Kafka's own dump tool, on what a broker has written a moment ago."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from broker.dump import DECODERS, dump, dumpable
from broker.install import KAFKA_4
from broker.kafka import Broker
from broker.topics import TOPICS

pytestmark = pytest.mark.broker

LOGTOOL = Path(sys.executable).parent / "logtool"
RECORDS = ("--deep-iteration", "--print-data-log")


def logtool(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([LOGTOOL, *arguments], cwd=root, capture_output=True, check=False)


def as_before_4(line: bytes) -> bytes:
    """Kafka 3.9 does not spell out who leads; the rest of the line is the same."""
    head, found, _ = line.partition(b"LeaderChange: {")
    return head + b"controlType: LEADER_CHANGE(2)" if found else line


def ours(root: Path, version: str, files: Sequence[str], *options: str) -> bytes:
    done = logtool(root, "dump", "-f", "kafka", *options, *files)
    assert done.returncode == 0, done.stderr.decode()
    if version.startswith("3."):
        return b"\n".join(map(as_before_4, done.stdout.split(b"\n")))
    return done.stdout


@pytest.fixture
def written(broker: Broker, log_dir: Path, tmp_path: Path) -> Path:
    """A copy of what a killed broker left: every codec, edge cases, transactions, live indexes."""
    # Not at the top: where confluent-kafka is missing these tests are skipped, not in error.
    from broker import workloads

    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, TOPICS)
    workloads.write_codecs(broker.bootstrap)
    workloads.write_edges(broker.bootstrap)
    workloads.write_idempotent(broker.bootstrap)
    workloads.write_transactions(broker.bootstrap, 8)
    broker.kill()
    # Kafka's tool creates and changes files where it looks: it gets a copy of its own.
    copy = tmp_path / "copy"
    shutil.copytree(log_dir, copy)
    return copy


def compare_dumps(written: Path, log_dir: Path, kafka_version: str) -> None:
    files = dumpable(written)
    logs = [file for file in files if file.endswith((".log", ".checkpoint"))]
    raw = ("--records", "--decode", "none")
    cases = [(files, (), (), 20), (logs, RECORDS, raw, 20)]
    for topic, decoder in DECODERS.items():
        if kafka_version.startswith("3.") and topic == "__transaction_state":
            continue  # 3.9 prints these in a form of its own
        of_topic = [name for name in logs if name.startswith(f"{topic}-")]
        cases.append((of_topic, (decoder,), ("--records",), 0))
    for names, flags, options, least in cases:
        if not names:
            continue  # no share group was there
        theirs = dump(kafka_version, written, names, *flags)
        wanted = [name for name in names if name not in theirs.failed and name in theirs.stdout]
        assert len(wanted) > least

        found = ours(log_dir, kafka_version, wanted, *options)

        for name in wanted:
            at = found.index(f"Dumping {name}\n".encode())
            text = theirs.stdout[name]
            assert found[at : at + len(text)] == text, name


def compare_command_lines(written: Path, log_dir: Path, kafka_version: str) -> None:
    """Give `logtool kafka-dump-log` what Kafka's tool is given, word for word."""
    files = dumpable(written)
    logs = [name for name in files if name.startswith(("tx.mixed-0/", "codec-zstd-0/"))]
    indexes = [name for name in logs if name.endswith((".index", ".timeindex"))]
    logs = [name for name in logs if name.endswith(".log")]
    state = [name for name in files if name.startswith("__transaction_state-")][:4]
    for names, *flags in (
        (logs, "--print-data-log", "--skip-record-metadata"),
        (logs, "--deep-iteration", "--max-bytes", "9000"),
        (indexes, "--verify-index-only"),
        (indexes, "--index-sanity-check"),
        (state, "--transaction-log-decoder", "--skip-record-metadata"),
    ):
        theirs = dump(kafka_version, written, names, *flags)
        wanted = [name for name in names if name not in theirs.failed]
        assert wanted

        done = logtool(log_dir, "kafka-dump-log", *flags, "--files", ",".join(wanted))

        assert done.stdout == b"".join(theirs.stdout[name] for name in wanted), flags


def compare_verdicts(written: Path, log_dir: Path, kafka_version: str) -> None:
    sound = logtool(log_dir, "verify", ".", "--level", "records", "-q")
    assert (sound.returncode, sound.stdout) == (0, b"")
    name = "codec-lz4-0/00000000000000000000.log"
    for root in (written, log_dir):
        data = bytearray((root / name).read_bytes())
        data[len(data) // 2] ^= 1
        (root / name).write_bytes(data)

    theirs = dump(kafka_version, written, [name]).stdout[name]
    done = logtool(log_dir, "verify", name, "-f", "csv", "-q")

    (bad,) = [line for line in theirs.splitlines() if b"isvalid: false" in line]
    position = bad.split(b" position: ")[1].split()[0]
    assert done.returncode == 1
    (row,) = [line for line in done.stdout.splitlines() if line.startswith(b"error,")]
    assert row.startswith(b"error,batch/crc,")
    assert b"," + position + b"," in row


def test_dump_and_verify_say_what_kafka_says(
    written: Path, log_dir: Path, kafka_version: str
) -> None:
    # One test, because a broker that has written all this takes half a minute.
    compare_dumps(written, log_dir, kafka_version)
    if kafka_version == KAFKA_4:
        compare_command_lines(written, log_dir, kafka_version)
    compare_verdicts(written, log_dir, kafka_version)
