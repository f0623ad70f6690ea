"""The columns of what `dump` and `dump-index` print, in tables and in CSV."""

import json
from collections.abc import Iterable
from typing import Any

from logtool.commands import output
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep, moment
from logtool.dump.state import kind_name
from logtool.formats.names import FileKind
from logtool.schemas import entries, tables
from logtool.schemas.columns import Table, Way

_CONTENT = frozenset({"key", "key_size", "value", "value_size", "headers"})
_OF_EVERY_ENTRY = frozenset({"path", "kind", "position"})
_TEXTS = ("utf8", "hex", "base64", "json")


def _shown(value: dict[str, Any] | None) -> str:
    """Return bytes for a person: quoted text, hex:.., base64:.., the size alone, or null."""
    if value is None:
        return "null"
    for encoding in _TEXTS:
        if encoding in value:
            content = value[encoding]
            if encoding == "json":
                return _spelled(content)
            shown = text.quote(content) if encoding == "utf8" else f"{encoding}:{content}"
            return f"{_schema(value)}{shown}"
    return f"{_schema(value)}{text.count(value['size'], 'byte')}"


def _schema(value: dict[str, Any]) -> str:
    """Return the schema id in front of a key or value, where there is one."""
    return f"schema {value['schema_id']} " if "schema_id" in value else ""


def _spelled(content: dict[str, Any]) -> str:
    """Return a decoded key or value for a person: its name and its fields."""
    # With spaces, where a narrow terminal breaks it.
    fields = json.dumps(content["data"], ensure_ascii=False)
    return f"{content['name']} {fields}"


def _registered(schema: dict[str, Any]) -> str:
    deleted = ", deleted" if schema["deleted"] else ""
    return f"{text.escape(schema['subject'])} version {schema['version']}{deleted}"


def _raw(value: dict[str, Any] | None) -> object:
    return None if value is None else next((value[e] for e in _TEXTS if e in value), None)


def _encoding(value: dict[str, Any] | None) -> object:
    return None if value is None else next((e for e in _TEXTS if e in value), "len")


def _size(value: dict[str, Any] | None) -> object:
    return None if value is None else value["size"]


def _flags(obj: Object) -> str:
    names = {"transactional": "txn", "control": "control"}
    flags = [short for key, short in names.items() if obj.get(key)]
    if obj.get("crc_valid") is False:
        flags.append("BAD-CRC")
    return ",".join(flags)


def _control(obj: Object) -> str:
    if obj["control_error"]:
        return f"unreadable control record: {obj['control_error']}"
    control = obj["control_record"]
    return "" if control is None else f"{control['name']} {text.cell(control['data'])}".rstrip()


def _key(obj: Object) -> str:
    return _control(obj) or _shown(obj["key"])


def _headers(obj: Object) -> str:
    return " ".join(f"{_shown(h['key'])}={_shown(h['value'])}" for h in obj["headers"])


def _names(table: str) -> list[str]:
    return [column.name for column in tables.ALL[table].by(Way.CSV)]


BATCH: Columns = (
    TableColumn("position", lambda o: o["position"]),
    TableColumn("size", lambda o: o["size"]),
    TableColumn("base_offset", lambda o: o["base_offset"]),
    TableColumn("last_offset", lambda o: o["last_offset"]),
    TableColumn("records", lambda o: o["record_count"]),
    TableColumn("codec", lambda o: o["codec"]),
    TableColumn("max_timestamp", lambda o: o["max_timestamp"]),
    TableColumn("epoch", lambda o: o["leader_epoch"]),
    TableColumn("producer", lambda o: o["producer_id"]),
    TableColumn("sequence", lambda o: o["base_sequence"]),
    TableColumn("flags", _flags),
)
RECORD: Columns = (
    TableColumn("offset", lambda o: o["offset"], kept=True),
    TableColumn("timestamp", lambda o: o["timestamp"]),
    TableColumn("key", _key, kept=True),
    TableColumn("value", lambda o: "" if o["control"] else _shown(o["value"]), kept=True),
    TableColumn("headers", _headers),
)
_STATE = TableColumn("state", lambda o: ", ".join(o["state"]), kept=True, if_any=True)
MARKED_RECORD: Columns = (*RECORD[:2], _STATE, *RECORD[2:])
BAD_RECORD: Columns = (
    RECORD[0],
    TableColumn(
        "state", lambda o: "own CRC holds" if o["crc_valid"] else "may be wrong", kept=True
    ),
    *RECORD[1:],
)
REDPANDA_BATCH: Columns = (
    *columns("position", "size", "batch_type", "term", "raft_base_offset", "raft_last_offset"),
    *columns("kafka_base_offset"),
    TableColumn("records", lambda o: o["record_count"]),
    *columns("codec", "max_timestamp"),
    TableColumn("producer", lambda o: o["producer_id"]),
    TableColumn("sequence", lambda o: o["base_sequence"]),
    TableColumn("flags", _flags),
)
BATCH_CSV: Columns = columns("type", *_names("batches"))
RECORD_CSV: Columns = (
    *columns("type", *(name for name in _names("records") if name not in _CONTENT)),
    TableColumn("key", lambda o: _raw(o.get("key"))),
    TableColumn("key_encoding", lambda o: _encoding(o.get("key"))),
    TableColumn("key_size", lambda o: _size(o.get("key"))),
    TableColumn("value", lambda o: _raw(o.get("value"))),
    TableColumn("value_encoding", lambda o: _encoding(o.get("value"))),
    TableColumn("value_size", lambda o: _size(o.get("value"))),
    *columns("headers"),
)
SCHEMA_IDS: Columns = (
    TableColumn("key_schema_id", lambda o: (o.get("key") or {}).get("schema_id")),
    TableColumn("value_schema_id", lambda o: (o.get("value") or {}).get("schema_id")),
)
STATE: Columns = columns("state")
_SCHEMA_USE: Columns = (
    *columns("topic", "field", "schema_id", "records"),
    TableColumn("schemas", lambda o: ", ".join(map(_registered, o["schemas"])) or None),
)
_JOIN = (
    TableColumn("batch_position", lambda o: (o.get("batch") or {}).get("position")),
    TableColumn("batch_base_offset", lambda o: (o.get("batch") or {}).get("base_offset")),
    TableColumn("batch_last_offset", lambda o: (o.get("batch") or {}).get("last_offset")),
    TableColumn("batch_max_timestamp", lambda o: moment(o.get("batch") or {}, "max_timestamp")),
    *columns("verdict"),
)
_KEPT = (
    "entry", "timestamp", "producer_id", "offset", "log_position", "first_offset", "last_offset",
    "verdict",
)  # fmt: skip
"""Columns of entries that were compared with the log, for a narrow terminal."""
_BATCH_KINDS = (FileKind.LOG, FileKind.KRAFT_SNAPSHOT, FileKind.BOOTSTRAP_CHECKPOINT)


def _keys(table: Table) -> Iterable[str]:
    """Return the keys of a table of entries that are not common to all such tables."""
    return (column.name for column in table.by(Way.CSV) if column.name not in _OF_EVERY_ENTRY)


class Layouts:
    """The columns of every object of one run.

    `records` says that records are printed, `marked` that they have a state, and `joined` that
    index entries are compared with the log.
    """

    def __init__(
        self, *, records: bool = False, marked: bool = False, joined: bool = False
    ) -> None:
        own = {
            name: columns(*_keys(table))
            for name, table in entries.ALL.items()
            if table is not entries.FILE
        }
        self._entries: dict[str, Columns] = {
            name: keep((*chosen, *_JOIN), *_KEPT) if joined else chosen
            for name, chosen in own.items()
        }
        self._entries["lock"] = ()
        self._checkpoint = self._entries["offset-checkpoint"]
        self._records = records
        self._record = MARKED_RECORD if marked else RECORD

    def table(self, obj: Object) -> Columns | str | None:
        """Return the columns of an object, or its line between tables."""
        kind = obj["type"]
        if kind == "batch":
            return text.escape(batch_line(obj)) if self._records else BATCH
        if kind in ("record", "bad-record"):
            return self._record if kind == "record" else BAD_RECORD
        if kind == "schema-use":
            return _SCHEMA_USE
        if kind == "entry" and obj["kind"] == "redpanda-segment":
            return REDPANDA_BATCH
        if kind == "entry":
            return self._entries.get(obj["kind"], self._checkpoint)
        if kind == "file":
            return text.escape(file_line(obj))
        # The last lines describe what is missing.
        if kind == "missing" or obj["reason"] == "unreadable":
            return None
        return text.escape(f"!! {obj['reason']}: {output.describe_error(obj)}")

    def delimited(self, kinds: Iterable[FileKind]) -> Columns:
        """Return the columns of CSV for files of `kinds`: those of each, every name once."""
        found: dict[str, TableColumn] = {
            c.title: c for c in columns("type", "path", "kind", "position")
        }
        for kind in kinds:
            if kind in _BATCH_KINDS or (kind is FileKind.REDPANDA_SEGMENT and self._records):
                chosen = RECORD_CSV if self._records else BATCH_CSV
            elif kind is FileKind.AUTOMQ_OBJECT:
                chosen = tuple(one for name in entries.AUTOMQ for one in self._entries[name])
            else:
                chosen = self._entries.get(kind_name(kind), self._checkpoint)
            for column in chosen:
                found.setdefault(column.title, column)
        return tuple(found.values())


def file_line(obj: Object) -> str:
    """Return the heading of a file."""
    parts = [obj["kind"] if obj["state"] == "live" else f"{obj['kind']}, {obj['state']}"]
    parts.append(text.count(obj["size"], "byte"))
    if obj["entries"] is not None:
        parts.append(text.count(obj["entries"], "entry", "entries"))
    if obj["padding"]:
        parts.append(f"{text.count(obj['padding'], 'byte')} preallocated")
    return f"{obj['path']} ({', '.join(parts)})"


def batch_line(obj: Object) -> str:
    """Return a batch as the heading of its records."""
    parts = [text.count(obj["size"], "byte"), obj["codec"], f"magic {obj['magic']}"]
    if obj["leader_epoch"] is not None:
        parts.append(f"epoch {obj['leader_epoch']}")
    if obj["producer_id"] is not None:
        parts.append(f"producer {obj['producer_id']} epoch {obj['producer_epoch']}")
    if obj["base_sequence"] is not None:
        parts.append(f"sequence {obj['base_sequence']}..{obj['last_sequence']}")
    parts += [flag for flag in _flags(obj).split(",") if flag]
    return f"@{obj['position']} {obj['base_offset']}..{obj['last_offset']} ({', '.join(parts)})"


def row_types(*, records: bool) -> frozenset[str]:
    """Return the types of object that are rows of CSV: with records, batches are not."""
    return frozenset({"record" if records else "batch", "entry"})
