"""Rules for the objects of remote segments, by themselves and against ``__remote_log_metadata``."""

from collections.abc import Iterator, Mapping, Sequence

from logtool.findings import Finding
from logtool.formats import wording
from logtool.remote.segments import RemoteSegment


def missing(segment: str, kinds: Sequence[str]) -> Finding:
    """Return a finding: objects of a segment are missing."""
    text = f"segment {segment} has no object {' and no object '.join(f'.{one}' for one in kinds)}"
    return Finding("remote/missing-object", text)


def absent(segment: RemoteSegment) -> Finding:
    """Return a finding: no object of a copied segment is there."""
    span = wording.offsets(segment.start_offset, segment.end_offset)
    text = f"no object of segment {segment.segment_id} ({span}) is there, but its copy was finished"
    return Finding(
        "remote/missing-object", text,
        first_offset=segment.start_offset, last_offset=segment.end_offset,
    )  # fmt: skip


def orphan(segment_id: str, size: int, why: str) -> Finding:
    """Return a finding: objects that no record names."""
    text = f"objects of segment {segment_id}, {wording.size(size)}, that brokers do not use: {why}"
    return Finding("remote/orphan-object", text)


def double(segment_id: str, other: str) -> Finding:
    """Return a finding: objects of one segment in two places."""
    text = f"objects of segment {segment_id} are also at {other}"
    return Finding("remote/double-object", text)


def wrong_name(segment_id: str, found: str, expected: str) -> Finding:
    """Return a finding: the name of an object disagrees with the metadata of its segment."""
    text = f"the name of segment {segment_id} says {found}, but its metadata says {expected}"
    return Finding("remote/object-name", text)


def unknown(size: int) -> Finding:
    """Return a finding: an object with a name that the plugin does not write."""
    text = f"{wording.size(size)} with a name that the plugin does not write"
    return Finding("remote/unknown-object", text)


def object_size(found: int, expected: int, why: str) -> Finding:
    """Return a finding: the size of an object, or of the log in it, is wrong."""
    text = f"{found:,} bytes, but {expected:,} {why}"
    return Finding("remote/object-size", text, position=min(found, expected))


def bad_manifest(reason: str, position: int) -> Finding:
    """Return a finding: a manifest that the plugin cannot read."""
    return Finding("remote/manifest", f"the plugin cannot read it: {reason}", position=position)


def other_manifest(segment_id: str, found: str) -> Finding:
    """Return a finding: the manifest of a segment is that of another one."""
    return Finding("remote/manifest", f"segment {segment_id} has the manifest of segment {found}")


def bad_chunk(number: int, position: int, size: int, reason: str) -> Finding:
    """Return a finding: a compressed chunk that cannot be unpacked."""
    text = f"chunk {number} cannot be unpacked: {reason}"
    return Finding("remote/chunk", text, position=position, length=size)


def index_ranges(indexes: Mapping[str, tuple[int, int]]) -> Iterator[Finding]:
    """Yield a finding for each index whose range does not follow that of the index before."""
    end = 0
    for name, (position, size) in indexes.items():
        if position != end:
            text = f"index {name} begins at byte {position}, but the index before ends at {end}"
            yield Finding("remote/manifest", text)
        end = position + size


def other_offsets(first: int | None, last: int | None, start: int, end: int) -> Finding:
    """Return a finding: a log has other offsets than its metadata or its name says."""
    found = "no batch" if first is None or last is None else wording.offsets(first, last)
    text = f"the log has {found}, but the segment has {wording.offsets(start, end)}"
    return Finding("remote/object-offsets", text, first_offset=start, last_offset=end)


def other_epochs(found: str, expected: str) -> Finding:
    """Return a finding: leader epochs of a segment differ from those in its metadata."""
    text = f"the leader epochs are {found}, but the metadata of the segment has {expected}"
    return Finding("remote/object-epochs", text)
