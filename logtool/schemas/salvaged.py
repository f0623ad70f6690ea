"""The objects that `salvage` and `undelete` print, and note in the manifest of their output.

They are declared here and not in the view because the engine writes the manifest.
"""

from dataclasses import replace
from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, offset, size
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_MODULE = "logtool.repair.saved"
_PLACE = (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
)


_PARTITION = Table("partition", "partition that was saved", (
    Column("path", Kind.PATH, "path of the partition dir that was read"),
    Column("target", Kind.PATH, "path of the new partition dir"),
    *_PLACE,
    offset("log_start_offset", "start of the saved log"),
    offset("log_end_offset", "end of the saved log"),
    count("segments", "segments with saved batches"),
    count("batches", "batches that were saved"),
    count("records", "records that were saved"),
    size("bytes", "size of the batches that were saved"),
    count("filled_batches", "batches that were saved from other copies"),
    size("filled_bytes", "size of the batches that were saved from other copies"),
    count("rejects", "ranges that were not copied and that no other copy has"),
    size("rejected_bytes", "size of the ranges that were not copied and that no other copy has"),
    Column("outcome", Kind.STRING, "result of a broker loading the saved log",
           words=("loads", "refuses", "offline", "unknown")),
    Column("reason", Kind.STRING, "reason for which a broker does not load the saved log",
           null="a broker loads the log"),
    offset("readable_again", "offset up to which saved records had been deleted by DeleteRecords, "
           "as leader-epoch-checkpoint shows: they are readable again", "no such record was saved"),
), note="A saved partition.", type="partition",
    made_from=f"{_MODULE}:SavedPartition")  # fmt: skip
_REJECT = Table("reject", "range of bytes that was not copied", (
    Column("path", Kind.PATH, "path of the log", value="one.path"),
    Column("position", Kind.INT64, "byte in the log where the range begins", "byte",
           value="one.position"),
    size("length", "length of the range", "one.length"),
    Column("kind", Kind.STRING, "kind of the range; damage: not a sound batch; unreadable: the "
           "disk does not return it; order: offsets or leader epochs contradict other batches; "
           "overlap: the next segment has the offsets; zombie: a truncation had removed the "
           "segment; missing: the log is missing",
           words=("damage", "unreadable", "order", "overlap", "zombie", "missing"),
           value="one.kind"),
    Column("reason", Kind.STRING, "reason for which the range was not copied", value="one.reason"),
    offset("first_offset", "first offset that may have been in the range", "the offset is not "
           "known",
           "one.first_offset"),
    offset("last_offset", "last offset that may have been in the range", "the offset is not known",
           "one.last_offset"),
    Column("filled_from", Kind.PATH, "copy that has the batches of the range",
           null="no other copy has the batches, or no other copy was given",
           value="one.filled_from"),
    Column("proof", Kind.STRING, "proof that the copy belongs to the same log, or the reason for "
           "which no copy was used",
           null="no other copy was given", value="one.proof"),
    Column("crc32c", Kind.UINT32, "CRC-32C of the bytes in the range",
           null="logtool kept no bytes of the range"),
    Column("sha256", Kind.STRING, "SHA-256 of the bytes in the range",
           null="logtool kept no bytes of the range"),
    Column("target", Kind.PATH, "path of the file that holds the bytes of the range",
           null="logtool kept no bytes of the range"),
    *_PLACE,
), note="A range of bytes that was not copied; target is a file that holds the bytes.",
    type="reject",
    made_from=f"{_MODULE}:KeptReject")  # fmt: skip
NOTED_REJECT: Final = replace(_REJECT, columns=_REJECT.columns[: -len(_PLACE)])
"""The reject in the manifest, where only the path gives its partition."""
_TRANSACTION = Table("transaction", "transaction that may have lost records, or its marker", (
    Column("producer_id", Kind.INT64, "id of the producer", value="one.producer_id"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer", value="one.producer_epoch"),
    offset("first_offset", "first remaining offset of the transaction", None,
           "one.first_offset"),
    offset("lost_from", "first offset that is missing", None, "one.lost_from"),
    Column("outcome", Kind.STRING, "end of the transaction, whose marker is there",
           null="the marker may be lost", words=("committed", "aborted"), value="one.outcome"),
    Column("lost_records", Kind.INT64, "records of the transaction that are lost", "count",
           "the marker may be lost, or the number is not known", value="one.lost_records"),
    Column("reason", Kind.STRING, "description of the possible loss",
           value="one.reason"),
    *_PLACE,
), note="A transaction that was open at the place of a loss, or whose remaining batches are all "
        "after that place.",
    type="transaction", made_from=f"{_MODULE}:TornTransaction")  # fmt: skip
_RECORDS = Table("records", "file with the records of a partition", (
    *_PLACE,
    Column("path", Kind.PATH, "path of the partition dir that was read"),
    Column("target", Kind.PATH, "path of the file with the records"),
    count("records", "records in the file"),
    Column("command", Kind.STRING, "command line that produces the records again",
           null="the file is not for kcat"),
), note="The file with the records of one saved partition; only with --records. A line of NDJSON "
        "has the fields of 'logtool dump --records', and transaction_outcome: committed, aborted, "
        "open (no marker ends the transaction), unknown (its marker may be lost), or null (the "
        "record is not part of a transaction).",
    type="records", made_from=f"{_MODULE}:SavedRecords")  # fmt: skip
_DECODED = Table("decoded", "file with the decodable records of a range", (
    Column("topic", Kind.STRING, "name of the topic", value="kept.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="kept.partition"),
    Column("path", Kind.PATH, "path of the log", value="kept.one.path"),
    Column("position", Kind.INT64, "byte in the log where the range begins", "byte",
           value="kept.one.position"),
    size("length", "length of the range", "kept.one.length"),
    Column("target", Kind.PATH, "path of the file with the records"),
    count("records", "records in the file"),
    count("proven", "records of these whose own CRC matches, which messages of magic 0 and 1 have"),
    Column("reason", Kind.STRING, "reason for which the rest of the range does not decode",
           null="the whole range decodes"),
), note="The file with the decodable records of a range that was not copied; only with "
        "--decode-damaged.",
    type="decoded", made_from=f"{_MODULE}:DecodedReject")  # fmt: skip
_IMAGE = Table("image", "log that a failing disk does not return completely", (
    Column("path", Kind.PATH, "path of the log"),
    Column("target", Kind.PATH, "path of the file with the bytes that the disk returns, and zeros "
           "for the rest"),
    Column("map", Kind.PATH, "path of the file that lists which bytes the disk returns, in the "
           "form of GNU ddrescue"),
    size("length", "length of the log"),
    size("unread", "bytes that the disk does not return"),
), note="A log that a failing disk does not return completely; a file holds the bytes that it "
        "returns.",
    type="image", made_from=f"{_MODULE}:KeptImage")  # fmt: skip
NOTED_END: Final = Table("end", "end of the manifest", (
    Column("complete", Kind.BOOL, "whether no error and no time limit has left anything out"),
), note="The last line of the manifest.", type="end")  # fmt: skip
DOCUMENT: Final = Document(
    name="salvage",
    title="The output of logtool salvage and undelete",
    tables=(_PARTITION, _REJECT, _TRANSACTION, _RECORDS, _DECODED, _IMAGE, FINDING),
)
