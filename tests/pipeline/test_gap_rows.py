"""The two small tables of each stretch of a log, compared with the local pass for gaps."""

import struct
import zlib
from itertools import pairwise

import pyarrow.parquet as pq
import pytest
from conftest import SCENARIOS
from damage import damage_file, flip, zero
from hypothesis import given
from hypothesis import strategies as st
from pipeline.places import span
from verification import batches, log_dirs, logs, segment_at

from logtool.checks.report import SegmentTask
from logtool.disk.files import LogFile
from logtool.formats import compression, record_batch
from logtool.gaps.coverage import CoverageTask, look
from logtool.gaps.table import GapPlace
from logtool.log import opening
from logtool.log.arrow_rows import PartitionIdentity
from logtool.log.batches import read_batches
from logtool.spark.questions.gap_rows import EDGES, INNER, GapRows
from logtool.spark.scan.storage import Staging
from logtool.spark.scan.unit_rows import STAGED, ScanWork


def rows_of(path, *, payload=True, edges=(0, None)):
    """Return the gap rows of a log, one of each table for each stretch between positions."""
    base = int(path.name[:20])
    place = PartitionIdentity("dir", 1, "orders", 0, "orders-0")
    found = []
    with LogFile(path) as log:
        for start, stop in pairwise(edges):
            rows = GapRows(place, base, None, start)
            for chunk in read_batches(
                log, base_offset=base, start=start, stop=stop, payload=payload
            ):
                rows.feed(chunk)
            rows.finish()
            found.append((rows.edge, rows.inner))
    return found


def spans(inner):
    return [tuple(gap) for gap in inner.T.tolist()]


def same_as_the_local_pass(path, **options):
    ((edge, inner),) = rows_of(path, **options)
    local = look(CoverageTask(segment_at(path)))
    gaps = local.gaps[local.gaps.kind == GapPlace.BATCHES]
    columns = (gaps.first_offset, gaps.last_offset, gaps.position, gaps.damaged)
    assert spans(inner) == list(zip(*(column.tolist() for column in columns), strict=True))
    assert len(inner) == len(INNER)
    assert set(edge) <= set(EDGES.names)
    assert edge["inner_gaps"] == len(gaps)
    named = ["batches", "horizons", "damages", "damaged_head"]
    if not local.overlaps:
        named.append("with_holes")  # only decoding finds the holes of a batch that is cut in two
    assert {name: edge[name] for name in named} == {name: getattr(local, name) for name in named}
    assert edge["damaged_tail"] == (local.tail is not None)
    for name, batch in (("first", local.first), ("last", local.last)):
        assert edge.get(f"{name}_offset") == (batch.offset if batch else None)
        assert edge.get(f"{name}_position") == (batch.position if batch else None)
        assert edge.get(f"{name}_timestamp_ms") == (batch.timestamp if batch else None)
        assert edge.get(f"{name}_leader_epoch") == (batch.epoch if batch else None)
    return edge


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_log_of_a_real_broker_gives_what_the_local_pass_gives(scenario, name):
    for home in log_dirs(scenario(name)):
        for log in sorted(home.glob("*/*.log")):
            same_as_the_local_pass(log)


@pytest.mark.parametrize("change", [(flip,), (zero, 30)])
def test_damage_is_noted_where_it_lies(copy_of, change):
    damage, *more = change
    log = logs(copy_of("4.3.1/replicas") / "node-2" / "replica.in-sync-0")[0]
    table = batches(log)
    for row in (0, 5, 6, 9):
        damage_file(log, damage, int(table.position[row]) + 65, *more)
    edge = same_as_the_local_pass(log)
    assert edge["damaged_head"]
    assert edge["inner_gaps"] == 2


@given(
    parts=st.lists(
        st.tuples(
            st.integers(-3, 4), st.integers(0, 4), st.booleans(),
            st.sampled_from(["sound", "sound", "broken", "foreign", "horizon"]),
        ),
        max_size=12,
    )
)  # fmt: skip
def test_any_order_of_batches_and_damage_gives_what_the_local_pass_gives(tmp_path_factory, parts):
    content, at = [], 100
    for skip, length, whole, kind in parts:
        at = max(100, at + skip)
        first, last = at, at + length
        flags = record_batch.DELETE_HORIZON if kind == "horizon" else 0
        base = 2**40 if kind == "foreign" else first
        one = span(base, base + length, None if whole else 1, attributes=flags)
        content.append(one[:-1] + bytes([one[-1] ^ 1]) if kind == "broken" else one)
        at = last + 1
    path = tmp_path_factory.mktemp("log") / f"{100:020d}.log"
    path.write_bytes(b"".join(content))
    same_as_the_local_pass(path)
    same_as_the_local_pass(path, payload=False)


def test_pieces_of_a_segment_add_up_to_it(tmp_path):
    path = tmp_path / f"{0:020d}.log"
    content = [span(10 * n, 10 * n + (5 if n % 3 else 9)) for n in range(20)]
    path.write_bytes(b"".join(content))
    ((one, whole),) = rows_of(path)
    cut = sum(map(len, content[:8]))
    (first, left), (second, right) = rows_of(path, edges=(0, cut, None))
    between = (first["last_offset"] + 1, second["first_offset"] - 1, cut, 0)
    assert [*spans(left), between, *spans(right)] == spans(whole)
    assert (first["start_position"], second["start_position"]) == (0, cut)
    assert first["batches"] + second["batches"] == one["batches"]


def test_traces_of_compaction_reach_up_to_an_offset(tmp_path):
    path = tmp_path / f"{0:020d}.log"
    content = [span(0, 9, 4), span(10, 19, attributes=record_batch.DELETE_HORIZON), span(20, 29)]
    path.write_bytes(b"".join(content))
    edge = same_as_the_local_pass(path)
    assert (edge["last_hole"], edge["last_horizon"]) == (9, 19)


def test_a_log_without_batches_has_one_edge(tmp_path):
    path = tmp_path / f"{7:020d}.log"
    path.write_bytes(b"")
    edge = same_as_the_local_pass(path)
    assert (edge["segment"], edge["batches"], edge.get("first_offset")) == (7, 0, None)
    path.write_bytes(bytes(100))
    assert same_as_the_local_pass(path)["damaged_tail"]


def test_what_could_not_be_read_to_its_end_says_so(tmp_path):
    home, output = tmp_path / "orders-0", tmp_path / "output"
    home.mkdir()
    for base in (0, 10):
        (home / f"{base:020d}.log").write_bytes(span(base, base + 9))
    tasks = tuple(SegmentTask(segment) for segment in opening.open_partition(home).segments)
    (home / f"{10:020d}.log").unlink()
    work = ScanWork(Staging(str(output), "run", "token"), frozenset({STAGED}))
    (output / work.staging.path / STAGED).mkdir(parents=True)
    results = list(work([(0, tasks)]))
    assert [number for number, _ in results] == [0, -1]
    (file,) = output.rglob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    assert [(row["segment"], row["read"], row["batches"]) for row in rows] == [
        (0, True, 1), (10, False, 0)
    ]  # fmt: skip


def test_a_wrapper_begins_where_its_messages_do_and_without_its_bytes_makes_up_no_gap(tmp_path):
    def wrapped(*offsets):
        inner = b"".join(message(offset, b"v") for offset in offsets)
        return message(offsets[-1], compression.compress(1, inner), attributes=1)

    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(wrapped(0, 1, 2) + wrapped(5, 6, 7) + message(9, b"v"))
    same_as_the_local_pass(path)
    ((_, inner),) = rows_of(path)
    assert [span[:2] for span in spans(inner)] == [(3, 4), (8, 8)]
    ((edge, inner),) = rows_of(path, payload=False)
    assert [span[:2] for span in spans(inner)] == [(8, 8)]
    assert edge["with_holes"] == 0


def message(offset, value, attributes=0):
    """Return a message of magic 0 without a key."""
    body = struct.pack(">bbii", 0, attributes, -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body
