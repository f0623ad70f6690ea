"""The objects that `metadata` prints: logtool.metadata/1."""

from typing import Final

from logtool.metadata.entities import KINDS
from logtool.schemas.columns import Column, Kind, Table, count, offset, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_KINDS = tuple(KINDS)
_NO_TOPIC = "the thing belongs to no topic"
_NO_PARTITION = "the thing is not a partition"
_NO_ID = f"{_NO_TOPIC}, or the topic id is not known"


def _thing(nothing: str | None = None, within: str = "") -> tuple[Column, ...]:
    """Return the columns that name a thing; `nothing` is the text for null."""
    return (
        Column("kind", Kind.STRING, "kind of thing", None, nothing, _KINDS, value=f"{within}kind"),
        Column("name", Kind.STRING, "name of the thing", null=nothing, value=f"{within}name"),
        Column("topic", Kind.STRING, "name of the topic", null=_NO_TOPIC, value=f"{within}topic"),
        Column("topic_id", Kind.STRING, "id of the topic", null=_NO_ID, value=f"{within}topic_id"),
        Column("partition", Kind.INT32, "number of the partition", null=_NO_PARTITION,
               value=f"{within}partition"),
    )  # fmt: skip


_COUNTS = Table("counts", "image", (
    count("topic", "topics", "topic_count"),
    count("partition", "partitions of the topics", "partition_count"),
    count("broker", "brokers that are registered", "broker_count"),
), made_from="logtool.metadata.state:MetadataImage")  # fmt: skip
IMAGE: Final = Table("image", "metadata log or snapshot", (
    Column("path", Kind.PATH, "the given path"),
    offset("end_offset", "offset after the last record that was read"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the last record; -1 if no record was read"),
    *timed("timestamp_ms", "time of the last record", "no record was read"),
    Column("snapshot", Kind.PATH, "the snapshot from which reading began",
           null="reading began with the log"),
    offset("snapshot_offset", "offset after the last record that the snapshot covers: all records "
           "below are committed"),
    offset("open_transaction", "first offset of a transaction that has not ended",
           "no transaction is open"),
    Column("damage", Kind.STRING, "why reading ended early", null="reading reached the end"),
    count("not_understood", "records of a newer release that could not be read"),
    count("not_applied", "records that no broker can apply"),
    Column("counts", Kind.OBJECT, "number of topics, partitions and brokers", of=_COUNTS),
), note="A metadata log or snapshot, up to the point where it could be read.",
    type="image")  # fmt: skip
ENTITY: Final = Table("entity", "thing in a metadata image", (
    *_thing(),
    Column("state", Kind.VALUES, "fields of the thing; settings for a config or a quota. Secrets "
           "are shown as (redacted)"),
), note="One thing in a metadata image, with its state.", type="entity",
    made_from="logtool.metadata.entities:Entity")  # fmt: skip
_FIELD = Table("field", "field that changed", (
    Column("field", Kind.STRING, "name of the field"),
    Column("before", Kind.OBJECT, "value before", null="the field did not exist"),
    Column("after", Kind.OBJECT, "value after", null="the field no longer exists"),
), made_from="logtool.metadata.entities:EntityChange")  # fmt: skip
_CHANGES = Column("changes", Kind.OBJECT, "fields that changed", of=_FIELD, many=True)
CHANGE: Final = Table("change", "record of the metadata log", (
    Column("path", Kind.PATH, "the file"),
    Column("position", Kind.INT64, "byte in the file where the batch of the record begins", "byte"),
    offset("offset", "offset of the record"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the record", value="epoch"),
    *timed("timestamp_ms", "time of the record", "the batch has no time"),
    Column("record", Kind.STRING, "Kafka's name of the record"),
    *_thing("the record is not about a single thing"),
    _CHANGES,
    Column("problem", Kind.STRING, "why the record cannot be applied", null=
           "the record can be applied"),
), note="One record of the log, the thing that it changes, and the changes.",
    type="change", made_from="logtool.metadata.history:MetadataEvent")  # fmt: skip
DIFFERENCE: Final = Table("difference", "thing that differs between two metadata images", (
    *_thing(within="entity."),
    Column("difference", Kind.STRING, "added: only the second image has the thing; removed: only "
           "the first image has the thing", words=("added", "removed", "changed"), value="word"),
    _CHANGES,
), note="A thing that differs between two metadata images.", type="difference",
    made_from="logtool.metadata.difference:Difference")  # fmt: skip
DOCUMENT: Final = Document(
    name="metadata",
    title="Objects that logtool metadata prints",
    tables=(IMAGE, ENTITY, CHANGE, DIFFERENCE, FINDING),
)
