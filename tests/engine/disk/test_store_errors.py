"""Errors of an object store: each names the operation, the object and the code, and ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import s3fs
from faulty_store import Faults, faulty
from s3_server import serving, settings

from logtool.disk import remote
from logtool.errors import UnreadableError, UnwritableError


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture
def faults(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Return the faults of a store with an object, by which a command finds it."""
    found = Faults()
    with faulty(server, found) as between:
        for name, value in settings(between, tmp_path).items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
        direct: Any = s3fs.S3FileSystem(endpoint_url=server)
        direct.makedirs("bucket", exist_ok=True)
        direct.pipe("bucket/log", b"bytes")
        yield found
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize(
    ("status", "code"), [(403, "AccessDenied"), (503, "SlowDown"), (500, "InternalError")]
)
def test_a_refused_read_names_operation_object_and_code(faults, status, code):
    path = remote.parse("s3://bucket/log")
    assert remote.read(path, 0, 5) == b"bytes"
    faults.refused["/log"] = (status, code)
    with pytest.raises(UnreadableError) as read:
        remote.read(path, 0, 5)
    faults.refused["/bucket"] = (status, code)
    with pytest.raises(UnreadableError) as listed:
        remote.list_dir(remote.parse("s3://bucket"))
    for error, operation in ((read, "GetObject"), (listed, "ListObjectsV2")):
        assert all(word in str(error.value) for word in (operation, code, str(status)))
    assert read.value.path == path


def test_a_refused_write_names_operation_object_and_code(faults):
    store = pytest.importorskip("logtool.spark.scan.store")
    url = "s3://bucket/tables"
    store.store_at.__globals__["_behind"].cache_clear()
    place = store.store_at(url)
    faults.refused["/one.json"] = (403, "AccessDenied")
    for write in (place.put, place.create):
        with pytest.raises(UnwritableError) as error, store.translated(url):
            write("_runs/one.json", b"{}")
        assert str(error.value.path) == "s3://bucket/tables/_runs/one.json"
        assert all(word in str(error.value) for word in ("PutObject", "AccessDenied", "403"))
    store.store_at.__globals__["_behind"].cache_clear()
