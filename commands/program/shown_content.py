"""Options of `dump` for the content to print and for the form of bytes."""

from enum import StrEnum
from typing import Annotated

import typer

from logtool.commands import options
from logtool.lazy_dataclass import dataclass


class ValuesChoice(StrEnum):
    """Forms in which bytes of a log are printed; see `logtool.dump.values.Values`."""

    UTF8 = "utf8"
    HEX = "hex"
    BASE64 = "base64"
    LEN = "len"


class DecodeChoice(StrEnum):
    """Choice to decode records of brokers' own topics."""

    AUTO = "auto"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class DumpContent:
    """Options for the content of files to print, and for the form of their bytes."""

    records: Annotated[bool, typer.Option("--records", help="Print the records in each batch.")] = (
        False
    )
    schema_ids: Annotated[
        bool,
        typer.Option(
            "--schema-ids",
            help="With --records, also print the ids that serializers for a schema registry put in "
            "front of keys and values or into headers, and count them by topic. The topic "
            "_schemas in the same log dirs gives their subjects and versions.",
        ),
    ] = False
    values: Annotated[
        ValuesChoice,
        typer.Option(
            "--values",
            help="Form of keys, values and headers. utf8: text, or base64 if the bytes are not "
            "UTF-8; len: only sizes.",
        ),
    ] = ValuesChoice.UTF8
    decode: Annotated[
        DecodeChoice,
        typer.Option(
            "--decode",
            help="auto: decode records of internal topics such as __consumer_offsets; none: print "
            "them as bytes. With --values hex, base64 or len, they are always bytes.",
        ),
    ] = DecodeChoice.AUTO
    secrets: Annotated[
        bool,
        typer.Option(
            "--show-secrets",
            help="Also print the secrets of a metadata log: salts and keys of SCRAM credentials, "
            "ids of delegation tokens, values of settings that are passwords or keys, and values "
            "of settings that Kafka does not define, such as those of plugins.",
        ),
    ] = False
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            metavar="A..B",
            help="Print only offsets A to B; A or B can be left out.",
        ),
    ] = None
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            metavar="A..B",
            help="Print only timestamps A to B: milliseconds, a time such as "
            "2026-11-22T10:30:00Z (UTC without a zone), a date for its whole day, -2h (also"
            " s, m, d, w), now, today or yesterday.",
        ),
    ] = None
    producer: Annotated[
        int | None,
        typer.Option(
            "--producer",
            metavar="ID",
            help="Print only batches and records of the producer with this id.",
        ),
    ] = None
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            help="Stop after N batches, records and entries; with a search by content, after N "
            "records.",
        ),
    ] = None

    @property
    def decodes(self) -> bool:
        """Return whether records of brokers' own topics are taken apart."""
        return self.decode is DecodeChoice.AUTO and self.values is ValuesChoice.UTF8
