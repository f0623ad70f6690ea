"""Work in windows, so that a run over very many partitions holds the objects of a few of them."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

WINDOW = 4096
"""Number of segments that are planned ahead, so that the largest of them can start first."""


def in_windows(items: Iterable[T], segments: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in order, as many at once as have `WINDOW` segments; at least one.

    `segments` returns the number of segments of an item; an item without any counts as one.
    """
    window: list[T] = []
    count = 0
    for item in items:
        window.append(item)
        count += max(segments(item), 1)
        if count >= WINDOW:
            yield window
            window, count = [], 0
    if window:
        yield window
