"""Assumptions about the broker that will start: options of `plan`, `recover` and others."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StartOptions:
    """Assumptions about the broker that will start."""

    kafka: tuple[int, int] | None = None
    """Release of the broker; None: the release that the log dirs show."""
    index_interval: int | None = None
    """Bytes, for all topics; None: the value in the metadata log, else Kafka's default."""
    index_size: int | None = None
    """Bytes, ``segment.index.bytes``; None: the value in the metadata log, else the default."""
    cut_precisely: bool = False
    clean: bool | None = None
    """True if the log dir counts as stopped cleanly; None: the clean-shutdown marker decides."""
    contents: bool = False
    """True if the actions hold the bytes to write, so that they can be carried out."""
    verify: bool = False
    """True if the logs that a broker does not read are checked too."""
    truncate_to: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offset at which each of these partitions is truncated, which no broker does at a start."""
    static: Mapping[str, str] = field(default_factory=dict)
    """Settings in the broker's own file, by Kafka's names; dynamic settings count before them."""
    fill_from: tuple[Path, ...] = ()
    """Other copies, whose batches take the place of damage, which no broker does."""
    supplement: bool = False
    """True if indexes and producer state are kept and supplemented, not built again."""
    trust: bool = False
    """With `supplement`: True if logs are trusted to hold what was written, and not checked."""
