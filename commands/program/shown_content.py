"""The options of `dump` that say what of files is printed, and how its bytes look."""

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
    values: Annotated[
        ValuesChoice,
        typer.Option(
            "--values",
            help="How keys, values and headers are printed; utf8 falls back to base64 where bytes "
            "are not UTF-8, len prints sizes alone.",
        ),
    ] = ValuesChoice.UTF8
    decode: Annotated[
        DecodeChoice,
        typer.Option(
            "--decode",
            help="Whether records of brokers' own topics, such as __consumer_offsets, are printed "
            "as the fields they hold (auto), or as bytes. With --values they are bytes, too.",
        ),
    ] = DecodeChoice.AUTO
    secrets: Annotated[
        bool,
        typer.Option(
            "--show-secrets",
            help="Print passwords, SCRAM keys and ids of delegation tokens, too.",
        ),
    ] = False
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            metavar="A..B",
            help="Print only offsets A through B; either may be left out.",
        ),
    ] = None
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            metavar="A..B",
            help="Print only timestamps A through B: milliseconds, a time such as "
            "2026-11-22T10:30:00Z (UTC without a zone), a date for its whole day, -2h (also s, m, "
            "d, w), now, today or yesterday.",
        ),
    ] = None
    producer: Annotated[
        int | None,
        typer.Option("--producer", metavar="ID", help="Print only what producer ID wrote."),
    ] = None
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            help="Stop after N batches, records and entries; after N records where records are "
            "looked for by what they hold.",
        ),
    ] = None

    @property
    def decodes(self) -> bool:
        """Return whether records of brokers' own topics are taken apart."""
        return self.decode is DecodeChoice.AUTO and self.values is ValuesChoice.UTF8
