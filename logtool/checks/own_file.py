"""Rules for the broker's own file: its node, log dirs, voters and switches, against the log dirs.

Without remote storage a broker reports a fault for each topic with ``remote.storage.enable`` and
starts; each log of the topic then begins at its first local segment.
Source: ``MetaPropertiesEnsemble.verify``, ``KafkaRaftServer.initializeLogDirs``,
``KafkaConfig.validateValues``,
``LogManager.updateTopicConfig``, ``UnifiedLog.create`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.checks.identity import Effect
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind, FileKind
from logtool.log import opening
from logtool.log.dir import OF_TODAY
from logtool.metadata import image as metadata_image
from logtool.metadata.image import MetadataImage
from logtool.node import own_file
from logtool.node.identity import LogDirIdentity
from logtool.node.node import Node

Conflict = tuple[Finding, Effect | None, Path]
"""A finding, its effect on a start (None: it has none), and the log dir that it is about."""
_WITH_REMOTE_STORAGE = (3, 6)
_MOST_TOPICS = 3
"""Topics that one finding names."""


def check(node: Node) -> Iterator[Conflict]:
    """Yield where the broker's own file and its log dirs contradict each other."""
    yield from _node_id(node)
    yield from _metadata_dir(node)
    yield from _own_vote(node)
    yield from _voters(node)
    yield from _not_named(node)
    yield from _not_there(node)
    yield from _left_out(node)
    yield from _cleaner(node)
    yield from _remote_storage(node)


def _node_id(node: Node) -> Iterator[Conflict]:
    wanted = own_file.node_id(node.static)
    for one in node.log_dirs:
        if wanted is None or one.meta is None or one.meta.node_id in (None, wanted):
            continue
        text = f"node.id is {one.meta.node_id}, but the broker's own file says {wanted}"
        path = one.path / FileKind.META_PROPERTIES.value
        yield Finding("meta-properties/mismatch", text, path=path), Effect.REFUSE, one.path


def _metadata_dir(node: Node) -> Iterator[Conflict]:
    """Yield a metadata log in a log dir where the broker does not expect it."""
    expected = node.own_metadata_dir
    for one in node.log_dirs:
        path = files.real_path(one.path)
        if expected is None or not one.has_metadata_log or path == expected:
            continue
        if path not in node.own_log_dirs:
            continue  # The broker does not open it.
        text = f"the broker's own file puts the metadata log into {expected}"
        path = one.path / metadata_image.DIRECTORY
        yield Finding("metadata/location", text, path=path), Effect.REFUSE, one.path


def _own_vote(node: Node) -> Iterator[Conflict]:
    """Yield a static list of voters that contradicts the roles of the node."""
    voters, roles = own_file.voters(node.static), own_file.roles(node.static)
    me = own_file.node_id(node.static)
    if me is None or not voters or not roles or (me in voters) == ("controller" in roles):
        return
    named = ", ".join(map(str, voters))
    lacks = f"and controller.quorum.voters names {named}" if me not in voters else "but has a vote"
    text = f"the broker's own file makes node {me} a {' and '.join(sorted(roles))}, {lacks}"
    where = node.log_dirs[0].path
    yield Finding("broker-config/own-vote", text, path=where), Effect.REFUSE, where


def _voters(node: Node) -> Iterator[Conflict]:
    """Yield the voters of the broker's own file if most of them never registered."""
    image, holder = node.image, node.metadata_log
    voters = own_file.voters(node.static)
    if image is None or holder is None or image.damage or not image.controllers:
        return
    known = {*image.controllers, node.node_id}
    strangers = [one for one in voters if one not in known]
    if 2 * len(strangers) < len(voters) or not strangers:
        return
    named = ", ".join(map(str, strangers))
    text = (
        f"the broker's own file names {len(voters)} voters, and the metadata log never knew a "
        f"controller {named}: the node waits for a majority of the voters"
    )
    path = holder.path / metadata_image.DIRECTORY
    yield Finding("metadata/no-majority", text, path=path), Effect.UNKNOWN, holder.path


def _not_named(node: Node) -> Iterator[Conflict]:
    """Yield given log dirs that the file does not name, if it names others that were given."""
    for one in node.log_dirs:
        if not node.own_log_dirs or files.real_path(one.path) in node.own_log_dirs:
            continue
        inside = [directory for _, directory in one.root.partitions if directory.kind in OF_TODAY]
        if not inside:
            continue
        text = (
            "the broker's own file does not name this log dir, and the broker does not open it: "
            f"{wording.count(len(inside), 'partition')} in it "
            f"{'is' if len(inside) == 1 else 'are'} absent for it"
        )
        yield Finding("data-dir/not-named", text, path=one.path), Effect.LOST, one.path


def _not_there(node: Node) -> Iterator[Conflict]:
    """Yield the log dirs that the file names and that do not exist: KRaft wants them formatted.

    A file that names no given log dir is of another machine: its paths prove nothing here.
    """
    if not node.is_kraft or not node.own_log_dirs & node.paths:
        return
    for path in sorted(node.own_log_dirs - node.paths):
        if not files.has_dir(path):
            text = "does not exist, and the broker's own file names it as a log dir"
            finding = Finding("meta-properties/missing", text, path=path)
            yield finding, Effect.REFUSE, node.log_dirs[0].path


def _left_out(node: Node) -> Iterator[Conflict]:
    """Yield the log dirs that the file names and that were not given, if replicas lie there."""
    left = sorted(node.own_log_dirs - node.paths)
    if left and node.missing_ids():
        named = ", ".join(map(str, left))
        text = f"the broker's own file names {named} too: what lies there is not known"
        first = node.log_dirs[0].path
        yield Finding("data-dir/left-out", text, path=first), None, first


def _cleaner(node: Node) -> Iterator[Conflict]:
    """Yield the compacted topics here if the file turns the log cleaner off."""
    if own_file.switch(node.static, own_file.CLEANER) is not False:
        return
    image = node.image or MetadataImage(static=node.static)
    topics, home = _topics(node, lambda topic: "compact" in (
        image.topic_config(topic, "cleanup.policy", node.node_id) or ""))  # fmt: skip
    if home:
        text = (
            f"the broker's own file has {own_file.CLEANER}=false: the broker does not compact "
            f"{_named(topics)}, whose logs grow without end"
        )
        yield Finding("broker-config/cleaner-off", text, path=home), Effect.IGNORE, home


def _remote_storage(node: Node) -> Iterator[Conflict]:
    """Yield the tiered topics here if the file leaves remote storage off."""
    image = node.image
    if own_file.switch(node.static, own_file.REMOTE_STORAGE) is not False or image is None:
        return
    if node.kafka < _WITH_REMOTE_STORAGE:
        return
    topics, home = _topics(
        node, lambda topic: image.topic_config(topic, "remote.storage.enable") == "true"
    )
    if not home:
        return
    what = f"{_named(topics)} {'has' if len(topics) == 1 else 'have'} remote.storage.enable=true"
    text = f"{what}, and the broker's own file does not have {own_file.REMOTE_STORAGE}=true"
    moved = [path.name for one in node.log_dirs for path in _moved(one, topics)]
    if moved:
        text += (
            f": {_named(sorted(moved))} will begin at the first local segment, and records before "
            "it cannot be read"
        )
        yield Finding("broker-config/remote-storage-off", text, path=home), Effect.LOST, home
    else:
        text += ": the broker reports a fault for each of these topics and copies no segment"
        yield Finding("broker-config/remote-topics", text, path=home), Effect.IGNORE, home


def _topics(node: Node, wanted: Callable[[str], bool]) -> tuple[list[str], Path | None]:
    """Return the topics with a live partition that are wanted, and the log dir of one."""
    found: dict[str, Path] = {}
    for one in node.log_dirs:
        for _, directory in one.root.partitions:
            is_live = directory.kind is DirectoryKind.LIVE
            if is_live and directory.topic != CLUSTER_METADATA and wanted(directory.topic):
                found.setdefault(directory.topic, one.path)
    return sorted(found), next(iter(found.values()), None)


def _moved(log_dir: LogDirIdentity, topics: Sequence[str]) -> Iterator[Path]:
    """Yield the partitions of topics whose local log begins above their log start offset."""
    with suppress(UnreadableError):
        rows = log_dir.root.rows(FileKind.LOG_START_CHECKPOINT)
        for path, directory in log_dir.root.partitions:
            if directory.kind is not DirectoryKind.LIVE or directory.topic not in topics:
                continue
            row = rows.get((directory.topic, directory.partition))
            segments = opening.open_partition(path).segments
            if segments and segments[0].base_offset > (row.offset if row else 0):
                yield path


def _named(names: Sequence[str]) -> str:
    """Return the first names of a list as text."""
    more = len(names) - _MOST_TOPICS
    return ", ".join(names[:_MOST_TOPICS]) + (f" and {more:,} more" if more > 0 else "")
