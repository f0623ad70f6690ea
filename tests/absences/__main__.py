"""Run the campaign, or a part of it, and write its report: ``python -m absences``.

It can be stopped at any time and goes on where it was. With ``--judge-only`` no broker starts: what
the commands say is asked again, and compared with the outcomes that are kept.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from broker.install import KAFKA_3, KAFKA_4

from absences import report
from absences.bases import Kind, layout
from absences.campaign import Campaign, Judged
from absences.node_campaign import NodeCampaign

PARTITIONS = 51
"""Partitions of a topic where each deletion has its own: two more than `deletions.DELETIONS`."""
FEW = 4
"""Partitions of a topic in a base whose node is judged."""
PARTITION_KINDS = tuple(
    Kind(version, layout("one"), end, PARTITIONS)
    for version in (KAFKA_4, KAFKA_3) for end in ("stopped", "killed")
)  # fmt: skip
NODE_KINDS = (
    Kind(KAFKA_4, layout("two-dirs"), "stopped", FEW, rolled=True),
    Kind(KAFKA_3, layout("two-dirs"), "stopped", FEW, rolled=True),
    Kind(KAFKA_4, layout("two-dirs"), "killed", FEW, rolled=True),
    Kind(KAFKA_4, layout("broker"), "stopped", FEW),
    Kind(KAFKA_4, layout("controller"), "stopped", FEW),
    Kind(KAFKA_4, layout("three"), "killed", FEW),
    Kind(KAFKA_3, layout("two-dirs"), "killed", FEW, rolled=True),
    Kind(KAFKA_3, layout("broker"), "killed", FEW),
    Kind(KAFKA_3, layout("three"), "stopped", FEW),
)


def main() -> None:
    """Run what the arguments select."""
    parser = argparse.ArgumentParser(prog="absences", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of bases and outcomes")
    parser.add_argument("--report", type=Path, help="file of the report")
    parser.add_argument("--judge-only", action="store_true", help="start no broker")
    parser.add_argument("--starts-only", action="store_true", help="ask the commands nothing")
    parser.add_argument("--only", default="", help="only bases whose names contain this text")
    parser.add_argument("--limit", type=int, help="at most so many new cases of each node")
    parser.add_argument("--seconds", type=float, help="ask the commands nothing after this time")
    chosen = parser.parse_args()
    deadline = None if chosen.seconds is None else time.monotonic() + chosen.seconds
    chosen.work.mkdir(parents=True, exist_ok=True)
    judged: list[Judged] = []
    for kind in (*PARTITION_KINDS, *NODE_KINDS):
        if chosen.only not in kind.name:
            continue
        of_node = kind in NODE_KINDS
        if chosen.judge_only and not _is_made(kind, chosen.work):
            continue
        campaign = (NodeCampaign if of_node else Campaign)(kind, chosen.work)
        campaign.deadline = deadline
        if not chosen.judge_only:
            campaign.run_all(chosen.limit)
        if chosen.starts_only:
            continue
        judged += campaign.judged()
        print(f"{kind.name}: {len(judged)} judged", flush=True)
        if chosen.report:
            chosen.report.write_text("\n".join(report.lines(judged)) + "\n")


def _is_made(kind: Kind, work: Path) -> bool:
    return (work / f"{kind.name} {kind.partitions}".replace(" ", "-") / "control.json").exists()


if __name__ == "__main__":
    main()
