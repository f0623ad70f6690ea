"""Releases of Kafka whose start is known, and the release that a log dir shows.

A release is known once the output of `logtool plan` was compared with its broker: the campaigns in
tests/broker. A node registers with the highest ``metadata.version`` that it supports, which shows
its release.
"""

from collections.abc import Mapping

KNOWN = ((3, 3), (3, 7), (3, 9), (4, 3))
"""Releases whose start is known, compared with brokers of 3.3.2, 3.7.2, 3.9.2 and 4.3.1."""
NEWEST = max(KNOWN)
"""The newest release whose start is known."""
_NEWEST_FEATURE = {
    (3, 3): 7, (3, 4): 8, (3, 5): 11, (3, 6): 14, (3, 7): 19, (3, 8): 20, (3, 9): 21, (4, 0): 25,
    (4, 1): 27, (4, 2): 29, (4, 3): 30,
}  # fmt: skip
"""The highest ``metadata.version`` that a broker of each release offers (``MetadataVersion``)."""
NEWEST_FEATURE = max(_NEWEST_FEATURE.values())
"""Highest known level: a higher one is of a release that is newer than this program."""


_BEFORE_FIRST = ((3, 0), (3, 1), (3, 2))
"""Releases with one level each, from 1 on, before those that are known."""


def feature_name(level: int) -> str:
    """Return Kafka's name of a ``metadata.version``, such as ``4.3-IV0``; the number if unknown.

    Source: ``MetadataVersion``.
    """
    if level == 1:
        return "3.0-IV1"
    if 1 < level <= len(_BEFORE_FIRST):
        return f"{text(_BEFORE_FIRST[level - 1])}-IV0"
    last = len(_BEFORE_FIRST)
    for release, newest in _NEWEST_FEATURE.items():
        if last < level <= newest:
            return f"{text(release)}-IV{level - last - 1}"
        last = newest
    return str(level)


def text(release: tuple[int, int]) -> str:
    """Return a release as it is written: ``3.9``."""
    return ".".join(map(str, release))


def of_feature(level: int) -> tuple[int, int]:
    """Return the release that offers this ``metadata.version``; the newest for a higher one."""
    return next((r for r, newest in _NEWEST_FEATURE.items() if level <= newest), (4, 3))


def hinted(static: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the release that a broker's own file hints at; None without a hint.

    ``inter.broker.protocol.version`` is no newer than the broker, and 4.0 removed it. With
    ZooKeeper no broker is newer than 3.9; settings that KRaft ignores are not in `static`.
    """
    protocol = static.get("inter.broker.protocol.version")
    if protocol:
        major, minor, *_ = protocol.partition("-")[0].split(".")
        return int(major), int(minor)
    return (3, 9) if "zookeeper.connect" in static else None


def nearest(release: tuple[int, int]) -> tuple[int, int]:
    """Return the newest known release that is not newer, or the oldest."""
    return max((known for known in KNOWN if known <= release), default=KNOWN[0])
