"""The fields of ``--fields``: rows with these alone, in each format."""

import json
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from logtool import schemas
from logtool.commands.output import View
from logtool.commands.printing.writers import Object, Writer, columns, keep
from logtool.errors import UsageError

_NO_FIELDS = ("type", "schema", "flavour")
_ALWAYS = ("error", "summary")
"""Types of object that are written in any case."""


def limited(view: View, names: Sequence[str]) -> View:
    """Return a view of rows with these fields; UsageError unless each is a field of a row."""
    rows = view.row_types
    if not rows:
        raise UsageError("--fields: this output has no rows")
    known = _fields(view.schema, rows)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"
            raise UsageError(f"--fields: there is no field {name!r}{hint}")
    cells = {column.title: column for column in view.columns}
    chosen = keep([cells.get(one.title, one) for one in columns(*names)], *names)
    return replace(
        view,
        columns=chosen,
        layout=lambda obj: chosen if obj["type"] in rows else None,
        lines={},
        limits=lambda writer: RowsWithFields(writer, rows, names),
    )


def _fields(schema: str, types: frozenset[str]) -> list[str]:
    """Return the names of the fields of objects of some types."""
    name = schema.removeprefix("logtool.").partition("/")[0]
    file = Path(schemas.__file__).with_name(f"{name}.json")
    kinds = json.loads(file.read_text("utf-8"))["$defs"]
    found: dict[str, Any] = {}
    for kind in kinds.values():
        properties = kind.get("properties", {})
        if properties.get("type", {}).get("const") in types:
            found |= properties
    return [name for name in found if name not in _NO_FIELDS]


class RowsWithFields:
    """A writer of JSON that leaves out the other fields, and objects that are not rows."""

    def __init__(self, writer: Writer, types: frozenset[str], names: Sequence[str]) -> None:
        self._writer, self._types, self._names = writer, types, names

    def item(self, obj: Object) -> None:
        """Write the fields of a row."""
        if obj["type"] in self._types:
            kept = {name: obj[name] for name in self._names if name in obj}
            self._writer.item({"type": obj["type"], **kept})
        elif obj["type"] in _ALWAYS:
            self._writer.item(obj)

    def close(self, summary: Object) -> None:
        """Write the summary."""
        self._writer.close(summary)
