"""The objects that `dump` and `dump-index` print: logtool.dump/2 and logtool.dump-index/1.

The engine makes batches, records and entries itself, of which there are millions; the tables of
`logtool.schemas` say which keys these have. Counts are made from the tables here.
"""

from dataclasses import replace
from typing import Final

from logtool.erasure.states import RecordState
from logtool.schemas import entries, tables
from logtool.schemas.columns import JSON, PRINTED, Column, Kind, Table, timed
from logtool.schemas.document import Document

COUNT: Final = Table("count", "partition whose records are counted", (
    Column("path", Kind.PATH, "the partition dir, or the file"),
    Column("topic", Kind.STRING, "name of the topic", null="the file is not in a partition dir"),
    Column("partition", Kind.INT32, "number of the partition",
           null="the file is not in a partition dir"),
    Column("records", Kind.INT64, "records that a dump would print", "count"),
), note="With --count: how many records of a partition, or of a file outside a partition dir, a "
        "dump would print.",
    type="count", made_from="logtool.dump.stream:PartitionCount")  # fmt: skip
TOTAL: Final = Table("total", "dump whose records are counted", (
    Column("partitions", Kind.INT64, "partitions, or files outside a partition dir, with such "
           "records", "count"),
    Column("records", Kind.INT64, "records that a dump would print", "count"),
), note="With --count: the total of records, and the number of partitions or files that hold them.",
    type="total", made_from="logtool.dump.stream:TotalCount")  # fmt: skip

_REGISTERED = Table("registered-schema", "version of a subject", (
    Column("subject", Kind.STRING, "subject of the schema"),
    Column("version", Kind.INT64, "version of the schema in the subject"),
    Column("deleted", Kind.BOOL, "true for a version that was deleted softly"),
), made_from="logtool.dump.registry:RegisteredSchema")  # fmt: skip
SCHEMA_USE: Final = Table("schema-use", "schema id of keys or values of a topic", (
    Column("topic", Kind.STRING, "name of the topic", null="the file is not in a partition dir"),
    Column("field", Kind.STRING, "part of the record", words=("key", "value")),
    Column("schema_id", Kind.OBJECT, "id of the schema, or its GUID as text",
           null="these keys or values have no id", value="shown_id"),
    Column("records", Kind.INT64, "records with this id, of those that were printed", "count"),
    Column("schemas", Kind.OBJECT, "subjects and versions of the id in _schemas; empty if that "
           "topic is absent or does not name it", of=_REGISTERED, many=True),
), JSON, note="With --schema-ids, after all records: the schema ids of each topic.",
    type="schema-use", made_from="logtool.dump.registry:SchemaUse")  # fmt: skip

MISSING: Final = Table("missing", "copy whose records another copy lacks", (
    Column("path", Kind.PATH, "partition dir of the copy that has the records"),
    Column("other", Kind.PATH, "partition dir of the copy that lacks them"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("diverges_at", Kind.INT64, "first offset at which the copies differ", "offset",
           "one copy only ends before the other"),
    Column("first_offset", Kind.INT64, "offset of the first record that was printed", "offset",
           "no record was printed"),
    Column("last_offset", Kind.INT64, "offset of the last record that was printed", "offset",
           "no record was printed"),
    Column("records", Kind.INT64, "records that were printed", "count"),
    Column("repeated", Kind.INT64, "records left out because the other copy has them at another "
           "offset, by producer and sequence", "count"),
    Column("aborted", Kind.INT64, "records of aborted transactions, left out", "count"),
    Column("open", Kind.INT64, "records of transactions that are open at the end of the copy, left "
           "out", "count"),
    Column("headless", Kind.INT64, "printed records of transactions that begin before the missing "
           "records", "count"),
), JSON, note="With --missing-in, after all records: what was printed and left out of each copy.",
    type="missing", made_from="logtool.dump.missing:MissingRecords")  # fmt: skip


def _printed(table: Table, name: str, note: str = "", more: tuple[Column, ...] = ()) -> Table:
    return replace(
        table, name=name, columns=(*table.columns, *more), ways=PRINTED, note=note or table.note
    )


_FILE = _printed(
    entries.FILE, "file", "Comes before the content of a file. entries is null if the file holds "
                 "batches; padding is in bytes.",
)  # fmt: skip
_MARKED = _printed(
    tables.ALL["records"], "marked-record", "With --key: one record, and what is special about it.",
    (Column("state", Kind.STRINGS, "the states of the record: tombstone; aborted or "
            "open-transaction; below-log-start; and of its file: deleted-partition, stray or "
            "future-copy for the partition dir, and deleted-file, cleaned-file, swap-file or "
            "other-name. Without a state, every consumer gets the record",
            words=tuple(RecordState)),),
)  # fmt: skip
_NO_OFFSET = "a message of a wrapper that does not decode to its end, or has impossible offsets"
_ENTRIES = tuple(table for table in entries.ALL.values() if table is not entries.FILE)

DOCUMENT: Final = Document(
    name="dump",
    version=2,
    title="Objects that logtool dump prints",
    tables=(
        _FILE,
        _printed(tables.ALL["batches"], "batch", "The header of a batch. If crc_valid is false, "
                 "the fields may be wrong."),
        _printed(tables.ALL["records"], "record", "One record; only records of magic 0 and 1 have "
                 "a crc."),
        _MARKED,
        replace(
            _printed(
                replace(tables.ALL["records"], columns=tuple(
                    replace(column, null=_NO_OFFSET) if column.name == "offset" else column
                    for column in tables.ALL["records"].columns
                )),
                "bad-record",
                "With --records: a record of a batch with a wrong CRC, as far as the batch "
                "decodes. Unless crc_valid is true, any part of it may be wrong.",
                (Column("crc_valid", Kind.BOOL, "true if the CRC of a message of magic 0 or 1 "
                        "matches: its time, key and value are those that were produced",
                        null="magic 2, which stores no CRC per record"),),
            ),
            type="bad-record",
        ),
        *(_printed(table, f"entry-{table.name}") for table in _ENTRIES),
        COUNT,
        TOTAL,
        SCHEMA_USE,
        MISSING,
    ),
)  # fmt: skip

_NOT_ASKED = "--join-log is not given"
BATCH_POINTED_AT: Final = Table("pointed-at", "batch that an entry of an index points at", (
    Column("position", Kind.INT64, "byte in the .log where the batch begins", "byte"),
    Column("base_offset", Kind.INT64, "first offset of the batch", "offset"),
    Column("last_offset", Kind.INT64, "last offset of the batch", "offset"),
    *timed("max_timestamp_ms", "largest time of the records in the batch", "no record has a time"),
))  # fmt: skip
_JOINED = (
    Column("batch", Kind.OBJECT, "the batch in the log that the entry points at",
           null=f"{_NOT_ASKED}, or there is no such batch", of=BATCH_POINTED_AT),
    Column("verdict", Kind.STRING, "whether lookups through the entry find the right batch, or the "
           "reason why they do not", null=_NOT_ASKED,
           words=("right", "unknown", "no-batch", "offset", "timestamp", "later",
                  "no-abort-marker")),
)  # fmt: skip
_INDEXES = ("offset-index", "time-index", "transaction-index", "redpanda-base-index")

INDEX_DOCUMENT: Final = Document(
    name="dump-index",
    title="Objects that logtool dump-index prints",
    tables=(
        _FILE,
        *(_printed(entries.ALL[name], f"entry-{name}", more=_JOINED) for name in _INDEXES),
    ),
)
