"""What lies below the recovery points: no start reads it, so that damage there stays unseen."""

from collections.abc import Sequence
from pathlib import Path

from logtool.disk import shell
from logtool.lazy_dataclass import dataclass
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.startup.partition import PartitionForecast


@dataclass(frozen=True, slots=True)
class Below:
    """What was not read of the logs, by a forecast as little as by the start that it foretells."""

    segments: int
    """Segments that are not recovered."""
    bytes: int
    """Of their logs."""
    places: tuple[Path, ...]
    """The log dirs that hold them; the partition dir where that is all there is."""
    flavour: Flavour = KAFKA
    """REDPANDA where Redpanda wrote all of them, which knows no recovery point."""

    @property
    def command(self) -> str:
        """Return the command that reads them, as a shell takes it."""
        return " ".join(["logtool verify", *map(shell.path, self.places)])


def below(forecasts: Sequence[PartitionForecast]) -> Below | None:
    """Return what no start of these partitions reads; None where it reads everything."""
    unread = [forecast for forecast in forecasts if forecast.unread_bytes]
    if not unread:
        return None
    places = [one.request.path if len(forecasts) == 1 else one.request.log_dir for one in unread]
    return Below(
        segments=sum(forecast.unread_segments for forecast in unread),
        bytes=sum(forecast.unread_bytes for forecast in unread),
        places=tuple(dict.fromkeys(places)),
        flavour=REDPANDA if all(one.request.redpanda for one in unread) else KAFKA,
    )
