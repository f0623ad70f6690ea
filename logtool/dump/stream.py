"""`dump`: everything that the files of a data directory hold, as plain dicts in file order.

Objects have a ``type``: ``file`` before the content of each file, ``batch`` and ``record`` of logs
and KRaft snapshots, ``bad-record`` of batches with a wrong CRC, ``entry`` of the other files,
``error`` for bytes that cannot be shown. Records hold their keys, values and headers as bytes;
`logtool.dump.values.show_record` turns those into text. Where the caller can take them, blocks of
columns stand for batches and their records.
`Count` yields how many records a dump would print, without printing one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.dump import bad_batch
from logtool.dump.bad_batch import REST
from logtool.dump.blocks import Block, Origin
from logtool.dump.files import LOG_KINDS, REDPANDA_KINDS, Input, find_inputs
from logtool.dump.log import Filter, dump_chunk, is_wanted
from logtool.dump.records import LIMIT, Object
from logtool.dump.selecting import ANY_CONTENT
from logtool.dump.state import FileEntries, entry, kind_name, problems
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.formats import names
from logtool.formats.names import CLUSTER_METADATA, FileKind, FileState
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.chunk import LARGEST_BUFFERED_BATCH, Chunk
from logtool.log.damage import Damage, DamageReason
from logtool.log.flavour import Flavour
from logtool.log.selection import Selection
from logtool.running.run import Progress
from logtool.running.summary import Summary
from logtool.running.workers import OutOfTimeError
from logtool.schemas.entries import FILE

if TYPE_CHECKING:
    from logtool.dump.decoding import Decoding
    from logtool.dump.missing import MissingIn
    from logtool.dump.redpanda import RedpandaFiles


@dataclass(slots=True)
class Dump:
    """One dump: iterate to get the objects; `summary` is filled meanwhile."""

    paths: Sequence[Path]
    chosen: Filter = field(default_factory=Filter)
    selection: Selection = field(default_factory=Selection)
    limit: int | None = None
    """Objects after which to stop; files and errors do not count."""
    as_topic: str | None = None
    """Topic of brokers whose decoder is used for all records; None: by the path of each file."""
    stop: int | None = None
    """Bytes of a log that are read at most; a batch that they cut in two is left out."""
    leftovers: bool = False
    """True if a directory stands also for its logs that no broker loads, such as ``.deleted``; a
    dump of everything has them in any case."""
    limits_records: bool = False
    """True if only records count for `limit`, and not batches."""
    once: bool = False
    """True if a record that several copies of a partition have is yielded once."""
    missing: "MissingIn | None" = None
    """The filter of records that another copy lacks; None without one."""
    progress: Progress = field(default_factory=Progress)
    in_blocks: bool = False
    """True if ordinary batches may come as a `Block`, which is faster than their objects."""
    commits_in_blocks: bool = False
    """True if commits of offsets that are decoded may come as a `Block`, too."""
    summary: Summary = field(default_factory=Summary)
    matched: int = 0
    """Records that were yielded."""
    unknown: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Number of records of brokers' own topics that a newer release wrote, by topic and type."""
    unknown_tags: Counter[str] = field(default_factory=Counter)
    """Number of tagged fields of these topics' records that no table knows, by topic."""
    flavour: Flavour | None = None
    """The value of ``--flavour``; None: each directory by its names."""
    _seen: dict[tuple[str, int], dict[int, set[int]]] = field(default_factory=dict)
    """By partition and offset: hashes of the contents of the records that were yielded."""
    _decoding: "Decoding | None" = None
    """None if no record is decoded, and no secret is hidden."""
    _redpanda: "RedpandaFiles | None" = None
    """None without a file of Redpanda."""
    _inputs: list[Input] = field(init=False)
    _unreadable: list[UnreadableError] = field(init=False)

    def __post_init__(self) -> None:
        """Find the files."""
        plain = Filter(
            max_batch_memory=self.chosen.max_batch_memory,
            decode=self.chosen.decode,
            secrets=self.chosen.secrets,
        )
        every = self.chosen == plain
        logs_with = None if every else self.chosen.offsets
        self._inputs, self._unreadable = find_inputs(
            self.paths, self.selection, logs_with, self.flavour, leftovers=self.leftovers
        )
        self.progress.bytes_total = sum(item.size for item in self._inputs)
        if self.chosen.records and (self.chosen.decode or not self.chosen.secrets):
            from logtool.dump.decoding import Decoding  # with the tables of brokers' own topics

            counts = self.unknown, self.unknown_tags
            self._decoding = Decoding(self.chosen, self.as_topic, *counts)
        if self.has_redpanda():
            from logtool.dump.redpanda import RedpandaFiles  # with the formats of Redpanda

            self._redpanda = RedpandaFiles(self.chosen)

    def __iter__(self) -> Iterator[Object | Block | UnreadableError]:
        """Yield the objects of every file, and the inputs that cannot be read."""
        left = -1 if self.limit is None else self.limit
        for item in self._without_others():
            if isinstance(item, UnreadableError):
                self.summary.add(item)
            elif isinstance(item, Block):
                self._found(len(item.records.offset) if item.records else 0)
            elif item["type"] == "error" and item["reason"] == LIMIT:
                self.summary.unreadable += 1  # which says nothing about damage
            elif item["type"] == "error":
                # The damage of the batch has an error of its own.
                self.summary.severities[Severity.ERROR] += item["reason"] != REST
            elif item["type"] != "file":
                is_record = item["type"] == "record"
                self._found(is_record)
                left -= is_record or not self.limits_records
            yield item
            if left == 0:
                return

    def _without_others(self) -> Iterator[Object | Block | UnreadableError]:
        """Yield all objects but those that are left out because of another copy."""
        compares = self.once or self.missing is not None
        heads: dict[str, Object] = {}
        """File and batch that were not yielded yet: all of their records may be left out."""
        for item in self._all():
            if isinstance(item, Block | UnreadableError):
                yield item
                continue
            kind = item["type"]
            if kind == "error" or not compares:
                yield item
            elif kind == "file":
                heads = {"file": item}
            elif kind == "batch":
                # Of a batch, the copy of --missing-in may have a part of the records.
                heads |= {} if self.missing else {"batch": item}
            elif kind != "record" or not self._is_left_out(item):
                yield from heads.values()
                heads = {}
                yield item

    def _is_left_out(self, record: Object) -> bool:
        """Return whether another copy has the record."""
        if self.missing and not self.missing.takes(record):
            return True
        return self.once and self._was_yielded(record)

    def _was_yielded(self, record: Object) -> bool:
        """Return whether another copy had the record; else remember it."""
        if record["topic"] is None:
            return False
        offsets = self._seen.setdefault((record["topic"], record["partition"]), {})
        content = hash(str([record[name] for name in ("timestamp_ms", "key", "value", "headers")]))
        known = offsets.setdefault(record["offset"], set())
        if content in known:
            return True
        known.add(content)
        return False

    def _found(self, count: int) -> None:
        self.matched += count
        if self.summary.found is not None:
            self.summary.found += count

    def kinds(self) -> list[FileKind]:
        """Return the kinds of the files that will be dumped, each once."""
        return list(dict.fromkeys(item.name.kind for item in self._inputs))

    def has_redpanda(self) -> bool:
        """Return whether files of Redpanda will be dumped."""
        return any(kind in REDPANDA_KINDS for kind in self.kinds())

    def logs(self) -> list[Input]:
        """Return the files that hold batches and will be dumped."""
        kinds = (*LOG_KINDS, FileKind.REDPANDA_SEGMENT)
        return [item for item in self._inputs if item.name.kind in kinds]

    def _all(self) -> Iterator[Object | Block | UnreadableError]:
        yield from self._unreadable
        if self.missing:
            try:
                yield from self.missing.compare()
            except OutOfTimeError:
                return
        self.summary.partitions = len({i.path.parent for i in self._inputs if i.topic is not None})
        for item in self._inputs:
            try:
                yield from self._file(item)
            except UnreadableError as error:
                # A running broker deletes such files after a minute.
                is_leaving = item.name.state is FileState.DELETED and files.has_vanished(error)
                if not is_leaving:
                    yield error
            except OutOfTimeError:
                return

    def _file(self, item: Input) -> Iterator[Object | Block]:
        if item.name.kind in LOG_KINDS:
            yield from self._log(item)
            return
        if self._redpanda and item.name.kind in REDPANDA_KINDS:
            yield from self._of_redpanda(item, self._redpanda)
            return
        if self.chosen.content != ANY_CONTENT:
            return  # an entry is not a record
        if item.reader and self.chosen.records:
            return
        data = b"" if item.reader else files.read_small(item.path)
        content = item.reader() if item.reader else read_content(item, data)
        yield file_object(item, item.size if item.reader else len(data), content)
        for fields in content.entries:
            if _entry_wanted(item.name.kind, fields, self.chosen):
                yield entry(item.path, item.name.kind, fields)
        yield from problems(item.path, content.findings)
        self._advance(item.path, item.size if item.reader else len(data))

    def _of_redpanda(self, item: Input, redpanda: "RedpandaFiles") -> Iterator[Object | Block]:
        if item.name.kind is FileKind.REDPANDA_SEGMENT:
            yield from self._log(item) if self.chosen.records else self._segment(item, redpanda)
            return
        if self.chosen.records:
            return  # an entry is not a record
        data = files.read_small(item.path)
        content = redpanda.index(item.path, item.name, data)
        yield file_object(item, len(data), None) | {"entries": content.count}
        yield from content.objects
        self._advance(item.path, len(data))

    def _segment(self, item: Input, redpanda: "RedpandaFiles") -> Iterator[Object]:
        """Yield the batches of a segment of Redpanda, which are its entries."""
        base, term = item.name.offset or 0, item.name.epoch or 0
        redpanda.begin(item.path, base)
        self.summary.segments += 1
        with LogFile(item.path, item.size) as file:
            yield file_object(item, file.size, None)
            form = item.flavour.form(item.path)
            for chunk in read_batches(file, base_offset=base, form=form, payload=False):
                self._keep_pace(chunk)
                self._count(item.path, chunk)
                yield from redpanda.batches(item.path, chunk, term)

    def _log(self, item: Input) -> Iterator[Object | Block]:
        with LogFile(item.path, item.size) as file:
            of_redpanda = item.name.kind is FileKind.REDPANDA_SEGMENT
            is_segment = item.name.kind is FileKind.LOG or of_redpanda
            self.summary.segments += is_segment
            head: Object | None = file_object(item, file.size, None)
            if head and self.chosen.content == ANY_CONTENT:
                yield head
                head = None
            base = item.name.offset or 0 if is_segment else 0
            segment = item.name.offset if is_segment else None
            origin = Origin(
                path=item.path, topic=item.topic, partition=item.partition, segment=segment
            )
            limit = self.chosen.max_batch_memory
            decoding = self._decoding
            if decoding and not decoding.concerns(item):
                decoding = None
            of_commits = self.commits_in_blocks and decoding and decoding.takes_blocks(item)
            in_blocks = self.in_blocks and self.limit is None
            in_blocks = in_blocks and not self.once and not self.missing
            in_blocks = in_blocks and (decoding is None or bool(of_commits))
            form = item.flavour.form(item.path)
            wanted, passed = None if of_redpanda else self.chosen.offsets.last, -1
            for chunk in read_batches(
                file, base_offset=base, form=form, stop=self.stop, unpack_limit=limit
            ):
                if chunk.damage and self.stop is not None and _is_cut(chunk.damage):
                    break
                self._keep_pace(chunk)
                # Before its objects: a limit may end the dump among them.
                self._count(item.path, chunk)
                if chunk.damage and wanted is not None and passed >= wanted:
                    continue  # The damage is behind all wanted offsets.
                passed = max(passed, int(chunk.table.last_offset.max(initial=-1)))
                if of_redpanda and self._redpanda:
                    objects = self._redpanda.records(origin, file, chunk, in_blocks=in_blocks)
                else:
                    objects = dump_chunk(origin, file, chunk, self.chosen, in_blocks=in_blocks)
                if decoding:
                    objects = decoding.among(item, objects)
                for obj in objects:
                    if head:  # a file without a match has no head
                        yield head
                        head = None
                    yield obj
                    if chunk.damage and self.chosen.bad_records and not isinstance(obj, Block):
                        yield from self._bad_records(item, origin, file, obj)

    def _bad_records(
        self, item: Input, origin: Origin, file: LogFile, batch: Object
    ) -> Iterator[Object]:
        """Yield the matching records of a batch with a wrong CRC, and the error for the others."""
        if batch["type"] != "batch" or batch["crc_valid"] or batch["size"] > LARGEST_BUFFERED_BATCH:
            return
        if self.chosen.producer_id not in (None, batch["producer_id"]):
            return
        of_metadata = item.name.kind is not FileKind.LOG or item.topic == CLUSTER_METADATA
        data = memoryview(file.read(batch["position"], batch["size"]))
        for obj in bad_batch.records(
            origin, data, batch["position"], self.chosen.max_batch_memory,
            hides=of_metadata and not self.chosen.secrets,
        ):  # fmt: skip
            if obj["type"] == "error" or is_wanted(obj, self.chosen):
                yield obj

    def _count(self, path: Path, chunk: Chunk) -> None:
        table = chunk.table
        self.summary.batches += len(table)
        self.summary.records += table.records
        damaged = chunk.damage.length if chunk.damage else 0
        self._advance(path, int(table.size.sum()) + damaged)

    def _advance(self, path: Path, count: int) -> None:
        self.summary.bytes += count
        self.progress.advance(count, path)

    def _keep_pace(self, chunk: Chunk) -> None:
        """Wait for the rate of the run; OutOfTimeError once its time is over."""
        self.summary.pace.spend(int(chunk.table.size.sum()))


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """The number of records of one partition that would be printed."""

    path: Path
    """The partition dir, or a file outside of one."""
    topic: str | None
    partition: int | None
    records: int


@dataclass(frozen=True, slots=True)
class TotalCount:
    """The number of records of all partitions that would be printed."""

    partitions: int
    """Partitions or files with such records."""
    records: int


Place = tuple[Path, str | None, int | None]
"""A partition dir with its topic and partition, or a file outside of one."""


@dataclass(slots=True)
class Count:
    """Counts of a dump: iterate to get the errors, then a count per partition, then the total."""

    job: Dump

    def __iter__(self) -> Iterator[Object | UnreadableError | PartitionCount | TotalCount]:
        """Yield errors as they are met, and the counts at the end."""
        logs = self.job.logs()
        places = {str(log.path): _place_of(log.path, log.topic, log.partition) for log in logs}
        counts = dict.fromkeys(places.values(), 0)
        for item in self.job:
            if isinstance(item, UnreadableError):
                yield item
            elif isinstance(item, Block):
                assert item.records
                counts[places[str(item.origin.path)]] += len(item.records.offset)
            elif item["type"] == "record":
                counts[places[item["path"]]] += 1
            elif item["type"] == "error":
                yield item
        if not logs:
            return  # without a log there is no count
        for (path, topic, partition), records in counts.items():
            yield PartitionCount(path, topic, partition, records)
        yield TotalCount(
            partitions=sum(records > 0 for records in counts.values()),
            records=sum(counts.values()),
        )


def _place_of(path: Path, topic: str | None, partition: int | None) -> Place:
    return path if topic is None else path.parent, topic, partition


def _is_cut(damage: Damage) -> bool:
    """Return whether damage is only a batch whose end was not read."""
    return damage.reason is DamageReason.INCOMPLETE and not damage.resynchronised


def file_object(item: Input, size: int, content: FileEntries | None) -> Object:
    """Return the ``file`` object that comes before the content of a file."""
    return FILE.make(
        path=str(item.path),
        kind=kind_name(item.name.kind),
        state=str(item.name.state).lstrip(".") or "live",
        topic=item.topic,
        partition=item.partition,
        base_offset=item.name.offset,
        epoch=item.name.epoch,
        size=size,
        entries=content.count if content else None,
        padding=content.padding if content else None,
    )


def read_content(item: Input, data: bytes) -> FileEntries:
    """Decode a file that holds entries."""
    if item.name.kind in names.INDEX_KINDS:
        from logtool.dump.entries import read_index

        return read_index(item.name.kind, data, item.name.offset or 0)
    from logtool.dump.small_files import read_state

    return read_state(item.name.kind, data, item.name.offset)


def _entry_wanted(kind: FileKind, fields: Object, chosen: Filter) -> bool:
    """Return whether an entry matches: only entries about records of the log are filtered."""
    if kind not in (*names.INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT):
        return True
    if chosen.producer_id is not None and fields.get("producer_id") != chosen.producer_id:
        return False
    if kind is FileKind.PRODUCER_SNAPSHOT:
        return True
    time = fields.get("timestamp_ms")
    if time is not None and not chosen.timestamps.overlaps(time, time):
        return False
    if kind is FileKind.TRANSACTION_INDEX:
        return chosen.offsets.overlaps(fields["first_offset"], fields["last_offset"])
    return chosen.offsets.overlaps(fields["offset"], fields["offset"])
