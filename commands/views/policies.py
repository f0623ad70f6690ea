"""How policies of recovery look side by side."""

from collections.abc import Iterator, Sequence

from logtool.commands.printing import text
from logtool.commands.printing.writers import Object

_TITLES = ("policy", "read", "bytes", "time", "unread", "bytes", "misses")
_MOST_NAMED = 10
"""Places of damage that are named for each policy."""


def table(obj: Object) -> str:
    """Return the table of what each policy reads and misses, at most 80 columns wide."""
    rows = [_row(one) for one in obj["policies"]]
    widths = [max(map(len, cells)) for cells in zip(_TITLES, *rows, strict=True)]
    border = ["-" * width for width in widths]
    lines = [_line(cells, widths) for cells in (_TITLES, border, *rows)]
    return "\n".join([*lines, *_missed(obj["policies"])])


def _row(one: Object) -> tuple[str, ...]:
    return (
        one["policy"],
        f"{one['segments']:,}",
        text.size(one["bytes"]),
        text.duration(one["seconds"]),
        f"{one['unread_segments']:,}",
        text.size(one["unread_bytes"]),
        f"{len(one['missed']):,}",
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells in a row, the numbers at the right; a space keeps it from being folded."""
    first, *rest = cells
    padded = [f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True)]
    return "  ".join([f" {first:<{widths[0]}}", *padded])


def _missed(policies: Sequence[Object]) -> Iterator[str]:
    for one in policies:
        for place in one["missed"][:_MOST_NAMED]:
            path = "/".join(place["path"].split("/")[-2:])
            at = "" if place["position"] is None else f" @{place['position']}"
            reason = text.escape(place["reason"])
            yield f"{one['policy']} misses {text.escape(path)}{at}: {reason}"
        more = len(one["missed"]) - _MOST_NAMED
        if more > 0:
            yield f"{one['policy']} misses {text.count(more, 'place')} more"
