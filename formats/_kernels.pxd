# The C types of _kernels.py, and in C what _uncompiled.py is in plain Python.
cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "_crc32.h":
    void crc32_init() noexcept nogil
    uint32_t crc32c_of(const unsigned char *data, size_t size) noexcept nogil
    uint32_t crc32c_from(
        uint32_t value, const unsigned char *data, size_t size
    ) noexcept nogil
    uint32_t crc32c_joined(
        const unsigned char *before, size_t count, const unsigned char *data, size_t size
    ) noexcept nogil
    uint32_t crc32_of(const unsigned char *data, size_t size) noexcept nogil

cdef extern from "_loads.h":
    uint16_t load16(const unsigned char *at, const unsigned char *last) noexcept nogil
    uint32_t load32(const unsigned char *at, const unsigned char *last) noexcept nogil
    uint64_t load64(const unsigned char *at, const unsigned char *last) noexcept nogil
    uint32_t load32le(const unsigned char *at, const unsigned char *last) noexcept nogil
    uint64_t load64le(const unsigned char *at, const unsigned char *last) noexcept nogil
    void store_covered(
        const unsigned char *at, const unsigned char *last, unsigned char *out
    ) noexcept nogil
    void store_kafka(unsigned char *at, const unsigned char *last, uint32_t epoch) noexcept nogil

# Why decoding records stopped: constants of C, as names of the module are looked up at each use.
cpdef enum:
    DONE, RECORD_TRUNCATED, RECORD_LENGTH, RECORD_VARINT, RECORD_HEADERS

cdef inline uint32_t crc32c(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    return crc32c_of(&data[0] + start, <size_t>(end - start))

cdef inline uint32_t crc32c_on(uint32_t value, const unsigned char[::1] data) noexcept nogil:
    return crc32c_from(value, &data[0], <size_t>data.shape[0])

cdef inline uint32_t crc32(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    return crc32_of(&data[0] + start, <size_t>(end - start))

cdef inline uint32_t uint32(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return load32(&data[position], &data[position + 3])

cdef inline int64_t int32(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int32_t>uint32(data, position)

cdef inline void copy(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] source, Py_ssize_t first,
    Py_ssize_t last
) noexcept nogil:
    memcpy(&out[at], &source[first], <size_t>(last - first))

cdef inline int64_t zigzag(uint64_t raw, int most) noexcept nogil:
    if most == 5:
        raw = <uint32_t>raw
    return <int64_t>((raw >> 1) ^ -(raw & 1))

cdef inline int64_t int16(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int16_t>load16(&data[position], &data[position + 1])

cdef inline int64_t int64(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int64_t>load64(&data[position], &data[position + 7])

cdef inline uint32_t uint32le(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return load32le(&data[position], &data[position + 3])

cdef inline int64_t int32le(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int32_t>load32le(&data[position], &data[position + 3])

cdef inline int64_t int64le(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int64_t>load64le(&data[position], &data[position + 7])

cdef inline int64_t int16le(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int16_t>(<uint16_t>(data[position] | data[position + 1] << 8))

cdef inline uint32_t redpanda_crc(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t after
) noexcept nogil:
    cdef unsigned char[40] covered
    store_covered(&data[position], &data[position + 60], covered)
    return crc32c_joined(covered, 40, &data[0] + position + 61, <size_t>(after - position - 61))

cdef inline void kafka_header(
    unsigned char[::1] data, Py_ssize_t position, int64_t epoch
) noexcept nogil:
    store_kafka(&data[position], &data[position + 60], <uint32_t>epoch)

cdef inline int64_t sum64(int64_t a, int64_t b) noexcept nogil:
    return <int64_t>(<uint64_t>a + <uint64_t>b)

cpdef uint32_t checksum(const unsigned char[::1] data, uint32_t value) noexcept

@cython.locals(
    position=Py_ssize_t, after=Py_ssize_t, row=Py_ssize_t, most=Py_ssize_t, size=int64_t,
    magic=int, reason=int, sound=bint, full=int, bad_size=int, bad_magic=int, bad_crc=int
)
cpdef (Py_ssize_t, Py_ssize_t, int) walk_batches(
    const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, int64_t base,
    int64_t[:, ::1] rows, Py_ssize_t first
) noexcept

@cython.locals(
    position=Py_ssize_t, after=Py_ssize_t, row=Py_ssize_t, most=Py_ssize_t, size=int64_t,
    reason=int, full=int, bad_size=int, bad_header=int, bad_crc=int
)
cpdef (Py_ssize_t, Py_ssize_t, int) walk_redpanda(
    const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, int64_t base, int64_t epoch,
    int64_t[:, ::1] rows, Py_ssize_t first
) noexcept

@cython.locals(
    position=Py_ssize_t, after=Py_ssize_t, row=Py_ssize_t, most=Py_ssize_t, size=int64_t,
    reason=int, full=int, bad_size=int, bad_magic=int
)
cpdef (Py_ssize_t, Py_ssize_t, int) walk_headers(
    const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t left, int64_t base,
    int64_t[:, ::1] rows, Py_ssize_t first
) noexcept

@cython.locals(
    last=int64_t, epoch=int64_t, newest=int64_t, producer=int64_t, producer_epoch=int64_t,
    records=int64_t, largest=int64_t, rising=int, producers=int, oldest=int64_t, row=Py_ssize_t,
    base=int64_t, plain=bint
)
cpdef bint plain_facts(
    const int64_t[:, ::1] rows, Py_ssize_t first, Py_ssize_t count, int64_t[::1] facts
) noexcept

@cython.locals(
    position=Py_ssize_t, after=Py_ssize_t, before=Py_ssize_t, row=Py_ssize_t, most=Py_ssize_t,
    size=int64_t, reason=int, full=int, not_plain=int, records=int64_t, batches=int64_t,
    largest=int64_t, producers=int, newest=int64_t, producer=int64_t, producer_epoch=int64_t,
    oldest=int64_t, rising=int, entry=Py_ssize_t, time=Py_ssize_t, entries=Py_ssize_t,
    stamps=Py_ssize_t, last=int64_t, highest=int64_t, epoch=int64_t, last_possible=int64_t,
    least=int64_t, greatest=int64_t, until=int64_t, kept=bint, same=bint, first_offset=int64_t,
    last_offset=int64_t, delta=int64_t, count=int64_t, batch_epoch=int64_t, attributes=int64_t, stamp=int64_t,
    batch_producer=int64_t, batch_producer_epoch=int64_t
)
cpdef (Py_ssize_t, Py_ssize_t, int) walk_plain(
    const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, int64_t base,
    int64_t[:, ::1] rows, Py_ssize_t first, int64_t[::1] state, int64_t[:, ::1] offsets,
    int64_t[:, ::1] times
) noexcept

@cython.locals(
    size=Py_ssize_t, count=Py_ssize_t, stop=Py_ssize_t, _=int, last=int64_t, newest=int64_t
)
cpdef bint plain_segment(
    const unsigned char[::1] data, const unsigned char[::1] index, const unsigned char[::1] times,
    int64_t base, int64_t[:, ::1] rows, int64_t[::1] facts
) noexcept

@cython.locals(
    size=Py_ssize_t, row=Py_ssize_t, before=int64_t, offset=int64_t, at=Py_ssize_t,
    relative=int64_t, position=int64_t
)
cdef bint _plain_offsets(
    const unsigned char[::1] index, int64_t base, const int64_t[:, ::1] rows, Py_ssize_t count
) noexcept

@cython.locals(
    size=Py_ssize_t, row=Py_ssize_t, last=int64_t, before=int64_t, highest=int64_t, at=Py_ssize_t,
    stamp=int64_t, relative=int64_t
)
cdef int64_t _plain_times(
    const unsigned char[::1] times, int64_t base, const int64_t[:, ::1] rows, Py_ssize_t count
) noexcept

@cython.locals(
    offset_count=Py_ssize_t, time_count=Py_ssize_t, indexed=int64_t, newest=int64_t,
    entered=int64_t, at=int64_t, row=Py_ssize_t
)
cpdef (Py_ssize_t, Py_ssize_t) due_entries(
    const int64_t[:, ::1] rows, Py_ssize_t count, int64_t base, int64_t interval,
    int64_t[:, ::1] offsets, int64_t[:, ::1] times
) noexcept

@cython.locals(count=Py_ssize_t, row=Py_ssize_t)
cpdef Py_ssize_t due_rows(
    const int64_t[::1] positions, int64_t indexed, int64_t interval, int64_t[::1] rows
) noexcept

@cython.locals(row=Py_ssize_t)
cpdef void turn_headers(
    unsigned char[::1] data, int64_t base, int64_t epoch, const int64_t[:, ::1] rows,
    Py_ssize_t first, Py_ssize_t count
) noexcept

@cython.locals(base_offset=int64_t)
cdef void _write_redpanda_header(
    const unsigned char[::1] data, Py_ssize_t position, int64_t epoch, int64_t[:, ::1] rows,
    Py_ssize_t row
) noexcept nogil

cdef inline void _write_row(
    const unsigned char[::1] data, Py_ssize_t position, int64_t base, int64_t[:, ::1] rows,
    Py_ssize_t row
) noexcept nogil

@cython.locals(base_offset=int64_t)
cdef inline void _write_header(
    const unsigned char[::1] data, Py_ssize_t position, int64_t[:, ::1] rows, Py_ssize_t row
) noexcept nogil

@cython.locals(offset=int64_t, timestamp=int64_t)
cdef void _write_legacy_header(
    const unsigned char[::1] data, Py_ssize_t position, int magic, int64_t[:, ::1] rows,
    Py_ssize_t row
) noexcept nogil

@cython.locals(shift=int, raw=uint64_t, byte=uint64_t, last=Py_ssize_t)
cpdef (int64_t, Py_ssize_t) decode_varint(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, int most
) noexcept nogil

@cython.locals(position=Py_ssize_t, at=Py_ssize_t, done=Py_ssize_t, length=int64_t, reason=int)
cpdef (Py_ssize_t, Py_ssize_t, int) decode_records(
    const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count,
    int64_t[:, ::1] rows, Py_ssize_t first
) noexcept nogil

@cython.locals(
    total=Py_ssize_t, batches=Py_ssize_t, batch=Py_ssize_t, done=Py_ssize_t, position=Py_ssize_t,
    reason=int
)
cpdef Py_ssize_t decode_batches(
    const unsigned char[::1] data, const int64_t[::1] starts, const int64_t[::1] ends,
    const int64_t[::1] counts, int64_t[:, ::1] rows, int64_t[:, ::1] results
) noexcept

@cython.locals(
    row=Py_ssize_t, batch=Py_ssize_t, of_append=int64_t, _=int64_t, stamp=int64_t, sequence=int64_t
)
cpdef bint place_records(
    const int64_t[::1] offsets, const int64_t[::1] attributes, const int64_t[::1] stamps,
    const int64_t[::1] largest, const int64_t[::1] sequences, const int64_t[::1] counts,
    int64_t latest, int64_t[:, ::1] rows
) noexcept

@cython.locals(
    stamp=int64_t, delta=int64_t, length=int64_t, column=Py_ssize_t, count=int64_t
)
cdef inline int _decode_record(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, int64_t[:, ::1] rows,
    Py_ssize_t row
) noexcept nogil

@cython.locals(
    row=Py_ssize_t, record=Py_ssize_t, position=Py_ssize_t, left=int64_t, length=int64_t,
    column=Py_ssize_t
)
cpdef Py_ssize_t decode_headers(
    const unsigned char[::1] data, const int64_t[:] positions, const int64_t[:] counts,
    int64_t[:, ::1] rows
) noexcept

@cython.locals(at=Py_ssize_t, piece=Py_ssize_t, size=int64_t, position=int64_t)
cpdef Py_ssize_t gather(
    const unsigned char[::1] data, const int64_t[:] positions, const int64_t[:] lengths,
    unsigned char[::1] out, int32_t[::1] edges
) noexcept

@cython.locals(length=int64_t)
cdef Py_ssize_t _skip_headers(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t stop, int64_t count
) noexcept nogil

@cython.locals(batches=Py_ssize_t, batch=Py_ssize_t, sound=bint)
cpdef void judge_records(
    const unsigned char[::1] heads, const int64_t[::1] positions, const unsigned char[::1] data,
    const int64_t[::1] starts, const int64_t[::1] ends, unsigned char[::1] wrong
) noexcept

@cython.locals(
    row=Py_ssize_t, position=Py_ssize_t, stretch=Py_ssize_t, stop=Py_ssize_t, found=Py_ssize_t,
    reason=int, batch=Py_ssize_t, at=Py_ssize_t, plain=bint, sound=bint
)
cpdef (Py_ssize_t, Py_ssize_t, int) walk_records(
    const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, int64_t base,
    int64_t[:, ::1] rows, Py_ssize_t first, unsigned char[::1] wrong
) noexcept

@cython.locals(
    base=int64_t, span=int64_t, count=int64_t, position=Py_ssize_t, before=int64_t, highest=int64_t,
    left=int64_t, length=int64_t, stop=Py_ssize_t, stamp=int64_t, delta=int64_t, _=int,
    untimed=bint, latest=int64_t
)
cdef bint _sound_records(
    const unsigned char[::1] heads, Py_ssize_t head, const unsigned char[::1] data,
    Py_ssize_t start, Py_ssize_t end
) noexcept nogil
