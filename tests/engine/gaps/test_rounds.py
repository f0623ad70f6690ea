"""Recovery in rounds: however the bytes are divided, the follower gets the same."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats.record_batch import HEADER_SIZE
from logtool.gaps import ghosts as ghosts_of
from logtool.gaps.follower_fetches import Round, batches, rounds
from logtool.gaps.ghosts import Ghosts
from logtool.gaps.run import GapOptions, Gaps, Result

Drawn = list[tuple[int, int]]
"""(missing offsets before the batch, offsets of the batch) of each batch."""


def table_of(drawn: Drawn) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Return batches without records, and the gaps before them."""
    at, made, gaps = 0, [], []
    for missing, offsets in drawn:
        if missing:
            gaps.append((at, at + missing - 1))
        at += missing
        made.append(ghosts_of.encode(at, at + offsets - 1, 0))
        at += offsets
    return made, gaps


def sent(found: list[Round]) -> list[tuple[int, int]]:
    """Return the ghosts of all rounds."""
    return [
        (int(first), int(last))
        for one in found
        for first, last in zip(one.ghosts.first_offset, one.ghosts.last_offset, strict=True)
    ]


def result_of(path: Path) -> Result:
    """Return the result of `gaps` for a partition dir."""
    (result,) = Gaps([path], GapOptions(policy="compact"))
    assert isinstance(result, Result)
    return result


def check(found: list[Round], whole: list[Round], start: int, most: int) -> None:
    """The sum of the rounds is the whole in one, and each goes on where the one before ended."""
    assert sent(found) == sent(whole)
    assert sum(one.batches for one in found) == sum(one.batches for one in whole)
    assert sum(one.size for one in found) == sum(one.size for one in whole)
    expected, before = start, None
    for number, one in enumerate(found, 1):
        assert (one.number, one.start_offset, one.before) == (number, expected, before)
        assert one.size <= most or one.batches == 1
        # Without gaps: what is sent begins where the follower ends.
        assert one.after[0] <= expected <= one.after[1]
        expected, before = one.after[1] + 1, one.after


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=12),
    st.integers(1, 9 * HEADER_SIZE),
    st.integers(0, 12),
    st.integers(1, 5),
)
def test_the_sum_of_the_rounds_is_the_whole_in_one(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, most: int, start: int, chunk: int
) -> None:
    made, gaps = table_of(drawn)
    home = tmp_path_factory.mktemp("rounds") / "orders-0"
    home.mkdir()
    (home / f"{0:020d}.log").write_bytes(b"".join(made))
    result = result_of(home)
    fillers = ghosts_of.of(result.ledger, result.subject.facts)
    (table,) = batches(result)
    pieces = [table[at : at + chunk] for at in range(0, len(table), chunk)]  # as chunks may come
    found = list(rounds(pieces, fillers, start=start, most=most))
    whole = list(rounds([table], fillers, start=start, most=2**40))
    check(found, whole, start, most)
    assert len(whole) == (1 if int(table.last_offset[-1]) >= start else 0)
    assert sent(whole) == [(max(first, start), last) for first, last in gaps if last >= start]


@pytest.mark.parametrize("most", [1, 1000, 4096, 2**30])
def test_the_rounds_of_real_logs_carry_all_batches_and_all_ghosts(scenario, most: int) -> None:
    for name in ("compacted.keys-0", "compacted-tx-0", "small-segments-0"):
        result = result_of(scenario("4.3.1/clean") / name)
        fillers: Ghosts = ghosts_of.of(result.ledger, result.subject.facts)
        found = list(rounds(batches(result), fillers, start=0, most=most))
        whole = list(rounds(batches(result), fillers, start=0, most=2**40))
        check(found, whole, 0, most)
        assert len(whole) == 1
        assert np.array_equal(whole[0].ghosts.first_offset, fillers.first_offset)
        assert whole[0].batches == result.ledger.batches
        assert whole[0].after == (0, result.ledger.last_offset)
