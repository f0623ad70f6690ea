"""`logtool` agrees with Kafka's dump tool on the files that a broker has just written."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from broker.command import run
from broker.conftest import runnable
from broker.dump import DECODERS, dump, dumpable
from broker.install import KAFKA_4, KAFKA_NEWEST, tiered_storage
from broker.kafka import SHARE_CONFIG, Broker
from broker.topics import TOPICS, Topic

from logtool.formats.messages.internal_topics import TRANSACTION_STATES as STATES

pytestmark = pytest.mark.broker

_STATE = re.compile(rb'"transactionStatus":"(\w+)"')
RECORDS = ("--deep-iteration", "--print-data-log")


def as_before_4(line: bytes) -> bytes:
    """Return a line as Kafka 3.9 prints it, without the fields of a leader change."""
    head, found, _ = line.partition(b"LeaderChange: {")
    return head + b"controlType: LEADER_CHANGE(2)" if found else line


def transactions_as_before_4(line: bytes) -> bytes:
    """Return a coordinator's record as Kafka 3.9 prints it, with the partitions sorted.

    Kafka prints them in the order of a hash.
    """
    head, key_found, rest = line.partition(b" key: {")
    if not key_found:
        return re.sub(rb"(partitions=\[)(.*?)(\])", _sorted, line)
    key, _, value = rest.partition(b" payload: ")
    name = json.loads(b"{" + key)["data"]["transactionalId"]
    data = json.loads(value)["data"]
    listed = data["transactionPartitions"] or ()
    places = (f"{one['topic']}-{number}" for one in listed for number in one["partitionIds"])
    payload = (
        f"producerId:{data['producerId']},producerEpoch:{data['producerEpoch']},"
        f"state={data['transactionStatus']},partitions=[{','.join(sorted(places))}],"
        f"txnLastUpdateTimestamp={data['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={data['transactionTimeoutMs']}"
    )
    found = f" key: transaction_metadata::transactionalId={name} payload: {payload}"
    return head + found.encode()


def _sorted(found: re.Match[bytes]) -> bytes:
    return found[1] + b",".join(sorted(found[2].split(b","))) + found[3]


def compare_transactions_of_before_4(written: Path, log_dir: Path, version: str) -> None:
    """Compare the output of both tools for a coordinator's records, in the format of 3.9."""
    files = [name for name in dumpable(written) if name.startswith("__transaction_state-")]
    logs = [name for name in files if name.endswith(".log")]
    theirs = dump(version, written, logs, DECODERS["__transaction_state"])
    assert theirs.failed == []
    words = ("kafka-dump-log", DECODERS["__transaction_state"], "--files", ",".join(logs))
    ours = run(*words, cwd=log_dir, text=False)
    lines = [
        list(map(transactions_as_before_4, text.splitlines()))
        for text in (ours.stdout, b"".join(theirs.stdout[name] for name in logs))
    ]
    assert lines[0] == lines[1]
    assert sum(b"state=Ongoing,partitions=[tx.mixed-0" in line for line in lines[1]) >= 8


def states_as_before_4_4(output: bytes) -> bytes:
    """Return output as Kafka 4.0 to 4.3 print it, with numbers for the states of transactions."""
    return _STATE.sub(lambda found: b'"transactionStatus":%d' % STATES.index(found[1].decode()),
                      output)  # fmt: skip


def ours(root: Path, version: str, files: Sequence[str], *options: str) -> bytes:
    done = run("dump", "-f", "kafka", *options, *files, cwd=root, text=False)
    assert done.returncode == 0, done.stderr.decode()
    if version.startswith("3."):
        return b"\n".join(map(as_before_4, done.stdout.split(b"\n")))
    return states_as_before_4_4(done.stdout)


TIERED = Topic(
    "tiered", "its segments are copied to a remote storage",
    config={"remote.storage.enable": "true", "segment.ms": "1000", "retention.ms": "-1"},
)  # fmt: skip
NEWER = {
    "group.streams.initial.rebalance.delay.ms": "0",
    **SHARE_CONFIG,
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": (
        "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    ),
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.task.interval.ms": "500",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
}
"""Settings of a 4.x broker with every kind of group and a tiered topic."""


def write_of_every_kind(broker: Broker, remote: Path) -> None:
    """Have groups of every kind and a tiered topic write to the internal topics."""
    from broker import java_clients, streams_group, workloads

    for partition in range(2):
        content = workloads.messages(f"groups.input-{partition}", 200, workloads.EPOCH_MS)
        workloads.Writer(broker.bootstrap).batches("groups.input", content, (50,), partition)
    workloads.write_groups(broker.bootstrap, broker.version)
    java_clients.share(broker.bootstrap)
    streams_group.join(broker.bootstrap, broker.version, "group-streams", "groups.input")
    workloads.create_topics(broker.bootstrap, broker.version, [TIERED])
    for later in range(3):
        times = workloads.EPOCH_MS + later * 100_000  # a segment ends by the times of records
        content = workloads.messages("tiered", 50, times)
        workloads.Writer(broker.bootstrap).batches(TIERED.name, content, (50,))
    workloads.wait_for(lambda: any(remote.rglob("*.log")), 60, "a segment to be copied")


@pytest.fixture
def written(broker: Broker, log_dir: Path, tmp_path: Path) -> Path:
    """Return a copy of a killed broker's log dir with every codec, edge cases and transactions."""
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import java_clients, workloads

    remote, is_newer = tmp_path / "remote", broker.version == KAFKA_4
    if is_newer:
        jar = {"remote.log.storage.manager.class.path": str(tiered_storage(broker.version))}
        broker.extra_config |= {**NEWER, **jar, "rsm.config.dir": str(remote)}
        remote.mkdir()
    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, TOPICS)
    workloads.write_codecs(broker.bootstrap)
    workloads.write_edges(broker.bootstrap)
    workloads.write_idempotent(broker.bootstrap)
    workloads.write_transactions(broker.bootstrap, 8)
    if is_newer:
        workloads.create_topics(broker.bootstrap, broker.version, [java_clients.SHARED])
        write_of_every_kind(broker, remote)
    broker.kill()
    # Kafka's tool creates and changes files, so it gets its own copy.
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
            compare_transactions_of_before_4(written, log_dir, kafka_version)
            continue
        of_topic = [name for name in logs if name.startswith(f"{topic}-")]
        cases.append((of_topic, (decoder,), ("--records",), 0))
    for names, flags, options, least in cases:
        if not names:
            assert kafka_version != KAFKA_4  # which has every kind of group and topic
            continue
        theirs = dump(kafka_version, written, names, *flags)
        wanted = [name for name in names if name not in theirs.failed and name in theirs.stdout]
        assert len(wanted) > least

        found = ours(log_dir, kafka_version, wanted, *options)

        for name in wanted:
            at = found.index(f"Dumping {name}\n".encode())
            text = theirs.stdout[name]
            assert found[at : at + len(text)] == text, name


def compare_command_lines(written: Path, log_dir: Path, kafka_version: str) -> None:
    """Run `logtool kafka-dump-log` with the same options as Kafka's tool."""
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

        words = ("kafka-dump-log", *flags, "--files", ",".join(wanted))
        done = run(*words, cwd=log_dir, text=False)

        assert states_as_before_4_4(done.stdout) == b"".join(
            theirs.stdout[name] for name in wanted
        ), flags


def compare_verdicts(written: Path, log_dir: Path, kafka_version: str) -> None:
    sound = run("verify", ".", "--level", "records", "-q", cwd=log_dir, text=False)
    assert (sound.returncode, sound.stdout) == (0, b"")
    name = "codec-lz4-0/00000000000000000000.log"
    for root in (written, log_dir):
        data = bytearray((root / name).read_bytes())
        data[len(data) // 2] ^= 1
        (root / name).write_bytes(data)
    theirs = dump(kafka_version, written, [name]).stdout[name]
    done = run("verify", name, "-f", "csv", "-q", cwd=log_dir, text=False)
    (bad,) = [line for line in theirs.splitlines() if b"isvalid: false" in line]
    position = bad.split(b" position: ")[1].split()[0]
    assert done.returncode == 1
    (row,) = [line for line in done.stdout.splitlines() if line.startswith(b"error,")]
    assert row.startswith(b"error,batch/crc,")
    assert b"," + position + b"," in row


def test_dump_and_verify_agree_with_kafka(written: Path, log_dir: Path, kafka_version: str) -> None:
    # One test, because the broker takes half a minute to write all this.
    compare_dumps(written, log_dir, kafka_version)
    if kafka_version == KAFKA_4:
        compare_command_lines(written, log_dir, kafka_version)
    compare_verdicts(written, log_dir, kafka_version)


def test_dumps_are_those_of_the_newest_tool(
    scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    version = runnable(KAFKA_NEWEST)
    for name, of, flags, options in (
        ("4.3.1/clean", "__transaction_state-*/*", ("--transaction-log-decoder",), ("--records",)),
        ("4.3.1/clean", "tx.mixed-0/*", (), ()),
        ("2.8.2/magic-0", "old-*-0/*.log", RECORDS, ("--records", "--decode", "none")),
    ):
        copy = tmp_path / name.replace("/", "-")
        shutil.copytree(scenario(name), copy, dirs_exist_ok=True)
        names = [one for one in dumpable(copy) if Path(one).match(of)]
        theirs = dump(version, copy, names, *flags)
        assert theirs.failed == []

        done = run("dump", "-f", "kafka", *options, *names, cwd=scenario(name), text=False)

        assert done.stdout == b"".join(theirs.stdout[one] for one in names)
        assert len(names) > 1
