"""Every message with a table of fields is written and read, and agrees with brokers."""

import base64
import json
import re

import pytest
from conftest import SCENARIOS, new_logs
from hypothesis import given
from hypothesis import strategies as st

from logtool.dump.log import Filter
from logtool.dump.stream import Dump
from logtool.errors import FormatError
from logtool.formats.java_text import format_uuid
from logtool.formats.messages import codec, internal_topics, schema
from logtool.formats.messages.internal_topics import COORDINATOR_TABLES, FRAMED_TABLES, TABLES

NAMES = (
    *TABLES.values(), "automq_metadata", "consumer_protocol", "control_records", "quorum_state",
)  # fmt: skip
MESSAGES = {
    name: [
        (message, version)
        for message in schema.table(name).messages
        for version in range(message.versions.first, message.versions.last + 1)
    ]
    for name in NAMES
}
INT = {"int8": (-(2**7), 2**7), "int16": (-(2**15), 2**15), "uint16": (0, 2**16),
       "int32": (-(2**31), 2**31), "uint32": (0, 2**32), "int64": (-(2**63), 2**63)}  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
UNKNOWN = st.dictionaries(st.integers(100, 2**20), st.binary(max_size=3), max_size=2)


def of_field(one, version, *, flexible):
    """Return a strategy for the values of a field."""
    values: st.SearchStrategy[object]
    null = version in one.nullable
    if one.type in INT:
        low, high = INT[one.type]
        values = st.integers(low, high - 1)
    elif one.type == "struct":
        values = of_fields(one.fields, version, flexible=flexible)
    else:
        values = {
            "bool": st.booleans(), "float64": st.floats(allow_nan=False), "string": TEXT,
            "bytes": st.binary(max_size=5),
            "uuid": st.binary(min_size=16, max_size=16).map(format_uuid),
        }[one.type]  # fmt: skip
    if one.is_array:
        values = st.lists(values, max_size=3)
    return values | st.none() if null else values


@st.composite
def of_fields(draw, fields, version, *, flexible):
    """Draw the fields of a structure; a tagged one may be missing."""
    found = {}
    there = [one for one in fields if version in one.versions]
    for one in sorted(there, key=lambda one: version in one.tagged):
        if version not in one.tagged or draw(st.booleans()):
            found[one.name] = draw(of_field(one, version, flexible=flexible))
    unknown = draw(UNKNOWN) if flexible else {}
    return {**found, codec.UNKNOWN_TAGS: unknown} if unknown else found


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_what_is_encoded_is_decoded(name, data):
    message, version = data.draw(st.sampled_from(MESSAGES[name]))
    value = data.draw(of_fields(message.fields, version, flexible=version in message.flexible))
    encoded = codec.encode(message, version, value)
    assert codec.decode(message, version, encoded) == value
    with pytest.raises(FormatError, match="after the end"):
        codec.decode(message, version, encoded + b"\0")
    if encoded:
        cut = data.draw(st.integers(0, len(encoded) - 1))
        with pytest.raises(FormatError) as refused:
            codec.decode(message, version, encoded[:cut])
        assert 0 <= refused.value.position <= cut


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), noise=st.binary(max_size=40))
def test_any_bytes_are_a_message_or_an_error(name, data, noise):
    message, version = data.draw(st.sampled_from(MESSAGES[name]))
    try:
        value = codec.decode(message, version, noise)
    except FormatError as error:
        assert 0 <= error.position <= len(noise)
    else:
        again = codec.encode(message, version, value)
        assert codec.encode(message, version, codec.decode(message, version, again)) == again


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_field_has_its_default(name):
    for message, version in MESSAGES[name]:
        given = codec.decode(message, version, codec.encode(message, version, {}))
        assert given.keys() <= {one.name for one in message.fields if version in one.versions}
        with pytest.raises(ValueError, match="99"):
            codec.encode(message, 99, {})


def records_of(name, home):
    """Yield topic, file, offset, key and value of each record in brokers' own topics."""
    for log in new_logs(name, home):
        topic = log.parent.name.rpartition("-")[0]
        if topic not in TABLES:
            continue
        for one in Dump([log], Filter(records=True)):
            assert isinstance(one, dict)
            if one["type"] == "record" and not one["control"]:
                yield topic, log.relative_to(home), one["offset"], one["key"], one["value"]


def parts_of(topic, key, value):
    """Yield each decoded part of a record, its bytes, and the number of bytes before it."""
    if topic in FRAMED_TABLES:
        decoded = internal_topics.decode_framed(topic, value)
        size = len(codec.encode(decoded.message, decoded.version, decoded.data))
        yield decoded, value, len(value) - size
        return
    decoded = internal_topics.decode_key(topic, key)
    yield decoded, key, 2
    if value is not None:
        yield internal_topics.decode_value(topic, decoded.type, value), value, 2


@pytest.mark.parametrize("name", SCENARIOS)
def test_records_of_brokers_are_decoded_and_encoded_again(name, scenario):
    for topic, _, _, key, value in records_of(name, scenario(name)):
        for decoded, data, start in parts_of(topic, key, value):
            again = codec.encode(decoded.message, decoded.version, decoded.data)
            assert data[start:] == again
            assert start <= 3


def test_brokers_wrote_most_types(scenario):
    """The shipped directories have enough types for the test above."""
    seen = set()
    for name in ("4.3.1/clean", "4.3.1/java-clients", "4.3.1/running"):
        for topic, _, _, key, value in records_of(name, scenario(name)):
            seen |= {one.message.name for one, *_ in parts_of(topic, key, value)}
    assert len(seen) >= 36, sorted(seen)


PRINTED = re.compile(r"^\| offset: (\d+) .*? headerKeys: \[\](?: key: (\{.*?\}))? payload: (.*)$")


def as_kafka_prints(decoded):
    """Return the JSON that Kafka's tool prints for a part of a record, as a value."""
    return json.loads(json.dumps(decoded.data, default=lambda raw: base64.b64encode(raw).decode()))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_record_agrees_with_the_tool_of_its_broker(name, scenario):
    decoded_home = scenario(f"{name}.expected") / "decoded"
    expected = {}
    for text in decoded_home.rglob("*.log.txt"):
        for line in text.read_text().splitlines():
            if found := PRINTED.match(line):
                log = str(text.relative_to(decoded_home).with_suffix(""))
                expected[log, int(found[1])] = found[2], found[3]
    for topic, log, offset, key, value in records_of(name, scenario(name)):
        if (str(log), offset) not in expected:
            continue  # a snapshot, or a release whose tool has no decoder for the topic
        key_text, value_text = expected[str(log), offset]
        if topic in COORDINATOR_TABLES and key_text is None:
            continue  # tools of 3.9 print the state of a transaction in another form
        for (decoded, *_), line in zip(
            parts_of(topic, key, value),
            [key_text, value_text] if key_text else [value_text],
            strict=False,
        ):
            if line == "<DELETE>":
                continue
            theirs = json.loads(line)
            if "data" not in theirs:
                continue  # a tool before 3.9
            data = as_kafka_prints(decoded)
            if decoded.message.name == "GroupMetadataValue":
                for group in (theirs["data"], data):
                    for member in group["members"]:
                        del member["subscription"], member["assignment"]
            assert data == theirs["data"]
            assert list(data) == list(theirs["data"])
