"""The objects that `retention --key` prints besides those of `retention`."""

from typing import Final

from logtool.erasure.states import ReadableBy
from logtool.schemas.columns import Column, Kind, Table, count, offset, timed

_STAYS = "it stays, or another rule removes it"
_OBSTACLES = (
    "high-watermark", "empty-active", "policy", "no-limit", "within-size", "future-timestamp",
    "age", "older-segment", "cleaner-disabled", "checkpoint-unreadable", "future-copy", "empty",
    "active-segment", "open-transaction", "min-lag", "dirty-ratio", "damaged-batch",
    "offset-overflow", "latest-value", "tombstone", "newer-is-clean", "stray", "swap-file",
    "other-name", "unread",
)  # fmt: skip
_NO_TIME = "no record has a timestamp"
COPY: Final = Table("copy", "file and end of the records in it", (
    Column("topic", Kind.STRING, "name of the topic", value="file.directory.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="file.directory.partition"),
    Column("node", Kind.INT32, "id of the broker", null="neither ID=DIR nor meta.properties has "
           "it"),
    Column("path", Kind.PATH, "the file", value="file.path"),
    Column("directory", Kind.STRING, "kind of the partition dir, by the end of its name",
           words=("live", "delete", "stray", "future"), value="directory_kind"),
    Column("state", Kind.STRING, "kind of the file, by the end of its name",
           words=("live", "deleted", "cleaned", "swap")),
    count("records", "records with the key"),
    Column("offsets", Kind.NUMBERS, "offsets of these, rising"),
    offset("first_offset", "least offset of these"),
    offset("last_offset", "largest offset of these"),
    *timed("first_timestamp_ms", "least timestamp of these", _NO_TIME),
    *timed("last_timestamp_ms", "largest timestamp of these", _NO_TIME),
    Column("is_tombstone", Kind.BOOL, "whether they are tombstones"),
    Column("is_below_start", Kind.BOOL, "whether they are below the log start offset: no consumer "
           "gets them, but their bytes are there"),
    Column("transaction", Kind.STRING, "end of the transaction that they are in",
           null="it was committed, or they are in no transaction", words=("aborted", "open")),
    Column("readable_by", Kind.STRING, "consumers that get them if this broker leads the partition "
           "after the start: any-consumer, also with isolation.level=read_committed; "
           "read-uncommitted, only with that isolation level; or no-consumer",
           words=tuple(ReadableBy)),
    *timed("delete_horizon_ms", "time from which on a cleaning removes the tombstones",
           "they are not tombstones, or no cleaning has set the time yet"),
    Column("rule", Kind.STRING, "what removes them: a rule of retention, the log cleaner, the "
           "start itself, or the deletion of the partition dir", null="they stay",
           words=("log-start", "size", "time", "cleaner", "start", "deleted-partition"),
           value="fate.rule"),
    Column("round", Kind.INT64, "number of the round of retention that deletes them", "count",
           _STAYS, value="fate.round"),
    *timed("gone_ms", "time from which on their bytes are gone from the file system",
           "they stay"),
    Column("obstacle", Kind.STRING, "why they stay, or why they are not gone earlier",
           null="they are gone as early as can be", words=_OBSTACLES, value="fate.obstacle"),
), note="Records with the key in one file that have the same end, with --key.", type="copy",
    made_from="logtool.erasure.forecast:KeyCopy")  # fmt: skip
_KEY: Final = Table("key", "key", (
    Column("size", Kind.INT64, "bytes of the key", "bytes", "records without a key"),
    Column("utf8", Kind.STRING, "the key as text", null="it is not UTF-8, or null was asked for"),
    Column("base64", Kind.STRING, "the bytes of the key",
           null="utf8 has them, or null was asked for"),
), note="A key.", made_from="logtool.commands.views.retention_key:ShownKey")  # fmt: skip
COPIES: Final = Table("copies", "run", (
    Column("key", Kind.OBJECT, "the key", of=_KEY),
    count("copies", "objects of the type copy"),
    count("records", "records with the key"),
    count("staying_records", "records of these that stay"),
    count("files", "files in which the key was looked for"),
    count("hidden", "places that are damaged, where the key may be"),
    *timed("gone_ms", "time from which on all of them are gone",
           "one stays, no copy was found, or not everything could be read"),
    *timed("start_ms", "assumed start of the brokers", None),
    Column("assumed", Kind.SETTINGS, "settings of brokers on which these times rest and for which "
           "Kafka's defaults were assumed, because --broker-config was not given for them"),
    Column("assumed_nodes", Kind.NODES, "ids of these brokers"),
    Column("topics_known", Kind.BOOL, "whether a metadata log says the settings of topics"),
), note="The sum of all copies.", type="copies",
    made_from="logtool.commands.views.retention_key:CopyTotal")  # fmt: skip
