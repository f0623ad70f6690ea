"""Damage to some of three copies of a log, and the repair of each from the others, by seeds."""

from collections.abc import Sequence
from pathlib import Path

import copies_campaign
import pytest
from thinned import some


def _hold(work: Path, seeds: Sequence[int]) -> None:
    """Try the seeds: every batch comes back, or the answer names it."""
    cases = list(copies_campaign.run(work, seeds))
    assert [(case.seed, case.wrong) for case in cases if case.wrong] == []
    assert sum(case.whole for case in cases) >= len(cases)


@pytest.mark.parametrize("seed", some(range(24, 52), 12))
def test_a_copy_gets_every_batch_of_a_whole_copy_or_the_answer_names_it(
    tmp_path: Path, seed: int
) -> None:
    _hold(tmp_path, [seed])


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(1000, 4000, 250))
def test_thousands_of_seeds(tmp_path: Path, first: int) -> None:
    _hold(tmp_path, range(first, first + 250))
