"""Starts of a real broker with hundreds of damaged partitions each, and the outcome of every one.

Nearly every case is put into a log dir as ``<name>-0.<32 hex>-stray``. A broker loads and recovers
such a directory like any other and then does not change it: it does not lead the partition, so it
appends nothing. (A broker renames the directory of an unknown topic after the load, and a race then
loses leader epochs that were not flushed yet.)

One bad log ends the start or takes its log dir offline, but only when the broker collects the
results, log dir by log dir, after it has queued all logs. So the first log dir has a gate: a
partition whose leader-epoch-checkpoint is a named pipe without a writer. The broker meanwhile loads
all other log dirs completely, also after errors, and is then killed. The outcome of a log is in the
lines ``Completed load of`` and ``Error while loading logs in``. The exception is in the log of the
JVM, which logs each one that is thrown.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker.damaged import Case, Settings
from broker.install import HarnessError
from broker.kafka import Broker, format_log_dir
from deadlines import deadline_in

from logtool.formats import offset_checkpoint

LOADED, REFUSES, OFFLINE = "loaded", "refuses", "offline"
MARKER = b'{"version":0,"brokerEpoch":-1}'
_STORAGE_EXCEPTION = "org.apache.kafka.common.errors.KafkaStorageException"

# The JVM logs the exceptions of inlined methods under the name of the compiled method.
_UNCOMPILED = (
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=exclude,kafka.log.LogManager*::*",
    "-XX:CompileCommand=exclude,org.apache.kafka.storage.internals.log.LogManager*::*",
    "-XX:CompileCommand=exclude,java.util.concurrent.FutureTask::run",
)

_END = re.compile(
    r"Completed load of .*?\(dir=(?P<done>[^,]+), .*?highWatermark=(?P<watermark>\d+), "
    r"lastStableOffset=(?P<stable>-?\d+), logStartOffset=(?P<start>\d+), "
    r"logEndOffset=(?P<end>\d+)\)|Error while loading logs in (?P<failed>\S+) in "
)
_THROWN = re.compile(
    r"'(?P<type>[^']+)'\{0x[0-9a-f]+\}(?:: (?P<text>.*?))?>"
    r"\s+thrown in (?P<where>[^\n]*)\n? at (?:bci|PC) \S+ for thread (?P<thread>0x[0-9a-f]+)"
    r"(?: \((?P<name>[^)\n]*)\))?",
    re.DOTALL,
)

_JOB = re.compile(r"(anonfun|lambda)\$loadLogs\$")
"""The method that loads one log: since 4.4 ``LogManager`` is written in Java."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one case."""

    kind: str
    """LOADED; REFUSES: the broker does not start; OFFLINE: it starts without the log dir."""
    error: str = ""
    """``java.lang.Type: message`` of the exception; empty if loaded."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """All files in the directory afterwards, unchanged; see `agreement.normal`."""
    log_start: int | None = None
    log_end: int | None = None
    started_ms: int = 0
    """Just before the start, milliseconds: producers expire by the clock."""
    log: tuple[str, ...] = ()
    """The lines of the broker that name the case, without their time."""


def outcomes(version: str, cases: Sequence[Case], work: Path) -> dict[str, Outcome]:
    """Let brokers load all cases and return their outcomes by name."""
    found: dict[str, Outcome] = {}
    by_settings: dict[Settings, list[Case]] = defaultdict(list)
    for case in cases:
        by_settings[case.settings].append(case)
    for settings, waiting in by_settings.items():
        alone: list[Case] = []
        while waiting:
            parts = groups([case for case in waiting if case not in alone])
            parts += [[case] for case in alone]
            found |= _start(version, settings, parts, work)
            # These cases take the whole log dir offline at once, with the other logs in it.
            alone = [case for case in waiting if _ends_log_dir(found[case.name])]
            spoilt = [group for group in parts if len(group) > 1 and set(group) & set(alone)]
            waiting = [case for group in spoilt for case in group]
    return found


def _ends_log_dir(outcome: Outcome) -> bool:
    return outcome.kind == OFFLINE and outcome.error.startswith(_STORAGE_EXCEPTION)


def config(settings: Settings) -> dict[str, str]:
    """Return the broker's settings: those of the cases, and late background tasks."""
    return {
        "log.index.interval.bytes": str(settings.index_interval),
        "log.index.size.max.bytes": str(settings.index_size),
        "num.recovery.threads.per.data.dir": "1",
        "log.segment.delete.delay.ms": "3600000",
        "log.initial.task.delay.ms": "3600000",
    }


def groups(cases: Sequence[Case]) -> list[list[Case]]:
    """Divide cases into log dirs, two of either kind: one thread loads a log dir."""
    groups = [
        [case for case in cases if case.clean == clean][part::2]
        for clean in (False, True)
        for part in (0, 1)
    ]
    return [group for group in groups if group]


def _start(
    version: str, settings: Settings, groups: Sequence[Sequence[Case]], work: Path
) -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory(dir=work, prefix="recovery-") as temporary:
        root = Path(temporary)
        gate, *dirs = [root / f"dir-{number}" for number in range(len(groups) + 1)]
        format_log_dir(version, [gate, *dirs], extra_config=config(settings))
        for log_dir, group in zip(dirs, groups, strict=True):
            fill(log_dir, group)
        pipe = gate / "gate-0" / "leader-epoch-checkpoint"
        pipe.parent.mkdir()
        os.mkfifo(pipe)
        thrown = root / "exceptions"
        options = [f"-Xlog:exceptions=info:file={thrown}:none:filecount=0", *_UNCOMPILED]
        started_ms = int(time.time() * 1000)
        with Broker(version, [gate, *dirs], config(settings), jvm_options=options) as broker:
            broker.launch()
            _wait_until_loaded(broker, dirs, sum(map(len, groups)))
            log = broker.log
            broker.kill()
        errors = _errors(thrown.read_text(errors="replace"))
        found: dict[str, Outcome] = {}
        for log_dir, group in zip(dirs, groups, strict=True):
            found |= _read(log_dir, group, log, errors.get(str(log_dir), []), started_ms)
        return found


def fill(log_dir: Path, cases: Sequence[Case]) -> None:
    """Put copies of cases, either all with a clean marker or all without, into a log dir."""
    for case in cases:
        shutil.copytree(case.path, log_dir / case.directory)
    rows = {
        "recovery-point-offset-checkpoint": {c.name: c.recovery_point for c in cases},
        "log-start-offset-checkpoint": {c.name: c.log_start for c in cases},
    }
    for name, offsets in rows.items():
        known = {(case, 0): offset for case, offset in offsets.items() if offset is not None}
        data = offset_checkpoint.encode(offset_checkpoint.build(known))
        (log_dir / name).write_bytes(data)
    if cases[0].clean:
        (log_dir / ".kafka_cleanshutdown").write_bytes(MARKER)


def files_in(directory: Path) -> dict[str, bytes]:
    """Return the files of a partition, those in sub-directories too."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def _wait_until_loaded(broker: Broker, dirs: Sequence[Path], count: int) -> None:
    deadline = deadline_in(120)
    while len(_END.findall(broker.log)) < count:
        if broker.pid is None or time.monotonic() > deadline:
            raise HarnessError(f"not all logs were loaded:\n{broker.log_tail()}")
        time.sleep(0.2)
    # The broker writes truncated leader epochs in the background: wait until they do not change.
    before: dict[Path, int] = {}
    while True:
        paths = [path for log_dir in dirs for path in log_dir.glob("*/leader-epoch-checkpoint*")]
        now = {path: path.stat().st_mtime_ns for path in paths if path.exists()}
        if now == before:
            return
        before = now
        time.sleep(1.0)


@dataclass
class _Thrown:
    """An exception that ended the load of a log."""

    error: str
    uncaught: bool = False


def _errors(text: str) -> dict[str, list[_Thrown]]:
    """Return the exceptions that ended the load of a log, in order, by log dir.

    The JVM logs an exception once for each method that it leaves, and again for a ``finally``
    block; its address may change in between. An IOException, which loadLogs catches, does not leave
    the job of the log.
    """
    names: dict[str, str] = {}
    found: dict[str, list[_Thrown]] = defaultdict(list)
    coming: set[str] = set()
    for part in text.split("Exception <a "):
        match = _THROWN.match(part)
        if match is None:
            continue
        thread, where = match["thread"], match["where"]
        if match["name"]:
            names[thread] = match["name"]
        log_dir = re.fullmatch(r"log-recovery-(.*)-0", names.get(thread, ""))
        if not log_dir:
            continue
        if "'loadLog' '(Ljava/io/File;" in where:
            coming.add(thread)
        elif _JOB.search(where) and thread in coming:
            coming.remove(thread)
            error = match["type"].replace("/", ".") + f": {match['text'] or ''}"
            found[log_dir[1]].append(_Thrown(error.removesuffix(": ")))
        elif "in 'java/util/concurrent/FutureTask'" in where and found[log_dir[1]]:
            found[log_dir[1]][-1].uncaught = True
    return found


def _read(
    log_dir: Path, cases: Sequence[Case], log: str, errors: Sequence[_Thrown], started_ms: int
) -> dict[str, Outcome]:
    waiting = iter(errors)
    names = {case.directory: case.name for case in cases}
    ends = {}
    for match in _END.finditer(log):
        path = Path(match["done"] or match["failed"])
        if path.parent == log_dir:
            ends[names[path.name]] = match
    failed = [name for name, match in ends.items() if match["failed"]]
    if len(failed) != len(errors):
        raise HarnessError(
            f"{len(failed)} logs failed, but exceptions are {[e.error for e in errors]}"
        )
    lines = _lines_of(log, cases)
    found = {}
    for name, match in ends.items():
        log_lines = tuple(lines[name])
        files = files_in(Path(match["done"] or match["failed"]))
        if match["done"]:
            start, end = int(match["start"]), int(match["end"])
            found[name] = Outcome(LOADED, "", files, start, end, started_ms, log_lines)
        else:
            cause = next(waiting)
            kind = REFUSES if cause.uncaught else OFFLINE
            found[name] = Outcome(kind, cause.error, files, None, None, started_ms, log_lines)
    return found


def _lines_of(log: str, cases: Sequence[Case]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {case.name: [] for case in cases}
    for name, line in _named(log):
        if name in found:
            found[name].append(line)
    return found


def _named(log: str) -> Iterator[tuple[str, str]]:
    for line in log.splitlines():
        named = re.search(r"(case\d+)-0", line)
        if named:
            yield named[1], line.partition("] ")[2]
