"""Objects of a broker of AutoMQ, cut or with a flipped bit: a finding each time, and no crash."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logtool.checks.automq import object_findings
from logtool.disk import files
from logtool.formats.automq import data_object
from logtool.formats.automq.names import ObjectKind
from logtool.log.automq_bucket import StoredObject, open_bucket
from logtool.log.inputs import GivenPaths
from logtool.log.opening import open_log_dir, open_partition
from logtool.metadata import automq_tree

CLUSTER = "rtcdRH6ESFi-nWZAzLnP0g"


@pytest.fixture
def home(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a copy of the killed node that a test may damage."""
    return Path(shutil.copytree(scenario("automq/broker-crash"), tmp_path / "home"))


def objects_of(home: Path) -> list[StoredObject]:
    bucket = open_bucket(home / "s3", CLUSTER)
    wal = [one for some in bucket.wals.values() for one in some]
    return [*bucket.objects.values(), *wal, *bucket.others]


def codes(one: StoredObject, data: bytes) -> set[str]:
    """Return the codes for an object with other content."""
    one.path.write_bytes(data)
    changed = StoredObject(one.path, one.name, len(data))
    return {found.code for found in object_findings(changed, reads_blocks=True)}


def cut(home: Path, step: int) -> int:
    seen = 0
    for one in objects_of(home):
        data = one.path.read_bytes()
        for size in range(len(data) - 1, -1, -step):
            assert codes(one, data[:size]), (one.name.key, size)
            seen += 1
        one.path.write_bytes(data)
    return seen


def flips(one: StoredObject, data: bytes, step: int) -> Iterator[tuple[int, bytes]]:
    """Yield an object with a flipped bit of its index block or its footer, without the padding."""
    footer = data_object.parse_footer(data)
    assert footer
    end = len(data) - data_object.FOOTER.size
    places = [*range(footer.index_position, end + 12), *range(len(data) - 8, len(data))]
    for position in places[::step]:
        for bit in range(0, 8, 1 if step == 1 else 5):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            yield position, bytes(changed)


def flip(home: Path, step: int) -> int:
    seen = 0
    for one in objects_of(home):
        if one.name.kind is ObjectKind.DATA:
            data = one.path.read_bytes()
            for position, changed in flips(one, data, step):
                assert codes(one, changed), (one.name.key, position)
                seen += 1
    return seen


def test_an_object_that_is_cut_has_a_finding(home: Path) -> None:
    assert cut(home, 3989) > 80


def test_a_flipped_bit_of_an_index_block_or_footer_has_a_finding(home: Path) -> None:
    assert flip(home, 97) > 60


@pytest.mark.long
def test_an_object_cut_at_every_byte_has_a_finding(home: Path) -> None:
    assert cut(home, 1) > 200_000


@pytest.mark.long
def test_every_flipped_bit_of_an_index_block_or_footer_has_a_finding(home: Path) -> None:
    assert flip(home, 1) > 20_000


def read_everything(home: Path) -> None:
    """Read every file of every partition, as commands do."""
    (path,) = automq_tree.join(GivenPaths((home / "s3", home / "meta"))).paths
    for folder, _ in open_log_dir(path).partitions:
        for file in open_partition(folder).files():
            files.read_small(file.path)


def damage(home: Path, step: int, bits: int, *which: int) -> int:
    seen = 0
    for one in objects_of(home):
        if which and one.name.object_id not in which:
            continue
        data = one.path.read_bytes()
        for position in range(step // 2, len(data), step):
            changed = bytearray(data)
            changed[position] ^= bits
            for content in (bytes(changed), data[:position]):
                one.path.write_bytes(content)
                read_everything(home)
                seen += 1
        one.path.write_bytes(data)
    return seen


def test_partitions_are_read_past_a_damaged_object(home: Path) -> None:
    assert damage(home, 600, 0x81, 15, 1) == 4


@pytest.mark.long
def test_partitions_are_read_past_any_damaged_object(home: Path) -> None:
    assert damage(home, 997, 0xFF) > 300
