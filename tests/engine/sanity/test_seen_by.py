"""The kind of start that meets a finding of Kafka's checks."""

import pytest

from logtool.findings import Finding
from logtool.sanity.judging import SeenBy, seen_by


@pytest.mark.parametrize(
    ("code", "by"),
    [
        ("offset-index/missing", SeenBy.LAZY),
        ("transaction-index/below-base", SeenBy.LAZY),
        ("offset-index/padding", SeenBy.EAGER),
        ("time-index/missing", SeenBy.EAGER),
    ],
)
def test_each_start_looks_for_offset_indexes_and_reads_transaction_indexes(
    code: str, by: SeenBy
) -> None:
    assert seen_by(Finding(code, "found")) is by
