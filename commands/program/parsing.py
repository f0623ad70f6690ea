"""Parsers for the values of shared options: sizes, durations, releases, limits, lists of paths."""

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.errors import LogtoolError, UnreadableError, UsageError

if TYPE_CHECKING:
    from logtool.formats.names import TopicPartition
    from logtool.node.host_limits import Limits

KAFKA_VERSIONS = "3.3 to 4.4"
"""Kafka releases that logtool was compared with, in words."""
_LARGEST = 2**63 - 1
"""Timestamps have 64 bits."""
_DAY_MS = 86_400_000
_MOST_PARTITIONS = 10_000
"""Numbers that --partition may name."""
_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DURATIONS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LIMITS = ("nofile", "max_map_count", "heap")


def parse_size(option: str, text: str) -> int:
    """Return bytes for ``4096``, ``200M`` or ``1.5G`` (powers of 1024)."""
    return int(_parse_scaled(option, text, _SIZES, "a size such as 4096, 200M or 1.5G"))


def parse_batch_memory(text: str) -> int:
    """Return the value of --max-batch-memory in bytes."""
    return parse_size("--max-batch-memory", text)


def parse_duration(option: str, text: str) -> float:
    """Return seconds for ``90``, ``90s``, ``500ms``, ``10m``, ``2h`` or ``1d``."""
    return _parse_scaled(option, text, _DURATIONS, "a time such as 90s, 10m or 2h")


def _parse_scaled(option: str, text: str, units: Mapping[str, float], expected: str) -> float:
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]+)?)([a-z]{0,2})", text.strip().lower())
    if not match or match.group(2) not in units or float(match.group(1)) <= 0:
        raise UsageError(f"{option} {text}: expected {expected}")
    return float(match.group(1)) * units[match.group(2)]


def parse_limits(text: str | None) -> "Limits":
    """Return the limits of this host, changed by a text such as ``nofile=100000,heap=6G``.

    UsageError for any other text.
    """
    from logtool.node import host_limits

    limits = host_limits.of_host()
    given: set[str] = set()
    for part in text.split(",") if text is not None else ():
        name, _, value = part.partition("=")
        if name not in _LIMITS or name in given:
            raise UsageError(
                f"--limits {text}: expected nofile=N, max_map_count=N or heap=SIZE, each once, "
                "such as nofile=100000,max_map_count=262144"
            )
        given.add(name)
        number = parse_size("--limits", value)
        if name == "nofile":
            limits = replace(limits, open_files=number)
        elif name == "max_map_count":
            limits = replace(limits, maps=number)
        else:
            limits = replace(limits, heap=number)
    return limits


def now_ms() -> int:
    """Return the present, in ms."""
    return time.time_ns() // 1_000_000


def parse_moment(option: str, text: str) -> tuple[int, str | None]:
    """Return the ms of a time, and a line that explains the time if it is relative.

    UsageError for a text that is not a time.
    """
    from logtool import times

    moment = times.parse_moment(text, now_ms())
    if moment is None or not -_LARGEST - 1 <= moment.first <= _LARGEST:
        raise UsageError(f"{option} {text}: expected {times.EXPECTED}")
    if not moment.is_assumed:
        return moment.first, None
    return moment.first, f"{option} {text} means {times.shown(moment.first)}, in UTC"


def parse_topic_partition(option: str, name: str) -> "TopicPartition":
    """Return topic and number of a partition such as ``orders-3``."""
    from logtool.formats.java_text import parse_int

    topic, _, number = name.rpartition("-")
    partition = parse_int(number)
    if not topic or partition is None or partition < 0:
        raise UsageError(f"{option} {name}: expected TOPIC-PARTITION, such as orders-3")
    return topic, partition


def parse_partitions(texts: Sequence[str]) -> tuple[int, ...]:
    """Return the partitions that ``0``, ``3-5`` and ``0,3-5`` name, each once and rising."""
    found: set[int] = set()
    for text in texts:
        for part in text.split(","):
            match = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", part.strip())
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if not first <= last < 2**31:
                raise UsageError(f"--partition {text}: expected numbers such as 0 or 0,3-5")
            if last - first + len(found) >= _MOST_PARTITIONS:
                raise UsageError(f"--partition {text}: more than {_MOST_PARTITIONS:,} partitions")
            found.update(range(first, last + 1))
    return tuple(sorted(found))


def parse_sample(text: str) -> tuple[int, int]:
    """Return the number of a sample, from 1 on, and the number of samples.

    ``2/7`` is the second of seven. ``5%`` is one of twenty, another one each day: twenty days in a
    row take all of them.
    """
    share = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text)
    percent = re.fullmatch(r"([0-9]{1,3}(?:[.][0-9]{1,3})?)%", text)
    number = count = 0
    if share:
        number, count = int(share[1]), int(share[2])
    elif percent and 0 < float(percent[1]) <= 100:
        count = round(100 / float(percent[1]))
        number = now_ms() // _DAY_MS % count + 1
    if not 1 <= number <= count:
        raise UsageError(f"--sample {text}: expected a share such as 2/7 or 5%")
    return number, count


def parse_conf(settings: Sequence[str] | None) -> dict[str, str]:
    """Return the settings of Spark."""
    pairs = [setting.partition("=") for setting in settings or ()]
    for name, _, value in pairs:
        if not name.startswith("spark.") or not value:
            raise UsageError(f"--conf {name}: expected spark.NAME=VALUE")
    return {name: value for name, _, value in pairs}


def kafka_version(value: str | None) -> tuple[int, int] | None:
    """Return the release that `parse_kafka_version` reads from `value`; None without a value."""
    return None if value is None else parse_kafka_version(value)


def parse_kafka_version(value: str) -> tuple[int, int]:
    """Return (major, minor) of a version such as ``4.3`` or ``3.9.1``.

    UsageError for a release whose features logtool does not know.
    """
    from logtool.metadata import releases

    release = releases.parse(value)
    if release is None:
        raise UsageError(f"--kafka-version {value}: expected {KAFKA_VERSIONS}, or for plan all")
    return release


def all_texts(paths: Sequence[str] | None, files_from: str | None, null: bool) -> list[str]:
    """Return the given paths and the paths in --files-from, otherwise the current directory.

    As text: a Path would make ``s3:/bucket`` of ``s3://bucket``. UsageError if --files-from
    contains no path, or the current directory is neither a log dir nor a partition dir.
    """
    if null and files_from is None:
        raise UsageError("--null requires --files-from")
    listed = [] if files_from is None else _listed(files_from, b"\0" if null else b"\n")
    if paths and "" in paths:
        raise UsageError("a PATH is empty")
    texts = [*(paths or []), *listed]
    if not texts and files_from is not None:
        raise UsageError(f"no PATH: --files-from {files_from} contains no path")
    return texts or [str(here())]


def here() -> Path:
    """Return the current directory, for a command without a path.

    UsageError if the current directory is neither a log dir nor a partition dir.
    """
    from logtool.log import inputs

    expected = "no PATH: the current directory is neither a log dir nor a partition dir"
    try:
        path = Path.cwd()
    except OSError as error:
        raise UsageError(
            f"no PATH: the current directory does not exist: {error.strerror}"
        ) from error
    try:
        inputs.kind_of(path)
    except UnreadableError as error:
        reason = error.reason.removeprefix("nothing matched: ").partition("; expected ")[0]
        raise UsageError(f"{expected}: {path}: {reason}") from error
    return path


def _listed(files_from: str, end: bytes) -> list[str]:
    if files_from == "-" and sys.stdin is None:
        raise LogtoolError("cannot read --files-from -: standard input is closed")
    try:
        data = sys.stdin.buffer.read() if files_from == "-" else Path(files_from).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read --files-from {files_from}: {reason}") from error
    return [os.fsdecode(name) for name in data.split(end) if name]
