"""Offsets and timestamps are found where Kafka's own dump has them, by index and by scan."""

import re
from bisect import bisect_left
from pathlib import Path

import pytest

from logtool.errors import UnreadableError
from logtool.formats.names import DirectoryKind
from logtool.log import opening
from logtool.lookup.run import Lookup, LookupResult, LookupTarget
from logtool.running.summary import Summary

SCENARIOS = [f"{version}/{name}" for version in ("3.9.2", "4.3.1") for name in ("clean", "killed")]
_LINE = re.compile(
    rb"^(?:baseOffset: (\d+) lastOffset: (\d+) .* position: (\d+) "
    rb"|\| offset: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) )",
    re.MULTILINE,
)


def look(path: Path, asked: LookupTarget, value: int | None = None) -> LookupResult:
    return Lookup(path, Summary()).find(asked, value)


def dumped(folder: Path) -> tuple[list, list]:
    """Return (last offset, segment, position) of batches, (offset, timestamp) of records."""
    batches, records = [], []
    for file in sorted(folder.glob("*.log.txt")):
        for base, last, position, offset, stamp in _LINE.findall(file.read_bytes()):
            if base:
                batches.append((int(last), int(file.name.split(".")[0]), int(position)))
            else:
                records.append((int(offset), int(stamp)))
    return batches, records


def partitions(scenario, name: str) -> list[tuple[Path, list, list]]:
    """Return the partition dirs whose dump is whole, with what is in it."""
    found = []
    for path, directory in opening.open_log_dir(scenario(name)).partitions:
        # The dump tool does not go through what it takes for damage: zeros that are kept ready.
        odd = directory.topic.startswith(("preallocated", "__"))
        if directory.kind is DirectoryKind.LIVE and not odd:
            batches, records = dumped(scenario(f"{name}.expected") / "records" / path.name)
            if records:
                found.append((path, batches, records))
    assert len(found) > 20
    return found


def some(values: list[int], count: int) -> list[int]:
    """Return some values evenly from the first to the last."""
    step = max(1, len(values) // count)
    return [*values[::step], values[-1]]


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_offset_is_in_the_batch_that_kafka_dumps_it_in(scenario, name):
    for path, batches, records in partitions(scenario, name):
        stamps = dict(records)
        start = look(path, LookupTarget.EARLIEST).log_start
        for offset in some([offset for offset, _ in records if offset >= start], 5):
            answer = look(path, LookupTarget.OFFSET, offset)
            _, segment, position = batches[bisect_left(batches, (offset,))]
            for place in (answer.by_index, answer.by_scan):
                assert (place.segment, place.position, place.offset) == (segment, position, offset)
                assert (place.timestamp_ms if place.timestamp_ms is not None else -1) == (
                    stamps[offset]
                )
            assert answer.agree


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_timestamp_gives_the_first_record_of_it_or_a_later_one(scenario, name):
    for path, _, records in partitions(scenario, name):
        start = look(path, LookupTarget.EARLIEST).log_start
        left = [(offset, stamp) for offset, stamp in records if offset >= start]
        for stamp in some(sorted({stamp for _, stamp in left}), 4):
            for asked in (stamp - 1, stamp, stamp + 1):
                answer = look(path, LookupTarget.TIMESTAMP, asked)
                expected = next((offset for offset, late in left if late >= asked), None)
                assert answer.by_scan.offset == expected
                if path.name != "compacted.keys-0":
                    assert answer.by_index.offset == expected
                    assert answer.agree


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_ends_of_a_log_are_those_of_its_batches(scenario, name):
    for path, batches, _ in partitions(scenario, name):
        latest = look(path, LookupTarget.LATEST)
        end = max(last for last, *_ in batches) + 1
        assert latest.by_index.offset == latest.by_scan.offset == latest.log_end == end
        earliest = look(path, LookupTarget.EARLIEST)
        assert earliest.agree
        assert earliest.by_scan.last_offset >= earliest.log_start


def test_the_log_start_is_that_of_the_checkpoint_of_its_log_dir(scenario):
    path = scenario("4.3.1/clean") / "deleted-records.mid-0"
    answer = look(path, LookupTarget.EARLIEST)
    assert answer.log_start == answer.by_index.offset == 77
    below = look(path, LookupTarget.OFFSET, 76)
    assert (below.is_there, below.agree) == (False, True)
    first = look(path, LookupTarget.TIMESTAMP, 0)
    assert first.by_index.offset == first.by_scan.offset == 77


def test_behind_the_end_and_after_the_last_time_nothing_is_there(scenario):
    path = scenario("4.3.1/killed") / "tx.mixed-0"
    end = look(path, LookupTarget.LATEST).log_end
    for answer in (look(path, LookupTarget.OFFSET, end), look(path, LookupTarget.TIMESTAMP, 2**62)):
        assert not answer.is_there
        assert answer.by_index.path is None
        assert answer.agree


def test_an_empty_log_has_a_latest_offset_and_nothing_in_it(scenario):
    path = scenario("4.3.1/clean") / "empty-topic-0"
    latest = look(path, LookupTarget.LATEST)
    assert (latest.by_index.offset, latest.by_scan.offset, latest.agree) == (0, 0, True)
    assert not look(path, LookupTarget.EARLIEST).is_there
    assert not look(path, LookupTarget.TIMESTAMP, 0).is_there


def test_an_offset_that_compaction_took_leads_to_the_next(scenario):
    path = scenario("4.3.1/clean") / "compacted.keys-0"
    batches, records = dumped(scenario("4.3.1/clean.expected") / "records" / path.name)
    offsets = {offset for offset, _ in records}
    gone = [offset for offset in range(batches[-1][0]) if offset not in offsets]
    assert len(gone) > 50
    for offset in some(gone, 20):
        answer = look(path, LookupTarget.OFFSET, offset)
        assert answer.agree
        assert answer.by_scan.last_offset >= offset
        assert answer.by_scan.offset in {None, min(o for o in offsets if o > offset)}


def test_a_broker_looks_no_further_than_a_segment_whose_late_record_was_compacted_away(scenario):
    answer = look(
        scenario("4.3.1/killed") / "compacted.keys-0", LookupTarget.TIMESTAMP, 1795224754913
    )
    assert answer.by_scan.offset == 990
    assert answer.by_index.offset is None
    assert answer.by_index.problem
    assert not answer.agree


def test_an_index_that_points_too_far_is_found_out(copy_of):
    path = copy_of("4.3.1/clean") / "index.dense-0"
    file = path / f"{0:020d}.index"
    entries = file.read_bytes()
    # Every entry but the last gets the position of the one behind it.
    moved = b"".join(
        entries[at : at + 4] + entries[min(at + 12, len(entries) - 4) :][:4]
        for at in range(0, len(entries), 8)
    )
    file.write_bytes(moved)
    offset = int.from_bytes(entries[40:44], "big")
    answer = look(path, LookupTarget.OFFSET, offset)
    assert answer.by_scan.offset == offset
    assert not answer.agree


def test_a_time_index_that_is_late_is_found_out(copy_of):
    path = copy_of("4.3.1/clean") / "small-segments-0"
    stamp = look(path, LookupTarget.OFFSET, 40).by_scan.timestamp_ms
    assert look(path, LookupTarget.TIMESTAMP, stamp).agree
    for file in path.glob("*.timeindex"):
        last = file.read_bytes()[-12:]
        # A broker then takes the whole segment for older than it is.
        if last:
            file.write_bytes((1).to_bytes(8, "big") + last[8:])
    answer = look(path, LookupTarget.TIMESTAMP, stamp)
    assert answer.by_scan.timestamp_ms == stamp
    assert not answer.agree


def test_a_missing_index_only_makes_the_way_longer(copy_of):
    path = copy_of("4.3.1/clean") / "small-segments-0"
    before = look(path, LookupTarget.OFFSET, 100)
    for file in path.glob("*.index"):
        file.unlink()
    assert look(path, LookupTarget.OFFSET, 100).by_index == before.by_index


def test_a_damaged_batch_is_where_the_index_leads_and_a_scan_does_not(copy_of):
    path = copy_of("4.3.1/clean") / "codec-none-0"
    place = look(path, LookupTarget.OFFSET, 100).by_scan
    data = bytearray(place.path.read_bytes())
    data[place.position + 70] ^= 1
    place.path.write_bytes(data)
    answer = look(path, LookupTarget.OFFSET, 100)
    assert answer.by_index.position == place.position
    assert answer.by_scan.base_offset == place.last_offset + 1
    assert not answer.agree


def test_a_size_field_that_stops_a_broker_is_said(copy_of):
    path = copy_of("4.3.1/clean") / "codec-none-0"
    place = look(path, LookupTarget.OFFSET, 0).by_scan
    data = bytearray(place.path.read_bytes())
    data[8:12] = (3).to_bytes(4, "big")
    place.path.write_bytes(data)
    answer = look(path, LookupTarget.OFFSET, 0)
    assert "size field 3" in answer.by_index.problem
    assert not answer.agree


def test_only_a_partition_dir_is_taken(scenario, tmp_path):
    log_dir = scenario("4.3.1/clean")
    for path in (log_dir, log_dir / "tx.mixed-0" / f"{0:020d}.log", tmp_path / "none"):
        with pytest.raises(UnreadableError):
            look(path, LookupTarget.LATEST)
