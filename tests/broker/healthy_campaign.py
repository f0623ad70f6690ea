"""Healthy log dirs of many seeds: ``python -m broker.healthy_campaign`` (``make healthy``).

Prints one line for each seed and release, and every alarm.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from broker.healthy_states import BROKER_CONFIG, Verdicts, states
from broker.install import KAFKA_3, KAFKA_4, minor
from broker.kafka import SHARE_CONFIG, WITH_SHARE_GROUPS, Broker, format_log_dir
from broker.replicas import move

VERSIONS = ("3.3.2", "3.7.2", KAFKA_3, KAFKA_4)
CHECKPOINTS = (
    "log.flush.offset.checkpoint.interval.ms", "log.flush.start.offset.checkpoint.interval.ms",
)  # fmt: skip
"""Settings that have Kafka's default, a minute, with an even seed: then kills find old rows."""


def run(version: str, seed: str, rounds: int, work: Path) -> Verdicts:
    """Lead a KRaft broker with two log dirs through all states, and judge each."""
    log_dirs = [work / "log-dir-1", work / "log-dir-2"]
    config = {**BROKER_CONFIG, **(SHARE_CONFIG if minor(version) >= WITH_SHARE_GROUPS else {})}
    if int(seed) % 2 == 0:
        config = {name: value for name, value in config.items() if name not in CHECKPOINTS}
    format_log_dir(version, log_dirs, extra_config=config)
    verdicts = Verdicts()
    with Broker(version, log_dirs, config) as broker:
        for state in states(broker, seed, work, rounds, lambda topic: move(broker, topic, work)):
            verdicts.judge(state)
    return verdicts


def main() -> None:
    """Run the campaign of the command line; the exit status is 1 for an alarm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", help="only this release of Kafka")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--rounds", type=int, default=4, help="how often everything is written")
    arguments = parser.parse_args()
    alarms = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for version in arguments.version or VERSIONS:
            begun = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="logtool-healthy-") as work:
                found = run(version, str(seed), arguments.rounds, Path(work))
            alarms += len(found.alarms)
            codes = ", ".join(f"{code} {count}" for code, count in sorted(found.findings.items()))
            print(f"| {version} | {seed} | {arguments.rounds} | {found.states} | "
                  f"{len(found.alarms)} | {time.monotonic() - begun:.0f} s | {codes} |",
                  *found.alarms, sep="\n", flush=True)  # fmt: skip
    sys.exit(1 if alarms else 0)


if __name__ == "__main__":
    main()
