"""The options that say which records are meant by what they hold."""

from typing import Annotated

import typer

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
            help="Print only records with this key: text, hex:.., base64:.., or null: for none; "
            "utf8:.. for text that begins like these. Repeatable: any of them. Implies --records, "
            "as the next four options do; a record must be what all of them say.",
        ),
    ] = None
    value: Annotated[
        Texts,
        typer.Option(
            "--value",
            metavar="TEXT",
            help="Print only records with this value, given like a key; null: finds tombstones.",
        ),
    ] = None
    header: Annotated[
        Texts,
        typer.Option(
            "--header",
            metavar="NAME[=VALUE]",
            help="Print only records with this header, VALUE given like a key. Repeatable: all "
            "of them.",
        ),
    ] = None
    grep: Annotated[
        Texts,
        typer.Option(
            "--grep",
            metavar="REGEX",
            help="Print only records with a match in the bytes of key or value, by a regular "
            "expression of Python such as (?i)refund. Repeatable: all of them.",
        ),
    ] = None
    json_path: Annotated[
        Texts,
        typer.Option(
            "--json-path",
            metavar="PATH[=VALUE]",
            help="Print only records whose value is JSON with this place, such as "
            "$.order.id=4711, $.items[*].sku or $['a b'][-1]. Repeatable: all of them.",
        ),
    ] = None
    count: Annotated[
        bool,
        typer.Option(
            "--count",
            help="Print how many records of each partition, and in all, would be printed.",
        ),
    ] = False

    @property
    def any_given(self) -> bool:
        """Return whether records are looked for by what they hold."""
        return any((self.key, self.value, self.header, self.grep, self.json_path))
