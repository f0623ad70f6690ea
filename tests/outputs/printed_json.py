"""Validation of the JSON of recorded outputs with the JSON Schemas of two trees."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_BEGINNING = b'{"schema": "logtool.'
_FIRST, _LAST = 60, 5
"""Objects of one output that are validated: from its beginning and from its end."""


def problems(output: bytes, trees: Sequence[Path]) -> Iterator[str]:
    """Yield lines for each object of an output that the schema of a tree does not accept.

    An output that is not JSON has none.
    """
    if not output.startswith(_BEGINNING):
        return
    objects = list(_objects(output))
    name = output.removeprefix(_BEGINNING).partition(b"/")[0].decode()
    chosen = objects if len(objects) <= _FIRST + _LAST else objects[:_FIRST] + objects[-_LAST:]
    for tree in trees:
        validator = _validator(tree, name)
        for one in chosen:
            if not validator.is_valid(one):
                yield f"  not accepted by schemas/{name}.json of {tree.name}:"
                yield f"    {json.dumps(one)[:300]}"


@cache
def _validator(tree: Path, name: str) -> Draft202012Validator:
    schema = json.loads((tree / "logtool" / "schemas" / f"{name}.json").read_text())
    return Draft202012Validator(schema)


def _objects(output: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of NDJSON, or those of a JSON document; a line that was cut is left out."""
    try:
        whole = json.loads(output)
    except ValueError:
        for line in output.splitlines():
            with suppress(ValueError):
                yield json.loads(line)
        return
    if whole["type"] != "document":
        yield whole
        return
    objects: list[dict[str, Any]] = [*whole["items"], whole["summary"]]
    yield {"schema": whole["schema"], **objects[0]}
    yield from objects[1:]
