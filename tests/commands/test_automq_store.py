"""A bucket of AutoMQ in an object store: the same answers as for a local copy, and its faults."""

import re
from collections import Counter

import pytest
import s3fs
from faulty_store import faulty_client
from s3_server import serving

from logtool.disk import remote
from logtool.formats.automq import names
from logtool.log.automq_bucket import open_bucket

CLUSTER = "rtcdRH6ESFi-nWZAzLnP0g"
URL = "s3://bucket/prefix"


@pytest.fixture(scope="module")
def server(scenario):
    """Return the address of a server with the bucket of the killed node."""
    with serving() as address:
        direct = s3fs.S3FileSystem(key="key", secret="secret", endpoint_url=address)
        direct.makedirs("bucket", exist_ok=True)
        home = scenario("automq/broker-crash") / "s3"
        for path in home.rglob("*"):
            if path.is_file():
                direct.pipe(f"bucket/prefix/{path.relative_to(home)}", path.read_bytes())
        yield address


@pytest.fixture
def faults(server, tmp_path, monkeypatch):
    with faulty_client(server, tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture
def calls(monkeypatch):
    """Return a count of the requests by the names of their operations."""
    counted = Counter()
    real = s3fs.S3FileSystem._call_s3

    async def counting(self, method, *more, **named):
        counted[method] += 1
        return await real(self, method, *more, **named)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counting)
    return counted


@pytest.fixture
def local(scenario):
    return scenario("automq/broker-crash")


def said(text, place):
    """Return an output without its place and its time."""
    return re.sub(r'"elapsed_s": [0-9.]+', "", text.replace(f"{place}", "BUCKET"))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("stat", marks=pytest.mark.long),
        pytest.param("dump --records --topic ledger", marks=pytest.mark.long),
        pytest.param("plan", marks=pytest.mark.long),
    ],
)
def test_a_command_prints_what_it_prints_of_a_local_copy(run, faults, local, words):
    away = run(*words.split(), "-f", "ndjson", URL, local / "meta")
    here = run(*words.split(), "-f", "ndjson", local / "s3", local / "meta")
    assert away.status == here.status == 0, away.stderr
    assert said(away.stdout, URL) == said(here.stdout, local / "s3")


def test_objects_are_listed_at_once_and_read_by_ranges(run, faults, local, calls):
    bucket = open_bucket(remote.parse(URL), CLUSTER)
    assert calls == {"list_objects_v2": 1} or sum(calls.values()) <= 2, calls
    assert len(bucket.objects) == 16
    calls.clear()
    assert run("stat", "--topic", "orders", URL, local / "meta").status == 0
    # Each of the 16 objects and the 18 of the WAL once: they are small.
    assert calls["get_object"] <= 34, calls
    assert calls["head_object"] <= 2, calls


@pytest.mark.long
def test_the_partitions_are_saved_as_directories_of_kafka(run, faults, local, tmp_path):
    words = ("salvage", "--to", "kafka", "--topic", "orders", "--output")
    assert run(*words, tmp_path / "away", URL, local / "meta").status == 0
    assert run(*words, tmp_path / "here", local / "s3", local / "meta").status == 0
    away, here = (
        {path.relative_to(home): path.read_bytes() for path in home.rglob("*.log")}
        for home in (tmp_path / "away", tmp_path / "here")
    )
    assert away == here
    assert len(here) == 4


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "AccessDenied"),
        pytest.param(404, "NoSuchKey", marks=pytest.mark.long),
        pytest.param(503, "SlowDown", marks=pytest.mark.long),
    ],
)
def test_an_object_that_cannot_be_read_is_an_error_and_the_rest_is_read(
    run, faults, local, status, code
):
    faults.refused[names.data_key(CLUSTER, 15)] = (status, code)
    result = run("stat", "-f", "ndjson", URL, local / "meta")
    assert (result.status, len(result.of_type("partition"))) == (4, 12)
    assert any(one["path"].endswith("/15") for one in result.of_type("error"))
    checked = run("verify", "-f", "ndjson", URL, local / "meta")
    assert checked.status == 4


@pytest.mark.parametrize("place", ["bucket", names.data_key(CLUSTER, 0)])
def test_a_store_that_is_busy_is_asked_again(run, faults, local, monkeypatch, place):
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 5)
    faults.refused[place], faults.times[place] = (503, "SlowDown"), 2
    words = ("stat", "--topic", "orders", "-f", "ndjson")
    away = run(*words, URL, local / "meta")
    assert (away.status, faults.hits) == (0, 2), away.stderr
    here = run(*words, local / "s3", local / "meta")
    assert said(away.stdout, URL) == said(here.stdout, local / "s3")


@pytest.mark.parametrize(
    "command", ["plan", *(pytest.param(one, marks=pytest.mark.long) for one in ("gaps", "salvage"))]
)
def test_no_command_takes_an_object_it_may_not_read_for_a_missing_one(
    run, faults, local, tmp_path, command
):
    faults.refused[names.data_key(CLUSTER, 15)] = (403, "AccessDenied")
    more = ("--to", "kafka", "--output", tmp_path / "out") if command == "salvage" else ()
    result = run(command, *more, "-f", "ndjson", URL, local / "meta")
    assert result.status == 4
    assert any("AccessDenied" in one["message"] for one in result.of_type("error"))


@pytest.mark.long
def test_a_bucket_that_may_not_be_listed_is_an_error(run, faults, local):
    faults.refused["/bucket"] = (403, "AccessDenied")
    result = run("verify", "-f", "ndjson", URL, local / "meta")
    assert result.status == 4
    assert any("AccessDenied" in one["message"] for one in result.of_type("error"))


@pytest.mark.parametrize("command", ["plan", "salvage"])
def test_other_urls_are_refused_where_only_local_paths_are_read(run, command, tmp_path):
    words = ("--output", tmp_path / "out") if command == "salvage" else ()
    assert run(command, *words, "s3://bucket/logs").status == 2


@pytest.mark.long
def test_a_listing_of_several_pages_is_complete(server, faults):
    direct = s3fs.S3FileSystem(key="key", secret="secret", endpoint_url=server)
    others = {f"bucket/pages/__automq/{number}": b"" for number in range(1001)}
    direct.pipe(others, batch_size=8)
    key = names.data_key(CLUSTER, 2**40)
    direct.pipe(f"bucket/pages/{key}", b"x")
    bucket = open_bucket(remote.parse("s3://bucket/pages"), CLUSTER)
    assert list(bucket.objects) == [2**40]
