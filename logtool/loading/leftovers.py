"""Files that an interrupted job left in the directory of a log, treated as by a broker.

Source: ``LogLoader.removeTempFilesAndCollectSwapFiles`` and the steps behind it in
``LogLoader.load`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Sequence

from logtool.formats import names
from logtool.formats.names import FileKind, FileState, Reception
from logtool.loading.kafka_reading import OfflineError, StartFailsError
from logtool.loading.result import StartConditions
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import Shadow
from logtool.log.dir import Partition


def reject_odd_entries(partition: Partition) -> None:
    """Raise OfflineError for an entry that has the name of an index and is no file."""
    for path in partition.odd_entries:
        kind = names.parse_partition_file(path.name).kind
        if kind in names.INDEX_KINDS:
            raise OfflineError(f"{path.name} is not a file")


def drop_temporaries(shadow: Shadow) -> list[str]:
    """Delete the files of an interrupted job; return the files of a swap that was committed.

    StartFailsError for a name that has no offset.
    """
    left = []
    for name in shadow:
        file = names.parse_partition_file(name)
        if file.reception is Reception.STOPS_BROKER:
            raise StartFailsError(f"the name {name} has no offset")
        if name.endswith(FileState.DELETED) and not name.endswith(".checkpoint.deleted"):
            shadow.remove(name)
        elif file.state in (FileState.CLEANED, FileState.SWAP):
            left.append(file)
    gone = names.uncommitted_swaps(left)
    gone |= {file.name for file in left if file.state is FileState.CLEANED}
    for file in left:
        if file.name in gone:
            shadow.remove(file.name)
    return [file.name for file in left if file.name not in gone]


def finish_swaps(shadow: Shadow, swaps: Sequence[str], start: StartConditions) -> None:
    """Replace old segments by the new ones that were made of them.

    A broker deletes every file whose name begins with an offset in the range of the new ones and a
    dot, of whatever kind it is; a name without a dot, or with another character behind the number,
    stays.
    """
    low, high = 2**63, -1
    for name in swaps:
        file = names.parse_partition_file(name)
        if file.kind is not FileKind.LOG:
            continue
        segment = LoadedSegment(
            shadow=shadow, base_offset=file.offset or 0, state=FileState.SWAP, kafka=start.kafka
        )
        index = segment.name(FileKind.OFFSET_INDEX)
        low = min(low, segment.base_offset)
        high = max(high, segment.next_offset())
        if index not in shadow:
            # Made by the look for the next offset: full of zeros, and renamed with the rest.
            shadow.write(index, bytes(start.max_index_size // 8 * 8))
    for name in list(shadow):
        offset = names.leading_offset(name)
        if not name.endswith(FileState.SWAP) and offset is not None and low <= offset < high:
            shadow.remove(name)
    for name in list(shadow):
        if name.endswith(FileState.SWAP):
            shadow.rename(name, name.removesuffix(FileState.SWAP))
