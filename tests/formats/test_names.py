import pytest

from logtool.formats import names
from logtool.formats.names import (
    BadDirectory,
    DirectoryKind,
    FileKind,
    FileName,
    FileState,
    PartitionDirectory,
    Reception,
)

HEX = "0123456789abcdef0123456789abcdef"
SEGMENT = "00000000000000000123"
UUID = "J8aAPcfLQt2bqs1JT_rMgQ"


@pytest.mark.parametrize(
    ("name", "kind", "topic", "partition", "unique_id", "exact"),
    [
        ("t-0", DirectoryKind.LIVE, "t", 0, None, True),
        ("a-b.c-12", DirectoryKind.LIVE, "a-b.c", 12, None, True),
        ("t--1", DirectoryKind.LIVE, "t-", 1, None, True),
        ("t-+1", DirectoryKind.LIVE, "t", 1, None, False),
        ("t-007", DirectoryKind.LIVE, "t", 7, None, False),
        ("no topic-1", DirectoryKind.LIVE, "no topic", 1, None, True),
        ("t-2147483647", DirectoryKind.LIVE, "t", 2147483647, None, True),
        (f"t-0.{HEX}-delete", DirectoryKind.DELETE, "t", 0, HEX, True),
        (f"t.x-1.{HEX}-future", DirectoryKind.FUTURE, "t.x", 1, HEX, True),
        (f"t-x-1.{HEX}-stray", DirectoryKind.STRAY, "t-x", 1, HEX, True),
        ("t-0.abc-delete", DirectoryKind.DELETE, "t", 0, "abc", False),
        ("t-0.abc.-delete", None, "", 0, None, False),
        ("t-0.a.1-delete", None, "", 0, None, False),
    ],
)
def test_a_partition_directory_splits_at_the_last_dash_and_the_last_dot(
    name: str,
    kind: DirectoryKind | None,
    topic: str,
    partition: int,
    unique_id: str | None,
    exact: bool,
) -> None:
    found = names.parse_directory(name)
    if kind is None:
        assert isinstance(found, BadDirectory)
    else:
        assert found == PartitionDirectory(name, kind, topic, partition, unique_id, exact)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("", "'-'"),
        ("lost+found", "'-'"),
        ("-1", "no topic"),
        ("t-", "number, found ''"),
        ("t-1x", "'1x'"),
        ("t- 1", "' 1'"),
        ("t-2147483648", "'2147483648'"),
        ("t-\u0661", "'\\u0661'"),
        ("t-0-delete", "<unique id>-delete"),
        (f"t 1-0.{HEX}-stray", "<unique id>-stray"),
        (f"t-0.{HEX}-future\n", "'future\\n'"),
    ],
)
def test_a_directory_that_stops_the_broker_has_a_reason(name: str, named: str) -> None:
    found = names.parse_directory(name)
    assert isinstance(found, BadDirectory)
    assert found.name == name
    assert named in found.reason


@pytest.mark.parametrize(
    ("kind", "size", "cut"),
    [("delete", 255, True), ("stray", 255, True), ("delete", 254, False), ("future", 255, False)],
)
def test_only_a_capped_name_of_255_characters_may_hold_part_of_a_topic(
    kind: str, size: int, cut: bool
) -> None:
    end = f"-0.{HEX}-{kind}"
    found = names.parse_directory("t" * (size - len(end)) + end)
    assert isinstance(found, PartitionDirectory)
    assert found.topic_may_be_cut is cut


@pytest.mark.parametrize("kind", [*names.SEGMENT_KINDS, FileKind.PRODUCER_SNAPSHOT])
@pytest.mark.parametrize("state", [FileState.LIVE, FileState.DELETED])
def test_names_that_kafka_writes_are_exact_and_are_formatted_back(
    kind: FileKind, state: FileState
) -> None:
    name = f"{SEGMENT}{kind}{state}"
    assert names.parse_partition_file(name) == FileName(name, kind, state, Reception.EXACT, 123)
    assert names.format_partition_file(123, kind, state) == name


@pytest.mark.parametrize("state", [FileState.CLEANED, FileState.SWAP])
def test_segment_files_are_cleaned_and_swapped_but_snapshots_never(state: FileState) -> None:
    log = names.parse_partition_file(f"{SEGMENT}.log{state}")
    snapshot = names.parse_partition_file(f"{SEGMENT}.snapshot{state}")
    assert (log.reception, snapshot.reception) == (Reception.EXACT, Reception.ACCEPTED)


def test_the_largest_offset_still_has_20_digits() -> None:
    assert names.format_offset(2**63 - 1) == "09223372036854775807"


@pytest.mark.parametrize(
    ("name", "kind", "state", "reception", "offset"),
    [
        ("5.log", FileKind.LOG, FileState.LIVE, Reception.ACCEPTED, 5),
        (f"{SEGMENT}.x.log", FileKind.LOG, FileState.LIVE, Reception.ACCEPTED, 123),
        ("+5.index", FileKind.OFFSET_INDEX, FileState.LIVE, Reception.ACCEPTED, 5),
        ("foo.log", FileKind.LOG, FileState.LIVE, Reception.STOPS_BROKER, None),
        (".timeindex", FileKind.TIME_INDEX, FileState.LIVE, Reception.STOPS_BROKER, None),
        ("y.snapshot", FileKind.PRODUCER_SNAPSHOT, FileState.LIVE, Reception.STOPS_BROKER, None),
        ("9" * 20 + ".log", FileKind.LOG, FileState.LIVE, Reception.STOPS_BROKER, None),
        ("x.swap", FileKind.UNKNOWN, FileState.SWAP, Reception.STOPS_BROKER, None),
        ("5.cleaned", FileKind.UNKNOWN, FileState.CLEANED, Reception.ACCEPTED, 5),
        ("notes.deleted", FileKind.UNKNOWN, FileState.DELETED, Reception.ERASED, None),
        ("foo.log.deleted", FileKind.LOG, FileState.DELETED, Reception.ERASED, None),
        ("foo.log.bak", FileKind.UNKNOWN, FileState.LIVE, Reception.IGNORED, None),
        (f"{SEGMENT}.LOG", FileKind.UNKNOWN, FileState.LIVE, Reception.IGNORED, None),
        ("", FileKind.UNKNOWN, FileState.LIVE, Reception.IGNORED, None),
    ],
)
def test_a_foreign_name_is_what_its_suffix_makes_of_it(
    name: str, kind: FileKind, state: FileState, reception: Reception, offset: int | None
) -> None:
    assert names.parse_partition_file(name) == FileName(name, kind, state, reception, offset)


@pytest.mark.parametrize("kind", ["leader-epoch-checkpoint", "partition.metadata", "quorum-state"])
def test_the_fixed_files_of_a_partition_may_be_temporary(kind: str) -> None:
    live = names.parse_partition_file(kind)
    temporary = names.parse_partition_file(f"{kind}.tmp")
    assert (live.kind, live.state) == (FileKind(kind), FileState.LIVE)
    assert (temporary.kind, temporary.state) == (FileKind(kind), FileState.TEMPORARY)


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (".checkpoint", FileState.LIVE),
        ("-12345.checkpoint.part", FileState.PARTIAL),
        (".checkpoint.deleted", FileState.DELETED),
    ],
)
def test_a_kraft_snapshot_is_not_taken_for_a_deleted_segment(end: str, state: FileState) -> None:
    name = f"{SEGMENT}-0000000007{end}"
    assert names.parse_partition_file(name) == FileName(
        name, FileKind.KRAFT_SNAPSHOT, state, Reception.EXACT, 123, 7
    )


def test_an_unreadable_kraft_snapshot_name_matters_only_in_the_metadata_log() -> None:
    elsewhere = names.parse_partition_file("x.checkpoint")
    there = names.parse_partition_file("x.checkpoint", metadata_log=True)
    assert (elsewhere.kind, elsewhere.reception) == (FileKind.UNKNOWN, Reception.IGNORED)
    assert (there.kind, there.reception) == (FileKind.KRAFT_SNAPSHOT, Reception.STOPS_BROKER)


def test_an_odd_kraft_snapshot_name_with_readable_numbers_is_accepted() -> None:
    found = names.parse_partition_file(f"{SEGMENT}x0000000007.checkpoint", metadata_log=True)
    assert (found.reception, found.offset, found.epoch) == (Reception.ACCEPTED, 123, 7)


@pytest.mark.parametrize(
    ("name", "kind", "state"),
    [
        ("meta.properties", FileKind.META_PROPERTIES, FileState.LIVE),
        ("bootstrap.checkpoint.tmp", FileKind.BOOTSTRAP_CHECKPOINT, FileState.TEMPORARY),
        ("cleaner-offset-checkpoint", FileKind.CLEANER_CHECKPOINT, FileState.LIVE),
        ("recovery-point-offset-checkpoint.tmp", FileKind.RECOVERY_POINT_CHECKPOINT, "TEMPORARY"),
        (".lock", FileKind.LOCK, FileState.LIVE),
        (".kafka_cleanshutdown", FileKind.CLEAN_SHUTDOWN, FileState.LIVE),
        (".lock.tmp", FileKind.UNKNOWN, FileState.LIVE),
        ("foo.log", FileKind.UNKNOWN, FileState.LIVE),
    ],
)
def test_root_files_are_known_by_their_whole_name(
    name: str, kind: FileKind, state: FileState | str
) -> None:
    found = names.parse_root_file(name)
    assert found.kind is kind
    assert found.state is (FileState[state] if state == "TEMPORARY" else state)
    assert (found.reception is Reception.IGNORED) == (kind is FileKind.UNKNOWN)


@pytest.mark.parametrize(
    ("end", "kind", "state"),
    [
        (".index", FileKind.OFFSET_INDEX, FileState.LIVE),
        (".timeindex.tmp", FileKind.TIME_INDEX, FileState.TEMPORARY),
        (".txnindex.deleted", FileKind.TRANSACTION_INDEX, FileState.DELETED),
    ],
)
def test_a_cached_remote_index_has_an_unpadded_offset_and_a_uuid(
    end: str, kind: FileKind, state: FileState
) -> None:
    name = f"123_{UUID}{end}"
    assert names.parse_remote_index(name) == FileName(
        name, kind, state, Reception.EXACT, 123, segment_uuid=UUID
    )


@pytest.mark.parametrize(
    ("name", "reception"),
    [
        (f"00123_{UUID}.index", Reception.ACCEPTED),
        (f"x_{UUID}.index", Reception.IGNORED),
        ("123_short.index", Reception.IGNORED),
        (f"123_{UUID}.log", Reception.IGNORED),
        (f"{SEGMENT}.index", Reception.IGNORED),
    ],
)
def test_other_names_in_the_remote_cache_are_not_exact(name: str, reception: Reception) -> None:
    assert names.parse_remote_index(name).reception is reception


@pytest.mark.parametrize("topic", ["t", "a.b_c-D9", "...", "x" * 249])
def test_a_legal_topic_has_no_fault(topic: str) -> None:
    assert names.topic_fault(topic) is None


@pytest.mark.parametrize("topic", ["", ".", "..", "x" * 250, "a b", "caf\u00e9", "a\n"])
def test_an_illegal_topic_has_a_fault(topic: str) -> None:
    assert names.topic_fault(topic) is not None
