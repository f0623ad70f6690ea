"""Releases of Kafka: what each supports, those whose start is known, and what a log dir shows.

The table ``releases.txt`` has the levels and records that each release supports, from its jars. A
release and a level of ``metadata.version`` are two things: a release supports many levels, and
parses some that it does not support yet. A release is known once the output of `logtool plan` was
compared with its broker: the campaigns in tests/broker. A node registers with the highest
``metadata.version`` that it supports, which shows its release.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path

from logtool.formats.messages.schema import VersionRange
from logtool.lazy_dataclass import dataclass

KNOWN = ((3, 3), (3, 7), (3, 9), (4, 0), (4, 1), (4, 2), (4, 3), (4, 4))
"""Releases whose start is known, compared with brokers of 3.3.2, 3.7.2, 3.9.2, and 4.0.2 to 4.4.0.
"""
NEWEST = max(KNOWN)
"""The newest release whose start is known."""
LAST_WITH_ZOOKEEPER = (3, 9)
METADATA_VERSION = "metadata.version"


@dataclass(frozen=True, slots=True)
class Support:
    """The features and records that a release supports."""

    release: tuple[int, int]
    jars: str
    """The release whose jars were read, such as ``4.3.1``."""
    parses: dict[str, VersionRange] = field(default_factory=dict)
    """Levels by feature that a record of the metadata log may have."""
    offers: dict[str, VersionRange] = field(default_factory=dict)
    """Levels by feature that a node supports; no level above 0 of a feature that is missing."""
    records: dict[int, VersionRange] = field(default_factory=dict)
    """Versions by type of the records of the metadata log."""
    control: set[str] = field(default_factory=set)
    """Names of the control records."""


@cache
def _table() -> tuple[dict[tuple[int, int], Support], dict[int, str]]:
    """Return the `Support` of each release, the oldest first, and the names of the levels."""
    found: dict[tuple[int, int], Support] = {}
    names: dict[int, str] = {}
    for line in (Path(__file__).parent / "releases.txt").read_text("ascii").splitlines():
        match line.split():
            case ["release", number, jars]:
                first, _, second = number.partition(".")
                one = Support((int(first), int(second)), jars)
                found[one.release] = one
            case ["parses", feature, levels]:
                one.parses[feature] = VersionRange.parse(levels)
            case ["offers", feature, levels]:
                one.offers[feature] = VersionRange.parse(levels)
            case ["records", *records]:
                for record in records:
                    kind, _, versions = record.partition(":")
                    one.records[int(kind)] = VersionRange.parse(versions)
            case ["control", *control]:
                one.control.update(control)
            case ["name", name, level]:
                names[int(level)] = name
    return found, names


def supported() -> dict[tuple[int, int], Support]:
    """Return the `Support` of each release, the oldest release first."""
    return _table()[0]


def newest_level() -> int:
    """Return the highest level of metadata.version that a release here supports."""
    return max(one.offers[METADATA_VERSION].last for one in supported().values())


def feature_name(level: int) -> str:
    """Return Kafka's name of a ``metadata.version``, such as ``4.3-IV0``.

    A level without a known name is returned as a number.
    """
    names = _table()[1]
    newer = f"{level}, newer than this logtool" if level > max(names) else str(level)
    return names.get(level, newer)


def text(release: tuple[int, int]) -> str:
    """Return a release as it is written: ``3.9``."""
    return ".".join(map(str, release))


def parse(text: str) -> tuple[int, int] | None:
    """Return (major, minor) of ``4.3`` or ``3.9.1``; None for a release that is not known here."""
    match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})(\.[0-9]+)*", text)
    release = (int(match[1]), int(match[2])) if match else None
    return release if release in supported() else None


def of_feature(level: int) -> tuple[int, int] | None:
    """Return the oldest release that supports this ``metadata.version``; None without one.

    A higher level than any is of a release newer than this program.
    """
    return next((one.release for one in supported().values()
                 if level <= one.offers[METADATA_VERSION].last), None)  # fmt: skip


def hinted(static: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the release that a broker's own file hints at; None without a hint.

    ``inter.broker.protocol.version`` is no newer than the broker, and 4.0 removed it. With
    ZooKeeper no broker is newer than 3.9; settings that KRaft ignores are not in `static`.
    """
    protocol = static.get("inter.broker.protocol.version")
    if protocol:
        major, minor, *_ = protocol.partition("-")[0].split(".")
        return int(major), int(minor)
    return LAST_WITH_ZOOKEEPER if "zookeeper.connect" in static else None


def nearest(release: tuple[int, int]) -> tuple[int, int]:
    """Return the newest known release that is not newer, or the oldest."""
    return max((known for known in KNOWN if known <= release), default=KNOWN[0])
