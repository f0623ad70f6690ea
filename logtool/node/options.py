"""What is assumed of the broker that will start: options of `plan`, `recover` and others."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StartOptions:
    """What is assumed of the broker that will start."""

    kafka: tuple[int, int] | None = None
    """Its release; None: that which the log dirs show."""
    index_interval: int | None = None
    """Bytes, of all topics; None: what the metadata log says, else Kafka's default."""
    index_size: int | None = None
    """Bytes, ``segment.index.bytes``; None as above."""
    cut_precisely: bool = False
    clean: bool | None = None
    """Whether the log dir counts as stopped in order; None: by its marker."""
    contents: bool = False
    """Whether the actions hold what would be written, to carry them out."""
    verify: bool = False
    """Whether the logs that a broker does not read are checked too."""
    truncate_to: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offsets from which on nothing of these partitions is to stay, as no broker does."""
    static: Mapping[str, str] = field(default_factory=dict)
    """What the broker's own file sets, by Kafka's names, where nothing dynamic says otherwise."""
    fill_from: tuple[Path, ...] = ()
    """Other copies, whose batches take the place of damage, as no broker does."""
    supplement: bool = False
    """Whether indexes and producer state are kept and added to, and not made anew."""
    trust: bool = False
    """With `supplement`: whether logs are trusted to hold what was written, and not checked."""
