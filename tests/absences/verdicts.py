"""Verdicts: the words of the commands, compared with the start of the broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from absences.sayings import Said, Sayings
from absences.traffic import GROUPS

Object = Mapping[str, Any]
RIGHT, FALSE_CALM, FALSE_ALARM = "right", "false calm", "false alarm"
WRONG, UNPROVABLE, MENDED = "wrong outcome", "unprovable", "mended"
UNREAD = "not read"
VERDICTS = (RIGHT, MENDED, UNREAD, UNPROVABLE, FALSE_CALM, FALSE_ALARM, WRONG)
"""`MENDED`: nothing is worse, and there are warnings about files that the start made again.
`UNREAD`: every warning is about a file that still lacks entries, and that no client here reads."""
_NOT_READ_HERE = ("time-index/", "leader-epoch/missing", "producer-snapshot/lost")
"""Beginnings of the codes about such files: look-ups and retention by time, followers, and
producers use them."""
JUDGES = ("verify", "plan", "doctor")
"""Commands that judge every case."""
_LOWER = "the log ends lower"
_MAY_WAIT = frozenset({"unknown", "absent", "lost"})
"""Actions of `plan` at which a node may wait for others."""


@dataclass
class Verdict:
    """The verdict on one case."""

    kinds: list[str]
    """Members of `VERDICTS`; `RIGHT` stands alone."""
    harm: list[str]
    """Losses and other changes since the control, in words."""
    notes: list[str] = field(default_factory=list)
    """Commands that are calm, wrong predictions, and findings."""


def harm_of(first: Object, second: Object) -> list[str]:
    """Return the losses of readers and groups, and records that they should not see."""
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
    end: int, unprovable: bool = False,
) -> Verdict:  # fmt: skip
    """Return the verdict on a deletion in one partition.

    `usual` is said of the base itself; `end` is the end of the log in the control.
    """
    harm = harm_of(first, second)
    judges = list(JUDGES)
    if first.get("end", end) < end:
        judges.append("watermark")
    if first.get("groups"):
        judges.append("groups")
    alarms = {one: above(said.of(one, partition), usual.of(one, partition)) for one in judges}
    kinds: list[str] = []
    notes: list[str] = []
    calm = [one for one in judges if not alarms[one]]
    if harm and calm:
        kinds.append(UNPROVABLE if unprovable and len(calm) == len(judges) else FALSE_CALM)
        notes.append(f"calm: {', '.join(calm)}")
    elif not harm and len(calm) < len(judges):
        kinds.append(_without_harm([alarms[one] for one in judges], lacks=first["lacks"]))
    if wrong := _wrong(partition, said, first):
        kinds.append(WRONG)
        notes.append(wrong)
    shown = dict.fromkeys(word for one in judges for word in alarms[one])
    return Verdict(kinds or [RIGHT], harm, [*notes, *shown])


def _without_harm(alarms: Sequence[Sequence[str]], *, lacks: Any) -> str:
    """Return the verdict on words above info where nothing is lost.

    `lacks` are the files that the start did not make again.
    """
    words = [word for said in alarms for word in said]
    if any(word.startswith("error") for word in words):
        return FALSE_ALARM
    if not lacks:
        return MENDED
    codes = [_code(word).partition(" ")[2] for word in words]
    return UNREAD if all(code.startswith(_NOT_READ_HERE) for code in codes) else FALSE_ALARM


def above(said: Said, usual: Said) -> list[str]:
    """Return the words above info, without the codes that the base has too."""
    codes = {_code(word) for word in usual.words}
    return [word for word in said.words if _code(word) not in codes]


def _code(word: str) -> str:
    return word.partition(":")[0]


def refuses(said: Sayings, partition: str) -> bool:
    """Return whether `plan` has the broker refuse to start because of a partition."""
    words = [_code(word).split()[1] for word in said.of("plan", partition).words]
    return bool({"refuse", "refuses"} & set(words))


def _wrong(partition: str, said: Sayings, seen: Object) -> str:
    """Return how the forecast of `plan` differs from the first start; empty if it does not."""
    words = [_code(word).split()[1] for word in said.of("plan", partition).words]
    forecast = said.planned.get(partition)
    planned = refuses(said, partition)
    if planned != bool(seen.get("refused")):
        does = "does not start" if seen.get("refused") else "starts"
        return f"plan: {'refuses' if planned else 'starts'}; the broker {does}"
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


def judge_node(
    said: Sayings, usual: Sayings, starts: Sequence[Object], control: Mapping[str, Object], *,
    of_metadata: bool, unprovable: bool, only_replica: bool = True,
) -> Verdict:  # fmt: skip
    """Return the verdict on a deletion that concerns a node.

    Start and end of logs are compared with the forecast if the node has the `only_replica` of each.
    """
    harm = list(dict.fromkeys(
        f"{'' if number == 0 else 'at the next start '}{one}"
        for number, start in enumerate(starts) for one in harm_of_node(start, control)
    ))  # fmt: skip
    alarms = {one: above(said.everything(one), usual.everything(one)) for one in said.statuses}
    judges = list(JUDGES)
    if of_metadata and harm:
        judges.append("quorum")
    if any(_LOWER in one for one in harm):
        judges.append("watermark")
    if starts[0]["starts"] and starts[0]["groups"] and not _is_leaderless(starts[0]):
        judges.append("groups")
    calm = [one for one in judges if not alarms[one] and said.statuses[one] == 0]
    kinds: list[str] = []
    notes: list[str] = []
    if harm and calm:
        kinds.append(UNPROVABLE if unprovable and len(calm) == len(judges) else FALSE_CALM)
        notes += [f"calm: {one} ({said.calm.get(one, 'no sentence')})" for one in calm]
    elif not harm and any(alarms[one] for one in JUDGES):
        kinds.append(_without_harm([alarms[one] for one in JUDGES], lacks=starts[0]["lacks"]))
    compared = control if only_replica else {}
    if wrong := _wrong_of_node(said, starts[0], compared):
        kinds.append(WRONG)
        notes.append(wrong)
    shown = dict.fromkeys(word for one in judges for word in alarms[one])
    return Verdict(kinds or [RIGHT], harm, [*notes, *shown])


def _is_leaderless(start: Object) -> bool:
    """Return whether a coordinator has no leader, so that nothing is known of groups."""
    return any(
        name.startswith(GROUPS) and seen.get("error") for name, seen in start["partitions"].items()
    )


def harm_of_node(start: Object, control: Mapping[str, Object]) -> list[str]:
    """Return the losses of a start since the control, counted by kind."""
    return list(_harm_of_node(start, control))


def _harm_of_node(start: Object, control: Mapping[str, Object]) -> Iterator[str]:
    if not start["starts"]:
        what = "no broker comes up" if start["waits"] else "the broker does not start"
        yield f"{what} ({start['error'][:160]})"
        return
    if start["offline"]:
        yield f"offline: {', '.join(start['offline'])}"
    if start["stray"]:
        yield f"{len(start['stray'])} partitions renamed to -stray"
    counts: dict[str, int] = {}
    for seen in start["partitions"].values():
        for key in seen:
            if key not in ("start", "end"):
                word = f"{key} {seen[key]}" if key in ("error", "unread") else key
                counts[word] = counts.get(word, 0) + 1
    lower = sum(
        start["partitions"][name].get("end", one["end"]) < one["end"]
        for name, one in control.items()
    )
    if lower:
        counts[_LOWER] = lower
    for word, count in counts.items():
        yield f"{count} partitions: {word}"
    if start["groups"]:
        yield f"{len(start['groups'])} groups have other offsets"


def _wrong_of_node(said: Sayings, start: Object, control: Mapping[str, Object]) -> str:
    """Return how the forecast differs from the start of the node."""
    words = said.everything("plan").words
    actions = {_code(word).split()[1] for word in words}
    refused = bool({"refuse", "refuses"} & actions)
    may_wait = refused or bool(_MAY_WAIT & actions)
    comes_up = start["starts"]
    if refused if comes_up else not (may_wait if start["waits"] else refused):
        does = "starts" if comes_up else "waits" if start["waits"] else "does not start"
        return f"plan: {'refuses' if refused else 'starts'}; the broker {does}"
    if not comes_up:
        return ""
    wrong = []
    for name in control:
        seen = {**start["partitions"][name], **({"stray": True} if name in start["stray"] else {})}
        if seen.get("error"):
            continue
        if one := _wrong(name, said, seen):
            wrong.append(f"{name}: {one}")
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return f"{wrong[0]}{more}" if wrong else ""
