"""Case files among the paths of a command line."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from logtool.case import opening
from logtool.case.archive import is_safe
from logtool.errors import UnreadableError, UsageError
from logtool.log.inputs import NodeDir


def with_cases(given: Iterable[NodeDir], *, taken: bool) -> Iterator[NodeDir]:
    """Yield the directories that are given, with those in a case file in its place.

    `taken` is False for a command that does not take case files: UsageError.
    """
    for one in given:
        path, place = opening.place_in(one.path)
        if not opening.is_case(path):
            yield one
            continue
        if not taken:
            text = "is a case file; only verify, plan, gaps, txns, watermark, diff and stat take it"
            raise UsageError(f"{path}: {text}")
        yield from dirs_of(NodeDir(path, one.node), place)


def dirs_of(one: NodeDir, place: str = "") -> Iterator[NodeDir]:
    """Yield the directories in a case file, or the place in it; UnreadableError for other files.

    UsageError for one in which damage looks different: all commands look at damage.
    """
    found = opening.expanded(one.path)
    for changed in found.manifest.inexact:
        if changed.damage:
            text = f"{one.path}: {changed.path}, byte {changed.position}: {changed.reason}"
            raise UsageError(f"{text}; run the command where the log dir is")
    for inner in found.manifest.dirs:
        node = one.node if inner.node is None else inner.node
        if not place:
            yield NodeDir(Path(found.home, inner.given), node)
        elif f"{place}/".startswith(f"{inner.place}/") and is_safe(place):
            yield NodeDir(Path(found.home, place), node)
            return
    if place:
        raise UnreadableError(one.path, f"has no directory for {place}")


def require(paths: Iterable[Path], *, records: bool, crcs: bool, blocks: bool) -> None:
    """Raise UsageError if a case file that was expanded lacks what a command looks at."""
    where = "run the command where the log dir is"
    for path in paths:
        found = opening.manifest_above(path)
        if found is None:
            continue
        if blocks:
            raise UsageError(f"a case file does not know the blocks that files take; {where}")
        if records and found.inexact:
            first = found.inexact[0]
            raise UsageError(f"{first.path}, byte {first.position}: {first.reason}; {where}")
        if crcs and found.replaced:
            text = f"{found.replaced} batches have too little payload to keep their CRCs"
            raise UsageError(f"the case file lacks CRCs: {text}; {where}")
