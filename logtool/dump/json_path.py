"""Places in JSON values, by the part of RFC 9535 (JSONPath) that needs no search.

A path is ``$`` and then any of ``.name``, ``['name']``, ``["name"]``, ``[0]``, ``[-1]``, ``.*`` and
``[*]``. In a value with a schema registry's prefix the JSON begins behind 5 bytes, of which the
first is 0.
"""

import json
import re
from typing import Any, Final, NoReturn

from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

_STEP = re.compile(
    r"\.(?P<name>[^\W\d][\w-]*)|(?P<every>\.\*|\[\*\])|\[(?P<index>0|-?[1-9][0-9]{0,17})\]"
    r"|\['(?P<single>(?:[^'\\]|\\.)*)'\]|\[(?P<double>\"(?:[^\"\\]|\\.)*\")\]"
)
_EVERY: Final = None
_REGISTRY = 5
"""Bytes before the JSON: a zero and the number of the schema."""
Step = str | int | None
"""A name, an index, or None for every member or element."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """Condition for a JSON value: one of the places of a path must exist, or hold a value."""

    steps: tuple[Step, ...]
    any_value: bool = True
    """True if the place must only exist."""
    text: str = ""
    """Text that a string at the place must equal."""
    value: Any = None
    """JSON value that anything else at the place must equal; see `is_json`."""
    is_json: bool = False
    """True if `text` is JSON, so that `value` counts."""
    parts: tuple[bytes, ...] = ()
    """Bytes that any JSON with such a place contains, if it has no backslash: names of the path,
    and a text that can only be a string."""

    def holds(self, data: bytes) -> bool:
        """Return whether a record's value is JSON with such a place."""
        if b"\\" not in data and any(part not in data for part in self.parts):
            return False
        try:
            document = _parse(data)
        except (ValueError, RecursionError):
            return False
        return any(self._is_meant(node) for node in self._nodes(document))

    def _is_meant(self, node: Any) -> bool:
        if self.any_value or (isinstance(node, str) and node == self.text):
            return True
        return self.is_json and _same(node, self.value)

    def _nodes(self, document: Any) -> list[Any]:
        nodes = [document]
        for step in self.steps:
            nodes = [below for node in nodes for below in _below(node, step)]
        return nodes


def parse(text: str) -> JsonPath:
    """Parse ``PATH`` or ``PATH=VALUE``; UsageError for anything else.

    VALUE is the text of a string, or JSON: a number, true, false, null, a string in quotes, an
    array or an object.
    """
    steps, position = [], 1
    while match := _STEP.match(text, position):
        steps.append(_step(match))
        position = match.end()
    rest = text[position:]
    if not text.startswith("$") or (rest and rest[0] != "="):
        raise UsageError(
            f"--json-path {text}: expected PATH or PATH=VALUE, where PATH is for example "
            "$.order.id, $.items[0].sku, $.items[*].sku or $['a name']"
        )
    parts = [step for step in steps if isinstance(step, str)]
    value, is_json = None, False
    if rest:
        try:
            value, is_json = _load(rest[1:]), True
        except (ValueError, RecursionError):
            parts.append(rest[1:])
    return JsonPath(
        steps=tuple(steps),
        any_value=not rest,
        text=rest[1:],
        value=value,
        is_json=is_json,
        parts=tuple(part.encode() for part in parts if _is_plain(part)),
    )


def _is_plain(text: str) -> bool:
    """Return whether JSON without a backslash contains a text unchanged."""
    return text.isprintable() and not {'"', "\\"} & set(text)


def _step(match: re.Match[str]) -> Step:
    kind = match.lastgroup
    found = match.group()
    if kind == "name":
        return match.group("name")
    if kind == "index":
        return int(match.group("index"))
    if kind == "single":
        return re.sub(r"\\(.)", r"\1", match.group("single"))
    if kind == "double":
        try:
            name: str = json.loads(match.group("double"))
        except ValueError as error:
            raise UsageError(f"--json-path: {found} is not a name in quotes") from error
        return name
    return _EVERY


def _below(node: Any, step: Step) -> list[Any]:
    """Return the nodes that a step leads to."""
    if step is _EVERY:
        return list(node.values()) if isinstance(node, dict) else _elements(node)
    if isinstance(step, str):
        return [node[step]] if isinstance(node, dict) and step in node else []
    elements = _elements(node)
    return [elements[step]] if -len(elements) <= step < len(elements) else []


def _elements(node: Any) -> list[Any]:
    return node if isinstance(node, list) else []


def _same(node: Any, value: Any) -> bool:
    """Compare as JSON does: true is not 1, and 1 equals 1.0."""
    if isinstance(node, bool) or isinstance(value, bool):
        return node is value
    if isinstance(node, dict) and isinstance(value, dict):
        return node.keys() == value.keys() and all(_same(node[k], value[k]) for k in node)
    if isinstance(node, list) and isinstance(value, list):
        return len(node) == len(value) and all(map(_same, node, value))
    return bool(node == value)


def _parse(data: bytes) -> Any:
    text = (data[_REGISTRY:] if data[:1] == b"\0" else data).decode("utf-8")
    return _load(text)


def _load(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
