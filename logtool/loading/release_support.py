"""Rules for the release that starts: the levels and records that it does not support.

A node reads ``bootstrap.checkpoint``, then the newest snapshot and the metadata log behind it. It
does not start if a record has a type or a layout that its release cannot read, or if it sets a
feature to a level that its release does not support. A newer version of a record is readable if it
differs by tagged fields alone. From 3.8 on a node reads all records before it applies the first.
Source: ``BootstrapMetadata``, ``MetadataRecordSerde`` and the message classes,
``KRaftControlRecordStateMachine``, ``FeatureControlManager.replay``, ``FeaturesDelta.replay``
(Kafka 3.3 to 4.4); ``BrokerMetadataCheckpoint`` (before 3.3).
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.formats import control_record, wording
from logtool.formats.messages import schema
from logtool.formats.messages.internal_topics import FIRST_AUTOMQ_TYPE
from logtool.formats.messages.schema import Field, MessageSchema, VersionRange
from logtool.formats.names import DirectoryKind, FileKind
from logtool.loading.metadata_log import Hindrance
from logtool.log.dir import LogDir
from logtool.metadata import image as metadata_image
from logtool.metadata import releases
from logtool.metadata.image import MetadataImage
from logtool.metadata.releases import METADATA_VERSION, Support
from logtool.metadata.state import RecordPlace
from logtool.node.node import Node

_READS_BOOTSTRAP_LEVEL = (4, 0)
"""The last release that does not start because of a level in ``bootstrap.checkpoint`` alone."""
_READS_ALL_FIRST = (3, 8)
"""The first release that reads every record before it applies one."""
_WITHOUT_ZOOKEEPER = (4, 0)
"""The first release that runs with KRaft alone."""
_KRAFT_VERSION, _AUTOMQ_VERSION = "kraft.version", "automq.version"
_READS_FIRST_SNAPSHOT = (3, 6)
"""The first release that reads a snapshot at offset 0, and not the log from 0, of 4.4."""
_CONTROL_RECORDS = {
    control_record.KRAFT_VERSION: "KRaftVersionRecord",
    control_record.KRAFT_VOTERS: "VotersRecord",
}
_NONE = VersionRange(0, 0)
"""Levels of a feature that a release does not have."""


Obstacle = tuple[RecordPlace, str]
"""A record that stops a start, and the reason."""


def check_bootstrap(node: Node) -> Iterator[Hindrance]:
    """Yield the levels in ``bootstrap.checkpoint`` that the release that starts does not know."""
    support, home = _support(node), node.metadata_log
    if support is None or home is None or support.release > _READS_BOOTSTRAP_LEVEL:
        return
    path = home.path / FileKind.BOOTSTRAP_CHECKPOINT.value
    known = support.parses[METADATA_VERSION]
    for (name, level), place in _bootstrap_levels(path).items():
        if name == METADATA_VERSION and level not in known:
            text = _unknown_level(_level(name, level), known, support)
            yield Hindrance(path, text, place.position, cause="level")


def check(node: Node) -> Iterator[Hindrance]:
    """Yield the records that stop the release that starts, in the order of their effect."""
    support, image = _support(node), node.image
    if support is None or image is None or node.metadata_log is None:
        return
    records = sorted(_records(image, support), key=lambda one: _order(one[0], image, support))
    found = [(one, "record") for one in records]
    levels = [(one, "level") for one in _levels(image, support)]
    if support.release < _READS_ALL_FIRST:
        found = sorted(found + levels, key=lambda one: _order(one[0][0], image, support))
    else:
        found += levels
    for (place, text), cause in found:
        is_in_snapshot = place.path == image.snapshot
        where = f"record {place.offset}" if is_in_snapshot else f"offset {place.offset}"
        yield Hindrance(place.path, f"{where}: {text}", place.position, cause=cause)


def _support(node: Node) -> Support | None:
    """Return the `Support` of the release that starts; None if the release is not known."""
    kafka = node.starting_kafka
    return releases.supported().get(kafka) if kafka else None


def puts_all_aside(node: Node, log_dir: LogDir) -> str | None:
    """Return why the release that starts renames every partition to -stray; None if it does not.

    No release since 4.0 runs with ZooKeeper. With KRaft it takes a ``meta.properties`` of version
    0, begins an empty metadata log, and no topic is in it.
    """
    kafka = node.starting_kafka
    if kafka is None or kafka < _WITHOUT_ZOOKEEPER or not node.is_zookeeper:
        return None
    live = [one for _, one in log_dir.partitions if one.kind is DirectoryKind.LIVE]
    if not live:
        return None
    return (
        f"the log dir was written with ZooKeeper, and Kafka {releases.text(kafka)} runs with KRaft "
        f"alone: with an empty metadata log it renames {wording.count(len(live), 'partition')} "
        "to -stray; migrate the cluster to KRaft with 3.9 first"
    )


def vetoes(node: Node) -> Iterator[str]:
    """Yield the controllers that are no voters any more and keep metadata.version from rising.

    Before 4.4 nothing removes the registration of a controller.
    """
    support, image = _support(node), node.image
    if support is None or image is None or not node.voters:
        return
    wanted = support.offers[METADATA_VERSION].last
    for number, data in sorted(image.controllers.items()):
        levels = {one["name"]: one["maxSupportedVersion"] for one in data["features"]}
        most = levels.get(METADATA_VERSION)
        if number not in node.voters and most is not None and most < wanted:
            yield (
                f"controller {number} is registered and is not a voter: metadata.version cannot "
                f"rise above {most} ({releases.feature_name(most)}) before it starts with a newer "
                "release, or 4.4 or later unregisters it"
            )


def ways_back(node: Node) -> Iterator[str]:
    """Yield how the release that starts can read the metadata log again, after a newer release.

    A node replays every record behind its newest snapshot, also a level that was lowered since.
    Kafka does not lower ``metadata.version`` below a level that brought new records. Source:
    ``FeatureControlManager.updateMetadataVersion`` (Kafka 3.9 to 4.4).
    """
    support, image = _support(node), node.image
    if support is None or image is None or node.metadata_log is None:
        return
    kafka = releases.text(support.release)
    barred = next(_records(image, support), None) is not None
    if image.kraft_version not in support.offers.get(_KRAFT_VERSION, _NONE):
        yield (
            f"Kafka {kafka} cannot read this metadata log: kraft.version is "
            f"{image.kraft_version}, and Kafka does not lower it; the way back is a backup from "
            "before, or another cluster to which the records are copied"
        )
        return
    high: dict[str, int] = {}
    for name, level in image.levels:
        offered = support.offers.get(name, _NONE)
        if name in (_KRAFT_VERSION, _AUTOMQ_VERSION) or level <= offered.last:
            continue
        barred |= name == METADATA_VERSION
        high[name] = offered.last
    if barred:
        yield (
            f"Kafka {kafka} cannot read this metadata log: metadata.version can be lowered only if "
            "no level in between has new records ('kafka-features.sh downgrade' refuses it else); "
            "otherwise the way back is a backup from before, or another cluster to which the "
            "records are copied"
        )
        return
    lower = [one for one in sorted(high) if image.features.get(one, 0) > high[one]]
    options = " ".join(f"--feature {one}={high[one]}" for one in lower)
    first = (
        f"run 'kafka-features.sh --bootstrap-server HOST:9092 downgrade {options}', and "
        if lower
        else ""
    )
    if high:
        yield (
            f"for a start with Kafka {kafka}: while the newer release runs, {first}wait for a "
            "metadata snapshot behind these records (metadata.log.max.snapshot.interval.ms, one "
            "hour by default): until then each start reads them again"
        )


def _order(
    place: RecordPlace, image: MetadataImage, support: Support
) -> tuple[bool, str, int, int]:
    is_read_first = bool(image.snapshot_offset) or support.release >= _READS_FIRST_SNAPSHOT
    return (
        (place.path == image.snapshot) is not is_read_first,
        place.path.name,
        place.position,
        place.offset,
    )


def _bootstrap_levels(path: Path) -> dict[tuple[str, int], RecordPlace]:
    """Return the levels in a ``bootstrap.checkpoint``; empty if it cannot be read."""
    with suppress(UnreadableError):
        return metadata_image.read_snapshot(path).levels
    return {}


def _levels(image: MetadataImage, support: Support) -> Iterator[Obstacle]:
    """Yield the levels of features that the release does not support."""
    for (name, level), place in image.levels.items():
        known, offered = support.parses.get(name), support.offers.get(name, _NONE)
        if name == _KRAFT_VERSION or level in offered or (level == 0 and name != METADATA_VERSION):
            continue
        if name == _AUTOMQ_VERSION:
            continue  # the brokers of this log are AutoMQ's, which are Kafka with more records
        if known and level not in known:
            yield place, _unknown_level(_level(name, level), known, support)
        else:
            yield place, _unsupported_level(_level(name, level), offered, support)


def _unknown_level(level: str, known: VersionRange, support: Support) -> str:
    return f"{level}; Kafka {releases.text(support.release)} knows {_range(known)}"


def _unsupported_level(level: str, offered: VersionRange, support: Support) -> str:
    return f"{level}; Kafka {releases.text(support.release)} supports {_range(offered)}"


def _level(name: str, level: int) -> str:
    named = f" ({releases.feature_name(level)})" if name == METADATA_VERSION else ""
    return f"{name} {level}{named}"


def _range(levels: VersionRange) -> str:
    return f"{levels.first} to {levels.last}" if levels.last > levels.first else str(levels.first)


def _records(image: MetadataImage, support: Support) -> Iterator[Obstacle]:
    """Yield the first record of each type and version that the release cannot read."""
    table, kafka = schema.table("cluster_metadata"), releases.text(support.release)
    for (kind, version), place in image.first_of.items():
        message, known = table.find("value", kind), support.records.get(kind)
        name = f" ({message.name})" if message else ""
        if kind >= FIRST_AUTOMQ_TYPE:
            continue
        if known is None:
            yield place, f"record type {kind}{name}; Kafka {kafka} does not know it"
        elif version not in known and not _is_readable(message, version, known):
            yield (
                place,
                (
                    f"record type {kind}{name}, version {version}; Kafka {kafka} reads versions "
                    f"{_range(known)}"
                ),
            )
    kraft = image.first_control.get(control_record.KRAFT_VERSION)
    offered = support.offers.get(_KRAFT_VERSION, _NONE)
    if kraft and image.kraft_version not in offered:
        text = f"{_KRAFT_VERSION} {image.kraft_version}"
        yield kraft, _unsupported_level(text, offered, support)
    for kind, place in image.first_control.items():
        name = _CONTROL_RECORDS.get(kind, "")
        if name and name not in support.control:
            yield place, f"control record {kind} ({name}); Kafka {kafka} does not know it"


def _is_readable(message: MessageSchema | None, version: int, known: VersionRange) -> bool:
    """Return whether a newer version differs from the newest known one by tagged fields alone.

    A class reads a structure inside a record only in a version that it knows.
    """
    if message is None or version not in message.versions or version < known.first:
        return False
    newer, older = (list(_untagged(message.fields, one)) for one in (version, known.last))
    return newer == older and not any(one.fields for one in newer)


def _untagged(fields: tuple[Field, ...], version: int) -> Iterator[Field]:
    return (one for one in fields if version in one.versions and version not in one.tagged)
