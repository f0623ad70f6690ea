"""The objects that `salvage` and `undelete` print, and note in the manifest of their output.

They are declared here and not in the view because the engine writes the manifest.
"""

from dataclasses import replace
from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, offset, size
from logtool.schemas.document import Document

_MODULE = "logtool.repair.saved"
_PLACE = (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
)


_PARTITION = Table("partition", "partition that was saved", (
    Column("path", Kind.PATH, "the partition dir that was read"),
    Column("target", Kind.PATH, "the new partition dir"),
    *_PLACE,
    offset("log_start_offset", "start of the log that was saved"),
    offset("log_end_offset", "end of the log that was saved"),
    count("segments", "segments with batches that were saved"),
    count("batches", "batches that were saved"),
    count("records", "records that were saved"),
    size("bytes", "size of the batches that were saved"),
    count("filled_batches", "batches that were saved from other copies"),
    size("filled_bytes", "size of the batches that were saved from other copies"),
    count("rejects", "ranges that were not taken over and that no other copy has"),
    size("rejected_bytes", "size of the ranges that were not taken over and that no other copy "
         "has"),
    Column("outcome", Kind.STRING, "how a broker loads the log that was saved",
           words=("loads", "refuses", "offline", "unknown")),
    Column("reason", Kind.STRING, "why a broker does not load the log", null="it loads"),
), note="One partition that was saved.", type="partition",
    made_from=f"{_MODULE}:SavedPartition")  # fmt: skip
_REJECT = Table("reject", "range of bytes that was not taken over", (
    Column("path", Kind.PATH, "the log", value="one.path"),
    Column("position", Kind.INT64, "byte in the log where the range begins", "byte",
           value="one.position"),
    size("length", "length of the range", "one.length"),
    Column("kind", Kind.STRING, "kind of range; damage: no sound batch; unreadable: the disk does "
           "not give it; "
           "order: offsets or leader epochs contradict other batches; overlap: the next segment "
           "has the offsets; zombie: a truncation had removed the segment; missing: the log is "
           "gone", words=("damage", "unreadable", "order", "overlap", "zombie", "missing"),
           value="one.kind"),
    Column("reason", Kind.STRING, "why the range was not taken over", value="one.reason"),
    offset("first_offset", "first offset that can have been in the range", "it is not known",
           "one.first_offset"),
    offset("last_offset", "last offset that can have been in the range", "it is not known",
           "one.last_offset"),
    Column("filled_from", Kind.PATH, "the copy that has the batches that were there",
           null="no other copy has them, or none was given", value="one.filled_from"),
    Column("proof", Kind.STRING, "why the copy is of the same log, or why no copy was used",
           null="no other copy was given", value="one.proof"),
    Column("crc32c", Kind.UINT32, "CRC-32C of the bytes in the range", null="no bytes were kept"),
    Column("sha256", Kind.STRING, "SHA-256 of the bytes in the range", null="no bytes were kept"),
    Column("target", Kind.PATH, "the file that has the bytes of the range",
           null="no bytes were kept"),
    *_PLACE,
), note="A range of bytes that was not taken over; target is a file that has them.", type="reject",
    made_from=f"{_MODULE}:KeptReject")  # fmt: skip
NOTED_REJECT: Final = replace(_REJECT, columns=_REJECT.columns[: -len(_PLACE)])
"""The reject in the manifest, where only the path gives its partition."""
_TRANSACTION = Table("transaction", "transaction that may have lost records, or its marker", (
    Column("producer_id", Kind.INT64, "id of the producer", value="one.producer_id"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer", value="one.producer_epoch"),
    offset("first_offset", "first offset of what is left of the transaction", None,
           "one.first_offset"),
    offset("lost_from", "first offset that is missing", None, "one.lost_from"),
    Column("reason", Kind.STRING, "how the transaction may have lost something",
           value="one.reason"),
    *_PLACE,
), note="A transaction that was open where something is missing, or of which all that is left lies "
        "after that.",
    type="transaction", made_from=f"{_MODULE}:TornTransaction")  # fmt: skip
_RECORDS = Table("records", "file with the records of a partition", (
    *_PLACE,
    Column("path", Kind.PATH, "the partition dir that was read"),
    Column("target", Kind.PATH, "the file with the records"),
    count("records", "records in the file"),
    Column("command", Kind.STRING, "command line that produces the records again",
           null="the file is not for kcat"),
), note="The file with the records of one partition that was saved; only with --records.",
    type="records", made_from=f"{_MODULE}:SavedRecords")  # fmt: skip
_DECODED = Table("decoded", "file with the records that decode of a range", (
    Column("topic", Kind.STRING, "name of the topic", value="kept.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="kept.partition"),
    Column("path", Kind.PATH, "the log", value="kept.one.path"),
    Column("position", Kind.INT64, "byte in the log where the range begins", "byte",
           value="kept.one.position"),
    size("length", "length of the range", "kept.one.length"),
    Column("target", Kind.PATH, "the file with the records"),
    count("records", "records in the file"),
    Column("reason", Kind.STRING, "why the rest of the range does not decode",
           null="all of it does"),
), note="The file with the records that decode of one range that was not taken over; only with "
        "--decode-damaged.",
    type="decoded", made_from=f"{_MODULE}:DecodedReject")  # fmt: skip
_IMAGE = Table("image", "log that a failing disk does not give whole", (
    Column("path", Kind.PATH, "the log"),
    Column("target", Kind.PATH, "the file with what the disk gives of the log, and zeros for the "
           "rest"),
    Column("map", Kind.PATH, "the file that says which bytes the disk gives, in the form of GNU "
           "ddrescue"),
    size("length", "length of the log"),
    size("unread", "bytes that the disk does not give"),
), note="A log that a failing disk does not give whole: a file has what it gives.",
    type="image", made_from=f"{_MODULE}:KeptImage")  # fmt: skip
DOCUMENT: Final = Document(
    name="salvage",
    title="What logtool salvage and undelete print",
    tables=(_PARTITION, _REJECT, _TRANSACTION, _RECORDS, _DECODED, _IMAGE),
)
