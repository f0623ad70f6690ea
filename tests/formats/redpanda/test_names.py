"""Names in a Redpanda data directory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats.redpanda.names import (
    RedpandaFileKind,
    RedpandaPartitionDirectory,
    format_segment,
    is_data_dir,
    parse_partition_directory,
    parse_partition_file,
)


@pytest.mark.parametrize(
    ("name", "kind", "base_offset", "term"),
    [
        ("0-1-v1.log", RedpandaFileKind.SEGMENT, 0, 1),
        ("100-12-v1.log", RedpandaFileKind.SEGMENT, 100, 12),
        ("100-12-v1xlog", RedpandaFileKind.SEGMENT, 100, 12),
        ("100-12-v1.base_index", RedpandaFileKind.BASE_INDEX, 100, 12),
        ("100-12-v1.compaction_index", RedpandaFileKind.COMPACTION_INDEX, 100, 12),
        ("100-12-v1.log.staging", RedpandaFileKind.STAGING, 100, 12),
        ("100-12-v1.compaction_index.staging", RedpandaFileKind.STAGING, 100, 12),
        ("100-12-v1.log.compaction.staging", RedpandaFileKind.STAGING, 100, 12),
        ("100-12-v1.log.compaction.base_index", RedpandaFileKind.STAGING, 100, 12),
        ("100-12-v1.log.compaction.staging.staging", RedpandaFileKind.STAGING, 100, 12),
        ("100-12-v1.log.cannotrecover", RedpandaFileKind.CANNOT_RECOVER, 100, 12),
        ("3676-7429-77-1-v1.log.1", RedpandaFileKind.TIERED_SEGMENT, 3676, 1),
        ("abort.idx.5.9", RedpandaFileKind.ABORTED_TRANSACTIONS, 5, None),
        ("snapshot", RedpandaFileKind.SNAPSHOT, None, None),
        ("tx.snapshot", RedpandaFileKind.STATE_MACHINE_SNAPSHOT, None, None),
        ("snapshot.partial.1700000000000.ab3d", RedpandaFileKind.PARTIAL_SNAPSHOT, None, None),
        ("0-1-v2.log", RedpandaFileKind.UNKNOWN, None, None),
        ("0-1-v1.lok", RedpandaFileKind.UNKNOWN, None, None),
        ("-1-1-v1.log", RedpandaFileKind.UNKNOWN, None, None),
        (f"{2**63}-1-v1.log", RedpandaFileKind.UNKNOWN, None, None),
        ("00000000000000000000.log", RedpandaFileKind.UNKNOWN, None, None),
    ],
)
def test_a_file_is_what_its_name_says(
    name: str, kind: RedpandaFileKind, base_offset: int | None, term: int | None
) -> None:
    found = parse_partition_file(name)
    assert (found.kind, found.base_offset, found.term) == (kind, base_offset, term)


def test_a_segment_that_cannot_be_recovered_may_have_a_reason() -> None:
    found = parse_partition_file("7-2-v1.log.batch_crc_mismatch.mid_log.cannotrecover")
    assert (found.kind, found.reason) == (RedpandaFileKind.CANNOT_RECOVER, "batch_crc_mismatch")
    assert found.at_tail is False
    assert parse_partition_file("7-2-v1.log.zeros.tail.cannotrecover").at_tail is True
    assert parse_partition_file("7-2-v1.log.cannotrecover").at_tail is None


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_the_name_of_a_segment_is_read_as_it_was_written(base_offset: int, term: int) -> None:
    found = parse_partition_file(format_segment(base_offset, term))
    assert (found.base_offset, found.term) == (base_offset, term)


@given(st.text("0123456789-_.v1logbaseindxp\n", max_size=40))
def test_any_name_is_read(name: str) -> None:
    assert parse_partition_file(name).name == name
    parse_partition_directory(name)


def test_a_partition_has_a_number_and_a_revision() -> None:
    assert parse_partition_directory("3_17") == RedpandaPartitionDirectory(3, 17, is_download=False)
    assert parse_partition_directory("3_17_part") == RedpandaPartitionDirectory(
        3, 17, is_download=True
    )
    for name in ("orders-3", "3", "3_", "_17", "3_x", f"{2**31}_0", f"0_{2**63}", "3_17\n"):
        assert parse_partition_directory(name) is None


def test_a_data_dir_is_known_by_its_entries() -> None:
    assert is_data_dir([".redpanda_data_dir", "kafka"])
    assert is_data_dir(["redpanda", "kafka", "pid.lock"])
    assert not is_data_dir(["redpanda", "kafka"])
    assert not is_data_dir(["orders-0", "meta.properties"])
