"""Table of fingerprints."""

from typing import Final

from logtool.copies.fingerprint import FingerprintStatus
from logtool.schemas.columns import JSON, Column, Kind, Table

_ABSENT = "the partition is absent"
_NO_BATCH = "there is no batch"
_NOT_KEPT = "no fingerprint was kept"
FINGERPRINT: Final = Table("fingerprint", "fingerprint of a partition", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("status", Kind.STRING, "result of the comparison with the kept fingerprint", null=
           "there is no --check", words=tuple(FingerprintStatus)),
    Column("first_offset", Kind.INT64, "base offset of the first batch", "offset", _NO_BATCH),
    Column("last_offset", Kind.INT64, "last offset of the last batch that the hash covers; with "
           "--check, it ends where the kept fingerprint ends", "offset", _NO_BATCH),
    Column("batches", Kind.INT64, "batches that the hash covers", "count"),
    Column("records", Kind.INT64, "records in these batches", "count"),
    Column("sha256", Kind.STRING, "SHA-256 of base offset, last offset, leader epoch and CRC of "
           "these batches, each as a little-endian int64", null=_ABSENT),
    Column("kept_last_offset", Kind.INT64, "last offset of the kept fingerprint", "offset",
           f"{_NOT_KEPT}, or it has no batch"),
    Column("kept_sha256", Kind.STRING, "hash of the kept fingerprint", null=_NOT_KEPT),
    Column("log_start_offset", Kind.INT64, "start of the log", "offset", _ABSENT),
    Column("log_end_offset", Kind.INT64, "end of the log", "offset", _ABSENT),
    Column("topic_id", Kind.STRING, "topic id in partition.metadata",
           null="there is no partition.metadata"),
    Column("damaged_ranges", Kind.INT64, "damaged ranges; an unfinished append does not count",
           "count"),
    Column("unread", Kind.BOOL, "whether a part of the log could not be read, so that the hash "
           "lacks batches", ways=JSON),
    Column("path", Kind.STRING, "the partition dir that was read", null=_ABSENT),
), note="A hash of the batches of one partition.", type="fingerprint",
    made_from="logtool.copies.fingerprint:Fingerprint")  # fmt: skip
