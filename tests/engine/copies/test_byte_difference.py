"""The first byte at which a damaged batch differs from its sound copy, and what has that byte."""

import shutil

import numpy as np
import pytest
import redpanda_files
from damage import cut, damage_file, flip
from log_dir_damage import new_batch
from verification import batches, logs

from logtool.copies.byte_difference import ByteDifference
from logtool.diff import Diff
from logtool.formats import record
from logtool.formats.record_batch import HEADER_SIZE
from logtool.log import inputs

VALUES = (b"first value", b"a second value", b"the third")
LOG = f"{0:020d}.log"


@pytest.fixture
def copies(tmp_path):
    """Return the logs of two copies of a partition: two batches of three records each."""
    found = []
    for name in ("ours", "theirs"):
        folder = tmp_path / name / "orders-0"
        folder.mkdir(parents=True)
        log = folder / LOG
        log.write_bytes(new_batch(0, *VALUES) + new_batch(3, *VALUES) + new_batch(6, *VALUES))
        found.append(log)
    return found


def compared(*logs):
    """Return the verdict on the copies with these logs."""
    (verdict,) = Diff([inputs.parse_node_dir(str(log.parent)) for log in logs])
    return verdict


def differences(*logs):
    return [wound.difference for wound in compared(*logs).wounds]


@pytest.mark.parametrize(
    ("at", "field"),
    [
        (8, "batch_length"), (11, "batch_length"), (16, "magic"), (17, "crc"), (20, "crc"),
        (21, "attributes"), (22, "attributes"), (23, "last_offset_delta"), (27, "base_timestamp"),
        (42, "max_timestamp"), (43, "producer_id"), (52, "producer_epoch"), (53, "base_sequence"),
        (57, "record_count"), (60, "record_count"),
    ],
)  # fmt: skip
def test_a_byte_of_a_header_is_in_a_field(copies, at, field):
    position = copies[0].stat().st_size // 3 + at
    damage_file(copies[0], flip, position, 0x40)
    assert differences(*copies) == [ByteDifference(position, header_field=field)]


def test_each_byte_of_the_records_is_in_a_record(copies):
    start = copies[0].stat().st_size // 3
    sound = copies[0].read_bytes()
    sizes = [
        len(record.encode([record.Record(number, number, b"key", value)]))
        for number, value in enumerate(VALUES)
    ]
    owners = np.repeat([3, 4, 5], sizes).tolist()
    assert start + HEADER_SIZE + len(owners) == 2 * start
    for at, offset in enumerate(owners, start + HEADER_SIZE):
        copies[0].write_bytes(flip(sound, at))
        assert differences(*copies) == [ByteDifference(at, record_offset=offset)]


def test_the_first_of_several_bytes_counts(copies):
    start = copies[0].stat().st_size // 3
    for at in (70, 20, 65):
        damage_file(copies[0], flip, start + at)
    assert differences(*copies) == [ByteDifference(start + 20, header_field="crc")]


def test_a_compressed_batch_names_its_codec_and_no_record(scenario, tmp_path):
    home = scenario("4.3.1/killed")
    for codec in ("gzip", "lz4", "snappy", "zstd"):
        theirs = logs(home / f"codec-{codec}-0")[0]
        ours = shutil.copytree(theirs.parent, tmp_path / theirs.parent.name) / theirs.name
        table = batches(ours)
        row = int(np.flatnonzero(table.attributes & 7)[0])
        at = int(table.position[row]) + HEADER_SIZE + 9
        damage_file(ours, flip, at)
        assert differences(ours, theirs) == [ByteDifference(at, codec=codec)]


@pytest.mark.parametrize("version", ["2.8.2/magic-0", "2.8.2/magic-1", "2.2.2/magic-1"])
def test_a_message_of_an_old_format_is_one_record(scenario, tmp_path, version):
    magic = int(version[-1])
    key = 18 + 8 * magic
    found = set()
    for theirs in sorted(scenario(version).rglob("*.log")):
        folder = tmp_path / theirs.parent.name
        if theirs.stat().st_size == 0 or folder.exists():
            continue
        ours = shutil.copytree(theirs.parent, folder) / theirs.name
        table = batches(ours)
        row = len(table) // 2
        if table.magic[row] != magic:
            continue
        for place in (13, key + 5):
            at = int(table.position[row]) + place
            shutil.copyfile(theirs, ours)
            damage_file(ours, flip, at)
            (difference,) = differences(ours, theirs)
            assert difference.position == at
            if place == 13:
                assert difference.header_field == "crc"
            elif table.attributes[row] & 7:
                assert difference.codec is not None
            else:
                assert difference.record_offset == table.last_offset[row]
                found.add("record")
    assert found == {"record"}


def test_a_batch_of_redpanda_has_fields_and_records_of_its_own(tmp_path):
    data = redpanda_files.log()
    start = redpanda_files.positions(data)[2]
    first = int.from_bytes(data[start + 8 : start + 16], "little")
    homes = [redpanda_files.data_dir(tmp_path / name, {"0-1-v1.log": data}) for name in "ab"]
    ours, theirs = (next(home.rglob("0-1-v1.log")) for home in homes)
    for at, expected in (
        (0, {"header_field": "header_crc"}),
        (18, {"header_field": "crc"}),
        (HEADER_SIZE + 4, {"record_offset": first}),
    ):
        ours.write_bytes(flip(data, start + at))
        assert differences(ours, theirs) == [ByteDifference(start + at, **expected)]


def test_damage_of_another_size_or_in_all_copies_is_not_compared(copies):
    sound = copies[0].read_bytes()
    copies[0].write_bytes(cut(sound, len(sound) - 5))
    assert differences(*copies) == [None]
    for log in copies:
        log.write_bytes(flip(sound, 70))
    assert differences(*copies) == [None, None]


def test_the_same_damage_is_identical_and_other_damage_is_not(copies):
    sound = copies[0].read_bytes()
    for log in copies:
        log.write_bytes(flip(sound, 70))
    verdict = compared(*copies)
    assert (verdict.identical, verdict.same_damage, verdict.status) == (True, True, "damaged")
    copies[1].write_bytes(flip(sound, 71))
    verdict = compared(*copies)
    assert (verdict.identical, verdict.same_damage) == (False, False)
    copies[1].write_bytes(sound)
    assert not compared(*copies).same_damage
