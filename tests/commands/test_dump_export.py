"""`dump --format kcat` and `--format console-producer`; tests/broker has real producers."""

import re

import pytest
from producers import as_console_producer, as_kcat

from logtool.formats import control_record
from logtool.formats.record import Record

FORMATS = {
    "kcat": ("kcat -P .*", lambda d, c: [(k, v, []) for k, v in as_kcat(d, c)]),
    "console-producer": (r"kafka-console-producer\.sh .*", as_console_producer),
}


@pytest.fixture
def plain(log, make_batch):
    """Return a log of plain records, one of a transaction, its marker, and a tombstone."""
    key, value = control_record.encode_end_transaction(commit=True, coordinator_epoch=5)
    log.write_bytes(
        make_batch(0, [Record(0, 0, b"a", b"1"), Record(1, 1, b"b", b"2 \xc3\xa9")])
        + make_batch(2, [Record(0, 0, b"c", b"3")], attributes=0x10, producer_id=7)
        + make_batch(3, [Record(0, 0, key, value)], attributes=0x30, producer_id=7)
        + make_batch(4, [Record(0, 0, b"d", None)])
    )
    return log


@pytest.mark.parametrize("name", FORMATS)
def test_the_command_that_is_shown_reads_the_output(run, plain, name):
    pattern, read = FORMATS[name]
    result = run("dump", "-f", name, plain)
    assert result.status == 0
    (command,) = re.findall(pattern, result.stderr)
    assert "orders" in command
    assert read(result.stdout.encode(), command) == [
        (b"a", b"1", []), (b"b", b"2 \xc3\xa9", []), (b"c", b"3", []), (b"d", None, []),
    ]  # fmt: skip
    assert "4 records" in result.stderr
    assert "timestamps" in result.stderr
    assert "1 record of transactions" in result.stderr


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_selected_is_exported(run, plain, name):
    pattern, read = FORMATS[name]
    result = run("dump", "-f", name, "--key", "a", "--key", "d", "--limit", 1, plain)
    command = re.findall(pattern, result.stderr)[0]
    assert read(result.stdout.encode(), command) == [(b"a", b"1", [])]


@pytest.mark.parametrize("name", FORMATS)
def test_a_record_that_cannot_be_said_is_status_5_and_nothing_is_printed(
    run, log, make_batch, name
):
    headers = [(b"a,b", b"1")]
    log.write_bytes(
        make_batch(0, [Record(0, 0, b"a", b"1")])
        + make_batch(1, [Record(0, 0, b"b", b"2", headers)])
    )
    result = run("dump", "-f", name, log)
    assert (result.status, result.stdout) == (5, "")
    assert result.stderr.startswith(f"logtool: {log}: offset 1")
    assert len(result.stderr.splitlines()) == 1


def test_partitions_that_are_not_kept_are_reported(run, scenario):
    home = scenario("4.3.1/clean")
    options = ["--topic", "codec-none", "--offset", "..1"]
    result = run("dump", "-f", "console-producer", *options, home)
    assert result.status == 0
    assert "timestamps" in result.stderr
    assert "(3)" in result.stderr
    assert "--topic codec-none " in result.stderr


def test_damage_is_reported_and_the_status_is_1(run, log, make_batch):
    good = make_batch(0, [Record(0, 0, b"a", b"1")])
    bad = bytearray(make_batch(1, [Record(0, 0, b"b", b"2")]))
    bad[-1] ^= 1
    log.write_bytes(good + bytes(bad) + make_batch(2, [Record(0, 0, b"c", b"3")]))
    result = run("dump", "-f", "kcat", log)
    assert (result.status, result.stdout) == (1, "a\t1\nc\t3\n")
    assert "CRC" in result.stderr


def test_nothing_to_export_says_so(run, log):
    result = run("dump", "-f", "kcat", "--key", "none like it", log)
    assert (result.status, result.stdout) == (0, "")
    assert "0 records" in result.stderr
