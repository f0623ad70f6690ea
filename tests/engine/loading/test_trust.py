"""Recovery that trusts the storage against recovery that rebuilds: of sound logs the same bytes."""

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.generate import KIB, Spec, generate
from damage import append_to_file, damage_file, flip
from supplements import unclean_starts, write_out
from verification import batches

from logtool.loading.loader import load
from logtool.loading.result import LoadResult, StartConditions
from logtool.loading.supplement import supplement
from logtool.loading.trusting import trust
from logtool.log import opening

Scenario = Callable[[str], Path]
_NEVER = 2**62
"""No producer expires: fixtures grow old."""
_ENTRY = {".index": 8, ".timeindex": 12, ".txnindex": 34}
_SPECS = [
    Spec(200, 300 * KIB, segment_size=60 * KIB, producers=3),
    Spec(9 * KIB, 900 * KIB, segment_size=200 * KIB, producers=2),
    Spec(300 * KIB, 3000 * KIB, segment_size=1000 * KIB, producers=0),
]


def contents(loaded: LoadResult) -> dict[str, bytes]:
    return {name: loaded.shadow.files[name].read() for name in loaded.shadow}


def differing(path: Path, start: StartConditions) -> list[str]:
    """Return the files that come out other than a rebuild leaves them."""
    rebuilt, mine = (
        load(opening.open_partition(path), start),
        trust(opening.open_partition(path), start),
    )
    assert mine.trusted, mine.distrust
    assert (mine.outcome, mine.log_end) == (rebuilt.outcome, rebuilt.log_end)
    assert (mine.epochs, mine.recovery_point) == (rebuilt.epochs, rebuilt.recovery_point)
    theirs, ours = contents(rebuilt), contents(mine)
    return sorted(name for name in theirs.keys() | ours if theirs.get(name) != ours.get(name))


def lose(path: Path, source: random.Random) -> None:
    """Take from a rebuilt partition what a kill may leave unwritten, and nothing of its log."""
    snapshots = sorted(path.glob("*.snapshot"))
    for snapshot in snapshots[len(snapshots) - source.randrange(min(3, len(snapshots)) + 1) :]:
        snapshot.unlink()
    logs = sorted(path.glob("*.log"))
    for log in logs[-source.randrange(1, len(logs) + 1) :]:
        for suffix in (".index", ".timeindex"):
            index = log.with_suffix(suffix)
            keep = source.randrange(index.stat().st_size + 1)
            index.write_bytes(index.read_bytes()[: keep - keep % _ENTRY[suffix]] + bytes(480))
    aborts = log.with_suffix(".txnindex")
    if aborts.exists() and (size := aborts.stat().st_size):
        aborts.write_bytes(aborts.read_bytes()[: size - source.randrange(1, 34)])
    if batches(log).size.sum():
        append_to_file(log, log.read_bytes()[: source.randrange(1, 60)])


def assert_completed(path: Path, start: StartConditions, work: Path, seeds: int) -> None:
    sound = write_out(
        load(opening.open_partition(path), start).shadow, work / "rebuilt" / path.name
    )
    assert differing(sound, start) == [], path.name
    for seed in range(seeds):
        copy = write_out(
            load(opening.open_partition(sound), start).shadow, work / str(seed) / path.name
        )
        lose(copy, random.Random(seed))
        assert differing(copy, start) == [], (path.name, seed)


@pytest.mark.parametrize(
    "topic",
    [
        "tx.mixed-0",
        "small-segments-0",
        "compacted-tx-0",
        "codec-lz4-0",
        "index.dense-0",
        "preallocated.log-0",
    ],
)
def test_a_real_log_comes_out_as_a_rebuild_leaves_it_byte_for_byte(
    scenario: Scenario, topic: str, tmp_path: Path
) -> None:
    home = scenario("4.3.1/killed")
    path, start = next(one for one in unclean_starts(home) if one[0].name == topic)
    start = dataclasses.replace(start, expiration_ms=_NEVER, recovery_point=0)
    assert_completed(path, start, tmp_path, seeds=4)


@pytest.mark.long
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
@pytest.mark.parametrize("name", ["killed", "running", "java-clients"])
def test_every_real_log_comes_out_so(
    scenario: Scenario, version: str, name: str, tmp_path: Path
) -> None:
    for home in sorted(scenario(f"{version}/{name}").rglob("meta.properties")):
        for path, start in unclean_starts(home.parent):
            start = dataclasses.replace(start, expiration_ms=_NEVER, recovery_point=0)
            assert_completed(path, start, tmp_path / home.parent.name, seeds=5)


@pytest.mark.parametrize("spec", _SPECS, ids=lambda spec: spec.name)
def test_a_generated_log_comes_out_so(spec: Spec, tmp_path: Path) -> None:
    path = generate(tmp_path, spec)
    assert_completed(path, StartConditions(clean=False, expiration_ms=_NEVER), tmp_path, seeds=4)


# --- what contradicts itself is checked ----------------------------------------------------------


@pytest.fixture
def path(copy_of: Scenario) -> Path:
    return copy_of("4.3.1/killed") / "tx.mixed-0"


START = StartConditions(clean=False, recovery_point=1736, expiration_ms=_NEVER)
ACTIVE, LAST = 1992, 1859


def test_headers_from_the_newest_snapshot_on_are_all_that_is_read(path: Path) -> None:
    mine = trust(opening.open_partition(path), START)
    (recovered,) = mine.recovered
    assert recovered.base_offset == ACTIVE
    markers = batches(path / f"{ACTIVE:020}.log")
    markers = markers[markers.is_control]
    assert mine.bytes_applied == recovered.size
    assert mine.bytes_scanned == recovered.size + int(markers.size.sum())


def test_of_large_batches_only_headers_are_read(tmp_path: Path) -> None:
    path = generate(tmp_path, _SPECS[2])
    mine = trust(opening.open_partition(path), StartConditions(clean=False))
    assert mine.bytes_applied == sum(log.stat().st_size for log in path.glob("*.log"))
    assert mine.bytes_scanned < mine.bytes_applied / 1000 + len(list(path.glob("*.log"))) * 300_000


def test_damage_that_a_crc_alone_shows_stays_unseen(path: Path) -> None:
    log = path / f"{ACTIVE:020}.log"
    table = batches(log)
    damage_file(log, flip, int(table[~table.is_control].end_position[-1]) - 1)
    assert load(opening.open_partition(path), START).log_end < 2003
    mine = trust(opening.open_partition(path), START)
    assert (mine.log_end, mine.trusted) == (2003, True)


def _no_epochs(path: Path) -> None:
    (path / "leader-epoch-checkpoint").unlink()


def _bad_header(path: Path) -> None:
    log = path / f"{ACTIVE:020}.log"
    damage_file(log, flip, int(batches(log).position[1]) + 8)


def _snapshot_beyond(path: Path) -> None:
    (path / f"{ACTIVE:020}.snapshot").rename(path / f"{2040:020}.snapshot")


def _snapshot_inside(path: Path) -> None:
    table = batches(path / f"{LAST:020}.log")
    row = int((table.last_offset - table.base_offset).argmax())
    (path / f"{ACTIVE:020}.snapshot").unlink()
    inside = f"{table.base_offset[row] + 1:020}.snapshot"
    (path / f"{LAST:020}.snapshot").rename(path / inside)


def _entry_without_marker(path: Path) -> None:
    index = path / f"{ACTIVE:020}.txnindex"
    data = bytearray(index.read_bytes())
    data[25] -= 1
    index.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_no_epochs, "leader-epoch-checkpoint"),
        (_bad_header, "no batch begins at byte"),
        (_snapshot_beyond, "before it starts"),
        (_snapshot_inside, "inside a batch"),
        (_entry_without_marker, "has an entry without its marker"),
    ],
)
def test_what_contradicts_itself_is_checked(
    path: Path, damage: Callable[[Path], None], why: str
) -> None:
    damage(path)
    mine = trust(opening.open_partition(path), START)
    assert not mine.trusted
    assert why in mine.distrust
    assert contents(mine) == contents(supplement(opening.open_partition(path), START))


def test_a_partition_without_a_segment_gets_one(path: Path) -> None:
    for file in path.iterdir():
        if file.name != "leader-epoch-checkpoint":
            file.unlink()
    assert differing(path, dataclasses.replace(START, recovery_point=0)) == []


@pytest.mark.parametrize(("flushed", "is_trusted"), [(2003, True), (2004, False), (9999, False)])
def test_a_log_that_lost_what_was_flushed_is_checked(
    path: Path, flushed: int, is_trusted: bool
) -> None:
    mine = trust(opening.open_partition(path), dataclasses.replace(START, recovery_point=flushed))
    assert mine.log_end == 2003
    assert mine.trusted == is_trusted
    assert bool(mine.distrust) != is_trusted


def test_a_torn_transaction_index_brings_the_playback_back_to_its_last_entry(path: Path) -> None:
    whole = (path / f"{LAST:020}.txnindex").read_bytes()
    (path / f"{LAST:020}.txnindex").write_bytes(whole[:-1])
    mine = trust(opening.open_partition(path), START)
    assert mine.trusted and mine.playback
    assert mine.playback.producer_snapshot == ACTIVE
    assert mine.playback.starting_offset == mine.playback.transaction_index < ACTIVE
    assert mine.playback.replayed_from == LAST
    assert contents(mine)[f"{LAST:020}.txnindex"] == whole
