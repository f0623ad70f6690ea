/* Text in UTF-8 as JSON shows it in ASCII, as far as no byte needs a closer look.
 *
 * ASCII from the space on stands as it is, but for a backslash before quote and backslash. Control
 * characters and what is not ASCII are left to who calls. With SSSE3, 16 bytes go at once whatever they
 * hold: where the next quote is, is nothing that a processor could foretell.
 */
#ifndef LOGTOOL_PLAIN_H
#define LOGTOOL_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LOGTOOL_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The top bit of each byte that is zero; above one that is, also of others. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - LOGTOOL_EACH(1)) & ~word & LOGTOOL_EACH(0x80);
}

/* Whether any byte of a word is not shown as it is. */
static inline int escapes_of_8(uint64_t word)
{
    return ((((word - LOGTOOL_EACH(0x20)) | word) & LOGTOOL_EACH(0x80))
        | zero_bytes(word ^ LOGTOOL_EACH('"')) | zero_bytes(word ^ LOGTOOL_EACH('\\'))
        | zero_bytes(word ^ LOGTOOL_EACH(0x7f))) != 0;
}

/* Copies from `from` up to `end`, the last byte to read, but before the first byte that needs a closer
 * look; returns how many bytes were written and sets `taken` to how many were read. There must be room for
 * two bytes for each, and for 16 more: `last` is the last byte that may be written. A build with checked
 * indexes checks both ends where their addresses are taken. */
static size_t escape_words(
    unsigned char *to, const unsigned char *last, const unsigned char *from, const unsigned char *end,
    size_t *taken)
{
    size_t size = (size_t)(end - from) + 1, done = 0, at = 0;
    (void)last;
    while (done < size) {
        unsigned char byte = from[done];
        uint64_t word;
        if (size - done >= 8) {
            memcpy(&word, from + done, 8);
            if (!escapes_of_8(word)) {
                memcpy(to + at, &word, 8);
                done += 8;
                at += 8;
                continue;
            }
        }
        if (byte < 0x20 || byte >= 0x7f)
            break;
        to[at] = '\\';
        at += byte == '"' || byte == '\\';
        to[at++] = byte;
        done++;
    }
    *taken = done;
    return at;
}

static size_t (*escape_text)(
    unsigned char *, const unsigned char *, const unsigned char *, const unsigned char *, size_t *
) = escape_words;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>

/* For each set of 8 bytes that have a backslash before them: where each byte that is written comes from.
 * The ninth is the backslash. */
static unsigned char escape_places[256][16] __attribute__((aligned(16)));

/* From byte 16 - n on: what moves the last n bytes to the front. */
static const unsigned char escape_slide[32] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
    128, 128, 128, 128, 128, 128,
};

/* The last `left` of `size` bytes, fewer than 16. */
__attribute__((target("ssse3,popcnt")))
static inline __m128i escape_rest(const unsigned char *from, size_t size, size_t left)
{
    unsigned char few[16] = {0};
    size_t at = 0, part;
    if (size >= 16)
        return _mm_shuffle_epi8(
            _mm_loadu_si128((const __m128i *)(from + size - 16)),
            _mm_loadu_si128((const __m128i *)(escape_slide + 16 - left)));
    for (part = 8; part; part /= 2)
        if (left & part) {
            memcpy(few + at, from + at, part);
            at += part;
        }
    return _mm_loadu_si128((const __m128i *)few);
}

__attribute__((target("ssse3,popcnt")))
static size_t escape_ssse3(
    unsigned char *to, const unsigned char *last, const unsigned char *from, const unsigned char *end,
    size_t *taken)
{
    const __m128i space = _mm_set1_epi8(0x20), rubout = _mm_set1_epi8(0x7f);
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    size_t size = (size_t)(end - from) + 1, done = 0, at = 0, step = 16;
    while (done < size) {
        __m128i bytes, odd, behind;
        unsigned mask, meant = 0xffff;
        if (size - done >= 16) {
            bytes = _mm_loadu_si128((const __m128i *)(from + done));
        } else {
            step = size - done;
            bytes = escape_rest(from, size, step);
            meant = (1u << step) - 1;
        }
        /* As signed numbers, those above ASCII are less than a space, too. */
        odd = _mm_or_si128(_mm_cmplt_epi8(bytes, space), _mm_cmpeq_epi8(bytes, rubout));
        if ((unsigned)_mm_movemask_epi8(odd) & meant) {
            size_t few;
            at += escape_words(to + at, last, from + done, end, &few);
            done += few;
            break;
        }
        behind = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash));
        mask = (unsigned)_mm_movemask_epi8(behind);
        _mm_storeu_si128((__m128i *)(to + at), _mm_shuffle_epi8(
            _mm_unpacklo_epi64(bytes, backslash),
            _mm_load_si128((const __m128i *)escape_places[mask & 0xff])));
        _mm_storeu_si128(
            (__m128i *)(to + at + 8 + (size_t)__builtin_popcount(mask & 0xff)), _mm_shuffle_epi8(
                _mm_unpackhi_epi64(bytes, backslash),
                _mm_load_si128((const __m128i *)escape_places[mask >> 8])));
        done += step;
        at += step + (size_t)__builtin_popcount(mask & meant);
    }
    *taken = done;
    return at;
}

static inline void escape_init(void)
{
    unsigned mask, bit;
    if (!__builtin_cpu_supports("ssse3") || !__builtin_cpu_supports("popcnt"))
        return;
    for (mask = 0; mask < 256; mask++) {
        unsigned char *place = escape_places[mask];
        for (bit = 0; bit < 8; bit++) {
            if (mask >> bit & 1)
                *place++ = 8;
            *place++ = (unsigned char)bit;
        }
    }
    escape_text = escape_ssse3;
}
#else
static inline void escape_init(void) {}
#endif

#endif
