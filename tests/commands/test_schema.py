"""`logtool schema`: what it prints of a table is what the commands print of its rows."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from logtool.schemas import entries, tables
from logtool.schemas.columns import Kind, Way
from logtool.schemas.documents import SPARK_TYPES

EVERY = {**tables.ALL, **entries.ALL}


def test_every_table_is_listed(run):
    found = run("schema", "-f", "ndjson").of_type("table")
    assert [obj["table"] for obj in found] == list(EVERY)
    assert {"segments", "batches", "records", "gaps", "producers", "transactions", "findings",
            "replicas", "kafka", "offset-index"} <= set(EVERY)  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_every_column_has_a_type_and_a_meaning(run, name):
    found = run("schema", name, "-f", "ndjson").of_type("column")
    assert [obj["column"] for obj in found] == [column.name for column in EVERY[name].columns]
    assert len({obj["column"] for obj in found}) == len(found)
    for obj in found:
        assert obj["meaning"] and obj["ways"] and obj["data_type"] in set(Kind)
        assert obj["nullable"] == bool(obj["null"])
    assert run("schema", name).status == 0


@pytest.mark.parametrize(("name", "kind"), [("batches", "batch"), ("records", "record")])
def test_real_rows_keep_to_the_json_schema_of_their_table(run, partition, name, kind):
    schema = json.loads(run("schema", name, "--format", "json-schema").stdout)
    Draft202012Validator.check_schema(schema)
    checker = Draft202012Validator(schema)
    rows = run("dump", "--records", "-f", "ndjson", partition).of_type(kind)
    assert rows
    for row in rows:
        assert checker.is_valid(row), [error.message for error in checker.iter_errors(row)]
        assert not checker.is_valid({**row, "surprise": 1})


@pytest.mark.parametrize("name", EVERY)
def test_sparks_sql_has_every_column_of_the_table(run, name):
    lines = run("schema", name, "--format", "spark-ddl").lines
    way = next(
        (one for one in (Way.SCAN, Way.SOURCE, Way.HISTORY) if one in EVERY[name].ways), Way.NDJSON
    )
    columns = EVERY[name].by(way)
    assert len(lines) == len(columns)
    for line, column in zip(lines, columns, strict=True):
        assert line.startswith(f"`{column.name}` {SPARK_TYPES[column.kind]} COMMENT '")
        assert line.rstrip(",").endswith("'")


def test_a_table_that_does_not_exist_is_refused_with_the_nearest(run):
    result = run("schema", "recods")
    assert (result.status, result.stdout) == (2, "")
    assert "records" in result.stderr


@pytest.mark.parametrize("form", ["json-schema", "spark-ddl"])
def test_a_schema_is_of_one_table(run, form):
    assert run("schema", "--format", form).status == 2
    assert run("schema", "batches", "--json", "--format", form).status == 2


def test_the_name_of_a_command_leads_to_the_schema_of_its_output(run):
    found = run("schema", "groups")
    (path,) = re.findall(r"/\S+\.json", found.stderr)
    assert (found.status, json.loads(Path(path).read_text())["$id"]) == (2, "urn:logtool:groups:1")
    assert ".json" not in run("schema", "gapz").stderr
