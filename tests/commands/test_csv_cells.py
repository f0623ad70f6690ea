"""Readers of CSV and TSV get from a cell what the log holds, and what NDJSON has."""

import csv
import io
import json

import pyarrow.csv
import pytest

from logtool.commands.printing import terminal
from logtool.formats import _rendering
from logtool.formats.record import Record

TEXTS = (
    "", "plain", 'a "quoted", text', '"', "a\\tb", "\\n", "a\tb", "a\nb", "a\rb", "a\r\n", "\n",
    "\x00\x1b[31m\x7f", "schön ключ 🗎", "\u2028\x85\u202e", " lead and trail ", "=1+1", "'", ",",
    ";", '{"a": "b\\\\c", "d": "é"}',
)  # fmt: skip


@pytest.fixture
def texts(log, make_batch):
    """Return a log with every text as key, value and header."""
    records = []
    for number, one in enumerate(TEXTS):
        data = one.encode()
        records.append(Record(number, number, data, data, [(data, data), (b"null", None)]))
    records.append(Record(len(TEXTS), 0, None, None))
    records.append(Record(len(TEXTS) + 1, 0, b"\xff\xfe", b"\xff\n"))
    # The second batch does not decode to its end: its records go one by one.
    log.write_bytes(make_batch(0, records) + make_batch(50, records, record_count=99))
    return log


def by_csv(printed, delimiter):
    return list(csv.DictReader(io.StringIO(printed, newline=""), delimiter=delimiter))


def by_arrow(printed, delimiter):
    table = pyarrow.csv.read_csv(
        io.BytesIO(printed.encode()),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(printed.split("\n", 1)[0].split(delimiter), "string")
        ),
    )
    return table.to_pylist()


def content(value):
    """Return the cells of a key or value of NDJSON."""
    if value is None:
        return "", "", ""
    name = "utf8" if "utf8" in value else "base64"
    return value[name], name, str(value["size"])


@pytest.mark.parametrize("read", [by_csv, by_arrow])
@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_reader_finds_what_ndjson_has(run, texts, monkeypatch, read, form, compiled):
    monkeypatch.setattr(_rendering, "COMPILED", compiled and _rendering.COMPILED)
    expected = run("dump", "--records", "-f", "ndjson", texts).of_type("record")
    assert len(expected) == 2 * (len(TEXTS) + 2)
    printed = run("dump", "--records", "-f", form, texts).stdout
    rows = read(printed, "," if form == "csv" else "\t")
    found = [row for row in rows if row["type"] == "record"]
    for row, obj in zip(found, expected, strict=True):
        for name in ("key", "value"):
            cells = tuple(row[f"{name}{more}"] for more in ("", "_encoding", "_size"))
            assert cells == content(obj[name])
        assert json.loads(row["headers"]) == obj["headers"]


@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("asked", ["option", "terminal"])
def test_escaped_cells_stand_on_one_line_and_a_terminal_gets_no_others(
    run, texts, monkeypatch, form, asked
):
    options = ["--csv-escaped"] if asked == "option" else []
    monkeypatch.setattr(terminal, "is_terminal", lambda: asked == "terminal")
    printed = run("dump", "--records", "-f", form, *options, texts).stdout
    assert all(line.replace("\t", "").isprintable() for line in printed.split("\n"))
    assert printed.count("\n") == 1 + 2 * (len(TEXTS) + 2)
    rows = (
        [line.split("\t") for line in printed.split("\n")[:-1]]
        if form == "tsv"
        else list(csv.reader(printed.splitlines()))
    )
    place = rows[0].index("value")
    decoded = [
        row[place].replace("\\\\", "\0").encode("latin-1", "backslashreplace")
        .decode("unicode_escape").replace("\0", "\\")
        for row in rows[1 : 1 + len(TEXTS)]
    ]  # fmt: skip
    assert decoded[:11] == list(TEXTS[:11])


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "markdown"])
def test_the_option_is_for_csv_and_tsv_alone(run, texts, form):
    assert run("dump", "-f", form, "--csv-escaped", texts).status == 2
