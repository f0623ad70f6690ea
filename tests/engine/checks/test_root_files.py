"""Files of a log dir by themselves: the verdict on the log dir has the findings of each of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from damage import damage_file, flip
from verification import small_log_dir, verify

from logtool.findings import Broker
from logtool.loading import metadata_log
from logtool.log import opening
from logtool.verify import Level

METADATA = "__cluster_metadata-0"
FILES = (
    "meta.properties", "bootstrap.checkpoint", ".kafka_cleanshutdown",
    "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    "log-start-offset-checkpoint", "cleaner-offset-checkpoint", f"{METADATA}/quorum-state",
    f"{METADATA}/leader-epoch-checkpoint", f"{METADATA}/partition.metadata",
    f"{METADATA}/00000000000000000000-0000000000.checkpoint",
)  # fmt: skip
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda data: bytes(len(data)),
    "half": lambda data: data[: len(data) // 2],
    "more": lambda data: data + b"xx",
    "bit": lambda data: flip(data, len(data) // 3, 0x80),
}


@pytest.fixture
def home(scenario, tmp_path) -> Path:
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "home", "codec-none-0", METADATA)


@pytest.mark.parametrize("name", FILES)
def test_a_log_dir_has_the_findings_of_each_of_its_files(home, name):
    found = 0
    sound = (home / name).read_bytes()
    for what, damage in DAMAGES.items():
        (home / name).write_bytes(damage(sound))
        alone = verify(home / name, level=Level.BATCHES).places
        assert alone <= verify(home, level=Level.BATCHES).places, what
        found += len(alone)
    assert found


def test_a_log_dir_with_a_damaged_bootstrap_file(home):
    """A broker reads it whole at each start, whatever the level of the check."""
    damage_file(home / "bootstrap.checkpoint", flip, 150)
    found = verify(home, level=Level.QUICK)
    assert found.one("kraft-snapshot/damaged").broker is Broker.REFUSES
    assert found.exit_status == 1


def test_the_byte_of_a_damaged_record_in_a_bootstrap_file(home):
    """It is that of the file, not that of the record, in which the frame version comes first."""
    damage_file(home / "bootstrap.checkpoint", flip, 150)
    file = opening.open_log_dir(home).files
    (bootstrap,) = (one for one in file.values() if one.path.name == "bootstrap.checkpoint")
    (found,) = metadata_log.hindrances(home, bootstrap, (4, 3))
    assert (found.path, found.position) == (bootstrap.path, 150)
