"""Ids of schemas in keys and values of records, as serializers for a schema registry write them.

Layout, big-endian. In front of a serialized key or value::

     0  magic  int8    0
     1  id     int32   of the schema in the registry
     5  the serialized data

In the value of the header ``__key_schema_id`` or ``__value_schema_id``, which counts before the
bytes of the key or value unless it is null::

     0  magic  int8    0: an id follows as above; 1: a GUID
     1  guid   16 bytes

In both forms indexes of a message follow if the schema is one of Protobuf. Of several headers with
that name the last counts, as for the clients in Java and .NET; that in Python takes the first.

Source: ``io.confluent.kafka.serializers.schema.id``, classes ``SchemaId`` and
``DualSchemaIdDeserializer`` (Confluent 8.0); confluent-kafka 2.16 for Python, function
``dual_schema_id_deserializer``. Any data may begin with a zero byte, so that an id is a guess where
no registry knows it.
"""

from collections.abc import Iterable
from uuid import UUID

KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
MAGIC_ID, MAGIC_GUID = 0, 1
_PREFIX = 5
_GUID_SIZE = 17


def parse(data: bytes | None) -> int | None:
    """Return the schema id at the beginning of a key or value; None if it does not begin so."""
    if data is None or len(data) < _PREFIX or data[0] != MAGIC_ID:
        return None
    found = int.from_bytes(data[1:_PREFIX], "big", signed=True)
    return found if found >= 0 else None


def parse_header(data: bytes | None) -> int | UUID | None:
    """Return the schema id in the value of a header; None if it holds neither an id nor a GUID."""
    if data is not None and len(data) >= _GUID_SIZE and data[0] == MAGIC_GUID:
        return UUID(bytes=bytes(data[1:_GUID_SIZE]))
    return parse(data)


def of_record(
    data: bytes | None, headers: Iterable[tuple[str, bytes | None]], name: str
) -> int | UUID | None:
    """Return the schema id of a key or value; `name` is the name of its header."""
    found = [value for key, value in headers if key == name]
    return parse(data) if not found or found[-1] is None else parse_header(found[-1])


def encode(schema_id: int | UUID) -> bytes:
    """Return the bytes of an id or a GUID."""
    if isinstance(schema_id, UUID):
        return bytes([MAGIC_GUID]) + schema_id.bytes
    return bytes([MAGIC_ID]) + schema_id.to_bytes(_PREFIX - 1, "big")
