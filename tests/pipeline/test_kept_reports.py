"""The reports of segments that a scan keeps for `--since`: read back, they are what they were."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from verification import log_dirs

from logtool.checks import kept_report
from logtool.checks.partition import CheckRequest, plan
from logtool.checks.segment import Level, check_segment
from logtool.log import opening

PLAIN = ("findings", "producer_rows")


@pytest.mark.parametrize("name", ["1.0.2/magic-1", "4.3.1/killed-recovered"])
def test_a_report_is_read_back_as_it_was(name: str, scenario: Callable[[str], Path]) -> None:
    old = 0
    for log_dir in log_dirs(scenario(name)):
        for path, _ in opening.open_log_dir(log_dir).partitions:
            for task in plan(opening.open_partition(path), CheckRequest(level=Level.RECORDS)):
                report = check_segment(task)
                again = kept_report.parse(
                    kept_report.as_text(report), kept_report.columns_of(report.producer_rows)
                )
                for field in fields(report):
                    if field.name not in PLAIN:
                        assert getattr(again, field.name) == getattr(report, field.name)
                assert [one.code for one in again.findings] == [one.code for one in report.findings]
                assert np.array_equal(again.producer_rows.base_offset,
                                      report.producer_rows.base_offset)  # fmt: skip
                old += len(report.old_formats)
    assert bool(old) == ("/magic-" in name)
