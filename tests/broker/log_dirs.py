"""Starts of brokers with three log dirs that have a fault.

Faults are: a wrong `meta.properties`, a partition in two log dirs or in another log dir than the
one in the metadata log, and unexpected directories. The outcome is read from the success of the
start, from the lines that the broker logged, and from the directories that it left.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from broker import workloads
from broker.install import HarnessError
from broker.kafka import Broker, format_log_dir
from broker.topics import Topic
from deadlines import deadline_in

from logtool.errors import LogtoolError
from logtool.loading.result import Outcome as LoadOutcome
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast

DIRS = ("a", "b", "c")
"""The log dirs; the first one has the metadata log."""
ORDERS = Topic("orders", "partitions in each log dir", partitions=9)
DENSE = Topic(
    "dense", "an index entry for each batch", partitions=6, config={"index.interval.bytes": "1"}
)
CONFIG: Mapping[str, str] = {
    "log.index.size.max.bytes": "8192",
    "log.segment.delete.delay.ms": "3600000",
    "file.delete.delay.ms": "3600000",
    "log.initial.task.delay.ms": "3600000",
    "log.cleaner.enable": "false",
}
OTHER_UUID = "zzzzzzzzzzzzzzzzzzzzzw"
UNKNOWN_TOPIC = "yyyyyyyyyyyyyyyyyyyyyw"
SUFFIX = ".0123456789abcdef0123456789abcdef"

OFFLINE = re.compile(
    r"Stopping serving logs in dir (?P<stopped>\S+)"
    r"|Failed to create or validate data directory (?P<invalid>\S+)"
)
_INDEXES = "*/dense-*/*.index"
_HASH = re.compile(r"\.[0-9a-f]{32}-(?=delete|future|stray)")


def make_base(version: str, root: Path) -> None:
    """Write three log dirs of one broker that was stopped in order."""
    dirs = [root / name for name in DIRS]
    format_log_dir(version, dirs, extra_config=CONFIG)
    with Broker(version, dirs, CONFIG) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, (ORDERS, DENSE))
        writer = workloads.Writer(broker.bootstrap)
        for topic in (ORDERS, DENSE):
            for number in range(topic.partitions):
                found = workloads.messages(f"{topic.name}-{number}", 40, workloads.now_ms())
                writer.batches(topic.name, found, [10], number)
        broker.stop()


@dataclass(frozen=True)
class Home:
    """The log dirs of one case, for a fault to change."""

    root: Path

    @property
    def dirs(self) -> list[Path]:
        """All log dirs that are there."""
        return [self.root / name for name in DIRS if (self.root / name).is_dir()]

    def meta(self, name: str) -> Path:
        """Return the meta.properties of a log dir."""
        return self.root / name / "meta.properties"

    def partition(self, name: str, which: int = 0, topic: str = "orders") -> Path:
        """Return one of the partitions of a topic that a log dir holds."""
        return sorted((self.root / name).glob(f"{topic}-*"))[which]

    def edit(self, name: str, pattern: str, replacement: str) -> None:
        """Change a line of meta.properties; raise HarnessError if no line matches."""
        path = self.meta(name)
        text, count = re.subn(f"(?m){pattern}", replacement, path.read_text())
        if not count:
            raise HarnessError(f"{path} has no {pattern}")
        path.write_text(text)

    def property(self, name: str, key: str) -> str | None:
        """Return a value of meta.properties."""
        found = re.search(rf"(?m)^{key}=(.*)$", self.meta(name).read_text())
        return found[1] if found else None


@dataclass(frozen=True)
class Fault:
    """A change to the log dirs before the broker starts."""

    name: str
    about: str
    make: Callable[[Home], object]
    needs_directory_ids: bool = False
    """True if the fault needs a release that writes directory ids."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a start."""

    starts: bool
    offline: tuple[str, ...] = ()
    """Names of the log dirs that the broker took offline."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Directories and their new names, without the ids."""
    error: str = ""
    """The error that ended the start."""
    indexes: Mapping[str, bytes] = field(default_factory=dict, compare=False)
    """Entries of the offset indexes of the topic ``dense`` that the broker rebuilt, by log dir and
    path, without the zeros at the end of an active segment's index."""

    def __str__(self) -> str:
        """Return the outcome in words."""
        if not self.starts:
            return "does not start"
        parts = [f"starts without {name}" for name in self.offline]
        parts += [f"{old} becomes {new}" for old, new in self.renamed]
        return "; ".join(parts) or "starts"


def outcome(version: str, home: Home) -> Outcome:
    """Start a broker on the log dirs and return the outcome."""
    before = {_inode(path): path for path in _directories(home)}
    is_moving = any(path.name.endswith("-future") for path in _directories(home))
    indexes, partitions = set(home.root.glob(_INDEXES)), set(_directories(home))
    with Broker(version, [home.root / name for name in DIRS], CONFIG) as broker:
        try:
            broker.start()
            starts = True
            if is_moving:
                _wait_for_moves(home, broker)
        except HarnessError as error:
            if "ended with" not in str(error) or "BindException" in broker.log:
                raise
            starts = False
        log = broker.log
        broker.kill()
    if not starts:
        return Outcome(False, error=_error(log))
    offline = {Path(m["stopped"] or m["invalid"]).name for m in OFFLINE.finditer(log)}
    renamed = []
    for path in _directories(home):
        old = before.get(_inode(path))
        if old and old != path:
            renamed.append((_plain(home, old), _plain(home, path)))
    made = {
        str(path.relative_to(home.root)): path.read_bytes().rstrip(b"\0")
        for path in set(home.root.glob(_INDEXES)) - indexes
        if path.parent in partitions
    }
    return Outcome(True, tuple(sorted(offline)), tuple(sorted(renamed)), "", made)


def without_error(found: Outcome) -> Outcome:
    """Return an outcome without the error text, which `plan` does not predict."""
    return replace(found, error="")


def predicted(version: str, home: Home) -> Outcome:
    """Return the prediction of `logtool plan` for a start on the log dirs."""
    major, minor, _ = version.split(".")
    starts, offline, renamed, made = True, set(), set(), {}
    for item in Forecast(home.dirs, StartOptions((int(major), int(minor)), contents=True)):
        if isinstance(item, LogtoolError):
            raise item
        if isinstance(item, PartitionForecast):
            starts &= item.outcome is not LoadOutcome.REFUSES
            offline |= {item.request.path.parent} if item.outcome is LoadOutcome.OFFLINE else set()
        for action in item.actions if isinstance(item, PartitionForecast) else (item,):
            name = f"{action.topic}-{action.partition}"
            starts &= action.action != "refuse"
            if action.action == "offline":
                offline.add(action.path if action.path.is_dir() else action.path.parent)
            elif action.action in ("stray", "delete"):
                renamed.add((action.path, f"{name}-{action.action}"))
            elif action.action in ("promote", "move", "discard"):
                if action.path.name.endswith("-future"):
                    renamed.add((action.path, name))
                live = [path for path in home.root.glob(f"*/{name}") if path.is_dir()]
                renamed |= {(path, f"{name}-delete") for path in live}
            elif action.change and action.path.suffix == ".index" and "dense" in name:
                content = action.change.content or b""
                made[str(action.path.relative_to(home.root))] = content.rstrip(b"\0")
    if not starts:
        return Outcome(False)
    plain = sorted((_plain(home, old), f"{old.parent.name}/{new}") for old, new in renamed)
    return Outcome(True, tuple(sorted(path.name for path in offline)), tuple(plain), "", made)


def _wait_for_moves(home: Home, broker: Broker) -> None:
    """Wait until every future copy has replaced its partition, whose directory is renamed.

    The copies are small, and a broker continues them at once.
    """
    deadline = deadline_in(60)
    while True:
        there = _directories(home)
        live = [path.name for path in there if not _HASH.search(path.name)]
        is_over = len(live) == len(set(live))
        if is_over and not any(path.name.endswith("-future") for path in there):
            return
        stopped = {Path(m["stopped"] or m["invalid"]) for m in OFFLINE.finditer(broker.log)}
        if any(list(path.glob("*-future")) for path in stopped):
            return
        if time.monotonic() > deadline:
            raise HarnessError(f"a move does not come to its end:\n{broker.log_tail()}")
        time.sleep(0.1)


def _directories(home: Home) -> list[Path]:
    return [path for log_dir in home.dirs for path in log_dir.iterdir() if path.is_dir()]


def _inode(path: Path) -> int:
    return path.stat().st_ino


def _plain(home: Home, path: Path) -> str:
    return _HASH.sub("-", path.relative_to(home.root).as_posix())


def _error(log: str) -> str:
    """Return the line with the first exception of a start that failed."""
    found = re.findall(r"^(?:Caused by: )?((?:[a-z]+\.)+[A-Za-z.]*(?:Exception|Error)[^\n]*)", log,
                       re.MULTILINE)  # fmt: skip
    return found[0] if found else log.strip().splitlines()[-1]


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target)


def _stray(path: Path) -> None:
    """Give a partition the id of an unknown topic."""
    data = b"version: 0\ntopic_id: " + UNKNOWN_TOPIC.encode()
    (path / "partition.metadata").write_bytes(data)


Change = Callable[[Home], object]


def meta(names: str, data: bytes) -> Change:
    """Replace meta.properties of log dirs."""
    return lambda home: [home.meta(name).write_bytes(data) for name in names]


def edit(names: str, *changes: tuple[str, str]) -> Change:
    """Change lines of meta.properties of log dirs."""
    return lambda home: [home.edit(name, *change) for name in names for change in changes]


def more(names: str, data: bytes) -> Change:
    """Add to meta.properties of log dirs."""
    return lambda home: [home.meta(n).write_bytes(home.meta(n).read_bytes() + data) for n in names]


def missing(names: str) -> Change:
    """Remove meta.properties of log dirs."""
    return lambda home: [home.meta(name).unlink() for name in names]


def copies(kind: str, names: str) -> Change:
    """Copy a partition of the second log dir into other log dirs, with the suffix of a kind."""

    def make(home: Home) -> None:
        path = home.partition("b")
        for number, name in enumerate(names):
            _copy(path, home.root / name / f"{path.name}.{number}{SUFFIX[2:]}-{kind}")

    return make


def _same_id(home: Home) -> None:
    home.meta("b").write_bytes(home.meta("a").read_bytes())


def _own_id(home: Home) -> None:
    data = re.sub(rb"(?m)^directory\.id=.*\n", b"", home.meta("b").read_bytes())
    home.meta("b").write_bytes(data + f"directory.id={OTHER_UUID}\n".encode())


def _twice_named(home: Home) -> None:
    home.meta("b").write_bytes(b"node.id=7\n" + home.meta("b").read_bytes())


def _folder(home: Home) -> None:
    home.meta("b").unlink()
    home.meta("b").mkdir()


def _swap_ids(home: Home) -> None:
    b, c = home.meta("b").read_text(), home.meta("c").read_text()
    home.meta("b").write_text(c)
    home.meta("c").write_text(b)


def _two_metadata_logs(home: Home) -> None:
    _copy(home.root / "a/__cluster_metadata-0", home.root / "b/__cluster_metadata-0")


def _twice(home: Home) -> None:
    _copy(home.partition("b"), home.root / "c" / home.partition("b").name)


def _twice_offline(home: Home) -> None:
    _twice(home)
    home.edit("b", *NINE)


def _twice_stray(home: Home) -> None:
    _twice(home)
    _stray(home.root / "c" / home.partition("b").name)


def _stray_unclean(home: Home) -> None:
    _stray(home.partition("b"))
    for log_dir in home.dirs:
        (log_dir / ".kafka_cleanshutdown").unlink()


def _move(home: Home) -> None:
    path = home.partition("b")
    path.rename(home.root / "c" / path.name)


def _future_alone(home: Home) -> None:
    copies("future", "c")(home)
    shutil.rmtree(home.partition("b"))


def _assigned(home: Home) -> None:
    """Make a move that ended in the metadata log and not on disk: the future log is assigned."""
    current = home.partition("b")
    _copy(current, home.root / "c" / current.name)
    current.rename(current.with_name(f"{current.name}{SUFFIX}-future"))


def _assigned_alone(home: Home) -> None:
    name = home.partition("b").name
    _assigned(home)
    shutil.rmtree(home.root / "c" / name)


def _fails(name: str) -> Change:
    """Give a log dir a checkpoint that takes it offline when it is loaded."""
    return lambda home: (home.root / name / "log-start-offset-checkpoint").write_bytes(
        b"0\n1\norders 0\n"
    )


def _future_stray(home: Home) -> None:
    copies("future", "c")(home)
    (copy,) = (home.root / "c").glob("*-future")
    _stray(copy)


def _no_index(home: Home) -> None:
    (home.partition("b", topic="dense") / "00000000000000000000.index").unlink()


def _replaced(home: Home) -> None:
    """Replace a log dir with a new, formatted and empty one."""
    text = home.meta("b").read_text()
    shutil.rmtree(home.root / "b")
    (home.root / "b").mkdir()
    home.meta("b").write_text(re.sub(r"directory\.id=.*", f"directory.id={OTHER_UUID}", text))


NINE = ("^version=1$", "version=9")
ZERO = (("^version=1$", "version=0"), ("^node.id", "broker.id"))
NO_NUMBER = ("^node.id=1$", "node.id=x")
_ID = "^directory.id=(.*)$"
_SHORT = "^(directory.id=.*).$"

FAULTS = (
    Fault("none", "nothing is wrong", lambda home: None),
    # meta.properties of a log dir without the metadata log
    Fault("b-missing", "no meta.properties", missing("b")),
    Fault("b-empty", "0 bytes", meta("b", b"")),
    Fault("b-words", "words without ids", meta("b", b"gone with the wind\n")),
    Fault("b-zeros", "zeros", meta("b", bytes(80))),
    Fault("b-version-2", "version 2", edit("b", ("^version=1$", "version=2"))),
    Fault("b-version-9", "version 9", edit("b", NINE)),
    Fault("b-version-word", "version x", edit("b", ("^version=1$", "version=x"))),
    Fault("b-no-version", "no version", edit("b", ("^version=1\n", ""))),
    Fault("b-version-0", "version 0 and broker.id", edit("b", *ZERO)),
    Fault("b-node", "another node.id", edit("b", ("^node.id=1$", "node.id=2"))),
    Fault("b-node-word", "node.id x", edit("b", NO_NUMBER)),
    Fault("b-no-node", "no node.id", edit("b", ("^node.id=1\n", ""))),
    Fault("b-cluster", "another cluster.id", edit("b", ("^cluster.id=.", "cluster.id=Q"))),
    Fault("b-no-cluster", "no cluster.id", edit("b", ("^cluster.id=.*\n", ""))),
    Fault("b-same-id", "the directory.id of another log dir", _same_id, True),
    Fault("b-short-id", "a directory.id of 21 characters", edit("b", (_SHORT, r"\1")), True),
    Fault("b-long-id", "a directory.id of 25 characters", edit("b", (_ID, r"directory.id=\1AAA")),
          True),
    Fault("b-reserved-id", "a reserved directory.id", edit("b", (_ID, "directory.id=" + 22 * "A")),
          True),
    Fault("b-no-id", "no directory.id", edit("b", ("^directory.id=.*\n", "")), True),
    Fault("b-unknown-id", "an unknown directory.id",
          edit("b", (_ID, f"directory.id={OTHER_UUID}")), True),
    Fault("b-own-id", "an unknown directory.id, in one log dir", _own_id),
    Fault("b-escape", "a bad escape", more("b", b"more=\\uZZZZ\n")),
    Fault("b-more", "a key more", more("b", b"more=1\n")),
    Fault("b-twice", "node.id twice, the right one last", _twice_named),
    Fault("b-folder", "meta.properties is a folder", _folder),
    Fault("swapped-ids", "two log dirs with each other's directory.id", _swap_ids, True),
    Fault("bc-version-9", "two log dirs of version 9", edit("bc", NINE)),
    # meta.properties of the log dir with the metadata log, and of all
    Fault("a-missing", "no meta.properties next to the metadata log", missing("a")),
    Fault("a-empty", "0 bytes next to the metadata log", meta("a", b"")),
    Fault("a-version-9", "version 9 next to the metadata log", edit("a", NINE)),
    Fault("a-node-word", "node.id x next to the metadata log", edit("a", NO_NUMBER)),
    Fault("all-missing", "no meta.properties at all", missing("abc")),
    Fault("all-version-9", "version 9 everywhere", edit("abc", NINE)),
    Fault("all-version-0", "version 0 and broker.id everywhere", edit("abc", *ZERO)),
    # directories
    Fault("two-metadata-logs", "the metadata log in another log dir too", _two_metadata_logs),
    Fault("empty-metadata-dir", "an empty __cluster_metadata-0 in another log dir",
          lambda home: (home.root / "b/__cluster_metadata-0").mkdir()),
    Fault("folder", "a folder of no partition", lambda home: (home.root / "b/backup").mkdir()),
    Fault("replaced", "an empty log dir with an id of its own", _replaced),
    # partitions
    Fault("twice", "a partition in two log dirs", _twice),
    Fault("twice-offline", "a partition in two log dirs, one of version 9", _twice_offline),
    Fault("twice-stray", "a partition in two log dirs, one of an unknown topic", _twice_stray),
    Fault("stray", "an unknown topic, in a log dir without the metadata log",
          lambda home: _stray(home.partition("b"))),
    Fault("stray-unclean", "the same, not stopped in order", _stray_unclean),
    Fault("moved", "a partition in another log dir than the assigned one", _move),
    Fault("no-index", "a topic's own settings, in a log dir without the metadata log", _no_index),
    Fault("future", "a copy on its way to another log dir", copies("future", "c")),
    Fault("future-alone", "a copy on its way, and no live one", _future_alone),
    Fault("future-same-dir", "a copy on its way to the same log dir", copies("future", "b")),
    Fault("futures", "copies on their way to two log dirs", copies("future", "ac")),
    Fault("future-assigned", "a copy on its way to the assigned log dir", _assigned),
    Fault("future-assigned-alone", "the same, and no live one", _assigned_alone),
    Fault("future-offline", "a copy on its way, in a log dir that goes offline",
          lambda home: [make(home) for make in (copies("future", "c"), _fails("c"))], True),
    Fault("future-assigned-offline", "a copy in the assigned log dir, which goes offline",
          lambda home: [make(home) for make in (_assigned, _fails("b"))], True),
    Fault("future-stray", "a copy on its way, of an unknown topic", _future_stray),
    Fault("deletes", "two copies that wait for their deletion", copies("delete", "ac")),
    Fault("strays", "two copies that were put aside", copies("stray", "ac")),
)  # fmt: skip


def cases(
    version: str, base: Path, work: Path, names: Collection[str] = ()
) -> Iterator[tuple[Fault, Home]]:
    """Yield each fault with log dirs that have it, below `work`; remove the log dirs afterwards.

    `names` selects faults.
    """
    has_ids = b"directory.id" in (base / "a/meta.properties").read_bytes()
    for fault in FAULTS:
        if (fault.needs_directory_ids and not has_ids) or (names and fault.name not in names):
            continue
        home = Home(work / f"{version}-{fault.name}")
        shutil.copytree(base, home.root)
        fault.make(home)
        yield fault, home
        shutil.rmtree(home.root)
