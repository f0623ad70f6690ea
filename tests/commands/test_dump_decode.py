"""`dump` of brokers' own topics: their fields, as Kafka's tool has them, without what is secret."""

import base64
import json
import re
import sys
from pathlib import Path

import pytest
from conftest import SCENARIOS
from dumps import as_newest, expected, failures
from metadata_records import config, framed, log_dir_of, text, varint
from metadata_secrets import spelled
from terminal import shown_on
from transaction_state import entry, write

from logtool.formats.messages import codec, internal_topics, schema
from logtool.formats.record import Record
from logtool.log import decoded

NEW = [name for name in SCENARIOS if name.startswith("4.")]


@pytest.mark.parametrize("name", NEW)
def test_every_line_is_as_kafkas_decoders_print_it(run, scenario, monkeypatch, name):
    folder = scenario(f"{name}.expected") / "decoded"
    given_up = failures(name, "decoded")
    wanted = {file: as_newest(text) for file, text in expected(folder) if file not in given_up}
    assert wanted
    monkeypatch.chdir(scenario(name))
    found = run("dump", "-f", "kafka", "--records", *wanted).stdout
    for file, lines in wanted.items():
        at = found.index(f"Dumping {file}\n")
        assert found[at : at + len(lines)] == lines, file
    assert len(found) == sum(map(len, wanted.values()))


def records(run, *arguments):
    done = run("dump", "--records", "--format", "ndjson", *arguments)
    objects = map(json.loads, done.stdout.splitlines())
    return [one for one in objects if one["type"] == "record" and not one["control"]], done


def test_json_has_the_fields_and_bytes_where_they_are_asked_for(run, scenario):
    home = scenario("4.3.1/running") / "__consumer_offsets-1"
    found, done = records(run, home)
    assert done.status == 0
    names = {one["key"]["json"]["name"] for one in found}
    assert "ConsumerGroupMetadataKey" in names
    assert all(one["value"] is None or "json" in one["value"] for one in found)
    for arguments in (("--decode", "none"), ("--values", "hex")):
        raw, _ = records(run, *arguments, home)
        assert [one["offset"] for one in raw] == [one["offset"] for one in found]
        assert not any("json" in one["key"] for one in raw)


def test_csv_says_that_a_cell_is_json(run, scenario):
    home = scenario("4.3.1/running") / "__transaction_state-0"
    lines = run("dump", "--records", "--format", "csv", home).stdout.splitlines()
    head = lines[0].split(",")
    assert lines[1].count(",json,") == 2
    assert "key_encoding" in head
    assert '""transactionalId""' in lines[1]


def test_a_table_names_what_a_record_is(run, scenario):
    home = scenario("4.3.1/running") / "__transaction_state-0"
    assert 'TransactionLogKey {"transactionalId": ' in run("dump", "--records", home).stdout


def test_a_narrow_terminal_shows_the_fields_too(scenario, child_environment):
    home = scenario("4.3.1/running") / "__transaction_state-0"
    line = ["dump", "--records", "--limit", "2", "--color", "never"]
    command = [sys.executable, "-m", "logtool", *line]
    status, shown = shown_on(80, [*command, home.name], child_environment(), home.parent)
    assert status == 0
    assert '"producerId":' in shown
    # Headers are empty here: the column is left out with the time.
    (note,) = (line for line in shown.splitlines() if "--wide" in line)
    assert note.rpartition(": ")[2] == "timestamp, headers"
    assert all(len(line) <= 80 for line in shown.splitlines())


SCRAM = framed(
    11, 0, text("alice"), b"\1", *(varint(3) + piece for piece in (b"aa", b"bb", b"cc")),
    (4096).to_bytes(4, "big"), tags={},
)  # fmt: skip


def test_secrets_are_not_printed_unless_they_are_asked_for():
    topic = "__cluster_metadata"
    hidden = decoded.decode(topic, None, SCRAM).value["data"]
    assert hidden == {
        "name": "alice", "mechanism": 1, "salt": "(redacted)", "storedKey": "(redacted)",
        "serverKey": "(redacted)", "iterations": 4096,
    }  # fmt: skip
    assert decoded.decode(topic, None, SCRAM, secrets=True).value["data"]["salt"] == "YWE="


SECRETS = (b"the-salt", b"stored-key", b"server-key", b"open sesame", b"of-a-newer-release")


def metadata_log(home):
    """Write a metadata log with secrets."""
    pieces = (varint(len(one) + 1) + one for one in SECRETS[:3])
    scram = (text("alice"), b"\1", *pieces, (4096).to_bytes(4, "big"))
    password = config(4, "1", "ssl.key.password", SECRETS[3].decode())
    log = log_dir_of(home, [
        framed(11, 0, *scram, tags={}), password, config(2, "t", "retention.ms", "77"),
        framed(11, 9, SECRETS[4]),
    ])  # fmt: skip
    return log / f"{0:020d}.log"


PRINTING = (
    "dump --records", "dump --records --decode none", "dump --records --json --values hex",
    "dump --records --json --values base64", "dump --records --format csv --decode none",
    "dump --format kafka --records", "dump --format kafka --records --decode none",
    "dump --format kcat", "kafka-dump-log --print-data-log --files",
    "kafka-dump-log --offsets-decoder --files", "kafka-dump-log --cluster-metadata-decoder --files",
)  # fmt: skip


@pytest.mark.parametrize("line", PRINTING)
def test_no_way_to_print_bytes_prints_secrets(run, tmp_path, line):
    log = metadata_log(tmp_path)
    shown = run(*line.split(), log).stdout
    assert shown
    assert not spelled(shown.encode(), SECRETS)


def test_bytes_without_secrets_have_the_same_size_and_decode(run, tmp_path):
    log = metadata_log(tmp_path)
    hex_dump = ("--records", "--format", "ndjson", "--values", "hex")
    options = (), ("--show-secrets",)
    shown = [run("dump", *hex_dump, *more, log).of_type("record") for more in options]
    assert [one["value"]["size"] for one in shown[0]] == [one["value"]["size"] for one in shown[1]]
    assert spelled(json.dumps(shown[1]).encode(), SECRETS) == list(SECRETS)
    scram = bytes.fromhex(shown[0][0]["value"]["hex"])
    fields = decoded.decode("__cluster_metadata", None, scram, secrets=True).value["data"]
    assert (fields["name"], base64.b64decode(fields["salt"])) == ("alice", b"********")
    newer = bytes.fromhex(shown[0][3]["value"]["hex"])
    assert newer == bytes((1, 11, 9)) + b"*" * (len(SECRETS[4]) + 1)


def test_bytes_that_kafka_would_write_otherwise_have_the_same_size_without_secrets():
    name = b"\x86\0alice"  # its length, 6, takes a byte more than it needs
    pieces = [varint(len(one) + 1) + one for one in SECRETS[:3]]
    odd = framed(11, 0, name, b"\1", *pieces, (4096).to_bytes(4, "big"), tags={})
    fields = decoded.decode("__cluster_metadata", None, odd, secrets=True).value["data"]
    assert fields["name"] == "alice"
    assert decoded.without_secrets(odd) == odd[:3] + b"*" * (len(odd) - 3)


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("listener.name.internal.ssl.keystore.password", True),
        ("ssl.keystore.key", True),
        ("sasl.jaas.config", True),
        ("my.plugin.secret", True),
        ("rsm.config.azure.account.key", True),
        ("retention.ms", False),
        ("compression.type", False),
    ],
)
def test_settings_that_hold_secrets_are_hidden(name, hidden):
    fields = {"resourceType": 4, "resourceName": "1", "name": name, "value": "x"}
    message = schema.table("cluster_metadata").named("ConfigRecord")
    value = varint(1) + varint(4) + varint(0) + codec.encode(message, 0, fields)
    shown = decoded.decode("__cluster_metadata", None, value).value["data"]["value"]
    assert shown == ("(redacted)" if hidden else "x")


GROUP = b"\0\2" + b"\0\1g"


@pytest.mark.parametrize(
    ("key", "value", "problem", "unknown"),
    [
        (GROUP, None, None, None),
        (b"\0\x63" + b"\0\1g", b"\0\0", None, 99),
        (b"\0\x63" + b"\0\1g", None, None, 99),
        (GROUP, b"\0\x09", None, 2),
        (GROUP, b"", ("byte 0: ", "value", "0"), None),
        (GROUP, b"\0\0\0\5", ("byte 4: ", "GroupMetadataValue"), None),
        (b"", b"\0\0", ("byte 0: ", "key", "0"), None),
        (None, b"\0\0", ("byte 0: ", "key", "null"), None),
    ],
)
def test_records_that_cannot_be_decoded_have_their_problem(key, value, problem, unknown):
    found = decoded.decode("__consumer_offsets", key, value)
    assert (found.problem is None, found.unknown_type) == (problem is None, unknown)
    assert all(word in found.problem for word in problem or ())
    assert found.value is None


def test_bytes_that_an_early_access_release_added_are_unknown_and_not_damage():
    message = schema.table("consumer_offsets").named("ShareGroupMetadataValue")
    value = b"\0\0" + codec.encode(message, 0, {"epoch": 1}) + b"\0\0"
    found = decoded.decode("__consumer_offsets", b"\0\x0b\0\1g", value)
    assert found.unknown_type == 11
    assert found.problem is None


def test_tagged_fields_of_a_newer_release_are_kept_as_bytes_and_counted(run, tmp_path):
    known, value = entry("a", "Empty", 7)
    newer = value[:-1] + varint(int(value[-1]) + 1) + varint(99) + varint(2) + b"\xff\0"
    found = decoded.decode("__transaction_state", known, newer)
    assert found.value["data"]["unknownTaggedFields"] == {"99": "/wA="}
    assert (found.unknown_tags, found.unknown_type, found.problem) == (1, None, None)
    path = write(tmp_path, (known, newer), (known, value), (known, newer))
    done = run("dump", "--records", path)
    assert done.status == 0
    assert re.search(r"^__transaction_state: .*\b2 tagged fields", done.stderr, re.M)


def test_a_group_of_another_protocol_keeps_its_bytes():
    """Kafka Connect and others write members of their own."""
    member = {"memberId": "m", "subscription": b"\0\1\2", "assignment": b""}
    fields = {"protocolType": "connect", "members": [member]}
    message = schema.table("consumer_offsets").named("GroupMetadataValue")
    value = b"\0\3" + codec.encode(message, 3, fields)
    shown = decoded.decode("__consumer_offsets", GROUP, value).value["data"]["members"][0]
    assert shown["subscription"] == "AAEC"
    assert shown["assignment"] == ""


def test_every_topic_with_a_decoder_has_a_table():
    for topic, table in internal_topics.TABLES.items():
        assert decoded.has_decoder(topic)
        assert schema.table(table).messages
    assert not decoded.has_decoder("orders")
    assert not decoded.has_decoder(None)


REMOTE = (Path(__file__).parent / "remote_log_metadata.txt").read_text().splitlines()
"""Bytes that RemoteLogMetadataSerde of Kafka 4.3.1 wrote, and the text of the object."""


@pytest.mark.parametrize("line", REMOTE)
def test_remote_log_metadata_is_as_kafkas_classes_print_it(run, tmp_path, make_batch, line):
    value, _, text = line.partition(" ")
    home = tmp_path / "__remote_log_metadata-7"
    home.mkdir()
    log = home / f"{0:020d}.log"
    log.write_bytes(make_batch(0, [Record(0, value=bytes.fromhex(value))]))
    done = run("dump", "--records", "-f", "kafka", log)
    assert done.status == 0
    assert done.stdout.endswith(f" headerKeys: [] payload: {text}\n")
    shown, _ = records(run, log)
    assert shown[0]["value"]["json"]["data"]["brokerId"] in (1, 2, 4)


DOUBLES = """
0.0 1.0 -1.0 0.5 1048576.0 9999999.0 1.0E7 1.048576E7 1.5E7
1.23456789125E8 0.001 9.99E-4 1.2E-4 1.0E16 1.7976931348623157E308 100.0 -1.048576E7
2.0E21
"""
"""Numbers as ``Double.toString`` of Java 17 writes them."""


@pytest.mark.parametrize("text", DOUBLES.split())
def test_a_quota_is_a_number_as_java_writes_it(run, tmp_path, make_batch, text):
    home = tmp_path / "__cluster_metadata-0"
    home.mkdir()
    log = home / f"{0:020d}.log"
    message = schema.table("cluster_metadata").named("ClientQuotaRecord")
    fields = {"entity": [], "key": "producer_byte_rate", "value": float(text)}
    value = varint(1) + varint(14) + varint(0) + codec.encode(message, 0, fields)
    log.write_bytes(make_batch(0, [Record(0, value=value)]))
    done = run("dump", "--records", "-f", "kafka", log)
    assert f'"key":"producer_byte_rate","value":{text},"remove":false}}' in done.stdout
