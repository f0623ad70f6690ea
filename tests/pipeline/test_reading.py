"""Conditions save reading and never rows; pieces of a segment give the rows of the whole."""

import os
import pickle
import random
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import damage
import numpy as np
import pyarrow as pa
import pytest
import redpanda_files as rp
from conftest import SCENARIOS
from thinned import some

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError, UsageError
from logtool.formats import names, offset_index, record, record_batch
from logtool.log import opening
from logtool.log.selection import Selection
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.source import reading, seek
from logtool.spark.source.bundles import OPENING
from logtool.spark.source.loss import LostDataError
from logtool.spark.source.read_tasks import ReadTask
from logtool.spark.source.reading import ReadOptions
from logtool.spark.source.wanted import EVERYTHING as EVERY_ROW
from logtool.spark.source.wanted import RowFilter, parse_offsets

START = 1_700_000_000_000
OF_LOGS = ("batches", "records", "segments")
"""The tables with the columns that filters are drawn for; test_source holds the rows of kafka."""
EVERYTHING = {table: tuple(arrow.schema(table).names) for table in reading.TABLES}
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def _every_log_is_worth_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seek, "_WORTH_AN_INDEX", 0)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return the bytes that are read of each file, by its name."""
    counts: dict[str, int] = {}
    original, original_read = LogFile.read_into, LogFile.read

    def read_into(self: LogFile, buffer: memoryview, position: int) -> int:
        count = original(self, buffer, position)
        counts[self.path.name] = counts.get(self.path.name, 0) + count
        return count

    def read(self: LogFile, position: int, size: int) -> bytes:
        data = original_read(self, position, size)
        counts[self.path.name] = counts.get(self.path.name, 0) + len(data)
        return data

    monkeypatch.setattr(LogFile, "read_into", read_into)
    monkeypatch.setattr(LogFile, "read", read)
    return counts


def rows_of(path: Path, asked: ReadOptions, size: int | None = None) -> list[Row]:
    bundles = reading.plan([path], asked, size)
    return [
        row
        for pieces in bundles
        for piece in pieces
        for rows in reading.read(piece, asked)
        for row in rows.to_pylist()
    ]


def asked(table: str, wanted: RowFilter = EVERY_ROW, **more: Any) -> ReadOptions:
    return ReadOptions(table, EVERYTHING[table], wanted, **more)


def batch(offset: int, time: int, *values: bytes, **more: Any) -> bytes:
    records = [record.Record(i, i, b"key", value) for i, value in enumerate(values)]
    return record_batch.encode(
        record.encode(records), base_offset=offset, last_offset_delta=len(values) - 1,
        record_count=len(values), base_timestamp=time, max_timestamp=time + len(values) - 1,
        **more,
    )  # fmt: skip


def write(
    folder: Path, base: int, batches: Sequence[tuple[int, int, bytes]], interval: int = 300,
    padding: int = 0,
) -> Path:  # fmt: skip
    """Write a segment of (last offset, largest timestamp, bytes) as a broker appends and closes."""
    folder.mkdir(exist_ok=True)
    stem = folder / f"{base:020d}"
    data, since, highest, at = b"", 0, -1, base
    offsets, times = b"", b""

    def note_time() -> None:
        nonlocal times
        if highest > (struct.unpack_from(">q", times, len(times) - 12)[0] if times else -1):
            times += struct.pack(">qi", highest, at - base)

    for last, time, content in batches:
        position = len(data)
        data += content
        if time > highest:
            highest, at = time, last
        if since > interval:
            offsets += struct.pack(">ii", last - base, position)
            note_time()
            since = 0
        since += len(content)
    if not padding:
        note_time()
    stem.with_suffix(".log").write_bytes(data)
    stem.with_suffix(".index").write_bytes(offsets + bytes(8 * padding))
    stem.with_suffix(".timeindex").write_bytes(times + bytes(12 * padding))
    return stem


def some_batches(
    rng: random.Random, base: int, count: int, *, disorder: int = 0, step: int = 10
) -> list[tuple[int, int, bytes]]:
    """Return batches with a gap here and there; `disorder` is how far times jump, ms."""
    found, offset = [], base
    for number in range(count):
        time = START + (base + number) * step + rng.randint(-disorder, disorder)
        values = [rng.randbytes(rng.randint(0, 40)) for _ in range(rng.randint(1, 6))]
        codec = rng.choice((0, 0, 0, 4))
        last = offset + len(values) - 1
        content = batch(offset, time, *values, attributes=codec, producer_id=rng.choice((-1, 7)))
        found.append((last, time + len(values) - 1, content))
        offset = last + 1 + rng.choice((0, 0, 0, 5))
    return found


def partition_of(
    home: Path, *, segments: int = 4, count: int = 60, disorder: int = 0, seed: int = 1
) -> Path:
    """Write a log dir with one partition of several segments."""
    rng, base = random.Random(seed), 1000
    home.mkdir()
    (home / "meta.properties").write_text("version=1\nnode.id=5\ncluster.id=c\n")
    for number in range(segments):
        batches = some_batches(rng, base, count, disorder=disorder)
        write(home / "orders-0", base, batches, padding=9 if number == segments - 1 else 0)
        base = batches[-1][0] + 1
    return home


def fits(row: Row, wanted: RowFilter) -> bool:
    """Judge a row by its own columns."""
    if not wanted.takes(row["directory"]):
        return False
    span = wanted.span(row["topic"], row["partition"])
    if "log_bytes" in row:
        behind = inf if row["next_segment"] is None else row["next_segment"]
        return max(row["segment"], span.first) <= min(behind - 1, span.last)
    first = row["offset"] if "offset" in row else row["base_offset"]
    time = row["timestamp_ms"] if "offset" in row else row["max_timestamp_ms"]
    in_time = not span.timed or (time is not None and span.since <= time <= span.until)
    return max(first, span.first) <= min(row.get("last_offset", first), span.last) and in_time


def some_wanted(rng: random.Random, table: str, rows: list[Row], path: Path) -> RowFilter:
    """Return a filter that is likely to want some of the rows and not all of them."""

    def near(name: str) -> int | None:
        value = rng.choice(rows)[name]
        return None if value is None else max(0, value + rng.randint(-2, 2))

    more: dict[str, Any] = {}
    offset = {"batches": "base_offset", "records": "offset", "segments": "segment"}[table]
    if rng.random() < 0.6:
        more["starting_offsets"] = near(offset)
    if rng.random() < 0.6:
        found = near(offset)
        more["ending_offsets"] = found
        if rng.random() < 0.5:
            named: dict[str, dict[int, int]] = {}
            for one in map(names.parse_directory, sorted(path.name for path in path.iterdir())):
                if isinstance(one, names.PartitionDirectory):
                    named.setdefault(one.topic, {})[one.partition] = rng.choice((-1, -2, found))
            more["ending_offsets"] = named
    if table != "segments":
        time = "timestamp_ms" if table == "records" else "max_timestamp_ms"
        for name in ("starting_timestamp", "ending_timestamp"):
            if rng.random() < 0.4:
                more[name] = near(time)
    if rng.random() < 0.3:
        row = rng.choice(rows)
        more["selection"] = Selection((row["topic"][:3] + "*",), (), (row["partition"],))
    return RowFilter(**more)


def assert_nothing_is_lost(path: Path, table: str, rng: random.Random, tries: int) -> None:
    whole = rows_of(path, asked(table, prune=False, payload=Payload.LENGTH))
    if not whole:
        return
    for _ in range(tries if len(whole) < 2000 else 1 + tries // 3):
        wanted = some_wanted(rng, table, whole, path)
        size = rng.choice((None, 1000, 5000))
        found = rows_of(path, asked(table, wanted, payload=Payload.LENGTH), size)
        expected = [row for row in whole if fits(row, wanted)]
        assert found == expected, wanted


@pytest.mark.parametrize(("name", "table"), some(product(SCENARIOS, OF_LOGS), 14, several=True))
def test_filters_on_what_brokers_wrote_lose_no_row(scenario, name, table):
    rng = random.Random(name + table)
    for log_dir in sorted({log.parent.parent for log in scenario(name).rglob("*.log")}):
        assert_nothing_is_lost(log_dir, table, rng, 5)


@pytest.mark.parametrize("disorder", [0, 100, 10_000])
@pytest.mark.parametrize("table", OF_LOGS)
def test_filters_lose_no_row_whatever_the_order_of_times(tmp_path, table, disorder):
    home = partition_of(tmp_path / "data", disorder=disorder)
    assert_nothing_is_lost(home, table, random.Random(disorder), 25)


def without_some_entries(data: bytes, rng: random.Random, size: int) -> bytes:
    return data[: rng.randrange(len(data) // size) * size]


def with_noise(data: bytes, rng: random.Random, size: int) -> bytes:
    return damage.flip(data, rng.randrange(len(data)), rng.randint(1, 255))


def with_wrong_entry(data: bytes, rng: random.Random, size: int) -> bytes:
    at = rng.randrange(len(data) // size) * size
    return data[:at] + rng.randbytes(size) + data[at + size :]


def with_padding(data: bytes, rng: random.Random, size: int) -> bytes:
    return data + bytes(size * rng.randint(1, 9))


def without_its_beginning(data: bytes, rng: random.Random, size: int) -> bytes:
    return data[rng.randrange(1, len(data) // size) * size :]


def nothing(data: bytes, rng: random.Random, size: int) -> bytes:
    return b""


INDEX_DAMAGES = [without_some_entries, with_noise, with_wrong_entry, with_padding,
                 without_its_beginning, nothing]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("spoil", INDEX_DAMAGES)
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("table", ["batches", "records"])
def test_indexes_that_are_wrong_lose_no_row(tmp_path, table, suffix, spoil):
    rng = random.Random(f"{suffix}{spoil.__name__}{table}")
    for number, disorder in enumerate((0, 0, 300)):
        home = partition_of(tmp_path / f"{number}", disorder=disorder, seed=number, segments=2)
        for path in sorted(home.rglob(f"*{suffix}")):
            path.write_bytes(spoil(path.read_bytes(), rng, 8 if suffix == ".index" else 12))
        assert_nothing_is_lost(home, table, rng, 15)


def test_missing_indexes_lose_no_row(tmp_path: Path) -> None:
    home = partition_of(tmp_path / "data")
    for path in [*home.rglob("*.index"), *home.rglob("*.timeindex")]:
        path.unlink()
    assert_nothing_is_lost(home, "batches", random.Random(3), 20)


def spoiled(data: bytes, rng: random.Random) -> bytes:
    """Damage a log in one of the ways of disks and crashes, most of them where it can be."""
    at, length = rng.randrange(len(data) - 400), rng.randint(1, 399)
    kind = rng.randrange(6)
    if kind == 0:
        return damage.flip(data, at, 1 << rng.randrange(8))
    if kind == 1:
        return damage.cut(data, at)
    if kind == 2 and any(data[at : at + length]):
        return damage.zero(data, at, length)
    if kind == 3:
        return damage.drop(data, at, length)
    if kind == 4 and len(data) > at + 2 * length:
        return damage.repeat(data, at, length)
    return damage.overwrite(data, at, rng.randbytes(length))


@pytest.mark.long
@pytest.mark.parametrize("table", ["batches", "records"])
@pytest.mark.parametrize("seed", range(60))
def test_pieces_of_a_damaged_segment_give_the_rows_of_the_whole(tmp_path, seed, table):
    rng = random.Random(seed)
    stem = write(tmp_path / "orders-0", 1000, some_batches(rng, 1000, 80))
    log = stem.with_suffix(".log")
    data = log.read_bytes()
    for _ in range(rng.randint(0, 4)):
        if len(data) > 1000:
            data = spoiled(data, rng)
    log.write_bytes(data)
    whole = rows_of(log, asked(table))
    for size in (300, 1000, 3000):
        found = rows_of(log, asked(table), size)
        assert [row.get("position", row.get("offset")) for row in found] == [
            row.get("position", row.get("offset")) for row in whole
        ]
        assert found == whole


def test_pieces_follow_each_other_and_begin_at_batches(tmp_path: Path) -> None:
    stem = write(tmp_path / "orders-0", 1000, some_batches(random.Random(1), 1000, 200))
    log = stem.with_suffix(".log")
    (whole,), *_ = reading.plan([log], asked("batches"))
    pieces = reading.cut(whole, log.stat().st_size // 8, asked("batches"))
    assert len(pieces) == 8
    assert pieces[0].start == 0
    assert pieces[-1].stop is None
    assert [piece.stop for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]
    positions = {row["position"] for row in rows_of(log, asked("batches"))}
    assert {piece.start for piece in pieces} <= positions


def test_an_edge_without_a_sound_batch_is_none(tmp_path: Path) -> None:
    stem = write(tmp_path / "orders-0", 1000, some_batches(random.Random(1), 1000, 200))
    log, index = stem.with_suffix(".log"), stem.with_suffix(".index")
    (whole,), *_ = reading.plan([log], asked("batches"))
    edges = [piece.start for piece in reading.cut(whole, 4000, asked("batches"))][1:]
    damage.damage_file(log, damage.flip, edges[1] + 60)
    found = [piece.start for piece in reading.cut(whole, 4000, asked("batches"))][1:]
    assert found == [edges[0], *edges[2:]]
    shifted = offset_index.parse(index.read_bytes()).positions + 1
    entries = np.empty(len(shifted), offset_index.ENTRY)
    entries["relative_offset"], entries["position"] = np.arange(1, len(shifted) + 1), shifted
    index.write_bytes(entries.tobytes())
    assert reading.cut(whole, 4000, asked("batches")) == [whole]


def test_an_offset_is_found_with_few_bytes(tmp_path: Path, opened: dict[str, int]) -> None:
    home = partition_of(tmp_path / "data", segments=3, count=400)
    whole = rows_of(home, asked("records", prune=False))
    size = sum(path.stat().st_size for path in home.rglob("*.log"))
    last = max(row["segment"] for row in whole)
    row = next(row for row in reversed(whole) if row["segment"] < last)
    opened.clear()
    wanted = RowFilter(starting_offsets=row["offset"], ending_offsets=row["offset"] + 1)
    assert rows_of(home, asked("records", wanted)) == [row]
    assert [name for name in opened if name.endswith(".log")] == [f"{row['segment']:020d}.log"]
    assert sum(count for name, count in opened.items() if name.endswith(".log")) < size / 20


def test_late_times_are_found_with_few_bytes(tmp_path: Path, opened: dict[str, int]) -> None:
    home = partition_of(tmp_path / "data", segments=3, count=400, disorder=30)
    whole = rows_of(home, asked("batches", prune=False))
    size = sum(path.stat().st_size for path in home.rglob("*.log"))
    since = sorted(row["max_timestamp_ms"] for row in whole)[-5]
    opened.clear()
    assert len(rows_of(home, asked("batches", RowFilter(starting_timestamp=since)))) == 5
    assert sum(count for name, count in opened.items() if name.endswith(".log")) < size / 10


def test_partitions_and_segments_by_name_are_not_opened(tmp_path, opened):
    home = partition_of(tmp_path / "data", segments=3)
    rng = random.Random(9)
    for name in ("orders-1", "pay-ments-0", "orders-0.0123456789abcdef0123456789abcdef-delete"):
        write(home / name, 0, some_batches(rng, 0, 5))
    whole = rows_of(home, asked("batches"))
    bases = sorted({row["segment"] for row in whole if row["directory"] == "orders-0"})
    conditions: list[tuple[RowFilter, Callable[[Row], bool]]] = [
        (RowFilter(Selection(("pay-*",))), lambda row: row["topic"] == "pay-ments"),
        (RowFilter(Selection((), (), (1,))), lambda row: row["partition"] == 1),
        (
            RowFilter(Selection(("orders",), (), (0,)), bases[1], bases[1] + 1),
            lambda row: row["directory"] == "orders-0" and row["base_offset"] == bases[1],
        ),
    ]
    for wanted, fitting in conditions:
        opened.clear()
        expected = [row for row in whole if fitting(row)]
        assert rows_of(home, asked("batches", wanted)) == expected
        logs = {name for name in opened if name.endswith(".log")}
        # Of the directory that is being deleted no name says where its only segment ends.
        assert logs ^ {f"{row['segment']:020d}.log" for row in expected} <= {f"{0:020d}.log"}


def test_partitions_that_are_wanted_and_not_there_are_an_error(tmp_path: Path) -> None:
    home = partition_of(tmp_path / "data", segments=1)
    folder = home / "orders-0"
    for path in (home, folder, *folder.glob("*.log")):
        with pytest.raises(UsageError, match=str(path)):
            reading.plan([path], asked("batches", RowFilter(Selection(("payments",)))))
    offsets = parse_offsets("endingOffsets", '{"orders":{"1":5}}')
    with pytest.raises(UsageError, match=r"endingOffsets.*orders-0"):
        reading.plan([home], asked("batches", RowFilter(ending_offsets=offsets)))


@pytest.mark.parametrize(
    "text",
    ["", "first", "-3", '{"a":1}', '{"a":{"b":1}}', '{"a":{"0":"1"}}', "[1]", '{"a":{"0":-3}}'],
)
def test_offsets_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="startingOffsets"):
        parse_offsets("startingOffsets", text)


def message(offset: int, value: bytes, codec: int = 0) -> bytes:
    body = struct.pack(">bbq", 1, codec, START + offset) + struct.pack(">i", -1)
    body += struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_offsets_in_an_old_wrapper_are_found(tmp_path: Path) -> None:
    packer = zlib.compressobj(wbits=31)
    inner = b"".join(message(number, b"x") for number in range(5))
    wrapper = message(1004, packer.compress(inner) + packer.flush(), codec=1)
    single = [(i, START + i, message(i, b"y" * 50)) for i in range(1005, 1099)]
    write(tmp_path / "orders-0", 1000, [(1004, START + 1004, wrapper), *single])
    log = tmp_path / "orders-0" / f"{1000:020d}.log"
    assert len(rows_of(log, asked("records"))) == 99
    for offset in (1000, 1002, 1004, 1005, 1050, 1098):
        for size in (None, 500):
            wanted = RowFilter(starting_offsets=offset, ending_offsets=offset + 1)
            assert [r["offset"] for r in rows_of(log, asked("records", wanted), size)] == [offset]


def test_only_facts_that_the_listing_does_not_have_are_read(tmp_path, opened):
    home = partition_of(tmp_path / "data", segments=3)
    whole = rows_of(home, asked("segments"))
    assert [row["batches"] for row in whole] == [60] * 3
    assert all(row["read"] for row in whole)
    opened.clear()
    listed = ReadOptions(
        "segments", ("topic", "segment", "next_segment", "log_bytes", "modified_ms")
    )
    assert rows_of(home, listed) == [{name: row[name] for name in listed.columns} for row in whole]
    assert not [name for name in opened if name.endswith(".log")]


def planned(home: Path, table: str, **more: Any) -> tuple[list[ReadTask], ReadOptions]:
    options = asked(table, **more)
    return [piece for pieces in reading.plan([home], options) for piece in pieces], options


def is_unreadable(log: Path) -> None:
    log.rename(log.parent.parent.parent / "moved")
    log.symlink_to(log.parent.parent.parent / "moved")


def is_shorter(log: Path) -> None:
    os.truncate(log, log.stat().st_size - 1)


def is_replaced(log: Path) -> None:
    """Clean a log as a broker does: another file takes the name."""
    cleaned = log.with_suffix(".cleaned")
    cleaned.write_bytes(log.read_bytes() * 2)
    os.utime(cleaned, (1, 1))
    cleaned.replace(log)


LOSSES = [(is_unreadable, 0), (Path.unlink, 0), (is_shorter, 59), (is_replaced, 0)]


@pytest.mark.parametrize(("change", "left"), LOSSES)
@pytest.mark.parametrize("table", ["batches", "segments"])
def test_a_log_that_cannot_be_read_as_it_was_listed_is_a_loss(
    tmp_path, caplog, table, change, left
):
    home = partition_of(tmp_path / "data", segments=3)
    kept, options = planned(home, table, fail_on_data_loss=False)
    fails, strict = planned(home, table)
    log = sorted(home.rglob("*.log"))[1]
    change(log)
    with pytest.raises(LostDataError, match=re.escape(str(log))):
        list(reading.read_all(fails, strict))
    rows = [row for some in reading.read_all(kept, options) for row in some.to_pylist()]
    if table == "segments":
        found = [(row["read"], row["batches"]) for row in rows]
        assert found == [(True, 60), (False, left), (True, 60)]
    else:
        counts = Counter(row["segment"] for row in rows)
        assert [counts[base] for base in sorted({*counts, int(log.stem)})] == [60, left, 60]
    assert str(log) in caplog.text


def test_a_log_that_grew_or_was_copied_while_it_is_active_is_no_loss(tmp_path):
    home = partition_of(tmp_path / "data", segments=3)
    pieces, options = planned(home, "batches")
    last = sorted(home.rglob("*.log"))[-1]
    longer = last.read_bytes() + b"torn tail"
    for grow in (lambda: last.write_bytes(longer), lambda: is_replaced(last)):
        grow()
        rows = [row for some in reading.read_all(pieces, options) for row in some.to_pylist()]
        assert len(rows) >= 180


def test_a_partition_dir_that_cannot_be_listed_is_a_loss(tmp_path, monkeypatch, caplog):
    """A bucket answers 403 for the logs of one partition."""
    home = partition_of(tmp_path / "data", segments=1)
    denied, gone = home / "denied-0", home / "gone-0"
    for folder in (denied, gone):
        folder.mkdir()
    whole = opening.open_partition

    def listed(path: Path, *more: Any) -> Any:
        if path in (denied, gone):
            raise UnreadableError(path, "Forbidden", missing=path == gone)
        return whole(path, *more)

    monkeypatch.setattr(opening, "open_partition", listed)
    with pytest.raises(LostDataError, match=str(denied)):
        reading.plan([home], asked("batches"))
    assert len(rows_of(home, asked("batches", fail_on_data_loss=False))) == 60
    assert str(denied) in caplog.text
    assert str(gone) not in caplog.text


def test_a_log_start_that_cannot_be_read_fails_the_table_kafka(tmp_path, caplog):
    write(tmp_path / "orders-0", 0, [(1, START, batch(0, START, b"a", b"b"))])
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 0 1\n")
    assert [row["offset"] for row in rows_of(tmp_path, asked("kafka"))] == [1]
    checkpoint.unlink()
    checkpoint.symlink_to("nowhere")
    with pytest.raises(LostDataError, match=str(checkpoint)):
        rows_of(tmp_path, asked("kafka"))
    loose = asked("kafka", fail_on_data_loss=False)
    assert [row["offset"] for row in rows_of(tmp_path, loose)] == [0, 1]
    assert str(checkpoint) in caplog.text
    checkpoint.unlink()
    assert len(rows_of(tmp_path, asked("kafka"))) == 2


def test_a_path_that_is_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        reading.plan([tmp_path / "missing"], asked("batches"))
    home = partition_of(tmp_path / "data", segments=1)
    with pytest.raises(UnreadableError, match=r"meta\.properties"):
        reading.plan([home / "meta.properties"], asked("batches"))
    assert len(reading.plan([home, home], asked("batches"))) == 1


def test_a_log_dir_and_what_lies_in_it_are_read_once(tmp_path: Path) -> None:
    home = partition_of(tmp_path / "data", segments=2)
    folder = next(path for path in home.iterdir() if path.is_dir())
    log = min(folder.glob("*.log"))
    (tmp_path / "link").symlink_to(home)
    whole = [piece for pieces in reading.plan([home], asked("batches")) for piece in pieces]
    for paths in ([home, folder], [home, log, folder], [home, tmp_path / "link" / folder.name]):
        found = [piece for pieces in reading.plan(paths, asked("batches")) for piece in pieces]
        assert found == whole
    (first,) = reading.plan([log, home], asked("batches"))
    assert [piece.segment for piece in first] == [piece.segment for piece in whole]


def test_small_segments_share_a_bundle_and_each_is_in_one(tmp_path: Path) -> None:
    rng, home = random.Random(5), tmp_path / "data"
    home.mkdir()
    for number in range(30):
        write(home / f"t-{number}", 0, some_batches(rng, 0, 3))
    size = 10 * OPENING + 10 * 1000
    bundles = reading.plan([home], asked("batches"), size)
    assert 3 <= len(bundles) <= 4
    names = [piece.place.directory for bundle in bundles for piece in bundle]
    assert len(set(names)) == len(names) == 30


def test_rows_are_joined_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(counts: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for count in counts:
            yield pa.RecordBatch.from_pydict({"n": list(range(count))})

    monkeypatch.setattr(reading, "_ROWS_AT_ONCE", 10)
    assert [rows.num_rows for rows in reading.gathered(some([3, 3, 3, 3, 20, 1]))] == [12, 20, 1]
    assert list(reading.gathered([])) == []


def test_pieces_travel_as_they_are(tmp_path: Path) -> None:
    bundles = reading.plan([partition_of(tmp_path / "data")], asked("batches"), 1000)
    assert pickle.loads(pickle.dumps(bundles)) == bundles


def test_pieces_before_what_is_wanted_are_left_out(tmp_path: Path) -> None:
    stem = write(tmp_path / "orders-0", 1000, some_batches(random.Random(1), 1000, 400))
    log = stem.with_suffix(".log")
    whole = rows_of(log, asked("batches"))
    middle, late = whole[len(whole) // 2], whole[-3]

    def pieces(wanted: RowFilter) -> list[ReadTask]:
        bundles = reading.plan([log], asked("batches", wanted), 3000)
        return [piece for bundle in bundles for piece in bundle]

    every = pieces(EVERY_ROW)
    assert len(every) > 5
    offset = middle["base_offset"]
    assert pieces(RowFilter(starting_offsets=offset))[0].start > 0
    assert len(pieces(RowFilter(starting_offsets=offset, ending_offsets=offset + 1))) <= 2
    assert len(pieces(RowFilter(ending_offsets=offset))) < len(every)
    since = RowFilter(starting_timestamp=late["max_timestamp_ms"])
    assert len(pieces(since)) == 1
    assert rows_of(log, asked("batches", since), 3000) == whole[-3:]


def test_directories_of_redpanda_are_tables_too(tmp_path: Path) -> None:
    first = rp.log(0, 4)
    segments = {"0-1-v1.log": first, "13-2-v1.log": rp.log(13, 2) + bytes(4096)}
    folder = rp.data_dir(tmp_path, segments)
    data = folder.parents[2]
    records = ReadOptions("records", ("topic", "partition", "segment", "offset", "leader_epoch"))
    expected = [
        {"topic": "orders", "partition": 0, "segment": base, "offset": at, "leader_epoch": term}
        for base, last, term in ((0, 12, 1), (13, 19, 2))
        for at in range(base + 1, last + 1)
    ]
    for path in (data, folder.parent, folder):
        assert rows_of(path, records) == expected
    assert rows_of(folder / "13-2-v1.log", records) == expected[12:]
    types = ("position", "base_offset", "batch_type", "term")
    batches = rows_of(data, ReadOptions("batches", types))
    assert [row["position"] for row in batches[:5]] == rp.positions(first)
    assert [row["batch_type"] for row in batches] == [
        "raft_configuration", *["raft_data"] * 4, "raft_configuration", *["raft_data"] * 2,
    ]  # fmt: skip
    some = RowFilter(selection=Selection(topics=("ord*",)), starting_offsets={"orders": {0: 16}})
    later = rows_of(data, ReadOptions("records", ("offset",), some))
    assert [row["offset"] for row in later] == [16, 17, 18, 19]
    listed = rows_of(data, ReadOptions("segments", ("segment", "log_bytes", "last_offset")))
    assert [(row["segment"], row["last_offset"]) for row in listed] == [(0, 12), (13, 19)]
    with pytest.raises(UsageError, match="records"):
        reading.plan([data], asked("kafka"))
