"""The report of the campaign, made from the outcomes that are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from absences.campaign import Judged
from absences.verdicts import RIGHT, VERDICTS

_ABOUT = """\
Made by `make absences`. Real brokers wrote the log dirs (`tests/absences/bases.py`). A case removes
or empties something in them. `verify`, `plan`, `doctor`, `watermark`, `quorum` and `groups` judge
the rest. A broker starts on it twice, and clients read everything: consumers of all records and of
committed ones, and the committed offsets of each group.

- right: the commands are alarmed if readers, groups or the start lose something, and only then, and
  `plan` predicts start and end of the log
- mended: nothing is lost, and warnings are about files that the start made again
- not read: nothing is lost for these clients; the warnings are about a time index, leader epochs or
  producers that are gone for good, which look-ups and retention by time, followers and writers use
- unprovable: something is lost, and no file that is left says so
- false calm: something is lost, and one of the commands is calm
- false alarm: nothing is lost, and a finding or an action is above info
- wrong outcome: the prediction of `plan` differs from the start"""


def lines(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines of the report."""
    cases = [one for one in judged if one.deletion != "nothing"]
    bases = list(dict.fromkeys(one.base for one in judged))
    yield "# Deletions: what logtool says, and what brokers and clients do"
    yield ""
    yield from _ABOUT.splitlines()
    yield ""
    yield f"{len(cases)} cases in {len(bases)} bases; partitions and nodes that nothing was removed"
    yield "from are judged too, and counted apart."
    yield ""
    kinds = [kind for kind in VERDICTS if any(kind in one.verdict.kinds for one in judged)]
    yield from _table("base", kinds, cases, lambda one: one.base)
    yield from _table("class", kinds, cases, lambda one: one.shape)
    yield from _table("nothing removed", kinds,
                      [one for one in judged if one.deletion == "nothing"],
                      lambda one: one.base)  # fmt: skip
    yield from _table("deletion", kinds, cases, lambda one: one.deletion)
    for kind in kinds:
        if kind != RIGHT:
            yield from _section(kind, [one for one in judged if kind in one.verdict.kinds])


def _section(kind: str, judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the cases of one verdict; those with the same words stand together."""
    if not judged:
        return
    yield f"## {kind.capitalize()}"
    yield ""
    alike: dict[tuple[object, ...], list[Judged]] = defaultdict(list)
    for one in judged:
        codes = tuple(dict.fromkeys(note.partition(":")[0] for note in one.verdict.notes
                                    if not note.startswith("plan:")))  # fmt: skip
        calm = tuple(note for note in one.verdict.notes if note.startswith("calm:"))
        alike[one.deletion, calm, codes].append(one)
    for (deletion, *_), found in alike.items():
        first = found[0]
        yield f"- {deletion}: {len(found)} cases"
        by_base: dict[str, list[str]] = defaultdict(list)
        for one in found:
            by_base[one.base].append(one.case.partition(": ")[0])
        if not first.shape.startswith("node"):
            for base, names in by_base.items():
                yield f"  - {base}: {', '.join(names)}"
        else:
            yield f"  - {', '.join(by_base)}"
        yield f"  - seen, {first.case}: {'; '.join(first.verdict.harm[:6]) or 'no harm'}"
        for note in first.verdict.notes[:6]:
            yield f"  - {note[:240]}"
    yield ""


def _table(
    head: str, kinds: Sequence[str], judged: Sequence[Judged], key: Callable[[Judged], str]
) -> Iterator[str]:
    """Yield a table of counts."""
    yield f"| {head} | cases | {' | '.join(kinds)} |"
    yield "| --- |" + " --- |" * (len(kinds) + 1)
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)
    for name, found in groups.items():
        counts = Counter(kind for one in found for kind in one.verdict.kinds)
        yield f"| {name} | {len(found)} | {' | '.join(str(counts[kind]) for kind in kinds)} |"
    yield ""
