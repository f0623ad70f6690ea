"""Times that wrap in 64 bits, negative times, and times without a date, as brokers store them."""

import pyarrow.parquet
import pytest
from log_dir_damage import new_batch

from logtool.formats import record, time_index

LEAST, NEWEST, FAR = -(2**63), 1_795_619_351_180, 1_795_619_351_180_000
TIMES = [LEAST, LEAST, NEWEST, -1000, -1000, FAR, NEWEST]


def batch(offset, base, times, stored):
    """Return a batch with these times, as librdkafka and a broker of 4.1.1 write it."""
    deltas = [(time - base + 2**63) % 2**64 - 2**63 for time in times]
    records = [record.Record(at, delta, b"k", b"v") for at, delta in enumerate(deltas)]
    return new_batch(offset, *[b""] * len(times), payload=record.encode(records), epoch=0,
                     base_timestamp=base, max_timestamp=stored)  # fmt: skip


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "data" / "orders-0"
    home.mkdir(parents=True)
    (home / f"{0:020d}.log").write_bytes(b"".join([
        batch(0, LEAST, TIMES[:1], -1),
        batch(1, LEAST, TIMES[1:3], NEWEST),
        batch(3, -1000, TIMES[3:5], -1),
        batch(5, FAR, TIMES[5:], FAR),
    ]))  # fmt: skip
    (home / f"{0:020d}.index").write_bytes(b"")
    entries = FAR.to_bytes(8, "big") + (5).to_bytes(4, "big")
    assert len(entries) == time_index.ENTRY_SIZE
    (home / f"{0:020d}.timeindex").write_bytes(entries)
    (home / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (home / "partition.metadata").write_text("version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ")
    return home


def test_every_format_of_dump_has_the_times_of_a_consumer(run, home, tmp_path):
    log = home / f"{0:020d}.log"
    found = run("dump", "--records", "-f", "ndjson", log).of_type("record")
    assert [one["timestamp_ms"] for one in found] == TIMES
    rows = run("dump", "--records", "-f", "csv", log).rows
    assert [int(row["timestamp_ms"]) for row in rows] == TIMES
    assert [row["timestamp"] for row in rows][:3] == ["", "", "2026-11-25T15:09:11.180Z"]
    lines = run("dump", "--records", "-f", "kafka", log).lines
    shown = [line.split("CreateTime: ")[1].split()[0] for line in lines if line.startswith("|")]
    assert [int(one) for one in shown] == TIMES
    table = tmp_path / "out.parquet"
    assert run("dump", "--records", "-f", "parquet", "--output", table, log).status == 0
    assert pyarrow.parquet.read_table(table)["timestamp_ms"].to_pylist() == TIMES


@pytest.mark.parametrize(
    ("span", "offsets"),
    [
        ("2026-11-25..2026-11-26", [2, 6]),
        ("-2000..-500", [3, 4]),
        (f"{LEAST}..-2000", [0, 1]),
        (f"{FAR}..", [5]),
    ],
)
def test_a_range_of_times_finds_them_and_counts_them(run, home, span, offsets):
    found = run("dump", "--records", "--timestamp", span, "-f", "ndjson", home).of_type("record")
    assert [one["offset"] for one in found] == offsets
    (total,) = run("dump", "--count", "--timestamp", span, "-f", "ndjson", home).of_type("total")
    assert total["records"] == len(offsets)


@pytest.mark.parametrize(
    ("time", "offset"), [(LEAST, 0), (-1000, 2), (NEWEST, 2), (NEWEST + 1, 5), (FAR, 5)]
)
def test_lookup_finds_the_record_with_the_time(run, home, time, offset):
    places = run("lookup", "--timestamp", time, "-f", "ndjson", home).of_type("place")
    assert [one["offset"] for one in places] == [offset, offset]


def test_verify_takes_them_for_sound(run, home):
    found = run("verify", "--level", "records", "-f", "ndjson", home).of_type("finding")
    assert {(one["severity"], one["code"]) for one in found} == {
        ("info", "batch/timestamp"), ("info", "batch/timestamp-unit"),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_a_table_has_the_number_where_there_is_no_date(run, home, form):
    shown = run("dump", "--records", "-f", form, home).stdout
    assert (shown.count(f" {LEAST} "), shown.count("1969-12-31T23:59:59.000Z")) == (2, 2)
    for arguments in (
        ["dump"], ["lookup", "--offset", 5], ["lookup", "--timestamp", FAR],
        ["dump-index", "--join-log"],
    ):  # fmt: skip
        path = home / f"{0:020d}.timeindex" if "--join-log" in arguments else home
        assert str(FAR) in run(*arguments, "-f", form, path).stdout.replace("\n", " ").split()
