"""The open transactions of logs that were loaded as at a start, as their coordinators know them.

The loading of a log replays its producers; of each open transaction only the first batch is read.
"""

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np

from logtool.errors import UnreadableError
from logtool.formats import offset_index
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, parse_directory
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import LogDir, Partition, Segment
from logtool.log.producer_state import NONE, Producer
from logtool.startup.partition import PartitionForecast
from logtool.txns import coordinator_logs
from logtool.txns.joining import Joining
from logtool.txns.open_transactions import (
    MAX_AGE_MS,
    PartitionTransactions,
    Transaction,
    TransactionState,
    with_age,
)
from logtool.txns.run import TransactionsRun


@dataclass(slots=True)
class OpenAfterStart:
    """The partitions with open transactions, those of the coordinators joined."""

    partitions: list[PartitionTransactions] = field(default_factory=list)
    errors: list[UnreadableError] = field(default_factory=list)
    """Coordinators' logs and first batches that cannot be read."""


def open_after_start(
    forecasts: Sequence[PartitionForecast],
    log_dirs: Sequence[LogDir],
    now_ms: int,
    spend: Callable[[int], None],
) -> OpenAfterStart:
    """Return the open transactions of logs; nothing more is read without one.

    A damaged log that no start changes is read as a whole: it may have lost a marker. So is one
    whose end the start hides, with what is open in that end.

    `log_dirs` are those of the logs: their partitions of ``__transaction_state`` count. `spend` is
    called with the bytes that were read, and may end it with an error.
    """
    found = OpenAfterStart()
    having = [one for one in forecasts if (one.in_transaction or one.hidden) and _is_live(one)]
    if not having:
        return found
    joining = Joining()
    found.errors += coordinator_logs.read(joining, {one.path: one for one in log_dirs}, spend)
    until = {one.path: coordinator_logs.until_ms(one, now_ms) for one in log_dirs}
    for one in having:
        if one.hidden or (one.request.start.clean and one.is_damaged):
            run = TransactionsRun([one.request.path], now_ms, is_now_given=False)
            for item in run:
                if isinstance(item, UnreadableError):
                    found.errors.append(item)
                elif item.open:
                    spend(0)
                    found.partitions.append(item)
            continue
        moment = now_ms, until.get(one.request.log_dir, now_ms)
        listed = opening.try_partition(one.request.path, one.request.flavour)
        if isinstance(listed, UnreadableError):
            found.errors.append(listed)
            continue
        found.partitions.append(
            joining.account(_transactions(one, listed, moment, found.errors, spend))
        )
    return found


def _is_live(forecast: PartitionForecast) -> bool:
    directory = parse_directory(forecast.request.path.name)
    return isinstance(directory, PartitionDirectory) and directory.kind is DirectoryKind.LIVE


def _transactions(
    forecast: PartitionForecast,
    listed: Partition,
    moment: tuple[int, int],
    errors: list[UnreadableError],
    spend: Callable[[int], None],
) -> PartitionTransactions:
    request = forecast.request
    producers = sorted(
        forecast.in_transaction.items(), key=lambda item: item[1].transaction_first_offset
    )
    transactions = []
    for number, (producer_id, producer) in enumerate(producers):
        try:
            one = _transaction(listed, producer_id, producer, spend)
        except UnreadableError as error:
            errors.append(error)
            continue
        transactions.append(with_age(one, *moment, MAX_AGE_MS, pins=number == 0))
    return PartitionTransactions(
        flavour=listed.flavour,
        path=request.path,
        topic=request.topic,
        partition=request.partition,
        segments=forecast.segments,
        start_offset=forecast.log_start,
        end_offset=forecast.log_end,
        high_watermark=request.high_watermark,
        producers=dict(producers),
        transactions=transactions,
        findings=[],
        has_markers=False,
    )


def _transaction(
    listed: Partition, producer_id: int, producer: Producer, spend: Callable[[int], None]
) -> Transaction:
    """Return the open transaction of a producer; UnreadableError."""
    first = producer.transaction_first_offset
    epoch, started = _first_batch(listed, producer_id, first, spend)
    return Transaction(
        producer_id=producer_id,
        state=TransactionState.OPEN,
        first_offset=first,
        last_offset=None if producer.last_offset == NONE else producer.last_offset,
        producer_epoch=epoch,
        started_ms=started,
    )


def _first_batch(
    listed: Partition, producer_id: int, offset: int, spend: Callable[[int], None]
) -> tuple[int | None, int | None]:
    """Return producer epoch and time of the batch at an offset; None where it is gone."""
    segments = [one for one in listed.segments if one.base_offset <= offset]
    if not segments:
        return None, None
    segment = segments[-1]
    begin = _position(segment, offset)
    found = _batch(segment, producer_id, offset, begin, spend)
    if found is None and begin:
        found = _batch(segment, producer_id, offset, 0, spend)  # the index lies
    return found or (None, None)


def _position(segment: Segment, offset: int) -> int:
    """Return the byte from which on the offset index leads to an offset; 0 without an entry."""
    file = segment.indexes.get(FileKind.OFFSET_INDEX)
    if file is None:
        return 0
    index = offset_index.parse(*file.read_index())
    at = int(np.searchsorted(index.offsets(segment.base_offset), offset)) - 1
    return min(max(int(index.positions[at]), 0), segment.log.size) if at >= 0 else 0


def _batch(
    segment: Segment, producer_id: int, offset: int, begin: int, spend: Callable[[int], None]
) -> tuple[int | None, int | None] | None:
    """Return producer epoch and time of the batch at an offset, sought from a byte on."""
    for chunk in segment.batches(start=begin):
        spend(int(chunk.table.size.sum()))
        table = chunk.table
        rows = np.flatnonzero((table.base_offset == offset) & (table.producer_id == producer_id))
        if len(rows):
            row = int(rows[0])
            # A cleaned batch has its delete horizon there.
            is_cleaned = bool(table[row : row + 1].has_delete_horizon[0])
            time = NONE if is_cleaned else int(table.base_timestamp[row])
            return int(table.producer_epoch[row]), None if time == NONE else time
        if len(table) and int(table.base_offset[-1]) > offset:
            return None
    return None
