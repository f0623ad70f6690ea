"""The copies of a key in the log dirs of one broker, with their ends.

An end by the cleaner depends on all records of the key in the log, so the records of its live
segments are judged together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from logtool.cleaner.run import CleanerOptions, CleanerRun, PartitionCleaning
from logtool.cleaner.transactions import AbortedTransactions
from logtool.erasure import fates, rests, states
from logtool.erasure.fates import Fate, Moments, Refuge
from logtool.erasure.files import KeyRecords, RecordFile, joined
from logtool.erasure.states import ReadableBy
from logtool.erasure.transactions import ABORTED, COMMITTED, OPEN, TransactionEnds
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind, uncommitted_swaps
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.kafka import KAFKA
from logtool.metadata.setting_values import BROKER_NAMES, SettingSource
from logtool.node.settings import ALWAYS_COMPACTED
from logtool.retention import settings
from logtool.retention.logs import LiveLogs
from logtool.retention.run import PartitionRetention, RetentionOptions, RetentionRun
from logtool.retention.settings import RetentionSettings
from logtool.times import rfc3339


@dataclass(frozen=True, slots=True)
class ErasureOptions:
    """A key, and the moment and the settings of a forecast."""

    key: bytes | None
    """None for records without a key."""
    start_ms: int
    """Time at which the brokers start, in ms."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """Settings of a planned change."""
    static: Mapping[str, str] | None = None
    """Settings in the broker's own file; None if it was not given, so that Kafka's defaults are
    assumed."""


@dataclass(frozen=True, slots=True)
class KeyCopy:
    """Records of the key in one file that have the same end."""

    file: RecordFile
    node: int | None
    """Id of the broker; None if it is not known."""
    offsets: Sequence[int]
    """The offsets of the records, rising."""
    first_timestamp_ms: int | None
    """Least timestamp; None if no record has one."""
    last_timestamp_ms: int | None
    is_tombstone: bool
    is_below_start: bool
    """True if the records are below the log start offset."""
    end: int
    """End of the transaction of each; `COMMITTED` also without a transaction."""
    delete_horizon_ms: int | None
    """Largest delete horizon of the tombstones; None if they have none yet."""
    fate: Fate

    @property
    def records(self) -> int:
        """Return the number of records."""
        return len(self.offsets)

    @property
    def first_offset(self) -> int:
        """Return the least offset."""
        return self.offsets[0]

    @property
    def last_offset(self) -> int:
        """Return the largest offset."""
        return self.offsets[-1]

    @property
    def transaction(self) -> str | None:
        """Return ``aborted`` or ``open``; None for neither."""
        return {ABORTED: "aborted", OPEN: "open"}.get(self.end)

    @property
    def readable_by(self) -> str:
        """Return the consumers that get the records if this broker leads the partition."""
        is_stray = self.fate.obstacle == Refuge.STRAY
        of_records = states.of_record(
            is_tombstone=self.is_tombstone, end=self.end, is_below_start=self.is_below_start
        )
        of_file = states.of_place(self.file.name, self.file.directory)
        return ReadableBy.NONE if is_stray else states.reader((*of_records, *of_file))

    @property
    def delete_horizon(self) -> str | None:
        """Return `delete_horizon_ms` in UTC."""
        return rfc3339(self.delete_horizon_ms)

    @property
    def first_timestamp(self) -> str | None:
        """Return `first_timestamp_ms` in UTC."""
        return rfc3339(self.first_timestamp_ms)

    @property
    def last_timestamp(self) -> str | None:
        """Return `last_timestamp_ms` in UTC."""
        return rfc3339(self.last_timestamp_ms)

    @property
    def directory_kind(self) -> str:
        """Return ``live``, ``delete``, ``stray`` or ``future``."""
        return self.file.directory.kind.lstrip("-") or "live"

    @property
    def state(self) -> str:
        """Return ``live``, ``deleted``, ``cleaned`` or ``swap``."""
        return self.file.name.state.lstrip(".") or "live"

    @property
    def gone_ms(self) -> int | None:
        """Return the time from which on it is gone, in ms; None if it stays."""
        return self.fate.gone_ms

    @property
    def gone(self) -> str | None:
        """Return that time in UTC."""
        return rfc3339(self.fate.gone_ms)


class BrokerForecast:
    """Forecasts for the logs of one broker: `read` the logs that hold the key, then `copies`."""

    def __init__(self, node: int | None, logs: LiveLogs, options: ErasureOptions) -> None:
        self._node, self._logs, self._options = node, logs, options
        self._static = options.static or {}
        self._settings = RetentionSettings(
            logs.image, logs.node.node_id, self._static, options.changed
        )
        self._ends = TransactionEnds(logs.pace)
        self.assumed: dict[str, str] = {}
        """Kafka's defaults on which an end rests, because the broker's own file was not given."""
        first = self._settings.of_broker(settings.FIRST_DELAY).number
        self._moments = Moments(
            start=options.start_ms,
            partition_delay=max(0, first, self._delay("")),
            cleaner_delay=max(0, self._settings.of_broker(settings.BACKOFF).number),
        )
        self._retained: dict[Path, PartitionRetention] = {}
        self._cleaned: dict[Path, PartitionCleaning] = {}

    def read(self, logs: LiveLogs) -> Iterator[UnreadableError]:
        """Forecast the retention and the cleaning of the logs; yields the errors."""
        one = self._options
        static = self._static
        of_retention = RetentionOptions(one.start_ms, one.changed, static, with_stamps=False)
        for retained in RetentionRun(logs, of_retention):
            if isinstance(retained, UnreadableError):
                yield retained
            else:
                self._retained[retained.path] = retained
        for cleaned in CleanerRun(logs, CleanerOptions(one.start_ms, one.changed, static)):
            if isinstance(cleaned, UnreadableError):
                yield cleaned
            else:
                self._cleaned[cleaned.path] = cleaned

    def copies(
        self, files: Sequence[RecordFile], found: Mapping[Path, KeyRecords]
    ) -> Iterator[KeyCopy | UnreadableError]:
        """Yield the copies among `files`, of which `found` are the records with the key."""
        folders: dict[Path, list[RecordFile]] = {}
        for file in files:
            folders.setdefault(file.path.parent, []).append(file)
        for folder, some in folders.items():
            holders = [file for file in some if file.path in found]
            if not holders:
                continue
            uncommitted = uncommitted_swaps([file.name for file in some])
            cleaned: dict[Path, tuple[Sequence[Fate], Column]] = {}
            if folder in self._cleaned:
                try:
                    live = [file for file in holders if file.is_segment]
                    cleaned = self._by_cleaner(folder, live, found)
                except UnreadableError as error:
                    yield error
            for file in holders:
                left = fates.of_leftover(file, uncommitted, self._moments)
                ends = ([left], None) if left else self._of_segment(file, cleaned.get(file.path))
                yield from self._grouped(file, found[file.path], *ends)

    def _delay(self, topic: str) -> int:
        return max(0, self._settings.value(topic, settings.FILE_DELAY).number)

    def _by_cleaner(
        self, folder: Path, live: Sequence[RecordFile], found: Mapping[Path, KeyRecords]
    ) -> dict[Path, tuple[Sequence[Fate], Column]]:
        """Return the ends that the cleaner gives to the records of each file; UnreadableError."""
        parts = [found[file.path] for file in live]
        if not parts:
            return {}
        records = joined(parts)
        aborted = np.zeros(len(records), np.bool_)
        if (records.producer_id >= 0).any():
            segments = opening.open_partition(folder, KAFKA).segments
            kind = FileKind.TRANSACTION_INDEX
            indexes = [one.indexes[kind] for one in segments if kind in one.indexes]
            aborted = AbortedTransactions(indexes).mask(records.offset, records.producer_id)
        one = self._cleaned[folder]
        ends, number = fates.of_cleaner(
            records,
            aborted,
            one,
            self._moments,
            self._delay(one.directory.topic),
            has_key=self._options.key is not None,
        )
        numbers = np.split(number, np.cumsum([len(part) for part in parts])[:-1])
        return {file.path: (ends, some) for file, some in zip(live, numbers, strict=True)}

    def _of_segment(
        self, file: RecordFile, cleaned: tuple[Sequence[Fate], Column] | None
    ) -> tuple[Sequence[Fate], Column | None]:
        """Return the ends of the records in a live segment, and the number of each."""
        retained = self._retained.get(file.path.parent)
        if retained is None:
            is_stray = self._logs.node.is_stray(file.path.parent, file.directory)
            return [Fate(None, obstacle=Refuge.STRAY if is_stray else Refuge.UNREAD)], None
        base, delay = file.name.offset, self._delay(file.directory.topic)
        for segment in retained.segments:
            if segment.base_offset == base:
                end = fates.of_retention(segment, delay)
                if cleaned is None:
                    return [end], None
                return [fates.earlier(end, one) for one in cleaned[0]], cleaned[1]
        return [Fate(None, obstacle=Refuge.UNREAD)], None

    def _grouped(
        self, file: RecordFile, records: KeyRecords, ends: Sequence[Fate], number: Column | None
    ) -> Iterator[KeyCopy | UnreadableError]:
        """Yield the records of a file in groups of the same end, in the order of their offsets."""
        end = np.full(len(records), COMMITTED)
        try:
            end = self._ends.of_each(file.path, file.name, records.offset, records.producer_id)
        except UnreadableError as error:
            yield error
        retained = self._retained.get(file.path.parent)
        start = retained.log.columns.log_start if retained else 0
        below = records.offset < start
        numbers = np.zeros(len(records), np.int64) if number is None else number
        group = (numbers * 3 + end) * 4 + records.is_tombstone * 2 + below
        copies = [
            _copy(file, self._node, records.rows(group == value), ends[value // 12], value)
            for value in np.unique(group).tolist()
        ]
        for copy in sorted(copies, key=lambda one: one.first_offset):
            if self._options.static is None:
                self._assume(copy)
            yield copy

    def _assume(self, copy: KeyCopy) -> None:
        """Note the settings of the broker's own file on which the end of a copy rests."""
        topic, is_compacted = copy.file.directory.topic, copy.file.path.parent in self._cleaned
        of_broker, of_topic = rests.on(copy.fate, is_compacted=is_compacted)
        found = [self._settings.of_broker(name) for name in of_broker]
        found += [self._settings.value(topic, name) for name in of_topic]
        for one in found:
            is_fixed = one.name == settings.POLICY and topic in ALWAYS_COMPACTED
            if one.source is SettingSource.DEFAULT and not is_fixed:
                self.assumed[BROKER_NAMES.get(one.name, one.name)] = one.value


def _copy(
    file: RecordFile, node: int | None, records: KeyRecords, fate: Fate, group: int
) -> KeyCopy:
    stamps = records.timestamp[records.timestamp >= 0]
    horizon = int(records.horizon.max()) if group & 2 else -1
    return KeyCopy(
        file=file,
        node=node,
        offsets=np.sort(records.offset).tolist(),
        first_timestamp_ms=int(stamps.min()) if len(stamps) else None,
        last_timestamp_ms=int(stamps.max()) if len(stamps) else None,
        is_tombstone=bool(group & 2),
        is_below_start=bool(group & 1),
        end=group // 4 % 3,
        delete_horizon_ms=horizon if horizon >= 0 else None,
        fate=fate,
    )
