"""Faults that stop a start in the log dir of the metadata log: in files that only KRaft reads.

The metadata log is loaded as after a kill, from its first segment, even if checkpoints and the
marker say otherwise, and a broker does not start without it. Source: ``KafkaMetadataLog``,
``FileQuorumStateStore``, ``QuorumState.initialize`` (Kafka 3.3 to 3.9; 4.3 by its behaviour).
"""

from collections.abc import Iterator
from pathlib import Path

from logtool.disk import files
from logtool.formats import quorum_state
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.loader import load
from logtool.loading.result import Outcome, StartConditions
from logtool.log import opening
from logtool.log.file import File
from logtool.metadata.bootstrap import read_failure

DIRECTORY = f"{CLUSTER_METADATA}-0"
_TAKES_ANY_VERSION = (3, 3)
"""The newest release known to read a quorum-state of any version as one of version 0."""
_WITH_VERSION_1 = (3, 8)
"""The first release that knows a quorum-state of version 1."""
_KEEPS_BAD_STATE = (3, 9)
"""The first release that does not delete a quorum-state which it cannot read."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """One file that stops a start, or that a broker deletes to start without it."""

    path: Path
    text: str
    position: int | None = None
    stops: bool = True
    cause: str = ""
    """Kind of hindrance, in words of `logtool.startup.releases`; empty for damage."""


def hindrances(
    log_dir: Path, bootstrap: File | None, kafka: tuple[int, int]
) -> Iterator[Hindrance]:
    """Yield the files that hinder the start of a broker in the log dir of the metadata log."""
    if bootstrap and (refused := read_failure(bootstrap.path)):
        yield Hindrance(bootstrap.path, refused.reason, refused.position)
    listed = opening.open_partition(log_dir / DIRECTORY)
    loaded = load(listed, StartConditions(clean=False, kafka=kafka))
    if loaded.outcome not in (Outcome.LOADS, Outcome.UNKNOWN):
        yield Hindrance(listed.path, f"the metadata log does not load: {loaded.reason}")
    state = listed.fixed.get(FileKind.QUORUM_STATE)
    if not state:
        return
    value = quorum_state.parse(files.read_small(state.path))
    refusal = quorum_state.refusal(
        value, any_version=kafka <= _TAKES_ANY_VERSION, newest=int(kafka >= _WITH_VERSION_1)
    )
    if refusal and refusal.is_io_error and kafka < _KEEPS_BAD_STATE:
        text = f"is deleted, and the node forgets its vote: {refusal.message}"
        yield Hindrance(path=state.path, text=text, position=refusal.position, stops=False)
    elif refusal:
        cause = "" if quorum_state.refusal(value) else "quorum-state"
        yield Hindrance(state.path, refusal.message, refusal.position, cause=cause)
