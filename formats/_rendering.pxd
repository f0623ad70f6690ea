# The C types of _rendering.py, and in C what it has for plain Python behind `compiled`.
cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "_plain.h":
    size_t copy_unescaped(
        unsigned char *to, const unsigned char *last, const unsigned char *start,
        const unsigned char *end
    ) noexcept nogil

cpdef enum:
    END, NUMBER, OPTIONAL, TIME, VALUE, HEADERS, TEXT, NOTHING

cpdef enum:
    UTF8, HEX, BASE64, SIZE

cdef const unsigned char[::1] _NULL, _SIZE_IS, _UTF8_IS, _HEX_IS, _BASE64_IS, _KEY_IS, _VALUE_IS
cdef const unsigned char[::1] _UTF8, _HEX, _BASE64, _LEN, _LETTERS, _DIGITS
cdef Py_ssize_t _ROOM

cdef inline int copy(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] source, Py_ssize_t first,
    Py_ssize_t last
) except -1:
    # Both ends are indexed, so that a build that checks indexes checks them.
    if last > first:
        memcpy(&out[at], &source[first], &source[last - 1] - &source[first])
        out[at + last - first - 1] = source[last - 1]
    return 0

cdef inline uint64_t magnitude(int64_t value) noexcept:
    return 0 - <uint64_t>value if value < 0 else <uint64_t>value

cdef inline Py_ssize_t plain(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last
) except -1:
    return <Py_ssize_t>copy_unescaped(
        &out[at], &out[at + last - first - 1], &data[first], &data[last - 1]
    )

@cython.locals(at=Py_ssize_t, end=Py_ssize_t, place=Py_ssize_t)
cpdef (Py_ssize_t, Py_ssize_t) render(
    const unsigned char[::1] data, const int64_t[:, ::1] values, const int64_t[::1] order,
    Py_ssize_t first, const unsigned char[::1] texts, const int64_t[:, ::1] cuts,
    const int64_t[:, ::1] ops, int encoding, int delimiter, unsigned char[::1] out
)

@cython.locals(kind=int64_t, cell=Py_ssize_t, op=int64_t, number=int64_t)
cdef Py_ssize_t _line(
    const unsigned char[::1] data, const int64_t[:, ::1] values, Py_ssize_t row,
    const unsigned char[::1] texts, const int64_t[:, ::1] cuts, const int64_t[:, ::1] ops,
    int encoding, int delimiter, unsigned char[::1] out, Py_ssize_t at
) except? -2

cdef Py_ssize_t _text(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] texts, int64_t first,
    int64_t last
) except? -2

cdef Py_ssize_t _put(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] text
) except? -2

@cython.locals(raw=uint64_t, least=uint64_t, size=int)
cdef Py_ssize_t _decimal(unsigned char[::1] out, Py_ssize_t at, int64_t value) except? -2

@cython.locals(place=Py_ssize_t, pair=uint32_t)
cdef Py_ssize_t _digits(
    unsigned char[::1] out, Py_ssize_t at, uint64_t raw, int size
) except? -2

@cython.locals(
    day=int64_t, rest=int64_t, era=int64_t, of_era=int64_t, of_year=int64_t, of_march=int64_t,
    month=int64_t
)
cdef Py_ssize_t _time(
    unsigned char[::1] out, Py_ssize_t at, int64_t milliseconds, int delimiter
) except? -2

cdef Py_ssize_t _part(
    unsigned char[::1] out, Py_ssize_t at, unsigned char mark, uint64_t number, int size
) except? -2

@cython.locals(end=Py_ssize_t)
cdef Py_ssize_t _value(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, int64_t first,
    int64_t length, int encoding, int delimiter
) except? -2

@cython.locals(end=Py_ssize_t)
cdef Py_ssize_t _cells(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t length, int encoding, unsigned char delimiter
) except? -2

cdef Py_ssize_t _encoding(unsigned char[::1] out, Py_ssize_t at, int encoding) except? -2

@cython.locals(header=int64_t, of_value=int, length=int64_t)
cdef Py_ssize_t _headers(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t position,
    int64_t count, int encoding
) except? -2

@cython.locals(raw=uint64_t, byte=uint64_t, shift=int)
cdef (int64_t, Py_ssize_t) _varint(const unsigned char[::1] data, Py_ssize_t position) except *

@cython.locals(size=Py_ssize_t, byte=uint32_t, code=int64_t, name=int)
cdef Py_ssize_t _json(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last
) except? -2

@cython.locals(quoted=bint, byte=uint32_t, code=int64_t, size=Py_ssize_t)
cdef Py_ssize_t _cell(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last, int delimiter
) except? -2

cdef bint _needs_quotes(
    const unsigned char[::1] data, Py_ssize_t first, Py_ssize_t last
) except? True

@cython.locals(lead=int64_t, size=Py_ssize_t, code=int64_t, place=Py_ssize_t)
cdef int64_t _character(
    const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end
) except? -2

cdef Py_ssize_t _size(int64_t code) noexcept

cdef int _name(int64_t code) except? -2

@cython.locals(shift=int)
cdef Py_ssize_t _escaped(
    unsigned char[::1] out, Py_ssize_t at, int64_t code, unsigned char letter, int size
) except? -2

cdef int _digit(int64_t number) noexcept

@cython.locals(place=Py_ssize_t)
cdef Py_ssize_t _hex(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last
) except? -2

@cython.locals(left=Py_ssize_t, bits=uint32_t)
cdef Py_ssize_t _base64(
    unsigned char[::1] out, Py_ssize_t at, const unsigned char[::1] data, Py_ssize_t first,
    Py_ssize_t last
) except? -2
