"""Reads of an object store whose objects are refused, removed or replaced meanwhile."""

import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest
import s3fs
from faulty_store import Faults, faulty
from pipeline.places import span
from s3_server import serving, settings
from thinned import some

from logtool.disk import remote
from logtool.schemas import arrow
from logtool.spark.source import reading
from logtool.spark.source.loss import LostDataError
from logtool.spark.source.reading import ReadOptions

FIRST, LAST = (f"bucket/data/orders-0/{base:020d}.log" for base in (0, 30))
BATCHES = tuple(arrow.schema("batches").names)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


@dataclass(frozen=True)
class Bucket:
    """A bucket with two segments of a partition, and the faults that stand before it."""

    server: str
    faults: Faults
    direct: Any
    """The file system of the bucket, without the faults."""

    def planned(self, *, fails: bool = True) -> Callable[[], list[int]]:
        """List the partition, and return a function that reads it and returns base offsets."""
        options = ReadOptions("batches", BATCHES, fail_on_data_loss=fails)
        bundles = reading.plan([remote.parse("s3://bucket/data")], options)
        pieces = [piece for bundle in bundles for piece in bundle]
        assert len(pieces) == 2

        def read() -> list[int]:
            rows = [row for some in reading.read_all(pieces, options) for row in some.to_pylist()]
            return [row["base_offset"] for row in rows]

        return read


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    faults = Faults()
    with faulty(server, faults) as between:
        for name, value in settings(between, tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
        s3fs.S3FileSystem.clear_instance_cache()
        direct: Any = s3fs.S3FileSystem(endpoint_url=server)
        direct.makedirs("bucket", exist_ok=True)
        for name, base in ((FIRST, 0), (LAST, 30)):
            direct.pipe_file(name, b"".join(span(at, at + 9) for at in range(base, base + 30, 10)))
        yield Bucket(server, faults, direct)
        s3fs.S3FileSystem.clear_instance_cache()


def replace(store: Bucket, *more: bytes) -> None:
    """Put an object of the same size, or a larger one, in the place of the first segment."""
    other = b"".join(span(at, at + 9, leader_epoch=7) for at in (0, 10, 20))
    assert len(other) == store.direct.info(FIRST)["size"]
    store.direct.pipe_file(FIRST, other + b"".join(more))


def refuse(store: Bucket, status: int, code: str) -> None:
    store.faults.refused[f"{0:020d}.log"] = (status, code)


CHANGES: dict[str, Callable[[Bucket], None]] = {
    "same size": replace,
    "larger": lambda store: replace(store, span(25, 29)),
    "smaller": lambda store: store.direct.pipe_file(FIRST, span(0, 9)),
    "removed": lambda store: store.direct.rm_file(FIRST),
    "403": partial(refuse, status=403, code="AccessDenied"),
    "404": partial(refuse, status=404, code="NoSuchKey"),
    "503": partial(refuse, status=503, code="SlowDown"),
}


@pytest.mark.parametrize("change", some(CHANGES, 3))
def test_an_object_that_is_not_what_was_listed_is_a_loss(bucket, caplog, change):
    strict, loose = bucket.planned(), bucket.planned(fails=False)
    CHANGES[change](bucket)
    with pytest.raises(LostDataError, match=FIRST):
        strict()
    assert loose()[-3:] == [30, 40, 50]
    assert FIRST in caplog.text


def test_an_object_is_asked_for_by_its_time_where_a_store_has_no_tags(monkeypatch):
    memory = fsspec.filesystem("memory")
    for base in (0, 10):
        memory.pipe_file(f"/data/orders-0/{base:020d}.log", span(base, base + 9))
    options = ReadOptions("batches", BATCHES)
    read = partial(reading.plan, [remote.parse("memory://data")], options)
    before, again = read(), read()
    assert len(list(reading.read_all(before[0], options))) == 2
    memory.pipe_file(f"/data/orders-0/{0:020d}.log", span(0, 9, leader_epoch=7))
    with pytest.raises(LostDataError):
        list(reading.read_all(again[0], options))
    memory.rm("/data", recursive=True)


def test_an_active_segment_that_is_stored_again_is_no_loss(bucket):
    read = bucket.planned()
    bucket.direct.pipe_file(LAST, bucket.direct.cat_file(LAST) + span(60, 69))
    assert read() == [0, 10, 20, 30, 40, 50]


def test_a_store_that_refuses_in_the_middle_of_a_read_is_a_loss(bucket):
    """The server itself asks for credentials after some requests, and answers 403 from then on."""

    def refuse_after(requests: int) -> None:
        data, plain = str(requests).encode(), {"Content-Type": "text/plain"}
        url = f"{bucket.server}/moto-api/reset-auth"
        urllib.request.urlopen(urllib.request.Request(url, data, plain)).close()

    read = bucket.planned()
    assert read() == [0, 10, 20, 30, 40, 50]
    try:
        for requests in (0, 1, 2):  # the log, its check and the next log
            refuse_after(requests)
            with pytest.raises(LostDataError, match="403"):
                read()
    finally:
        refuse_after(1_000_000_000)
