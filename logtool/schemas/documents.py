"""Tables of columns as JSON Schemas, and in the words of Spark's SQL; neither needs Spark.

``logtool generate`` writes the JSON Schemas next to this module: one file for each `Document`, and
one for the undo journal.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from logtool.schemas import tables
from logtool.schemas.columns import PRINTED, Column, Kind, Table, Way
from logtool.schemas.document import Document, LinesFile
from logtool.schemas.journal import JOURNAL
from logtool.schemas.printed import ERROR, SUMMARY

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
_BYTES: Schema = {"$ref": "#/$defs/bytes"}
_TYPES: Final[Mapping[Kind, str]] = {
    Kind.STRING: "string", Kind.BOOL: "boolean", Kind.INT8: "integer", Kind.INT16: "integer",
    Kind.INT32: "integer", Kind.INT64: "integer", Kind.UINT32: "integer",
    Kind.TIMESTAMP: "string", Kind.NUMBERS: "array", Kind.HEADERS: "array",
    Kind.KAFKA_HEADERS: "array", Kind.BINARY: "object", Kind.OBJECT: "object",
    Kind.PATH: "string", Kind.PATHS: "array", Kind.FLOAT: "number", Kind.STRINGS: "array",
    Kind.PAIRS: "array", Kind.NODES: "array", Kind.COUNTS: "object", Kind.SETTINGS: "object",
    Kind.VALUES: "object",
}  # fmt: skip
SPARK_TYPES: Final[Mapping[Kind, str]] = {
    Kind.STRING: "string",
    Kind.BOOL: "boolean",
    Kind.INT8: "tinyint",
    Kind.INT16: "smallint",
    Kind.INT32: "int",
    Kind.INT64: "bigint",
    # Spark has no unsigned integers.
    Kind.UINT32: "bigint",
    Kind.TIMESTAMP: "timestamp",
    Kind.BINARY: "binary",
    Kind.HEADERS: "array<struct<key:binary,value:binary>>",
    Kind.KAFKA_HEADERS: "array<struct<key:string,value:binary>>",
    Kind.OBJECT: "string",
    Kind.NUMBERS: "array<bigint>",
}
"""The type of each kind in Spark, as ``simpleString`` of a DataType has it."""
_ITEMS: Final[Mapping[Kind, Schema]] = {
    Kind.NUMBERS: {"type": "integer"}, Kind.STRINGS: {"type": "string"},
    Kind.PATHS: {"type": "string"}, Kind.NODES: {"type": ["integer", "null"]},
    Kind.PAIRS: {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
}  # fmt: skip
_MEMBERS: Final[Mapping[Kind, Schema]] = {
    Kind.COUNTS: {"type": "integer", "minimum": 0}, Kind.SETTINGS: {"type": "string"},
}  # fmt: skip
_HEADERS: Schema = {
    "type": "object",
    "properties": {"key": _BYTES, "value": _BYTES},
    "required": ["key", "value"],
    "additionalProperties": False,
}
_CONTROL_RECORD: Schema = {
    "type": ["object", "null"],
    "properties": {
        "version": {"type": "integer"}, "type": {"type": "integer"}, "name": {"type": "string"},
        "data": {"type": ["object", "null"]},
    },
    "required": ["version", "type", "name", "data"],
    "additionalProperties": False,
}  # fmt: skip
_BYTES_SHOWN: Schema = {
    "description": "Bytes with their encoding; null stands for a missing value.",
    "oneOf": [
        {"type": "null"},
        {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 0},
                "utf8": {"type": "string"},
                "hex": {"type": "string", "pattern": "^([0-9a-f]{2})*$"},
                "base64": {"type": "string", "contentEncoding": "base64"},
                "schema_id": {
                    "description": "With --schema-ids: the id of the schema in a registry, or its "
                    "GUID as text.",
                    "type": ["integer", "string"],
                },
                "json": {
                    "description": "A key or value of one of Kafka's internal topics, with bytes "
                    "in base64.",
                    "type": "object",
                    "properties": {
                        "type": {"type": "integer"}, "name": {"type": "string"},
                        "version": {"type": "integer"}, "data": {"type": "object"},
                    },
                    "required": ["type", "name", "version", "data"],
                    "additionalProperties": False,
                },
            },
            "required": ["size"], "maxProperties": 3, "additionalProperties": False,
        },
    ],
}  # fmt: skip
"""The definition ``bytes``: keys, values and headers in JSON."""
_LINES = (
    "A line of --format ndjson, or the document of --format json, whose items are such lines "
    "without the summary."
)


def json_schema(document: Document) -> Schema:
    """Return the JSON Schema of the output of a command."""
    const = {"const": document.schema}
    types = [table.name for table in document.tables]
    items = [{"$ref": f"#/$defs/{name}"} for name in (*types, ERROR.name)]
    parts = {part.name: part for table in document.tables for part in table.parts()}
    definitions = {
        table.name: definition(table, const) for table in (*document.tables, ERROR, SUMMARY)
    }
    properties = {
        "schema": const, "type": {"const": "document"}, "flavour": FLAVOUR,
        "items": {"type": "array", "items": {"anyOf": items}},
        "summary": {"$ref": f"#/$defs/{SUMMARY.name}"},
    }  # fmt: skip
    definitions["document"] = {
        "type": "object", "properties": properties,
        "required": ["schema", "type", "items", "summary"], "additionalProperties": False,
    }  # fmt: skip
    definitions |= {name: definition(part) for name, part in parts.items()}
    definitions |= {part.name: definition(part) for part in SUMMARY.parts()}
    if any(_has_bytes(table) for table in (*document.tables, *parts.values())):
        definitions["bytes"] = _BYTES_SHOWN
    return {
        "$schema": _DIALECT,
        "$id": f"urn:logtool:{document.name}:{document.version}",
        "title": document.title,
        "description": _LINES,
        "anyOf": [*items, *({"$ref": f"#/$defs/{name}"} for name in (SUMMARY.name, "document"))],
        "$defs": definitions,
    }


def lines_schema(file: LinesFile) -> Schema:
    """Return the JSON Schema of a line of a file."""
    parts = {part.name: part for table in file.tables for part in table.parts()}
    return {
        "$schema": _DIALECT,
        "$id": f"urn:logtool:{file.name}:{file.version}",
        "title": file.title,
        "description": file.note,
        "anyOf": [{"$ref": f"#/$defs/{table.name}"} for table in file.tables],
        "$defs": {table.name: definition(table) for table in (*file.tables, *parts.values())},
    }


def files(documents: Iterable[Document]) -> dict[str, str]:
    """Return the files of documents and that of the undo journal, by their names."""
    found = {f"{one.name}.json": json_schema(one) for one in documents}
    found[f"{JOURNAL.name}.json"] = lines_schema(JOURNAL)
    return {name: json.dumps(one, indent=1) + "\n" for name, one in sorted(found.items())}


FLAVOUR = {"enum": ["redpanda", "automq"]}
"""Schema of the key ``flavour``, which the first line has for a directory that Kafka did not
write."""


def definition(table: Table, schema: Schema | None = None) -> Schema:
    """Return the schema of the object that a row of `table` is in JSON.

    `schema` is that of the key ``schema`` in the first object of an output; None: no object has it.
    """
    columns = table.by(Way.NDJSON) or table.columns
    properties: Schema = {}
    if table.type is not None:
        properties = {} if schema is None else {"schema": schema}
        properties["type"] = {"const": table.type}
    if schema and "const" in schema:
        properties["flavour"] = FLAVOUR
    properties |= {column.name: _property(column) for column in columns}
    # Only the first line of an output has its schema, and the flavour where it is not Kafka's.
    seldom = () if schema is None else ("schema", "flavour")
    required = [name for name in properties if name not in seldom]
    note = {"description": table.note} if table.note and table.ways == PRINTED else {}
    return {
        "type": "object", **note, "properties": properties, "required": required,
        "additionalProperties": False,
    }  # fmt: skip


def document(table: Table) -> Schema:
    """Return a JSON Schema that stands alone, of a row of `table`."""
    title = f"A row of {table.name}, one for each {table.each}"
    made = {"$schema": _DIALECT,
            "$id": f"urn:logtool:table:{table.name}:{tables.VERSION}", "title": title,
            **definition(table, {"type": "string"})}  # fmt: skip
    if _has_bytes(table):
        made["$defs"] = {"bytes": _BYTES_SHOWN}
    return made


def _has_bytes(table: Table) -> bool:
    return any(column.kind in (Kind.BINARY, Kind.HEADERS) for column in table.columns)


def _property(column: Column) -> Schema:
    return {**_shape(column), "description": described(column)}


def described(column: Column) -> str:
    """Return the meaning of a column with its unit and the meaning of null."""
    unit = f" ({column.unit})" if column.unit else ""
    null = f"; null: {column.null}" if column.null else ""
    return f"{column.meaning}{unit}{null}"


def _shape(column: Column) -> Schema:
    kind, nullable = column.kind, column.null is not None
    if kind is Kind.BINARY:
        return dict(_BYTES)
    if column.of is not None:
        part: Schema = {"$ref": f"#/$defs/{column.of.name}"}
        part = {"type": "array", "items": part} if column.many else part
        if column.by_name:
            names = {"propertyNames": {"enum": list(column.words)}} if column.words else {}
            return {"type": "object", **names, "additionalProperties": part}
        return {"anyOf": [part, {"type": "null"}]} if nullable else part
    if kind is Kind.OBJECT:
        return dict(_CONTROL_RECORD) if column.name == "control_record" else {}
    if column.always is not None:
        return {"const": column.always}
    if column.words and kind is Kind.STRING:
        if len(column.words) == 1:
            return {"const": column.words[0]}
        return {"enum": [*column.words, *([None] if nullable else [])]}
    found: Schema = {"type": [_TYPES[kind], "null"] if nullable else _TYPES[kind]}
    if kind is Kind.TIMESTAMP:
        found["pattern"] = _TIME
    elif kind in (Kind.HEADERS, Kind.KAFKA_HEADERS):
        found["items"] = _HEADERS
    elif kind in _ITEMS:
        found["items"] = {"enum": list(column.words)} if column.words else _ITEMS[kind]
    elif kind in _MEMBERS:
        found["additionalProperties"] = _MEMBERS[kind]
    elif column.least is not None:
        found["minimum"] = column.least
    if column.pattern:
        found["pattern"] = column.pattern
    return found


def spark_ddl(table: Table) -> str:
    """Return the columns that a table has in Spark, for ``CREATE TABLE`` or ``.schema(...)``."""
    way = next(
        (one for one in (Way.SCAN, Way.SOURCE, Way.HISTORY) if one in table.ways), Way.NDJSON
    )
    return ",\n".join(_spark_column(column) for column in table.by(way))


def _spark_column(column: Column) -> str:
    meaning = described(column).replace("\\", "\\\\").replace("'", "\\'")
    return f"`{column.name}` {SPARK_TYPES[column.kind]} COMMENT '{meaning}'"
