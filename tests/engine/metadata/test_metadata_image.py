import shutil
from dataclasses import replace
from pathlib import Path

import metadata_records as made
import pytest
from conftest import SCENARIOS
from damage import damage_file, flip
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metadata_records import log_dir_of, snapshot
from verification import batches, has_numbers, log_dirs

from logtool.errors import UnreadableError
from logtool.formats import meta_properties, partition_metadata
from logtool.formats.names import DirectoryKind
from logtool.log import opening
from logtool.metadata import image as metadata_image

ID = "J8aAPcfLQt2bqs1JT_rMgQ"
NEW_ID = "AAECAwQFBgcICQoLDA0ODw"
LOG = "00000000000000000000.log"
WITH_LOG_FROM_0 = [
    name
    for name in SCENARIOS
    if name.partition("/")[2] in ("clean", "killed", "running", "java-clients")
]


def metadata_dirs(home):
    return sorted(home.rglob(metadata_image.DIRECTORY))


def only(source, target, *names):
    """Copy the named files of a directory."""
    target.mkdir(parents=True)
    for name in names:
        shutil.copy2(source / name, target)
    return target


def cut_at(log, offset):
    """Cut a log where the batch of that offset begins."""
    table = batches(log)
    behind = table.position[table.base_offset >= offset]
    if len(behind):
        log.write_bytes(log.read_bytes()[: int(behind[0])])


def comparable(image):
    """Return an image without how it was read; only the first snapshot has the first voters."""
    return replace(image, offset=0, voters=None, kraft_version=0)


@pytest.mark.parametrize("name", WITH_LOG_FROM_0)
def test_the_log_folds_into_what_kafka_writes_as_a_snapshot(scenario, name, tmp_path):
    compared = 0
    for source in metadata_dirs(scenario(name)):
        for file in source.glob("*.checkpoint"):
            offset = int(file.name[:20])
            by_snapshot = metadata_image.read(only(source, tmp_path / f"s{offset}", file.name))
            log_only = only(source, tmp_path / f"l{offset}", LOG)
            cut_at(log_only / LOG, offset)
            by_log = metadata_image.read(log_only)

            assert by_log.damage is by_snapshot.damage is None
            assert comparable(by_log) == comparable(by_snapshot)
            assert by_snapshot.offset == offset
            compared += offset > 0 and by_log.offset == offset
    assert compared


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_snapshot_changes_nothing_of_what_the_log_says(scenario, name, tmp_path):
    for source in metadata_dirs(scenario(name)):
        if not (source / LOG).exists():
            continue
        whole = metadata_image.read(source)
        log_only = only(source, tmp_path / source.parent.name, LOG)
        by_log = metadata_image.read(log_only)
        assert comparable(whole) == comparable(by_log)
        assert whole.problem_count == by_log.problem_count == 0
        assert whole == metadata_image.read(source.parent)
        assert whole.damage is None
        assert whole.not_understood == 0
        assert whole.offset == int(batches(source / LOG).last_offset[-1]) + 1


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_broker_keeps_what_is_assigned_to_it(scenario, name):
    home = scenario(name)
    for log_dir in log_dirs(home):
        # Of two log dirs of one broker, only the first has the metadata log.
        source = [*metadata_dirs(log_dir), *metadata_dirs(home)][:1]
        if not source:
            continue
        image = metadata_image.read(source[0])
        properties = meta_properties.parse((log_dir / "meta.properties").read_bytes()).properties
        node = int(properties["node.id"])
        for path, directory in opening.open_log_dir(log_dir).partitions:
            file = path / "partition.metadata"
            if directory.kind is DirectoryKind.DELETE or not file.exists():
                continue
            topic_id = partition_metadata.parse(file.read_bytes()).topic_id
            topic, number = directory.topic, directory.partition
            stray = image.is_stray(topic, number, topic_id, node)
            assert stray == (directory.kind is DirectoryKind.STRAY), path
            if not stray and topic != "__cluster_metadata":
                assert image.topics[topic] == topic_id
                state = image.partition(topic_id, number)
                assert node in state.replicas
                known = dict(zip(state.replicas, state.directories, strict=False))
                if directory.kind is DirectoryKind.LIVE:
                    assert known.get(node) in (None, properties["directory.id"])


def test_fixtures_hold_a_stray_partition(scenario):
    assert list(scenario("4.3.1/replicas").rglob("*-stray"))


def test_settings_of_topics_are_those_they_were_created_with(scenario):
    image = metadata_image.read(scenario("4.3.1/clean"))
    assert image.topic_config("index.dense", "index.interval.bytes") == "0"
    assert image.topic_config("compacted.keys", "cleanup.policy") == "compact"
    assert image.topic_config("tx.mixed", "index.interval.bytes") is None
    assert image.topic_config("no such topic", "index.interval.bytes") is None


def test_a_setting_falls_back_to_the_node_and_then_to_all_brokers(tmp_path):
    topic, broker = 2, 4
    image = metadata_image.read(
        log_dir_of(
            tmp_path,
            [
                made.config(topic, "own", "index.interval.bytes", "1"),
                made.config(broker, "7", "log.index.interval.bytes", "2"),
                made.config(broker, "", "log.index.interval.bytes", "3"),
                made.config(broker, "", "log.index.size.max.bytes", "4"),
                made.config(8, "own", "index.interval.bytes", "a client's metrics"),
            ],
        )
    )
    assert image.topic_config("own", "index.interval.bytes", 7) == "1"
    assert image.topic_config("other", "index.interval.bytes", 7) == "2"
    assert image.topic_config("other", "index.interval.bytes", 8) == "3"
    assert image.topic_config("other", "index.interval.bytes") == "3"
    assert image.topic_config("own", "segment.index.bytes", 7) == "4"
    assert image.topic_config("own", "cleanup.policy", 7) is None
    assert image.topic_config("own", "retention.ms", 7) is None


def test_a_setting_can_be_removed(tmp_path):
    image = metadata_image.read(
        log_dir_of(
            tmp_path,
            [made.config(2, "t", "retention.ms", "1"), made.config(2, "t", "segment.ms", "2")],
            [made.config(2, "t", "retention.ms", None), made.config(2, "u", "segment.ms", None)],
        )
    )
    assert image.topic_configs == {"t": {"segment.ms": "2"}}


def test_a_topic_made_again_has_another_id_and_none_of_the_old_settings(tmp_path):
    image = metadata_image.read(
        log_dir_of(
            tmp_path,
            [made.topic("t", ID), made.partition(ID, 0, [1]), made.config(2, "t", "a", "b")],
            [made.remove_topic(ID)],
            [made.topic("t", NEW_ID), made.partition(NEW_ID, 0, [1])],
        )
    )
    assert image.topics == {"t": NEW_ID}
    assert image.topic_configs == {}
    assert image.is_stray("t", 0, ID, 1)
    assert not image.is_stray("t", 0, NEW_ID, 1)


def test_a_log_is_stray_where_nothing_assigns_it_to_the_node(tmp_path):
    values = [made.topic("t", ID), made.partition(ID, 0, [1, 2])]
    image = metadata_image.read(log_dir_of(tmp_path, values))
    assert not image.is_stray("t", 0, ID, 1)
    assert image.is_stray("t", 0, ID, 3)
    assert image.is_stray("t", 1, ID, 1)
    assert image.is_stray("t", 0, NEW_ID, 1)
    assert image.is_stray("t", 0, None, 1)
    assert not image.is_stray("__cluster_metadata", 0, None, 1)


def test_a_change_of_leader_begins_an_epoch(tmp_path):
    leader = {0: made.numbers(2), 1: made.int32(2)}
    moved = {2: made.numbers(2, 3), 8: made.array(made.uuid(ID), made.uuid(NEW_ID))}
    image = metadata_image.read(
        log_dir_of(
            tmp_path,
            [made.topic("t", ID), made.partition(ID, 0, [1, 2])],
            [made.change(ID, 0, leader)],
            [made.change(ID, 0, moved)],
        )
    )
    state = image.partition(ID, 0)
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (2, 1, 2)
    assert (state.isr, state.replicas, state.directories) == ((2,), (2, 3), (ID, NEW_ID))


@pytest.mark.parametrize(
    ("ending", "counts"), [([made.END], True), ([made.ABORT], False), ([], False)]
)
def test_a_transaction_counts_once_it_is_ended(tmp_path, ending, counts):
    home = log_dir_of(tmp_path, [made.BEGIN, made.topic("t", ID)], ending or [made.BEGIN])
    image = metadata_image.read(home)
    assert ("t" in image.topics) == counts
    assert image.offset == 3


def test_records_of_a_later_kafka_are_counted_where_they_matter(tmp_path):
    later = made.framed(3, 9) + b"?"
    home = log_dir_of(tmp_path, [later, made.framed(700, 0), made.change(ID, 0, {})])
    image = metadata_image.read(home)
    assert (image.not_understood, image.damage, image.offset) == (2, None, 3)


def test_damage_ends_reading_and_is_reported(tmp_path):
    home = log_dir_of(tmp_path, [made.topic("a", ID)], [made.topic("b", NEW_ID)], [made.BEGIN])
    position = int(batches(home / LOG).position[1])
    damage_file(home / LOG, flip, position + 70)
    image = metadata_image.read(home)
    assert image.topics == {"a": ID}
    assert image.offset == 1
    assert f"{LOG}: byte {position}: CRC" in image.damage


def test_a_record_that_does_not_decode_is_damage(tmp_path):
    home = log_dir_of(tmp_path, [made.topic("a", ID)], [b"\1\2"], [made.topic("b", NEW_ID)])
    image = metadata_image.read(home)
    assert (image.topics, image.offset) == ({"a": ID}, 1)
    assert "frame" in image.damage


@pytest.mark.parametrize("tail", [b"\0" * 5, b"\0" * 500, made.batch(1, made.BEGIN)[:-3]])
def test_a_torn_tail_is_no_damage(tmp_path, tail):
    home = log_dir_of(tmp_path, [made.topic("a", ID)])
    with (home / LOG).open("ab") as log:
        log.write(tail)
    image = metadata_image.read(home)
    assert (image.offset, image.damage) == (1, None)


def test_missing_offsets_end_reading(tmp_path):
    home = log_dir_of(tmp_path, [made.topic("a", ID)])
    (home / f"{5:020d}.log").write_bytes(made.batch(5, made.topic("b", NEW_ID)))
    image = metadata_image.read(home)
    assert (image.topics, image.offset) == ({"a": ID}, 1)
    assert has_numbers(image.damage, 1, 4)


def test_the_log_goes_on_behind_the_newest_snapshot(tmp_path):
    home = tmp_path / metadata_image.DIRECTORY
    home.mkdir()
    snapshot(home, 3, made.topic("old", ID))
    snapshot(home, 5, made.topic("a", ID))
    (home / f"{4:020d}.log").write_bytes(
        made.batch(4, made.remove_topic(ID)) + made.batch(5, made.topic("b", NEW_ID))
    )
    image = metadata_image.read(home)
    assert image.topics == {"a": ID, "b": NEW_ID}
    assert (image.offset, image.damage) == (6, None)


def test_a_snapshot_of_a_later_epoch_is_newer(tmp_path):
    home = tmp_path / metadata_image.DIRECTORY
    home.mkdir()
    snapshot(home, 9, made.topic("of epoch 1", ID))
    snapshot(home, 5, made.topic("of epoch 2", ID), epoch=2)
    image = metadata_image.read(home)
    assert (list(image.topics), image.offset) == (["of epoch 2"], 5)


@pytest.mark.parametrize("broken", ["footer", "header", "crc", "empty"])
def test_a_snapshot_that_is_not_whole_is_passed_over(tmp_path, broken):
    home = tmp_path / metadata_image.DIRECTORY
    home.mkdir()
    snapshot(home, 3, made.topic("old", ID))
    newest = snapshot(home, 5, made.topic("a", ID), footer=broken != "footer")
    if broken == "header":
        newest.write_bytes(newest.read_bytes()[int(batches(newest).position[1]) :])
    elif broken == "crc":
        damage_file(newest, flip, 130)
    elif broken == "empty":
        newest.write_bytes(b"")
    image = metadata_image.read(home)
    assert (list(image.topics), image.offset) == (["old"], 3)


def test_other_files_that_cannot_be_read_are_reported(tmp_path):
    home = log_dir_of(tmp_path, [made.topic("a", ID)])
    (home / LOG).rename(home / "elsewhere")
    (home / LOG).symlink_to("elsewhere")
    assert "symbolic link" in metadata_image.read(home).damage


def test_without_a_directory_there_is_no_image(tmp_path):
    with pytest.raises(UnreadableError):
        metadata_image.read(tmp_path / "nowhere")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.binary(max_size=60), min_size=1, max_size=5))
def test_any_records_make_an_image(tmp_path_factory, values):
    home = log_dir_of(tmp_path_factory.mktemp("any"), [made.topic("a", ID)], values)
    image = metadata_image.read(Path(home))
    assert image.topics["a"] == ID
    assert (image.damage is None) == (image.offset == 1 + len(values))
