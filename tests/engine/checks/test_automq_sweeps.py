"""Objects of a broker of AutoMQ, cut or with a flipped bit: a finding each time, and no crash."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import automq_sweeps
import pytest
from automq_sweeps import Tally

from logtool.disk import files
from logtool.formats.automq.names import ObjectKind
from logtool.log.inputs import GivenPaths
from logtool.log.opening import open_log_dir, open_partition
from logtool.metadata import automq_tree


@pytest.fixture
def home(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a copy of the killed node that a test may damage."""
    return Path(shutil.copytree(scenario("automq/broker-crash"), tmp_path / "home"))


def cut(state: Path, step: int) -> Tally:
    tally = Tally()
    for one in automq_sweeps.objects_of(state):
        if one.name.kind is not ObjectKind.BLOCK_WAL:
            automq_sweeps.cut(one, tally, step)
    return tally


def flip(state: Path, step: int, bits: Sequence[int] = range(8)) -> Tally:
    tally = Tally()
    for one in automq_sweeps.objects_of(state):
        if one.name.kind is ObjectKind.DATA:
            automq_sweeps.flip(one, tally, step, bits)
    return tally


def test_an_object_that_is_cut_has_a_finding(scenario: Callable[[str], Path]) -> None:
    tally = cut(scenario("automq/broker-crash"), 3989)
    assert tally.found.total() == tally.tried > 80


def test_a_flipped_bit_of_an_index_block_or_footer_has_a_finding(
    scenario: Callable[[str], Path],
) -> None:
    tally = flip(scenario("automq/broker-crash"), 97, (0, 5))
    assert tally.silent == []
    assert tally.found.total() > 60


@pytest.mark.parametrize("kind", [ObjectKind.WAL, ObjectKind.BLOCK_WAL, ObjectKind.DATA])
def test_no_damage_of_what_automqs_classes_wrote_is_silent(
    scenario: Callable[[str], Path], kind: ObjectKind
) -> None:
    tally = Tally()
    some = [
        one for one in automq_sweeps.objects_of(scenario("automq/made")) if one.name.kind is kind
    ]
    for one in some[:3]:
        step = 20011 if kind is ObjectKind.BLOCK_WAL else 61
        automq_sweeps.cut(one, tally, step)
        automq_sweeps.flip(one, tally, step, (3,))
    assert tally.silent == []
    assert tally.found


@pytest.mark.long
@pytest.mark.parametrize("state", [*automq_sweeps.STATES, "made"])
def test_an_object_cut_at_every_byte_has_a_finding(
    scenario: Callable[[str], Path], state: str
) -> None:
    tally = cut(scenario(f"automq/{state}"), 1)
    assert tally.found.total() == tally.tried > 30_000


@pytest.mark.long
@pytest.mark.parametrize("state", [*automq_sweeps.STATES, "made"])
def test_every_flipped_bit_of_an_index_block_or_footer_has_a_finding(
    scenario: Callable[[str], Path], state: str
) -> None:
    tally = flip(scenario(f"automq/{state}"), 1)
    assert tally.silent == []
    assert tally.found.total() > 5_000


def read_everything(home: Path) -> None:
    """Read every file of every partition, as commands do."""
    (path,) = automq_tree.join(GivenPaths((home / "s3", home / "meta"))).paths
    for folder, _ in open_log_dir(path).partitions:
        for file in open_partition(folder).files():
            files.read_small(file.path)


def damage(home: Path, step: int, bits: int, *which: int) -> int:
    seen = 0
    for one in automq_sweeps.objects_of(home):
        if which and one.name.object_id not in which:
            continue
        data = one.data
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
