"""Composite objects of AutoMQ: links to the data blocks of other objects of one stream.

Big-endian; then the index block and the footer of `data_object`, with magic 0x88e241b785f4cff8:

===========  =====  ================================================================================
magic        uint8  0x52
count        int32  linked objects
-----------  -----  --------------------------------------------------------------------------------
object_id    int64  for each linked object
first_entry  int32  its first entry in the index block; its last one is before that of the next
bucket_id    int16
===========  =====  ================================================================================

The positions in the index block are those in the linked objects. A linked object is no longer in
the metadata log, but must stay in the bucket. Source: ``CompositeObject``,
``CompositeObjectReader`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from logtool.findings import Finding
from logtool.formats.automq import data_object
from logtool.formats.automq.data_object import ENTRY_SIZE, DataObject, ObjectFooter
from logtool.formats.columns import runs
from logtool.lazy_dataclass import dataclass

MAGIC = 0x88E241B785F4CFF8
LINKS_MAGIC = 0x52
LINK = np.dtype([("object_id", ">i8"), ("first_entry", ">i4"), ("bucket_id", ">i2")])
_HEAD = struct.Struct(">Bi")


@dataclass(frozen=True, slots=True, eq=False)
class CompositeObject:
    """One object."""

    head: tuple[int, int] | None
    """Magic and count; None if the bytes before the index block are fewer."""
    links: NDArray[np.void]
    """Linked objects (`LINK`), read-only."""
    loose: bytes
    """Bytes between the last whole link and the index block."""
    rest: DataObject
    """Index block and footer."""

    @property
    def entries(self) -> NDArray[np.void]:
        """Return the entries of the index block."""
        return self.rest.entries

    def linked(self) -> Iterator[tuple[int, NDArray[np.void]]]:
        """Yield the id of each linked object with its entries."""
        first = self.links["first_entry"].astype(np.int64).tolist()
        for row, start in enumerate(first):
            stop = first[row + 1] if row + 1 < len(first) else len(self.entries)
            yield int(self.links["object_id"][row]), self.entries[max(start, 0) : max(stop, 0)]


def parse(data: bytes) -> CompositeObject:
    """Split an object into its parts. Never fails."""
    rest = data_object.parse(data)
    body = rest.body
    empty = DataObject(b"", rest.entries, rest.loose, rest.footer)
    if len(body) < _HEAD.size:
        return CompositeObject(None, np.frombuffer(b"", LINK), body, empty)
    magic, count = _HEAD.unpack_from(body)
    count = max(0, min(count, (len(body) - _HEAD.size) // LINK.itemsize))
    links = np.frombuffer(body, LINK, count, _HEAD.size)
    loose = body[_HEAD.size + links.nbytes :]
    return CompositeObject((magic, _HEAD.unpack_from(body)[1]), links, loose, empty)


def encode(parsed: CompositeObject) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    head = b"" if parsed.head is None else _HEAD.pack(*parsed.head)
    return head + parsed.links.tobytes() + parsed.loose + data_object.encode(parsed.rest)


def check(parsed: CompositeObject) -> Iterator[Finding]:
    """Yield every broken rule of links, index block and footer."""
    size = len(encode(parsed))
    yield from data_object.check_footer(parsed.rest.footer, size, MAGIC)
    before = size - parsed.rest.size
    count, entries = len(parsed.links), parsed.entries
    if parsed.head != (LINKS_MAGIC, count) or parsed.loose:
        found = "no header" if parsed.head is None else f"0x{parsed.head[0]:02x} {parsed.head[1]}"
        yield Finding(
            "automq-object/links",
            f"expected 0x{LINKS_MAGIC:02x} and as many links as the {before} bytes before the "
            f"index block hold, found {found}",
            position=0,
            length=before,
        )
    first = parsed.links["first_entry"].astype(np.int64)
    bad = (first < 0) | (first >= max(len(entries), 1)) | (parsed.links["object_id"] < 0)
    bad[:1] |= first[:1] != 0
    bad[1:] |= first[1:] <= first[:-1]
    for row, last in runs(bad):
        yield Finding(
            "automq-object/links",
            f"link {row}: expected a first entry in order and below {len(entries)}, "
            f"found {first[row]} of object {parsed.links['object_id'][row]}",
            position=_HEAD.size + row * LINK.itemsize,
            length=(last + 1 - row) * LINK.itemsize,
        )
    bad = data_object.order_faults(entries)
    bad |= (entries["stream_id"] != entries["stream_id"][:1]) if len(entries) else False
    bad |= (entries["position"] < 0) | (entries["size"] <= 0)
    # The entries of one linked object are neighbours in it, too.
    start = np.isin(np.arange(len(entries)), first)
    ends = (entries["position"].astype(np.int64) + entries["size"])[:-1]
    bad[1:] |= ~start[1:] & (entries["position"][1:] < ends)
    for row, last in runs(bad):
        yield Finding(
            "automq-object/index",
            f"entry {row}: expected ascending offsets of one stream, found stream "
            f"{entries['stream_id'][row]}, offset {entries['start_offset'][row]}",
            position=before + row * ENTRY_SIZE,
            length=(last + 1 - row) * ENTRY_SIZE,
        )


def check_linked(
    parsed: CompositeObject, indexes: Mapping[int, NDArray[np.void]]
) -> Iterator[Finding]:
    """Yield the entries that the index block of their linked object does not have.

    `indexes` has the entries of each linked object, by its id; links to others are left out.
    """
    before = len(encode(parsed)) - parsed.rest.size
    row = 0
    for object_id, entries in parsed.linked():
        known = indexes.get(object_id)
        there = None if known is None else {one.tobytes() for one in known}
        for one in entries:
            if there is not None and one.tobytes() not in there:
                yield Finding(
                    "automq-object/index",
                    f"entry {row}: expected an entry of the linked object {object_id}, found "
                    f"{data_object.described(one)}",
                    position=before + row * ENTRY_SIZE,
                    length=ENTRY_SIZE,
                )
            row += 1


def build(linked: Sequence[tuple[int, NDArray[np.void]]], bucket_id: int = 0) -> bytes:
    """Return a composite object of these objects, each with the entries that it keeps."""
    links, first = [], 0
    for object_id, entries in linked:
        links.append((object_id, first, bucket_id))
        first += len(entries)
    table = np.array(links, LINK).tobytes()
    index = b"".join(entries.tobytes() for _, entries in linked)
    footer = ObjectFooter(_HEAD.size + len(table), len(index), bytes(28), MAGIC)
    head = _HEAD.pack(LINKS_MAGIC, len(links))
    return head + table + index + data_object.encode_footer(footer)


def is_composite(data: bytes) -> bool:
    """Return whether an object ends with the footer of a composite object."""
    footer = data_object.parse_footer(data)
    return footer is not None and footer.magic == MAGIC
