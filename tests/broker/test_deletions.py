"""A short form of the campaign of deletions (`make absences`), judged by the same code."""

from __future__ import annotations

from pathlib import Path

import pytest
from absences import deletions
from absences.bases import Kind, layout
from absences.campaign import Campaign
from absences.verdicts import FALSE_ALARM, FALSE_CALM, WRONG
from broker.conftest import runnable
from broker.install import KAFKA_4

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

CHOSEN = (
    "directory", "logs", "last log emptied", "all segments", "row of the high watermark",
    "row of the log start", "directory, all rows", "last segment, its snapshots",
    "logs, leader epochs", "first snapshot",
)  # fmt: skip


def test_the_commands_are_alarmed_where_readers_lose_and_only_there(tmp_path: Path) -> None:
    chosen = [deletions.BY_NAME[name] for name in CHOSEN]
    kind = Kind(runnable(KAFKA_4), layout("one"), "stopped", len(chosen) + 2)
    campaign = Campaign(kind, tmp_path, chosen)
    campaign.run_all()
    judged = list(campaign.judged())
    bad = {FALSE_CALM, FALSE_ALARM, WRONG}
    assert [(one.case, one.verdict) for one in judged if bad & set(one.verdict.kinds)] == []
    harmed = sum(bool(one.verdict.harm) for one in judged)
    assert harmed > 30 and len(judged) - harmed > 30
