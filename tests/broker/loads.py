"""Times brokers that load many logs, and compares with the estimate of `logtool sanity`.

The script writes ``tests/broker/reports/loads.md``. The exit status is 1 if the time of a start is
outside the estimated range.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# A script, not a module of the test run: it adds the folder of `broker` to the path.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from broker import many_logs
from broker.install import HERE
from broker.many_logs import Loaded

VERSIONS = ("4.3.1", "3.9.2", "2.2.2")
SIZES = ((600, 5), (600, 1), (100, 30), (6000, 3))
"""(logs, segments of each); at most 20,000 segments, the limit of open files."""
EAGER = "2.2.2"
REPORT = HERE / "reports" / "loads.md"
_SOURCE = HERE.parent / "data" / "4.3.1" / "clean.tar.xz"
_HEAD = """# Time that brokers need to load their logs, and the estimate of `logtool sanity`

Written by `make loads`, which starts a broker for each line. The logs are copies of one that Kafka
4.3.1 wrote and stopped in order. They were just written, so they are in the page cache. One thread
loads them. "took" is the time that the broker logs (`Loaded N logs in ...ms`), "processor" the time
during which the loading thread had a processor, "load" the number of processes that wanted one of
the {cpus} processors. A broker writes missing producer snapshots at the first start and flushes
each one.
"""
_COLUMNS = (
    "release", "logs", "segments of each", "snapshots", "estimate", "took", "processor", "load",
    "open files of logs", "maps of indexes", "memory",
)  # fmt: skip


@dataclass(frozen=True)
class Start:
    """One start and its estimate."""

    version: str
    logs: int
    segments: int
    snapshots: bool
    low: float
    high: float
    loaded: Loaded
    busy: float
    """Number of processes that wanted a processor, the average of one minute."""

    @property
    def seconds(self) -> float:
        """Return the time that the broker logged, in seconds."""
        return self.loaded.milliseconds / 1000

    @property
    def is_right(self) -> bool:
        """Return whether the time is in the estimated range."""
        return self.low <= self.seconds <= self.high

    def cells(self) -> tuple[str, ...]:
        """Return the line of the table."""
        files, maps = self.loaded.files, self.loaded.maps
        mark = "" if self.is_right else "**"
        return (
            self.version,
            f"{self.logs:,}",
            f"{self.segments:,}",
            "yes" if self.snapshots else "no",
            f"{self.low:.1f} to {self.high:.1f} s",
            f"{mark}{self.seconds:.1f} s{mark}",
            f"{self.loaded.busy:.1f} s",
            f"{self.busy:.0f}",
            f"{files['.log'] + files['.txnindex']:,}",
            f"{maps['.index'] + maps['.timeindex']:,}",
            f"{self.loaded.resident / (1 << 20):,.0f} MiB",
        )


def start(version: str, logs: int, segments: int, work: Path, *, snapshots: bool = True) -> Start:
    """Make a log dir, run logtool on it and start a broker."""
    home, template = work / "log-dir", work / "template"
    many_logs.write_template(work / "source" / "clean" / "index.dense-0", template, segments)
    for snapshot in () if snapshots else template.glob("*.snapshot"):
        snapshot.unlink()
    many_logs.fill(version, home, template, logs)
    mode = "eager" if version == EAGER else "lazy"
    command = ["logtool", "sanity", "--json", "--no-verify", "--mode", mode, str(home)]
    command[0] = str(Path(sys.executable).parent / "logtool")
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    (load,) = (one for one in json.loads(done.stdout)["items"] if one["type"] == "load")
    with many_logs.loaded(version, home) as (_, loaded):
        busy = os.getloadavg()[0]
    shutil.rmtree(home)
    shutil.rmtree(template)
    low, high = load["seconds_low"], load["seconds_high"]
    return Start(version, logs, segments, snapshots, low, high, loaded, busy)


def starts(versions: Sequence[str], work: Path) -> Iterator[Start]:
    """Start brokers of each release on each size, and on logs without snapshots."""
    with tarfile.open(_SOURCE) as tar:
        tar.extractall(work / "source", filter="tar")
    for version in versions:
        for logs, segments in SIZES:
            yield start(version, logs, segments, work)
        yield start(version, *SIZES[0], work, snapshots=False)


def main() -> int:
    """Write the report; return 1 if the time of a start is outside the estimated range."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", help="a release; by default all")
    versions = parser.parse_args().version or VERSIONS
    with tempfile.TemporaryDirectory(prefix="logtool-loads-") as temporary:
        done = []
        for one in starts(versions, Path(temporary)):
            done.append(one)
            print(*one.cells(), sep=" | ", flush=True)
    wrong = sum(not one.is_right for one in done)
    lines = [_HEAD.format(cpus=os.cpu_count())]
    lines.append(f"{len(done)} starts, {wrong} outside the estimated range.\n")
    lines.append(f"| {' | '.join(_COLUMNS)} |")
    lines.append(f"|{' --- |' * len(_COLUMNS)}")
    lines += [f"| {' | '.join(one.cells())} |" for one in done]
    REPORT.write_text("\n".join(lines) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
