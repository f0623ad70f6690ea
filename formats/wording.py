"""Words for a size, a count, a duration, a rate and a range of offsets in messages.

These words are for people; JSON and tables for programs have the plain numbers. `size` writes an
amount in a unit that gives a short number (``3.1 MiB``); where the exact number matters, for
example next to a limit, `count` writes it (``10,485,761 bytes``). A range of offsets includes both
ends.
"""

from collections.abc import Callable

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SHORT = ((1, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns"))
"""Units per second, and the unit: for durations below a minute."""


def size(count: float) -> str:
    """Return a number of bytes in a unit that gives a short number."""
    for unit in _BYTE_UNITS:
        if abs(count) < 1024 or unit == _BYTE_UNITS[-1]:
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"


def share(done: float, whole: float) -> str:
    """Return ``1.5 of 4.0 GiB``: both in the unit of the whole."""
    said, unit = size(whole).split(" ")
    if unit == "B":
        return f"{done:,.0f} of {said} B"
    return f"{done / 1024 ** _BYTE_UNITS.index(unit):,.1f} of {said} {unit}"


def rate(count: float, seconds: float) -> str:
    """Return how many bytes a second `count` bytes in `seconds` are."""
    return f"{size(count / seconds)}/s"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 batch``, ``2 batches``: the number with its noun."""
    word = noun if number == 1 else plural or f"{noun}s"
    return f"{number:,} {word}"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units, or with one decimal below a minute."""
    if round(seconds, 1) < 60:
        said = (f"{seconds * n:.1f} {unit}" for n, unit in _SHORT if round(seconds * n, 1) >= 1)
        return next(said, "0 s")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours_of_day = divmod(hours, 24)
    if days:
        return f"{days:,} d {hours_of_day} h"
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def span(low: float, high: float, said: Callable[[float], str]) -> str:
    """Return ``8.5 s to 19.0 s``, or ``about 8.5 s`` where both ends are said alike."""
    first, last = said(low), said(high)
    return f"about {first}" if first == last else f"{first} to {last}"


def through(first: int | str, last: int | str) -> str:
    """Return ``5 through 9``, or ``5`` where it is one offset only."""
    return f"{first}" if first == last else f"{first} through {last}"


def offsets(first: int | str, last: int | str) -> str:
    """Return ``offsets 5 through 9``, or ``offset 5``."""
    return f"{'offset' if first == last else 'offsets'} {through(first, last)}"


def extent(start: int, end: int) -> str:
    """Return the offsets of a log from its start offset to its end offset, which is the next."""
    return offsets(start, end - 1) if end > start else f"no offsets, ends at {end}"
