"""The metadata log of AutoMQ holds the keys of its object store: no command shows them."""

import base64
from pathlib import Path

import pytest

SECRET = b"accessKey=a&secretKey=b"
SPELLED = [SECRET, SECRET.hex().encode(), SECRET.hex(" ").encode()] + [
    base64.b64encode(bytes(lead) + SECRET)[4:-4] for lead in range(3)
]
LOG = "{meta}/__cluster_metadata-0"
BUCKET = "{bucket} {meta}"


def shows(data: bytes) -> bool:
    return any(spelling in data for spelling in SPELLED)


@pytest.fixture
def places(scenario):
    home = scenario("automq/broker-crash")
    return {"meta": home / "meta", "bucket": home / "s3"}


QUICK = [
    f"dump --records -f json {LOG}", f"dump --records -f csv {LOG}",
    f"dump --records -f kafka {LOG}", f"dump --records --values base64 -f ndjson {LOG}",
    f"dump --records --values hex {LOG}", f"dump --grep __automq_node -f ndjson {LOG}",
    f"kafka-dump-log --cluster-metadata-decoder --files {LOG}/00000000000000000000.log",
    f"kafka-dump-log --print-data-log --files {LOG}/00000000000000000000.log",
    f"dump --records -f ndjson {BUCKET}", f"lookup --offset 40 -f ndjson {LOG}",
    "metadata show -f json {meta}", "metadata log -f json {meta}",
    "metadata at --offset 100 -f ndjson {meta}",
]  # fmt: skip
SLOW = [
    f"dump --records -f {form} {LOG}" for form in ("table", "tsv", "markdown")
] + [
    f"stat -v {BUCKET}", f"plan -v -f ndjson {BUCKET}", f"gaps -v -f json {BUCKET}",
    f"groups -v {BUCKET}", f"txns -v {BUCKET}", f"verify -v --level records {BUCKET}",
    "doctor -v {meta}", "dirs -v {meta}", "quorum {meta}", "retention {meta}", "cleaner {meta}",
    "space {meta}", "watermark {meta}", "diff {meta} {meta}", "checkpoint lint {meta}",
    "recover {meta}", "rebuild-index {meta}", "metadata diff {meta} {meta}",
]  # fmt: skip


@pytest.mark.parametrize(
    "words", [*QUICK, *(pytest.param(one, marks=pytest.mark.long) for one in SLOW)]
)
def test_no_output_shows_the_keys(run, places, words):
    result = run(*words.format(**places).split())
    assert result.status in (0, 1, 4), result.stderr
    assert result.stdout or result.stderr
    assert not shows((result.stdout + result.stderr).encode())


@pytest.mark.parametrize("form", ["ndjson", "kafka"])
def test_they_are_found_where_they_are_asked_for(run, places, form):
    words = f"dump --records --show-secrets -f {form} {LOG}".format(**places)
    assert shows(run(*words.split()).stdout.encode())


def test_a_snapshot_of_the_metadata_log_shows_no_keys(run, scenario):
    folder = scenario("automq/broker-clean") / "meta-later"
    (path,) = folder.glob("*.checkpoint")
    assert shows(path.read_bytes())
    result = run("dump", "--records", "-f", "ndjson", path)
    assert result.status == 0
    assert not shows(result.stdout.encode())


def test_no_table_of_parquet_shows_the_keys(run, places, tmp_path):
    from pyarrow import parquet

    target = tmp_path / "records.parquet"
    words = f"dump --records -f parquet --output {target} {LOG}".format(**places)
    assert run(*words.split()).status == 0
    rows = parquet.read_table(target).to_pylist()
    assert any(b"__automq_node/1" in (row["value"] or b"") for row in rows)
    assert not any(shows(row["value"] or b"") for row in rows)


def test_an_error_about_a_damaged_record_shows_no_keys(run, copy_of):
    home = copy_of("automq/broker-crash")
    (log,) = Path(home / "meta" / "__cluster_metadata-0").glob("*.log")
    data = log.read_bytes()
    at = data.index(SECRET)
    for cut in (at + 5, at + len(SECRET) + 3):
        log.write_bytes(data[:cut])
        for words in ("verify -v", "dump --records", "metadata show", "metadata log", "plan"):
            result = (
                run(*words.split(), "-f", "ndjson", home / "s3", home / "meta")
                if words == "plan"
                else run(*words.split(), "-f", "ndjson", home / "meta")
            )
            assert result.status in (0, 1, 2, 4)
            assert not shows((result.stdout + result.stderr).encode())
