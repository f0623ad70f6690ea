"""The entries of offset, time and transaction indexes as plain dicts."""

from collections.abc import Iterator

from logtool.dump.records import Object
from logtool.dump.state import FileEntries
from logtool.formats import offset_index, time_index, transaction_index
from logtool.formats.names import FileKind
from logtool.times import rfc3339


def read_index(kind: FileKind, data: bytes, base_offset: int) -> FileEntries:
    """Decode an index of `kind`, one of `names.INDEX_KINDS`."""
    if kind is FileKind.OFFSET_INDEX:
        offsets = offset_index.parse(data)
        return FileEntries(
            entries=_offset_entries(offsets, base_offset),
            findings=offset_index.check(offsets),
            count=len(offsets),
            padding=offsets.padding,
        )
    if kind is FileKind.TIME_INDEX:
        times = time_index.parse(data)
        return FileEntries(
            entries=_time_entries(times, base_offset),
            findings=time_index.check(times),
            count=len(times),
            padding=times.padding,
        )
    aborted = transaction_index.parse(data)
    return FileEntries(
        entries=_transaction_entries(aborted),
        findings=transaction_index.check(aborted, base_offset=base_offset),
        count=len(aborted),
        padding=0,
    )


def _offset_entries(index: offset_index.OffsetIndex, base_offset: int) -> Iterator[Object]:
    columns = (index.relative_offsets.tolist(), index.positions.tolist())
    for number, (relative, position) in enumerate(zip(*columns, strict=True)):
        yield {
            "position": number * offset_index.ENTRY_SIZE,
            "entry": number,
            "relative_offset": relative,
            "offset": base_offset + relative,
            "log_position": position,
        }


def _time_entries(index: time_index.TimeIndex, base_offset: int) -> Iterator[Object]:
    columns = (index.timestamps.tolist(), index.relative_offsets.tolist())
    for number, (time, relative) in enumerate(zip(*columns, strict=True)):
        yield {
            "position": number * time_index.ENTRY_SIZE,
            "entry": number,
            "timestamp_ms": time,
            "timestamp": rfc3339(time),
            "relative_offset": relative,
            "offset": base_offset + relative,
        }


def _transaction_entries(index: transaction_index.TransactionIndex) -> Iterator[Object]:
    names = ("versions", "producer_ids", "first_offsets", "last_offsets", "last_stable_offsets")
    keys = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    columns = [getattr(index, name).tolist() for name in names]
    for number, row in enumerate(zip(*columns, strict=True)):
        yield {
            "position": number * transaction_index.ENTRY_SIZE,
            "entry": number,
            **dict(zip(keys, row, strict=True)),
        }
