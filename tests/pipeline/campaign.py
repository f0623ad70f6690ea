"""The campaign on the data source without a session: log dirs by a seed, options, and faults.

The truth is `pipeline.plain_parse`. Each read is one of these: complete, failed, or reported (a
warning names what is missing). Any other read lost rows without a word.
"""

import json
import logging
import os
import random
import shutil
import struct
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import s3fs
from damage import flip
from faulty_store import Faults, faulty
from pipeline.plain_parse import Row, Tables, parse
from s3_server import serving, settings

from logtool.errors import LogtoolError
from logtool.formats import record, record_batch
from logtool.spark.source import options, question_rows, reading
from logtool.spark.source.reading import ReadOptions

START = 1_700_000_000_000
TOPICS = ("orders", "payments", "audit.log")
COMPLETE, FAILED, REPORTED, SILENT = "complete", "failed", "reported", "lost without a word"
NO_FAULT = "the fault did not happen"
TABLES = Tables._fields
QUESTIONS = question_rows.TABLES
"""The tables about whole partitions."""
CHECKPOINT = "log-start-offset-checkpoint"
_SMALL_BUNDLES = 1000
"""Bytes of a bundle with which the segments are cut."""


@dataclass
class Verdicts:
    """The number of cases by kind of case and verdict, and the cases that are wrong."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, kind: str, verdict: str, case: str, *allowed: str) -> None:
        """Count a case, and keep it if its verdict is not one that is allowed."""
        self.counts[kind, verdict] += 1
        if verdict not in allowed:
            self.wrong.append(f"{kind}: {case}: {verdict}")


class Producer:
    """A producer in one partition: its epoch, and the sequence number of its next record."""

    def __init__(self, number: int) -> None:
        self.id, self.epoch, self.sequence = number, 0, 2**31 - 20 * number

    def take(self, rng: random.Random, count: int) -> int:
        """Return the sequence number of a batch of `count` records, sometimes a wrong one."""
        if rng.random() < 0.05:
            self.epoch, self.sequence = self.epoch + 1, 0
        first = (self.sequence + 2 * (rng.random() < 0.1)) % 2**31
        self.sequence = (first + count) % 2**31
        return first


def write_log_dir(home: Path, seed: int) -> Path:
    """Write a log dir of a few topics, with gaps, control batches, codecs, headers and damage.

    Some partitions have a log start behind their first offset.
    """
    rng = random.Random(seed)
    starts = []
    for topic in TOPICS:
        for partition in range(rng.randint(1, 3)):
            folder = home / f"{topic}-{partition}"
            folder.mkdir(parents=True)
            base, end = _write_partition(folder, rng)
            if partition:
                starts.append(f"{topic} {partition} {rng.randrange(base, end)}")
    text = "\n".join(["0", str(len(starts)), *starts, ""])
    (home / CHECKPOINT).write_text(text)
    return home


def _write_partition(folder: Path, rng: random.Random) -> tuple[int, int]:
    """Write a partition; return its first offset and the one behind its first segment."""
    first = offset = rng.choice((0, 0, 1000))
    epoch, end = 0, 0
    producers = [Producer(number) for number in (1, 2, 3)]
    for _ in range(rng.randint(1, 4)):
        base, data, entries = offset, b"", b""
        for number in range(rng.randint(3, 25)):
            if number:
                entries += struct.pack(">ii", offset - base, len(data))
            epoch += rng.random() < 0.05
            batch, offset = _batch(rng, offset, epoch, rng.choice(producers))
            data += batch
            end = end if base > first else offset
            offset += rng.choice((0, 0, 0, 7))
        if rng.random() < 0.2:  # payloads only: the length of a batch leads to the next
            data = flip(data, 70)
        log = folder / f"{base:020d}.log"
        log.write_bytes(data)
        log.with_suffix(".index").write_bytes(entries)
    return first, end


def _batch(rng: random.Random, offset: int, epoch: int, producer: Producer) -> tuple[bytes, int]:
    """Return a batch and the offset behind it."""
    time, transactional = START + offset * 10 + rng.randint(-500, 500), rng.random() < 0.2
    idempotent, sequence = transactional or rng.random() < 0.2, record_batch.NO_SEQUENCE
    if transactional and rng.random() < 0.4:
        key = struct.pack(">hh", 0, rng.randint(0, 1))
        rows = [record.Record(0, 0, key, struct.pack(">hi", 0, rng.randint(0, 9)))]
        attributes = 16 | 32
    else:
        rows = [
            record.Record(
                number, rng.randint(0, 50),
                rng.choice((None, b"", rng.randbytes(6))),
                rng.choice((None, b"", rng.randbytes(rng.randint(1, 80)))),
                [(b"h", rng.choice((None, b"x")))] * rng.randint(0, 2),
            )
            for number in range(rng.randint(1, 6))
        ]  # fmt: skip
        attributes = rng.choice((0, 0, 1)) | 16 * transactional
        sequence = producer.take(rng, len(rows)) if idempotent else sequence
    last = rows[-1].offset_delta
    data = record_batch.encode(
        record.encode(rows), base_offset=offset, last_offset_delta=last, record_count=len(rows),
        leader_epoch=epoch, attributes=attributes, base_timestamp=time,
        max_timestamp=time + max(row.timestamp_delta for row in rows),
        producer_id=producer.id if idempotent else -1,
        producer_epoch=producer.epoch if idempotent else -1, base_sequence=sequence,
    )  # fmt: skip
    return data, offset + last + 1


def expected(truth: Tables, table: str) -> list[Row]:
    """Return the rows that a table must have, in any order."""
    rows: list[Row] = getattr(truth, table)
    return rows


def in_order(rows: list[Row]) -> list[str]:
    """Return rows as texts in one order, which can be compared."""
    return sorted(repr(sorted(row.items())) for row in rows)


def read(path: Path, truth: list[Row], **given: Any) -> list[Row]:
    """Read a table as a query does, with the columns of the truth."""
    pieces, asked = plan(path, truth, **given)
    return rows_of(pieces, asked)


def plan(path: Path, truth: list[Row], **given: Any) -> tuple[list[Any], ReadOptions]:
    """Plan a read as the driver does, and return what executors get."""
    texts = {name: str(value) for name, value in given.items()}
    found = options.parse({**texts, "paths": json.dumps([str(path)])})
    asked = ReadOptions(
        table=found.table, columns=tuple(truth[0]), wanted=found.wanted, prune=found.prune,
        payload=found.payload, fail_on_data_loss=found.fail_on_data_loss,
    )  # fmt: skip
    paths, size, fails = found.paths, found.bundle_bytes, found.fail_on_data_loss
    if found.table in QUESTIONS:
        some = question_rows.plan(paths, found.table, found.wanted, size, fails=fails)
        return [task for bundle in some for task in bundle], asked
    bundles = reading.plan(paths, asked, size)
    return [piece for bundle in bundles for piece in bundle], asked


def rows_of(pieces: list[Any], asked: ReadOptions) -> list[Row]:
    """Read what was planned as executors do."""
    return [row for some in reading.read_all(pieces, asked) for row in some.to_pylist()]


def option_cases(rng: random.Random, table: str) -> tuple[dict[str, Any], Callable[[Row], bool]]:
    """Return options of the data source and the condition that they stand for."""
    first, last, time = {
        "batches": ("base_offset", "last_offset", "max_timestamp_ms"),
        "records": ("offset", "offset", "timestamp_ms"), "kafka": ("offset", "offset", ""),
    }.get(table, ("first_offset", "last_offset", ""))  # fmt: skip
    start, topic = rng.randint(0, 300), rng.choice(TOPICS)
    stop, since = start + rng.randint(0, 200), START + rng.randint(0, 3000)
    cases: list[tuple[dict[str, Any], Callable[[Row], bool]]] = [
        ({}, lambda row: True),
        ({"topic": topic}, lambda row: row["topic"] == topic),
        ({"topic": f"{topic[:2]}*"}, lambda row: row["topic"].startswith(topic[:2])),
        ({"partition": "0,2"}, lambda row: row["partition"] in (0, 2)),
        ({"startingOffsets": start}, lambda row: row[last] >= start),
        (
            {"startingOffsets": start, "endingOffsets": stop},
            lambda row: row[last] >= start and row[first] < stop,
        ),
    ]
    if time:
        cases += [
            ({"startingTimestamp": since}, lambda row: row[time] >= since),
            ({"endingTimestamp": since}, lambda row: row[time] < since),
            (
                {"topic": topic, "endingTimestamp": since, "startingOffsets": start},
                lambda row: row["topic"] == topic and row[time] < since and row[last] >= start,
            ),
        ]
    return rng.choice(cases)


def try_options(home: Path, truth: Tables, rng: random.Random, verdicts: Verdicts) -> None:
    """Read every table with options by chance, in whole segments and in pieces."""
    for table in TABLES:
        given, condition = option_cases(rng, table)
        rows = expected(truth, table)
        wanted = [row for row in rows if condition(row)]
        more = {"bundleBytes": _SMALL_BUNDLES} if rng.random() < 0.5 else {}
        payload = {"payload": "full"} if table == "records" else {}
        found = read(home, rows, table=table, **given, **more, **payload)
        same = in_order(found) == in_order(wanted)
        case = f"{home} {table} {given} {more}: {len(found)} rows, not {len(wanted)}"
        verdicts.add(f"options of {table}", COMPLETE if same else "other rows", case, COMPLETE)


@contextmanager
def warnings() -> Iterator[list[str]]:
    """Yield the warnings that logtool logs, as they come."""
    found: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, entry: logging.LogRecord) -> None:
            found.append(entry.getMessage())

    keeper, log = Keeper(), logging.getLogger("logtool.spark")
    log.addHandler(keeper)
    spreads, log.propagate = log.propagate, False
    try:
        yield found
    finally:
        log.removeHandler(keeper)
        log.propagate = spreads


def judge(job: Callable[[], list[Row]], wanted: list[Row], before: Sequence[str] = ()) -> str:
    """Return the verdict on a read; `before` has the warnings of its planning."""
    with warnings() as said:
        try:
            rows = job()
        except LogtoolError:
            return FAILED
    if in_order(rows) == in_order(wanted):
        return COMPLETE
    return REPORTED if said or before else SILENT


LOCAL: dict[str, Callable[[Path], None]] = {
    "log removed": lambda log: log.unlink(),
    "log truncated": lambda log: os.truncate(log, log.stat().st_size // 2),
    "log cut by a byte": lambda log: os.truncate(log, log.stat().st_size - 1),
    "log unreadable": lambda log: (log.unlink(), log.symlink_to("elsewhere"))[0],
    "index removed": lambda log: log.with_suffix(".index").unlink(),
    "partition removed": lambda log: shutil.rmtree(log.parent),
}
"""Changes of one log between planning and reading."""


def try_local(make: Callable[[], tuple[Path, Tables]], table: str, verdicts: Verdicts) -> None:
    """Change a log between planning and reading; the read is strict, then loose."""
    for name, change in LOCAL.items():
        for strict in ("true", "false"):
            home, truth = make()
            rows = expected(truth, table)
            planned = plan(
                home, rows, table=table, failOnDataLoss=strict, bundleBytes=_SMALL_BUNDLES
            )
            log = random.Random(name).choice(sorted(home.rglob("*.log")))
            change(log)
            verdict = judge(partial(rows_of, *planned), rows)
            allowed = (COMPLETE, FAILED if strict == "true" else REPORTED)
            verdicts.add(
                f"{table}, local, between planning and reading: {name}", verdict, str(log), *allowed
            )


REFUSALS = {"403": (403, "AccessDenied"), "404": (404, "NoSuchKey"), "503": (503, "SlowDown")}


@dataclass(frozen=True)
class Bucket:
    """A server with log dirs in a bucket, and the faults in front of it."""

    server: str
    faults: Faults
    direct: Any

    def put(self, home: Path, name: str) -> Path:
        """Copy a log dir into the bucket, and return its URL."""
        self.direct.put(f"{home}/", f"bucket/{name}/", recursive=True)
        return options.parse({"path": f"s3://bucket/{name}"}).paths[0]

    def under_faults(self, job: Callable[[], str]) -> str:
        """Return the verdict of a job, or that no fault came; end the faults."""
        before = self.faults.hits
        verdict = job()
        for some in (self.faults.refused, self.faults.dropped):
            some.clear()
        return verdict if self.faults.hits > before else NO_FAULT

    def refuse_after(self, requests: int) -> None:
        """Let the server answer some requests more, and refuse all others with status 403."""
        url, plain = f"{self.server}/moto-api/reset-auth", {"Content-Type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(url, b"%d" % requests, plain)).close()


@contextmanager
def bucket(home: Path) -> Iterator[Bucket]:
    """Start a server, and let this process and its children find it behind a proxy with faults."""
    before, retries = dict(os.environ), s3fs.S3FileSystem.retries
    with serving() as server, faulty(server, faults := Faults()) as between:
        os.environ.update(settings(between, home))
        s3fs.S3FileSystem.retries = 1
        s3fs.S3FileSystem.clear_instance_cache()
        direct = s3fs.S3FileSystem(endpoint_url=server)
        direct.makedirs("bucket", exist_ok=True)
        try:
            yield Bucket(server, faults, direct)
        finally:
            s3fs.S3FileSystem.retries = retries
            s3fs.S3FileSystem.clear_instance_cache()
            os.environ.clear()
            os.environ.update(before)


def try_store(store: Bucket, home: Path, truth: Tables, table: str, verdicts: Verdicts) -> None:
    """Refuse, drop and replace objects at listing, planning and reading."""
    url, rows = store.put(home, f"{home.name}-{table}"), expected(truth, table)
    log = largest_closed(home)
    names = moments(log, table)
    key = f"bucket/{url.name}/{names['reading']}"
    data = store.direct.cat_file(key)
    for strict in ("true", "false"):
        given = {"table": table, "failOnDataLoss": strict, "bundleBytes": _SMALL_BUNDLES}
        allowed = (COMPLETE, FAILED if strict == "true" else REPORTED)

        def whole(given: dict[str, Any] = given) -> list[Row]:
            return read(url, rows, **given)

        def planned(given: dict[str, Any] = given) -> Callable[[], str]:
            with warnings() as said:
                job = partial(rows_of, *plan(url, rows, **given))
            return partial(judge, job, rows, said)

        for moment, name in names.items():
            for status, answer in REFUSALS.items():
                verdict_of = planned() if moment == "reading" else partial(judge, whole, rows)
                store.faults.refused[name] = answer
                verdict = store.under_faults(verdict_of)
                verdicts.add(f"{table}, S3 {status} at {moment}", verdict, name, *allowed, FAILED)
        verdict_of = planned()
        store.faults.dropped.add(names["reading"])
        verdict = store.under_faults(verdict_of)
        verdicts.add(f"{table}, S3 connection lost at reading", verdict, home.name, *allowed)
        for change, other in {
            "other bytes of the same size": flip(data, 62), "more bytes": data + data[:200],
            "fewer bytes": data[:-1],
        }.items():  # fmt: skip
            verdict_of = planned()
            store.direct.pipe_file(key, other)
            verdict = verdict_of()
            store.direct.pipe_file(key, data)
            verdicts.add(f"{table}, S3 object replaced by {change}", verdict, key, *allowed)


def largest_closed(home: Path) -> Path:
    """Return the largest log that is not the last of its partition: that one may be replaced."""
    folders = [sorted(one.glob("*.log")) for one in home.iterdir()]
    return max((log for logs in folders for log in logs[:-1]), key=lambda log: log.stat().st_size)


def moments(log: Path, table: str) -> dict[str, str]:
    """Return a part of a name that is asked for at each moment of a read of a log."""
    found = {"listing": "/bucket", "reading": f"{log.parent.name}/{log.name}"}
    if table == "batches":
        found["planning"] = f"{log.parent.name}/{log.stem}.index"
    if table in ("gaps", "kafka"):
        found["planning"] = CHECKPOINT
    return found


def try_store_that_refuses(
    store: Bucket, home: Path, truth: Tables, table: str, verdicts: Verdicts
) -> None:
    """Refuse everything after some requests of a read, by the server itself."""
    url, rows = store.put(home, f"{home.name}-{table}-denied"), expected(truth, table)
    try:
        for requests in (0, 1, 3, 6, 12):
            store.refuse_after(requests)
            verdict = judge(lambda: read(url, rows, table=table), rows)
            case = f"{table}, S3 403 after some requests"
            verdicts.add(case, verdict, str(requests), COMPLETE, FAILED)
    finally:
        store.refuse_after(1_000_000_000)


def make(root: Path, seed: int) -> tuple[Path, Tables]:
    """Write a log dir of a seed, and return it with its truth."""
    home = write_log_dir(root / f"seed-{seed}-{len(list(root.iterdir()))}", seed)
    if seed not in _TRUTHS:
        _TRUTHS[seed] = parse(home)
    return home, _TRUTHS[seed]


_TRUTHS: dict[int, Tables] = {}
"""Rows of log dirs by their seeds: a parse takes longer than the write of the log dir."""
