"""The public Python library: its guide, its names, and what it reads."""

import doctest
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import demo
import metadata_secrets
import numpy as np
import public_api
import pytest
from readme import ROOT, doctests
from redpanda_files import CONFIGURATION, batch, data_dir
from verification import log_dirs

import logtool
from logtool.formats import record_batch
from logtool.log.opening import open_partition
from logtool.log.records import records as internal_records

Scenario = Callable[[str], Path]
ALIKE = ("codec-gzip", "codec-lz4", "codec-snappy", "groups.input", "index.dense", "compacted.keys")
"""Topics that the floor reads in the same way as another one."""
LOG = "codec-none-0/00000000000000000000.log"


def test_the_blocks_of_the_guide_run(copy_of, tmp_path, monkeypatch):
    text = (ROOT / "man" / "logtool-python.md").read_text()
    folder = tmp_path / "build" / "demo"
    folder.mkdir(parents=True)
    for name in ("clean", "damaged"):
        copy_of("4.3.1/clean").rename(folder / name)
    demo.damage(folder / "damaged")
    monkeypatch.chdir(tmp_path)
    found = doctests(text, "doctest")
    runner = doctest.DocTestRunner()
    for number, block in enumerate(found):
        runner.run(doctest.DocTestParser().get_doctest(block, {}, f"block {number}", None, 0))
    assert len(found) == text.count("```python") >= 4
    assert runner.summarize(verbose=False).failed == 0


def test_the_public_names_and_signatures_are_those_of_the_list():
    # A change of the library for its users: `python tests/public_api.py` writes the list.
    assert public_api.FILE.read_text().splitlines() == public_api.lines()


def test_importing_logtool_imports_no_engine():
    code = "import sys, logtool; dir(logtool); print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(logtool.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    names = done.stdout.split()
    assert "logtool" in names
    assert [name for name in names if name.startswith(("logtool.", "numpy", "pyarrow"))] == []


@pytest.fixture
def damaged(copy_of):
    home = copy_of("4.3.1/clean")
    demo.damage(home)
    return home


def test_every_record_is_read_as_by_the_floor_with_and_without_objects(scenario):
    read = 0
    for one in logtool.open(scenario("4.3.1/clean")).partitions():
        if one.topic in ALIKE:
            continue
        every = list(one.records(control=True))
        table = one.records_table(["offset", "timestamp_ms", "value"], control=True)
        floor = [
            (int(part.offset[row]), part.value(row))
            for segment in open_partition(one.path).segments
            for chunk in segment.batches()
            for part in internal_records(chunk)
            for row in range(len(part.offset))
        ]
        shown = [(record.offset, record.value) for record in every]
        if one.topic == "__cluster_metadata":
            assert [offset for offset, _ in shown] == [offset for offset, _ in floor]
        else:
            assert shown == floor
        assert table.to_pylist() == [
            {"offset": record.offset, "timestamp_ms": record.timestamp, "value": record.value}
            for record in every
        ]
        of_segments = [record for part in one.segments() for record in part.records(control=True)]
        assert of_segments == every
        assert one.damage() == ()
        read += len(every)
    assert read > 4000


def test_headers_nulls_and_control_records(scenario):
    log_dir = logtool.open(scenario("4.3.1/clean"))
    records = list(log_dir.partition("headers.and-nulls", 0).records())
    assert {None, b""} <= {record.key for record in records}
    assert None in {record.value for record in records}
    headers = [header for record in records for header in record.headers]
    assert all(isinstance(key, str) for key, _ in headers)
    assert None in {value for _, value in headers}
    mixed = log_dir.partition("tx.mixed", 0)
    hidden = int(mixed.batches().table.is_control.sum())
    assert hidden > 0
    assert len(list(mixed.records(control=True))) == len(list(mixed.records())) + hidden
    assert mixed.records_table().num_rows == len(list(mixed.records()))


def test_batches_are_those_of_the_log_with_their_segments(scenario):
    one = logtool.open(scenario("4.3.1/clean")).partition("small-segments", 0)
    batches, segments = one.batches(), one.segments()
    assert len(segments) > 2
    assert [part.base_offset for part in segments] == np.unique(batches.segment).tolist()
    assert [part.is_active for part in segments] == [False] * (len(segments) - 1) + [True]
    assert batches.crc_valid.all()
    assert batches.table.records == len(list(one.records(control=True)))
    assert sum(part.size for part in segments) == batches.table.size.sum()


def test_damage_is_an_exception_or_a_value(damaged):
    strict = logtool.open(damaged).partition("codec-none", 0)
    for read in (strict.batches, lambda: list(strict.records()), strict.records_table):
        with pytest.raises(logtool.DamageError) as caught:
            read()
        found = caught.value.damage
        assert (found.position, found.length, found.reason) == (13296, 2945, "crc")
        assert (found.first_offset, found.last_offset) == (149, 178)
        assert found.path == damaged / LOG
    lenient = logtool.open(damaged, damage="report").partition("codec-none", 0)
    batches = lenient.batches()
    assert batches.damage == lenient.damage() == strict.damage() == (found,)
    assert batches.table.position[~batches.crc_valid].tolist() == [13296]
    offsets = [record.offset for record in lenient.records()]
    assert offsets == lenient.records_table(["offset"]).column(0).to_pylist()
    assert set(range(360)) - set(offsets) == set(range(149, 179))


def test_a_reader_reads_the_log_while_it_is_read(damaged):
    reader = logtool.open(damaged).partition("codec-none", 0).records_reader(["offset"])
    first = reader.read_next_batch().column(0).to_pylist()
    assert first[0] == 0
    with pytest.raises(logtool.DamageError) as caught:
        reader.read_all()
    assert first[-1] < caught.value.damage.first_offset == 149


def test_a_torn_end_is_damage_without_a_last_offset(copy_of):
    home = copy_of("4.3.1/clean")
    log = home / LOG
    log.write_bytes(log.read_bytes()[:-10])
    (found,) = (
        logtool.open(home / "codec-none-0", damage="report").partition("codec-none", 0).damage()
    )
    assert (found.reason, found.last_offset) == ("incomplete", None)
    assert found.first_offset > 300


def test_records_that_do_not_decode_are_damage_with_the_offsets_of_their_batch(copy_of):
    home = copy_of("4.3.1/clean")
    body = b"\x02\x00" + b"\xff" * 8
    bad = record_batch.encode(body, base_offset=0, last_offset_delta=4, record_count=5)
    (home / LOG).write_bytes(bad)
    opened = logtool.open(home, damage="report").partition("codec-none", 0)
    (found,) = opened.damage()
    assert (found.reason, found.first_offset, found.last_offset) == ("records", 0, 4)
    assert (list(opened.records()), opened.records_table().num_rows) == ([], 0)
    assert opened.batches().damage == ()
    strict = logtool.open(home).partition("codec-none", 0)
    for read in (lambda: list(strict.records()), strict.records_table):
        with pytest.raises(logtool.DamageError):
            read()


def test_questions_give_the_objects_of_the_commands(damaged):
    one = logtool.open(damaged / "codec-none-0")
    verified = one.verify()
    assert [type(found) for found in verified.findings] == [logtool.Finding]
    (forecast,) = one.plan("4.3").partitions
    assert isinstance(forecast, logtool.PartitionForecast)
    (gaps,) = one.gaps().partitions
    (lost,) = gaps.gaps
    assert (lost.first_offset, lost.last_offset, lost.missing, lost.reason) == (
        149, 178, 30, "damage",
    )  # fmt: skip
    compared = one.watermark()
    assert [type(found) for found in compared.replicas] == [logtool.Replica]
    assert [type(found) for found in compared.partitions] == [logtool.ReplicaGroup]
    assert all(answer.complete for answer in (verified, compared))


def test_an_input_that_cannot_be_read_is_a_value_in_an_answer(damaged):
    index = damaged / "codec-none-0" / "00000000000000000000.index"
    index.unlink()
    index.symlink_to("nowhere")
    answer = logtool.open(damaged / "codec-none-0").verify()
    assert not answer.complete
    assert [error.path for error in answer.unread] == [index]


def test_several_log_dirs_of_one_node_and_not_of_several(scenario):
    homes = log_dirs(scenario("4.3.1/two-log-dirs"))
    both = {one.path for one in logtool.open(*homes).partitions()}
    each = [{one.path for one in logtool.open(home).partitions()} for home in homes]
    assert both == each[0] | each[1]
    assert all(each)
    assert logtool.open(*homes).verify().complete
    with pytest.raises(logtool.UsageError):
        logtool.open(*log_dirs(scenario("4.3.1/replicas")))


def test_secrets_of_a_metadata_log_are_hidden_unless_asked_for(tmp_path):
    metadata_secrets.write(tmp_path)
    found = []
    for shown in (False, True):
        one = next(logtool.open(tmp_path, show_secrets=shown).partitions())
        values = [record.value for record in one.records()]
        assert values == one.records_table(["value"]).column(0).to_pylist()
        found.append(b"".join(values))
    assert metadata_secrets.spelled(found[0]) == []
    assert len(metadata_secrets.spelled(found[1])) == len(metadata_secrets.SECRETS)
    assert len(found[0]) == len(found[1])


def test_a_directory_of_redpanda_is_read_with_the_offsets_of_raft(tmp_path):
    batches = [batch(0, b"a", b"b"), batch(2, b"-", kind=CONFIGURATION), batch(3, b"c")]
    home = data_dir(tmp_path, {"0-1-v1.log": b"".join(batches)})
    one = logtool.open(home).partition("orders", 0)
    assert one.flavour == "redpanda"
    assert [(record.offset, record.value) for record in one.records()] == [
        (0, b"a"), (1, b"b"), (3, b"c"),
    ]  # fmt: skip
    assert one.records_table(["offset"]).column(0).to_pylist() == [0, 1, 3]
    assert one.batches().table.batch_type.tolist() == [1, CONFIGURATION, 1]


def _opened_with(**options: Any) -> Callable[[Path], Any]:
    """Return a function that opens a path with options of any type."""
    return lambda home: logtool.open(home, **options)


@pytest.mark.parametrize(
    ("call", "error"),
    {
        "a path that is missing": (lambda home: logtool.open(home / "no"), logtool.UnreadableError),
        "a file": (lambda home: logtool.open(home / "meta.properties"), logtool.UsageError),
        "a damage policy": (_opened_with(damage="skip"), logtool.UsageError),
        "a flavour": (_opened_with(flavour="x"), logtool.UsageError),
        "a release": (lambda home: logtool.open(home).plan("9.9"), logtool.UsageError),
        "a column": (
            lambda home: next(logtool.open(home).partitions()).records_table(["colour"]),
            logtool.UsageError,
        ),
        "a partition": (
            lambda home: logtool.open(home).partition("nothing", 0), logtool.NothingMatchedError,
        ),
        "a name": (lambda home: logtool.nothing, AttributeError),
    }.values(),
)  # fmt: skip
def test_wrong_calls_are_refused(call, error, scenario):
    with pytest.raises(error):
        call(scenario("4.3.1/clean"))


def test_without_pyarrow_there_is_one_clear_error(scenario, monkeypatch):
    one = next(logtool.open(scenario("4.3.1/clean")).partitions())
    monkeypatch.delitem(sys.modules, "logtool.log.arrow_table", raising=False)
    monkeypatch.delattr("logtool.log.arrow_table", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(logtool.UsageError, match="pyarrow"):
        one.records_table()
