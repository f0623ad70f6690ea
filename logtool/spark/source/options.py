"""The options of the data source ``kafka-log``: the values of each, and their meaning.

Spark does not distinguish upper and lower case in their names. An unknown option is refused: if it
were ignored, rows would look complete that are not.
"""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from logtool.disk import remote
from logtool.errors import UsageError
from logtool.formats import compression
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import Selection
from logtool.schemas.arrow import Payload
from logtool.spark.source import (
    catalog_table,
    finding_rows,
    kafka_options,
    kafka_table,
    question_rows,
)
from logtool.spark.source.reading import TABLES
from logtool.spark.source.wanted import RowFilter, parse_offsets

_OF_ROWS: Final = ("startingTimestamp", "endingTimestamp")
_OF_RECORDS: Final = ("payload", "maxDecompressedBytes", "showSecrets")
_ALSO: Final = (
    (kafka_table.NAME, "maxDecompressedBytes"),
    (finding_rows.NAME, "maxDecompressedBytes"),
)
_WITHOUT_TIMES: Final = ("segments", finding_rows.NAME, *question_rows.TABLES)
"""Tables whose rows have no single time; they change, so that they cannot be streamed."""
_OPTIONS: Final = (
    "table", "topic", "partition", "startingOffsets", "endingOffsets", *_OF_ROWS, *_OF_RECORDS,
    "bundleBytes", "prune", "failOnDataLoss", *kafka_options.ONLY_KAFKA,
)  # fmt: skip
_NOT_STREAMED: Final = ("endingOffsets", "endingTimestamp", kafka_options.TIMES[1], "prune")
_KNOWN: Final = {name.lower(): name for name in _OPTIONS}
_OF_SPARK: Final = ("path", "paths")


@dataclass(frozen=True, slots=True)
class Options:
    """The parsed options of one DataFrame."""

    table: str
    paths: tuple[Path, ...]
    """Absolute paths."""
    wanted: RowFilter
    payload: Payload
    prune: bool
    max_decompressed_bytes: int
    bundle_bytes: int | None
    fail_on_data_loss: bool
    include_headers: bool
    """Used by the table ``kafka`` only."""
    show_secrets: bool
    """Used by the table ``records`` only."""
    min_partitions: int | None = None
    """Least number of tasks; used by the table ``kafka`` only."""
    without_effect: tuple[str, ...] = ()
    """Options about a broker or a consumer, in lower case; only the table ``kafka`` takes them."""


def parse(options: Mapping[str, str], *, stream: bool = False) -> Options:
    """Parse the options; UsageError for a value or a combination that makes no sense."""
    given = catalog_table.options_of(
        {name.lower(): value for name, value in options.items()}, _KNOWN
    )
    of_kafka = given.get("table") == kafka_table.NAME
    ignored = kafka_options.without_effect(given, stream=stream) if of_kafka else ()
    given = {name: value for name, value in given.items() if name not in ignored}
    _refuse_limits(given)
    _refuse_unknown(given)
    found = _Texts(given)
    table = found.one_of("table", TABLES)
    fails = found.one_of("failOnDataLoss", ("true", "false")) == "true"
    if stream:
        _check_stream(table, given)
    for name in _OF_ROWS:
        if table in _WITHOUT_TIMES and name.lower() in given:
            raise UsageError(f"option {name} applies to records and batches, not to {table}")
    for name in _OF_RECORDS:
        if name.lower() in given and table != "records" and (table, name) not in _ALSO:
            raise UsageError(f"option {name} applies to the table records, not to {table}")
    _check_kafka(table, given)
    starting, ending = (found.number(name, "milliseconds since 1970") for name in _OF_ROWS)
    return Options(
        table=table,
        paths=_paths(given),
        wanted=RowFilter(
            selection=Selection(
                topics=found.list("subscribe" if "subscribe" in given else "topic"),
                partitions=found.numbers("partition"),
                keys=kafka_options.assigned(given.get("assign")),
            ),
            starting_offsets=parse_offsets(
                "startingOffsets", found.text("startingOffsets", "earliest")
            ),
            ending_offsets=parse_offsets("endingOffsets", found.text("endingOffsets", "latest")),
            starting_timestamp=None if of_kafka else starting,
            ending_timestamp=None if of_kafka else ending,
            topic_pattern=kafka_options.pattern(given.get("subscribepattern")),
            times=kafka_options.times(given, starting, ending) if of_kafka else None,
        ),
        payload=Payload(found.one_of("payload", tuple(Payload))),
        prune=found.one_of("prune", ("true", "false")) == "true",
        max_decompressed_bytes=found.number("maxDecompressedBytes", "a number of bytes")
        or compression.DEFAULT_LIMIT,
        bundle_bytes=found.number("bundleBytes", "a number of bytes") or None,
        fail_on_data_loss=fails,
        include_headers=found.one_of("includeHeaders", ("false", "true")) == "true",
        show_secrets=found.one_of("showSecrets", ("false", "true")) == "true",
        min_partitions=found.number("minPartitions", "a number of tasks") or None,
        without_effect=ignored,
    )


def _refuse_limits(given: Mapping[str, str]) -> None:
    """Raise UsageError for the options by which Spark's own source limits micro-batches."""
    for name in kafka_options.LIMITS:
        if name.lower() in given:
            raise UsageError(
                f"option {name}: a micro-batch takes all available rows, because since "
                "Spark 4.0 a Python data source does not learn where a micro-batch "
                "begins; to read less at first, set startingOffsets"
            )


def _check_stream(table: str, given: Mapping[str, str]) -> None:
    """Raise UsageError for tables and options that a stream does not have."""
    if table in _WITHOUT_TIMES:
        raise UsageError(
            f"the rows of {table} change and cannot be streamed: use spark.read, or the "
            "tables batches and records"
        )
    times = ("startingTimestamp",) if table != kafka_table.NAME else ()
    for name in (*_NOT_STREAMED, *times):
        if name.lower() in given:
            raise UsageError(
                f"a stream does not support option {name}: it continues from "
                "startingOffsets; choose rows with where"
            )


def _check_kafka(table: str, given: Mapping[str, str]) -> None:
    """Raise UsageError for options that only the table ``kafka`` has, or for two of one meaning."""
    if table == kafka_table.NAME:
        kafka_options.check_choice(given)
        return
    for name in kafka_options.ONLY_KAFKA:
        if name.lower() in given:
            raise UsageError(f"option {name} applies to the table kafka, not to {table}")


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name in given:
        if name in _KNOWN or name in _OF_SPARK:
            continue
        nearest = get_close_matches(name, _KNOWN, n=1, cutoff=0.5)
        hint = (
            f"did you mean {_KNOWN[nearest[0]]}?" if nearest else f"expected {', '.join(_OPTIONS)}"
        )
        raise UsageError(f"kafka-log has no option {name}: {hint}")


@dataclass(frozen=True, slots=True)
class _Texts:
    """Options by their names in lower case."""

    given: Mapping[str, str]

    def text(self, name: str, default: str) -> str:
        return self.given.get(name.lower(), default)

    def one_of(self, name: str, values: Sequence[str]) -> str:
        """Return one of `values`, by default the first."""
        value = self.text(name, values[0])
        if value not in values:
            raise UsageError(f"option {name}: expected {', '.join(values)}, found {value!r}")
        return value

    def number(self, name: str, expected: str) -> int | None:
        text = self.given.get(name.lower())
        if text is not None and not text.isdecimal():
            raise UsageError(f"option {name}: expected {expected}, found {text!r}")
        return None if text is None else int(text)

    def list(self, name: str) -> tuple[str, ...]:
        """Return the texts that commas separate; UsageError for an option without any."""
        text = self.given.get(name.lower())
        if text is None:
            return ()
        if found := tuple(one.strip() for one in text.split(",") if one.strip()):
            return found
        raise UsageError(f"option {name} is empty; to select all, leave the option out")

    def numbers(self, name: str) -> tuple[int, ...]:
        found = self.list(name)
        if odd := [one for one in found if not one.isdecimal()]:
            raise UsageError(f"option {name}: expected numbers as in 0,1,2; found {odd[0]!r}")
        return tuple(map(int, found))


def _paths(given: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the paths of ``load``: one as Spark hands it on, several as a list in JSON."""
    several = given.get("paths")
    texts = json.loads(several) if several else [given["path"]] if "path" in given else []
    if not texts:
        raise UsageError(
            'expected a path: load("/var/lib/kafka/data"); a table of the catalog keeps its '
            "options only if CREATE TABLE names no columns"
        )
    # Executors on other machines have another current directory.
    return tuple(remote.parse(text).absolute() for text in texts)
