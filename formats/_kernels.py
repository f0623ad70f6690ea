# cython: language_level=3, annotation_typing=False, boundscheck=False, wraparound=False
"""The hot loops: plain functions over bytes with primitive results.

This text is the specification and runs as it is; with a C compiler at hand the build compiles it
by Cython with the types in ``_kernels.pxd``, and the few words that are C there (CRC, big-endian
loads) stand in ``_uncompiled.py`` for plain Python. A kernel validates every length against the
bytes that are left before it uses it, keeps no state and raises nothing in its loop; the callers
in this package allocate before and judge after. An extension that does not build is left out with a
note; there is no second implementation, and tests hold the builds against each other.

The CRC of a compiled walk is computed inside it (``_crc32.h``), and not handed to the package
crc32c, batch by batch. Nor is any other: the package imports `importlib.metadata`, which takes as
long as all formats together. Measured alone on one core of an EPYC it does 18 to 28 GB/s from 100
bytes to 1 MiB, where a call of the package costs about 100 ns before the first byte, more than
twice what a whole batch of 1 KiB takes here. It is 177 lines of C: three streams of the SSE4.2
instruction joined by carry-less multiplication, the CRC instruction of ARMv8, or tables. A test
compares it with the crc32c package at every length up to 300 and around each boundary. The ARMv8
branch has never been run.

Big-endian loads stand in ``_loads.h``: from Cython's own indexing gcc makes a load of every single
byte, which cost a quarter of a walk over batches of 200 bytes. A loop that copies a memoryview for
each call is a third slower or more: look at what C inlines.

Nearly all chunks are plain: data of magic 2 with rising offsets and nothing odd in any header. One
pass of `plain_facts` over the columns shows that, and what such a chunk comes to. Rules, joins and
counts then look at its edges alone, which takes a third of the time of their NumPy passes; every
other chunk goes the long way, and a test compares the two ways.

Every column is int64 and a chunk has 24,616 rows: with a power of two all columns want the same
lines of the processor's cache, which cost 20 % of a walk.
"""

from typing import Any

try:
    import cython
except ModuleNotFoundError:  # needed to compile this module, not to run it
    from logtool.formats._uncompiled import cython

if not cython.compiled:
    from logtool.formats._uncompiled import (
        copy,
        crc32,
        crc32_init,
        crc32c,
        crc32c_on,
        int16,
        int16le,
        int32,
        int32le,
        int64,
        int64le,
        kafka_header,
        redpanda_crc,
        sum64,
        uint32,
        uint32le,
        zigzag,
    )

    # Why decoding records stopped.
    DONE, RECORD_TRUNCATED, RECORD_LENGTH, RECORD_VARINT, RECORD_HEADERS = range(5)

crc32_init()
COMPILED = bool(cython.compiled)

# Why a walk over batches stopped; `walk_batches` returns one of these.
MORE = 0
"""The bytes end before the batch does (or before its first 21 bytes)."""
BAD_SIZE = 1
BAD_MAGIC = 2
BAD_CRC = 3
FULL = 4
"""There is no room for another row."""
BAD_HEADER = 5
"""The CRC of a header of Redpanda does not hold."""
NOT_PLAIN = 6
"""`walk_plain` met a batch for another walk."""

BATCH_COLUMNS = 17
CONTROL_COLUMNS = 2
"""Number of batch columns, the last ones, that no walk writes; readers of control records do."""
TYPE_COLUMNS = 3
"""`CONTROL_COLUMNS` and the type of a Redpanda batch, which Kafka's walks do not write."""
FACTS = 6
"""Number of facts that `plain_facts` finds."""
PLAIN_STATE = 16
"""Number of numbers from which `walk_plain` continues."""
SEGMENT_FACTS = 9
"""Number of facts that `plain_segment` finds."""
SMALLEST_RECORD = 7
"""Bytes of a record with no key, value or header."""
RECORD_COLUMNS = 11
PLACED_COLUMNS = 14
"""`RECORD_COLUMNS` and the columns that `place_records` writes after them."""
HEADER_COLUMNS = 4
STRETCH = 64 * 1024
"""Bytes that `walk_records` goes ahead: few enough for the cache next to a processor."""


def checksum(data: bytes | bytearray | memoryview, value: int) -> int:
    """Return the CRC-32C of `data`, going on from `value`, that of what stands before it."""
    return crc32c_on(value, data) if len(data) else value


def walk_batches(
    data: memoryview, start: int, end: int, base: int, rows: Any, first: int
) -> tuple[int, int, int]:
    """Find the sound batches in ``data[start:end]``, one behind the other.

    Writes a column of `rows` (int64, `BATCH_COLUMNS` rows, in the order of the fields of
    `record_batch.BatchTable`, without the `TYPE_COLUMNS`) for each batch, from column `first`
    on, until they are full or something is not a whole and sound batch; `base` is the file position
    of ``data[0]``. Returns (batches found, position where it stopped, reason). Source of the rules:
    ``FileLogInputStream``, ``DefaultRecordBatch.ensureValid``, ``LegacyRecord.ensureValid``.
    """
    position = start
    row = first
    most = rows.shape[1]
    reason = MORE
    # C values, for what runs without the interpreter's lock.
    full, bad_size, bad_magic, bad_crc = FULL, BAD_SIZE, BAD_MAGIC, BAD_CRC
    with cython.nogil:
        while end - position > 20:
            if row == most:
                reason = full
                break
            size = int32(data, position + 8)
            magic = data[position + 16]
            if size < 14 or (magic == 1 and size < 22) or (magic == 2 and size < 49):
                reason = bad_size
                break
            if magic > 2:
                reason = bad_magic
                break
            after = position + 12 + size
            if after > end:
                break
            if magic == 2:
                sound = crc32c(data, position + 21, after) == uint32(data, position + 17)
            else:
                sound = crc32(data, position + 16, after) == uint32(data, position + 12)
            if not sound:
                reason = bad_crc
                break
            rows[0, row] = base + position
            rows[1, row] = 12 + size
            if magic == 2:
                _write_header(data, position, rows, row)
            else:
                _write_legacy_header(data, position, magic, rows, row)
            row += 1
            position = after
    return row - first, position, reason


def walk_redpanda(
    data: memoryview, start: int, end: int, base: int, epoch: int, rows: Any, first: int
) -> tuple[int, int, int]:
    """Find the sound batches of Redpanda in ``data[start:end]``, one behind the other.

    A batch counts whose header's CRC holds, and then Kafka's CRC of the fields as Kafka writes them
    and of the body. The columns are those of the batch with Kafka's header, with `epoch`, the term,
    as its leader epoch; the type of each batch is written, too. The rest is as for `walk_batches`.
    Source: ``storage/parser.cc``, ``kafka/protocol/kafka_batch_adapter.cc`` (Redpanda 1c6cff34ea).
    """
    position = start
    row = first
    most = rows.shape[1]
    reason = MORE
    full, bad_size, bad_header, bad_crc = FULL, BAD_SIZE, BAD_HEADER, BAD_CRC
    with cython.nogil:
        while end - position > 60:
            if row == most:
                reason = full
                break
            if crc32c(data, position + 4, position + 61) != uint32le(data, position):
                reason = bad_header
                break
            size = int32le(data, position + 4)
            if size < 61:
                reason = bad_size
                break
            after = position + size
            if after > end:
                break
            if redpanda_crc(data, position, after) != uint32le(data, position + 17):
                reason = bad_crc
                break
            rows[0, row] = base + position
            rows[1, row] = size
            _write_redpanda_header(data, position, epoch, rows, row)
            row += 1
            position = after
    return row - first, position, reason


def turn_headers(
    data: memoryview, base: int, epoch: int, rows: Any, first: int, count: int
) -> None:
    """Overwrite headers of Redpanda by those of as many bytes that Kafka has for them.

    They are those of the `count` batches from column `first` on, which `walk_redpanda` found in
    `data`; `base` and `epoch` are those it was given.
    """
    for row in range(first, first + count):
        kafka_header(data, rows[0, row] - base, epoch)


def walk_headers(
    data: memoryview, start: int, end: int, left: int, base: int, rows: Any, first: int
) -> tuple[int, int, int]:
    """Find batches of magic 2 by their headers alone: what they hold is not looked at.

    Each size field leads to the next header, also beyond `end`; `left` is how many bytes the file
    has from ``data[0]`` on. The rest is as for `walk_batches`, without a CRC: a header that `end`
    cuts short, or a batch that the file does, ends the walk with `MORE`.
    """
    position = start
    row = first
    most = rows.shape[1]
    reason = MORE
    full, bad_size, bad_magic = FULL, BAD_SIZE, BAD_MAGIC
    with cython.nogil:
        while end - position > 60:
            if row == most:
                reason = full
                break
            size = int32(data, position + 8)
            if data[position + 16] != 2:
                reason = bad_magic
                break
            if size < 49:
                reason = bad_size
                break
            after = position + 12 + size
            if after > left:
                break
            rows[0, row] = base + position
            rows[1, row] = 12 + size
            _write_header(data, position, rows, row)
            row += 1
            position = after
    return row - first, position, reason


def plain_facts(rows: Any, first: int, count: int, facts: Any) -> bool:
    """Return whether the batches from column `first` to `count` are plain: nothing can be wrong.

    Plain batches have magic 2, hold data and no transaction, and have rising offsets without a gap
    inside a batch, epochs that do not fall, timestamps, and sequence numbers with every producer
    id. Writes to `facts`, int64: the number of records, the size of the largest batch, the largest
    timestamp, whether timestamps never fall (0 or 1), the producers (0: no producer, 1: one with
    one epoch, 2: more), and the smallest of the largest timestamps. With `first` the batches before
    it are plain, and `facts` has the values for them.
    """
    last = epoch = newest = producer = producer_epoch = -1
    records = 0
    largest = 0
    rising = 1
    producers = 0
    oldest = 0x7FFFFFFFFFFFFFFF
    if first > 0:
        last = rows[3, first - 1]
        epoch = rows[4, first - 1]
        producer = rows[10, first - 1]
        producer_epoch = rows[11, first - 1]
        records = facts[0]
        largest = facts[1]
        newest = facts[2]
        rising = facts[3]
        producers = facts[4]
        oldest = facts[5]
    plain = True
    with cython.nogil:
        for row in range(first, count):
            base = rows[2, row]
            plain = (
                base > last
                and rows[3, row] >= base
                and rows[13, row] == rows[3, row] - base + 1
                and rows[4, row] >= epoch
                and rows[5, row] == 2
                # A codec that exists and no other bit.
                and 0 <= rows[7, row] <= 4
                and rows[8, row] >= -1
                and rows[9, row] >= -1
                and (rows[10, row] < 0 or rows[12, row] >= 0)
            )
            if not plain:
                break
            last = rows[3, row]
            epoch = rows[4, row]
            records += rows[13, row]
            if rows[1, row] > largest:
                largest = rows[1, row]
            if rows[9, row] >= newest:
                newest = rows[9, row]
            else:
                rising = 0
            if rows[9, row] < oldest:
                oldest = rows[9, row]
            if row == 0:
                producer = rows[10, row]
                producer_epoch = rows[11, row]
                producers = 1 if producer >= 0 else 0
            elif rows[10, row] != producer or rows[11, row] != producer_epoch:
                producers = 2
    if plain:
        facts[0] = records
        facts[1] = largest
        facts[2] = newest
        facts[3] = rising
        facts[4] = producers
        facts[5] = oldest
    return plain


def walk_plain(
    data: memoryview, start: int, end: int, base: int, rows: Any, first: int, state: Any,
    offsets: Any, times: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """Find plain batches as `walk_batches` does, and keep a row for those at edges alone.

    Goes on as long as batches are plain (`plain_facts`), each begins with the offset behind the
    last one, and they keep within the bounds in `state`; another one is left alone, with
    `NOT_PLAIN`. So is one whose offset or leader epoch nothing before it confirms, unless the next
    one goes on from there: no CRC covers them. A row is written for the first and the last batch of
    each call, and of each stretch with one leader epoch, producer id and producer epoch. With
    `first` the rows before are those of the call before.

    `offsets` and `times` are the entries of the indexes, int64 and a column each: in row 0 the
    position in the file, or the offset, in ascending order. Behind it is written what the batch
    there has to say: its first and its last offset; for an offset index its first offset again and
    the last offset before it; for a time index its largest timestamp and that of all before it. An
    entry that no batch answers is left as it is.

    `state` (int64, `PLAIN_STATE`) has the facts of `plain_facts`, then how many batches there are,
    which a call with `first` goes on from. Then stand the next entry of each index; the last offset
    and the largest timestamp so far; the leader epoch so far; and the bounds: the last offset that
    there may be, and the timestamps between which those of batches stand, exclusive; at last the
    offset before which the walk ends, with `FULL`, unless it begins there. Source: as for
    `walk_batches`.
    """
    position = start
    row = first
    most = rows.shape[1]
    reason = MORE
    full, not_plain = FULL, NOT_PLAIN
    records = batches = 0
    largest = producers = 0
    newest = producer = producer_epoch = -1
    oldest = 0x7FFFFFFFFFFFFFFF
    rising = 1
    if first > 0:
        records = state[0]
        largest = state[1]
        newest = state[2]
        rising = state[3]
        producers = state[4]
        oldest = state[5]
        batches = state[6]
        producer = rows[10, first - 1]
        producer_epoch = rows[11, first - 1]
    entry = state[7]
    time = state[8]
    entries = offsets.shape[1]
    stamps = times.shape[1]
    last = state[9]
    highest = state[10]
    epoch = state[11]
    last_possible = state[12]
    least = state[13]
    greatest = state[14]
    until = state[15]
    before = -1
    kept = True
    with cython.nogil:
        while end - position > 20:
            # A batch ends a stretch and begins another, and there is the last one.
            if most - row < 3:
                reason = full if row > 0 else not_plain
                break
            size = int32(data, position + 8)
            if data[position + 16] != 2 or size < 49:
                reason = not_plain
                break
            after = position + 12 + size
            if after > end:
                break
            first_offset = int64(data, position)
            if batches > 0 and first_offset >= until:
                reason = full
                break
            delta = int32(data, position + 23)
            last_offset = sum64(first_offset, delta)
            count = int32(data, position + 57)
            batch_epoch = int32(data, position + 12)
            attributes = int16(data, position + 21)
            stamp = int64(data, position + 35)
            batch_producer = int64(data, position + 43)
            batch_producer_epoch = int16(data, position + 51)
            if not (
                first_offset > last
                and (batches == 0 or first_offset == last + 1)
                and delta >= 0
                and first_offset <= last_possible - delta
                and count == delta + 1
                and batch_epoch >= epoch
                # A codec that exists and no other bit.
                and 0 <= attributes <= 4
                and int64(data, position + 27) >= -1
                and least < stamp < greatest
                and (batch_producer < 0 or int32(data, position + 53) >= 0)
                and (
                    (batches > 0 and batch_epoch == epoch)
                    or (
                        end - after > 20
                        and int64(data, after) == last_offset + 1
                        and int32(data, after + 12) >= batch_epoch
                    )
                )
                and crc32c(data, position + 21, after) == uint32(data, position + 17)
            ):
                reason = not_plain
                break
            same = batch_producer == producer and batch_producer_epoch == producer_epoch
            if batches == 0:
                producers = 1 if batch_producer >= 0 else 0
            elif not same:
                producers = 2
            if before < 0 or not same or batch_epoch != epoch:
                if not kept:
                    _write_row(data, before, base, rows, row)
                    row += 1
                _write_row(data, position, base, rows, row)
                row += 1
                kept = True
                epoch = batch_epoch
                producer = batch_producer
                producer_epoch = batch_producer_epoch
            else:
                kept = False
            while entry < entries and offsets[0, entry] <= base + position:
                if offsets[0, entry] == base + position:
                    offsets[1, entry] = first_offset
                    offsets[2, entry] = last_offset
                    offsets[3, entry] = first_offset
                    offsets[4, entry] = last
                entry += 1
            while time < stamps and times[0, time] <= last_offset:
                if times[0, time] >= first_offset:
                    times[1, time] = first_offset
                    times[2, time] = last_offset
                    times[3, time] = stamp
                    times[4, time] = highest
                time += 1
            if stamp < newest:
                rising = 0
            else:
                newest = stamp
            if stamp > highest:
                highest = stamp
            if stamp < oldest:
                oldest = stamp
            if 12 + size > largest:
                largest = 12 + size
            records += count
            batches += 1
            last = last_offset
            before = position
            position = after
        if not kept:
            _write_row(data, before, base, rows, row)
            row += 1
    state[0] = records
    state[1] = largest
    state[2] = newest
    state[3] = rising
    state[4] = producers
    state[5] = oldest
    state[6] = batches
    state[7] = entry
    state[8] = time
    state[9] = last
    state[10] = highest
    state[11] = epoch
    return row - first, position, reason


def plain_segment(
    data: memoryview, index: memoryview, times: memoryview, base: int, rows: Any, facts: Any
) -> bool:
    """Return whether a whole log, its offset index and its time index are plain.

    The log is then one or more plain batches (`plain_facts`) from offset `base` on, without a gap
    or damage, and no more than an int32 of offsets; each entry of the indexes is one that lookups
    can rely on (`index_join`), and no padding follows. The batches are left in `rows`. Behind those
    of `plain_facts` writes to `facts`: the number of batches, the last offset, and the timestamp of
    the last time entry, -1 without one.
    """
    size = len(data)
    count, stop, _ = walk_batches(data, 0, size, 0, rows, 0)
    if count == 0 or stop != size or not plain_facts(rows, 0, count, facts):
        return False
    last = rows[3, count - 1]
    if rows[2, 0] != base or facts[0] > 0x7FFFFFFF or last - base != facts[0] - 1:
        return False
    newest = _plain_times(times, base, rows, count)
    if newest < -1 or not _plain_offsets(index, base, rows, count):
        return False
    # An offset index that lost its entries, as the time index may show: for a closer look.
    if len(index) == 0 and len(times) > 12 and rows[0, count - 1] > 4096:
        return False
    facts[6] = count
    facts[7] = last
    facts[8] = newest
    return True


def _plain_offsets(index: memoryview, base: int, rows: Any, count: int) -> bool:
    """Return whether each entry of an offset index leads a lookup to where its offset may stand.

    Each stands at the position of a batch, with an offset from its first one on, and no further
    than that before the batch of the next entry.
    """
    size = len(index)
    if size % 8:
        return False
    row = 0
    before = 0
    offset = base
    for at in range(0, size, 8):
        relative = int32(index, at)
        position = int32(index, at + 4)
        if relative <= before or position <= 0:
            return False
        while row < count and rows[0, row] < position:
            row += 1
        if row == count or rows[0, row] != position:
            return False
        # The append of the entry before ends in front of this batch.
        if offset >= rows[2, row]:
            return False
        before = relative
        offset = base + relative
        if offset < rows[2, row]:
            return False
    good: bool = offset <= rows[3, count - 1]
    return good


def _plain_times(times: memoryview, base: int, rows: Any, count: int) -> int:
    """Return the timestamp of the last entry of a time index, -1 without one, -2 if not plain.

    Timestamps rise and offsets do not fall; each is in a batch whose largest timestamp it is, and
    no batch before has a larger one.
    """
    size = len(times)
    if size % 12:
        return -2
    row = 0
    last = -1
    before = 0
    highest = rows[9, 0]
    for at in range(0, size, 12):
        stamp = int64(times, at)
        relative = int32(times, at + 8)
        if stamp <= last or relative < before:
            return -2
        while row < count and rows[3, row] < base + relative:
            row += 1
            if row < count and rows[9, row] > highest:
                highest = rows[9, row]
        if row == count or rows[9, row] != stamp or highest > stamp:
            return -2
        last = stamp
        before = relative
    return last


def due_entries(
    rows: Any, count: int, base: int, interval: int, offsets: Any, times: Any
) -> tuple[int, int]:
    """Find the index entries that a recovery writes for the first `count` batches of a segment.

    The batches are plain (`plain_facts`), `base` is the segment's base offset and `interval` is
    ``index.interval.bytes``. Writes to `offsets`, int64, the relative offset and the position of
    each entry of the offset index, and to `times` the timestamp and the relative offset of each of
    the time index: two rows each, and room for one entry more than there are batches. Returns how
    many entries there are of each. Source: ``LogSegment.recover`` (Kafka 3.9 and 4.3).
    """
    offset_count = time_count = 0
    indexed = 0
    newest = entered = -1
    at = base
    for row in range(count):
        if rows[9, row] > newest:
            newest = rows[9, row]
            at = rows[3, row]
        if rows[0, row] - indexed > interval:
            offsets[0, offset_count] = rows[3, row] - base
            offsets[1, offset_count] = rows[0, row]
            offset_count += 1
            if newest > entered:
                times[0, time_count] = newest
                times[1, time_count] = at - base
                time_count += 1
                entered = newest
            indexed = rows[0, row]
    if newest > entered:
        times[0, time_count] = newest
        times[1, time_count] = at - base
        time_count += 1
    return offset_count, time_count


def due_rows(positions: Any, indexed: int, interval: int, rows: Any) -> int:
    """Find the batches for which an entry of the offset index is due.

    `positions` are those of the batches in the file, in ascending order, `indexed` is that of the
    last one with an entry before them, and `interval` is ``index.interval.bytes``. Writes their
    numbers to `rows`, int64 and as long as `positions`; returns how many there are.
    """
    count = 0
    for row in range(positions.shape[0]):
        if positions[row] - indexed > interval:
            rows[count] = row
            count += 1
            indexed = positions[row]
    return count


def _write_redpanda_header(
    data: memoryview, position: int, epoch: int, rows: Any, row: int
) -> None:
    """Write the fields of a header of Redpanda."""
    base_offset = int64le(data, position + 8)
    rows[2, row] = base_offset
    rows[3, row] = sum64(base_offset, int32le(data, position + 23))
    rows[4, row] = epoch
    rows[5, row] = 2
    rows[6, row] = uint32le(data, position + 17)
    rows[7, row] = int16le(data, position + 21)
    rows[8, row] = int64le(data, position + 27)
    rows[9, row] = int64le(data, position + 35)
    rows[10, row] = int64le(data, position + 43)
    rows[11, row] = int16le(data, position + 51)
    rows[12, row] = int32le(data, position + 53)
    rows[13, row] = int32le(data, position + 57)
    rows[14, row] = data[position + 16]


def _write_row(data: memoryview, position: int, base: int, rows: Any, row: int) -> None:
    """Write all that `walk_batches` does of one batch of magic 2."""
    rows[0, row] = base + position
    rows[1, row] = 12 + int32(data, position + 8)
    _write_header(data, position, rows, row)


def _write_header(data: memoryview, position: int, rows: Any, row: int) -> None:
    """Write the fields of a magic 2 header."""
    base_offset = int64(data, position)
    rows[2, row] = base_offset
    rows[3, row] = sum64(base_offset, int32(data, position + 23))
    rows[4, row] = int32(data, position + 12)
    rows[5, row] = 2
    rows[6, row] = uint32(data, position + 17)
    rows[7, row] = int16(data, position + 21)
    rows[8, row] = int64(data, position + 27)
    rows[9, row] = int64(data, position + 35)
    rows[10, row] = int64(data, position + 43)
    rows[11, row] = int16(data, position + 51)
    rows[12, row] = int32(data, position + 53)
    rows[13, row] = int32(data, position + 57)


def _write_legacy_header(data: memoryview, position: int, magic: int, rows: Any, row: int) -> None:
    """Write the fields of a message of magic 0 or 1; what it does not have is -1."""
    offset = int64(data, position)
    timestamp = int64(data, position + 18) if magic == 1 else -1
    rows[2, row] = offset
    rows[3, row] = offset
    rows[4, row] = -1
    rows[5, row] = magic
    rows[6, row] = uint32(data, position + 12)
    rows[7, row] = data[position + 17]
    rows[8, row] = timestamp
    rows[9, row] = timestamp
    rows[10, row] = -1
    rows[11, row] = -1
    rows[12, row] = -1
    rows[13, row] = -1


def decode_varint(data: memoryview, position: int, end: int, most: int) -> tuple[int, int]:
    """Decode one zig-zag varint of at most `most` bytes; returns (value, next position).

    The next position is -1 when the bytes end first or the varint is too long. 5 bytes make a
    32-bit, 10 a 64-bit varint; higher bits are dropped as Java's shifts drop them.
    """
    last = min(end, position + most)
    # Most are of one byte.
    if position < last and data[position] < 0x80:
        return zigzag(data[position], most), position + 1
    shift = 0
    raw = 0
    while position < last:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return zigzag(raw, most), position
        shift += 7
    return 0, -1


def decode_records(
    data: memoryview, start: int, end: int, count: int, rows: Any, first: int
) -> tuple[int, int, int]:
    """Decode up to `count` magic 2 records from ``data[start:end]`` into `rows` from row `first`.

    A row (int64, 11 columns) is position, size, attributes, timestamp delta, offset delta, key
    position, key length, value position, value length, header position, header count; positions
    are in `data`, a length of -1 is null. The caller has made room for `count` rows. Returns
    (records decoded, position, reason). Source: ``DefaultRecord.readFrom`` (Kafka 4.x).
    """
    position = start
    done = 0
    reason = DONE
    while done < count:
        length, at = decode_varint(data, position, end, 5)
        if at < 0:
            reason = RECORD_VARINT
        elif length < 0:
            reason = RECORD_LENGTH
        elif length > end - at:
            reason = RECORD_TRUNCATED
        else:
            reason = _decode_record(data, at, at + length, rows, first + done)
        if reason != DONE:
            break
        rows[first + done, 0] = position
        rows[first + done, 1] = at + length - position
        position = at + length
        done += 1
    return done, position, reason


def decode_batches(
    data: memoryview, starts: Any, ends: Any, counts: Any, rows: Any, results: Any
) -> int:
    """Decode the records of many uncompressed batches in one call.

    The payload of batch i is ``data[starts[i]:ends[i]]`` (int64 columns); its records go into
    `rows` behind those of the batch before, at most `counts` of them. Writes (records decoded,
    position, reason) to each row of `results` (int64). Returns the rows written.
    """
    total = 0
    batches = len(starts)
    with cython.nogil:
        for batch in range(batches):
            done, position, reason = decode_records(
                data, starts[batch], ends[batch], counts[batch], rows, total
            )
            results[batch, 0] = done
            results[batch, 1] = position
            results[batch, 2] = reason
            total += done
    return total


def place_records(
    offsets: Any, attributes: Any, stamps: Any, largest: Any, sequences: Any, counts: Any,
    latest: int, rows: Any,
) -> bool:  # fmt: skip
    """Write the offset, timestamp and sequence number of records into columns 11 to 13 of `rows`.

    The timestamp is that of the append if the attributes of the batch say LogAppendTime; the
    sequence number is -1 if that of the batch is below 0. Each batch has `counts` of the rows, and
    its base offset, attributes, base and largest timestamp and base sequence in a column each (all
    int64).
    Returns False if a timestamp is less than -1 or greater than `latest`, in milliseconds; the
    other rows are then not written.
    """
    row = 0
    for batch in range(len(counts)):
        of_append = attributes[batch] & 8
        for _ in range(counts[batch]):
            stamp = largest[batch] if of_append else sum64(stamps[batch], rows[row, 3])
            if stamp < -1 or stamp > latest:
                return False
            sequence = sequences[batch]
            rows[row, 11] = offsets[batch] + rows[row, 4]
            rows[row, 12] = stamp
            # They wrap to 0 behind 2147483647.
            rows[row, 13] = -1 if sequence < 0 else (sequence + rows[row, 4]) & 0x7FFFFFFF
            row += 1
    return True


def judge_records(
    heads: memoryview, positions: Any, data: memoryview, starts: Any, ends: Any, wrong: Any
) -> None:
    """Mark each of many batches of magic 2 whose records break a rule.

    The header of batch i is at ``heads[positions[i]]``, and what it holds without compression is
    ``data[starts[i]:ends[i]]`` (all int64). The records must decode as by `decode_records`, have
    the count of the header and fill the batch, have offset deltas that rise from 0 or more to at
    most the last one, and have the largest timestamp of the header, unless that is the time of the
    append or the batch is a control batch. Timestamps wrap in 64 bits, and a header may have -1
    where all of them are less, as ``LogValidator`` writes it (Kafka 4.1). Writes 0 to `wrong[i]`
    (uint8) for sound records, and 1 for others. No column is written, so any count is cheap.
    """
    batches = len(starts)
    with cython.nogil:
        for batch in range(batches):
            sound = _sound_records(heads, positions[batch], data, starts[batch], ends[batch])
            wrong[batch] = 0 if sound else 1


def walk_records(
    data: memoryview, start: int, end: int, base: int, rows: Any, first: int, wrong: Any
) -> tuple[int, int, int]:
    """Find sound batches as `walk_batches` does, and judge the records of each on the way.

    Writes to `wrong` (uint8), from `first` on too, what `judge_records` does; 1 for a batch that
    is compressed, of magic 0 or 1 or of a codec that does not exist. The walk goes some KiB ahead,
    and a processor still holds them when the records are judged: from further away that takes more
    than twice the time, for next to nothing but the edges of records is looked at.
    """
    row = first
    position = start
    stretch = STRETCH
    while True:
        stop = min(position + stretch, end)
        found, position, reason = walk_batches(data, position, stop, base, rows, row)
        with cython.nogil:
            for batch in range(row, row + found):
                at = rows[0, batch] - base
                plain = rows[5, batch] == 2 and rows[7, batch] & 7 == 0
                sound = plain and _sound_records(data, at, data, at + 61, at + rows[1, batch])
                wrong[batch] = 0 if sound else 1
        row += found
        if reason != MORE or stop == end:
            return row - first, position, reason
        if found == 0:
            stretch *= 2


def _sound_records(heads: memoryview, head: int, data: memoryview, start: int, end: int) -> bool:
    """Return whether the records of one batch keep every rule; one without records does."""
    base = int64(heads, head + 27)
    span = int32(heads, head + 23)
    count = int32(heads, head + 57)
    position = start
    before = highest = -1
    left = count
    while left > 0:
        length, position = decode_varint(data, position, end, 5)
        if position < 0 or length <= 0 or length > end - position:
            return False
        stop = position + length
        stamp, position = decode_varint(data, position + 1, stop, 10)
        if position < 0:
            return False
        delta, position = decode_varint(data, position, stop, 5)
        if position < 0 or delta <= before or delta > span:
            return False
        before = delta
        stamp = sum64(base, stamp)
        if left == count or stamp > highest:
            highest = stamp
        for _ in range(2):
            length, position = decode_varint(data, position, stop, 5)
            if position < 0 or length > stop - position:
                return False
            if length > 0:
                position += length
        length, position = decode_varint(data, position, stop, 5)
        if position < 0 or length < 0 or length > stop - position:
            return False
        if length:
            position = _skip_headers(data, position, stop, length)
        if position != stop:
            return False
        left -= 1
    if count <= 0:
        return count == 0
    # The timestamp of an append, or of a control batch, is not a timestamp of its records.
    untimed = int16(heads, head + 21) & 0x28 != 0
    latest = int64(heads, head + 35)
    return position == end and (untimed or latest == highest or (latest == -1 and highest < -1))


def _decode_record(data: memoryview, position: int, stop: int, rows: Any, row: int) -> int:
    """Decode the body of one record, which must end exactly at `stop`; returns a reason."""
    if position >= stop:
        return RECORD_TRUNCATED
    rows[row, 2] = data[position]
    stamp, position = decode_varint(data, position + 1, stop, 10)
    if position < 0:
        return RECORD_VARINT
    delta, position = decode_varint(data, position, stop, 5)
    if position < 0:
        return RECORD_VARINT
    rows[row, 3] = stamp
    rows[row, 4] = delta
    for column in range(5, 9, 2):
        length, position = decode_varint(data, position, stop, 5)
        if position < 0:
            return RECORD_VARINT
        if length > stop - position:
            return RECORD_TRUNCATED
        rows[row, column] = position
        rows[row, column + 1] = max(length, -1)
        position += max(length, 0)
    count, position = decode_varint(data, position, stop, 5)
    if position < 0:
        return RECORD_VARINT
    if count < 0 or count > stop - position:
        return RECORD_HEADERS
    rows[row, 9] = position
    rows[row, 10] = count
    position = _skip_headers(data, position, stop, count)
    if position < 0:
        return RECORD_HEADERS
    return DONE if position == stop else RECORD_LENGTH


def decode_headers(data: memoryview, positions: Any, counts: Any, rows: Any) -> int:
    """Decode the headers of records that `decode_records` found, into `rows` from the first row on.

    Record i has ``counts[i]`` headers from ``positions[i]`` on. A row (int64, 4 columns) is key
    position, key length, value position, value length; positions are in `data`, a length of -1 is
    null. The caller has made room for all rows. Returns the number of rows written, which is
    smaller only if the bytes are not headers that `decode_records` found.
    """
    row = 0
    for record in range(len(positions)):
        position = positions[record]
        left = counts[record]
        while left > 0:
            for column in range(0, 4, 2):
                length, position = decode_varint(data, position, len(data), 5)
                if position < 0 or length > len(data) - position:
                    return row
                rows[row, column] = position
                rows[row, column + 1] = max(length, -1)
                position += max(length, 0)
            row += 1
            left -= 1
    return row


def gather(data: memoryview, positions: Any, lengths: Any, out: memoryview, edges: Any) -> int:
    """Copy pieces of `data` into `out`, one right behind the other.

    Piece i is the ``lengths[i]`` bytes from ``positions[i]`` on, none where that is negative.
    Writes to ``edges[i]`` (int32) where it begins in `out`, and at the end where the last one ends.
    Returns the pieces copied, which are fewer only where one lies out of `data` or finds no room.
    """
    at = 0
    edges[0] = 0
    for piece in range(len(positions)):
        size = max(lengths[piece], 0)
        position = positions[piece]
        if size:
            if position < 0 or size > len(data) - position or size > len(out) - at:
                return piece
            copy(out, at, data, position, position + size)
            at += size
        edges[piece + 1] = at
    return len(positions)


def _skip_headers(data: memoryview, position: int, stop: int, count: int) -> int:
    """Return the position behind `count` headers, -1 where they do not fit before `stop`."""
    while count > 0:
        length, position = decode_varint(data, position, stop, 5)
        if position < 0 or length < 0 or length > stop - position:
            return -1
        length, position = decode_varint(data, position + length, stop, 5)
        if position < 0 or length > stop - position:
            return -1
        position += max(length, 0)
        count -= 1
    return position
