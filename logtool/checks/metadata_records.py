"""Whether the records of the metadata log can be applied, one after the other.

Where a broker's classes throw, a broker logs the fault, passes the record over and goes on with an
image that differs from that of its controllers; a controller ends. Source:
``MetadataBatchLoader.loadBatch``, ``SharedServer.metadataLoaderFaultHandler`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator

from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.names import CLUSTER_METADATA
from logtool.metadata.state import MetadataImage


def ends_early(image: MetadataImage) -> Iterator[Finding]:
    """Yield where reading ended before the end, if it did: `logtool verify` has what is there."""
    if image.damage is None:
        return
    path, position = image.damaged_at or (None, None)
    reason = image.damage.removeprefix(f"{path}: byte {position}: ")
    in_snapshot = path is not None and path == image.snapshot
    missing = (
        "what else the snapshot says is not known"
        if in_snapshot
        else f"nothing is known of the records from offset {image.offset} on"
    )
    yield Finding(
        "metadata/ends-early",
        f"{missing}: {reason}",
        position=position,
        first_offset=None if in_snapshot else image.offset,
        path=path,
        topic=CLUSTER_METADATA,
        partition=0,
        next=f"logtool verify {shell.path(path.parent)}" if path else None,
    )


def skipped_snapshots(image: MetadataImage) -> Iterator[Finding]:
    """Yield the snapshots that are not whole, in whose place older ones or the log were read."""
    for one in image.skipped:
        if isinstance(one, UnreadableError):
            continue  # that is no damage
        yield Finding(
            "kraft-snapshot/damaged",
            f"{one.text}; what is older was read in its place",
            position=one.position,
            path=one.path,
            topic=CLUSTER_METADATA,
            partition=0,
            next=f"logtool dump {shell.path(one.path)}",
        )


def check(image: MetadataImage) -> Iterator[Finding]:
    """Yield the first record that does not apply: those behind it may only follow from that."""
    if not image.problems:
        return
    first, more = image.problems[0], image.problem_count - 1
    text = f"the record at offset {first.offset} cannot be applied: {first.text}"
    if more:
        text += f"; nor can {wording.count(more, 'record')} behind it"
    yield Finding(
        "metadata/does-not-apply",
        text,
        position=first.position,
        first_offset=first.offset,
        last_offset=first.offset,
        path=first.path,
        topic=CLUSTER_METADATA,
        partition=0,
        next=f"logtool metadata log {shell.path(first.path.parent)}",
    )
