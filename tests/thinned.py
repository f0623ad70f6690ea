"""Parameters of which `make test` tries some, and `make test-long` the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], wanted: int, *, several: bool = False) -> list[Any]:
    """Return the values as parameters; all but `wanted` of them, evenly spread, are long.

    ``several`` means that each value is a tuple with a value for each of several arguments.
    """
    values = list(values)
    last = len(values) - 1
    kept = {round(at * last / (wanted - 1)) for at in range(wanted)}
    marks = [() if at in kept else pytest.mark.long for at in range(len(values))]
    return [
        pytest.param(*(value if several else (value,)), marks=mark)
        for value, mark in zip(values, marks, strict=True)
    ]
