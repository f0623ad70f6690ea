"""Starts clusters from volumes of different moments, and compares with `logtool cluster`.

``make cluster-campaign`` keeps each outcome in its work directory as soon as it is seen, so that it
can be stopped and continued, and writes ``tests/broker/reports/cluster.md``. The exit status is 1
for a difference.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from broker.install import VERSIONS  # noqa: E402
from broker.kafka import share_classes  # noqa: E402
from broker.situations import (  # noqa: E402
    Seen,
    Situation,
    differences,
    from_json,
    mend,
    predicted,
    restore,
    situation,
    start,
)
from broker.volumes import Copies, check_copies, collect  # noqa: E402

REPORT = HERE / "reports" / "cluster.md"
SITUATIONS = 16
"""Situations of each release with one controller, and of each with three."""
DEADLINE_S = 240
Row = dict[str, Any]
Cell = tuple[int, str, int]
"""Number of a situation, release, and number of controllers."""
_HEAD = """\
# Starts of clusters from volumes of different moments, compared with `logtool cluster`

Written by `make cluster-campaign`. Three brokers and one or three controllers run under load: with
acks=all, in transactions, and with a group that commits offsets. The volume of each node is copied
at {moments} moments, some tenths of a second after that of another node; between them a topic is
deleted and made again, and brokers are killed and come back. A situation puts volumes of several
moments together; some volumes are missing, swapped or of another cluster. `logtool cluster` judges
them, then all nodes start at once. Where it names a snapshot of the metadata log that no controller
has, the node gets the metadata log of the controllers first, as its step says. Where several
controllers may win with metadata logs of different ends, the prediction for the one that won counts
(--controller): where it lacks a snapshot that a broker of 4.x has, this broker joins only if it
registers before it cuts its log, so that both outcomes are as predicted. A start that does not come
to rest in four minutes, or finds a port taken, is done again.

Compared are the brokers that join, the controller that wins, and for each partition, of internal
topics too: the leader with those that may be elected, the offset to which each follower cuts its
log, the directories that become strays, and the number of acknowledged offsets that the leader
lacks with the largest number that was predicted. The prediction names every leader that controllers
may elect; which of them leads depends on the order in which sessions end and brokers register.

**{done} of {all} situations were started, with {partitions} partitions and {cuts} cuts; {wrong}
differ from the prediction. For {sure} partitions the prediction had one outcome: one leader, or
none.**

"""


def copies_of(version: str, controllers: int, work: Path) -> Copies:
    """Return the copies of the volumes of a cluster, which runs unless they were made before."""
    home = work / f"{version}-{controllers}"
    kept = home / "copies.json"
    if kept.exists():
        found = json.loads(kept.read_text())
        return Copies(
            root=home / "copies",
            version=version,
            controllers=tuple(found["controllers"]),
            addresses={int(node): one for node, one in found["addresses"].items()},
            acknowledged=found["acknowledged"],
        )
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    share_classes(version)
    copies = collect(version, controllers, home)
    check_copies(copies)
    values = {name: one for name, one in asdict(copies).items() if name not in ("root", "version")}
    kept.write_text(json.dumps(values))
    return copies


def judged(copies: Copies, of: Situation, seen: Seen, work: Path) -> Row:
    """Return the row of a situation: what was seen, compared with what `cluster` says now."""
    shutil.rmtree(work, ignore_errors=True)
    homes = restore(copies, of, work)
    moved = mend(homes, predicted(copies, homes)[1])  # as before the start
    status, answer = predicted(copies, homes, seen.controller)
    shutil.rmtree(work)
    return {
        "release": copies.version,
        "controllers": len(copies.controllers),
        "number": of.number,
        "name": of.name,
        "status": status,
        "partitions": len(seen.leaders),
        "sure": sum(
            one["type"] == "partition" and len(one["elected"]) + one["may_be_leaderless"] == 1
            for one in answer
        ),
        "leaderless": sum(leader < 0 for leader in seen.leaders.values()),
        "cuts": len(seen.cuts),
        "strays": len(seen.strays),
        "moved": moved,
        "differences": differences(copies, of, answer, seen),
    }


class Outcomes:
    """The outcomes that were seen, kept in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.found: dict[Cell, Seen] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            row = json.loads(line)
            self.found[row["number"], row["release"], row["controllers"]] = from_json(row)

    def keep(self, cell: Cell, seen: Seen) -> None:
        """Keep the outcome of a situation."""
        self.found[cell] = seen
        number, release, controllers = cell
        row = {"number": number, "release": release, "controllers": controllers, **seen.to_json()}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def cells() -> Iterator[Cell]:
    """Yield number, release and controllers of each situation, so that all kinds come early."""
    for number in range(SITUATIONS):
        for version in VERSIONS:
            for controllers in (1, 3):
                yield number, version, controllers


def run(work: Path, deadline: float, only: str) -> Outcomes:
    """Start the situations that were not started yet, until time is over."""
    work.mkdir(parents=True, exist_ok=True)
    outcomes = Outcomes(work / "outcomes.jsonl")
    for cell in cells():
        number, version, controllers = cell
        is_other = only not in f"{version}-{controllers}-{number}"
        if is_other or time.monotonic() > deadline or cell in outcomes.found:
            continue
        copies = copies_of(version, controllers, work)
        of = situation(number, copies.controllers)
        place = work / f"situation-{version}-{controllers}"
        shutil.rmtree(place, ignore_errors=True)
        homes = restore(copies, of, place)
        mend(homes, predicted(copies, homes)[1])
        seen = start(copies, of, homes, DEADLINE_S)
        if seen.is_disturbed or not (seen.at_rest or seen.ended & {*of.starting}):
            print(f"{cell}: not at rest after {DEADLINE_S} s; joined: {seen.joined}", flush=True)
            continue  # the machine is too busy
        outcomes.keep(cell, seen)
        print(json.dumps(judged(copies, of, seen, place)), flush=True)
    return outcomes


def report(rows: list[Row]) -> str:
    """Return the report in Markdown."""
    from broker.volumes import MOMENTS

    rows = sorted(rows, key=lambda one: (one["release"], one["controllers"], one["number"]))
    head = _HEAD.format(
        moments=MOMENTS,
        done=len(rows),
        all=len(list(cells())),
        partitions=sum(one["partitions"] for one in rows),
        cuts=sum(one["cuts"] for one in rows),
        sure=sum(one["sure"] for one in rows),
        wrong=sum(bool(one["differences"]) for one in rows),
    )
    lines = [
        head + "| release | controllers | situation, moment of each volume | status | partitions "
        "| one outcome possible | without leader | cuts | strays | logs replaced | differences |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in rows:
        words = (
            one["release"], one["controllers"], one["name"], one["status"], one["partitions"],
            one["sure"], one["leaderless"], one["cuts"], one["strays"], one["moved"],
            len(one["differences"]),
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, words))} |")
    texts = [
        f"- {one['release']}, {one['controllers']} controllers, {one['name']}: {text}"
        for one in rows
        for text in one["differences"]
    ]
    return "\n".join([*lines, "", *texts]).rstrip() + "\n"


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, default=Path("build/cluster"))
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after this time")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--only", default="", help="part of RELEASE-CONTROLLERS-NUMBER")
    options = parser.parse_args()
    # So that the brokers end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    outcomes = run(options.work, time.monotonic() + 60 * options.minutes, options.only)
    rows = []
    for (number, version, controllers), seen in outcomes.found.items():
        copies = copies_of(version, controllers, options.work)
        of = situation(number, copies.controllers)
        rows.append(judged(copies, of, seen, options.work / "judged"))
    options.report.write_text(report(rows))
    return 1 if any(one["differences"] for one in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
