"""The election state of a KRaft voter (``quorum-state`` in ``__cluster_metadata-0``).

One line of JSON without line end; what follows the first line is ignored.

====================  =========  ============  =========================================
key                   type       data_version
====================  =========  ============  =========================================
``data_version``      number     0, 1
``leaderId``          int32      0, 1          -1 if unknown
``leaderEpoch``       int32      0, 1
``votedId``           int32      0, 1          -1 if no vote was given in this epoch
``votedDirectoryId``  UUID       1             all zero if no vote was given
``clusterId``         string     0
``appliedOffset``     int64      0
``currentVoters``     list       0             of objects with ``voterId``, or null
====================  =========  ============  =========================================

Every key of a version is mandatory. Source: ``FileQuorumStateStore``, ``QuorumStateData.json``
(Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

from collections.abc import Callable, Iterator
from typing import Any

from logtool.findings import Finding
from logtool.formats.java_text import (
    Line,
    json_int,
    json_long,
    parse_json_object,
    parse_uuid,
    split_lines,
)
from logtool.formats.refusal import Refusal
from logtool.lazy_dataclass import dataclass

VERSION_KEY = "data_version"


@dataclass(frozen=True, slots=True)
class QuorumState:
    """Fields of the first line; None for a key that is missing or malformed."""

    lines: tuple[Line, ...]
    """Every line with its bytes: the whole file."""
    content: dict[str, Any] | None
    """The JSON object; None if the line is not a JSON object."""
    data_version: int | None
    leader_id: int | None
    leader_epoch: int | None
    voted_id: int | None
    voted_directory_id: str | None
    current_voters: tuple[int, ...] | None
    """None in version 1, where it is null, and where it is malformed."""


def parse(data: bytes) -> QuorumState:
    """Read the first line of `data`. Never fails; see `check`."""
    lines = split_lines(data)
    text = lines[0].text if lines else None
    content = None if text is None else parse_json_object(text)
    fields = content or {}
    return QuorumState(
        lines,
        content,
        data_version=json_int(fields.get(VERSION_KEY)),
        leader_id=json_int(fields.get("leaderId")),
        leader_epoch=json_int(fields.get("leaderEpoch")),
        voted_id=json_int(fields.get("votedId")),
        voted_directory_id=_uuid(fields.get("votedDirectoryId")),
        current_voters=_voters(fields.get("currentVoters")),
    )


def encode(state: QuorumState) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return b"".join(line.raw for line in state.lines)


def check(state: QuorumState) -> Iterator[Finding]:
    """Yield every broken rule."""
    if not state.lines:
        yield Finding(
            "quorum-state/malformed", "expected a line of JSON, found an empty file", position=0
        )
        return
    (line, *_) = state.lines
    if state.content is None:
        yield _finding("malformed", line, f"a JSON object, found {line.quoted}")
        return
    if state.data_version not in _KEYS:
        yield _finding(
            "version", line, f"{VERSION_KEY} 0 or 1, found {_found(state.content, VERSION_KEY)}"
        )
    for key, (expected, accepts) in _KEYS.get(state.data_version, {}).items():
        if key not in state.content or not accepts(state.content[key]):
            yield _finding(
                "malformed", line, f"{expected} {key}, found {_found(state.content, key)}"
            )


def refusal(state: QuorumState, *, any_version: bool = False, newest: int = 1) -> Refusal | None:
    """Return where a node's reader gives up; None if it accepts the file.

    A line that is not JSON, or that has no version, is an I/O error; every other error is a runtime
    error. `any_version` takes each version for 0, as 3.3 does; `newest` is the newest version that
    is known. Source: ``FileQuorumStateStore`` (Kafka 3.3 to 4.4).
    """
    line = state.lines[0] if state.lines else None
    if line is None or state.content is None or VERSION_KEY not in state.content:
        found = line.quoted if line else "an empty file"
        expected = f"expected a JSON object with {VERSION_KEY}"
        return Refusal(f"{expected}, found {found}", 0, is_io_error=True)
    # What is no number counts as 0.
    version = state.data_version or 0
    if any_version:
        version = 0
    if version not in _KEYS or version > newest:
        known = " or ".join(str(one) for one in range(newest + 1))
        return Refusal(f"expected {VERSION_KEY} {known}, found {version}", 0, is_io_error=False)
    for key, (expected, accepts) in _KEYS[version].items():
        if key not in state.content or not accepts(state.content[key]):
            text = f"expected {expected} {key}, found {_found(state.content, key)}"
            return Refusal(text, 0, is_io_error=False)
    return None


def _is_int(value: Any) -> bool:
    return json_int(value) is not None


def _uuid(value: Any) -> str | None:
    return parse_uuid(value) if isinstance(value, str) else None


def _voters(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    ids = [json_int(voter.get("voterId")) if isinstance(voter, dict) else None for voter in value]
    whole = tuple(voter for voter in ids if voter is not None)
    return whole if len(whole) == len(ids) else None


def _found(content: dict[str, Any], key: str) -> str:
    if key not in content:
        return "none"
    value = content[key]
    # What is nested is not printed: it may be as deep as the stack.
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else f"{value!a:.60}"


def _finding(rule: str, line: Line, expected: str) -> Finding:
    return Finding(
        f"quorum-state/{rule}",
        f"line {line.number}: expected {expected}",
        position=line.position,
        length=len(line.raw),
    )


_ALWAYS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "leaderId": ("an int32", _is_int),
    "leaderEpoch": ("an int32", _is_int),
    "votedId": ("an int32", _is_int),
}
_KEYS: dict[int | None, dict[str, tuple[str, Callable[[Any], bool]]]] = {
    0: _ALWAYS
    | {
        "clusterId": ("a string", lambda value: isinstance(value, str)),
        "appliedOffset": ("an int64", lambda value: json_long(value) is not None),
        "currentVoters": (
            "a list of voters or null",
            lambda v: v is None or _voters(v) is not None,
        ),
    },
    1: _ALWAYS | {"votedDirectoryId": ("a UUID", lambda value: _uuid(value) is not None)},
}
