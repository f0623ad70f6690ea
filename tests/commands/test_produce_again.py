"""The script of the guide that produces records again, with a producer that writes them down."""

import base64
import json
import re
import subprocess
import sys

import pytest
from readme import ROOT

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


def test_a_dump_without_the_bytes_is_refused(run, produce, odd):
    dump = run("dump", "--records", "--values", "len", "-f", "ndjson", odd).stdout
    status, errors, found = produce(dump)
    assert status == 1
    assert {one["value"] for one in found} <= {None}
    assert "--values base64" in errors
