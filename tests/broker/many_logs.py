"""Log dirs of many logs, and the time, open files and maps of a broker that loads them.

Every log is a copy of one that a broker wrote, with any number of segments. A broker that knows
stray logs gets them as ``load-N.<32 hex>-stray``: it loads such a directory like any other and does
not change it. Older brokers do not change topics that ZooKeeper does not know.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from broker.install import HarnessError, release
from broker.kafka import Broker, format_log_dir
from broker.recovery import MARKER
from broker.zookeeper import ZooKeeper
from deadlines import deadline_in
from verification import batches

from logtool.formats import producer_snapshot

CONFIG = {
    "num.recovery.threads.per.data.dir": "1",
    "log.initial.task.delay.ms": "3600000",
    "log.cleaner.enable": "false",
}
"""One thread loads, and nothing works in the background afterwards."""
_STRAY = ".0123456789abcdef0123456789abcdef-stray"
_LOADED = re.compile(r"Loaded (\d+) logs in (\d+)ms|Logs loading complete in (\d+) ms")
_LOADING = re.compile(r"log-recovery-|pool-\d+-thread-")


@dataclass(frozen=True)
class Loaded:
    """Load time of a broker, and the files, maps and memory that it then has."""

    milliseconds: int
    """Load time of the logs, as the broker logged it."""
    busy: float
    """Seconds during which the loading thread had a processor; a busy host does not change them."""
    files: Counter[str]
    """Open files in the log dir by suffix; other open files are under ``""``."""
    maps: Counter[str]
    """Mapped areas by suffix, like `files`."""
    resident: int
    """Bytes of memory of the process."""


def write_template(source: Path, target: Path, segments: int) -> None:
    """Write a log of equal segments, copies of the first segment in a broker's partition dir."""
    target.mkdir(parents=True)
    first = source / f"{0:020d}.log"
    table, data = batches(first), first.read_bytes()
    records = int(table.last_offset[-1]) + 1
    empty = producer_snapshot.encode(producer_snapshot.build(producer_snapshot.parse(b"").entries))
    for base in range(0, segments * records, records):
        shifted = bytearray(data)
        for position, offset in zip(table.position, table.base_offset, strict=True):
            at = int(position)  # neither checksum nor index has the first offset of a batch
            shifted[at : at + 8] = (int(offset) + base).to_bytes(8, "big")
        (target / f"{base:020d}.log").write_bytes(shifted)
        for suffix in (".index", ".timeindex"):
            shutil.copy(first.with_suffix(suffix), target / f"{base:020d}{suffix}")
        (target / f"{base + records:020d}.snapshot").write_bytes(empty)
    (target / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


def fill(version: str, log_dir: Path, template: Path, count: int) -> None:
    """Make a log dir of an orderly stop with a number of copies of a log."""
    suffix = ""
    if release(version) >= (3,):
        format_log_dir(version, [log_dir])
        suffix = _STRAY
    else:
        log_dir.mkdir()
    for number in range(count):
        shutil.copytree(template, log_dir / f"load-{number}{suffix}")
    (log_dir / ".kafka_cleanshutdown").write_bytes(MARKER if suffix else b"")


@contextmanager
def loaded(version: str, log_dir: Path, **config: str) -> Iterator[tuple[Broker, Loaded]]:
    """Start a broker on a log dir; yield it and its measurements when it serves clients.

    The broker is killed afterwards: another start needs a new log dir.
    """
    with ExitStack() as stack:
        is_old = release(version) < (3,)
        zookeeper = stack.enter_context(ZooKeeper()) if is_old else None
        broker = stack.enter_context(
            Broker(version, [log_dir], CONFIG | config, zookeeper=zookeeper)
        )
        broker.launch()
        milliseconds, threads = watched(broker)
        broker.wait_until_ready(timeout=1800)
        busy = max((one.ran for one in threads), default=0.0)
        yield broker, _opened(broker, log_dir, milliseconds, busy)


@dataclass(frozen=True)
class Thread:
    """Times of a thread that loads logs, in seconds."""

    ran: float
    """Time with a processor."""
    waited: float
    """Time without a processor although ready to run; a busy host adds it."""


def watched(broker: Broker) -> tuple[int, list[Thread]]:
    """Wait until the logs are loaded; return the milliseconds that the broker logs.

    Also return the last seen times of each thread that loaded logs.
    """
    busy: dict[str, Thread] = {}
    deadline = deadline_in(1800)
    while not (match := _LOADED.search(broker.log)):
        if broker.pid is None or time.monotonic() > deadline:
            raise HarnessError(f"no logs were loaded:\n{broker.log_tail()}")
        busy |= _busy(broker.pid)
        time.sleep(0.02)
    return int(match[2] or match[3]), list(busy.values())


def _busy(pid: int) -> dict[str, Thread]:
    """Return the threads that load logs."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has ended
            if _LOADING.match((task / "comm").read_text()):
                ran, waited, _ = (task / "schedstat").read_text().split()
                found[task.name] = Thread(int(ran) / 1e9, int(waited) / 1e9)
    return found


def _opened(broker: Broker, log_dir: Path, milliseconds: int, busy: float) -> Loaded:
    process = Path(f"/proc/{broker.pid}")
    files, maps = Counter[str](), Counter[str]()
    for link in (process / "fd").iterdir():
        try:
            files[_suffix(log_dir, str(link.readlink()))] += 1
        except FileNotFoundError:
            continue  # closed meanwhile
    for line in (process / "maps").read_text().splitlines():
        maps[_suffix(log_dir, line.partition("/")[1] + line.partition("/")[2])] += 1
    status = (process / "status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None
    return Loaded(milliseconds, busy, files, maps, int(resident[1]) * 1024)


def _suffix(log_dir: Path, path: str) -> str:
    """Return the suffix of a file in a copied partition, and an empty text for other files."""
    found = Path(path)
    is_ours = found.is_relative_to(log_dir.resolve()) and found.parent.name.startswith("load-")
    return found.suffix if is_ours else ""
