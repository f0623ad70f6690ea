"""The script of the guide that produces records again, with a producer that writes them down."""

import base64
import json
import re
import subprocess
import sys

import pytest
from damage import damage_file, flip
from readme import ROOT
from verification import batches

PRODUCER = """
import json, os

class Producer:
    def __init__(self, settings):
        self.lines = open(os.environ["PRODUCED"], "a")

    def produce(self, topic, on_delivery, **record):
        shown = {name: one.hex() if isinstance(one, bytes) else one for name, one in record.items()}
        shown["headers"] = [
            (key, None if value is None else value.hex()) for key, value in record["headers"]
        ]
        self.lines.write(json.dumps({"topic": topic, **shown}) + "\\n")

    def poll(self, seconds):
        pass

    def flush(self):
        self.lines.close()
"""


@pytest.fixture
def produce(tmp_path, child_environment):
    """Return a function that runs the script: its status, stderr and the records it produces."""
    guide = (ROOT / "man" / "logtool-recipes.md").read_text("utf-8")
    (script,) = re.findall(r'```python\n("""Produce the records.*?)```', guide, re.DOTALL)
    (tmp_path / "produce-again").write_text(script)
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "confluent_kafka.py").write_text(PRODUCER)
    produced = tmp_path / "produced"

    def run_script(lines):
        produced.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, tmp_path / "produce-again", "HOST:PORT", "again"],
            input=lines.encode(), capture_output=True, check=False,
            env=child_environment(PYTHONPATH=str(tmp_path / "stub"), PRODUCED=str(produced)),
        )  # fmt: skip
        found = [json.loads(line) for line in produced.read_text().splitlines()]
        return done.returncode, done.stderr.decode(), found

    return run_script


def test_the_command_of_the_guide_takes_the_script_out_of_the_man_page(tmp_path):
    guide = (ROOT / "man" / "logtool-recipes.md").read_text("utf-8")
    (script,) = re.findall(r'```python\n("""Produce the records.*?)```', guide, re.DOTALL)
    (command,) = re.findall(
        r"^logtool man recipes \| (sed .*) > produce-again$", guide, re.MULTILINE
    )
    page = (ROOT / "man" / "logtool-recipes.7").read_bytes()
    done = subprocess.run(["sh", "-c", command], input=page, capture_output=True, check=True)
    assert done.stdout.decode() == script


@pytest.fixture
def odd(scenario):
    """Return a partition dir with null keys and values, values that are no text, and headers."""
    return scenario("4.3.1/clean") / "headers.and-nulls-0"


def expected(run, path):
    """Return the records that a client wrote, as the producer above writes them down."""

    def hexadecimal(shown):
        return shown and base64.b64decode(shown["base64"]).hex()

    found = run("dump", "--records", "--values", "base64", "-f", "ndjson", path)
    return [
        {
            "topic": "again",
            "key": hexadecimal(one["key"]),
            "value": hexadecimal(one["value"]),
            "headers": [
                [base64.b64decode(h["key"]["base64"]).decode(), hexadecimal(h["value"])]
                for h in one["headers"]
            ],
            "partition": one["partition"],
            "timestamp": one["timestamp_ms"],
        }
        for one in found.of_type("record")
        if not one["control"]
    ]


@pytest.mark.parametrize("values", ["utf8", "base64", "hex"])
def test_every_encoding_of_a_dump_gives_the_same_bytes(run, produce, odd, values):
    dump = run("dump", "--records", "--values", values, "-f", "ndjson", odd).stdout
    status, errors, found = produce(dump)
    assert (status, errors) == (0, "")
    assert found == expected(run, odd)
    assert {one["value"] is None for one in found} == {True, False}
    assert any(one["headers"] for one in found)
    *most, _ = dump.splitlines(keepends=True)
    status, errors, _ = produce("".join(most))
    assert (status, errors != "") == (1, True), "the dump ended early"
    assert produce("")[0] == 1, "there is no dump"


def test_the_files_of_salvage_are_produced(run, produce, odd, tmp_path):
    saved = run("salvage", "--records", "ndjson", "-f", "ndjson", "--output", tmp_path / "o", odd)
    (written,) = saved.of_type("records")
    status, errors, found = produce((tmp_path / "o/records/headers.and-nulls-0.ndjson").read_text())
    assert (status, errors) == (0, "")
    assert found == expected(run, odd)
    assert len(found) == written["records"]


def committed(run, path):
    """Return the offsets of a partition that a read_committed consumer gets."""
    ended = run("txns", "--all", "-f", "ndjson", path).of_type("transaction")
    dumped = run("dump", "--records", "-f", "ndjson", path).of_type("record")
    left_out = [one for one in ended if one["state"] != "committed"]
    return [
        one["offset"]
        for one in dumped
        if not one["control"]
        and not any(
            one["transactional"]
            and one["producer_id"] == each["producer_id"]
            and each["first_offset"] <= one["offset"] <= each["last_offset"]
            for each in left_out
        )
    ]


def test_records_of_aborted_transactions_are_left_out(run, produce, scenario, tmp_path):
    home = scenario("4.3.1/clean")
    target = tmp_path / "o"
    run("salvage", "--records", "ndjson", "--output", target, home / "tx.mixed-0")
    lines = (target / "records/tx.mixed-0.ndjson").read_text()
    wanted = committed(run, home / "tx.mixed-0")
    saved = [json.loads(line) for line in lines.splitlines()]
    kept = [one["offset"] for one in saved
            if one["transaction_outcome"] not in ("aborted", "open")]  # fmt: skip
    assert kept == wanted
    status, errors, found = produce(lines)
    assert status == 0
    assert len(found) == len(wanted) < len(saved)
    assert errors  # the number of the others


def test_a_dump_of_a_damaged_log_is_produced_as_a_whole(run, produce, copy_of):
    log = copy_of("4.3.1/clean") / "codec-none-0" / f"{0:020d}.log"
    damage_file(log, flip, int(batches(log).position[2]) + 70)
    done = run("dump", "--records", "--values", "base64", "-f", "ndjson", log.parent)
    assert done.status == 1
    status, _, found = produce(done.stdout)
    assert status == 0
    assert len(found) == len([one for one in done.of_type("record") if not one["control"]])


def test_a_dump_without_the_bytes_is_refused(run, produce, odd):
    dump = run("dump", "--records", "--values", "len", "-f", "ndjson", odd).stdout
    status, errors, found = produce(dump)
    assert status == 1
    assert {one["value"] for one in found} <= {None}
    assert "--values base64" in errors
