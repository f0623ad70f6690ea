"""Ids of schemas in records, and their subjects in ``_schemas``."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema
import pytest

import logtool
from logtool import RegisteredSchema, cli
from logtool.dump.registry import registered
from logtool.formats import record, record_batch, schema_id

SERIALIZED = json.loads(Path(__file__).with_name("serialized.json").read_text())[1:]
"""Bytes that Confluent's own serializers wrote; see serialized.py."""
SCHEMAS = Path(logtool.__file__).parent / "schemas"
OLD = b'{"keytype":"SCHEMA","subject":"old-value","version":1,"magic":1}'
DELETED = [(OLD, b'{"id":5}'), (OLD, b'{"id":5,"deleted":true}')]
GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def log(home: Path, topic: str, *records: record.Record) -> None:
    (home / f"{topic}-0").mkdir(parents=True)
    body = record_batch.encode(
        record.encode(records), base_offset=0, last_offset_delta=len(records) - 1,
        record_count=len(records), base_timestamp=0, max_timestamp=0,
    )  # fmt: skip
    (home / f"{topic}-0" / f"{0:020d}.log").write_bytes(body)


@pytest.fixture
def home(tmp_path):
    orders = [
        record.Record(0, key=schema_id.encode(7) + b"k", value=schema_id.encode(3) + b"v"),
        record.Record(1, key=b"plain", value=schema_id.encode(3) + b"w"),
        record.Record(2, value=b"\x00\x00"),
        record.Record(3, value=b"v", headers=[(b"__value_schema_id", schema_id.encode(GUID))]),
        record.Record(4, key=schema_id.encode(7), value=None),
    ]
    log(tmp_path, "orders", *orders)
    return tmp_path


def schema(offset: int, subject: str, version: int, **value: object) -> record.Record:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    return record.Record(
        offset, key=json.dumps(key).encode(), value=json.dumps(value).encode() if value else None
    )


def test_the_ids_of_keys_and_values(home):
    (one,) = logtool.open(home).partitions()
    found = [(each.key_schema_id, each.value_schema_id) for each in one.records()]
    assert found == [(7, 3), (None, 3), (None, None), (None, GUID), (7, None)]


def test_the_ids_of_real_serializers_are_those_that_their_registry_gave(tmp_path):
    records = []
    for offset, one in enumerate(SERIALIZED):
        headers = [(key.encode(), value and bytes.fromhex(value)) for key, value in one["headers"]]
        content: Any = {one["field"]: bytes.fromhex(one["data"])}
        records.append(record.Record(offset, headers=headers, **content))
    log(tmp_path, "orders", *records)
    (opened,) = logtool.open(tmp_path).partitions()
    found = [
        getattr(each, f"{one['field']}_schema_id")
        for each, one in zip(opened.records(), SERIALIZED, strict=True)
    ]
    assert [str(one) if isinstance(one, UUID) else one for one in found] == [
        one["found"] for one in SERIALIZED
    ]
    # The registry and the client's own deserializer agree, so that the file has a meaning.
    assert all(one["found"] in (one["id"], one["guid"]) for one in SERIALIZED)
    forms = {(one["format"], one["field"], type(one["found"])) for one in SERIALIZED}
    assert len(forms) == 3 * 2 * 2


def test_the_ids_are_counted_by_topic(home):
    found = logtool.open(home).schema_ids()
    counts = {(one.field, one.schema_id): one.records for one in found}
    assert counts == {
        ("key", 7): 2, ("key", None): 1, ("value", 3): 2, ("value", None): 1, ("value", GUID): 1,
    }  # fmt: skip
    assert {(one.topic, one.schemas) for one in found} == {("orders", ())}


def test_the_topic_of_a_registry_resolves_ids_to_subjects_and_versions(home):
    log(
        home, "_schemas",
        record.Record(0, key=b'{"keytype":"NOOP","magic":0}'),
        schema(1, "orders-value", 1, schemaType="AVRO", id=3, guid=str(GUID)),
        schema(2, "orders-key", 1, id=7),
        schema(3, "other-value", 2, id=3),
        schema(4, "gone-value", 1, id=7),
        schema(5, "gone-value", 1),
        record.Record(7, key=b"[not json", value=b"\xff"),
        record.Record(8, key=b'{"keytype":"SCHEMA","subject":1,"version":1}', value=b"[]"),
        schema(9, "odd-value", 1, id="3", guid="x"),
    )  # fmt: skip
    found = {one.schema_id: one.schemas for one in logtool.open(home).schema_ids()}
    one = RegisteredSchema("orders-value", 1, deleted=False)
    assert found == {
        3: (one, RegisteredSchema("other-value", 2, deleted=False)),
        7: (RegisteredSchema("orders-key", 1, deleted=False),),
        GUID: (one,),
        None: (),
    }
    assert registered(DELETED) == {5: (RegisteredSchema("old-value", 1, deleted=True),)}
    lines = dumped("dump", "--records", "--schema-ids", "--format", "ndjson", home / "orders-0")
    ids = [
        tuple((line[name] or {}).get("schema_id") for name in ("key", "value"))
        for line in lines if line["type"] == "record"
    ]  # fmt: skip
    assert ids == [(7, 3), (None, 3), (None, None), (None, str(GUID)), (7, None)]
    uses = {one["schema_id"]: one for one in lines if one["type"] == "schema-use"}
    assert uses[3]["records"] == 2
    assert [(each["subject"], each["version"]) for each in uses[3]["schemas"]] == [
        ("orders-value", 1), ("other-value", 2),
    ]  # fmt: skip
    schema_of_output = json.loads((SCHEMAS / "dump.json").read_text())
    for line in lines:
        jsonschema.validate(line, schema_of_output)


def dumped(*words: object) -> list[dict[str, Any]]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        assert cli.run([str(word) for word in words]) == 0
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    "words", [["--schema-ids"], ["--records", "--schema-ids", "--format", "kafka"],
              ["--schema-ids", "--count"]],
)  # fmt: skip
def test_schema_ids_go_with_records_and_their_formats(words, home):
    with redirect_stderr(io.StringIO()):
        assert cli.run(["dump", *words, str(home)]) == 2


IDS = {
    "an id": (bytes.fromhex("000000002a"), 42),
    "an id with data": (bytes.fromhex("000000002a0208"), 42),
    "four bytes": (bytes(4), None),
    "another magic": (bytes.fromhex("010000002a"), None),
    "a negative id": (bytes.fromhex("00ffffffff"), None),
    "nothing": (b"", None),
    "null": (None, None),
}


@pytest.mark.parametrize("name", IDS)
def test_an_id_has_a_magic_byte_and_four_bytes(name):
    data, expected = IDS[name]
    assert schema_id.parse(data) == expected


def test_a_header_counts_before_the_value_and_may_hold_a_guid():
    name, value = schema_id.VALUE_HEADER, schema_id.encode(3)
    for data, expected in ((schema_id.encode(GUID), GUID), (schema_id.encode(4), 4), (b"", None)):
        assert schema_id.of_record(value, [(name, data)], name) == expected
    assert schema_id.of_record(value, [("other", schema_id.encode(4))], name) == 3


def test_the_last_of_several_headers_counts_and_a_null_one_leaves_it_to_the_value():
    name, value = schema_id.VALUE_HEADER, schema_id.encode(3)
    both = [(name, schema_id.encode(4)), (name, schema_id.encode(GUID))]
    assert schema_id.of_record(value, both, name) == GUID
    assert schema_id.of_record(value, both[::-1], name) == 4
    assert schema_id.of_record(value, [*both, (name, None)], name) == 3
