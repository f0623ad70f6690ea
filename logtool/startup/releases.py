"""The start of every release on the same log dirs: which start, and what stops the others.

No partition is loaded: damage of a log that only some releases notice is not found here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.actions import Action
from logtool.checks.broker_dirs import BrokerDirs
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import LogDir
from logtool.log.flavour import Flavour
from logtool.log.inputs import OpenedPath, open_each
from logtool.metadata import releases
from logtool.metadata.releases import METADATA_VERSION, Support
from logtool.node.identity import identify
from logtool.node.node import Node
from logtool.node.options import StartOptions
from logtool.startup.log_dir_start import LogDirStart

STARTS, REFUSES, STRAYS = "starts", "refuses", "strays"


@dataclass(frozen=True, slots=True)
class ReleaseStart:
    """The start of one release."""

    kafka: str
    outcome: str
    """``starts``; ``refuses``; ``strays`` if it starts and puts every partition aside."""
    first_level: int
    """Lowest ``metadata.version`` that the release supports."""
    last_level: int
    """Highest ``metadata.version`` that the release supports."""
    cause: str | None = None
    """Kind of the first obstacle: ``level``, ``record``, ``quorum-state``, ``zookeeper``, ``file``;
    None if the release starts."""
    reason: str | None = None
    path: Path | None = None
    position: int | None = None


def of_all_releases(
    paths: Sequence[Path | OpenedPath], assumed: StartOptions, flavour: Flavour | None = None
) -> Iterator[ReleaseStart | UnreadableError]:
    """Yield the start of each release on log dirs of one node, the oldest first."""
    roots: dict[Path, LogDir] = {}
    for one in open_each((path for path in paths if isinstance(path, Path)), flavour):
        if isinstance(one, UnreadableError):
            yield one
            continue
        try:
            root = one.read()
        except UnreadableError as error:
            yield error
            continue
        roots.setdefault(root.path, root)
    if not roots:
        return
    identities = [identify(root) for root in roots.values()]
    first: Node | None = None
    for support in releases.supported().values():
        node = Node(identities, support.release, assumed.static)
        if first:
            node.image, node.unread = first.image, first.unread
        first = first or node
        yield _start(node, list(roots.values()), replace(assumed, kafka=support.release), support)


def _start(
    node: Node, roots: Sequence[LogDir], assumed: StartOptions, support: Support
) -> ReleaseStart:
    """Return the start of one release."""
    broker = BrokerDirs(node)
    starts = [LogDirStart(root, assumed, broker) for root in roots]
    causes = {(one.path, one.text): one.cause for start in starts for one in start.hindrances}
    refused = _first("refuse", starts)
    aside = _first("stray", starts)
    found = refused or aside
    cause = None
    if found:
        cause = causes.get((found.path, found.reason)) or (
            "zookeeper" if found is aside else "file"
        )
    levels = support.offers[METADATA_VERSION]
    return ReleaseStart(
        kafka=releases.text(support.release),
        outcome=REFUSES if refused else STRAYS if aside else STARTS,
        first_level=levels.first,
        last_level=levels.last,
        cause=cause,
        reason=found.reason if found else None,
        path=found.path if found else None,
        position=found.position if found else None,
    )


def _first(action: str, starts: Sequence[LogDirStart]) -> Action | None:
    """Return the first note of a kind on a log dir as a whole."""
    return next((one for start in starts for one in start.notes if one.action == action), None)
