"""What brokers make of damaged files beside the logs: some of the campaign, by a seed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from broker.campaign_files import RELEASES, Campaign, sample
from broker.install import available

pytestmark = pytest.mark.broker

COUNT = 12
SEED = 10


@pytest.mark.parametrize("release", RELEASES)
def test_plan_says_what_a_broker_makes_of_a_damaged_file(release: str, tmp_path: Path) -> None:
    reason = available(release)
    if reason and os.environ.get("LOGTOOL_REQUIRE_BROKER") != "1":
        pytest.skip(reason)
    campaign = Campaign(release, tmp_path)
    trials = sample(COUNT, SEED)
    campaign.run(trials)
    said = {trial.key: campaign.said(trial) for trial in trials}
    assert said == {trial.key: campaign.seen[trial.key] for trial in trials}
