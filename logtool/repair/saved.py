"""The objects that `salvage` prints about what it saved and what it could not save."""

from collections.abc import Sequence
from pathlib import Path

from logtool.lazy_dataclass import dataclass
from logtool.loading.result import LoadResult, Outcome
from logtool.repair.ranges import Kept, Part, Rejected
from logtool.repair.transactions import Torn


@dataclass(frozen=True, slots=True)
class SavedPartition:
    """One partition that was saved."""

    path: Path
    target: Path
    topic: str | None
    partition: int | None
    log_start_offset: int
    log_end_offset: int
    segments: int
    batches: int
    records: int
    bytes: int
    filled_batches: int
    """Batches of other copies."""
    filled_bytes: int
    rejects: int
    """Ranges that no copy has."""
    rejected_bytes: int
    outcome: Outcome = Outcome.LOADS
    """The outcome of a broker's load of it."""
    reason: str | None = None
    """The reason why a broker does not start with it; None where it does."""
    readable_again: int | None = None
    """Offset up to which saved records had been deleted; they are readable again. None for none."""


@dataclass(frozen=True, slots=True)
class KeptReject:
    """A range that was not taken over, and the file that has its bytes."""

    one: Rejected
    topic: str | None
    partition: int | None
    crc32c: int | None = None
    sha256: str | None = None
    target: Path | None = None
    """File with the bytes; None if there are no bytes, or none can be read."""


@dataclass(frozen=True, slots=True)
class TornTransaction:
    """A transaction of a partition that may have lost records, or its marker."""

    one: Torn
    topic: str | None
    partition: int | None


@dataclass(frozen=True, slots=True)
class KeptImage:
    """The file with all that a failing disk gives of a log."""

    path: Path
    target: Path
    map: Path
    length: int
    unread: int
    """Bytes that the disk does not give."""


@dataclass(frozen=True, slots=True)
class SavedRecords:
    """The file with the records of a partition that was saved."""

    topic: str | None
    partition: int | None
    path: Path
    target: Path
    records: int
    command: str | None = None
    """The command that produces them again."""


@dataclass(frozen=True, slots=True)
class DecodedReject:
    """The file with what decodes of a range that was not taken over."""

    kept: KeptReject
    target: Path
    records: int
    proven: int
    """Records whose own CRC holds."""
    reason: str | None
    """The reason why the rest does not decode; None where all does."""


Saved = SavedPartition | KeptReject | TornTransaction | KeptImage | SavedRecords | DecodedReject


def saved(
    place: tuple[str | None, int | None],
    paths: tuple[Path, Path],
    parts: Sequence[Part],
    ends: tuple[int, int],
    loaded: LoadResult | None = None,
) -> SavedPartition:
    """Return the object about a saved partition.

    `place` is its topic and number, `paths` are its old and its new directory, `ends` are its log
    start and log end offset, and `loaded` is the result of a broker's load; None for Redpanda.
    """
    extents = [part for part in parts if isinstance(part, Kept)]
    left = [part for part in parts if isinstance(part, Rejected) and part.filled_from is None]
    filled = [extent for extent in extents if extent.filled]
    outcome = Outcome.LOADS if loaded is None else loaded.outcome
    return SavedPartition(
        path=paths[0],
        target=paths[1],
        topic=place[0],
        partition=place[1],
        log_start_offset=ends[0],
        log_end_offset=ends[1],
        segments=len({extent.path for extent in extents}),
        batches=sum(extent.batches for extent in extents),
        records=sum(extent.records for extent in extents),
        bytes=sum(extent.size for extent in extents),
        filled_batches=sum(extent.batches for extent in filled),
        filled_bytes=sum(extent.size for extent in filled),
        rejects=len(left),
        rejected_bytes=sum(one.length for one in left),
        outcome=outcome,
        reason=None if loaded is None or outcome is Outcome.LOADS else loaded.reason,
    )
