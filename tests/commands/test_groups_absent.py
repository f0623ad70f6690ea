"""``logtool groups`` where partitions, offsets or segments are not in the log dirs."""

import pytest
from group_records import OffsetsLog, data_log
from metadata_records import config, log_dir_of, topic

ORDERS = "AAAAAAAAAAAAAAAAAAAAAg"


@pytest.mark.parametrize(
    ("remote", "codes", "start"),
    [("true", [], 5), ("false", ["group/offset-below-start"], 50)],
)
def test_a_group_reads_records_in_remote_storage(run, tmp_path, remote, codes, start):
    log_dir_of(
        tmp_path, [topic("orders", ORDERS), config(2, "orders", "remote.storage.enable", remote)]
    )
    log = OffsetsLog()
    log.commit("g", "orders", 0, 20)
    log.write(tmp_path)
    data_log(tmp_path, "orders-0", 100, first=50)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    found = run("groups", "-f", "ndjson", tmp_path)
    (one,) = found.of_type("offset")
    assert (one["log_start_offset"], one["log_end_offset"], one["lag"]) == (start, 100, 80)
    assert [finding["code"] for finding in found.of_type("finding")] == codes
    assert found.status == len(codes)
