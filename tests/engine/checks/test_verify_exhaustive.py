"""Every flipped bit and every cut of a small partition: what is found, and what cannot be.

The partition is one that a broker wrote, with transactions; an index entry for every append was
added (as ``index.interval.bytes=0`` gives) and the segment was rolled, so that it is not active.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from damage import cut, flip
from verification import batches, fingerprint, logs, verify

from logtool.findings import Severity
from logtool.formats import offset_index, producer_snapshot, time_index, transaction_index
from logtool.formats.record_batch import HEADER, HEADER_SIZE
from logtool.verify import Level

MASKS = (1, 2, 4, 8, 16, 32, 64, 128)
FIELDS = {
    int(offset) + byte: name
    for name, (dtype, offset, *_) in (HEADER.fields or {}).items()
    for byte in range(dtype.itemsize)
}
"""The field that each byte of a batch header belongs to."""


@pytest.fixture(scope="module")
def small(scenario, tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("exhaustive") / "__consumer_offsets-0"
    shutil.copytree(scenario("4.3.1/clean") / home.name, home)
    (log,) = logs(home)
    table = batches(log)
    assert log.stat().st_size < 8192
    assert table.is_control.any()
    entries = np.zeros(len(table) - 1, offset_index.ENTRY)
    entries["relative_offset"], entries["position"] = table.last_offset[1:], table.position[1:]
    log.with_suffix(".index").write_bytes(entries.tobytes())
    following = home / f"{int(table.last_offset[-1]) + 1:020d}"
    for suffix in (".log", ".index", ".timeindex"):
        following.with_suffix(suffix).touch()
    assert following.with_suffix(".snapshot").exists()
    outcome = verify(home)
    assert not outcome.findings
    return home


class Victim:
    """One file of the partition, damaged again and again."""

    def __init__(self, path: Path) -> None:
        self.path, self.sound = path, path.read_bytes()

    def after(self, data: bytes) -> set[tuple[str, Severity]]:
        """Return the codes that verify finds when the file has this content."""
        self.path.write_bytes(data)
        try:
            outcome = verify(self.path.parent, level=Level.BATCHES)
        finally:
            self.path.write_bytes(self.sound)
        assert not outcome.unreadable
        return {(finding.code, finding.severity) for finding in outcome.findings}

    def unseen_flips(self, masks=MASKS) -> set[tuple[int, int]]:
        """Return (byte, mask) of each flip without a finding."""
        return {
            (position, mask)
            for position in range(len(self.sound))
            for mask in masks
            if not self.after(flip(self.sound, position, mask))
        }

    def unseen_cuts(self) -> set[int]:
        """Return the sizes of cuts without a finding."""
        return {size for size in range(len(self.sound)) if not self.after(cut(self.sound, size))}


@pytest.fixture
def victim(small, tmp_path):
    home = shutil.copytree(small, tmp_path / small.name)
    before = fingerprint(home)

    def of(name: str) -> Victim:
        found = sorted(home.glob(name))
        return Victim(found[-1] if name.startswith("*.snap") else found[0])

    yield of
    assert {name: digest for name, (*_, digest) in fingerprint(home).items()} == {
        name: digest for name, (*_, digest) in before.items()
    }


def flips_of(log: Victim, part: int, parts: int) -> Iterator[tuple[int, str, int]]:
    """Yield (byte, field, mask): every bit of some headers, one bit of every other byte."""
    table = batches(log.path)
    thorough = {0, int(np.flatnonzero(table.is_control)[0]), len(table) - 1}
    for number in range(part, len(table), parts):
        start, size = int(table.position[number]), int(table.size[number])
        for byte in range(size):
            field = FIELDS.get(byte, "records")
            every = number in thorough and byte < HEADER_SIZE
            for mask in MASKS if every else (MASKS[(start + byte) % 8],):
                yield start + byte, field, mask


PARTS = [pytest.param(part, marks=[pytest.mark.long] if part else []) for part in range(36)]


@pytest.mark.parametrize("part", PARTS)
def test_every_byte_of_a_log_is_seen_when_a_bit_flips(victim, part):
    log = victim("*.log")
    only_warned = set()
    for position, field, mask in flips_of(log, part, len(PARTS)):
        found = log.after(flip(log.sound, position, mask))
        severities = {severity for _, severity in found}
        assert severities & {Severity.ERROR, Severity.WARNING}, (position, field, mask)
        if Severity.ERROR not in severities:
            only_warned.add(field)
    # No CRC covers the leader epoch, and a wrong one makes no record unreadable.
    assert only_warned <= {"leader_epoch"}


@pytest.mark.parametrize("part", PARTS)
def test_every_cut_of_a_log_is_seen(victim, part):
    log = victim("*.log")
    for size in range(part, len(log.sound), len(PARTS)):
        found = log.after(cut(log.sound, size))
        assert Severity.ERROR in {severity for _, severity in found}, size


@pytest.mark.long
def test_flips_of_an_offset_index(victim):
    """A relative offset may be any that its batch holds: older brokers wrote the first."""
    index, table = victim("*.index"), batches(victim("*.log").path)
    unseen = index.unseen_flips()
    expected = set()
    for number in range(len(table) - 1):
        base, last = int(table.base_offset[number + 1]), int(table.last_offset[number + 1])
        for byte in range(4):
            for mask in MASKS:
                if base <= last ^ (mask << 8 * (3 - byte)) <= last:
                    expected.add((number * offset_index.ENTRY_SIZE + byte, mask))
    assert unseen == expected


def test_cuts_of_an_offset_index(victim):
    """An index with fewer entries is a sparser index."""
    index = victim("*.index")
    assert index.unseen_cuts() == set(range(0, len(index.sound), offset_index.ENTRY_SIZE))


def test_flips_of_a_time_index(victim):
    """The offset may be any of a batch with the same largest timestamp, none later before it."""
    index, table = victim("*.timeindex"), batches(victim("*.log").path)
    (stamp,) = time_index.parse(index.sound).timestamps
    (offset,) = time_index.parse(index.sound).relative_offsets
    expected = set()
    for byte in range(8, 12):
        for mask in MASKS:
            other = int(offset) ^ (mask << 8 * (11 - byte))
            holds = (table.base_offset <= other) & (other <= table.last_offset)
            if (table.max_timestamp[holds] == stamp).any():
                expected.add((byte, mask))
    assert index.unseen_flips() == expected


def test_cuts_of_a_time_index(victim):
    assert victim("*.timeindex").unseen_cuts() == set()


def test_flips_of_a_transaction_index(victim):
    """The last stable offset cannot be held against anything, unless it is negative.

    Nor can a first offset that is too low: a broker always compacts this topic, so the first
    batches of the transaction may be gone.
    """
    index = victim("*.txnindex")
    at = transaction_index.ENTRY_SIZE - 8
    sign = (at, 128)
    stable = {(byte, mask) for byte in range(at, transaction_index.ENTRY_SIZE) for mask in MASKS}
    lower = {(byte, mask) for byte in range(10, 18) for mask in MASKS if index.sound[byte] & mask}
    assert index.unseen_flips() == (stable - {sign}) | lower


def test_cuts_of_a_transaction_index(victim):
    assert victim("*.txnindex").unseen_cuts() == set()


@pytest.mark.long
def test_flips_and_cuts_of_a_producer_snapshot(victim):
    """All of it is covered by the CRC, the version and the CRC apart, which are compared."""
    snapshot = victim("*.snapshot")
    assert len(producer_snapshot.parse(snapshot.sound)) > 0
    assert snapshot.unseen_flips() == set()
    assert snapshot.unseen_cuts() == set()


def test_flips_and_cuts_of_a_leader_epoch_checkpoint(victim):
    """Two bytes have other values that are valid.

    Readers take any white space for the last line end. And without the checkpoints of the log dir
    the first row alone has the log start.
    """
    checkpoint = victim("leader-epoch-checkpoint")
    assert checkpoint.sound == b"0\n1\n0 0\n"
    line_end, start = 7, 6
    unseen = {
        (position, chr(checkpoint.sound[position] ^ mask))
        for position, mask in checkpoint.unseen_flips()
    }
    assert unseen == {(line_end, "\v")} | {(start, digit) for digit in "1248"}
    assert checkpoint.unseen_cuts() == {line_end}


@pytest.mark.long
def test_flips_and_cuts_of_a_partition_metadata(victim):
    """A topic id may be any, and a version may be higher: a downgrade has to work."""
    metadata = victim("partition.metadata")
    version = metadata.sound.index(b"0")
    topic_id = range(len(metadata.sound) - 22, len(metadata.sound))
    unseen = metadata.unseen_flips()
    assert {position for position, _ in unseen} <= {version, *topic_id}
    assert {(p, metadata.sound[p] ^ m) for p, m in unseen if p == version} == {
        (version, ord(digit)) for digit in "1248"
    }
    assert metadata.unseen_cuts() == set()


def test_two_bits_are_not_safer_than_one(victim):
    """Pairs of flips, spread over the file, that might cancel each other out."""
    log = victim("*.log")
    generator = np.random.default_rng(20260101)
    for _ in range(75):
        first, second = generator.choice(len(log.sound), 2, replace=False)
        data = flip(flip(log.sound, int(first), 1), int(second), 1)
        assert log.after(data), (first, second)


def test_random_bytes_for_any_file_are_survived(victim):
    generator = np.random.default_rng(20260102)
    names = ["*.log", "*.index", "*.timeindex", "*.txnindex", "*.snapshot",
             "leader-epoch-checkpoint", "partition.metadata"]  # fmt: skip
    for name in names:
        file = victim(name)
        for size in (0, 1, 7, 12, 61, 500, 5000):
            file.after(generator.bytes(size))
            file.after(bytes(size))
            file.after(b"\xff" * size)
