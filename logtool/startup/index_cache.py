"""The indexes of remote segments that a broker keeps in ``remote-log-index-cache``, at its start.

A broker with remote storage reads the directory in the first of its log dirs before it serves. A
set of the three indexes of a segment stays if each of them passes the checks of that index; a
fault, and a name without a segment id, stop the broker. Of an incomplete set every file is deleted.
Files that were to be deleted, and downloads that were not finished, are deleted since Kafka 4.1
(KAFKA-18787); before, they stay. All indexes are fetched again from remote storage when they are
needed. Source: ``RemoteIndexCache.init`` (Kafka 3.9.2, 4.0.1, 4.1.0 and 4.3.1; a broker of 4.3.1
was tried).
"""

from collections.abc import Iterator
from pathlib import Path

from logtool.actions import Action, FileChange
from logtool.checks import index_sanity
from logtool.disk import files
from logtool.formats import names
from logtool.formats.java_text import parse_long, parse_uuid
from logtool.formats.names import FileKind

_KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
_PASSING = (".deleted", ".tmp")
_REMOVES_PASSING = (4, 1)
"""The release since which a start deletes files with these suffixes."""
_AGAIN = "the broker fetches the indexes again when it needs them"


def actions(log_dir: Path, kafka: tuple[int, int]) -> Iterator[Action]:
    """Yield the actions of a start on the directory in a log dir; UnreadableError."""
    cache = log_dir / names.REMOTE_INDEX_CACHE
    if not files.has_dir(cache):
        return
    sets: dict[str, list[str]] = {}
    kept = passing = 0
    for entry in files.list_dir(cache):
        if entry.name.endswith(_PASSING):
            passing += 1
            if kafka >= _REMOVES_PASSING:
                why = "was to be deleted, or its download was not finished"
                yield Action(action=str(FileChange.REMOVE), path=cache / entry.name, reason=why)
                continue
        sets.setdefault(entry.name.partition(".")[0], []).append(entry.name)
    for base, found in sets.items():
        there = [f"{base}{kind}" for kind in _KINDS if f"{base}{kind}" in found]
        offset, segment_id = _parts(base)
        if segment_id is None or found[0] == base:
            yield _refusal(cache / found[0], "the name is not that of an index")
        elif len(there) < len(_KINDS):
            why = f"the set of segment {segment_id} lacks an index: {_AGAIN}"
            for name in there:
                yield Action(action=str(FileChange.REMOVE), path=cache / name, reason=why)
        elif offset is None:
            yield _refusal(cache / there[0], "the name has no offset")
        elif fault := _fault(cache, base, offset):
            yield fault
        else:
            kept += 1
    text = f"the start keeps the indexes of {kept} remote segment{'s' if kept != 1 else ''}"
    if passing and kafka < _REMOVES_PASSING:
        text += f"; {passing} file{'s' if passing != 1 else ''} with the suffix "
        text += f"{' or '.join(_PASSING)} stay{'s' if passing == 1 else ''}, too"
    yield Action(action="tiered", path=cache, reason=text)


def _parts(base: str) -> tuple[int | None, str | None]:
    """Return offset and segment id in a name without its suffixes; None for one it lacks."""
    offset, line, segment_id = base.partition("_")
    return (parse_long(offset), parse_uuid(segment_id)) if line else (None, parse_uuid(base))


def _refusal(path: Path, why: str, position: int | None = None) -> Action:
    text = f"the broker does not start: {why}; move the file away, and {_AGAIN}"
    return Action(action="refuse", path=path, reason=text, position=position)


def _fault(cache: Path, base: str, offset: int) -> Action | None:
    """Return the refusal for the first index of a whole set that a broker does not take."""
    for kind in _KINDS:
        path = cache / f"{base}{kind}"
        with files.LogFile(path) as file:
            fault = index_sanity.CHECKS[kind](file.read, file.size, offset)
        if fault:
            return _refusal(path, fault.message, fault.position)
    return None
