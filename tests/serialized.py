"""Records as the serializers of Confluent's client write them: ``make serialized``.

It runs in an environment with ``confluent-kafka[avro,json,protobuf]``, against the registry that
the client has for tests. Each row of ``serialized.json`` has the bytes and the headers of a key or
value, the id and GUID of its schema as the registry knows it, and what the client's own
deserializer finds: a number, a GUID, or null for an error.
"""

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.wrappers_pb2 import StringValue

FILE = Path(__file__).with_suffix(".json")
_AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
_JSON = '{"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}'
_FIRST_IDS = (1, 100_000, 2**31 - 10)
Headers = list[tuple[str, Any]]
"""Names and bytes, or None."""
FORMATS: dict[str, Any] = {
    "AVRO": (lambda client, conf: AvroSerializer(client, _AVRO, conf=conf), {"id": 1}),
    "JSON": (lambda client, conf: JSONSerializer(_JSON, client, conf=conf), {"id": 1}),
    "PROTOBUF": (
        lambda client, conf: ProtobufSerializer(StringValue, client, conf=conf),
        StringValue(value="x"),
    ),
}


def rows() -> Iterator[dict[str, Any]]:
    """Yield every format as a key and as a value, with the id in the bytes and in a header."""
    for first_id in _FIRST_IDS:
        client: Any = SchemaRegistryClient.new_client({"url": "mock://"})
        client._store.max_id = first_id - 1
        for name, (serializer, content) in FORMATS.items():
            for field in (MessageField.KEY, MessageField.VALUE):
                for conf in ({}, {"schema.id.serializer": header_schema_id_serializer}):
                    headers: Headers = []
                    context = SerializationContext("orders", field, headers)
                    data = serializer(client, conf)(content, context)
                    known = client.get_latest_version(f"orders-{field}")
                    row = {"format": name, "field": str(field), "id": known.schema_id}
                    yield row | {"guid": known.guid} | as_read(name, field, data, headers)
                    if not headers:
                        empty: Headers = [(f"__{field}_schema_id", None)]
                        yield row | {"guid": known.guid} | as_read(name, field, data, empty)
                client.delete_subject(f"orders-{field}")


def as_read(name: str, field: MessageField, data: bytes, headers: Headers) -> dict[str, Any]:
    """Return a key or value with its headers, and the schema that the client finds."""
    found = SchemaId(name)
    dual_schema_id_deserializer(data, SerializationContext("orders", field, headers), found)
    return {
        "data": data.hex(),
        "headers": [[key, value and value.hex()] for key, value in headers],
        "found": str(found.guid) if found.guid else found.id,
    }


if __name__ == "__main__":
    release = {"confluent-kafka": version("confluent-kafka")}
    lines = ",\n".join(json.dumps(row) for row in [release, *rows()])
    FILE.write_text(f"[\n{lines}\n]\n")
