# The C types of _rendering.py, and in C what _uncompiled.py has for it in plain Python.
cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "_plain.h":
    void escape_init() noexcept nogil
    size_t escape_text(
        unsigned char *to, const unsigned char *last, const unsigned char *start,
        const unsigned char *end, size_t *taken
    ) noexcept nogil

cdef extern from "_numbers.h":
    size_t write_decimal(
        unsigned char *to, const unsigned char *last, int64_t value
    ) noexcept nogil
    void write_time(
        unsigned char *to, const unsigned char *last, int64_t milliseconds
    ) noexcept nogil

cdef extern from "Python.h":
    bint printable "Py_UNICODE_ISPRINTABLE"(uint32_t code) noexcept nogil

cpdef enum:
    END, NUMBER, OPTIONAL, TIME, VALUE, HEADERS, TEXT

cpdef enum:
    UTF8, HEX, BASE64, SIZE, KAFKA, ESCAPED

cdef enum:
    FULL = -1
    OUTSIDE = -2
    OTHER = -3

cdef const unsigned char[::1] _NULL, _NO_HEADERS, _SIZE_IS, _UTF8_IS, _HEX_IS, _BASE64_IS, _KEY_IS, _VALUE_IS
cdef const unsigned char[::1] _UTF8, _HEX, _BASE64, _LEN, _LETTERS, _DIGITS
cdef Py_ssize_t _ROOM
cdef int64_t _MOST, _TIME_SIZE

cdef inline void copy(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] source, Py_ssize_t first,
    Py_ssize_t last
) noexcept nogil:
    # Both ends are indexed, so that a build that checks indexes checks them.
    if last > first:
        memcpy(&out[at], &source[first], &source[last - 1] - &source[first] + 1)
        out[at + last - first - 1] = source[last - 1]

cdef inline int64_t zigzag(uint64_t raw, int most) noexcept nogil:
    return <int64_t>((<uint32_t>raw >> 1) ^ -(raw & 1))

cdef inline Py_ssize_t put(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] word
) noexcept nogil:
    memcpy(&out[at], &word[0], 16)
    out[at + 15] = word[15]
    return at + word[15]

cdef inline void again(unsigned char[::1] out, Py_ssize_t at, Py_ssize_t place) noexcept nogil:
    # The longest of what is noted: a number has 19 digits, a time 24 characters.
    cdef uint64_t[3] bytes
    cdef unsigned char last = out[place + 23]
    memcpy(&bytes[0], &out[place], 24)
    memcpy(&out[at], &bytes[0], 24)
    out[at + 23] = last

cdef inline Py_ssize_t decimal(unsigned char[::1] out, Py_ssize_t at, int64_t value) noexcept nogil:
    return at + <Py_ssize_t>write_decimal(&out[at], &out[at + 20], value)

cdef inline Py_ssize_t moment(
    unsigned char[::1] out, Py_ssize_t at, int64_t milliseconds
) noexcept nogil:
    write_time(&out[at], &out[at + 23], milliseconds)
    return at + 24

cdef inline (Py_ssize_t, Py_ssize_t) escaped(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last
) noexcept nogil:
    cdef size_t taken = 0
    cdef size_t written = 0
    if last > first:
        written = escape_text(
            &out[at], &out[at + 2 * (last - first) + 31], &data[first], &data[last - 1], &taken
        )
    return first + <Py_ssize_t>taken, at + <Py_ssize_t>written

@cython.locals(size=Py_ssize_t)
cpdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) render(
    const unsigned char[::1] data, const int64_t[:, ::1] heads, const int64_t[:, ::1] rows,
    const int64_t[::1] ends, const int64_t[:, ::1] kinds, Py_ssize_t batch, Py_ssize_t line,
    const unsigned char[::1] texts, const int64_t[:, :, ::1] cells, int encoding, int delimiter,
    unsigned char[::1] out, int64_t[:, ::1] memo
)

@cython.locals(
    done=Py_ssize_t, at=Py_ssize_t, begin=Py_ssize_t, shown=Py_ssize_t, kind=Py_ssize_t,
    row=Py_ssize_t, cell=Py_ssize_t, op=int64_t, column=Py_ssize_t, number=int64_t, more=int64_t,
    start=Py_ssize_t
)
cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) _lines(
    const unsigned char[::1] data, const int64_t[:, ::1] heads, const int64_t[:, ::1] rows,
    const int64_t[::1] ends, const int64_t[:, ::1] kinds, Py_ssize_t batch, Py_ssize_t line,
    const unsigned char[::1] texts, const int64_t[:, :, ::1] cells, int encoding, int delimiter,
    unsigned char[::1] out, int64_t[:, ::1] memo
) noexcept nogil

cdef inline Py_ssize_t _text(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] texts, int64_t first,
    int64_t last
) noexcept nogil

@cython.locals(last=int64_t, place=Py_ssize_t, size=Py_ssize_t, known=bint)
cdef inline Py_ssize_t _number(
    unsigned char[::1] out, Py_ssize_t at, int64_t number, int64_t[:, ::1] memo, Py_ssize_t cell
) noexcept nogil

@cython.locals(last=int64_t, rest=int64_t)
cdef inline Py_ssize_t _time(
    unsigned char[::1] out, Py_ssize_t at, int64_t milliseconds, int delimiter,
    int64_t[:, ::1] memo, Py_ssize_t cell
) noexcept nogil

@cython.locals(place=Py_ssize_t)
cdef inline Py_ssize_t _ascii(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, int64_t first,
    int64_t length
) noexcept nogil

@cython.locals(end=Py_ssize_t)
cdef Py_ssize_t _value(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, int64_t first,
    int64_t length, int encoding, int delimiter
) noexcept nogil

@cython.locals(end=Py_ssize_t)
cdef Py_ssize_t _cells(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t length, int encoding, unsigned char delimiter
) noexcept nogil

cdef Py_ssize_t _encoding(unsigned char[::1] out, Py_ssize_t at, int encoding) noexcept nogil

@cython.locals(header=int64_t, of_value=int, length=int64_t)
cdef Py_ssize_t _headers(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t position,
    int64_t count, int encoding
) noexcept nogil

@cython.locals(header=int64_t, length=int64_t)
cdef Py_ssize_t _names(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t position,
    int64_t count
) noexcept nogil

@cython.locals(last=Py_ssize_t, stop=Py_ssize_t, code=int64_t)
cdef Py_ssize_t _decoded(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    int64_t length
) noexcept nogil

@cython.locals(
    lead=int64_t, size=Py_ssize_t, least=int64_t, most=int64_t, done=Py_ssize_t
)
cdef Py_ssize_t _broken(
    const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil

@cython.locals(raw=uint64_t, byte=uint64_t, shift=int)
cdef (int64_t, Py_ssize_t) _varint(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil

@cython.locals(size=Py_ssize_t, byte=uint32_t, code=int64_t, name=int)
cdef Py_ssize_t _json(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last
) noexcept nogil

@cython.locals(escapes=bint, quoted=bint, byte=uint32_t, code=int64_t, size=Py_ssize_t)
cdef Py_ssize_t _cell(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last, int encoding, unsigned char delimiter
) noexcept nogil

@cython.locals(byte=uint32_t)
cdef bint _needs_quotes(
    const unsigned char[::1] data, Py_ssize_t first, Py_ssize_t last, unsigned char delimiter,
    bint escapes
) noexcept nogil

@cython.locals(lead=int64_t, size=Py_ssize_t, code=int64_t, place=Py_ssize_t)
cdef int64_t _character(
    const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil

cdef Py_ssize_t _size(int64_t code) noexcept nogil

cdef int _name(int64_t code) noexcept nogil

@cython.locals(shift=int)
cdef Py_ssize_t _escaped(
    unsigned char[::1] out, Py_ssize_t at, int64_t code, unsigned char letter, int size
) noexcept nogil

cdef inline int _digit(int64_t number) noexcept nogil

@cython.locals(place=Py_ssize_t)
cdef Py_ssize_t _hex(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last
) noexcept nogil

@cython.locals(left=Py_ssize_t, bits=uint32_t)
cdef Py_ssize_t _base64(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last
) noexcept nogil
