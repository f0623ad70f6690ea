"""The option --fields: rows with some fields, in each format."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer.main
from outputs import lines

from logtool import cli
from logtool.commands.program.command_tree import read_tree

COMMANDS = {
    command.name: {name for param in command.options for name in param.names}
    for command in read_tree(typer.main.get_command(cli.app))[1]
}
NAMES = ("last_offset", "topic", "kind")


@pytest.fixture
def partition(scenario: Any) -> Path:
    """Return a partition that was compacted, so that it has gaps."""
    return Path(scenario("4.3.1/clean")) / "compacted.keys-0"


def rows(result: Any) -> list[list[str]]:
    """Return the rows of CSV."""
    return list(csv.reader(io.StringIO(result.stdout)))


def test_each_format_has_the_same_values(run: Any, partition: Path) -> None:
    every = run("gaps", "-f", "ndjson", partition).of_type("gap")
    values = [[str(one[name]) for name in NAMES] for one in every]
    assert len(values) > 2
    asked = ("gaps", "--fields", ",".join(NAMES), partition)
    assert rows(run(*asked, "-f", "csv")) == [list(NAMES), *values]
    lines = [json.loads(line) for line in run(*asked, "-f", "ndjson").lines]
    assert {one["type"] for one in lines} == {"gap", "summary"}
    for one in lines[:-1]:
        assert [name for name in one if name != "schema"] == ["type", *NAMES]
    assert [[str(one[name]) for name in NAMES] for one in lines[:-1]] == values
    items = json.loads(run(*asked, "--json").stdout)["items"]
    assert [[str(one[name]) for name in NAMES] for one in items] == values
    title, _, *table = run(*asked, "-v").lines
    assert (title.split(), [line.split() for line in table]) == (list(NAMES), values)
    title, _, *table = run(*asked, "-f", "markdown", "-v").lines
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in table] == values


def test_a_cell_is_that_of_csv_without_the_option(run: Any, scenario: Any) -> None:
    dump = ("dump", "--records", "-f", "csv", scenario("4.3.1/clean") / "codec-none-0")
    names, *every = rows(run(*dump))
    places = [names.index(name) for name in ("key", "offset", "timestamp")]
    chosen = rows(run(*dump, "--fields", "key,offset,timestamp"))
    assert chosen[1:] == [[row[at] for at in places] for row in every]


def test_the_status_and_errors_stay(run: Any, partition: Path, tmp_path: Path) -> None:
    missing = tmp_path / "nosuch"
    result = run("gaps", "--fields", "kind", "-f", "ndjson", partition, missing)
    assert result.status == run("gaps", partition, missing).status
    (error,) = result.of_type("error")
    assert error["path"] == str(missing)


@pytest.mark.parametrize(
    "arguments",
    [
        ("gaps", "--fields", "kind,nosuch"),
        ("gaps", "--fields", ""),
        ("gaps", "--fields", "schema"),
        ("dump", "--fields", "offset", "-f", "kafka"),
        ("dump", "--records", "--fields", "offset", "-f", "kcat"),
    ],
)
def test_what_is_no_field_is_a_usage_error(run: Any, partition: Path, arguments: Any) -> None:
    assert run(*arguments, partition).status == 2


WITH_FIELDS = [
    name for name, options in COMMANDS.items() if "--fields" in options and name in lines.TEMPLATES
]


@pytest.mark.parametrize("command", WITH_FIELDS)
def test_the_fields_that_are_named_are_there(
    run: Any, scenario: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(scenario("4.3.1/killed"), tmp_path / "4.3.1/killed")
    place = lines.Place(tmp_path, ("4.3.1/killed",), "4.3.1/killed")
    case = lines.case_of(place, command, lines.TEMPLATES[command][0], "", 1)
    if case.directory:
        shutil.copytree(tmp_path / "4.3.1/killed", Path(case.directory) / "killed")
    asked = case.words[-1]
    refused = run(*asked, "--fields", "nosuch")
    assert refused.status == 2
    if "has no rows" in refused.stderr:
        return
    named = re.search(r"(?:there are: |did you mean )(\w+)", refused.stderr)
    assert named
    assert run(*asked, "--fields", named[1]).status not in (2, 70)
