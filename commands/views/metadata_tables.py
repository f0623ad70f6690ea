"""The objects that `metadata` prints: logtool.metadata/1."""

from typing import Final

from logtool.metadata.entities import KINDS
from logtool.schemas.columns import Column, Kind, Table, count, offset, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_KINDS = tuple(KINDS)
_NO_TOPIC = "it belongs to no topic"
_NO_PARTITION = "it is no partition"
_NO_ID = f"{_NO_TOPIC}, or its id is not known"


def _thing(nothing: str | None = None, within: str = "") -> tuple[Column, ...]:
    """Return the columns that name a thing; `nothing` is the text for null."""
    return (
        Column("kind", Kind.STRING, "kind of thing", None, nothing, _KINDS, value=f"{within}kind"),
        Column("name", Kind.STRING, "name of the thing", null=nothing, value=f"{within}name"),
        Column("topic", Kind.STRING, "name of its topic", null=_NO_TOPIC, value=f"{within}topic"),
        Column("topic_id", Kind.STRING, "id of its topic", null=_NO_ID, value=f"{within}topic_id"),
        Column("partition", Kind.INT32, "number of the partition", null=_NO_PARTITION,
               value=f"{within}partition"),
    )  # fmt: skip


_COUNTS = Table("counts", "image", (
    count("topic", "topics", "topic_count"),
    count("partition", "partitions of the topics", "partition_count"),
    count("broker", "brokers that are registered", "broker_count"),
), made_from="logtool.metadata.state:MetadataImage")  # fmt: skip
IMAGE: Final = Table("image", "metadata log or snapshot", (
    Column("path", Kind.PATH, "the path that was given"),
    offset("end_offset", "offset behind the last record that was read"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the last record; -1 where none was read"),
    *timed("timestamp_ms", "time of the last record", "none was read"),
    Column("snapshot", Kind.PATH, "the snapshot that reading began with",
           null="it began with the log"),
    offset("snapshot_offset", "offset behind the last record that the snapshot covers: all below "
           "it is committed"),
    offset("open_transaction", "offset at which a transaction begins that has not ended",
           "there is none"),
    Column("damage", Kind.STRING, "why reading ended early", null="it did not"),
    count("not_understood", "records of a newer release, which could not be read"),
    count("not_applied", "records that no broker can apply"),
    Column("counts", Kind.OBJECT, "how many topics, partitions and brokers there are", of=_COUNTS),
), note="A metadata log or a snapshot of it, as far as it could be read.",
    type="image")  # fmt: skip
ENTITY: Final = Table("entity", "thing of an image", (
    *_thing(),
    Column("state", Kind.VALUES, "fields of the thing; of a config or a quota its settings. "
           "Secrets are (redacted)"),
), note="One thing of an image with its state.", type="entity",
    made_from="logtool.metadata.entities:Entity")  # fmt: skip
_FIELD = Table("field", "field that changed", (
    Column("field", Kind.STRING, "name of the field"),
    Column("before", Kind.OBJECT, "value before", null="it was not there"),
    Column("after", Kind.OBJECT, "value after", null="it is not there any more"),
), made_from="logtool.metadata.entities:EntityChange")  # fmt: skip
_CHANGES = Column("changes", Kind.OBJECT, "fields that changed", of=_FIELD, many=True)
CHANGE: Final = Table("change", "record of the metadata log", (
    Column("path", Kind.PATH, "the file"),
    Column("position", Kind.INT64, "byte in the file where the record's batch begins", "byte"),
    offset("offset", "offset of the record"),
    Column("leader_epoch", Kind.INT32, "leader epoch of the record", value="epoch"),
    *timed("timestamp_ms", "time of the record", None),
    Column("record", Kind.STRING, "Kafka's name of the record"),
    *_thing("the record is about no one thing"),
    _CHANGES,
    Column("problem", Kind.STRING, "why the record cannot be applied", null="it can"),
), note="One record of the log, the thing that it is about, and its changes to it.",
    type="change", made_from="logtool.metadata.history:MetadataEvent")  # fmt: skip
DIFFERENCE: Final = Table("difference", "thing that is not the same in two images", (
    *_thing(within="entity."),
    Column("difference", Kind.STRING, "added: only the second image has it; removed: only the "
           "first one has it", words=("added", "removed", "changed"), value="word"),
    _CHANGES,
), note="A thing that is not the same in two images.", type="difference",
    made_from="logtool.metadata.difference:Difference")  # fmt: skip
DOCUMENT: Final = Document(
    name="metadata",
    title="What logtool metadata prints",
    tables=(IMAGE, ENTITY, CHANGE, DIFFERENCE, FINDING),
)
