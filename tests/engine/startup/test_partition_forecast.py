"""The forecast of one partition counts the acknowledged offsets that its log lacks."""

from pathlib import Path

import pytest

from logtool.actions import Action, FileChange, Loss
from logtool.loading.result import Outcome, StartConditions
from logtool.startup.partition import PartitionForecast
from logtool.startup.request import LoadRequest


@pytest.mark.parametrize(
    ("watermark", "log_start", "log_end", "lost"),
    [
        (None, 0, 10, None),
        (10, 0, 10, 0),
        (10, 0, 11, 0),
        (11, 0, 10, 1),
        (50, 20, 10, 30),  # Offsets below the log start were deleted.
        (15, 20, 10, 0),
    ],
)
def test_offsets_from_the_log_end_to_the_high_watermark_are_lost(
    watermark: int | None, log_start: int, log_end: int, lost: int | None
) -> None:
    request = LoadRequest(
        Path("orders-0"), StartConditions(clean=False), "orders", 0, high_watermark=watermark
    )
    one = PartitionForecast(request, Outcome.LOADS, log_start=log_start, log_end=log_end)
    assert one.lost_acknowledged == lost


@pytest.mark.parametrize(
    ("losses", "before"),
    [
        ([], 10),
        ([Loss(bytes=9, records=3, first_offset=10, last_offset=12)], 7),
        ([Loss(bytes=9, records=3, first_offset=10, last_offset=12),
          Loss(bytes=9, records=1, first_offset=14, last_offset=14)], 5),
        ([Loss(bytes=9, records=20, first_offset=10, last_offset=29)], 0),
        ([Loss(bytes=9, below_high_watermark=True)], 0),  # The lost offsets are not known.
        ([Loss(bytes=9)], 10),  # Nothing that was acknowledged is lost.
    ],
)  # fmt: skip
def test_offsets_that_no_lost_batch_has_were_gone_before(losses: list[Loss], before: int) -> None:
    path = Path("orders-0")
    request = LoadRequest(path, StartConditions(clean=False), "orders", 0, high_watermark=20)
    cuts = tuple(Action(FileChange.TRUNCATE, path, "", loss=loss) for loss in losses)
    one = PartitionForecast(request, Outcome.LOADS, log_end=10, actions=cuts)
    assert (one.lost_acknowledged, one.lost_before) == (10, before)


def test_a_log_that_does_not_load_has_no_count() -> None:
    request = LoadRequest(
        Path("orders-0"), StartConditions(clean=False), "orders", 0, high_watermark=10
    )
    assert PartitionForecast(request, Outcome.REFUSES, log_end=5).lost_acknowledged is None
