"""Objects of tiered storage behind a local S3 server: the answers of a local copy, and faults."""

import re

import pytest
import s3fs
from faulty_store import faulty_client
from s3_server import serving

URL = "s3://bucket/tiered"


@pytest.fixture(scope="module")
def tiers(scenario):
    """Return the folder with `data` and `objects`, which is shared and must not be changed."""
    return scenario("tiered/4.3.1")


@pytest.fixture(scope="module")
def server(tiers):
    """Return the address of a server that has the objects in a bucket."""
    with serving() as address:
        direct = s3fs.S3FileSystem(key="key", secret="secret", endpoint_url=address)
        direct.makedirs("bucket")
        direct.put(f"{tiers / 'objects'}/", "bucket/tiered/", recursive=True)
        yield address


@pytest.fixture
def faults(server, tmp_path, monkeypatch):
    """Return the faults of a proxy in front of the server, which commands use."""
    with faulty_client(server, tmp_path, monkeypatch) as found:
        yield found


def plain(text, place):
    """Return an output without its place and its time."""
    return re.sub(r'"elapsed_s": [0-9.]+', "", text.replace(f"{place}", "OBJECTS"))


@pytest.mark.parametrize("words", ["remote verify --rsm local", "dump --topic sized", "stat"])
def test_a_bucket_gives_what_a_local_copy_gives(run, faults, tiers, words):
    away = run(*words.split(), "-f", "ndjson", URL, tiers / "data")
    here = run(*words.split(), "-f", "ndjson", tiers / "objects", tiers / "data")
    assert away.status == here.status, away.stderr
    assert plain(away.stdout, URL) == plain(here.stdout, tiers / "objects")


@pytest.mark.parametrize("words", ["dump --records --topic aged", "stat"])
def test_a_bucket_alone_gives_what_a_local_copy_gives(run, faults, tiers, words):
    away = run(*words.split(), "-f", "ndjson", URL)
    here = run(*words.split(), "-f", "ndjson", tiers / "objects")
    assert away.status == here.status == 0, away.stderr
    assert plain(away.stdout, URL) == plain(here.stdout, tiers / "objects")


def test_a_refused_object_of_a_bucket_alone_is_an_error(run, faults, tiers):
    log = sorted((tiers / "objects").rglob("sized-*/*.log"))[-1].name
    faults.refused[log] = (403, "AccessDenied")
    found = run("dump", "--topic", "sized", "-f", "ndjson", URL)
    assert found.status == 4
    assert any("AccessDenied" in one["message"] for one in found.of_type("error"))


@pytest.mark.parametrize("words", ["remote verify --rsm local", "dump --records --topic sized"])
@pytest.mark.parametrize("fault", [(403, "AccessDenied"), (503, "SlowDown")])
def test_an_object_that_may_not_be_read_is_an_error_and_no_loss(run, faults, tiers, words, fault):
    log = sorted((tiers / "objects").rglob("sized-*/*.log"))[-1].name
    faults.refused[log] = fault
    found = run(*words.split(), "-f", "ndjson", URL, tiers / "data")
    assert found.status == 4
    assert any(fault[1] in one["message"] for one in found.of_type("error"))
    assert not [one for one in found.of_type("finding") if one["code"] == "remote/missing-object"]
