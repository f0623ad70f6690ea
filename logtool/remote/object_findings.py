"""Rules for the objects of remote segments, by themselves and against ``__remote_log_metadata``."""

from collections.abc import Iterator, Mapping, Sequence

from logtool.disk import files, shell
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.rsm_names import RemoteObjectName
from logtool.remote.local import LocalCopy
from logtool.remote.objects import ObjectSet
from logtool.remote.segments import RemoteSegment

_LOCAL_FILES = ("log", "index", "timeindex", "txnindex")
"""Suffixes of objects that a partition dir has with the same content."""


def missing(
    name: RemoteObjectName, kinds: Sequence[str], segment: RemoteSegment | None, where: str = ""
) -> Finding:
    """Return a finding: objects of a segment are missing.

    `where` says where its offsets still are, `segment` is None if no record is known.
    """
    first = segment.start_offset if segment else name.base_offset
    last = segment.end_offset if segment else None
    span = f"from offset {first} on" if last is None else wording.offsets(first, last)
    lacks = " and no object ".join(f".{one}" for one in kinds)
    text = f"{name.topic}-{name.partition}: segment {name.segment_id} ({span}) has no object "
    text += f"{lacks}{where}"
    return Finding("remote/missing-object", text, first_offset=first, last_offset=last)


def absent(place: str, segment: RemoteSegment, where: str) -> Finding:
    """Return a finding: no object of a copied segment is there; `where` is that of `missing`."""
    span = wording.offsets(segment.start_offset, segment.end_offset)
    text = (
        f"{place}: no object of segment {segment.segment_id} ({span}) is there, but its copy was "
        f"finished{where}"
    )
    return Finding(
        "remote/missing-object", text,
        first_offset=segment.start_offset, last_offset=segment.end_offset,
    )  # fmt: skip


def where_it_is(segment: RemoteSegment, copies: Sequence[LocalCopy]) -> str:
    """Return where the offsets of a segment without its log still are, among local copies."""
    first, last = segment.start_offset, segment.end_offset
    for one in copies:
        if one.has(first, last):
            return f"; {one.path} still has them, until local retention deletes them"
    text = "; no local copy here has them: they are lost unless another broker or a backup has them"
    return f"{text}, and consumers stop at {first} until they seek to {last + 1}"


def put_back(
    group: ObjectSet, kinds: Sequence[str], segment: RemoteSegment, copies: Sequence[LocalCopy]
) -> str | None:
    """Return the command that copies the files of a local segment to the names of objects.

    It checks the bytes of the log before. None if no copy has the same segment, and at a URL. The
    objects are those of `Plugin.LOCAL`.
    """
    first, name, folder = segment.start_offset, group.name, group.path.parent
    if files.is_remote(folder):
        return None
    for one in copies:
        names = {kind: one.path / f"{first:020d}.{kind}" for kind in kinds if kind in _LOCAL_FILES}
        is_same = (first, segment.size) in one.segments and one.has(first, segment.end_offset)
        if names and is_same and all(path.exists() for path in names.values()):
            checked = f"logtool verify {shell.path(one.path / f'{first:020d}.log')}"
            stem = f"{first:020d}-{name.segment_id}"
            commands = (f"cp -np {shell.path(path)} {shell.path(folder / f'{stem}.{kind}')}"
                        for kind, path in names.items())  # fmt: skip
            return " && ".join([checked, *commands])
    return None


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
