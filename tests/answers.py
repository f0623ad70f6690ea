"""Checks of the output of a run: schemas of its objects, lines and numbers in its text."""

import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from jsonschema import Draft202012Validator


class Printed(Protocol):
    """A run that printed something."""

    @property
    def stderr(self) -> str: ...


@cache
def schema(name: str) -> dict[str, Any]:
    """Return a schema of logtool, such as ``plan``."""
    found: dict[str, Any] = json.loads((files("logtool.schemas") / f"{name}.json").read_text())
    return found


@cache
def validator(name: str) -> Draft202012Validator:
    """Return the validator of a schema of logtool."""
    return Draft202012Validator(schema(name))


@cache
def _validator_of_type(name: str, kind: object) -> Draft202012Validator:
    """Return the validator of the kinds of objects in a schema that may have this type.

    A schema is a choice of kinds. The kinds that demand another type cannot accept the object.
    """
    whole = schema(name)
    demanded = {
        one["$ref"]: whole["$defs"][one["$ref"].removeprefix("#/$defs/")]["properties"]
        .get("type", {}).get("const", kind)
        for one in whole["anyOf"]
    }  # fmt: skip
    left = [{"$ref": place} for place, wanted in demanded.items() if wanted == kind]
    return Draft202012Validator({**whole, "anyOf": left}) if left else validator(name)


def problems(name: str, obj: Any) -> list[str]:
    """Return the faults of an object by the schema of that name."""
    return [error.message for error in _validator_of_type(name, obj.get("type")).iter_errors(obj)]


def assert_valid(name: str, objects: Iterable[Any]) -> None:
    """Assert that every object keeps to the schema of that name."""
    for obj in objects:
        assert not problems(name, obj), obj


def last_line(run: Printed) -> str:
    """Return the last line on stderr."""
    return run.stderr.splitlines()[-1]


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a text: 2553 for ``2,553``, nothing for ``tx.mixed-0``."""
    found = re.findall(r"(?<![\w./-])\d[\d,]*(?!\w|/|\.\d)", text)
    return [int(number.rstrip(",").replace(",", "")) for number in found]


def undo_dirs(log_dir: Path) -> list[Path]:
    """Return the undo directories next to a log dir."""
    return sorted(log_dir.parent.glob(f"{log_dir.name}.logtool-undo-*"))
