"""Absence: what files of a node name and no log dir holds, on log dirs of real brokers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import metadata_records as made
import pytest
from metadata_logs import data, log_dir, voters_batch
from verification import small_log_dir

from logtool.actions import Action
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.formats import offset_checkpoint
from logtool.log.inputs import NodeDir
from logtool.metadata import image as metadata_image
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.verify import Level, Verification
from logtool.watermark.replica import Replica
from logtool.watermark.run import Watermarks

Copy = Callable[[str], Path]
METADATA = "__cluster_metadata-0"
HIGH_WATERMARKS, RECOVERY_POINTS = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
)
NEW = frozenset({
    "partition/lost", "partition/absent", "partition/not-created", "log/lost", "metadata/lost",
    "metadata/absent", "metadata/hole", "metadata/location", "metadata/no-majority",
    "metadata/end-lost", "metadata/end-absent",
    "kraft-snapshot/missing", "data-dir/not-given", "data-dir/not-named", "data-dir/left-out",
    "broker-config/cleaner-off", "broker-config/own-vote",
    "broker-config/remote-storage-off", "broker-config/remote-topics",
})  # fmt: skip


def verify(paths: Sequence[Path], static: Mapping[str, str] | None = None) -> list[Finding]:
    """Return the findings of verify; a path that cannot be read fails the test."""
    found = list(Verification(paths, level=Level.QUICK, static=static))
    assert not [one for one in found if isinstance(one, UnreadableError)]
    return [one for one in found if isinstance(one, Finding)]


def codes(paths: Sequence[Path], static: Mapping[str, str] | None = None) -> list[str]:
    """Return the codes about absence, in order."""
    return [one.code for one in verify(paths, static) if one.code in NEW]


def start(paths: Sequence[Path], static: Mapping[str, str] | None = None) -> list[Action]:
    """Return the actions of the next start, of partitions and of log dirs."""
    found: list[Action] = []
    for item in Forecast(paths, StartOptions(static=static or {})):
        assert not isinstance(item, UnreadableError)
        found += item.actions if isinstance(item, PartitionForecast) else [item]
    return found


def kinds(paths: Sequence[Path], static: Mapping[str, str] | None = None) -> list[str]:
    """Return the kinds of the grave actions."""
    return [one.action for one in start(paths, static) if one.is_grave]


def partitions(log_dir: Path) -> list[Path]:
    """Return the partition dirs with records, without the metadata log."""
    logs = (path for path in sorted(log_dir.glob("*-[0-9]*/*.log")) if path.stat().st_size)
    return list(dict.fromkeys(log.parent for log in logs if log.parent.name != METADATA))


def drop_row(log_dir: Path, partition: Path) -> None:
    """Remove the rows of a partition from all offset checkpoints."""
    topic, _, number = partition.name.rpartition("-")
    for path in log_dir.glob("*-offset-checkpoint"):
        rows = offset_checkpoint.parse(path.read_bytes()).by_partition
        rows.pop((topic, int(number)), None)
        left = {key: row.offset for key, row in rows.items()}
        path.write_bytes(offset_checkpoint.encode(offset_checkpoint.build(left)))


def batches(log: Path) -> list[bytes]:
    """Return the batches of a sound log of magic 2."""
    data, found = log.read_bytes(), []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        if int.from_bytes(data[8:12], "big") == 0:
            break
        found.append(data[:size])
        data = data[size:]
    return found


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
@pytest.mark.parametrize("state", ["clean", "killed", "running", "empty", "formatted", "torn"])
def test_nothing_is_absent_from_what_a_broker_left(copy_of: Copy, release: str, state: str) -> None:
    home = copy_of(f"{release}/{state}")
    assert codes([home]) == []
    assert not {"lost", "absent", "unknown", "lacks"} & set(kinds([home]))


def test_the_log_dirs_of_one_node_together_lack_nothing(copy_of: Copy) -> None:
    home = copy_of("4.3.1/two-log-dirs")
    assert codes([home / "dir-1", home / "dir-2"]) == []
    replicas = copy_of("4.3.1/replicas")
    for node in sorted(replicas.iterdir()):
        assert codes([node]) == []


@pytest.mark.parametrize("state", ["clean", "killed"])
def test_a_partition_that_no_other_node_has_is_lost(copy_of: Copy, state: str) -> None:
    home = copy_of(f"4.3.1/{state}")
    gone = partitions(home)[0]
    shutil.rmtree(gone)
    (finding,) = [one for one in verify([home]) if one.code in NEW]
    topic, _, number = gone.name.rpartition("-")
    assert finding.code == "partition/lost"
    assert (finding.topic, finding.partition) == (topic, int(number))
    assert finding.severity is Severity.ERROR
    (action,) = [one for one in start([home]) if one.action == "lost"]
    assert action.path == gone


def test_all_partitions_gone_are_lost_one_by_one(copy_of: Copy) -> None:
    home = copy_of("3.9.2/clean")
    gone = [one for one in home.glob("*-[0-9]*") if one.is_dir() and one.name[-1].isdigit()]
    gone.remove(home / METADATA)
    for one in gone:
        shutil.rmtree(one)
    found = [one for one in verify([home]) if one.code in NEW]
    assert {f"{one.topic}-{one.partition}" for one in found} == {one.name for one in gone}
    assert {one.code for one in found} <= {"partition/lost", "partition/absent"}
    assert "partition/lost" in {one.code for one in found}


def test_a_partition_that_other_nodes_have_in_sync_is_absent(copy_of: Copy) -> None:
    home = copy_of("4.3.1/replicas") / "node-3"
    shutil.rmtree(home / "replica.in-sync-0")
    (finding,) = [one for one in verify([home]) if one.code in NEW]
    assert (finding.code, finding.severity) == ("partition/absent", Severity.WARNING)
    assert [one.action for one in start([home]) if one.topic == finding.topic][:1] == ["absent"]


def test_a_partition_without_a_row_was_not_created_yet(copy_of: Copy) -> None:
    home = copy_of("4.3.1/killed")
    gone = partitions(home)[0]
    shutil.rmtree(gone)
    drop_row(home, gone)
    (finding,) = [one for one in verify([home]) if one.code in NEW]
    assert (finding.code, finding.severity) == ("partition/not-created", Severity.INFO)
    assert "lost" not in kinds([home])


@pytest.mark.parametrize(
    ("leader_epoch", "replicas", "isr", "tags", "adding", "code"),
    [
        (0, [1], [1], {}, [], "partition/not-created"),
        (1, [1], [1], {}, [], "partition/lost"),
        (1, [1], [], {1: made.numbers(1)}, [], "partition/lost"),
        (1, [1], [], {2: made.numbers(1)}, [], "partition/lost"),
        (1, [1, 2], [], {1: made.numbers(1, 2)}, [], "partition/absent"),
        (1, [1, 2], [], {2: made.numbers(2)}, [], "partition/absent"),
        (1, [1, 2], [2], {}, [], "partition/absent"),
        (1, [1, 2], [2], {}, [1], "partition/not-created"),
        (1, [1, 2], [1, 2], {}, [1], "partition/absent"),
    ],
)
def test_a_replica_out_of_the_isr_was_made_unless_it_is_being_added(
    tmp_path: Path,
    leader_epoch: int,
    replicas: list[int],
    isr: list[int],
    tags: dict[int, bytes],
    adding: list[int],
    code: str,
) -> None:
    topic_id = "bG9ndG9vbC10b3BpYy0tMQ"
    record = made.partition(
        topic_id, 0, replicas, isr=isr, adding=adding, leader_epoch=leader_epoch, tags=tags
    )
    home = log_dir(
        tmp_path, 1, voters_batch(0, (1,)), data(2, made.topic("orders", topic_id), record)
    )
    (home / HIGH_WATERMARKS).write_text("0\n0\n")
    assert codes([home]) == [code]
    lost = ["lost"] if code == "partition/lost" else []
    assert [one for one in kinds([home]) if one == "lost"] == lost


@pytest.mark.parametrize("state", ["clean", "killed"])
def test_without_a_metadata_log_the_rows_of_a_clean_stop_prove_a_loss(
    copy_of: Copy, state: str
) -> None:
    home = copy_of("2.8.2/zookeeper")
    marker = home / ".kafka_cleanshutdown"
    if state == "killed":
        marker.unlink()
    gone = partitions(home)[0]
    shutil.rmtree(gone)
    expected = "partition/lost" if state == "clean" else "partition/absent"
    assert codes([home]) == [expected]


def test_a_directory_that_is_being_deleted_explains_a_row(copy_of: Copy) -> None:
    home = copy_of("2.8.2/zookeeper")
    gone = partitions(home)[0]
    gone.rename(home / f"{gone.name}.{'0' * 32}-delete")
    assert codes([home]) == []


@pytest.mark.parametrize("empty", [False, True])
def test_an_absent_log_and_an_empty_one_are_the_same_loss(copy_of: Copy, *, empty: bool) -> None:
    home = copy_of("4.3.1/clean")
    (home / HIGH_WATERMARKS).unlink()
    gone = next(one for one in partitions(home) if list(one.glob("*[1-9].snapshot")))
    for log in gone.glob("*.log"):
        log.write_bytes(b"") if empty else log.unlink()
    (finding,) = [one for one in verify([home]) if one.code in NEW]
    assert (finding.code, finding.path, finding.severity) == ("log/lost", gone, Severity.ERROR)
    assert [one.path for one in start([home]) if one.action == "lacks"] == [gone]


@pytest.mark.parametrize("lost", [False, True])
def test_after_a_kill_a_leader_epoch_proves_an_end(copy_of: Copy, *, lost: bool) -> None:
    home = copy_of("4.3.1/clean")
    (home / ".kafka_cleanshutdown").unlink()
    (home / HIGH_WATERMARKS).unlink()
    (home / RECOVERY_POINTS).unlink()
    one = partitions(home)[0]
    if lost:
        (one / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 100000\n")
    expected = [one] if lost else []
    assert [each.path for each in start([home]) if each.action == "lacks"] == expected
    found = list(Watermarks([NodeDir(home, None)], StartOptions()))
    tails = {each.path: each.tail for each in found if isinstance(each, Replica)}
    assert [path for path in tails if tails[path] != "sound"] == expected


def test_a_high_watermark_above_a_log_that_is_absent_is_a_loss(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    one = next(one for one in partitions(home) if list(one.glob("*[1-9].snapshot")))
    for path in (*one.glob("*.log"), *one.glob("*.snapshot"), one / "leader-epoch-checkpoint"):
        path.unlink()
    found = list(Watermarks([NodeDir(home, None)], StartOptions()))
    gone = {each.path for each in found if isinstance(each, Replica) and each.acknowledged_gone}
    assert gone == {one}


def test_a_metadata_log_that_is_gone_is_reported(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    shutil.rmtree(home / METADATA)
    assert codes([home]) == ["metadata/absent"]
    assert "unknown" in kinds([home])


def test_a_metadata_log_that_is_not_in_its_log_dir_is_lost(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    shutil.rmtree(home / METADATA)
    static = {"log.dirs": str(home), "process.roles": "broker,controller", "node.id": "1"}
    assert codes([home], static) == ["metadata/lost"]
    assert kinds([home], static)[0] == "lost"


def test_a_broker_without_the_controller_role_fetches_its_metadata_log_again(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    shutil.rmtree(home / METADATA)
    static = {"log.dirs": str(home), "process.roles": "broker"}
    assert codes([home], static) == ["metadata/absent"]
    assert "lost" not in kinds([home], static)


def test_an_empty_metadata_log_is_lost_and_its_partitions_may_be_stray(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    for path in (home / METADATA).iterdir():
        if path.suffix == ".checkpoint":
            path.unlink()
        elif path.suffix == ".log":
            path.write_bytes(b"")
    assert "metadata/lost" in codes([home])
    assert kinds([home]) == ["refuse"]
    static = {"log.dirs": str(home), "process.roles": "broker,controller", "node.id": "1",
              "controller.quorum.voters": "1@localhost:9093"}  # fmt: skip
    assert "stray" in kinds([home], static)


@pytest.mark.parametrize(("roles", "stray"), [("broker", False), ("broker,controller", True)])
def test_a_metadata_log_that_is_fetched_again_makes_nothing_stray(
    copy_of: Copy, roles: str, *, stray: bool
) -> None:
    home = copy_of("3.9.2/clean")
    for path in (home / METADATA).iterdir():
        path.unlink()
    static = {"process.roles": roles, "node.id": "1", "controller.quorum.voters": "1@h:9"}
    if roles == "broker":
        static["controller.quorum.voters"] = "3@h:9"
    assert ("stray" in kinds([home], static)) == stray


def test_a_metadata_log_without_its_beginning_stops_the_node(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    log = home / METADATA / f"{0:020}.log"
    first, *rest = batches(log)
    start_of_rest = int.from_bytes(rest[0][:8], "big")
    assert int.from_bytes(first[:8], "big") == 0
    (log.parent / f"{start_of_rest:020}.log").write_bytes(b"".join(rest))
    for path in log.parent.glob(f"{0:020}.*"):
        path.unlink()
    for path in log.parent.glob("*.checkpoint"):
        path.unlink()
    assert "kraft-snapshot/missing" in codes([home])
    assert "refuse" in kinds([home])


def test_a_batch_that_the_metadata_log_lacks_is_an_error(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    log = home / METADATA / f"{0:020}.log"
    found = batches(log)
    for path in log.parent.glob("*.checkpoint"):
        path.unlink()
    log.write_bytes(b"".join([*found[:5], *found[6:]]))
    (finding,) = [one for one in verify([home]) if one.code == "metadata/hole"]
    assert finding.first_offset == int.from_bytes(found[5][:8], "big")
    assert finding.position == sum(map(len, found[:5]))
    assert "unknown" in kinds([home])


@pytest.fixture
def dirs(copy_of: Copy) -> list[Path]:
    """Return the two log dirs of one broker, that with the metadata log first."""
    home = copy_of("4.3.1/two-log-dirs")
    found = [home / "dir-1", home / "dir-2"]
    return sorted(found, key=lambda path: not (path / METADATA).is_dir())


def test_a_disk_that_was_formatted_again_has_lost_its_partitions(dirs: list[Path]) -> None:
    before = {one.name for one in dirs[1].glob("*-[0-9]*") if one.is_dir()}
    meta = (dirs[1] / "meta.properties").read_text().splitlines()
    shutil.rmtree(dirs[1])
    dirs[1].mkdir()
    new = [line for line in meta if not line.startswith("directory.id")]
    (dirs[1] / "meta.properties").write_text(
        "\n".join([*new, "directory.id=AAAAAAAAAAAAAAAAAAAAbw"])
    )
    found = [one for one in verify(dirs) if one.code in NEW]
    assert {one.code for one in found} == {"partition/lost"}
    assert {f"{one.topic}-{one.partition}" for one in found} == {
        name for name in before if not name.endswith(("-future", "-delete", "-stray"))
    }
    assert "lost" in kinds(dirs)


@pytest.mark.parametrize("content", [(), ("lost+found",)])
def test_an_empty_disk_next_to_a_log_dir_stops_the_broker(
    dirs: list[Path], content: Sequence[str]
) -> None:
    shutil.rmtree(dirs[1])
    dirs[1].mkdir()
    for name in content:
        (dirs[1] / name).mkdir()
    assert "meta-properties/missing" in [one.code for one in verify(dirs)]
    refusals = [one.path for one in start(dirs) if one.action == "refuse"]
    assert dirs[1] in refusals


def test_a_log_dir_that_the_own_file_dropped_has_lost_its_partitions(dirs: list[Path]) -> None:
    static = {"log.dirs": str(dirs[0]), "process.roles": "broker,controller"}
    assert set(codes(dirs[:1], static)) == {"partition/lost"}
    assert set(codes(dirs[:1])) == {"data-dir/not-given"}


def test_a_log_dir_of_the_own_file_that_does_not_exist_stops_the_broker(dirs: list[Path]) -> None:
    static = {"log.dirs": f"{dirs[0]},{dirs[1]}", "process.roles": "broker,controller"}
    assert "refuse" not in kinds(dirs[:1], static)
    shutil.rmtree(dirs[1])
    found = [one for one in verify(dirs[:1], static) if one.code == "meta-properties/missing"]
    assert [(one.path, one.severity) for one in found] == [(dirs[1], Severity.ERROR)]
    assert "refuse" in kinds(dirs[:1], static)


@pytest.mark.parametrize(
    ("voters", "own", "waits"),
    [
        ((1,), None, False),
        ((1,), "", True),
        ((1,), "directory.id=AAAAAAAAAAAAAAAAAAAAbw\n", True),
        ((1, 2), "", False),
        ((2,), "", False),
    ],
)
def test_a_sole_voter_with_another_directory_id_waits_for_ever(
    tmp_path: Path, voters: Sequence[int], own: str | None, *, waits: bool
) -> None:
    home = log_dir(tmp_path, 1, voters_batch(0, voters))
    meta = home / "meta.properties"
    if own is not None:
        meta.write_text(re.sub("(?m)^directory.id=.*\n", own, meta.read_text()))
    found = [one.path for one in verify([home]) if one.code == "meta-properties/unknown-voter"]
    assert found == [meta] * waits
    assert ("refuse" in kinds([home])) == waits


def test_the_own_file_is_compared_with_the_log_dirs(dirs: list[Path]) -> None:
    right = {"log.dirs": f"{dirs[0]},{dirs[1]}", "process.roles": "broker,controller",
             "node.id": "1", "controller.quorum.voters": "1@localhost:9093"}  # fmt: skip
    assert [one for one in verify(dirs, right) if one.severity is not Severity.INFO] == []
    other_node = verify(dirs, {**right, "node.id": "7"})
    assert [one.code for one in other_node].count("meta-properties/mismatch") == 2
    swapped = {**right, "log.dirs": f"{dirs[1]},{dirs[0]}"}
    assert codes(dirs, swapped) == ["metadata/location"]
    assert "refuse" in kinds(dirs, swapped)
    assert codes(dirs, {**swapped, "metadata.log.dir": str(dirs[0])}) == []
    voters = {**right, "controller.quorum.voters": "1@localhost:9093,2@localhost:9094"}
    assert codes(dirs, voters) == ["metadata/no-majority"]
    assert "unknown" in kinds(dirs, voters)


@pytest.mark.parametrize(
    ("roles", "voters", "refused"),
    [
        ("broker,controller", "1@localhost:9093", False),
        ("broker,controller", "2@localhost:9093", True),
        ("controller", "1@localhost:9093,2@localhost:9094", False),
        ("broker", "2@localhost:9093", False),
        ("broker", "1@localhost:9093,2@localhost:9094", True),
        ("controller", "", False),
    ],
)
def test_a_controller_has_a_vote_and_a_broker_has_none(
    dirs: list[Path], roles: str, voters: str, *, refused: bool
) -> None:
    static = {"log.dirs": f"{dirs[0]},{dirs[1]}", "process.roles": roles, "node.id": "1",
              "controller.quorum.voters": voters}  # fmt: skip
    assert ("broker-config/own-vote" in codes(dirs, static)) == refused
    assert ("refuse" in kinds(dirs, static)) == refused


def listed(*paths: Path) -> bool | None:
    """Return whether verify found a file that lists the partitions; watermark must agree."""
    job = Verification(paths, level=Level.QUICK)
    assert list(job) is not None
    other = Watermarks([NodeDir(path) for path in paths], StartOptions())
    assert list(other) is not None
    assert other.summary.partition_list == job.summary.partition_list
    return job.summary.partition_list


def test_it_is_known_which_partitions_should_exist_if_a_file_lists_them(copy_of: Copy) -> None:
    home = copy_of("3.9.2/clean")
    some = partitions(home)[0]
    assert listed(home) is True
    shutil.rmtree(home / METADATA)
    assert listed(home) is True
    assert listed(some) is True
    for path in home.glob("*-offset-checkpoint"):
        path.write_bytes(b"0\n0\n")
    assert listed(home) is False
    assert listed(some) is False


def test_a_log_dir_that_the_own_file_does_not_name_is_not_opened(dirs: list[Path]) -> None:
    static = {"log.dirs": str(dirs[0]), "process.roles": "broker,controller"}
    found = [one for one in verify(dirs, static) if one.code == "data-dir/not-named"]
    assert [(one.path, one.severity) for one in found] == [(dirs[1], Severity.ERROR)]
    assert dirs[1] in [one.path for one in start(dirs, static) if one.action == "lost"]
    elsewhere = {**static, "log.dirs": "/elsewhere"}
    assert codes(dirs, elsewhere) == []


def test_a_log_dir_that_only_the_own_file_names_is_an_info(dirs: list[Path]) -> None:
    static = {"log.dirs": f"{dirs[0]},{dirs[1]}", "process.roles": "broker,controller"}
    (finding,) = [one for one in verify(dirs[:1], static) if one.code in NEW]
    assert (finding.code, finding.severity) == ("data-dir/left-out", Severity.INFO)


def test_a_metadata_log_outside_of_log_dirs_replaces_no_log_dir(
    dirs: list[Path], tmp_path: Path
) -> None:
    """One log dir of three is not given, and the one with the metadata log was never registered."""
    meta = tmp_path / "meta"
    meta.mkdir()
    (dirs[0] / METADATA).rename(meta / METADATA)
    text = (dirs[0] / "meta.properties").read_text().splitlines()
    new = [line for line in text if not line.startswith("directory.id")]
    (meta / "meta.properties").write_text("\n".join([*new, "directory.id=AAAAAAAAAAAAAAAAAAAAbw"]))
    assert codes([*dirs, meta]) == []
    assert codes([dirs[0], meta]) == ["data-dir/not-given"]


def test_compacted_topics_are_named_if_the_own_file_turns_the_cleaner_off(copy_of: Copy) -> None:
    home = copy_of("4.3.1/clean")
    static = {"log.dirs": str(home), "log.cleaner.enable": "false"}
    (finding,) = [one for one in verify([home], static) if one.code in NEW]
    assert (finding.code, finding.severity) == ("broker-config/cleaner-off", Severity.WARNING)
    assert "ignore" in kinds([home], static)
    assert codes([home], {**static, "log.cleaner.enable": "true"}) == []


@pytest.mark.parametrize(
    ("begins", "code", "action"),
    [
        (0, "broker-config/remote-topics", "ignore"),
        (100, "broker-config/remote-storage-off", "lost"),
    ],
)
def test_tiered_topics_need_remote_storage(
    tmp_path: Path, begins: int, code: str, action: str
) -> None:
    topic_id = "bG9ndG9vbC10b3BpYy0tMQ"
    setting = made.config(2, "orders", "remote.storage.enable", "true")
    records = made.topic("orders", topic_id), made.partition(topic_id, 0, [1]), setting
    home = log_dir(tmp_path, 1, voters_batch(0, (1,)), data(2, *records))
    log = home / "orders-0" / f"{begins:020}.log"
    log.parent.mkdir()
    log.write_bytes(made.batch(begins, b"a"))
    (log.parent / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    static = {"log.dirs": str(home), "remote.log.storage.system.enable": "false"}
    assert code in codes([home], static)
    assert action in kinds([home], static)
    assert code not in codes([home], {**static, "remote.log.storage.system.enable": "true"})
    assert code not in codes([home])


@pytest.mark.parametrize("state", ["killed", "clean"])
@pytest.mark.parametrize("predecessor", ["another topic", "the same topic", None])
def test_a_high_watermark_of_a_deleted_topic_of_the_same_name_proves_no_loss(
    scenario: Copy, tmp_path: Path, state: str, predecessor: str | None
) -> None:
    source = scenario(f"4.3.1/{state}")
    home = small_log_dir(source, tmp_path / "data", METADATA, "codec-none-0")
    live = home / "codec-none-0"
    row = offset_checkpoint.build({("codec-none", 0): 1_000_000})
    (home / HIGH_WATERMARKS).write_bytes(offset_checkpoint.encode(row))
    if predecessor:
        gone = shutil.copytree(live, home / f"{live.name}.{'0' * 32}-delete")
        if predecessor == "another topic":
            text = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAbw\n"
            (gone / "partition.metadata").write_text(text)
    found = [one.code for one in verify([home]) if one.code.startswith("checkpoint/high-watermark")]
    is_stale = state == "killed" and predecessor == "another topic"
    assert bool(found) is not is_stale
    assert bool([one for one in start([home]) if one.action == "lacks"]) is not is_stale


@pytest.mark.parametrize(
    ("behind", "found"),
    [
        ((0, 0), []), ((0, 1), [1]), ((None, 1), [1]),
        ((1, None), [0]), ((1, 1), []), ((None, None), []),
    ],
)  # fmt: skip
def test_a_log_dir_that_was_stopped_before_the_last_registration_is_an_older_copy(
    dirs: list[Path], behind: Sequence[int | None], found: list[int]
) -> None:
    image = metadata_image.read(dirs[0])
    (epoch,) = {one["brokerEpoch"] for one in image.brokers.values()}
    for home, count in zip(dirs, behind, strict=True):
        marker = home / ".kafka_cleanshutdown"
        marker.unlink(missing_ok=True)
        if count is not None:
            marker.write_text(f'{{"version":0,"brokerEpoch":{epoch - count}}}')
    older = [one.path for one in verify(dirs) if one.code == "clean-shutdown/older"]
    assert older == [dirs[one] / ".kafka_cleanshutdown" for one in found]
