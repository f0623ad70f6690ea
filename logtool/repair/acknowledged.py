"""Proof of the end of a log without leader epochs, such as one of magic 0 or 1.

Before there were leader epochs, Kafka itself took records below a high watermark for equal on all
brokers: a follower truncated its log there, and fetched the rest from its leader. So batches behind
our last one are taken up to the high watermark in the other copy's own
``replication-offset-checkpoint``. Source: KIP-101, "Current code"; ``ReplicaFetcherThread`` (Kafka
0.10.2).

If nothing of our log is left, both copies are of one partition if the topic ids are equal, or
without topic ids the cluster and the name. Our indexes must not contradict that: their offsets and
positions must hold in the other copy's segment with the same base offset.
"""

from collections.abc import Sequence

import numpy as np

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import offset_checkpoint, offset_index
from logtool.formats.names import FileKind
from logtool.formats.record_batch import BatchTable
from logtool.loading.shadow import ShadowFile
from logtool.log.dir import Partition
from logtool.node.identity import cluster_id_of, topic_id_of


def watermark(copy: Partition) -> int:
    """Return the high watermark of a copy, from the checkpoint of its log dir; 0 without one."""
    path = copy.path.resolve().parent / FileKind.REPLICATION_CHECKPOINT.value
    try:
        rows = offset_checkpoint.parse(files.read_small(path)).offsets
    except UnreadableError:
        return 0
    return rows.get((copy.topic or "", copy.number or 0), 0)


def is_same_partition(ours: Partition, copy: Partition) -> bool:
    """Return whether two partition dirs are known to be of one partition."""
    ids = [topic_id_of(one.path) for one in (ours, copy)]
    if any(ids):
        return ids[0] == ids[1]
    try:
        clusters = [cluster_id_of(one.path.resolve().parent) for one in (ours, copy)]
    except UnreadableError:
        return False
    return clusters[0] is not None and clusters[0] == clusters[1]


def index_denies(ours: Partition, copy: Partition, tables: Sequence[BatchTable]) -> bool:
    """Return whether one of our offset indexes contradicts a copy's batches.

    `tables` are of that copy. Segments that it does not have are not compared.
    """
    bases = {segment.base_offset for segment in copy.segments}
    found = [(one.base_offset, one.indexes.get(FileKind.OFFSET_INDEX)) for one in ours.segments]
    found += [(file.name.offset or 0, file) for file in ours.orphans]
    for base, file in found:
        if file is None or base not in bases or file.name.kind is not FileKind.OFFSET_INDEX:
            continue
        end = min((one for one in bases if one > base), default=2**63 - 1)
        there = {
            at: (first, last)
            for table in tables
            for at, first, last in zip(
                *(c.tolist() for c in (table.position, table.first_offset, table.last_offset)),
                strict=True,
            )
            if base <= first < end
        }
        try:
            entries = offset_index.parse(ShadowFile(file, file.size).read())
        except UnreadableError:
            continue
        rows = np.flatnonzero(entries.relative_offsets > 0)
        offsets, positions = entries.offsets(base)[rows], entries.positions[rows]
        for offset, position in zip(offsets.tolist(), positions.tolist(), strict=True):
            first, last = there.get(position, (offset, offset) if not there else (0, -1))
            if not first <= offset <= last:
                return True
    return False
