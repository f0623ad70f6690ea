"""Files of a log dir by themselves: the verdict on the log dir has the findings of each of them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import damage_file, flip
from verification import small_log_dir, verify

from logtool.findings import Broker
from logtool.formats.names import FileKind
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


BOOTSTRAPS = {
    "a record that cannot be read": (lambda data: flip(data, 150), Broker.REFUSES),
    "another name of metadata.version": (lambda data: flip(data, 160, 1), Broker.REFUSES),
    "another record of a feature": (lambda data: flip(data, 190, 1), Broker.NEVER),
    "another CRC": (lambda data: flip(data, 100), Broker.NEVER),
    "no whole footer": (lambda data: data[:-1], Broker.NEVER),
    "no whole batch of records": (lambda data: data[:200], Broker.REFUSES),
    "empty": (lambda data: b"", Broker.REFUSES),
}


@pytest.mark.parametrize(("damage", "broker"), BOOTSTRAPS.values(), ids=BOOTSTRAPS)
def test_verify_says_of_a_bootstrap_file_what_the_loader_says(home, damage, broker):
    damage_file(home / "bootstrap.checkpoint", damage)
    findings = [
        one for place in (home, home / "bootstrap.checkpoint")
        for one in verify(place, level=Level.QUICK).findings
        if one.code.startswith("kraft-snapshot/") and one.code != "kraft-snapshot/footer"
    ]  # fmt: skip
    assert {one.broker for one in findings} <= {broker}
    file = opening.open_log_dir(home).files[FileKind.BOOTSTRAP_CHECKPOINT]
    stops = list(metadata_log.hindrances(home, file, (4, 3)))
    assert (bool(stops), Broker.REFUSES in {one.broker for one in findings}) == (
        broker is Broker.REFUSES,
    ) * 2


def test_a_bootstrap_file_next_to_no_metadata_log_is_not_read(home, tmp_path):
    """The first log dir has the metadata log."""
    shutil.copytree(home, tmp_path / "b", ignore=lambda *_: ["__cluster_metadata-0"])
    damage_file(tmp_path / "b" / "bootstrap.checkpoint", flip, 150)
    found = verify(home, tmp_path / "b", level=Level.QUICK)
    assert found.one("kraft-snapshot/damaged").broker is Broker.NEVER


def test_the_byte_of_a_damaged_record_in_a_bootstrap_file(home):
    """It is that of the file, not that of the record, in which the frame version comes first."""
    damage_file(home / "bootstrap.checkpoint", flip, 150)
    file = opening.open_log_dir(home).files
    (bootstrap,) = (one for one in file.values() if one.path.name == "bootstrap.checkpoint")
    (found,) = metadata_log.hindrances(home, bootstrap, (4, 3))
    assert (found.path, found.position) == (bootstrap.path, 150)
