"""An object store that lists what it does not have, or sizes that nothing has."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest
import s3fs
from damage import flip
from faulty_store import Faults, faulty
from s3_server import serving, settings

from logtool.formats import record

URL = "s3://bucket/logs"
LOG = f"orders-0/{0:020d}.log"
INDEX = f"orders-0/{0:020d}.index"
SMALL = ("orders-0/leader-epoch-checkpoint", "orders-0/partition.metadata", "meta.properties",
         "recovery-point-offset-checkpoint")  # fmt: skip
HUGE = 2**62


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


@dataclass(frozen=True)
class Store:
    """A log dir of two partitions in a bucket, and what goes wrong when it is read."""

    faults: Faults
    home: Path


@pytest.fixture
def store(
    server: str, partition: Path, make_batch: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Store]:
    home = partition.parent
    other = home / "payments-0"
    other.mkdir()
    data = (partition / f"{0:020d}.log").read_bytes()
    (other / f"{0:020d}.log").write_bytes(data)
    for name in (".index", ".timeindex"):
        (other / f"{0:020d}{name}").write_bytes(b"")
    (other / "partition.metadata").write_text("version: 0\ntopic_id: K8aAPcfLQt2bqs1JT_rMgQ")
    (other / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (home / "meta.properties").write_text(
        "version=1\nnode.id=1\ncluster.id=J8aAPcfLQt2bqs1JT_rMgQ\n"
    )
    rows = "0\n2\norders 0 0\npayments 0 0\n"
    (home / "recovery-point-offset-checkpoint").write_text(rows)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings(server, tmp_path).items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    s3 = fsspec.filesystem("s3")
    if not s3.exists("bucket"):  # the same for all tests: none changes it
        s3.mkdir("bucket")
        s3.put(f"{home}/", "bucket/logs/", recursive=True)
    faults = Faults()
    with faulty(server, faults) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        s3fs.S3FileSystem.clear_instance_cache()
        yield Store(faults, home)
        s3fs.S3FileSystem.clear_instance_cache()


READ_BY = {
    "verify": (LOG, INDEX, *SMALL),
    "stat": (LOG,),
    "txns": (LOG, "orders-0/partition.metadata"),
    "gaps": (LOG, "orders-0/leader-epoch-checkpoint", *SMALL[2:]),
    "dump": (LOG, INDEX, *SMALL),
    "dump-index": (INDEX,),
    "diff": (LOG, *SMALL[:3]),
}
"""The files that a command reads of a log dir behind a URL."""
CASES = [(command, name) for command, names in READ_BY.items() for name in names]


def arguments(command: str, store: Store) -> list[object]:
    """Return a command line over the log dir in the bucket."""
    more = [store.home] if command == "diff" else []
    return [command, "-f", "ndjson", URL, *more]


@pytest.mark.long
@pytest.mark.parametrize(("command", "name"), CASES)
def test_what_is_listed_and_not_there_is_one_line_and_all_else_is_done(run, store, command, name):
    store.faults.gone.add(name)
    result = run(*arguments(command, store))
    assert result.status == 4, result.stderr
    assert sum(f"{URL}/{name}: " in line for line in result.stderr.splitlines()) == 1
    summary = result.objects[-1]
    assert (summary["type"], summary["complete"]) == ("summary", False)
    if command != "verify":  # it prints nothing about a sound partition
        assert "payments" in result.stdout
    assert summary["partitions"] >= 1 or command == "dump-index"


@pytest.mark.parametrize(
    "question", [["--offset", "3"], ["--timestamp", "1700000000003"]], ids=lambda one: one[0]
)
@pytest.mark.parametrize("name", [LOG, INDEX])
def test_lookup_in_what_is_not_there_is_one_line(run, store, question, name):
    store.faults.gone.add(name)
    result = run("lookup", f"{URL}/orders-0", *question)
    assert result.status == 4
    assert result.stderr.count(f"{URL}/{name}: ") == 1


@pytest.mark.parametrize("level", ["quick", "batches", "records"])
def test_a_log_that_ends_before_its_listed_size_was_not_looked_at_as_a_whole(run, store, level):
    store.faults.sizes[LOG] = HUGE
    result = run("verify", "--level", level, "-f", "ndjson", URL)
    size = (store.home / LOG).stat().st_size
    assert result.status == 4
    (line,) = (one for one in result.stderr.splitlines() if f"logtool: {URL}/{LOG}: " in one)
    assert re.findall(r"\d+", line.partition(f"/{LOG}: ")[2]) == [str(HUGE), str(size)]
    summary = result.objects[-1]
    assert (summary["segments"], summary["partitions"]) == (2, 2)
    assert summary["bytes"] <= 2 * size


@pytest.mark.long
@pytest.mark.parametrize(("command", "name"), CASES)
def test_no_listed_size_makes_a_command_hang_or_take_its_memory(run, store, command, name):
    store.faults.sizes[name] = HUGE
    result = run(*arguments(command, store))
    assert result.status in (0, 1, 4), result.stderr


@pytest.mark.parametrize("level", ["batches", "records"])
def test_a_closed_segment_that_is_replaced_while_it_is_read_is_one_line(
    run, server, store, make_batch, level
):
    rows = [record.Record(0, 0, b"key", b"value")]
    later = b"".join(make_batch(at, rows) for at in range(1000, 1003))
    s3, url = s3fs.S3FileSystem(endpoint_url=server), f"{URL}-{level}"
    s3.put(f"{store.home}/", f"bucket/logs-{level}/", recursive=True)
    s3.pipe_file(f"bucket/logs-{level}/orders-0/{1000:020d}.log", later)
    other = flip((store.home / LOG).read_bytes(), 62)
    store.faults.before = {
        LOG: lambda: s3.pipe_file(f"bucket/logs-{level}/{LOG}", other),
        f"{1000:020d}.log": lambda: s3.pipe_file(
            f"bucket/logs-{level}/orders-0/{1000:020d}.log", later + make_batch(1003, rows)
        ),
    }
    result = run("verify", "--level", level, "-f", "ndjson", url)
    assert not store.faults.before
    assert result.status == 4
    assert result.stderr.count(f"{url}/{LOG}: ") == 1
    assert f"{1000:020d}.log: " not in result.stderr
    codes = {one["code"] for one in result.objects if one["type"] == "finding"}
    assert "batch/crc" not in codes
    assert result.objects[-1]["segments"] == 3
