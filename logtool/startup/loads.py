"""The partitions of a forecast on their way to a worker, and the order in which they are loaded."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from logtool.disk import files, in_use
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import Partition, Segment
from logtool.startup import plain_partition
from logtool.startup.disks import Cold, Samples, cold
from logtool.startup.partition import PartitionForecast, forecast_partition
from logtool.startup.plain_partition import PlainLooks
from logtool.startup.request import LoadRequest

_MOST_HELD = 16_384
"""Segments whose listing is held until a worker takes it; each takes about 2 KB."""


@dataclass(slots=True)
class PartitionToLoad:
    """One partition on its way to a worker."""

    request: LoadRequest
    bytes_ahead: int = 0
    """Estimate of the bytes of its log that a broker reads: the segments that are not flushed."""
    listed: Partition | None = None
    """The listing of its directory; None if the worker has to make it."""
    cold: Cold = field(default_factory=Cold)
    """The part of those bytes that is not in the page cache, if that was asked for."""
    looks: PlainLooks | None = None
    """The fast checks to try first."""

    def forecast(self, on_bytes: Callable[[int], None]) -> PartitionForecast | UnreadableError:
        """Load the partition; `listed` is not kept after that.

        Under a running broker, damage may be bytes that it was about to write or to replace. Then
        the log is loaded again, until it no longer changes or is in order.
        """
        if self.looks and (plain := plain_partition.forecast(self.request, self.looks)):
            return plain
        listed, self.listed = self.listed, None
        found = self._once(on_bytes, listed)
        for _ in range(opening.MOST_LOOKS - 1):
            if not _is_alarm(found) or in_use.holder(self.request.log_dir) is None:
                break
            before = listed
            try:
                listed = opening.open_partition(self.request.path, self.request.flavour)
            except UnreadableError as error:
                return error
            if listed == before:
                break
            found = self._once(on_bytes, listed)
        return found

    def _once(
        self, on_bytes: Callable[[int], None], listed: Partition | None
    ) -> PartitionForecast | UnreadableError:
        if self.request.redpanda:
            # Imported here because Kafka's logs do not need it.
            from logtool.startup import redpanda_forecast

            return redpanda_forecast.forecast(self.request, self.request.redpanda, on_bytes, listed)
        found = forecast_partition(self.request, on_bytes, listed)
        return found if isinstance(found, UnreadableError) else replace(found, cold=self.cold)


def _is_alarm(found: PartitionForecast | UnreadableError) -> bool:
    """Return whether a log is damaged, or files of it have vanished."""
    if isinstance(found, UnreadableError):
        return files.has_vanished(found)
    return found.is_damaged


def prepared(
    requests: Sequence[LoadRequest],
    samples: Samples | None,
    looks: PlainLooks | None,
    *,
    hold: bool,
) -> list[PartitionToLoad]:
    """Return the loads with the bytes ahead of each, and give their logs to the `samples`.

    With `hold` the listings made for that are kept, up to `_MOST_HELD` segments. Otherwise the
    worker lists the directory again.
    """
    loads, kept = [], 0
    for request in requests:
        load = PartitionToLoad(request, looks=looks)
        loads.append(load)
        if request.start.clean and not request.assumed.verify:
            continue
        try:
            listed = opening.open_partition(request.path, request.flavour)
        except UnreadableError:
            continue  # the worker meets this error and reports it
        ahead = [(one.log.path, one.log.size) for one in _ahead(request, listed)]
        load.bytes_ahead = sum(size for _, size in ahead)
        if samples and not request.redpanda:
            load.cold = cold(ahead)
            samples.add(request.log_dir, ahead)
        kept += len(listed.segments)
        if hold and kept <= _MOST_HELD:
            load.listed = listed
    return loads


def _ahead(request: LoadRequest, listed: Partition) -> list[Segment]:
    """Return the segments that a broker recovers."""
    point = 0 if request.assumed.verify else request.start.recovery_point
    return [
        segment
        for segment in listed.segments
        if segment.next_base_offset is None or segment.next_base_offset > point
    ]
