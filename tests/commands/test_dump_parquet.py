"""`dump --format parquet`: what pyarrow reads back is what ndjson prints."""

import base64
import datetime
import json
import os
import subprocess
import sys

import pytest
from conftest import SCENARIOS, new_logs
from pyarrow import parquet
from thinned import some

from logtool.commands.printing import dump_parquet
from logtool.formats.record import Record
from logtool.log import records as log_records


@pytest.fixture
def table(run, tmp_path):
    """Return a function: the rows of the file that a dump writes."""

    def written(*arguments, status=0):
        target = tmp_path / "out.parquet"
        target.unlink(missing_ok=True)
        result = run("dump", "-f", "parquet", "--output", target, *arguments)
        assert (result.status, result.stdout) == (status, ""), result.stderr
        assert [p.name for p in tmp_path.iterdir() if p.is_file()] == [target.name]
        found = parquet.read_table(target)
        kind = dump_parquet.RECORDS if "--records" in arguments else dump_parquet.BATCHES
        assert found.schema.equals(kind)
        assert found.schema.metadata == kind.metadata
        assert [field.metadata for field in found.schema] == [field.metadata for field in kind]
        return found.to_pylist()

    return written


def as_parquet(obj):
    """Return an object of ndjson as the row that it should be."""
    row = {key: value for key, value in obj.items() if key not in ("type", "schema")}
    for key in [key for key in row if key.endswith("_ms")]:
        time = key.removesuffix("_ms")
        row[time] = row[time] and datetime.datetime.fromisoformat(row[time])
    if obj["type"] == "record":
        row["control_record"] = row["control_record"] and json.dumps(row["control_record"])
        row["header_count"] = len(row["headers"])
        for name in ("key", "value"):
            row[f"{name}_size"] = row[name] and row[name]["size"]
        row["key"], row["value"] = content(row["key"]), content(row["value"])
        row["headers"] = [{k: content(v) for k, v in pair.items()} for pair in row["headers"]]
    return row


def content(shown):
    return None if shown is None else base64.b64decode(shown["base64"])


@pytest.mark.parametrize("name", some(SCENARIOS, 6))
def test_what_is_read_back_is_what_ndjson_prints(run, table, scenario, name):
    logs = new_logs(name, scenario(name))
    for kind, more in (("batch", []), ("record", ["--records", "--values", "base64"])):
        result = run("dump", "-f", "ndjson", *more, *logs)
        expected = [as_parquet(obj) for obj in result.objects if obj["type"] == kind]
        assert table(*more, *logs, status=result.status) == expected


ODD = {
    "null and empty": {},
    "no timestamp": {"base_timestamp": -1, "max_timestamp": -1},
    "no calendar has the time": {"base_timestamp": 2**62, "max_timestamp": 2**62},
    "a producer": {"producer_id": 7, "producer_epoch": 0, "base_sequence": 2**31 - 1},
}


@pytest.mark.parametrize("name", ODD)
def test_odd_batches_are_rows_too(run, table, log, make_batch, name):
    records = [Record(0, 0, None, b""), Record(1, 1, b"", None, [(b"", None), (b"k", b"")])]
    log.write_bytes(make_batch(0, records) + make_batch(2, records, **ODD[name]))
    result = run("dump", "-f", "ndjson", "--records", "--values", "base64", log)
    assert table("--records", log) == [as_parquet(obj) for obj in result.of_type("record")]


def test_blocks_of_many_files_and_single_objects_keep_their_order(
    run, table, partition, log, make_batch
):
    alone = partition.parent / "alone"
    files = []
    for number, name in enumerate(("0" * 20, f"{50:020d}", f"{90:020d}")):
        for home in (partition, alone):
            home.mkdir(exist_ok=True)
            files.append(home / f"{name}.log")
            base = int(name)
            content = [
                make_batch(base, [Record(0, 1, b"\xff\0", b"v" * number)], leader_epoch=number),
                make_batch(
                    base + 1,
                    [Record(0, 1, None, b"x", [(b"h", None), (b"h", b"\xfe")]), Record(1, 2)],
                    producer_id=number,
                    producer_epoch=3,
                    base_sequence=number,
                ),
                # A time that no calendar has makes a batch one of single objects.
                make_batch(base + 3, [Record(0, 0, b"odd")], base_timestamp=2**62),
                make_batch(base + 4, [Record(0, 5, b"", b"end")], attributes=0x18, max_timestamp=9),
            ]
            files[-1].write_bytes(b"".join(content))
    result = run("dump", "-f", "ndjson", "--records", "--values", "base64", *files)
    expected = [as_parquet(obj) for obj in result.of_type("record")]
    assert len({row["path"] for row in expected}) == 6
    assert {row["topic"] for row in expected} >= {None}
    assert table("--records", *files) == expected


def test_names_that_are_more_than_a_dictionary_holds_are_all_there(table, tmp_path, make_batch):
    homes = tmp_path / "data" / ("d" * 200)
    for number in range(64):
        home = homes / f"{'t' * 200}-{number}"
        home.mkdir(parents=True)
        (home / f"{0:020d}.log").write_bytes(make_batch(0, [Record(0, 0, b"%d" % number)]))
    rows = table("--records", homes)
    assert sorted(int(row["key"]) for row in rows) == list(range(64))
    assert all(row["path"] == f"{homes}/{'t' * 200}-{int(row['key'])}/{0:020d}.log" for row in rows)


def test_pandas_is_not_imported_though_it_is_installed(tmp_path, log):
    (tmp_path / "installed").mkdir()
    imported = tmp_path / "imported"
    (tmp_path / "installed" / "pandas.py").write_text(f"open({str(imported)!r}, 'w')")
    command = [sys.executable, "-m", "logtool", "dump", "-f", "parquet", "--records", log]
    ways = {"blocks": [], "objects": ["--limit", "9"], "some": ["--offset", "2..4"]}
    for name, more in ways.items():
        subprocess.run(
            [*command, *more, "--output", tmp_path / name], check=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        )  # fmt: skip
        assert parquet.read_metadata(tmp_path / name).num_rows > 0
        assert not imported.exists(), name


def test_filters_and_limits_choose_rows(table, log):
    assert [row["offset"] for row in table("--records", "--offset", "2..4", log)] == [2, 3, 4]
    assert [row["base_offset"] for row in table("--limit", "2", log)] == [0, 3]


@pytest.mark.parametrize("bound", ["ROW_GROUP_ROWS", "ROW_GROUP_SIZE"])
def test_row_groups_are_bounded(table, log, tmp_path, monkeypatch, bound):
    monkeypatch.setattr(dump_parquet, bound, 3)
    monkeypatch.setattr(
        log_records, "BLOCK_SIZE", 1
    )  # so that each batch, of three records, is a block
    assert len(table("--records", "--offset", "0..8", log)) == 9
    groups = parquet.ParquetFile(tmp_path / "out.parquet").metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [3, 3, 3]


def test_damage_is_reported_and_the_rest_is_written(run, tmp_path, damaged_log):
    target = tmp_path / "out.parquet"
    result = run("dump", "-f", "parquet", "--output", target, damaged_log)
    assert (result.status, "CRC" in result.stderr) == (1, True)
    assert parquet.read_table(target)["crc_valid"].to_pylist() == [True, False, True]


def test_an_existing_file_is_refused_and_kept(run, tmp_path, log):
    target = tmp_path / "out.parquet"
    target.write_text("precious")
    result = run("dump", "-f", "parquet", "--output", target, log)
    assert (result.status, result.stdout) == (5, "")
    assert target.read_text() == "precious"


def test_nothing_is_written_into_what_is_dumped(run, partition, log):
    home = partition.parent
    (home / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    link = home.parent / "link"
    link.symlink_to(home)
    for path in (home, partition, log):
        for folder in (partition, link / partition.name):
            target = folder / "out.parquet"
            assert run("dump", "-f", "parquet", "--output", target, path).status == 5
    assert run("dump", "-f", "parquet", "--output", home / "o", log).status == 5
    assert not list(home.rglob("*out*"))


def test_a_file_alone_may_stand_next_to_the_output(run, tmp_path, log):
    alone = log.rename(tmp_path / log.name)
    assert run("dump", "-f", "parquet", "--output", tmp_path / "o.parquet", alone).status == 0


@pytest.mark.parametrize(
    "options", [["-f", "parquet"], ["--output", "x"], ["--json", "-f", "parquet"]]
)
def test_parquet_and_output_need_each_other(run, log, options):
    assert run("dump", *options, log).status == 2


def test_without_pyarrow_one_line_says_how_to_get_it(run, tmp_path, log, monkeypatch):
    monkeypatch.delitem(sys.modules, "logtool.commands.printing.dump_parquet")
    monkeypatch.delattr("logtool.commands.printing.dump_parquet", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("dump", "-f", "parquet", "--output", tmp_path / "o", log)
    assert result.status == 2
    assert result.stderr.count("\n") == 1
    assert "pip install 'kafka-logtool[parquet]'" in result.stderr


def test_a_directory_that_cannot_be_written_is_said_and_nothing_is_left(run, tmp_path, log):
    result = run("dump", "-f", "parquet", "--output", tmp_path / "missing" / "o", log)
    assert (result.status, str(tmp_path / "missing" / "o") in result.stderr) == (4, True)


def test_after_an_interrupt_nothing_is_left(run, tmp_path, log, monkeypatch):
    def interrupted(self, block):
        raise KeyboardInterrupt

    monkeypatch.setattr(dump_parquet.ParquetFile, "block", interrupted)
    result = run("dump", "-f", "parquet", "--records", "--output", tmp_path / "o", log)
    assert result.status == 130
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
