"""Options about the broker that will start: its release, its indexes, and its host."""

from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands.program import broker_config, parsing
from logtool.commands.program.broker_config import BrokerConfig
from logtool.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from logtool.node.options import StartOptions
    from logtool.rebuild import Indexing

NEWEST_KAFKA = "4.4"
KafkaVersion = Annotated[
    str | None,
    typer.Option(
        "--kafka-version",
        metavar="X.Y",
        help=f"Release of the broker that will start: {parsing.KAFKA_VERSIONS}. Default: "
        "nearest to the release that last registered in the metadata log, otherwise "
        "derived from --broker-config, otherwise 4.4.",
    ),
]
OneKafkaVersion = Annotated[
    str,
    typer.Option(
        "--kafka-version",
        metavar="X.Y",
        help=f"Release of the brokers: {parsing.KAFKA_VERSIONS}.",
        show_default=True,
    ),
]
IndexInterval = Annotated[
    int | None,
    typer.Option(
        "--index-interval-bytes",
        metavar="N",
        min=0,
        help="index.interval.bytes of all topics. Default: the value of each topic in the "
        "metadata log, otherwise log.index.interval.bytes in --broker-config, otherwise"
        " 4096.",
    ),
]
IndexSize = Annotated[
    int | None,
    typer.Option(
        "--index-size-max-bytes",
        metavar="N",
        min=12,
        help="segment.index.bytes of all topics. Default: the value of each topic in the "
        "metadata log, otherwise log.index.size.max.bytes in --broker-config, otherwise"
        " 10485760.",
    ),
]
LimitsOption = Annotated[
    str | None,
    typer.Option(
        "--limits",
        metavar="LIMITS",
        help="Limits of the host on which the broker will start: nofile=N, max_map_count=N, "
        "heap=SIZE, separated by commas. Default: the hard limit of open files and "
        "vm.max_map_count of this host, and a heap of 1G.",
    ),
]


@dataclass(frozen=True, slots=True)
class StartingBroker:
    """Options for the properties of the broker that will start."""

    kafka_version: KafkaVersion = None
    index_interval_bytes: IndexInterval = None
    index_size_max_bytes: IndexSize = None

    def assumed(self, config: BrokerConfig) -> "StartOptions":
        """Return the options of the start; UsageError for an unknown release."""
        from logtool.node.options import StartOptions

        return StartOptions(
            kafka=parsing.kafka_version(self.kafka_version),
            index_interval=self.index_interval_bytes,
            index_size=self.index_size_max_bytes,
            static=config.of_node()
            | config.take(
                *self._keys(),
                *(config.hints() if self.kafka_version is None else ()),
            ),
        )

    def indexing(self, config: BrokerConfig) -> "Indexing":
        """Return how the broker writes indexes."""
        from logtool.rebuild import Indexing

        interval, size = self.index_interval_bytes, self.index_size_max_bytes
        return Indexing(interval, size, config.take(*self._keys()))

    def _keys(self) -> list[str]:
        """Return the index settings that --broker-config may set, because no option does."""
        given = (self.index_interval_bytes, self.index_size_max_bytes)
        return [
            key for key, value in zip(broker_config.INDEXES, given, strict=True) if value is None
        ]
