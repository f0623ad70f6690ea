"""Batches that are small on disk and large in memory: what they cost, and what is said of them.

The bounds are far above what is needed and far below what the same commands once took.
"""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from thinned import some

from logtool import cli
from logtool.dump import records as dump_records
from logtool.formats import compression, record, record_batch
from logtool.formats.record import Record

MIB = 1024 * 1024
LARGE = 72 * MIB
CODECS = [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD]
ALL_CODECS = [compression.NONE, *CODECS]
NAME = f"{0:020d}.log"
# The peak of the process itself: what getrusage says has its parent's in it.
_MEASURE = """
import sys
from pathlib import Path
from logtool import cli
status = cli.run(sys.argv[1:])
sys.stdout.flush()
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
sys.stderr.write(f"{status} {peak}\\n")
"""


def peak(*words: object) -> tuple[int, int]:
    """Run a command line in a process of its own; returns its status and its peak in bytes."""
    command = [sys.executable, "-c", _MEASURE, *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    status, kib = done.stderr.split(b"\n")[-2].split()
    return int(status), int(kib) * 1024


def run(*words: object) -> tuple[int, str, str]:
    """Run a command line here; returns its status and what it said."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = cli.run([str(word) for word in words])
    out.flush()
    return status, out.buffer.getvalue().decode(), err.getvalue()


def tiny_records(count: int) -> bytes:
    """Return records without key, value and headers, of 10 bytes each; their varints are padded."""
    rows = np.zeros((count, 10), np.uint8)
    rows[:, 0], rows[:, 7], rows[:, 8] = 9 << 1, 1, 1
    delta = np.arange(count, dtype=np.int64) << 1
    for place in range(4):
        rows[:, 3 + place] = delta >> 7 * place & 0x7F | (0x80 if place < 3 else 0)
    return rows.tobytes()


@cache
def tiny_batch(codec: int, count: int) -> bytes:
    """Return a batch of so many tiny records."""
    return batch(tiny_records(count), codec, count)


@cache
def large_batch(codec: int) -> bytes:
    """Return a batch with one record of zeros, of `LARGE` bytes."""
    return batch(record.encode([Record(0, value=bytes(LARGE))]), codec, 1)


def batch(payload: bytes, codec: int, count: int, base: int = 0) -> bytes:
    return record_batch.encode(
        payload, base_offset=base, last_offset_delta=count - 1, record_count=count,
        leader_epoch=0, attributes=codec, base_timestamp=1000, max_timestamp=1000,
    )  # fmt: skip


def log_of(home: Path, *batches: bytes) -> Path:
    """Return a partition dir with one segment, its indexes and the small files of a broker."""
    folder = home / "bombs-0"
    folder.mkdir()
    (folder / NAME).write_bytes(b"".join(batches))
    (folder / NAME).with_suffix(".index").touch()
    (folder / NAME).with_suffix(".timeindex").touch()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: 4Ww1S5YwQ0mVzBbrl5ib1w\n")
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Return the memory of commands that have next to nothing to do, by their words."""
    payload = record.encode([Record(0, value=b"v")])
    folder = log_of(tmp_path_factory.mktemp("small"), batch(payload, compression.ZSTD, 1))
    known: dict[tuple[object, ...], int] = {}

    def of(*words: object) -> int:
        if words not in known:
            known[words] = peak(*words, folder)[1]
        return known[words]

    return of


VERIFY = ("verify", "--level", "records")
COMMANDS = {
    "verify": VERIFY,
    "stat": ("stat", "--level", "records"),
    "gaps": ("gaps", "--level", "records"),
    "lookup": ("lookup", "--offset", "0"),
    "dump": ("dump", "--records"),
    "dump ndjson": ("dump", "--records", "-f", "ndjson"),
}


@pytest.mark.parametrize("codec", some(CODECS, 2), ids=compression.name)
@pytest.mark.parametrize("words", [VERIFY, COMMANDS["stat"]], ids=lambda words: words[0])
def test_a_batch_takes_the_memory_of_what_it_decompresses_to_once(tmp_path, base, codec, words):
    folder = log_of(tmp_path, large_batch(codec))
    status, most = peak(*words, folder)
    assert status == 0
    assert most - base(*words) < 1.5 * LARGE


@pytest.mark.parametrize("codec", some(CODECS, 2), ids=compression.name)
def test_a_batch_beyond_the_limit_costs_the_limit_and_one_line(tmp_path, base, codec):
    small = record.encode([Record(0, value=b"v")])
    first = batch(small, compression.NONE, 1)
    large = (1).to_bytes(8, "big") + large_batch(codec)[8:]  # the offset is not in the CRC
    folder = log_of(tmp_path, first, large, batch(small, compression.NONE, 1, base=2))
    limit = ("--max-batch-memory", "8M")
    for words, wanted in [(VERIFY, 1), (COMMANDS["dump"], 4), (COMMANDS["stat"], 4)]:
        status, most = peak(*words, *limit, folder)
        assert status == wanted, words
        # Scratch buffers and the file's own buffer come on top.
        assert most - base(*words) < 2 * 8 * MIB + 8 * MIB, words
    status, out, _ = run(*VERIFY, *limit, "-f", "ndjson", folder)
    found = [json.loads(line) for line in out.splitlines()]
    (finding,) = (obj for obj in found if obj.get("code") == "batch/too-large")
    assert (Path(finding["path"]).name, finding["position"]) == (NAME, len(first))
    assert str(8 * MIB) in finding["message"]
    assert found[-1]["complete"]
    assert found[-1]["batches"] == 3
    status, out, _ = run(*COMMANDS["dump ndjson"], *limit, folder)
    found = [json.loads(line) for line in out.splitlines()]
    assert [obj["offset"] for obj in found if obj["type"] == "record"] == [0, 2]
    (error,) = (obj for obj in found if obj["type"] == "error")
    assert (error["reason"], error["position"]) == ("limit", len(first))
    assert str(8 * MIB) in error["message"]
    assert not found[-1]["complete"]
    status, out, err = run(*COMMANDS["stat"], *limit, folder)
    (line,) = (line for line in err.splitlines() if "limit" in line)
    assert f"{NAME}: byte {len(first)}: " in line
    assert str(8 * MIB) in line


def test_gaps_and_lookup_report_a_batch_that_they_did_not_read(tmp_path):
    payload = record.encode([Record(0, value=bytes(9 * MIB)), Record(3)])
    data = record_batch.encode(
        payload, base_offset=0, last_offset_delta=3, record_count=2, leader_epoch=0,
        attributes=compression.ZSTD, base_timestamp=1000, max_timestamp=1000,
    )  # fmt: skip
    folder = log_of(tmp_path, data)
    status, _, err = run(*COMMANDS["gaps"], "--max-batch-memory", "8M", folder)
    assert status == 4
    assert f"{NAME}: byte 0: " in err
    assert str(8 * MIB) in err
    assert run(*COMMANDS["gaps"], folder)[0] in (0, 1)
    status, _, err = run("lookup", "--offset", "0", "--max-batch-memory", "8M", folder)
    assert f"{NAME}: byte 0: " in err
    assert str(8 * MIB) in err
    assert status == 4
    assert run("lookup", "--offset", "0", folder)[0] == 0


@pytest.mark.parametrize(
    ("codec", "name"),
    some(product([compression.NONE, compression.GZIP], COMMANDS), 7, several=True),
)
def test_a_million_tiny_records_take_no_column_of_a_million_rows(tmp_path, base, codec, name):
    count, words = 1_000_000, COMMANDS[name]
    folder = log_of(tmp_path, tiny_batch(codec, count))
    # What prints ends early, for the sake of time: the batch is read before its first row.
    some = ("--limit", 5_000) if name.startswith("dump") else ()
    status, most = peak(*words, *some, folder)
    assert status == 0
    # A row for each would take 88 MB, and an object for each 500.
    assert most - base(*words) < 45 * MIB + (2 if codec == compression.NONE else 1) * 10 * count


def test_the_first_rows_are_printed_before_the_last_are_read(tmp_path, monkeypatch):
    count = 200_000
    folder = log_of(tmp_path, batch(tiny_records(count), compression.ZSTD, count))
    made, made_at_first_row = 0, []
    honest = dump_records.record_object

    def counted(*args):
        nonlocal made
        made += 1
        return honest(*args)

    class Out(io.StringIO):
        def write(self, content):
            if "offset" in content:
                made_at_first_row.append(made)
                raise BrokenPipeError
            return len(content)

    monkeypatch.setattr(dump_records, "record_object", counted)
    with redirect_stdout(Out()), redirect_stderr(io.StringIO()):
        cli.run(["dump", "--records", str(folder / NAME)])
    assert made_at_first_row
    assert made_at_first_row[0] <= 1000


@pytest.mark.parametrize("format", some(["table", "markdown", "csv", "ndjson", "kafka"], 3))
def test_one_huge_value_makes_no_other_row_as_wide(tmp_path, base, format):
    size = 6 * MIB
    records = [Record(n, value=b"a" * size if n == 7 else b"small") for n in range(400)]
    folder = log_of(tmp_path, batch(record.encode(records), compression.GZIP, 400))
    words = ("dump", "--records", "-f", format)
    status, most = peak(*words, folder / NAME)
    assert status == 0
    assert most - base(*words) < 14 * size
    _, out, _ = run(*words, folder / NAME)
    assert size < len(out) < size + 400 * 700
    assert out.count("small") == 399


@pytest.mark.parametrize("codec", ALL_CODECS, ids=compression.name)
def test_slices_say_what_all_records_at_once_say(codec):
    count = 5000
    payload = tiny_records(count)
    packed = memoryview(compression.compress(codec, payload))
    data = compression.decompress(codec, packed, len(payload))
    for wrong in (count, count + 1, count - 1, 0, -1):
        for cut in (len(data), len(data) - 1, 10 * 4096, 10 * 4096 + 3):
            table, damage = record.parse(data[:cut], wrong)
            slices = list(record.parse_slices(data[:cut], wrong, 512))
            assert str(slices[-1][1]) == str(damage)
            assert not any(problem for _, problem in slices[:-1])
            for column in ("position", "offset_delta", "value_length"):
                parts = np.concatenate([getattr(some, column) for some, _ in slices])
                np.testing.assert_array_equal(parts, getattr(table, column))
