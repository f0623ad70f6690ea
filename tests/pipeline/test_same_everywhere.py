"""One thing has one name, type and value, whichever way it leaves logtool.

The same log dirs go through `dump` (NDJSON, CSV, Parquet), `scan`, the data source and `verify`.
"""

import base64
import csv
import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pipeline.places import homes
from pyarrow import parquet
from verification import batches, rewrite, small_log_dir

from logtool import cli
from logtool.formats import record_batch
from logtool.schemas import arrow, documents, tables
from logtool.schemas.columns import EVERY_WAY, Kind, Payload, Way
from logtool.spark.scan import manifest
from logtool.spark.scan.scan import Scan
from logtool.verify import Level

pytestmark = pytest.mark.spark
SOME = ("4.3.1/clean", "2.8.2/magic-1")
ROWS = ("batches", "records")
OPTIONS = {"batches": [], "records": ["--records", "--values", "base64"]}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module", params=SOME)
def home(request, scenario) -> Path:
    return homes(scenario(request.param))[0]


@pytest.fixture(scope="module")
def scanned(spark, home, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("tables")
    Scan(spark, [home], str(output), "run", arrow.NAMES, Payload.FULL).run()
    return output


@pytest.fixture
def dumped(home, tmp_path, capsys):
    """Return a function: what `dump` prints of the logs that the other ways read, or a file."""
    logs = sorted(log for log in home.glob("*/*.log"))

    def run(table: str, form: str) -> str | Path:
        target = tmp_path / f"{table}.parquet"
        more = ["--output", str(target)] if form == "parquet" else []
        words = ["dump", "-f", form, *more, *OPTIONS[table], "--quiet", *map(str, logs)]
        capsys.readouterr()
        assert cli.run(words) == 0
        return target if more else capsys.readouterr().out

    return run


def of_scan(output: Path, table: str):
    files = sorted(manifest.files(str(output), table))
    assert files, table
    return [parquet.ParquetFile(file) for file in files]


def of_source(spark, home: Path, table: str):
    from logtool.spark.source import source

    source.register(spark)
    more = {"payload": "full"} if table == "records" else {}
    reader = spark.read.format("kafka-log").option("table", table).options(**more)
    return reader.load(str(home))


def plain(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a table or of JSON with Python's own values: moments, and bytes as bytes."""
    columns = {column.name: column for column in tables.ALL[table].columns}
    return {
        name: value if value is None else VALUES.get(columns[name].kind, lambda v: v)(value)
        for name, value in row.items()
        if name in columns
    }


def moment(value: str | datetime) -> datetime:
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return found.astimezone(UTC)


def content(value: Any) -> bytes | None:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


def object_of(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


VALUES = {
    Kind.TIMESTAMP: moment,
    Kind.BINARY: content,
    Kind.HEADERS: lambda pairs: [{k: content(v) for k, v in pair.items()} for pair in pairs],
    Kind.OBJECT: object_of,
}


def cells(table: str, text: str) -> Rows:
    """Return the rows of CSV with their values read by the types of the columns."""
    csv.field_size_limit(2**31 - 1)
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        found.append({column.name: cell(column.kind, column.name, row)
                      for column in tables.ALL[table].by(Way.CSV)})  # fmt: skip
    return found


def cell(kind: Kind, name: str, row: dict[str, str]) -> Any:
    value = row[name]
    if kind is Kind.BINARY:
        return base64.b64decode(value) if row[f"{name}_encoding"] else None
    if value == "":
        return None
    if kind is Kind.BOOL:
        return {"true": True, "false": False}[value]
    if kind is Kind.STRING:
        return value
    if kind is Kind.TIMESTAMP:
        return moment(value)
    return VALUES.get(kind, lambda v: v)(json.loads(value.replace("\\\\", "\\")))


def ordered(table: str, rows: Iterable[dict[str, Any]]) -> Rows:
    """Return rows by their place; of the file, its parts where a way has no path."""
    place = "position" if table == "batches" else "offset"
    return sorted(rows, key=lambda row: (str(path(row)), row[place]))


def path(row: dict[str, Any]) -> str:
    if "path" in row:
        return row["path"]
    return f"{row['log_dir']}/{row['directory']}/{row['segment']:020d}.log"


SCANNED = [name for name, table in tables.ALL.items() if Way.SCAN in table.ways]
"""The tables of a scan; `test_comparing` checks the schema of its history."""


@pytest.mark.parametrize("table", ROWS)
def test_rows_have_the_same_names_and_values_in_every_way(spark, home, scanned, dumped, table):
    printed = [json.loads(line) for line in dumped(table, "ndjson").splitlines()]
    kind = {"batches": "batch", "records": "record"}[table]
    ways = {
        Way.NDJSON: [plain(table, obj) for obj in printed if obj["type"] == kind],
        Way.CSV: cells(table, dumped(table, "csv")),
        Way.PARQUET: parquet.read_table(dumped(table, "parquet")).to_pylist(),
        Way.SCAN: [row for file in of_scan(scanned, table) for row in file.read().to_pylist()],
        Way.SOURCE: [
            row.asDict(recursive=True) for row in of_source(spark, home, table).collect()
        ],
    }  # fmt: skip
    assert frozenset(ways) == EVERY_WAY
    rows = {way: ordered(table, (plain(table, row) for row in some)) for way, some in ways.items()}
    for way, some in rows.items():
        assert set(some[0]) == {column.name for column in tables.ALL[table].by(way)}, way
    one = rows.pop(Way.SCAN)
    assert len(one) > 100
    for way, some in rows.items():
        assert len(some) == len(one), way
        for first, other in zip(one, some, strict=True):
            assert path(first) == path(other)
            both = first.keys() & other.keys()
            assert {name: first[name] for name in both} == {name: other[name] for name in both}, way


@pytest.mark.parametrize("table", SCANNED)
def test_types_are_the_same_in_every_way(spark, home, scanned, dumped, table):
    known = tables.ALL[table]
    files = of_scan(scanned, table)
    for file in files:
        assert file.schema_arrow.equals(arrow.schema(table))
    types = {column.name: documents.SPARK_TYPES[column.kind] for column in known.columns}
    read = spark.read.parquet(*manifest.files(str(scanned), table))
    assert shown(read) == {column.name: types[column.name] for column in known.by(Way.SCAN)}
    if Way.SOURCE in known.ways:
        assert shown(of_source(spark, home, table)) == shown(read)
    if Way.PARQUET in known.ways:
        schema = parquet.read_schema(dumped(table, "parquet"))
        assert schema.equals(arrow.schema(table, way=Way.PARQUET))
        both = [name for name in schema.names if name in files[0].schema_arrow.names]
        assert [schema.field(name).type for name in both] == [
            files[0].schema_arrow.field(name).type for name in both
        ]


def shown(frame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema}


@pytest.mark.parametrize("table", SCANNED)
def test_what_is_never_null_is_not_and_words_are_those_of_the_schema(scanned, table):
    for file in of_scan(scanned, table):
        rows = file.read()
        for column in tables.ALL[table].by(Way.SCAN):
            values = rows.column(column.name)
            assert column.null is not None or values.null_count == 0, column.name
            if column.words:
                assert set(values.drop_null().unique().to_pylist()) <= set(column.words)


def test_segments_are_the_same_in_a_scan_and_in_the_source(spark, home, scanned):
    (file,) = of_scan(scanned, "segments")
    rows = [plain("segments", row) for row in file.read().to_pylist()]
    source = of_source(spark, home, "segments").collect()
    others = [plain("segments", row.asDict()) for row in source]
    key = lambda row: (row["directory"], row["segment"])  # noqa: E731
    assert sorted(rows, key=key) == sorted(others, key=key)


@pytest.fixture
def undecodable(scenario, tmp_path) -> Path:
    """Return a log dir with a batch whose CRC is right and whose records do not decode."""
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", "codec-none-0")
    (log,) = (home / "codec-none-0").glob("*.log")
    last = batches(log)
    offset = int(last.last_offset[-1]) + 1
    bad = record_batch.encode(
        b"\xff" * 30, base_offset=offset, last_offset_delta=2, record_count=3,
        base_timestamp=1_700_000_000_000, max_timestamp=1_700_000_000_000,
    )  # fmt: skip
    rewrite(log, log.read_bytes() + bad)
    return home


@pytest.mark.parametrize("wanted", [("findings",), ("findings", "records")])
def test_findings_are_those_of_verify_at_the_level_or_at_records_if_that_table_is_asked_for(
    spark, undecodable, tmp_path, capsys, wanted
):
    counts = []
    for asked in Level.BATCHES, Level.RECORDS:
        output, level = tmp_path / asked, Level.RECORDS if "records" in wanted else asked
        Scan(spark, [undecodable], str(output), "run", wanted, level=asked).run()
        (file,) = of_scan(output, "findings")
        rows = sorted(file.read().to_pylist(), key=lambda row: row["number"])
        capsys.readouterr()
        cli.run(["verify", "--level", str(level), "-f", "ndjson", str(undecodable)])
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        findings = [obj for obj in printed if obj["type"] == "finding"]
        names = [column.name for column in tables.ALL["findings"].by(Way.NDJSON)]
        assert [{name: row[name] for name in names} for row in rows] == [
            {name: obj[name] for name in names} for obj in findings
        ]
        counts.append(len(findings))
    assert counts[0] == counts[1] if "records" in wanted else counts[0] < counts[1]
