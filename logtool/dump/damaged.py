"""Decoding of bytes without a sound batch, as far as it is possible.

The result may differ from what a producer wrote: a wrong CRC means that some bit is wrong, but not
which one. So every object has ``"damaged": true``, and an ``error`` follows where decoding ends. A
size field that the bytes contradict is not used: the batch is then taken to reach to the end.

The bytes of records of a metadata log are stars: if a bit is wrong, a secret may be anywhere.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from logtool.dump import bad_batch
from logtool.dump.blocks import Origin
from logtool.dump.records import Object, error_object
from logtool.formats.names import CLUSTER_METADATA
from logtool.formats.record_batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MIN_ENTRY_SIZE
from logtool.formats.redpanda import names as redpanda_names
from logtool.formats.redpanda import record_batch as redpanda_batch

_MAGIC_AT = 16
_LEAST_LEGACY = 26
"""Bytes of a message of magic 0 with neither key nor value."""


def decode(
    origin: Origin, data: memoryview, position: int, limit: int, term: int | None = None
) -> Iterator[Object]:
    """Yield batches, their records and ``error`` objects, as a dump does, marked as damaged.

    `data` begins at byte `position` of the log that is `origin`. One batch may decompress to at
    most `limit` bytes. A segment of Redpanda has a `term`.
    """
    if term is not None:
        yield from _of_redpanda(origin, data, position, limit, term)
        return
    at, hides = 0, origin.topic == CLUSTER_METADATA
    while at < len(data):
        left = data[at:]
        magic = left[_MAGIC_AT] if len(left) > _MAGIC_AT else -1
        short = len(left) < (HEADER_SIZE if magic >= MAGIC else _LEAST_LEGACY)
        if short or magic > MAGIC or not any(left[:HEADER_SIZE]):
            text = f"the last {len(left):,} bytes do not decode: no batch header begins here"
            yield _marked(error_object(origin.path, "damaged", text, position + at, len(left)))
            return
        size = LOG_OVERHEAD + int.from_bytes(left[8:LOG_OVERHEAD], "big", signed=True)
        believed = MIN_ENTRY_SIZE <= size <= len(left)
        entry = left[:size] if believed else left
        for obj in bad_batch.objects(origin, entry, position + at, limit, hides=hides):
            yield _marked(obj)
        at += len(entry)


def _of_redpanda(
    origin: Origin, data: memoryview, position: int, limit: int, term: int
) -> Iterator[Object]:
    """Yield the objects for a segment of Redpanda; Kafka offsets are not known behind damage."""
    at, hides = 0, origin.topic == CLUSTER_METADATA
    while at < len(data):
        left = data[at:]
        if len(left) < HEADER_SIZE or not any(left[:HEADER_SIZE]):
            text = f"the last {len(left):,} bytes do not decode: no batch header begins here"
            yield _marked(error_object(origin.path, "damaged", text, position + at, len(left)))
            return
        header = redpanda_batch.parse(left)
        entry = left[: header.size] if HEADER_SIZE <= header.size <= len(left) else left
        as_kafka = redpanda_batch.to_kafka(replace(header, size=len(entry)), term=term)
        kind = {"batch_type": redpanda_batch.type_name(header.type)}
        body = memoryview(as_kafka + entry[HEADER_SIZE:])
        for obj in bad_batch.objects(origin, body, position + at, limit, hides=hides):
            if obj["type"] == "record":
                obj |= {"offset": None, "raft_offset": obj["offset"]}
            yield _marked(obj if obj["type"] == "error" else obj | kind)
        at += len(entry)


def _marked(obj: Object) -> Object:
    return obj | {"damaged": True}


def origin_of(path: Path, topic: str | None, partition: int | None) -> Origin:
    """Return the origin of a batch, by the path of its log."""
    name = redpanda_names.parse_partition_file(path.name)
    if name.term is not None:
        return Origin(path, topic, partition, name.base_offset)
    stem = path.name.partition(".")[0]
    return Origin(path, topic, partition, int(stem) if stem.isdigit() else None)
