"""The pipeline on an object store: log dirs read from one, tables written to one."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

import fsspec
import pandas
import pytest
import s3fs
from pipeline.places import logtool
from pyarrow import dataset
from s3_server import serving, settings
from verification import small_log_dir

from logtool.formats.automq import names
from logtool.spark.scan import manifest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
CLUSTER = "rtcdRH6ESFi-nWZAzLnP0g"
TABLES = ("segments", "batches", "gaps", "producers", "transactions", "findings", "replicas")


@pytest.fixture
def outside(tmp_path) -> Iterator[dict[str, str]]:
    with serving() as address:
        found = settings(address, tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in found.items():
                patch.setenv(name, value)
            s3fs.S3FileSystem.clear_instance_cache()
            yield {**os.environ, **found}
            s3fs.S3FileSystem.clear_instance_cache()


def frame(files, root: str, name: str) -> pandas.DataFrame:
    """Return a table with its log dirs by their last name."""
    paths = [path.removeprefix("s3://") for path in manifest.files(root, name)]
    rows = dataset.dataset(paths, filesystem=files).to_table().to_pandas()
    rows["log_dir"] = [str(home).rpartition("/")[2] for home in rows.log_dir]
    if name == "segments":
        rows = rows.drop(columns=["modified_ms", "modified"])  # of an object, when it was put there
    if name == "findings":
        rows["path"] = [str(path).rpartition("/")[2] for path in rows.path]
        for column in ("message", "next"):
            texts = [None if text is None else str(text) for text in rows[column]]
            rows[column] = [text and re.sub(r"\S*/(?=broker-)", "", text) for text in texts]
    order = [c for c in ("log_dir", "directory", "segment", "position", "producer_id",
                         "first_offset", "number") if c in rows]  # fmt: skip
    return rows.sort_values(order, ignore_index=True)


def test_a_bucket_gives_the_same_tables_as_a_disk(outside, scenario, tmp_path):
    home = small_log_dir(
        scenario("4.3.1/clean"), tmp_path / "broker-1",
        "codec-none-0", "compacted.keys-0", "tx.mixed-0", "small-segments-0",
    )  # fmt: skip
    copy = tmp_path / "broker-2"
    shutil.copytree(home, copy)
    s3 = fsspec.filesystem("s3")
    s3.mkdir("bucket")
    for one in (home, copy):
        s3.put(f"{one}/", f"bucket/logs/{one.name}/", recursive=True)
    done = logtool("scan", home, copy, "--output", tmp_path / "out", "--run-id", "one", **outside)
    assert done.returncode == 0, done.stderr
    urls = ["s3://bucket/logs/broker-1", "s3://bucket/logs/broker-2"]
    for _ in range(2):  # the second run replaces the first
        done = logtool(
            "scan", *urls, "--output", "s3://bucket/tables", "--run-id", "one", **outside
        )
        assert done.returncode == 0, done.stderr
    assert re.search(r"s3://bucket/tables/_data/one\.[0-9a-f]+/batches\b", done.stdout)
    s3.invalidate_cache()
    assert not s3.exists("bucket/tables/_owners")
    done = logtool("scan", "--output", "s3://bucket/tables", "--list", "-f", "csv", **outside)
    assert [line.split(",")[:2] for line in done.stdout.splitlines()[1:]] == [["one", "complete"]]
    for name in TABLES:
        here, there = (
            frame(None, str(tmp_path / "out"), name),
            frame(s3, "s3://bucket/tables", name),
        )
        assert len(here) > 0
        pandas.testing.assert_frame_equal(there, here)
    local = logtool("verify", "-v", home, **outside)
    remote = logtool("verify", "-v", "--engine", "spark", urls[0], **outside)
    assert remote.returncode == local.returncode
    lines = [line.replace(urls[0], str(home)) for line in remote.stdout.splitlines()]
    assert lines == local.stdout.splitlines()


def test_a_bucket_that_is_not_there_is_one_line(outside, tmp_path):
    done = logtool("scan", "s3://nowhere/x", "--output", tmp_path / "out", **outside)
    assert done.returncode == 4
    assert "s3://nowhere/x" in done.stderr.splitlines()[0]


def test_a_damaged_bucket_of_automq_gives_what_a_local_copy_gives(outside, scenario, tmp_path):
    home = tmp_path / "node"
    shutil.copytree(scenario("automq/broker-crash"), home)
    (home / "s3" / names.data_key(CLUSTER, 1)).unlink()
    s3 = fsspec.filesystem("s3")
    s3.mkdir("bucket")
    s3.put(f"{home / 's3'}/", "bucket/prefix/", recursive=True)
    url, meta = "s3://bucket/prefix", home / "meta"

    output = tmp_path / "out"
    words = ("--tables", "segments,findings", "--output", output)
    done = logtool("scan", *words, url, meta, **outside)
    assert done.returncode == 4, done.stderr

    def local(*words: str) -> list[dict[str, Any]]:
        text = logtool(*words, "-f", "ndjson", home / "s3", meta, **outside).stdout
        return [json.loads(line) for line in text.splitlines()]

    expected = {
        "findings": (local("verify", "-v"), "finding", ("code", "severity", "path", "message")),
        "segments": (local("stat", "--segments"), "segment",
                     ("topic", "partition", "segment", "batches", "records")),
    }  # fmt: skip
    for name, (rows, kind, columns) in expected.items():
        table = dataset.dataset(manifest.files(str(output), name)).to_table().select(columns)
        there = {tuple(str(one).replace(url, str(home / "s3")) for one in row.values())
                 for row in table.to_pylist()}  # fmt: skip
        here = {tuple(str(one[column]) for column in columns)
                for one in rows if one["type"] == kind}  # fmt: skip
        if name == "findings":
            # Other tests cover findings of the metadata log and of gaps.
            there, here = ({row for row in some if row[0].startswith("automq-")}
                           for some in (there, here))  # fmt: skip
        assert {row[0] for row in there ^ here} <= {"__cluster_metadata"}, there ^ here
        assert len(there & here) >= 2
