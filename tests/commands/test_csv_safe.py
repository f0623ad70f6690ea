"""With --csv-safe no cell of CSV or TSV is a formula; without it, cells are what the log holds."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from logtool import cli
from logtool.commands.printing import text
from logtool.commands.program.command_tree import read_tree
from logtool.formats import record

SIGNS = ("=", "+", "-", "@", "\t", "\r")
FORMULA = '=HYPERLINK("http://127.0.0.1/"&A1,"x")'


@pytest.fixture
def hostile(tmp_path: Path, make_batch: Callable[..., bytes]) -> Path:
    """Return a log whose keys and values begin with what a spreadsheet runs."""
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    path.parent.mkdir()
    keys = [*(f"{sign}1+2" for sign in SIGNS), FORMULA, "a=1", "'=1", ""]
    path.write_bytes(
        make_batch(0, [record.Record(n, n, key.encode(), b"-5") for n, key in enumerate(keys)])
    )
    return path


def rows(content: str, format: str) -> list[dict[str, str]]:
    """Return the cells that a spreadsheet reads."""
    delimiter = "," if format == "csv" else "\t"
    return list(csv.DictReader(io.StringIO(content, newline=""), delimiter=delimiter))


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_no_cell_is_a_formula(run: Callable[..., Any], hostile: Path, format: str) -> None:
    result = run("dump", "--records", "-f", format, "--csv-safe", hostile)
    assert result.status == 0, result.stderr
    found = rows(result.stdout, format)
    assert len(found) == len(SIGNS) + 4
    for row in found:
        for cell in row.values():
            assert not cell.startswith(SIGNS), row
        assert row["value"] == "'-5"
    keys = [row["key"] for row in found]
    assert keys[:6] == [f"'{sign}1+2" for sign in SIGNS]
    assert keys[6:] == [f"'{FORMULA}", "a=1", "'=1", ""]


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_without_it_cells_are_what_the_log_holds(run, hostile, format):
    result = run("dump", "--records", "-f", format, hostile)
    keys = [row["key"] for row in rows(result.stdout, format)]
    assert keys[:7] == [*(f"{sign}1+2" for sign in SIGNS), FORMULA]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (-5, "-5"), (-0.5, "-0.5"), (None, ""), (True, "true"), ("-5", "'-5"), ("\n=1", "'\n=1"),
        ("\uff1d1", "'\uff1d1"), ("1-5", "1-5"), (["=1"], '["=1"]'), ("'=1", "'=1"),
    ],
)  # fmt: skip
def test_numbers_stay_numbers_and_texts_become_texts(value: object, cell: str) -> None:
    assert text.safe_cell(value) == cell


@pytest.mark.parametrize("format", ["table", "json", "ndjson", "markdown"])
def test_it_is_for_csv_and_tsv_alone(run: Callable[..., Any], hostile: Path, format: str) -> None:
    result = run("dump", "-f", format, "--csv-safe", hostile)
    assert result.status == 2
    assert "--csv-safe" in result.stderr


def test_every_command_that_prints_csv_has_it() -> None:
    _, commands = read_tree(typer.main.get_command(cli.app))
    with_csv = {
        command.name for command in commands
        for option in command.options
        if "--format" in option.names and "csv" in option.choices
    }  # fmt: skip
    safe = {c.name for c in commands for option in c.options if "--csv-safe" in option.names}
    assert "checkpoint show" in with_csv
    assert safe == with_csv
