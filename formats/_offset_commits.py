# cython: language_level=3, annotation_typing=False, boundscheck=False, wraparound=False
"""Records of ``__consumer_offsets`` in columns: commits of offsets, and a slot for each key.

Plain Python that Cython compiles with the types in ``_offset_commits.pxd``, as it does `_kernels`.
The generic decoder in `messages` defines what a commit is: what is not plainly one is left to it.
"""

from typing import Any

try:
    import cython
except ModuleNotFoundError:  # needed to compile this module, not to run it
    from logtool.formats._uncompiled import cython

if not cython.compiled:
    from logtool.formats._uncompiled import int16, int32, int64

    # What `decode_commits` takes a record for.
    COMMIT_UNSURE, COMMIT_VALUE, COMMIT_TOMBSTONE, COMMIT_OTHER = range(4)

COMPILED = bool(cython.compiled)
COMMIT_COLUMNS = 8


def decode_commits(
    data: memoryview,
    key_positions: Any,
    key_lengths: Any,
    value_positions: Any,
    value_lengths: Any,
    rows: Any,
) -> None:
    """Decode records of ``__consumer_offsets`` that commit offsets, one row for each record.

    The columns (int64) are those of `decode_records`. A row of `rows` (int64, `COMMIT_COLUMNS`) is
    the kind; offset, leader epoch, commit and expire timestamp; position and length of the metadata
    and position of the topic id; -1 for a missing value. The kind is `COMMIT_VALUE`,
    `COMMIT_TOMBSTONE`, `COMMIT_OTHER` for a record of another type, and `COMMIT_UNSURE` for records
    of the generic decoder: those that do not follow the schema or have text that is not ASCII.
    Source: ``OffsetCommitKey``, ``OffsetCommitValue`` 0 to 4 and the legacy ones (Kafka 4.3).
    """
    for row in range(len(key_positions)):
        for column in range(1, 8):
            rows[row, column] = -1
        kind = _commit_key(data, key_positions[row], key_positions[row] + key_lengths[row])
        if kind == COMMIT_VALUE and value_lengths[row] < 0:
            kind = COMMIT_TOMBSTONE
        elif kind == COMMIT_VALUE and not _commit_value(
            data,
            int16(data, key_positions[row]),
            value_positions[row],
            value_positions[row] + value_lengths[row],
            rows,
            row,
        ):
            kind = COMMIT_UNSURE
        rows[row, 0] = kind


def _commit_key(data: memoryview, position: int, end: int) -> int:
    """Return the kind of a key: `COMMIT_VALUE` where it is a whole one of a commit."""
    if end - position < 2:
        return COMMIT_UNSURE
    kind = int16(data, position)
    if kind != 0 and kind != 1:
        return COMMIT_OTHER
    at = position + 2
    for _ in range(2):
        if end - at < 2:
            return COMMIT_UNSURE
        size = int16(data, at)
        at += 2
        if size < 0 or size > end - at or not _is_ascii(data, at, at + size):
            return COMMIT_UNSURE
        at += size
    return COMMIT_VALUE if end - at == 4 else COMMIT_UNSURE


def _commit_value(
    data: memoryview, kind: int, position: int, end: int, rows: Any, row: int
) -> bool:
    """Write the fields of a value; return whether it is whole and of a known version."""
    if end - position < 12:
        return False
    version = int16(data, position)
    if version < 0 or version > 4 or (kind == 0 and version != 0):
        return False
    rows[row, 1] = int64(data, position + 2)
    at = position + 10
    if version >= 3:
        if end - at < 5:
            return False
        rows[row, 2] = int32(data, at)
        at += 4
    if version < 4:
        if end - at < 2:
            return False
        size = int16(data, at)
        at += 2
    else:
        size = data[at] - 1
        at += 1
        if size > 126:
            if at == end or data[at] > 127:
                return False
            size = size - 127 + data[at] * 128 - 1
            at += 1
    if size < 0 or size > end - at or not _is_ascii(data, at, at + size):
        return False
    rows[row, 5] = at
    rows[row, 6] = size
    at += size
    if end - at < 8:
        return False
    rows[row, 3] = int64(data, at)
    at += 8
    if version == 1:
        if end - at < 8:
            return False
        rows[row, 4] = int64(data, at)
        at += 8
    if version == 4:
        if end - at < 1:
            return False
        if data[at] == 0:
            at += 1
        elif end - at == 19 and data[at] == 1 and data[at + 1] == 0 and data[at + 2] == 16:
            rows[row, 7] = at + 3
            at += 19
        else:
            return False
    return at == end


def _is_ascii(data: memoryview, position: int, end: int) -> bool:
    """Return whether no byte is above 127."""
    bits = 0
    while position < end:
        bits |= data[position]
        position += 1
    return bits < 128


def intern_keys(
    data: memoryview,
    positions: Any,
    lengths: Any,
    first: int,
    keys: Any,
    key_end: Any,
    count: int,
    table: Any,
    slots: Any,
) -> tuple[int, int]:
    """Find the slot of each key from row `first` on, and make one for each that is new.

    `keys` (uint8) has the keys of the `count` slots one behind the other; each ends at its number
    in `key_end` (int64). `table` (int32, a power of two, -1 where empty) finds the slot by a hash,
    with linear probing. Writes to `slots` (int64) and stops where there is no room for one more
    key: half of the table, `key_end` or `keys` is full. Returns (row where it stopped, slots).
    """
    used = key_end[count - 1] if count else 0
    mask = len(table) - 1
    row = first
    while row < len(positions):
        length = lengths[row]
        if 2 * count + 2 > len(table) or count == len(key_end) or length > len(keys) - used:
            break
        position = positions[row]
        at = _hash(data, position, position + length) & mask
        while True:
            slot = table[at]
            if slot < 0:
                for step in range(length):
                    keys[used + step] = data[position + step]
                used += length
                key_end[count] = used
                table[at] = count
                slot = count
                count += 1
                break
            begin = key_end[slot - 1] if slot else 0
            if key_end[slot] - begin == length and _is_same(data, position, keys, begin, length):
                break
            at = (at + 1) & mask
        slots[row] = slot
        row += 1
    return row, count


def fill_table(keys: Any, key_end: Any, count: int, table: Any) -> None:
    """Write the slots into an empty table that has room for them; see `intern_keys`."""
    mask = len(table) - 1
    begin = 0
    for slot in range(count):
        at = _hash(keys, begin, key_end[slot]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = slot
        begin = key_end[slot]


def _hash(data: Any, position: int, end: int) -> int:
    """Return a hash of some bytes as FNV-1a makes it, 31 bits, the high ones mixed into the low."""
    value = 0x11C9DC5
    while position < end:
        value = (value ^ data[position]) * 16777619 & 0x7FFFFFFF
        position += 1
    return value ^ value >> 15


def _is_same(data: Any, position: int, keys: Any, begin: int, length: int) -> bool:
    """Return whether two stretches of bytes are the same."""
    step = 0
    while step < length and data[position + step] == keys[begin + step]:
        step += 1
    return step == length
