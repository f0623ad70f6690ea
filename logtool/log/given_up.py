"""Segments that a start of Redpanda gave up (``.cannotrecover``), and which of them held a log.

One that holds nothing but zeros is room that was reserved and never written: nothing is lost by it.
"""

from logtool.errors import UnreadableError
from logtool.formats.redpanda import names
from logtool.formats.redpanda.names import RedpandaFileKind
from logtool.log.dir import Partition
from logtool.log.file import File

_PIECE = 1024 * 1024


def files_of(partition: Partition) -> list[File]:
    """Return the segments of a partition that a start gave up."""
    return [
        file
        for file in partition.others
        if names.parse_partition_file(file.path.name).kind is RedpandaFileKind.CANNOT_RECOVER
    ]


def is_room(file: File) -> bool:
    """Return whether a file holds nothing but zeros; False where it cannot be read."""
    try:
        with file.open() as log:
            at = 0
            while at < log.size:
                piece = log.read(at, min(_PIECE, log.size - at))
                if not len(piece) or bytes(piece).count(0) < len(piece):
                    return False
                at += len(piece)
    except UnreadableError:
        return False
    return True
