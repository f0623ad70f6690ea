"""No command prints a secret of a metadata log that was made from one of a real broker."""

import json
from pathlib import Path

import pytest
from damage import damage_file, flip
from metadata_secrets import SECRETS, spelled, write
from salvage_campaign import batches

LOG = f"__cluster_metadata-0/{0:020d}.log"
REVEALING = (
    "metadata show", "metadata show --json", "metadata log", "metadata log --json",
    "metadata diff --json --offset 10..23", "metadata at --offset 20 --json",
    "verify --level records --json", "stat --json", "doctor", "plan --json", "gaps --json",
    "txns --json", "dump --records", "dump --records --format csv --decode none", "dump --json",
    "lookup --offset 17 --json",
)  # fmt: skip


@pytest.fixture
def home(tmp_path):
    return write(tmp_path / "home").parents[1]


def test_the_broker_keeps_the_secrets_in_its_log(home):
    assert spelled((home / LOG).read_bytes()) == list(SECRETS)


@pytest.mark.parametrize("line", REVEALING)
def test_no_command_prints_them(run, home, line):
    path = home / "__cluster_metadata-0" if line.startswith("lookup") else home
    done = run(*line.split(), path)
    assert done.stdout
    assert spelled(f"{done.stdout}{done.stderr}".encode()) == []


def test_those_that_are_asked_for_are_printed(run, home):
    shown = run("metadata", "show", "--json", "--show-secrets", home).stdout
    assert spelled(shown.encode()) == list(SECRETS)


@pytest.mark.parametrize("at", [75, 130, -30])
def test_what_decodes_of_damaged_bytes_has_stars_in_their_place(run, home, tmp_path, at):
    log = home / LOG
    position, batch = batches(log)[7]
    damage_file(log, flip, position + at % len(batch))
    saved = tmp_path / "saved"
    done = run(
        "salvage", "-f", "ndjson", "--decode-damaged", "--records", "ndjson", "--output", saved,
        home,
    )  # fmt: skip
    (made,) = done.of_type("decoded")
    assert spelled(done.stdout.encode()) == []
    texts = [path.read_bytes() for path in saved.rglob("*.ndjson")]
    assert len(texts) == 2, "the manifest, and what decodes"
    assert [spelled(one) for one in texts] == [[], []]
    lines = map(json.loads, Path(made["target"]).read_text().splitlines())
    records = [one for one in lines if one["type"] == "record"]
    assert made["records"] == len(records)
    # The bytes themselves are kept as they are.
    (kept,) = (one for one in saved.rglob("*.log@*") if one.suffix != ".ndjson")
    assert spelled(kept.read_bytes())
