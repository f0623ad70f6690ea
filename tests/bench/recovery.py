"""Recovery against the broker's own, and supplement against rebuild: rows for `rows.ROWS`."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.generate import GIB, KIB, MIB, Spec
from bench.measure import Timing, environment, pass_over, runs, spread, timed
from bench.rows import Bar, Bench, Row, no_kafka
from broker.install import KAFKA_4
from broker.kafka import Broker, format_log_dir

from logtool.disk import partition
from logtool.loading.loaded import Start
from logtool.loading.loader import load

SIZES = {"200 B": 200, "1 KiB": KIB, "16 KiB": 16 * KIB, "1 MiB": MIB}
PARTITION = "bench-0"
STRAY = f"{PARTITION}.{'0' * 32}-stray"
"""A name under which a broker loads a log and then leaves it alone."""
PADDING = 10 * MIB
_LOADED = re.compile(r"Completed load of Log\(dir=\S*bench-0\S*,.* in (\d+)ms")
_GROWTH = (1, 2, 4, 10)
"""Times the total that is not flushed."""


class _Home:
    """A log dir with one partition that was never flushed, its indexes filled up with zeros."""

    def __init__(self, bench: Bench, spec: Spec) -> None:
        self.path = bench.home / f"recovery-{spec.name}"
        self._source = bench.directory(spec)
        shutil.rmtree(self.path, ignore_errors=True)
        format_log_dir(KAFKA_4, [self.path])
        self._partition = self.path / STRAY
        self._partition.mkdir()
        for log in self._source.glob("*.log"):
            (self._partition / log.name).hardlink_to(log)

    def reset(self) -> None:
        """Put the indexes back as a kill leaves them; the log is sound and stays."""
        for path in self._partition.iterdir():
            if path.suffix != ".log":
                path.unlink()
        for index in (*self._source.glob("*.index"), *self._source.glob("*.timeindex")):
            target = self._partition / index.name
            shutil.copy(index, target)
            with target.open("r+b") as file:
                file.truncate(PADDING // 24 * 24)
        for undo in self.path.parent.glob(f"{self.path.name}.logtool-undo-*"):
            shutil.rmtree(undo)

    def logs(self) -> list[Path]:
        """Return its logs."""
        return list(self._partition.glob("*.log"))

    def by_logtool(self, *options: str) -> None:
        """Recover it, in a process of its own, everything saved and synchronised."""
        command = [str(Path(sys.executable).with_name("logtool")), "recover", "--apply", "-j", "1"]
        subprocess.run(
            [*command, *options, str(self.path)], env=environment(), check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def load(self) -> None:
        """Recover it on its shadow in this process: what the broker's line times of its own."""
        load(partition.read(self._partition), Start(clean=False))

    def by_broker(self) -> float:
        """Let a broker load it; returns the seconds that it logged for that."""
        with Broker(KAFKA_4, [self.path]) as broker:
            broker.launch()
            end = time.monotonic() + 120
            while time.monotonic() < end:
                if found := _LOADED.search(broker.log):
                    return int(found.group(1)) / 1000
                time.sleep(0.05)
            raise AssertionError(f"the broker did not load the log:\n{broker.log_tail()}")


def against_broker(bench: Bench) -> Iterator[Row]:
    """Time recover --apply as a whole process against the load that a broker logs."""
    for name, size in SIZES.items():
        title = f"recover --apply, batches of {name}, against a broker's own recovery"
        if reason := no_kafka():
            yield Row(title, skipped=reason)
            continue
        home = _Home(bench, Spec(size, bench.total))
        whole, alone = Timing([], []), Timing([], [])
        for _ in range(bench.count):
            home.reset()
            whole.ours.append(timed(home.by_logtool))
            home.reset()
            alone.ours.append(timed(home.load))
            whole.theirs.append(home.by_broker())
        alone.theirs.extend(whole.theirs)
        room, theirs = f"{bench.total / GIB:.2g} GiB", spread(whole.theirs)[0]
        note = (
            f"{room}, one thread each: {spread(whole.ours)[0]:.3g} s with the start of Python, the "
            f"undo directory and its fsync, against {theirs:.3g} s without the start of Java"
        )
        yield Row(title, whole.ratios, Bar(at_least=5), note=note, timing=whole)
        log = min(home.logs(), key=lambda path: path.name)
        floor = spread(runs(lambda: pass_over(log), bench.count))[0]  # noqa: B023
        note = (
            f"{spread(alone.ours)[0]:.3g} s against {theirs:.3g} s; one bare pass over the log "
            f"takes {floor:.3g} s"
        )
        title = f"the same, the recovery alone, as the broker's line times it, {name}"
        yield Row(title, alone.ratios, Bar(at_least=5), note=note, timing=alone)
        shutil.rmtree(home.path)


def strategies(bench: Bench) -> Iterator[Row]:
    """Compare rebuild with supplement as the part that was not flushed grows."""
    for times in _GROWTH:
        home = _Home(bench, Spec(16 * KIB, times * bench.total, segment_size=bench.total))
        for strategy in ("rebuild", "supplement"):
            seconds = []
            for _ in range(bench.count):
                home.reset()
                seconds.append(timed(lambda: home.by_logtool("--strategy", strategy)))  # noqa: B023
            read, replayed = _bytes_read(home, strategy)
            title = (
                f"recover --strategy {strategy}, {times * bench.total / GIB:.2g} GiB not flushed"
            )
            note = f"{read / MIB:.0f} MiB checked, {replayed / MIB:.0f} MiB replayed"
            bar = Bar(at_most=60) if times == _GROWTH[-1] else None
            yield Row(title, seconds, bar, unit="s", note=note)
        shutil.rmtree(home.path)


def _bytes_read(home: _Home, strategy: str) -> tuple[int, int]:
    home.reset()
    logtool = str(Path(sys.executable).with_name("logtool"))
    command = [logtool, "recover", "--json", "--strategy", strategy, str(home.path)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, check=False)
    items = json.loads(done.stdout)["items"]
    one = next(item for item in items if item["type"] == "partition")
    return one["bytes_scanned"], one["bytes_replayed"]


ROWS = {"recovery": against_broker, "strategies": strategies}
