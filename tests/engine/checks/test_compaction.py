"""The evidence that compaction explains gaps, and the batches that the cleaner did not reach."""

import pytest

from logtool.checks.compaction import Cleaning


@pytest.mark.parametrize(
    ("cleaning", "offset", "spared"),
    [
        (Cleaning("orders", 100, clean=True), 101, True),
        (Cleaning("orders", 100, clean=True), 100, False),
        (Cleaning("orders", 100, clean=False), 101, False),
        (Cleaning("orders", None, clean=True), 101, False),
    ],
)
def test_only_after_a_clean_stop_is_a_batch_behind_the_checkpoint_not_cleaned(
    cleaning: Cleaning, offset: int, spared: bool
) -> None:
    assert cleaning.spared(offset) == spared


@pytest.mark.parametrize(
    ("cleaning", "is_compacted"),
    [
        (Cleaning("orders"), False),
        (Cleaning("orders", 0), True),
        (Cleaning("orders", policy="delete"), False),
        (Cleaning("orders", policy="compact,delete"), True),
        (Cleaning("__consumer_offsets", policy="delete"), True),
    ],
)
def test_a_row_a_policy_or_the_name_of_the_topic_shows_compaction(
    cleaning: Cleaning, is_compacted: bool
) -> None:
    assert cleaning.is_compacted == is_compacted
