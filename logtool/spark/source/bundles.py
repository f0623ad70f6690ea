"""Tasks gathered into bundles of about equal bytes: Spark hands one bundle to each task."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_LEAST_BYTES, _MOST_BYTES = 32 * 1024 * 1024, 128 * 1024 * 1024
"""Bytes of a bundle where no size is given: few enough to keep all cores busy, enough to outweigh
the cost of a task."""
_MANY, _MOST_BUNDLES = 64, 4000
OPENING: Final = 64 * 1024
"""Cost of opening a file, as a number of bytes to read."""

_One = TypeVar("_One")


def bundle_size(total: int, wanted: int | None = None, least_count: int | None = None) -> int:
    """Return the bytes of one bundle of `total` bytes.

    `wanted` is the size that the user asks for, `least_count` a least number of bundles.
    """
    size = wanted or min(max(total // _MANY, _LEAST_BYTES), _MOST_BYTES)
    size = max(size, total // _MOST_BUNDLES)
    return max(1, min(size, total // least_count)) if least_count else size


def bundled(tasks: Iterable[_One], size: int, cost: Callable[[_One], int]) -> list[list[_One]]:
    """Return the tasks in bundles of at most `size` bytes, or of one task, in their order."""
    bundles: list[list[_One]] = []
    room = 0
    for task in tasks:
        bytes_of_task = cost(task)
        if bytes_of_task > room:
            bundles.append([])
            room = size
        bundles[-1].append(task)
        room -= bytes_of_task
    return bundles
