"""Whether the records of the metadata log can be applied, one after the other.

Where a broker's classes throw, a broker logs the fault, passes the record over and goes on with an
image that differs from that of its controllers; a controller ends. Source:
``MetadataBatchLoader.loadBatch``, ``SharedServer.metadataLoaderFaultHandler`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator

from logtool.disk import shell
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.names import CLUSTER_METADATA
from logtool.metadata.state import MetadataImage


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
