"""Runs of Kafka's dump tool (DumpLogSegments) on many files with one JVM."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker.install import java_command, major

DUMPABLE = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
"""The suffixes that the dump tool understands; it only says "Ignoring" about other files."""

DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__remote_log_metadata": "--remote-log-metadata-decoder",
}
"""The flag that spells out the records of an internal topic."""

# Linux refuses one argument of 128 KiB or more, and all file names go into one argument.
_ARGUMENT_LIMIT = 100_000

_PROBLEM = re.compile(
    rb"^(?:Mismatches in :|Found timestamp mismatch in :|Found out of order timestamp in :"
    rb"|The following indexed offsets are not found in :"
    rb"|Non-consecutive offsets in :?|Ignoring unknown file )(.+)$"
)


@dataclass
class Dump:
    """The output of the dump tool: one entry for each file, by its path in the root."""

    stdout: dict[str, bytes] = field(default_factory=dict)
    stderr: dict[str, bytes] = field(default_factory=dict)
    """Lines about a file; lines without a file name, such as a stack trace, are under ``""``."""
    failed: list[str] = field(default_factory=list)
    """Files on which the tool ended with an exception."""


def dump(version: str, root: Path, files: Sequence[str], *flags: str) -> Dump:
    """Dump files, given by their paths relative to ``root``, with the given flags.

    Work on a COPY: the tool creates a missing ``.index`` and opens ``.txnindex`` for writing.
    Paths in the output are relative to ``root``. A file that makes the tool fail is listed in
    ``failed`` and the files after it are dumped all the same.

    Indexes of empty logs come last: where the tool fails on one of them, it does so on each.
    """
    result = Dump()
    for group in _groups(files):
        of_empty = {name for name in group if _is_index_of_empty_log(root / name)}
        waiting = sorted(group, key=of_empty.__contains__)
        while waiting:
            stdout, stderr, code = _run(version, root, waiting, flags)
            texts = _split(stdout, waiting)
            result.stdout.update(texts)
            for name, text in _by_file(stderr).items():
                result.stderr[name] = result.stderr.get(name, b"") + text
            if code == 0:
                break
            # The tool gives up at the first exception: the file it printed last is the culprit.
            culprit = max((waiting.index(name) for name in texts), default=0)
            at = len(waiting) if waiting[culprit] in of_empty else culprit + 1
            result.failed += waiting[culprit:at]
            waiting = waiting[at:]
    return result


def _is_index_of_empty_log(path: Path) -> bool:
    """Return whether an index has entries, if only zeros, and its log has no batch.

    The tool takes the first batch at the position of an entry for granted.
    """
    log = path.with_suffix(".log")
    return path.suffix == ".index" and bool(path.stat().st_size) and not log.stat().st_size


def dumpable(root: Path) -> list[str]:
    """Return the sorted paths, relative to ``root``, of the files that the tool understands."""
    found = (path for path in root.rglob("*") if path.suffix in DUMPABLE and path.is_file())
    return sorted(path.relative_to(root).as_posix() for path in found)


def _run(
    version: str, root: Path, files: Sequence[str], flags: Sequence[str]
) -> tuple[bytes, bytes, int]:
    in_tools = "org.apache.kafka.tools.DumpLogSegments"
    main_class = in_tools if major(version) >= 4 else "kafka.tools.DumpLogSegments"
    command = java_command(version, main_class, heap="512m", level="ERROR")
    command += ["--files", ",".join(files), *flags]
    done = subprocess.run(command, cwd=root, capture_output=True, timeout=600, check=False)
    prefix = f"{root.resolve()}/".encode()
    return done.stdout.replace(prefix, b""), done.stderr.replace(prefix, b""), done.returncode


def _groups(files: Sequence[str]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for name in files:
        if group and size + len(name) + 1 > _ARGUMENT_LIMIT:
            yield group
            group, size = [], 0
        group.append(name)
        size += len(name) + 1
    if group:
        yield group


def _split(stdout: bytes, files: Sequence[str]) -> dict[str, bytes]:
    """Cut the output at the headlines of the files, which come in the order they were asked for."""
    texts: dict[str, bytes] = {}
    starts: list[tuple[str, int]] = []
    position = 0
    for name in files:
        headline = f"Dumping {name}\n".encode()
        found = 0 if stdout.startswith(headline) and not starts else -1
        if found < 0:
            found = stdout.find(b"\n" + headline, position)
            found = found + 1 if found >= 0 else -1
        if found < 0:
            break
        starts.append((name, found))
        position = found
    for index, (name, start) in enumerate(starts):
        end = starts[index + 1][1] if index + 1 < len(starts) else len(stdout)
        texts[name] = stdout[start:end]
    return texts


def _by_file(stderr: bytes) -> dict[str, bytes]:
    texts: dict[str, bytes] = {}
    name = ""
    for line in stderr.splitlines(keepends=True):
        match = _PROBLEM.match(line.rstrip(b"\n"))
        if match:
            name = match[1].decode(errors="replace")
        elif not line.startswith((b"  ", b"Indexed offset: ")):
            name = ""
        texts[name] = texts.get(name, b"") + line
    return texts
