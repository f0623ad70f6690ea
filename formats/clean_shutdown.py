"""The clean shutdown marker (``.kafka_cleanshutdown``): written last by an orderly stop.

A start is clean if this file exists. The broker removes it before it opens a log. Brokers up to 3.6
write 0 bytes, later ones a line of JSON without line end::

    {"version":0,"brokerEpoch":12345}

The broker sends this epoch to the controller. Content that cannot be read counts as no content.
Source: ``CleanShutdownFileHandler`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

from collections.abc import Iterator

from logtool.findings import Finding
from logtool.formats.java_text import json_long, parse_json_object
from logtool.lazy_dataclass import dataclass

MARKER = b'{"version":0,"brokerEpoch":-1}'
"""Content of the file from a broker that does not know its own epoch."""


@dataclass(frozen=True, slots=True)
class CleanShutdown:
    """The content of the marker."""

    data: bytes
    """The whole file."""
    version: int | None = None
    broker_epoch: int | None = None
    """None in an empty file and where it cannot be read."""


def parse(data: bytes) -> CleanShutdown:
    """Read the broker epoch, if there is one. Never fails; see `check`."""
    content = parse_json_object(data.decode("utf-8", "replace")) or {}
    return CleanShutdown(
        bytes(data),
        version=json_long(content.get("version")),
        broker_epoch=json_long(content.get("brokerEpoch")),
    )


def encode(marker: CleanShutdown) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return marker.data


def check(marker: CleanShutdown) -> Iterator[Finding]:
    """Yield a finding where there is content but no broker epoch in it."""
    if marker.data and marker.broker_epoch is None:
        yield Finding(
            "clean-shutdown/malformed",
            "expected an empty file or JSON with a number brokerEpoch, "
            f"found {len(marker.data)} bytes without one",
            position=0,
            length=len(marker.data),
        )
