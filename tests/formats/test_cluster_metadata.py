import metadata_records as made
import pytest
from conftest import SCENARIOS
from hypothesis import given
from hypothesis import strategies as st

from logtool.disk import files
from logtool.errors import FormatError
from logtool.formats import compression, record
from logtool.formats.messages import cluster_metadata
from logtool.formats.messages.cluster_metadata import (
    ConfigRecord,
    MetadataTransaction,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from logtool.formats.record_batch import CODEC_MASK, HEADER_SIZE
from logtool.log.batches import read_batches

ID = "J8aAPcfLQt2bqs1JT_rMgQ"
HOME = "AAECAwQFBgcICQoLDA0ODw"
SAMPLES = {
    "topic": made.topic("orders", ID),
    "partition": made.partition(ID, 3, [1, 2]),
    "config": made.config(2, "orders", "retention.ms", "1"),
    "no config": made.config(2, "orders", "retention.ms", None),
    "change": made.change(ID, 3, {0: made.numbers(2), 1: made.int32(2), 8: made.array(b"U" * 16)}),
    "removal": made.remove_topic(ID),
    "begin": made.framed(23, 0, tags={0: made.text("why")}),
}


def records(path):
    """Yield offset and value of every data record of a log or snapshot."""
    with files.LogFile(path) as log:
        for chunk in read_batches(log, base_offset=0):
            for row in range(len(chunk.table)):
                if chunk.table.is_control[row]:
                    continue
                codec = int(chunk.table.attributes[row]) & CODEC_MASK
                payload = compression.decompress(codec, chunk.batch(row)[HEADER_SIZE:])
                table, damage = record.parse(payload, int(chunk.table.record_count[row]))
                assert damage is None
                for number in range(len(table)):
                    start, size = int(table.value_position[number]), int(table.value_length[number])
                    offset = int(chunk.table.base_offset[row] + table.offset_delta[number])
                    yield offset, bytes(payload[start : start + size])


def as_kafka_says(kind, data):
    """Return the record that the JSON of Kafka's dump tool describes; None for other types."""

    def of(name):
        return None if data.get(name) is None else tuple(data[name])

    match kind:
        case "TOPIC_RECORD":
            return TopicRecord(data["name"], data["topicId"])
        case "PARTITION_RECORD":
            return PartitionRecord(
                data["topicId"], data["partitionId"], of("replicas"), of("isr"), data["leader"],
                data["leaderEpoch"], data["partitionEpoch"], of("directories") or (),
                of("eligibleLeaderReplicas") or (), of("lastKnownElr") or (),
                of("removingReplicas"), of("addingReplicas"), data.get("leaderRecoveryState", 0),
            )  # fmt: skip
        case "PARTITION_CHANGE_RECORD":
            return PartitionChangeRecord(
                data["topicId"], data["partitionId"], of("isr"), data.get("leader"),
                of("replicas"), of("directories"), of("eligibleLeaderReplicas"),
                of("lastKnownElr"), of("removingReplicas"), of("addingReplicas"),
                data.get("leaderRecoveryState"),
            )  # fmt: skip
        case "CONFIG_RECORD":
            names = ("resourceType", "resourceName", "name", "value")
            return ConfigRecord(*(data[name] for name in names))
        case "REMOVE_TOPIC_RECORD":
            return RemoveTopicRecord(data["topicId"])
        case "BEGIN_TRANSACTION_RECORD" | "END_TRANSACTION_RECORD" | "ABORT_TRANSACTION_RECORD":
            return MetadataTransaction[kind.split("_")[0]]
    return None


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_record_of_a_broker_agrees_with_its_tool(scenario, name):
    home, decoded = scenario(name), scenario(f"{name}.expected") / "decoded"
    for text in decoded.rglob("*__cluster_metadata-0/*.txt"):
        if text.name.endswith(".stderr.txt"):
            continue
        log = home / text.relative_to(decoded).with_suffix("")
        expected = list(made.decoded(text))
        found = [(offset, cluster_metadata.parse(value)) for offset, value in records(log)]
        assert [offset for offset, _ in found] == [offset for offset, _ in expected]
        for (_, ours), (_, theirs) in zip(found, expected, strict=True):
            wanted = as_kafka_says(theirs["type"], theirs["data"])
            if wanted is None:
                assert isinstance(ours, OtherRecord)
                assert ours.version == theirs["version"]
            else:
                assert ours == wanted


def test_brokers_wrote_records_of_every_type_but_aborts(scenario):
    types = ("TOPIC", "PARTITION", "CONFIG", "PARTITION_CHANGE", "REMOVE_TOPIC",
             "BEGIN_TRANSACTION", "END_TRANSACTION")  # fmt: skip
    for version in ("3.9.2", "4.3.1"):
        expected = scenario(f"{version}/running.expected").parent
        scenario(f"{version}/clean.expected")
        texts = expected.rglob("decoded/__cluster_metadata-0/*.log.txt")
        seen = {content["type"] for text in texts for _, content in made.decoded(text)}
        assert seen >= {f"{name}_RECORD" for name in types}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_partition_has_directories_from_version_1_on(version):
    fields = [made.int32(3), made.uuid(ID), made.numbers(1, 2), made.numbers(2), made.numbers(7),
              made.numbers(), made.int32(2), made.int32(5), made.int32(6)]  # fmt: skip
    if version:
        fields.append(made.array(made.uuid(ID), made.uuid(HOME)))
    tags = {0: b"\1"} | ({1: made.numbers(1), 2: made.numbers()} if version == 2 else {})
    found = cluster_metadata.parse(made.framed(3, version, *fields, tags=tags))
    homes, elr = (ID, HOME) if version else (), (1,) if version == 2 else ()
    assert found == PartitionRecord(
        ID, 3, (1, 2), (2,), 2, 5, 6, homes, elr, removing=(7,), recovery_state=1
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_change_names_what_changed_alone(version):
    tags = {1: made.int32(-1), 2: made.numbers(3, 4), 8: made.array(made.uuid(HOME))}
    found = cluster_metadata.parse(made.framed(5, version, made.int32(3), made.uuid(ID), tags=tags))
    homes = (HOME,) if version else None
    assert found == PartitionChangeRecord(ID, 3, None, -1, (3, 4), homes)


def test_a_change_without_fields_has_no_values():
    same_leader = made.change(ID, 3, {0: b"\0", 1: made.int32(-2), 2: b"\0", 8: b"\0"})
    for value in (same_leader, made.change(ID, 3, {})):
        found = cluster_metadata.parse(value)
        assert found == PartitionChangeRecord(ID, 3, None, None, None, None)


def test_a_removed_setting_has_no_value():
    found = cluster_metadata.parse(SAMPLES["no config"])
    assert found == ConfigRecord(2, "orders", "retention.ms", None)


@pytest.mark.parametrize("tag", [9, 300, 2**31])
def test_an_unknown_tagged_field_is_skipped(tag):
    value = made.framed(9, 0, made.uuid(ID), tags={tag: b"anything"})
    assert cluster_metadata.parse(value) == RemoveTopicRecord(ID)


@pytest.mark.parametrize(
    ("kind", "version"), [(0, 5), (1, 1), (2, 1), (3, 3), (5, 9), (23, 1), (400, 0)]
)
def test_an_unknown_type_or_version_is_a_value(kind, version):
    value = made.framed(kind, version) + b"of a later Kafka"
    assert cluster_metadata.parse(value) == OtherRecord(kind, version)


def test_the_frame_of_the_preview_is_an_error():
    with pytest.raises(FormatError, match="frame"):
        cluster_metadata.parse(b"\0" + SAMPLES["topic"][1:])


def test_bytes_behind_the_message_are_an_error():
    with pytest.raises(FormatError, match="1 bytes"):
        cluster_metadata.parse(SAMPLES["topic"] + b"\0")


def test_a_name_that_is_null_is_an_error():
    with pytest.raises(FormatError, match="null"):
        cluster_metadata.parse(made.framed(2, 0, made.text(None), made.uuid(ID)))


def test_a_huge_array_costs_nothing():
    with pytest.raises(FormatError, match="2147483646"):
        cluster_metadata.parse(
            made.framed(3, 0, made.int32(1), made.uuid(ID), made.varint(2**31 - 1))
        )


@pytest.mark.parametrize("name", SAMPLES)
def test_every_cut_is_an_error(name):
    sample = SAMPLES[name]
    for size in range(len(sample)):
        with pytest.raises(FormatError):
            cluster_metadata.parse(sample[:size])


def survives(data):
    try:
        cluster_metadata.parse(data)
    except FormatError as error:
        assert 0 <= error.position <= len(data)
        assert error.reason.isprintable()


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_record_or_an_error(data):
    survives(data)


@given(kind=st.sampled_from([2, 3, 4, 5, 9, 23]), version=st.integers(0, 3), data=st.binary())
def test_any_bytes_behind_a_frame_are_a_record_or_an_error(kind, version, data):
    survives(bytes([1, kind, version]) + data)


@given(name=st.sampled_from(sorted(SAMPLES)), data=st.binary(max_size=20), at=st.integers(0, 80))
def test_any_bytes_spliced_into_a_record_are_a_record_or_an_error(name, data, at):
    sample = SAMPLES[name]
    survives(sample[:at] + data + sample[at:])
    survives(sample[:at] + data + sample[at + len(data) :])
