"""Sound partition directories to damage: parts of fixtures, and made-up logs.

A part is a run of neighbouring segments of a partition that a broker wrote, as retention or an
earlier copy leaves it. A made-up log has in a few kilobytes what brokers write rarely: many epochs,
overlapping producers, gaps, empty batches, segments that end anywhere.
"""

from __future__ import annotations

import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from broker.install import KAFKA_3, KAFKA_4, major
from log_dir_damage import MARKER, new_batch

from logtool.formats import (
    control_record,
    leader_epoch_checkpoint,
    offset_index,
    producer_snapshot,
    record,
    time_index,
)
from logtool.formats.record_batch import HEADER_SIZE

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
Scenarios = Callable[[str], Path]
"""Returns the unpacked directory of a name such as ``4.3.1/clean``; see conftest."""


DATA = Path(__file__).resolve().parents[1] / "data"


def unpacked_in(work: Path) -> Scenarios:
    """Return a function that unpacks a fixture below `work`, at its first call for a name."""

    @cache
    def unpacked(name: str) -> Path:
        target = work / name
        with tarfile.open(DATA / f"{name}.tar.xz") as tar:
            tar.extractall(target.parent, filter="tar")
        return target

    return unpacked


@dataclass(frozen=True)
class Source:
    """A partition of a fixture; with `segments` a run of at most as many is taken at random."""

    path: str
    weight: int = 1
    segments: int = 0


FIXTURES = (
    Source("killed/tx.mixed-0", 14, 5),
    Source("running/tx.mixed-0", 4, 4),
    Source("clean/tx.mixed-0", 6),
    Source("killed/compacted-tx-0", 4, 5),
    Source("clean/compacted.keys-0", 2, 5),
    Source("killed/compacted.keys-0", 2, 5),
    Source("killed/small-segments-0", 4, 6),
    Source("killed/tx-interleaved_v2-0", 2),
    Source("clean/tx-interleaved_v2-1", 1),
    Source("killed/idempotent_writes-0", 2),
    Source("clean/mixed_codecs-0", 1),
    Source("clean/index.dense-0", 2),
    Source("killed/index.dense-0", 1),
    Source("killed/deleted-records.mid-0"),
    Source("killed/deleted_segments-0"),
    Source("killed/deleted-pending-0", 2),
    Source("clean/codec-zstd-0"),
    Source("clean/odd.timestamps-0"),
    Source("clean/log_append_time-0"),
    Source("killed/__consumer_offsets-0"),
    Source("killed/__transaction_state-0"),
    Source("java-clients/java-tx-0"),
    Source("replicas/node-3/replica.diverged-0", 2),
    Source("replicas/node-3/replica.fetched-at-once-0"),
    Source("clean/empty-topic-0"),
)
MADE_WEIGHT = 22


@dataclass
class Batch:
    """The place of a batch in its ``.log``, found by its size field alone."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    attributes: int


def walk(data: bytes) -> Iterator[Batch]:
    """Yield the batches up to the first impossible size."""
    position = 0
    while position + HEADER_SIZE <= len(data):
        base = int.from_bytes(data[position : position + 8], "big", signed=True)
        size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True) + 12
        if size < HEADER_SIZE or position + size > len(data):
            return
        header = data[position : position + HEADER_SIZE]
        delta = int.from_bytes(header[23:27], "big", signed=True)
        attributes = int.from_bytes(header[21:23], "big")
        yield Batch(position, size, base, base + delta, attributes)
        position += size


def logs(directory: Path) -> list[Path]:
    """Return the ``.log`` files in the order of their base offsets."""
    return sorted(directory.glob("[0-9]*.log"))


def base_offsets(directory: Path) -> list[int]:
    return [int(path.stem) for path in logs(directory)]


def end_offset(directory: Path) -> int:
    """Return the log end offset of a sound partition."""
    here = logs(directory)
    last = list(walk(here[-1].read_bytes()))
    return last[-1].last_offset + 1 if last else int(here[-1].stem)


def fixture_of(version: str) -> str:
    """Return the release of the fixtures for a release: Kafka 3 reads those of 3.9."""
    return KAFKA_4 if major(version) >= 4 else KAFKA_3


def put(version: str, scenarios: Scenarios, target: Path, rng: Random) -> str:
    """Put a sound partition into the new directory `target`; return its description."""
    weights = [MADE_WEIGHT, *(source.weight for source in FIXTURES)]
    source = rng.choices([None, *FIXTURES], weights)[0]
    if source is None:
        return make(target, rng)
    scenario, _, inner = source.path.partition("/")
    shutil.copytree(scenarios(f"{version}/{scenario}") / inner, target)
    name = source.path
    if source.segments:
        bases = base_offsets(target)
        count = rng.randint(1, min(source.segments, len(bases)))
        first = rng.randrange(len(bases) - count + 1)
        keep_segments(target, first, first + count)
        name += f"[{first}:{first + count}]"
    age_ms = rng.choices((HOUR_MS, 3 * DAY_MS), (9, 1))[0]
    date_producers(target, int(time.time() * 1000) - age_ms)
    return name + (", producers expired" if age_ms > DAY_MS else "")


def keep_segments(directory: Path, first: int, end: int) -> None:
    """Remove the segments before `first` and from `end` on, with their other files."""
    bases = base_offsets(directory)
    start, stop = bases[first], bases[end] if end < len(bases) else None
    for path in [path for path in directory.iterdir() if path.name[:20].isdigit()]:
        offset = int(path.name[:20])
        # The snapshot at the end is one that a clean close would have left.
        beyond = stop is not None and offset > stop - (path.suffix != ".snapshot")
        if offset < start or beyond:
            path.unlink()
    path = directory / "leader-epoch-checkpoint"
    leo = end_offset(directory)
    rows = [row for row in leader_epoch_checkpoint.parse(path.read_bytes()).epochs if row[1] < leo]
    before = [(epoch, start) for epoch, offset in rows if offset <= start][-1:]
    rows = before + [row for row in rows if row[1] > start]
    path.write_bytes(leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(rows)))


def date_producers(directory: Path, time_ms: int) -> None:
    """Give the producers in the snapshots a time: a broker forgets those of a day ago."""
    for path in directory.glob("*.snapshot"):
        rows = producer_snapshot.parse(path.read_bytes()).entries.copy()
        rows["timestamp"] = time_ms
        path.write_bytes(producer_snapshot.encode(producer_snapshot.build(rows)))


def make(target: Path, rng: Random) -> str:
    """Make up a partition of one to five segments."""
    target.mkdir()
    stream = list(_stream(rng))
    cuts = sorted({0, *(rng.randrange(len(stream)) for _ in range(rng.randint(0, 4)))})
    epochs: dict[int, int] = {}
    for first, end in zip(cuts, [*cuts[1:], len(stream)], strict=True):
        base = int.from_bytes(stream[first][:8], "big")
        data = b"".join(stream[first:end])
        (target / f"{base:020}.log").write_bytes(data)
        _write_indexes(target / f"{base:020}", base, data, rng.choice((0, 200, 4096)))
        for piece in stream[first:end]:
            epochs.setdefault(int.from_bytes(piece[12:16], "big"), int.from_bytes(piece[:8], "big"))
    rows = leader_epoch_checkpoint.build(sorted(epochs.items()))
    (target / "leader-epoch-checkpoint").write_bytes(leader_epoch_checkpoint.encode(rows))
    return f"made, {len(stream)} batches"


def _stream(rng: Random) -> Iterator[bytes]:
    """Yield batches of plain, idempotent and transactional producers in the order of a log."""
    offset, epoch = rng.choice((0, 0, 100, 5_000_000_000)), rng.randrange(3)
    now = int(time.time() * 1000) - rng.choice((0, HOUR_MS, 3 * DAY_MS))
    sequences: dict[int, int] = {}
    open_since: dict[int, int] = {}
    for _ in range(rng.randint(3, 60)):
        epoch += rng.random() < 0.08
        producer = rng.choice((-1, 8000, 8001, 9000, 9001, 9002))
        now += rng.choice((-500, 0, 1, 20, 1000))
        times = {"base_timestamp": now, "max_timestamp": now}
        if producer in open_since and rng.random() < 0.5:
            commit = rng.random() < 0.5
            key, value = control_record.encode_end_transaction(
                commit=commit, coordinator_epoch=rng.randrange(3)
            )
            payload = record.encode([record.Record(0, 0, key, value)])
            yield new_batch(
                offset, b"", epoch=epoch, payload=payload, attributes=MARKER,
                producer_id=producer, producer_epoch=0, **times,
            )  # fmt: skip
            del open_since[producer]
            offset += 1
            continue
        values = [rng.randbytes(rng.choice((4, 30, 120))) for _ in range(rng.randint(1, 4))]
        fields: dict[str, object] = {"attributes": rng.choice((0, 0, 0, 1, 2, 3, 4))}
        if producer >= 0:
            sequence = sequences.get(producer, 0)
            fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            sequences[producer] = sequence + len(values)
        if producer >= 9000:
            fields["attributes"] = 0x10
            open_since.setdefault(producer, offset)
        yield new_batch(offset, *values, epoch=epoch, **times, **fields)
        # Now and then offsets are missing, as after compaction.
        offset += len(values) + (rng.randint(1, 50) if rng.random() < 0.1 else 0)


def _write_indexes(stem: Path, base: int, data: bytes, interval: int) -> None:
    offsets, times, since, latest = [], [], 0, (-1, 0)
    for batch in walk(data):
        stamp = int.from_bytes(data[batch.position + 35 : batch.position + 43], "big")
        latest = max(latest, (stamp, batch.last_offset - base), key=lambda pair: pair[0])
        if batch.position - since > interval:
            offsets.append((batch.last_offset - base, batch.position))
            if not times or latest[0] > times[-1][0]:
                times.append(latest)
            since = batch.position
    if latest[0] > (times[-1][0] if times else -1):
        times.append(latest)
    stem.with_suffix(".index").write_bytes(_packed(offset_index.ENTRY, offsets))
    stem.with_suffix(".timeindex").write_bytes(_packed(time_index.ENTRY, times))


def _packed(dtype: np.dtype, rows: list[tuple[int, int]]) -> bytes:
    return np.array(rows, dtype).tobytes()
