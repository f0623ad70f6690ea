/* Bytes that JSON shows as they are: ASCII from the space on, without DEL, quote and backslash. */
#ifndef LOGTOOL_PLAIN_H
#define LOGTOOL_PLAIN_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LOGTOOL_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The top bit of each byte that is zero; above one that is, also of others. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - LOGTOOL_EACH(1)) & ~word & LOGTOOL_EACH(0x80);
}

/* The top bit of the first of 8 bytes that is escaped, and maybe of some behind it; 0 where none is. */
static inline uint64_t escaped_of_8(const unsigned char *at)
{
    uint64_t word = (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24
        | (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
    return (((word - LOGTOOL_EACH(0x20)) & ~word & LOGTOOL_EACH(0x80)) | (word & LOGTOOL_EACH(0x80))
        | zero_bytes(word ^ LOGTOOL_EACH('"')) | zero_bytes(word ^ LOGTOOL_EACH('\\'))
        | zero_bytes(word ^ LOGTOOL_EACH(0x7f)));
}

/* Copies the bytes before the first that is escaped, and returns how many. As words go whole, there must be
 * room for all of them in any case: `last` is the last byte that may be written, and `end` that is read; a
 * build with checked indexes checks both where their addresses are taken. */
static inline size_t copy_unescaped(
    unsigned char *to, const unsigned char *last, const unsigned char *from, const unsigned char *end)
{
    size_t size = (size_t)(end - from) + 1, done = 0;
    (void)last;
#ifdef __SSE2__
    for (; size - done >= 16; done += 16) {
        __m128i word = _mm_loadu_si128((const __m128i *)(from + done));
        /* As signed numbers, those above ASCII are less than a space, too. */
        __m128i escaped = _mm_or_si128(
            _mm_or_si128(
                _mm_cmplt_epi8(word, _mm_set1_epi8(0x20)), _mm_cmpeq_epi8(word, _mm_set1_epi8('"'))),
            _mm_or_si128(
                _mm_cmpeq_epi8(word, _mm_set1_epi8('\\')), _mm_cmpeq_epi8(word, _mm_set1_epi8(0x7f))));
        int mask = _mm_movemask_epi8(escaped);
        _mm_storeu_si128((__m128i *)(to + done), word);
        if (mask)
            return done + (size_t)__builtin_ctz((unsigned)mask);
    }
#endif
    for (; size - done >= 8; done += 8) {
        uint64_t escaped = escaped_of_8(from + done);
        memcpy(to + done, from + done, 8);
        if (escaped)
            return done + (size_t)__builtin_ctzll(escaped) / 8;
    }
    for (; done < size; done++) {
        unsigned char byte = from[done];
        if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
            break;
        to[done] = byte;
    }
    return done;
}

#endif
