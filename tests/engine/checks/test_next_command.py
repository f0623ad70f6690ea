"""The command that a finding names as the next one."""

from pathlib import Path

import pytest

from logtool.checks.batches import dump_command


@pytest.mark.parametrize(
    ("base", "first", "last", "has_offset"),
    [
        (100, 100, 140, True), (100, 100, 100 + 2**31 - 1, True),
        (100, 6124895493223874810, 6124895493223874810, False), (100, 99, 140, False),
        (0, -5, 3, False),
    ],
)  # fmt: skip
def test_a_dump_is_proposed_only_at_offsets_that_the_segment_can_hold(
    base: int, first: int, last: int, *, has_offset: bool
) -> None:
    command = dump_command(Path(f"orders-0/{base:020}.log"), first, last)
    assert (f" --offset {first}..{last}" in command) is has_offset
    assert ("--offset" in command) is has_offset
