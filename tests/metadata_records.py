"""Records of the metadata log in tests: what Kafka's dump tool says of them, and new ones."""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from logtool.formats import control_record, record, record_batch
from logtool.metadata.image import DIRECTORY

_RECORD = re.compile(r"^\| offset: (\d+) .* payload: (\{.*\})$")


def decoded(text: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the offset and content of each record that Kafka's own tool spelled out."""
    for line in text.read_text().splitlines():
        found = _RECORD.match(line)
        if found:
            yield int(found[1]), json.loads(found[2])


def varint(value: int) -> bytes:
    """Return an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def text(value: str | None) -> bytes:
    if value is None:
        return varint(0)
    return varint(len(value.encode()) + 1) + value.encode()


def int32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def uuid(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "==")


def array(*elements: bytes) -> bytes:
    return varint(len(elements) + 1) + b"".join(elements)


def numbers(*values: int) -> bytes:
    return array(*map(int32, values))


def tagged(fields: dict[int, bytes]) -> bytes:
    body = (varint(tag) + varint(len(data)) + data for tag, data in sorted(fields.items()))
    return varint(len(fields)) + b"".join(body)


def framed(kind: int, version: int, *fields: bytes, tags: dict[int, bytes] | None = None) -> bytes:
    """Return the value of a record as it stands in the log."""
    return varint(1) + varint(kind) + varint(version) + b"".join(fields) + tagged(tags or {})


def topic(name: str, topic_id: str) -> bytes:
    return framed(2, 0, text(name), uuid(topic_id))


def partition(
    topic_id: str,
    number: int,
    replicas: Sequence[int],
    leader: int = 1,
    *,
    isr: Sequence[int] | None = None,
    adding: Sequence[int] = (),
    leader_epoch: int = 0,
    tags: dict[int, bytes] | None = None,
) -> bytes:
    """Return a record of a partition; all replicas are in sync without an `isr`."""
    return framed(
        3, 2 if tags else 1, int32(number), uuid(topic_id), numbers(*replicas),
        numbers(*(replicas if isr is None else isr)), numbers(), numbers(*adding), int32(leader),
        int32(leader_epoch), int32(0), array(*(uuid("A" * 22) for _ in replicas)), tags=tags,
    )  # fmt: skip


def change(topic_id: str, number: int, tags: dict[int, bytes]) -> bytes:
    return framed(5, 2, int32(number), uuid(topic_id), tags=tags)


def config(kind: int, resource: str, name: str, value: str | None) -> bytes:
    return framed(4, 0, bytes([kind]), text(resource), text(name), text(value))


def remove_topic(topic_id: str) -> bytes:
    return framed(9, 0, uuid(topic_id))


BEGIN, END, ABORT = framed(23, 0), framed(24, 0), framed(25, 0)


def batch(base_offset: int, *values: bytes, **fields: Any) -> bytes:
    """Return a batch of the metadata log."""
    payload = record.encode([record.Record(i, value=value) for i, value in enumerate(values)])
    return record_batch.encode(
        payload, base_offset=base_offset, last_offset_delta=len(values) - 1,
        record_count=len(values), leader_epoch=1, **fields,
    )  # fmt: skip


def log_dir_of(tmp_path: Path, *batches_of_values: Sequence[bytes]) -> Path:
    """Write a metadata log with these batches of record values."""
    home = tmp_path / DIRECTORY
    home.mkdir()
    data, offset = b"", 0
    for values in batches_of_values:
        data += batch(offset, *values)
        offset += len(values)
    (home / f"{0:020d}.log").write_bytes(data)
    return home


def snapshot(home: Path, offset: int, *values: bytes, epoch: int = 1, footer: bool = True) -> Path:
    """Write a snapshot that holds these record values."""
    control = record_batch.CONTROL
    types = (control_record.SNAPSHOT_HEADER, control_record.SNAPSHOT_FOOTER)
    head, foot = (
        record.encode([record.Record(0, 0, control_record.KEY.pack(0, kind), b"\0\0\0")])
        for kind in types
    )
    common: dict[str, int] = {"last_offset_delta": 0, "record_count": 1, "leader_epoch": epoch}
    last = len(values) + 1
    data = record_batch.encode(head, base_offset=0, attributes=control, **common)
    data += batch(1, *values) if values else b""
    if footer:
        data += record_batch.encode(foot, base_offset=last, attributes=control, **common)
    path = home / f"{offset:020d}-{epoch:010d}.checkpoint"
    path.write_bytes(data)
    return path
