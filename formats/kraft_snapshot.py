"""KRaft snapshots (``<end offset>-<epoch>.checkpoint``): the name, and the rules of the body.

The name, of which Kafka reads characters 0 to 19, 21 to 30 and the suffix:

==========================================  ==================================================
``<20 digits>-<10 digits>.checkpoint``      a snapshot of the offsets below the first number
``<20>-<10>-<digits>.checkpoint.part``      being written
``<20>-<10>.checkpoint.deleted``            scheduled for deletion
==========================================  ==================================================

The body is batches of magic 2. The first is a control batch that begins with a SNAPSHOT_HEADER, the
last a control batch with a SNAPSHOT_FOOTER; offsets start at 0 and have nothing to do with offsets
of the log; the leader epoch of every batch is that of the name. Kafka's reader insists on the
header only, but a snapshot without footer is incomplete. ``bootstrap.checkpoint`` has the same body
with epoch 0. The batches are decoded elsewhere; `check` takes what it needs to know of them.
Source: ``Snapshots``, ``RecordsSnapshotWriter``, ``RecordsSnapshotReader``, ``BatchFileWriter``
(Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum

from logtool.findings import Finding
from logtool.formats.java_text import parse_int, parse_long
from logtool.lazy_dataclass import dataclass

SUFFIX = ".checkpoint"
SNAPSHOT_HEADER = 3
"""Control record type."""
SNAPSHOT_FOOTER = 4
"""Control record type."""

_OFFSET = slice(0, 20)
_EPOCH = slice(21, 31)
_CANONICAL = re.compile(r"[0-9]{20}-[0-9]{10}(?:|(-[0-9]+))")


class SnapshotState(StrEnum):
    """State of a snapshot by its suffix. The value is the text that follows ``.checkpoint``."""

    COMPLETE = ""
    PARTIAL = ".part"
    DELETED = ".deleted"


@dataclass(frozen=True, slots=True)
class SnapshotName:
    """The name of a KRaft snapshot; `name` is kept as it was."""

    name: str
    state: SnapshotState
    end_offset: int | None
    """Exclusive; None where Kafka would throw."""
    epoch: int | None
    """None where Kafka would throw."""
    canonical: bool
    """True if Kafka writes exactly this name."""


@dataclass(frozen=True, slots=True)
class BodyBatch:
    """Fields of one batch of the body that the rules need."""

    position: int
    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    control_types: tuple[int, ...] | None = None
    """Types of the control records in order; None for a batch of data."""


def parse(name: str) -> SnapshotName | None:
    """Read a file name as Kafka does; None if it has none of the three suffixes."""
    for state in SnapshotState:
        if name.endswith(SUFFIX + state):
            break
    else:
        return None
    # A part that is cut short is no number for Kafka either: its substring() throws.
    end_offset = parse_long(name[_OFFSET]) if len(name) >= _OFFSET.stop else None
    epoch = parse_int(name[_EPOCH]) if len(name) >= _EPOCH.stop else None
    form = _CANONICAL.fullmatch(name.removesuffix(SUFFIX + state))
    return SnapshotName(
        name=name,
        state=state,
        end_offset=end_offset,
        epoch=epoch,
        canonical=form is not None
        and end_offset is not None
        and epoch is not None
        and (form.group(1) is not None) == (state is SnapshotState.PARTIAL),
    )


def encode(name: SnapshotName) -> str:
    """Return the name `parse` was given."""
    return name.name


def check(batches: Sequence[BodyBatch], *, epoch: int | None = None) -> Iterator[Finding]:
    """Yield every broken rule of a body, in file order; `epoch` is that of the file name."""
    if not batches:
        yield Finding(
            "kraft-snapshot/header", "expected a SNAPSHOT_HEADER batch, found no batch", position=0
        )
        return
    expected_offset = 0
    for number, batch in enumerate(batches):
        yield from _check_control(batches, number)
        if batch.base_offset != expected_offset:
            yield _finding(
                "offsets", batch, f"base offset {expected_offset}, found {batch.base_offset}"
            )
        expected_offset = batch.last_offset + 1
        if epoch is not None and batch.partition_leader_epoch != epoch:
            yield _finding(
                "epoch",
                batch,
                f"leader epoch {epoch} of the file name, found {batch.partition_leader_epoch}",
            )
    last = batches[-1]
    if SNAPSHOT_FOOTER not in (last.control_types or ()):
        yield _finding("footer", last, f"a SNAPSHOT_FOOTER in the last batch, found {_kind(last)}")


def _check_control(batches: Sequence[BodyBatch], number: int) -> Iterator[Finding]:
    batch = batches[number]
    types = batch.control_types or ()
    if number == 0 and types[:1] != (SNAPSHOT_HEADER,):
        yield _finding(
            "header", batch, f"a SNAPSHOT_HEADER in the first batch, found {_kind(batch)}"
        )
    elif SNAPSHOT_HEADER in (types if number else types[1:]):
        yield _finding("header", batch, f"one SNAPSHOT_HEADER, found another in batch {number + 1}")
    if number < len(batches) - 1 and SNAPSHOT_FOOTER in types:
        yield _finding(
            "footer",
            batch,
            f"the SNAPSHOT_FOOTER in the last batch, {len(batches)}, found it in {number + 1}",
        )


def _kind(batch: BodyBatch) -> str:
    if batch.control_types is None:
        return "data"
    return f"control records of types {list(batch.control_types)}"


def _finding(rule: str, batch: BodyBatch, expected: str) -> Finding:
    return Finding(f"kraft-snapshot/{rule}", f"expected {expected}", position=batch.position)
