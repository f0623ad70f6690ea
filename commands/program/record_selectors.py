"""Options that select records by their content."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.lazy_dataclass import dataclass

Texts = list[str] | None


@dataclass(frozen=True, slots=True)
class Selectors:
    """Options that select records by their content."""

    key: Annotated[
        Texts,
        typer.Option(
            "--key",
            metavar="TEXT",
            help="Print only records with this key: text, hex:.., base64:.., or null: for no "
            "key; utf8:.. for text that begins like one of these. Repeatable: any of them. "
            "Implies --records, as --value, --header, --grep and --json-path do; a record "
            "must match all of these options.",
        ),
    ] = None
    value: Annotated[
        Texts,
        typer.Option(
            "--value",
            metavar="TEXT",
            help="Print only records with this value, in the forms of --key; null: finds "
            "tombstones.",
        ),
    ] = None
    header: Annotated[
        Texts,
        typer.Option(
            "--header",
            metavar="NAME[=VALUE]",
            help="Print only records with this header; VALUE is written as for --key, and "
            "=VALUE is for an empty name. Repeatable: a record must have every header.",
        ),
    ] = None
    grep: Annotated[
        Texts,
        typer.Option(
            "--grep",
            metavar="REGEX",
            help="Print only records whose key or value matches a Python regular expression, for"
            " example (?i)refund. Repeatable: all of them.",
        ),
    ] = None
    json_path: Annotated[
        Texts,
        typer.Option(
            "--json-path",
            metavar="PATH[=VALUE]",
            help="Print only records whose JSON value has this path, for example "
            "$.order.id=4711, $.items[*].sku or $['a b'][-1]. Repeatable: all of them.",
        ),
    ] = None
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Print a record once if several copies of its partition have it at the same "
            "offset with the same content, for example in the log dirs of several brokers. "
            "Implies --records. Takes about 150 B of memory for each record.",
        ),
    ] = False
    missing_in: Annotated[
        Path | None,
        typer.Option(
            "--missing-in",
            metavar="DIR",
            parser=options.local_path,
            help="Print only records that the copy of the partition in DIR lacks, and that have to "
            "be produced again: those behind the point where an election cuts the log, without "
            "those that DIR has by producer and sequence. Implies --records.",
        ),
    ] = None
    count: Annotated[
        bool,
        typer.Option(
            "--count",
            help="Print only the number of matching records, for each partition and in total.",
        ),
    ] = False

    @property
    def any_given(self) -> bool:
        """Return whether records are selected by their content."""
        return any((self.key, self.value, self.header, self.grep, self.json_path))
