"""The options that commands share: the same name and meaning everywhere.

A command takes only those that it honours. Each is a type for a parameter; a default is given
where the parameter stands.
"""

import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool import files
from logtool.commands.output import Settings
from logtool.errors import LogtoolError, UsageError
from logtool.findings import Severity

if TYPE_CHECKING:
    from logtool.data_dir import Selection

_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DURATIONS = {"": 1, "s": 1, "m": 60, "h": 3600}


def local_path(text: str) -> Path:
    """Return a path that is read and written on this system only; UsageError for a URL."""
    path = files.path_of(text)
    if files.is_remote(path):
        raise UsageError(f"{text}: expected a local path, not a URL")
    return path


class Format(StrEnum):
    """How stdout looks."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    TSV = "tsv"
    MARKDOWN = "markdown"


class DumpFormat(StrEnum):
    """As `Format`, the lines of Kafka's own tool, and a file of columns."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    TSV = "tsv"
    MARKDOWN = "markdown"
    KAFKA = "kafka"
    PARQUET = "parquet"


class ValuesChoice(StrEnum):
    """How bytes of a log are printed; see `logtool.dump.values.Values`."""

    UTF8 = "utf8"
    HEX = "hex"
    BASE64 = "base64"
    LEN = "len"


class Color(StrEnum):
    """When to use colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


Paths = Annotated[
    # Not Path: that would take an empty string for the current directory.
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="Log dirs, partition dirs or files, here or behind a URL such as s3://bucket/dir.",
        show_default=False,
    ),
]
LocalPaths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Log dirs, partition dirs or files.", show_default=False),
]
FilesFrom = Annotated[
    str | None,
    typer.Option(
        "--files-from",
        metavar="FILE",
        help="Take more paths from FILE, one a line; - is standard input.",
    ),
]
Null = Annotated[
    bool, typer.Option("--null", help="In --files-from, paths end with NUL, not with a line end.")
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="GLOB", help="Of a log dir, take only topics that match; repeatable."
    ),
]
ExcludeTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-topic", metavar="GLOB", help="Leave out topics that match; repeatable."
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition", metavar="N", help="Of a log dir, take only partitions N; repeatable."
    ),
]
FormatOption = Annotated[
    Format, typer.Option("-f", "--format", help="How standard output looks.", show_default=True)
]
DumpFormatOption = Annotated[
    DumpFormat,
    typer.Option(
        "-f",
        "--format",
        help="How standard output looks; kafka prints the lines of kafka-dump-log.sh, parquet "
        "writes --output and prints nothing.",
        show_default=True,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
FailOn = Annotated[
    Severity,
    typer.Option("--fail-on", help="Lowest severity that makes the exit status 1."),
]
MaxFindings = Annotated[
    int | None,
    typer.Option(
        "--max-findings", metavar="N", min=0, help="Print at most N findings; count them all."
    ),
]
ColorOption = Annotated[
    Color,
    typer.Option("--color", help="auto: on a terminal, unless NO_COLOR is set or TERM is dumb."),
]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show progress on standard error; by default if that is a terminal.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j", "--jobs", metavar="N", min=1, help="Threads; by default one for each processor."
    ),
]
MaxRate = Annotated[
    str | None,
    typer.Option(
        "--max-rate", metavar="SIZE", help="Read at most SIZE a second, such as 200M, in all."
    ),
]
MaxDuration = Annotated[
    str | None,
    typer.Option(
        "--max-duration",
        metavar="TIME",
        help="Stop after TIME, such as 90s, 10m or 2h, and report what was checked.",
    ),
]
NEWEST_KAFKA = "4.3"
_KAFKA_VERSION = "3.3, 3.7, 3.9 or 4.3"
KafkaVersion = Annotated[
    str | None,
    typer.Option(
        "--kafka-version", metavar="X.Y",
        help=f"Release of the broker that will start: {_KAFKA_VERSION}. By default the nearest to "
        "that which registered last in the metadata log, else 4.3.",
    ),
]  # fmt: skip
OneKafkaVersion = Annotated[
    str,
    typer.Option(
        "--kafka-version", metavar="X.Y", help=f"Release of the brokers: {_KAFKA_VERSION}.",
        show_default=True,
    ),
]  # fmt: skip
IndexInterval = Annotated[
    int | None,
    typer.Option(
        "--index-interval-bytes", metavar="N", min=0,
        help="index.interval.bytes of all topics; by default what the metadata log of the broker "
        "says of each, else 4096. Give log.index.interval.bytes of the broker where it is set.",
    ),
]  # fmt: skip
IndexSize = Annotated[
    int | None,
    typer.Option(
        "--index-size-max-bytes", metavar="N", min=12,
        help="segment.index.bytes of all topics; by default what the metadata log of the broker "
        "says of each, else 10485760. Give log.index.size.max.bytes of the broker where it is set.",
    ),
]  # fmt: skip
Apply = Annotated[
    bool, typer.Option("--apply", help="Do it; without this nothing is written, only shown.")
]
UndoDir = Annotated[
    Path | None,
    typer.Option(
        "--undo-dir", metavar="DIR", parser=local_path,
        help="Where to keep what is needed to go back; by default beside the log dir.",
    ),
]  # fmt: skip
Master = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL",
        help="Of Spark: where it runs; by default this machine, with a core for each processor.",
    ),
]  # fmt: skip
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="NAME=VALUE", help="A setting of Spark, spark.NAME=VALUE; repeatable."
    ),
]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="On standard error, print errors and nothing else.")
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print more for people.")]


def settings(
    chosen: StrEnum,
    as_json: bool,
    color: Color,
    *,
    quiet: bool = False,
    verbose: bool = False,
    progress: bool | None = None,
) -> Settings:
    """Return what the options say about printing; UsageError where they contradict each other."""
    if as_json and chosen not in ("table", "json"):
        raise UsageError(f"--json and --format {chosen} contradict each other")
    if quiet and verbose:
        raise UsageError("--quiet and --verbose contradict each other")
    return Settings("json" if as_json else str(chosen), str(color), quiet, verbose, progress)


def parse_size(option: str, text: str) -> int:
    """Return bytes for ``4096``, ``200M`` or ``1.5G`` (powers of 1024)."""
    return int(_parse_scaled(option, text, _SIZES, "a size such as 4096, 200M or 1.5G"))


def parse_duration(option: str, text: str) -> float:
    """Return seconds for ``90``, ``90s``, ``10m`` or ``2h``."""
    return _parse_scaled(option, text, _DURATIONS, "a time such as 90s, 10m or 2h")


def _parse_scaled(option: str, text: str, units: dict[str, int], expected: str) -> float:
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]+)?)([a-z]?)", text.strip().lower())
    if not found or found.group(2) not in units or float(found.group(1)) <= 0:
        raise UsageError(f"{option} {text}: expected {expected}")
    return float(found.group(1)) * units[found.group(2)]


def parse_conf(settings: Sequence[str] | None) -> dict[str, str]:
    """Return the settings of Spark."""
    found = [setting.partition("=") for setting in settings or ()]
    for name, _, value in found:
        if not name.startswith("spark.") or not value:
            raise UsageError(f"--conf {name}: expected spark.NAME=VALUE")
    return {name: value for name, _, value in found}


def kafka_version(value: str | None) -> tuple[int, int] | None:
    """Return what `parse_kafka_version` does; None where none is given."""
    return None if value is None else parse_kafka_version(value)


def parse_kafka_version(value: str) -> tuple[int, int]:
    """Return (major, minor) of a version such as ``4.3`` or ``3.9.1``.

    UsageError for a release that was not held against its broker.
    """
    from logtool import releases

    found = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})(\.[0-9]+)*", value)
    release = (int(found.group(1)), int(found.group(2))) if found else None
    if release not in releases.KNOWN:
        raise UsageError(
            f"--kafka-version {value}: what a start does is known of {_KAFKA_VERSION} alone, which "
            "were held against their brokers; give the nearest that is not newer"
        )
    return release


def selection(
    topics: Sequence[str] | None, exclude_topics: Sequence[str] | None,
    partitions: Sequence[int] | None,
) -> "Selection":  # fmt: skip
    """Return which partitions of log dirs are meant."""
    from logtool.data_dir import Selection

    return Selection(tuple(topics or ()), tuple(exclude_topics or ()), tuple(partitions or ()))


def all_paths(paths: Sequence[str] | None, files_from: str | None, null: bool) -> list[Path]:
    """Return the paths of `all_texts`; UsageError for a URL that leads nowhere."""
    return [files.path_of(text) for text in all_texts(paths, files_from, null)]


def local_paths(paths: Sequence[str] | None, files_from: str | None, null: bool) -> list[Path]:
    """Return the paths of `all_texts` for a command that cannot do its job behind a URL."""
    found = all_paths(paths, files_from, null)
    for path in found:
        if files.is_remote(path):
            raise UsageError(f"{path}: this command works on local paths, not behind a URL")
    return found


def all_texts(paths: Sequence[str] | None, files_from: str | None, null: bool) -> list[str]:
    """Return the paths given and those that --files-from names; UsageError where there are none.

    As text: a Path would make ``s3:/bucket`` of ``s3://bucket``.
    """
    if null and files_from is None:
        raise UsageError("--null says how --files-from is read, which is missing")
    listed = [] if files_from is None else _listed(files_from, b"\0" if null else b"\n")
    if paths and "" in paths:
        raise UsageError("a PATH is empty")
    found = [*(paths or []), *listed]
    if not found:
        where = f"{files_from} names none" if files_from else "give at least one"
        raise UsageError(f"no PATH: {where}")
    return found


def _listed(files_from: str, end: bytes) -> list[str]:
    if files_from == "-" and sys.stdin is None:
        raise LogtoolError("cannot read --files-from -: standard input is closed")
    try:
        data = sys.stdin.buffer.read() if files_from == "-" else Path(files_from).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read --files-from {files_from}: {reason}") from error
    return [os.fsdecode(name) for name in data.split(end) if name]
