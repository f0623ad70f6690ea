"""Remote segments that were deleted although retention keeps their records.

The leader deletes the oldest segments while the log is larger than ``retention.bytes``, and those
whose largest timestamp is older than ``retention.ms``. Before 4.3.2 a new leader may count
its local segments twice, and then deletes records that are in retention (KAFKA-20732). The settings
of that moment are not known: today's count. The bytes that were only local at that moment are
estimated from above, by what was copied later and what is only local now, so that a deletion is
named only if it is too early in any case. Source: ``RemoteLogManager`` (Kafka 3.9 and 4.2).
"""

from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.messages.remote_log import SegmentState
from logtool.remote import findings
from logtool.remote.lineage import DELETED, NOWHERE, UNKNOWN, PartitionLineage
from logtool.remote.segments import RemoteSegment


def judge(lineage: PartitionLineage, ms: int | None, size: int | None) -> list[Finding]:
    """Return the finding about deletions that were too early, if there are any.

    `ms` and `size` are ``retention.ms`` and ``retention.bytes``, -1 for no limit, None for a limit
    that is not known. Nothing is judged without a local copy or if the log start was moved into a
    segment, which the deletion of records by a client explains.
    """
    local, remote = lineage.local, lineage.remote
    deleted = [
        segment for state, segment in remote.timeline
        if state is SegmentState.DELETE_STARTED and segment.copied_ms is not None
    ]  # fmt: skip
    if not deleted or local is None:
        return []
    if ms is None or size is None:
        lineage.unjudged_deletions = len(deleted)
        return []
    end = max(one.end_offset for one in deleted) + 1
    if remote.deletion is not None or local.log_start > end:
        return []
    wrong = [
        segment for segment, total in _sizes(lineage)
        if not _is_old(segment, ms) and not (0 <= size <= total - segment.size)
        and _is_missed(segment, lineage)
    ]  # fmt: skip
    if not wrong:
        return []
    limit = "no limit of size" if size < 0 else f"retention.bytes={size}"
    age = "no limit of age" if ms < 0 else f"retention.ms={ms}"
    most = max(total for segment, total in _sizes(lineage) if segment is wrong[0])
    why = f"{age}, {limit}, and the log had at most {wording.size(most)} then"
    return [findings.deleted_early(wrong, why)]


def _is_old(segment: RemoteSegment, ms: int) -> bool:
    """Return whether a segment was past the age limit when its deletion began."""
    return ms >= 0 and segment.max_timestamp_ms <= (segment.deleting_ms or 0) - ms


def _is_missed(segment: RemoteSegment, lineage: PartitionLineage) -> bool:
    """Return whether no other segment holds the records today."""
    readable = [one for one in lineage.ranges if one.place not in (NOWHERE, DELETED, UNKNOWN)]
    ends = (segment.start_offset, segment.end_offset)
    return not all(
        any(one.first_offset <= at <= one.last_offset for one in readable) for at in ends
    )


def _sizes(lineage: PartitionLineage) -> list[tuple[RemoteSegment, int]]:
    """Return each copied segment whose deletion began, and the largest size of the log before."""
    timeline, local = lineage.remote.timeline, lineage.local
    later = sum(one.size for state, one in timeline if state is SegmentState.COPY_FINISHED)
    highest = max((one.end_offset for state, one in timeline
                   if state is SegmentState.COPY_FINISHED), default=-1)  # fmt: skip
    only_local = local.bytes_from(highest + 1) if local else 0
    remote, found = 0, []
    twice = 0
    for state, segment in timeline:
        if state is SegmentState.COPY_FINISHED:
            later -= segment.size
            remote += segment.size
            # A broker also counts a segment as local that begins at the last copied offset.
            twice = segment.size if segment.start_offset == segment.end_offset else 0
        elif segment.copied_ms is not None:
            found.append((segment, remote + later + only_local + twice))
            remote -= segment.size
    return found
