"""Verdicts: what the commands say of a case, compared with what happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from absences.sayings import Said, Sayings

Object = Mapping[str, Any]
RIGHT, FALSE_CALM, FALSE_ALARM = "right", "false calm", "false alarm"
WRONG, UNPROVABLE, MENDED = "wrong outcome", "unprovable", "mended"
VERDICTS = (RIGHT, MENDED, UNPROVABLE, FALSE_CALM, FALSE_ALARM, WRONG)
JUDGES = ("verify", "plan", "doctor")


@dataclass
class Verdict:
    """The verdict on one case."""

    kinds: list[str]
    """Of `VERDICTS`; `RIGHT` stands alone."""
    harm: list[str]
    """What is worse than in the control, in words."""
    notes: list[str] = field(default_factory=list)
    """What is calm, alarmed or predicted otherwise."""


def harm_of(first: Object, second: Object) -> list[str]:
    """Return what readers and groups have lost, or see without being meant to."""
    found = list(_harm(first))
    later = [f"at the next start {one}" for one in _harm(second) if one not in found]
    return found + later


def _harm(seen: Object) -> Iterator[str]:
    if seen.get("refused"):
        yield f"the broker does not start ({seen['error'][:160]})"
        return
    if seen.get("stray"):
        yield "renamed to -stray"
    if seen.get("absent"):
        yield "the topic does not exist any more"
    for key in ("error", "unread"):
        if key in seen:
            yield f"clients get {seen[key]}"
    for isolation, name in (("read_uncommitted", "read"), ("read_committed", "read committed")):
        if gone := seen.get(f"{isolation}_misses"):
            yield f"{name}: {_count(gone)} records fewer ({_text(gone)})"
        if more := seen.get(f"{isolation}_gets"):
            yield f"{name}: {_count(more)} records more ({_text(more)})"
    for group, offsets in seen.get("groups", {}).items():
        yield f"{group} has {offsets or 'no offsets'}"


def _count(spans: Sequence[Sequence[int]]) -> int:
    return sum(last - first + 1 for first, last in spans)


def _text(spans: Sequence[Sequence[int]]) -> str:
    shown = [f"{first}..{last}" for first, last in spans[:4]]
    return ", ".join([*shown, *(["..."] if len(spans) > 4 else [])])


def judge(
    partition: str, said: Sayings, usual: Sayings, first: Object, second: Object, *,
    unprovable: bool = False,
) -> Verdict:  # fmt: skip
    """Return the verdict on a deletion in one partition; `usual` is said of the base itself."""
    harm = harm_of(first, second)
    alarms = {one: above(said.of(one, partition), usual.of(one, partition)) for one in JUDGES}
    kinds: list[str] = []
    notes: list[str] = []
    calm = [one for one in JUDGES if not alarms[one]]
    if harm and calm:
        kinds.append(UNPROVABLE if unprovable and len(calm) == len(JUDGES) else FALSE_CALM)
        notes.append(f"calm: {', '.join(calm)}")
    elif not harm and len(calm) < len(JUDGES):
        kinds.append(FALSE_ALARM)
    if wrong := _wrong(partition, said, first):
        kinds.append(WRONG)
        notes.append(wrong)
    shown = dict.fromkeys(word for one in JUDGES for word in alarms[one])
    return Verdict(kinds or [RIGHT], harm, [*notes, *shown])


def above(said: Said, usual: Said) -> list[str]:
    """Return what is said above info, without what is said of the base too."""
    codes = {_code(word) for word in usual.words}
    return [word for word in said.words if _code(word) not in codes]


def _code(word: str) -> str:
    return word.partition(":")[0]


def _wrong(partition: str, said: Sayings, seen: Object) -> str:
    """Return how the forecast of `plan` differs from the first start; empty if it does not."""
    words = [_code(word).split()[1] for word in said.of("plan", partition).words]
    forecast = said.planned.get(partition)
    planned_refusal = bool({"refuse", "refuses"} & set(words))
    if planned_refusal != bool(seen.get("refused")):
        does = "does not start" if seen.get("refused") else "starts"
        return f"plan: {'refuses' if planned_refusal else 'starts'}; the broker {does}"
    if seen.get("refused") or seen.get("error"):
        return ""
    if ("stray" in words) != bool(seen.get("stray")):
        return f"plan: {'stray' if 'stray' in words else 'no stray'}; {seen.get('stray')}"
    if seen.get("stray") or seen.get("absent"):
        return ""
    start, end = 0, 0
    if forecast:
        start, end = forecast["log_start_offset"], forecast["broker_log_end_offset"]
    if (start, end) != (seen.get("start"), seen.get("end")):
        return f"plan: {start} to {end}; the broker: {seen.get('start')} to {seen.get('end')}"
    return ""
