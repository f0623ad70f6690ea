"""Files and directories of a log dir that the user of its broker cannot read or write.

They are usual after a tool or a broker was run as root, and after a restore. The user is the owner
of most of the partition dirs, if that is not root and may write to the log dir; else the owner of
the log dir, unless that is root. Owners, groups and modes count; access control lists are not read.

A start needs to write to each directory, and to read each file of a partition. It opens each log
and transaction index for writing, and the indexes of the active segment; those of other segments
only when they are read. Checkpoints are replaced as a whole, through a ``.tmp`` file, so that only
the directory counts. Source: ``LogManager``, ``LogLoader.removeTempFilesAndCollectSwapFiles``,
``LogSegment.open``, ``LazyIndex``, ``FileLock``, ``CheckpointFile`` (Kafka 3.9 and 4.3).
"""

import os
import pwd
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from logtool.disk import expanded, files, shell
from logtool.findings import Broker, Finding
from logtool.formats import names, wording
from logtool.formats.names import FileKind, FileName, FileState, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import LogDir
from logtool.node.node import Node

CODES = ("data-dir/no-access", "data-dir/no-access-later")
"""Codes of the findings."""
_READ, _WRITE, _ENTER = 4, 2, 1
_DIRECTORY = _READ | _WRITE | _ENTER
_WRITTEN = frozenset({FileKind.LOG, FileKind.TRANSACTION_INDEX})
_INDEXES = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX})
_NOT_NEEDED = frozenset({FileKind.CLEAN_SHUTDOWN, FileKind.UNKNOWN})
"""Files of a log dir that a start can do without; a marker counts if it is there."""
_Denied = tuple[str, os.stat_result]
"""Name and status of a file that the user cannot use as a broker does."""


@dataclass(frozen=True, slots=True)
class _User:
    """The user of a broker."""

    uid: int
    gid: int
    groups: frozenset[int]
    name: str

    def lacks(self, status: os.stat_result, rights: int) -> bool:
        """Return whether the user lacks one of some rights to a file."""
        if self.uid == 0:
            return False
        shift = 0
        if status.st_uid == self.uid:
            shift = 6
        elif status.st_gid in self.groups:
            shift = 3
        return rights & ~(status.st_mode >> shift) != 0

    @property
    def shown(self) -> str:
        """Return the name and the number."""
        return f"{self.name} (uid {self.uid})" if self.name else f"uid {self.uid}"


def findings(home: LogDir, *, needed: bool) -> Iterator[Finding]:
    """Yield the faults of access in a log dir, one finding for each directory.

    `needed` says that a broker ends without this log dir, because it has no other one, or because
    this one holds the metadata log. Nothing is yielded for a URL, a case file or Redpanda.
    """
    is_local = not files.is_remote(home.path) and not expanded.is_expanded(home.path)
    if not is_local or not home.flavour.has_checkpoints:
        return
    user = _user_of(home)
    if user is None or user.uid == 0:
        return
    for path, directory in ((home.path, None), *home.partitions):
        # `chown -R` does not follow a link to another file system.
        repair = _repair(path.resolve() if path.is_symlink() else home.path, user)
        for some, at_start in zip(_denied(path, directory, user), (True, False), strict=True):
            if some:
                what = path, directory, some, user, repair
                yield _finding(*what, at_start=at_start, needed=needed)


def of_node(home: LogDir, nodes: Mapping[Path, Node]) -> Iterator[Finding]:
    """Yield the findings about a log dir of a node, which `nodes` has by log dir."""
    node = nodes.get(home.path)
    return findings(home, needed=node is None or is_needed(node, home.path))


def is_needed(node: Node, log_dir: Path) -> bool:
    """Return whether the broker of a node ends without a log dir."""
    holder = node.metadata_log
    is_holder = holder is not None and holder.path == log_dir
    return is_holder or sum(not one.has_only_metadata_log for one in node.log_dirs) <= 1


def other_owner(log_dir: Path) -> str | None:
    """Return ``UID:GID`` of the broker of a log dir; None if that is the user who asks.

    Raises UnreadableError.
    """
    user = _user_of(opening.open_log_dir(log_dir))
    return None if user is None or user.uid == os.geteuid() else f"{user.uid}:{user.gid}"


def _user_of(home: LogDir) -> _User | None:
    with suppress(OSError):
        status = home.path.stat()
        owner = _user(status.st_uid, status.st_gid)
        owners = Counter(
            (one.st_uid, one.st_gid) for path, _ in home.partitions if (one := _status(path))
        )
        if not owners:
            return owner
        usual = _user(*owners.most_common(1)[0][0])
        may_write = usual.uid != 0 and not usual.lacks(status, _DIRECTORY)
        return usual if may_write or owner.uid == 0 else owner
    return None


def _user(uid: int, gid: int) -> _User:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a user of another machine
        return _User(uid, gid, frozenset({gid}), "")
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return _User(uid, gid, frozenset({gid, *groups}), entry.pw_name)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _repair(path: Path, user: _User) -> str:
    place = shell.path(path)
    return f"chown -h -R {user.uid}:{user.gid} {place} && chmod -R u+rwX {place}"


def _denied(
    path: Path, directory: PartitionDirectory | None, user: _User
) -> tuple[list[_Denied], list[_Denied]]:
    """Return the files that a start cannot use in a directory, and those needed later."""
    now: list[_Denied] = []
    later: list[_Denied] = []
    with suppress(OSError):  # reported where the directory is read
        own = path.stat()
        if user.lacks(own, _DIRECTORY):
            now.append((".", own))
        with os.scandir(path) as entries:
            listed = [(one.name, one) for one in entries if not one.is_dir()]
        active = _active(name for name, _ in listed)
        for name, entry in listed:
            with suppress(OSError):
                status = entry.stat()
                if user.lacks(status, _READ | _WRITE):
                    known = _named(name, directory)
                    rights = _rights(known, active) if directory else _rights_at_root(known)
                    if user.lacks(status, rights):
                        now.append((name, status))
                    elif user.lacks(status, _rights_later(known)):
                        later.append((name, status))
    return sorted(now, key=_name), sorted(later, key=_name)


def _name(one: _Denied) -> str:
    return one[0]


def _named(name: str, directory: PartitionDirectory | None) -> FileName:
    if directory is None:
        return names.parse_root_file(name)
    return names.parse_partition_file(name, metadata_log=directory.topic == names.CLUSTER_METADATA)


def _active(listed: Iterator[str]) -> int | None:
    """Return the base offset of the active segment among file names; None without a log."""
    found = map(names.parse_partition_file, listed)
    offsets = (
        one.offset for one in found if one.kind is FileKind.LOG and one.state is FileState.LIVE
    )
    return max((one for one in offsets if one is not None), default=None)


def _rights(name: FileName, active: int | None) -> int:
    """Return the rights that a start needs to a file of a partition."""
    is_active = name.kind in _INDEXES and name.offset == active
    if name.state is FileState.LIVE and (name.kind in _WRITTEN or is_active):
        return _READ | _WRITE
    return _READ


def _rights_at_root(name: FileName) -> int:
    """Return the rights that a start needs to a file of a log dir."""
    if name.state is not FileState.LIVE or name.kind in _NOT_NEEDED:
        return 0
    return _READ | _WRITE if name.kind is FileKind.LOCK else _READ


def _rights_later(name: FileName) -> int:
    """Return the rights that a broker needs to a file after its start."""
    is_used = name.kind in _INDEXES or name.state is FileState.TEMPORARY
    return _READ | _WRITE if is_used else 0


def _finding(
    path: Path,
    directory: PartitionDirectory | None,
    some: Sequence[_Denied],
    user: _User,
    repair: str,
    *,
    at_start: bool,
    needed: bool,
) -> Finding:
    name, status = some[0]
    lacking = [
        verb for right, verb in ((_READ, "read"), (_WRITE, "write")) if user.lacks(status, right)
    ]
    what = "the directory" if name == "." else name
    owner = _user(status.st_uid, status.st_gid).shown
    text = (
        f"the broker runs as {user.shown}, which cannot {' or '.join(lacking) or 'enter'} {what}: "
        f"it belongs to {owner}, with mode {stat.S_IMODE(status.st_mode):04o}"
    )
    if len(some) > 1:
        text += f"; the same holds for {wording.count(len(some) - 1, 'other file')} here"
    place = path if name == "." else path / name
    topic = directory.topic if directory else None
    number = directory.partition if directory else None
    ends = "the broker ends" if needed else "the broker takes the log dir offline"
    if not at_start:
        text += f"; {ends} once it uses {'it' if len(some) == 1 else 'one of them'}"
        return Finding(
            "data-dir/no-access-later", text, path=place, topic=topic, partition=number, next=repair
        )
    return Finding(
        "data-dir/no-access", f"{text}; {ends}", path=place, topic=topic, partition=number,
        next=repair, broker_override=Broker.REFUSES if needed else Broker.ALWAYS,
    )  # fmt: skip
