# The C of _mapped.py, for which plain Python has no words.
cdef extern from "_mapped.h":
    int mapped_watch(const unsigned char *start, size_t size) noexcept nogil
    bint mapped_struck(int range) noexcept nogil
    void mapped_unwatch(int range) noexcept nogil
    long mapped_resident(const unsigned char *start, size_t size) noexcept nogil

cdef inline int watch_bytes(const unsigned char[::1] data) noexcept:
    return mapped_watch(&data[0], <size_t>data.shape[0])

cdef inline long resident_pages(const unsigned char[::1] data) noexcept:
    return mapped_resident(&data[0], <size_t>data.shape[0])

cpdef int watch(const unsigned char[::1] data) noexcept

cpdef bint is_struck(int number) noexcept

cpdef void unwatch(int number) noexcept

cpdef long resident(const unsigned char[::1] data) noexcept
