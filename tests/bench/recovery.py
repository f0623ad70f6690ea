"""Recovery against the broker's own, and supplement against rebuild: rows for `rows.ROWS`."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.bare import pass_over
from bench.generate import GIB, KIB, MIB, Spec
from bench.measure import (
    Timing,
    environment,
    pairs,
    peak_memory,
    seconds_of,
    spread,
    timed,
)
from bench.rows import Bar, Bench, Row, no_kafka, seconds
from broker.install import KAFKA_4
from broker.kafka import Broker, format_log_dir

from logtool.disk.files import LogFile
from logtool.loading.loader import load
from logtool.loading.result import StartConditions
from logtool.loading.supplement import supplement
from logtool.log import opening

SIZES = {"200 B": 200, "1 KiB": KIB, "16 KiB": 16 * KIB, "1 MiB": MIB}
WHOLE_BARS = {"200 B": 5, "1 KiB": 6, "16 KiB": 2, "1 MiB": 2}
"""Times a broker's own recovery, for the whole command."""
PASS_BARS = {"1 KiB": 0.60, "16 KiB": 0.85, "1 MiB": 0.88}
"""Times a bare pass, for the recovery alone."""
PARTITION = "bench-0"
STRAY = f"{PARTITION}.{'0' * 32}-stray"
"""The name of a directory that a broker loads and then does not change."""
PADDING = 10 * MIB
MB = 10**6
_LOADED = re.compile(r"Completed load of Log\(dir=\S*bench-0\S*,.* in (\d+)ms")
_LOGTOOL = str(Path(sys.executable).with_name("logtool"))
_SUPPLEMENT = ("--strategy", "supplement")
_GROWTH = (1, 2, 4, 10)
"""Times the total that is not flushed."""


class _Home:
    """A log dir with one partition that was never flushed, its indexes filled up with zeros.

    With `rolled` those of the last segment alone are: a broker that is killed has cut the others.
    """

    def __init__(self, bench: Bench, spec: Spec, *, rolled: bool = False) -> None:
        self._rolled = rolled
        self.path = bench.home / f"recovery-{spec.name}"
        self._source = bench.directory(spec)
        shutil.rmtree(self.path, ignore_errors=True)
        format_log_dir(KAFKA_4, [self.path])
        self._partition = self.path / STRAY
        self._partition.mkdir()
        for log in self._source.glob("*.log"):
            (self._partition / log.name).hardlink_to(log)
        self._snapshots: dict[str, bytes] = {}

    def take_snapshots(self) -> None:
        """Keep the producer snapshots that a broker takes at the start of each segment."""
        self.reset()
        self.by_logtool()
        found = sorted(self._partition.glob("*.snapshot"))
        self._snapshots = {path.name: path.read_bytes() for path in found[:-1]}

    def reset(self, *, forget: bool = False) -> None:
        """Put the indexes back as a kill leaves them; the log is sound and stays.

        With `forget` nothing of it stays in the page cache.
        """
        for log in self.logs() if forget else ():
            with LogFile(log) as file:
                file.forget(0, file.size)
        for path in self._partition.iterdir():
            if path.suffix != ".log":
                path.unlink()
        shutil.copy(self._source / "leader-epoch-checkpoint", self._partition)
        for name, content in self._snapshots.items():
            (self._partition / name).write_bytes(content)
        for index in (*self._source.glob("*.index"), *self._source.glob("*.timeindex")):
            target = self._partition / index.name
            shutil.copy(index, target)
            if self._rolled and index.stem < max(path.stem for path in self.logs()):
                continue
            with target.open("r+b") as file:
                file.truncate(PADDING // 24 * 24)
        for undo in self.path.parent.glob(f"{self.path.name}.logtool-undo-*"):
            shutil.rmtree(undo)

    def logs(self) -> list[Path]:
        """Return its logs."""
        return list(self._partition.glob("*.log"))

    def command(self, *options: str) -> list[str]:
        """Return how it is recovered with one thread, unless the options say more."""
        return [_LOGTOOL, "recover", "--apply", "-j", "1", *options, str(self.path)]

    def by_logtool(self, *options: str) -> None:
        """Recover it, in a process of its own, everything saved and synchronised."""
        subprocess.run(
            self.command(*options), env=environment(), check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def load(self) -> None:
        """Recover the shadow in this process, the part that the broker's log line times."""
        load(opening.open_partition(self._partition), StartConditions(clean=False))

    def supplement(self) -> None:
        """Do the same by the other strategy."""
        supplement(opening.open_partition(self._partition), StartConditions(clean=False))

    def by_broker(self) -> float:
        """Let a broker load the log dir; return the seconds that it logged."""
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
        yield Row(title, whole.ratios, Bar(WHOLE_BARS[name]), note=note, timing=whole)
        note = f"{spread(alone.ours)[0]:.3g} s against {theirs:.3g} s"
        title = f"the same, the recovery alone, as the broker's line times it, {name}"
        yield Row(title, alone.ratios, None, note=note, timing=alone)
        shutil.rmtree(home.path)


def against_pass(bench: Bench) -> Iterator[Row]:
    """Time the recovery alone, by either strategy, against one bare pass over the log."""
    for name, bar in PASS_BARS.items():
        home = _Home(bench, Spec(SIZES[name], bench.total))
        home.reset()
        (log,) = home.logs()
        timing = pairs(home.load, lambda: pass_over(log), bench.count)  # noqa: B023
        title = f"recovery alone, batches of {name}, against readinto(1 MiB) + crc32c"
        yield Row(title, timing.ratios, Bar(bar), note=seconds(timing), timing=timing)
        timing = pairs(home.supplement, home.load, bench.count)
        title = f"the same with supplement against rebuild, {name}"
        yield Row(title, timing.ratios, Bar(1), note=seconds(timing), timing=timing)
        shutil.rmtree(home.path)


def small_segments(bench: Bench) -> Iterator[Row]:
    """Time supplement against rebuild where segments are small and each has its snapshot."""
    count = bench.total // (512 * KIB)
    home = _Home(bench, Spec(KIB, count * 16 * KIB, segment_size=16 * KIB), rolled=True)
    home.take_snapshots()
    home.reset()
    timing = pairs(home.supplement, home.load, bench.count)
    title = f"recovery alone of {count} segments of 16 KiB, supplement against rebuild"
    yield Row(title, timing.ratios, Bar(1), note=seconds(timing), timing=timing)
    for name, way in {"rebuild": (), "supplement": _SUPPLEMENT}.items():
        home.reset()
        peak = peak_memory(home.command(*way)) / MB
        title = f"the same, --strategy {name}: its largest memory, whole process"
        yield Row(title, [peak], Bar(at_most=150), unit="MB")
    shutil.rmtree(home.path)


def strategies(bench: Bench) -> Iterator[Row]:
    """Compare rebuild with supplement as the part that was not flushed grows."""
    for times in _GROWTH:
        home = _Home(bench, Spec(16 * KIB, times * bench.total, segment_size=bench.total))
        for strategy in ("rebuild", "supplement"):
            found = []
            for _ in range(bench.count):
                home.reset()
                found.append(timed(lambda: home.by_logtool("--strategy", strategy)))  # noqa: B023
            read, replayed = _bytes_read(home, strategy)
            title = (
                f"recover --strategy {strategy}, {times * bench.total / GIB:.2g} GiB not flushed"
            )
            note = f"{read / MIB:.0f} MiB checked, {replayed / MIB:.0f} MiB replayed"
            bar = Bar(at_most=60) if times == _GROWTH[-1] else None
            yield Row(title, found, bar, unit="s", note=note)
        shutil.rmtree(home.path)


def playback(bench: Bench) -> Iterator[Row]:
    """Compare ways to supplement with a rebuild; a snapshot stands at the base of each segment."""
    home = _Home(bench, Spec(16 * KIB, 10 * bench.total, segment_size=bench.total), rolled=True)
    home.take_snapshots()
    each = bench.total / GIB
    size = f"{10 * each:.2g} GiB not flushed, a snapshot each {each:.2g} GiB"
    trusted = (*_SUPPLEMENT, "--trust-log")
    for name, options, is_cached, bar in (
        ("supplement --trust-log", trusted, False, Bar(at_least=10)),
        ("supplement --trust-log", trusted, True, Bar(at_least=10)),
        ("supplement", _SUPPLEMENT, True, Bar(at_least=1)),
    ):
        timing, spent = Timing([], []), Timing([], [])
        for _ in range(bench.count):
            for ours, of in ((True, options), (False, ())):
                home.reset(forget=not is_cached)
                elapsed, processor = seconds_of(home.command(*of))
                (timing.ours if ours else timing.theirs).append(elapsed)
                (spent.ours if ours else spent.theirs).append(processor)
        planned = _planned(home, *options)
        assert planned["playback"]["trusted"] == ("--trust-log" in options), planned["distrust"]
        note = (
            f"{size}: {spread(timing.ours)[0]:.3g} s against {spread(timing.theirs)[0]:.3g} s, of "
            f"the processor {spread(spent.ours)[0]:.3g} s against {spread(spent.theirs)[0]:.3g} s; "
            f"{planned['bytes_scanned'] / MIB:.4g} MiB read"
        )
        where = "in the page cache" if is_cached else "on the disk"
        title = f"recover --strategy {name} against rebuild, logs {where}, whole process"
        yield Row(title, timing.ratios, bar, note=note, timing=timing)
    idle = peak_memory([_LOGTOOL, "--version"])
    ways: dict[str, tuple[str, ...]] = {
        "rebuild": (), "supplement": _SUPPLEMENT, "supplement --trust-log": trusted
    }  # fmt: skip
    for name, way in ways.items():
        home.reset()
        more = (peak_memory(home.command(*way)) - idle) / MIB
        title = f"recover --strategy {name}: its largest memory beyond logtool --version"
        yield Row(title, [more], Bar(at_most=100), unit="MiB", note=f"{size}, one thread")
    shutil.rmtree(home.path)


def _bytes_read(home: _Home, strategy: str) -> tuple[int, int]:
    one = _planned(home, "--strategy", strategy)
    return one["bytes_scanned"], one["bytes_replayed"]


def _planned(home: _Home, *options: str) -> dict[str, Any]:
    """Return the partition's object of a dry run of recover."""
    home.reset()
    command = [_LOGTOOL, "recover", "--json", *options, str(home.path)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, check=False)
    items = json.loads(done.stdout)["items"]
    partition: dict[str, Any] = next(item for item in items if item["type"] == "partition")
    return partition


ROWS = {
    "recovery": against_broker,
    "recovery-pass": against_pass,
    "recovery-small": small_segments,
    "strategies": strategies,
    "playback": playback,
}
