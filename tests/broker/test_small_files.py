"""`plan` and brokers agree on damaged small files: a sample of the campaign."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.campaign_files import RELEASES, Campaign, sample
from broker.conftest import runnable

pytestmark = pytest.mark.broker

COUNT = 12
SEED = 10


# In REPORT.md of the campaign each case of the sample has the outcome of 4.3.1.
BETWEEN = "3.9.2"


@pytest.mark.parametrize(
    "release",
    [pytest.param(one, marks=pytest.mark.long) if one == BETWEEN else one for one in RELEASES],
)
def test_plan_predicts_the_start_with_a_damaged_file(release: str, tmp_path: Path) -> None:
    campaign = Campaign(runnable(release), tmp_path)
    trials = sample(COUNT, SEED)
    campaign.run(trials)
    said = {trial.key: campaign.said(trial) for trial in trials}
    assert said == {trial.key: campaign.seen[trial.key] for trial in trials}
