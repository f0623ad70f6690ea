# The C types of _offset_commits.py, and in C what _uncompiled.py is in plain Python.
cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t

cdef extern from "_loads.h":
    uint16_t load16(const unsigned char *at, const unsigned char *last) noexcept nogil
    uint32_t load32(const unsigned char *at, const unsigned char *last) noexcept nogil
    uint64_t load64(const unsigned char *at, const unsigned char *last) noexcept nogil

cpdef enum:
    COMMIT_UNSURE, COMMIT_VALUE, COMMIT_TOMBSTONE, COMMIT_OTHER

cdef inline int64_t int16(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int16_t>load16(&data[position], &data[position + 1])

cdef inline int64_t int32(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int32_t>load32(&data[position], &data[position + 3])

cdef inline int64_t int64(const unsigned char[::1] data, Py_ssize_t position) noexcept nogil:
    return <int64_t>load64(&data[position], &data[position + 7])

@cython.locals(row=Py_ssize_t, column=Py_ssize_t, kind=int)
cpdef void decode_commits(
    const unsigned char[::1] data, const int64_t[:] key_positions, const int64_t[:] key_lengths,
    const int64_t[:] value_positions, const int64_t[:] value_lengths, int64_t[:, ::1] rows
) noexcept

@cython.locals(kind=int64_t, at=Py_ssize_t, size=int64_t)
cdef int _commit_key(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil

@cython.locals(version=int64_t, at=Py_ssize_t, size=int64_t)
cdef bint _commit_value(
    const unsigned char[::1] data, int64_t kind, Py_ssize_t position, Py_ssize_t end,
    int64_t[:, ::1] rows, Py_ssize_t row
) noexcept nogil

@cython.locals(bits=int)
cdef bint _is_ascii(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil

@cython.locals(
    used=int64_t, mask=Py_ssize_t, row=Py_ssize_t, length=int64_t, position=Py_ssize_t,
    at=Py_ssize_t, slot=int64_t, begin=int64_t, step=Py_ssize_t
)
cpdef (Py_ssize_t, Py_ssize_t) intern_keys(
    const unsigned char[::1] data, const int64_t[:] positions, const int64_t[:] lengths,
    Py_ssize_t first, unsigned char[::1] keys, int64_t[::1] key_end, Py_ssize_t count,
    int32_t[::1] table, int64_t[::1] slots
) noexcept

@cython.locals(mask=Py_ssize_t, begin=Py_ssize_t, slot=Py_ssize_t, at=Py_ssize_t)
cpdef void fill_table(
    const unsigned char[::1] keys, const int64_t[::1] key_end, Py_ssize_t count, int32_t[::1] table
) noexcept

@cython.locals(value=uint64_t)
cdef Py_ssize_t _hash(
    const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil

@cython.locals(step=Py_ssize_t)
cdef bint _is_same(
    const unsigned char[::1] data, Py_ssize_t position, const unsigned char[::1] keys,
    Py_ssize_t begin, Py_ssize_t length
) noexcept nogil
