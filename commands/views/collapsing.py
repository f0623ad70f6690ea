"""Which actions of a plan a table shows: none that follows from another, and equal ones as one."""

from collections.abc import Iterator, Sequence

from logtool.actions import Action, FileChange
from logtool.commands.printing.writers import Object

Planned = tuple[Action, Object]
_ROUTINE = frozenset({FileChange.CREATE, FileChange.REPLACE, "recover"})
"""What a table shows with -v only, one by one."""


def is_routine(obj: Object) -> bool:
    """Return whether an action is one of those that follow from another."""
    if obj["type"] != "action" or obj["lost_records"]:
        return False
    routine = obj["action"] in _ROUTINE or obj["path"].endswith((".snapshot", ".deleted"))
    index = obj["path"].endswith("index")
    return bool(routine or (obj["action"] == FileChange.REMOVE and index))


def collapsed(actions: Sequence[Planned]) -> Iterator[Planned]:
    """Yield the actions with segments that go one behind the other, for one reason, as one."""
    shown: list[Planned] = []
    for action, obj in actions:
        if is_routine(obj):
            yield action, obj  # counted, not printed
        elif shown and _same_fate(shown[-1][1], obj):
            shown[-1] = shown[-1][0], _merged(shown[-1][1], obj)
        else:
            shown.append((action, obj))
    yield from shown


def _same_fate(first: Object, second: Object) -> bool:
    keys = ("action", "reason", "below_high_watermark")
    same = all(first[key] == second[key] for key in keys)
    return same and first["action"] == FileChange.REMOVE and second["path"].endswith(".log")


def _merged(first: Object, second: Object) -> Object:
    """Return the object of two: their sums, from the first to the last."""
    merged = dict(first)
    for key in (
        "length",
        "lost_bytes",
        "lost_batches",
        "lost_records",
        "lost_bad_batches",
        "lost_bad_records",
        "lost_behind_damage",
    ):
        merged[key] = (first[key] or 0) + (second[key] or 0)
    firsts = [obj["first_offset"] for obj in (first, second) if obj["first_offset"] is not None]
    lasts = [obj["last_offset"] for obj in (first, second) if obj["last_offset"] is not None]
    merged["first_offset"], merged["last_offset"] = (
        min(firsts, default=None),
        max(lasts, default=None),
    )
    merged["to"] = second["path"].rpartition("/")[2]
    return merged
