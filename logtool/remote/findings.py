"""Rules for ``__remote_log_metadata``, and for what its records say of partitions.

Source: ``ConsumerTask``, ``RemoteLogMetadataCache``, ``RemoteLogManager`` (Kafka 3.9 and 4.2).
"""

from collections.abc import Iterator

from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.messages.remote_log import TOPIC
from logtool.formats.names import FileKind
from logtool.remote.local import LocalCopy
from logtool.remote.segments import DroppedEvent, RemoteSegment, Unstarted
from logtool.times import shown


def unreadable_record(offset: int, reason: str) -> Finding:
    """Return a finding: a record at which the consumer of every broker stops."""
    text = f"offset {offset}: no broker can read this record: {reason}"
    return Finding("remote/unreadable-record", text, first_offset=offset, last_offset=offset)


def damaged(reason: str, position: int, length: int) -> Finding:
    """Return a finding: bytes of the metadata topic hold no sound batch."""
    text = f"{reason}; events of remote segments in these bytes are not known"
    return Finding("remote/missing-records", text, position=position, length=length)


def lost_end(lost: range) -> Finding:
    """Return a finding: a log of the metadata topic ends below its high watermark."""
    text = (
        f"the log ends at offset {lost.start}, but its high watermark was {lost.stop}: events of "
        f"remote segments in {wording.offsets(lost.start, lost.stop - 1)} are not known"
    )
    return Finding(
        "remote/missing-records", text, first_offset=lost.start, last_offset=lost.stop - 1
    )


def newer(count: int) -> Finding:
    """Return a finding: records of an unknown type or version."""
    text = f"logtool ignored {wording.count(count, 'record')} of an unknown type or version"
    return Finding("remote/newer-record", text)


def incomplete_history(log_start: int, missing: int) -> Finding:
    """Return a finding: records without a key are gone from a partition of the topic."""
    why = f"the log starts at offset {log_start}" if log_start else "the log was compacted"
    text = (
        f"{why}; {wording.count(missing, 'record')} of remote segments before its end are gone, "
        "and segments that only these records named are not known"
    )
    return Finding("remote/incomplete-history", text, first_offset=0, last_offset=log_start)


def absent_metadata_partition(number: int | None, count: int, example: str) -> Finding:
    """Return a finding: the metadata of tiered partitions is not in the given log dirs."""
    which = f"{TOPIC}-{number}" if number is not None else f"partitions of {TOPIC}"
    partitions = wording.count(count, "partition")
    text = (
        f"the given log dirs do not hold {which}, which has the remote segments of {partitions}, "
        f"such as {example}: their remote part is not known"
    )
    return Finding("remote/absent-metadata-partition", text)


def misplaced(place: str, offset: int, here: int, home: int, count: int) -> Finding:
    """Return a finding: events lie in another partition of the topic than brokers read."""
    text = (
        f"{TOPIC}-{here} has events of {place} from offset {offset} on, but brokers read "
        f"them in {TOPIC}-{home}, by the hash of its topic id and {count} partitions"
    )
    return Finding("remote/misplaced-record", text, first_offset=offset)


def hole(lost: range, why: str, *, inside: bool = False) -> Finding:
    """Return a finding: offsets that neither the local nor the remote part has.

    `inside` says that they lie between local segments.
    """
    text = (
        f"{wording.offsets(lost.start, lost.stop - 1)} are neither in local segments nor found in "
        f"remote storage: {why}"
    )
    if inside:
        text += f"; consumers skip them without an error and go on at {lost.stop}"
    return _of_range("remote/hole", text, lost)


def hidden(offsets: range, segments: list[RemoteSegment], local_start: int) -> Finding:
    """Return a finding: offsets in remote storage that no consumer gets, for a local hole."""
    named = ", ".join(_named(one) for one in segments)
    text = (
        f"no local segment holds {wording.offsets(offsets.start, offsets.stop - 1)}, which remote "
        f"storage has in {named}: a broker reads offsets from the local log start {local_start} on "
        f"in local segments alone, so consumers skip these without an error and go on at "
        f"{offsets.stop}"
    )
    return _of_range("remote/hidden", text, offsets)


def lacks_epochs(local: LocalCopy, present: list[RemoteSegment]) -> Iterator[Finding]:
    """Yield a finding if a log lacks the leader epochs of remote segments that are there."""
    first = local.file_epochs[0] if local.file_epochs else None
    needed = [one for one in present if one.is_readable]
    if not any(one.start_offset < local.local_start for one in needed):
        return
    file = FileKind.LEADER_EPOCH_CHECKPOINT
    text = f"{file} begins at offset {first[1]}" if first else f"{file} is missing or has no row"
    ended = [one for one in needed if first is None or one.leader_epochs[-1][0] < first[0]]
    if ended:
        span = wording.offsets(ended[0].start_offset, max(one.end_offset for one in ended))
        text += (
            f": as the leader the broker DELETES {wording.count(len(ended), 'remote segment')} "
            f"with {span} after its start, except those of leader epochs that the start finds in "
            "local segments"
        )
    else:
        text += ": brokers find no offset below it in remote storage"
    yield Finding(
        "leader-epoch/missing-remote", text, first_offset=local.log_start,
        last_offset=local.local_start - 1, path=local.path / file.value,
    )  # fmt: skip


def deleted_early(segments: list[RemoteSegment], why: str) -> Finding:
    """Return a finding: remote segments were deleted although retention keeps their records."""
    first, last = segments[0], segments[-1]
    lost = range(first.start_offset, last.end_offset + 1)
    size = wording.size(sum(one.size for one in segments))
    text = (
        f"{wording.count(len(segments), 'remote segment')} with "
        f"{wording.offsets(lost.start, lost.stop - 1)}, {size}, deleted from "
        f"{shown(first.deleting_ms or 0)} on, although today's settings keep the records: {why}"
    )
    return _of_range("remote/deleted-early", text, lost)


def unfinished_copy(segment: RemoteSegment, last_copy: str | None) -> Finding:
    """Return a finding: a copy is not finished, and is given up unless it is the `last_copy`."""
    if segment.segment_id == last_copy:
        return _copy_unfinished(segment)
    text = (
        f"broker {segment.broker_id} began to copy {_named(segment)} at "
        f"{shown(segment.started_ms)} and did not finish it; later copies began after it"
    )
    return _of_range("remote/dangling-copy", text, segment.covers)


def _copy_unfinished(segment: RemoteSegment) -> Finding:
    text = (
        f"broker {segment.broker_id} began to copy {_named(segment)} at "
        f"{shown(segment.started_ms)}; no record says that the copy is finished"
    )
    return _of_range("remote/copy-unfinished", text, segment.covers)


def delete_unfinished(segment: RemoteSegment) -> Finding:
    """Return a finding: a deletion began and is not finished."""
    text = (
        f"the deletion of {_named(segment)} began at {shown(segment.deleting_ms or 0)}; no record "
        "says that it is finished, so objects may be left in remote storage"
    )
    return _of_range("remote/delete-unfinished", text, segment.covers)


def unreferenced(segment: RemoteSegment) -> Finding:
    """Return a finding: brokers look up no offset in a copied segment."""
    text = f"brokers look up no offset in {_named(segment)}: another copy has its offsets"
    return _of_range("remote/unreferenced", text, segment.covers)


def outside_lineage(segment: RemoteSegment, epochs: str) -> Finding:
    """Return a finding: the leader epochs of a segment are not those of the log."""
    own = ", ".join(f"{epoch} from {first}" for epoch, first in segment.leader_epochs)
    text = (
        f"{_named(segment)} has the leader epochs {own}, which do not fit those of the log, "
        f"{epochs}: the records come from a leader that lost an unclean election"
    )
    return _of_range("remote/outside-lineage", text, segment.covers)


def beyond_log_end(segment: RemoteSegment, log_end: int) -> Finding:
    """Return a finding: remote storage reaches further than the local log."""
    text = (
        f"{_named(segment)} is in remote storage, but the furthest local copy ends at {log_end}: "
        "it lost the records behind its end, or it is an older copy"
    )
    return _of_range("remote/beyond-log-end", text, segment.covers)


def below_log_start(segments: list[RemoteSegment], log_start: int) -> Finding:
    """Return a finding: remote segments below the log start offset."""
    first, last = segments[0], segments[-1]
    lost = range(first.start_offset, last.end_offset + 1)
    text = (
        f"{wording.count(len(segments), 'remote segment')} with "
        f"{wording.offsets(lost.start, lost.stop - 1)} below the log start offset {log_start}: the "
        "leader deletes them in its next round"
    )
    return _of_range("remote/below-log-start", text, lost)


def deleted_topic(topic: str, topic_id: str, count: int, size: int) -> Finding:
    """Return a finding: segments of a topic that does not exist any more."""
    text = (
        f"the metadata log has no topic {topic} with the id {topic_id}, but "
        f"{wording.count(count, 'remote segment')} of it, {wording.size(size)}, "
        f"{'is' if count == 1 else 'are'} not deleted"
    )
    return Finding("remote/deleted-topic", text)


def unknown_segment(place: str, one: Unstarted) -> Finding:
    """Return a finding: a change of a segment whose first record is missing."""
    text = (
        f"the record at offset {one.record_offset} sets segment {one.segment_id} of {place} to "
        f"{one.state.word}, but no record begins the segment: brokers ignore it, and neither read "
        "nor delete its objects"
    )
    return Finding("remote/unknown-segment", text, first_offset=one.record_offset)


def dropped_event(place: str, one: DroppedEvent) -> Finding:
    """Return a finding: an event that brokers drop."""
    text = (
        f"the record at offset {one.record_offset} sets segment {one.segment_id} of {place} to "
        f"{one.after.word} after {one.before.word}: brokers drop it"
    )
    return Finding("remote/dropped-event", text, first_offset=one.record_offset)


def _named(segment: RemoteSegment) -> str:
    span = wording.offsets(segment.start_offset, segment.end_offset)
    return f"segment {segment.segment_id} ({span})"


def _of_range(code: str, text: str, lost: range) -> Finding:
    return Finding(code, text, first_offset=lost.start, last_offset=lost.stop - 1)
