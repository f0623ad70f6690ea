"""Rules for the broker's own file: its node, its log dirs and its voters, against the log dirs.

Source: ``MetaPropertiesEnsemble.verify``, ``KafkaRaftServer.initializeLogDirs`` (Kafka 3.9 and
4.x).
"""

from collections.abc import Iterator
from pathlib import Path

from logtool.checks.identity import Effect
from logtool.disk import files
from logtool.findings import Finding
from logtool.formats.names import FileKind
from logtool.metadata import image as metadata_image
from logtool.node import own_file
from logtool.node.node import Node

Conflict = tuple[Finding, Effect, Path]
"""A finding, its effect on a start, and the log dir that it is about."""


def check(node: Node) -> Iterator[Conflict]:
    """Yield where the broker's own file and its log dirs contradict each other."""
    yield from _node_id(node)
    yield from _metadata_dir(node)
    yield from _voters(node)


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
        if expected is None or not one.has_metadata_log or files.real_path(one.path) == expected:
            continue
        text = f"the broker's own file puts the metadata log into {expected}"
        path = one.path / metadata_image.DIRECTORY
        yield Finding("metadata/location", text, path=path), Effect.REFUSE, one.path


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
