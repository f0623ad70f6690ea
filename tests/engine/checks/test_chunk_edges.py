"""The findings of a log do not depend on the places where its chunks are cut."""

from pathlib import Path

import pytest

from logtool.checks import segment
from logtool.checks.report import Level, SegmentTask
from logtool.checks.segment import check_segment
from logtool.findings import Finding
from logtool.formats import record_batch
from logtool.log import opening
from logtool.log.walk import scanner

NOW = 1_700_000_000_000
ROWS = 10


def batch(offset: int, epoch: int = 3, size: int = 20, attributes: int = 0) -> bytes:
    return record_batch.encode(
        bytes(size), base_offset=offset, last_offset_delta=0, record_count=1, leader_epoch=epoch,
        base_timestamp=NOW, max_timestamp=NOW, attributes=attributes,
    )  # fmt: skip


def findings(home: Path, log: bytes) -> list[Finding]:
    """Return the findings of the only segment of a partition."""
    home.mkdir(exist_ok=True)
    (home / f"{0:020d}.log").write_bytes(log)
    (found,) = opening.open_partition(home).segments
    said = check_segment(SegmentTask(found, Level.BATCHES)).findings
    assert all(isinstance(item, Finding) for item in said)
    return [item for item in said if isinstance(item, Finding)]


@pytest.fixture(params=[True, False], ids=["plain batches passed over", "all rows kept"])
def passes(request, monkeypatch) -> None:
    if not request.param:
        monkeypatch.setattr(segment, "plain_pass", lambda *_: None)


@pytest.mark.parametrize("change", ["offset", "epoch"])
def test_a_batch_out_of_place_is_reported_wherever_it_stands(tmp_path, monkeypatch, passes, change):
    """No CRC covers the two, and only the next batch shows that one is too high."""
    for at in range(1, 3 * ROWS):
        offsets, epochs = list(range(4 * ROWS)), [3] * 4 * ROWS
        if change == "offset":
            offsets[at] += 4096
        else:
            epochs[at] += 4
        log = b"".join(map(batch, offsets, epochs))
        whole = findings(tmp_path / "t-0", log)
        with monkeypatch.context() as patch:
            patch.setattr(scanner, "MOST_ROWS", ROWS)
            assert findings(tmp_path / "t-0", log) == whole, at
        (found,) = whole
        assert found.code == f"batch/{'offset' if change == 'offset' else 'leader-epoch'}-order"
        assert found.position == at * len(batch(0))


def test_what_lies_in_a_torn_batch_is_not_behind_it(tmp_path, passes):
    """Batches of a smaller offset in the last one, which is cut short: a copy in a record."""
    inside = b"".join(map(batch, range(20, 23)))
    torn = batch(50, size=len(inside) + 15)
    torn = torn[:8] + (2**30).to_bytes(4, "big") + torn[12:61] + bytes(10) + inside + bytes(5)
    (found,) = findings(tmp_path / "t-0", b"".join(map(batch, range(50))) + torn)

    assert found.code == "log/torn-tail"
    assert (found.position, found.length) == (50 * len(batch(0)), len(torn))


def test_behind_a_batch_of_another_segment_nothing_is_missing(tmp_path, monkeypatch, passes):
    """The batches of the chunk come with it, even if the next batch is too large for the buffer."""
    monkeypatch.setattr(scanner, "LARGEST_BUFFERED_BATCH", 900)
    log = [*map(batch, range(5)), batch(5 ^ 1 << 40), batch(6, size=1000), *map(batch, range(7, 9))]
    directory = tmp_path / "t-0"
    (found,) = findings(directory, b"".join(log))
    (task,) = (
        SegmentTask(one, Level.BATCHES) for one in opening.open_partition(directory).segments
    )

    assert found.code == "batch/offset-range"
    assert not check_segment(task).has_gaps
