"""What the rules for a log dir are told of each partition."""

from logtool.lazy_dataclass import dataclass
from logtool.log.file import File


@dataclass(slots=True)
class PartitionFacts:
    """What a log dir's own files are held against."""

    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_base_offset: int | None = None
    log_end_offset: int | None = None
    """Known once the active segment was read; a torn tail does not count."""
    newest_log_mtime_ns: int = 0
    newest_log: File | None = None
    made_ns: int = 0
    """When partition.metadata was written, which is when the partition was made; 0 without it."""
    topic_id: str | None = None
