"""A short run of the campaign on the data source; ``make spark-campaign`` runs all of it."""

import random
from pathlib import Path

import pytest
from pipeline import campaign
from pipeline.campaign import Verdicts


def test_options_give_the_rows_of_an_independent_parse(tmp_path: Path) -> None:
    verdicts = Verdicts()
    for seed in range(3):
        home, truth = campaign.make(tmp_path, seed)
        for number in range(4):
            campaign.try_options(home, truth, random.Random(seed * 100 + number), verdicts)
    assert verdicts.wrong == []
    assert verdicts.counts == {
        (f"options of {table}", campaign.COMPLETE): 12 for table in campaign.TABLES
    }


@pytest.mark.parametrize("table", campaign.TABLES)
def test_no_change_between_planning_and_reading_loses_rows_without_a_word(
    tmp_path: Path, table: str
) -> None:
    verdicts = Verdicts()
    campaign.try_local(lambda: campaign.make(tmp_path, 1), table, verdicts)
    assert verdicts.wrong == []
    assert {verdict for _, verdict in verdicts.counts} == {"complete", "failed", "reported"}
