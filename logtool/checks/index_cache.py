"""The indexes of remote segments that a broker keeps in ``remote-log-index-cache``, at its start.

A broker with remote storage reads the directory in the first of its log dirs before it serves. A
set of the three indexes of a segment stays if each of them passes the checks of that index; a
fault, and a name without a segment id, stop the broker. Of an incomplete set every file is deleted.
Files that were to be deleted, and downloads that were not finished, are deleted since Kafka 4.1
(KAFKA-18787); before, they stay. All indexes are fetched again from remote storage when they are
needed. Source: ``RemoteIndexCache.init`` (Kafka 3.9.2, 4.0.1, 4.1.0 and 4.3.1; brokers of 3.9.2 and
4.3.1 were tried).
"""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from logtool.checks import index_sanity
from logtool.disk import files
from logtool.findings import Finding
from logtool.formats import names
from logtool.formats.java_text import parse_long, parse_uuid
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import LogDir
from logtool.node import own_file

_KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
_PASSING = (".deleted", ".tmp")


@dataclass(slots=True)
class IndexCache:
    """The files of the directory, by what a start does with them."""

    path: Path
    kept: int = 0
    """Segments whose three indexes stay."""
    passing: list[Path] = field(default_factory=list)
    """Files that were to be deleted, or whose download was not finished."""
    incomplete: list[Path] = field(default_factory=list)
    """Indexes of segments that lack one."""
    faults: list[Finding] = field(default_factory=list)
    """Reasons for which the broker does not start."""


def check(home: LogDir, static: Mapping[str, str]) -> list[Finding]:
    """Return why files of the directory stop the broker; UnreadableError."""
    cache = read(home, static)
    return cache.faults if cache else []


def read(home: LogDir, static: Mapping[str, str]) -> IndexCache | None:
    """Return the directory in a log dir; None if a broker reads none there. UnreadableError.

    `static` are the settings in the broker's own file.
    """
    first = own_file.first_log_dir(static)
    is_off = own_file.switch(static, own_file.REMOTE_STORAGE) is False
    if not home.has_index_cache or is_off or first not in (None, files.real_path(home.path)):
        return None
    cache = IndexCache(home.path / names.REMOTE_INDEX_CACHE)
    sets: dict[str, list[str]] = {}
    for entry in files.list_dir(cache.path):
        if entry.name.endswith(_PASSING):
            cache.passing.append(cache.path / entry.name)
        else:
            sets.setdefault(entry.name.partition(".")[0], []).append(entry.name)
    for base, found in sets.items():
        there = [cache.path / f"{base}{kind}" for kind in _KINDS if f"{base}{kind}" in found]
        offset, segment_id = _parts(base)
        if segment_id is None or found[0] == base:
            cache.faults.append(_fault("the name is not that of an index", cache.path / found[0]))
        elif len(there) < len(_KINDS):
            cache.incomplete += there
        elif offset is None:
            cache.faults.append(_fault("the name has no offset", there[0]))
        elif fault := _bad_index(there, offset):
            cache.faults.append(fault)
        else:
            cache.kept += 1
    return cache


def _parts(base: str) -> tuple[int | None, str | None]:
    """Return offset and segment id in a name without its suffixes; None for one it lacks."""
    offset, line, segment_id = base.partition("_")
    return (parse_long(offset), parse_uuid(segment_id)) if line else (None, parse_uuid(base))


def _fault(message: str, path: Path, position: int | None = None) -> Finding:
    return Finding("data-dir/index-cache", message, path=path, position=position)


def _bad_index(paths: list[Path], offset: int) -> Finding | None:
    """Return the finding of the first index of a set that a broker does not take."""
    for kind, path in zip(_KINDS, paths, strict=True):
        with files.LogFile(path) as file:
            fault = index_sanity.CHECKS[kind](file.read, file.size, offset)
        if fault:
            return _fault(fault.message, path, fault.position)
    return None
