"""JSON Schemas out of columns: what `dump` and `verify` promise of each object that they print.

The files beside this module are written by ``logtool generate``: it replaces what they say of the
types of object in `DEFINITIONS`, and leaves the rest alone.
"""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from logtool.schemas import entries, tables
from logtool.schemas.columns import Column, Kind, Table, Way

Schema = dict[str, Any]

_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
_BYTES: Schema = {"$ref": "#/$defs/bytes"}
_TYPES: Final[Mapping[Kind, str]] = {
    Kind.STRING: "string", Kind.BOOL: "boolean", Kind.INT8: "integer", Kind.INT16: "integer",
    Kind.INT32: "integer", Kind.INT64: "integer", Kind.UINT32: "integer",
    Kind.TIMESTAMP: "string", Kind.NUMBERS: "array", Kind.HEADERS: "array",
    Kind.KAFKA_HEADERS: "array", Kind.BINARY: "object", Kind.OBJECT: "object",
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
_ENTRIES = {
    f"entry-{name}": ("entry", table)
    for name, table in entries.ALL.items()
    if table is not entries.FILE
}
_INDEXES = (
    "entry-offset-index", "entry-time-index", "entry-transaction-index",
    "entry-redpanda-base-index",
)  # fmt: skip
DEFINITIONS: Final[Mapping[str, Mapping[str, tuple[str, Table]]]] = {
    "dump": {
        "file": ("file", entries.FILE),
        "batch": ("batch", tables.ALL["batches"]),
        "record": ("record", tables.ALL["records"]),
        **_ENTRIES,
    },
    "dump-index": {
        "file": ("file", entries.FILE),
        **{name: _ENTRIES[name] for name in _INDEXES},
    },
    "gaps": {"finding": ("finding", tables.FINDING)},
    "metadata": {"finding": ("finding", tables.FINDING)},
    "stat": {"finding": ("finding", tables.FINDING)},
    "verify": {"finding": ("finding", tables.FINDING)},
}
"""By the name of a schema: its definitions that are made here, each by its type and its table."""
_TYPE_OF: Final = {
    table.name: type_ for made in DEFINITIONS.values() for type_, table in made.values()
}
_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"dump-index": ("batch", "verdict")}
"""What a command says more of its entries; these stand in the file as they are."""


def files() -> dict[str, str]:
    """Return every file that has definitions made here, by its name, as it should be."""
    found = {}
    for name in DEFINITIONS:
        text = (resources.files("logtool.schemas") / f"{name}.json").read_text("utf-8")
        found[f"{name}.json"] = json.dumps(updated(name, json.loads(text)), indent=1) + "\n"
    return found


FLAVOUR = {"const": "redpanda"}
"""What the first line says of a directory that Kafka did not write."""


def updated(name: str, document: Schema) -> Schema:
    """Return the JSON Schema of a command with its definitions as the columns say."""
    definitions = dict(document["$defs"])
    const = definitions["document"]["properties"]["schema"]
    for title, (type_, table) in DEFINITIONS[name].items():
        old = definitions[title]
        made = definition(table, type_, const)
        if "description" in old:
            made = {"type": "object", "description": old["description"], **made}
        for more in _BESIDE.get(name, ()) if type_ == "entry" else ():
            made["properties"][more] = old["properties"][more]
            made["required"].append(more)
        definitions[title] = made
    return {**document, "$defs": definitions}


def definition(table: Table, type_: str | None = None, schema: Schema | None = None) -> Schema:
    """Return the schema of the object that a row of `table` is in JSON.

    With `type_` it has the key ``type``, and the first of an output ``schema``, as `schema` says.
    """
    columns = table.by(Way.NDJSON) or table.columns
    properties: Schema = {} if type_ is None else {"schema": schema, "type": {"const": type_}}
    if schema and "const" in schema:
        properties["flavour"] = FLAVOUR
    properties |= {column.name: _property(column) for column in columns}
    # Only the first line of an output has its schema, and the flavour where it is not Kafka's.
    required = [name for name in properties if name not in ("schema", "flavour")]
    return {
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": False,
    }  # fmt: skip


def document(table: Table) -> Schema:
    """Return a JSON Schema that stands alone, of a row of `table`."""
    title = f"A row of {table.name}, one for each {table.row}"
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:logtool:table:{table.name}:{tables.VERSION}", "title": title,
            **definition(table, _TYPE_OF.get(table.name), {"type": "string"})}  # fmt: skip
    if any(column.kind in (Kind.BINARY, Kind.HEADERS) for column in table.columns):
        dump = json.loads((resources.files("logtool.schemas") / "dump.json").read_text("utf-8"))
        made["$defs"] = {"bytes": dump["$defs"]["bytes"]}
    return made


def _property(column: Column) -> Schema:
    return {**_shape(column), "description": described(column)}


def described(column: Column) -> str:
    """Return the meaning of a column with its unit and what null says."""
    unit = f" ({column.unit})" if column.unit else ""
    null = f"; null: {column.null}" if column.null else ""
    return f"{column.meaning}{unit}{null}"


def _shape(column: Column) -> Schema:
    kind, nullable = column.kind, column.null is not None
    if kind is Kind.BINARY:
        return dict(_BYTES)
    if kind is Kind.OBJECT:
        return dict(_CONTROL_RECORD) if column.name == "control_record" else {}
    if column.words and kind is Kind.STRING:
        if len(column.words) == 1:
            return {"const": column.words[0]}
        return {"enum": [*column.words, *([None] if nullable else [])]}
    found: Schema = {"type": [_TYPES[kind], "null"] if nullable else _TYPES[kind]}
    if kind is Kind.TIMESTAMP:
        found["pattern"] = _TIME
    elif kind in (Kind.HEADERS, Kind.KAFKA_HEADERS):
        found["items"] = _HEADERS
    elif kind is Kind.NUMBERS:
        found["items"] = {"type": "integer"}
    elif column.least is not None:
        found["minimum"] = column.least
    if column.pattern:
        found["pattern"] = column.pattern
    return found
