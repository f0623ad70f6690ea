"""What the values of shared options say: sizes, durations, releases, and lists of paths."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from logtool.errors import LogtoolError, UsageError

KAFKA_VERSIONS = "3.3, 3.7, 3.9 or 4.3"
"""The releases whose start is known, in words."""
_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DURATIONS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_size(option: str, text: str) -> int:
    """Return bytes for ``4096``, ``200M`` or ``1.5G`` (powers of 1024)."""
    return int(_parse_scaled(option, text, _SIZES, "a size such as 4096, 200M or 1.5G"))


def parse_batch_memory(text: str) -> int:
    """Return what --max-batch-memory says, in bytes."""
    return parse_size("--max-batch-memory", text)


def parse_duration(option: str, text: str) -> float:
    """Return seconds for ``90``, ``90s``, ``10m`` or ``2h``."""
    return _parse_scaled(option, text, _DURATIONS, "a time such as 90s, 10m or 2h")


def _parse_scaled(option: str, text: str, units: dict[str, int], expected: str) -> float:
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]+)?)([a-z]?)", text.strip().lower())
    if not match or match.group(2) not in units or float(match.group(1)) <= 0:
        raise UsageError(f"{option} {text}: expected {expected}")
    return float(match.group(1)) * units[match.group(2)]


def parse_conf(settings: Sequence[str] | None) -> dict[str, str]:
    """Return the settings of Spark."""
    pairs = [setting.partition("=") for setting in settings or ()]
    for name, _, value in pairs:
        if not name.startswith("spark.") or not value:
            raise UsageError(f"--conf {name}: expected spark.NAME=VALUE")
    return {name: value for name, _, value in pairs}


def kafka_version(value: str | None) -> tuple[int, int] | None:
    """Return what `parse_kafka_version` does; None where none is given."""
    return None if value is None else parse_kafka_version(value)


def parse_kafka_version(value: str) -> tuple[int, int]:
    """Return (major, minor) of a version such as ``4.3`` or ``3.9.1``.

    UsageError for a release that was not held against its broker.
    """
    from logtool.metadata import releases

    match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})(\.[0-9]+)*", value)
    release = (int(match.group(1)), int(match.group(2))) if match else None
    if release not in releases.KNOWN:
        raise UsageError(
            f"--kafka-version {value}: what a start does is known of {KAFKA_VERSIONS} alone, which "
            "were held against their brokers; give the nearest that is not newer"
        )
    return release


def all_texts(paths: Sequence[str] | None, files_from: str | None, null: bool) -> list[str]:
    """Return the paths given and those that --files-from names; UsageError where there are none.

    As text: a Path would make ``s3:/bucket`` of ``s3://bucket``.
    """
    if null and files_from is None:
        raise UsageError("--null says how --files-from is read, which is missing")
    listed = [] if files_from is None else _listed(files_from, b"\0" if null else b"\n")
    if paths and "" in paths:
        raise UsageError("a PATH is empty")
    texts = [*(paths or []), *listed]
    if not texts:
        where = f"{files_from} names none" if files_from else "give at least one"
        raise UsageError(f"no PATH: {where}")
    return texts


def _listed(files_from: str, end: bytes) -> list[str]:
    if files_from == "-" and sys.stdin is None:
        raise LogtoolError("cannot read --files-from -: standard input is closed")
    try:
        data = sys.stdin.buffer.read() if files_from == "-" else Path(files_from).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read --files-from {files_from}: {reason}") from error
    return [os.fsdecode(name) for name in data.split(end) if name]
