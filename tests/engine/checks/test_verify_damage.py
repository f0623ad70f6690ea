"""The table of damage: one run of verify for each row in `damage_rows`.

Every row begins with a copy of a log dir of a real broker. A row has the findings that the damage
adds to those of the undamaged copy, so any other finding fails the row, info included.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import zero
from damage_rows.rows import PLAIN, WATERMARK, place
from damage_rows.table import TABLE, log_dir_of
from damage_rows.unseen import KNOWN_GAPS
from log_dir_damage import (
    all_of,
    header,
    home_of,
    in_batch,
    offset,
    with_batches,
)
from verification import (
    Place,
    batches,
    described,
    fingerprint,
    has_numbers,
    log_dirs,
    verify,
)

from logtool.checks import schedule, segment, segment_ranges
from logtool.findings import catalogue
from logtool.formats import record, record_batch, wording
from logtool.formats.record_batch import BatchTable
from logtool.schemas.printed import SUMMARY
from logtool.verify import Budget, Level

DEEP = {"batch/records", "batch/record-offsets", "batch/max-timestamp", "batch/too-large"}
"""Codes that only the level `records` can find."""

NOT_IN_THE_TABLE = {
    "data-dir/in-use", "partition/changed", "data-dir/index-cache", "data-dir/no-access",
    "data-dir/no-access-later", "data-dir/broken-link",
    "host/open-files", "host/maps", "host/maps-when-read", "host/producer-memory",
    "transaction-state/abandoned", "transaction-state/damaged", "transaction-state/newer",
    "transaction-state/outcome", "transaction-state/record",
    "transaction-state/marker-lost", "transaction-state/marker-refused",
    "transaction-state/marker-repeated",
    "group/offset-below-start", "group/offset-beyond-end", "group/other-topic-id",
    "group/unreadable-record", "group/missing-records", "group/refused-record",
    "group/left-over", "group/misplaced", "group/absent-partitions", "group/absent-end",
    "group/put-aside", "group/compacted",
    "group/epoch-ahead", "group/epoch-ended",
    "transaction-state/absent-partitions",
    "metadata/ends-early",
    "batch/header-crc", "batch/type", "log/cannot-recover", "segment/term-order",
    "base-index/unreadable", "base-index/order", "base-index/not-a-batch", "base-index/max-offset",
    "base-index/wrapped", "base-index/not-written", "log/given-up-room", "partition/snapshot",
    "clean-shutdown/older", "log/lost", "partition/absent", "partition/not-created",
    "metadata/lost",
    "metadata/absent", "metadata/hole", "metadata/location", "metadata/no-majority",
    "metadata/end-lost", "metadata/end-absent",
    "kraft-snapshot/missing", "data-dir/not-given", "meta-properties/unregistered-id",
    "broker-config/remote-storage-off", "broker-config/cleaner-off", "broker-config/own-vote",
    "segment/kvstore-hole", "broker-config/remote-topics", "data-dir/not-named",
    "data-dir/left-out", "data-dir/unfinished", "data-dir/unfinished-change",
    "batch/old-format", "batch/other-topic", "batch/twice", "offset-index/newer-format",
    "data-dir/line-ends", "data-dir/pointers", "data-dir/without-logs",
    "log/beginning-lost", "log/beginning-deleted", "log/beginning-cleaned",
    "producer-snapshot/lost", "producer-snapshot/lost-transaction", "segment/other-partition",
    "leader-epoch/above-metadata", "leader-epoch/ahead-of-metadata",
    "remote/hole", "remote/deleted-early", "remote/dangling-copy", "remote/copy-unfinished",
    "remote/delete-unfinished", "remote/unreferenced", "remote/outside-lineage",
    "remote/beyond-log-end", "remote/below-log-start", "remote/deleted-topic",
    "remote/unknown-segment", "remote/dropped-event", "remote/misplaced-record",
    "remote/unreadable-record", "remote/missing-records", "remote/newer-record",
    "remote/incomplete-history", "remote/absent-metadata-partition", "remote/missing-object",
    "remote/orphan-object", "remote/double-object", "remote/object-name", "remote/unknown-object",
    "remote/object-size", "remote/object-offsets", "remote/object-epochs", "remote/manifest",
    "remote/chunk", "remote/hidden", "leader-epoch/missing-remote",
    "automq-object/footer", "automq-object/index", "automq-object/block", "automq-object/record",
    "automq-object/batch-crc", "automq-object/links", "automq-wal/header", "automq-wal/record",
    "automq-block-wal/header", "automq-block-wal/no-header",
    "automq-block-wal/record", "automq-block-wal/hole",
    "automq-range-index/format", "automq-reservation/format", "automq-bucket/missing-object",
    "automq-bucket/size", "automq-bucket/marked", "automq-bucket/not-referenced",
    "automq-stream/hole", "automq-wal/gap",
}  # fmt: skip
"""Codes for what happens during a run (see test_verify_inputs), of hosts, not of log dirs (see
test_host_limits), of `logtool txns` (see test_joining), of groups (see test_groups), of
`logtool metadata` (see test_metadata), of Redpanda (see test_verify_redpanda) and for what is
  absent (see test_absence, test_broker_dirs and test_partition_absence), or changed by a tool (see
test_altered), for segments of other partitions (see test_foreign_segments), and for formats that
are old or new (see test_old_formats, test_wide_index), and of tiered storage (see test_remote and
test_tiered), and of AutoMQ (see tests/formats/automq and test_automq)."""


@pytest.fixture
def log_dir(scenario, tmp_path) -> Callable[[str], Path]:
    def made(text: str) -> Path:
        return log_dir_of(scenario, text, tmp_path / "log-dir")

    return made


@pytest.fixture(scope="module")
def sound_places() -> Callable[[str, Path], Counter[Place]]:
    """Return a function: the findings in a log dir before damage, computed once for all rows."""
    known: dict[str, Counter[Place]] = {}

    def places_of(text: str, home: Path) -> Counter[Place]:
        if text not in known:
            sound = verify(*log_dirs(home))
            assert not sound.above_info()
            known[text] = sound.places
        return known[text]

    return places_of


def without_absence(places: Counter, named: set[str]) -> Counter:
    """Return findings without partitions that a small log dir lacks, but for the named codes."""
    absent = {"partition/lost", "partition/absent", "partition/not-created"} - named
    return Counter({key: n for key, n in places.items() if key[0] not in absent})


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.id)
def test_each_row_has_exactly_its_findings(row, log_dir, sound_places, monkeypatch):
    home = log_dir(row.home)
    sound = sound_places(row.home, home)
    expected, gone = place(home, row.expected), place(home, row.gone)
    monkeypatch.setattr(segment, "MAX_SEGMENT_SIZE", row.largest_log)
    row.damage(home)
    before = fingerprint(home)
    outcome = verify(*log_dirs(home))
    story = "\n".join(map(described, outcome.findings))
    named = {code for code, _, _ in row.expected}
    places, sound = (without_absence(one, named) for one in (outcome.places, sound))
    assert places - sound == expected, story
    assert sound - places == gone, story
    assert all(name in story for name in row.names), story
    assert not outcome.unreadable
    assert fingerprint(home) == before
    flat = verify(*log_dirs(home), level=Level.BATCHES)
    shallow, deep = flat.places, outcome.places
    assert {key: n for key, n in deep.items() if key[0] not in DEEP} == shallow
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)
    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", 4096)
    in_pieces = verify(*log_dirs(home), budget=Budget(jobs=2))
    assert in_pieces.findings == outcome.findings
    verify(*log_dirs(home), level=Level.QUICK)


def test_a_broker_opens_logs_below_2_gib():
    assert record_batch.MAX_SEGMENT_SIZE == 2**31 - 1


@pytest.mark.parametrize("gap", KNOWN_GAPS, ids=lambda gap: gap.id)
def test_some_damage_leaves_no_trace(gap, log_dir):
    home = log_dir(gap.home)
    sound = verify(home).places
    gap.damage(home)
    outcome = verify(home)
    assert outcome.places == sound, f"now it can be seen, although {gap.reason}"


def test_the_table_has_every_code_of_the_catalogue():
    shown = {code for row in TABLE for code, _, _ in row.expected}
    assert shown | NOT_IN_THE_TABLE == set(catalogue())
    assert not shown & NOT_IN_THE_TABLE


def test_every_row_and_gap_has_a_name_of_its_own():
    names = Counter([row.id for row in TABLE] + [gap.id for gap in KNOWN_GAPS])
    assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize("number", [0, 3, 15, 27])
@pytest.mark.parametrize(
    "damage",
    [
        lambda n: in_batch(n, 70),
        lambda n: header(n, crc=False, batch_length=0),
        lambda n: header(n, crc=False, batch_length=10**9),
        lambda n: header(n, crc=False, magic=77),
        lambda n: with_batches(lambda d, t: zero(d, int(t.position[n]), int(t.size[n]))),
    ],
    ids=["bit", "no size", "huge size", "magic", "zeros"],
)
def test_what_is_sound_behind_damage_is_counted(damage, number, log_dir):
    home = log_dir(PLAIN)
    log = home_of(home, "0.log")
    table = batches(log)
    damage(number)(home)
    behind_it = table[number + 1 :]
    (finding,) = (f for f in verify(home).findings if f.path == log)
    assert has_numbers(finding.message, len(behind_it), int(behind_it.record_count.sum()))
    assert wording.size(behind_it.size.sum()) in finding.message
    assert finding.position == table.position[number]
    assert finding.length == table.size[number]
    assert finding.first_offset == table.base_offset[number]
    assert finding.last_offset == table.last_offset[number]
    assert (finding.topic, finding.partition) == ("codec-none", 0)
    assert finding.segment == 0
    first, last = finding.first_offset, finding.last_offset
    assert finding.next == f"logtool dump {log} --offset {first}..{last}"


def test_each_damaged_place_counts_what_follows_it(log_dir):
    home = log_dir(PLAIN)
    log = home_of(home, "0.log")
    table = batches(log)
    all_of(in_batch(20, 70), in_batch(9, 70))(home)
    first, second = (f for f in verify(home).findings if f.path == log)
    tail = [*range(21, len(table))]
    for finding, left in ((first, [*range(10, 20), *tail]), (second, tail)):
        assert has_numbers(finding.message, len(left), int(table.record_count[left].sum()))


def test_what_follows_is_counted_once_for_all_damaged_places(tmp_path, monkeypatch):
    """Else a log with a bad byte between all batches would take the square of their number."""
    log, count, asked = tmp_path / f"{0:020d}.log", 60, []
    payload = record.encode([record.Record(0, 0, b"key", b"value")])
    log.write_bytes(b"".join(
        record_batch.encode(
            payload, base_offset=at, last_offset_delta=0, record_count=1, max_timestamp=1
        ) + b"\xff"
        for at in range(count)
    ))  # fmt: skip
    records = vars(BatchTable)["records"].fget
    monkeypatch.setattr(
        BatchTable, "records", property(lambda table: asked.append(1) or records(table))
    )
    findings = [f for f in verify(log, level=Level.BATCHES).findings if f.position]
    assert len(findings) == count
    for number, finding in enumerate(findings[:-2]):
        left = count - 1 - number
        assert has_numbers(finding.message, left, left)
        assert (finding.first_offset, finding.last_offset) == (number + 1, number)
    assert len(asked) <= 4 * count


def test_damage_to_one_partition_is_not_reported_for_another(log_dir):
    home = log_dir("clean codec-none-0 codec-none-1 codec-none-2 small-segments-0")
    sound = verify(home).places
    in_batch(3, 70)(home)
    outcome = verify(home)
    assert {f.path for f in outcome.findings} == {home_of(home, "0.log")}
    assert outcome.summary.partitions == 4
    assert outcome.exit_status == 1
    assert not sound


def test_a_summary_counts_and_names_the_next_commands(log_dir):
    home = log_dir(PLAIN)
    in_batch(3, 70)(home)
    offset(WATERMARK, "codec-none", 10**12)(home)
    summary = SUMMARY.row(verify(home).summary)
    assert summary["findings"] == {"error": 2, "warning": 0, "info": 0}
    assert summary["codes"] == {"batch/crc": 1, "checkpoint/high-watermark-beyond-end": 1}
    assert summary["complete"] is True
    assert summary["batches"] == len(batches(home_of(home, "0.log")))
    log, checkpoint = home_of(home, "0.log"), home / WATERMARK
    assert summary["next"] == [f"logtool dump {log} --offset 10..39", f"logtool dump {checkpoint}"]
