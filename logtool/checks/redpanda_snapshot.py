"""Rules for the snapshots that a start of Redpanda reads: Raft's of a partition, and a kvstore's.

Of Raft's the CRCs cover the frame and the metadata, of a kvstore's its one batch as well. A start
ends where one does not hold, for there is nothing to take its place: Raft has the log begin there.
Source: ``storage/snapshot.cc``, ``storage/kvstore.cc`` (``load_snapshot_from_reader``),
``raft/consensus.cc`` (``hydrate_snapshot``; Redpanda 1c6cff34ea, 2024-12-20).
"""

from collections.abc import Iterator

from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.redpanda import kvstore, names, snapshot
from logtool.formats.redpanda.names import RedpandaFileKind
from logtool.formats.redpanda.snapshot import RaftSnapshot
from logtool.log.dir import Partition
from logtool.log.file import File

_LARGEST = 256 * 1024 * 1024
"""Bytes that are read of one: a kvstore rolls at 16 MiB, Raft's metadata have some hundred."""


def check(partition: Partition) -> Iterator[Finding | UnreadableError]:
    """Yield what is wrong with the snapshot of a partition, where there is one."""
    for file in partition.others:
        if names.parse_partition_file(file.path.name).kind is not RedpandaFileKind.SNAPSHOT:
            continue
        try:
            with file.open() as opened:
                found = snapshot.parse(opened.read(0, min(file.size, _LARGEST)))
        except UnreadableError as error:
            yield error
            continue
        if fault := _fault(found) or (_kvstore_fault(found) if _in_kvstore(file) else None):
            yield Finding("partition/snapshot", fault, 0, path=file.path)


def _in_kvstore(file: File) -> bool:
    return file.path.absolute().parent.parent.name == "kvstore"


def _fault(found: RaftSnapshot) -> str | None:
    if found.header_crc is None:
        return f"holds {wording.count(len(found.payload), 'byte')}, less than a header"
    if not found.header_crc_holds:
        return f"CRC-32C of the header does not match the stored {found.header_crc}"
    if found.version != snapshot.VERSION:
        return f"has version {found.version}, a broker reads version {snapshot.VERSION} alone"
    if len(found.metadata) != found.metadata_size:
        return f"has {len(found.metadata)} of {found.metadata_size} bytes of metadata"
    if not found.metadata_crc_holds:
        return f"CRC-32C of the metadata does not match the stored {found.metadata_crc}"
    return None


def _kvstore_fault(found: RaftSnapshot) -> str | None:
    batch = kvstore.parse_snapshot(found.payload)
    if batch is None:
        return "its batch of keys and values is not whole"
    return None if batch.crc_holds else "a CRC-32C of its batch of keys and values does not match"
