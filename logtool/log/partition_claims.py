"""Claims of the files of a partition dir: offsets that its log reached when they were written."""

from collections.abc import Iterator
from contextlib import suppress

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import leader_epoch_checkpoint
from logtool.formats.names import FileKind
from logtool.log.claims import Claim, ClaimKind, Evidence
from logtool.log.dir import Partition


def end_claims(partition: Partition) -> Iterator[Claim]:
    """Yield the claims of leader epochs, producer snapshots, and indexes without a log.

    Each says that the log end offset was at least as large. A leader-epoch-checkpoint that cannot
    be read makes no claim.
    """
    about = partition.topic or "", partition.number or 0
    for file in partition.snapshots:
        offset = file.name.offset or 0
        yield Claim(about, ClaimKind.PRODUCER_SNAPSHOT, Evidence(file.path), offset)
    for file in partition.orphans:
        yield Claim(about, ClaimKind.SEGMENT_NAME, Evidence(file.path), file.name.offset or 0)
    epochs = partition.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if epochs is None:
        return
    with suppress(UnreadableError):
        for row in leader_epoch_checkpoint.parse(files.read_small(epochs.path)).rows:
            evidence = Evidence(epochs.path, row.line.number, row.line.position)
            yield Claim(about, ClaimKind.LEADER_EPOCH, evidence, max(0, row.start_offset))
