"""Rules for the metadata log: each record must apply to the image of those before it.

If applying a record throws, a broker logs the fault, skips the record and continues with an image
that differs from that of its controllers; a controller exits. Source:
``MetadataBatchLoader.loadBatch``, ``SharedServer.metadataLoaderFaultHandler`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator
from dataclasses import replace

from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.findings import Broker, Finding, Remedy
from logtool.formats import wording
from logtool.formats.names import CLUSTER_METADATA
from logtool.metadata.state import MetadataImage


def ends_early(image: MetadataImage) -> Iterator[Finding]:
    """Yield a finding if reading stopped before the end; `logtool verify` shows the damage."""
    if image.damage is None:
        return
    path, position = image.damaged_at or (None, None)
    reason = image.damage.removeprefix(f"{path}: byte {position}: ")
    in_snapshot = path is not None and path == image.snapshot
    missing = (
        "the rest of the snapshot is not known"
        if in_snapshot
        else f"the records from offset {image.offset} onwards are not known"
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
    """Yield the damaged snapshots; older snapshots or the log were read in their place."""
    for one in image.skipped:
        if isinstance(one, UnreadableError):
            continue  # a read error is no damage
        yield Finding(
            "kraft-snapshot/damaged",
            f"{one.text}; logtool read the older snapshot in its place",
            position=one.position,
            path=one.path,
            topic=CLUSTER_METADATA,
            partition=0,
            next=f"logtool dump {shell.path(one.path)}",
        )


def check(image: MetadataImage) -> Iterator[Finding]:
    """Yield the first record that does not apply: later ones may be consequences of the first."""
    if not image.problems:
        return
    first, more = image.problems[0], image.problem_count - 1
    text = f"the record at offset {first.offset} cannot be applied: {first.text}"
    if more:
        text += f"; nor can {wording.count(more, 'record')} after it"
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


def at_every_start(finding: Finding) -> Finding:
    """Return a finding about the metadata log as every start treats it, also after a clean stop.

    A start recovers the metadata log from its first segment: it cuts the log before damage and
    builds indexes and snapshots of producers. Source: ``KafkaMetadataLog`` (Kafka 3.3 to 4.3).
    """
    is_torn = finding.code == "log/torn-tail-clean"
    is_mended = is_torn or finding.remedy is Remedy.RECOVER
    if is_torn:
        text = f"{finding.message}; each start recovers the metadata log, and cuts it here"
        finding = replace(finding, message=text)
    if is_mended:
        finding = replace(finding, remedy_override=Remedy.BROKER)
    if is_mended or finding.broker is Broker.IF_UNCLEAN:
        finding = replace(finding, broker_override=Broker.ALWAYS)
    return finding
