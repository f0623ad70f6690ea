/* CRC-32C of a run of bytes, without leaving the kernel that walks batches.
 *
 * x86-64 with SSE4.2 and PCLMUL: three interleaved streams of the crc32 instruction, joined by
 * carry-less multiplication. ARMv8 with CRC: one stream. Elsewhere: eight tables (slicing by 8).
 * The choice is made once, when the module is loaded. Polynomial 0x1EDC6F41, reflected. The CRC-32 of
 * messages before magic 2 is rare enough for one table.
 */
#ifndef LOGTOOL_CRC32_H
#define LOGTOOL_CRC32_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC32C_REFLECTED 0x82F63B78u
#define CRC32_REFLECTED 0xEDB88320u
/* Bytes of one stream in a block, at most; a block is three of them. */
#define CRC32C_LANE 2048
/* How far ahead bytes are asked for, at least: far enough for memory to answer before they are needed.
 * Bytes behind the end may be asked for, too; that is no access. Three streams at once are more than a
 * processor foresees by itself: of a mapped file it took half as long again without. */
#define CRC32C_AHEAD 2048

static uint32_t crc32_table[256];
static uint32_t crc32c_table[8][256];
static uint32_t (*crc32c_update)(uint32_t, const unsigned char *, size_t);

static uint32_t crc32c_sliced(uint32_t crc, const unsigned char *data, size_t size)
{
    while (size >= 8) {
        crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16
            | (uint32_t)data[3] << 24;
        crc = crc32c_table[7][crc & 0xff] ^ crc32c_table[6][crc >> 8 & 0xff]
            ^ crc32c_table[5][crc >> 16 & 0xff] ^ crc32c_table[4][crc >> 24]
            ^ crc32c_table[3][data[4]] ^ crc32c_table[2][data[5]]
            ^ crc32c_table[1][data[6]] ^ crc32c_table[0][data[7]];
        data += 8;
        size -= 8;
    }
    while (size--)
        crc = crc >> 8 ^ crc32c_table[0][(crc ^ *data++) & 0xff];
    return crc;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>

/* x^(8 * 8 * words - 33) modulo the polynomial, reflected: multiplies a CRC past `words` words. */
static uint32_t crc32c_shift[2 * CRC32C_LANE / 8 + 1];

__attribute__((target("sse4.2,pclmul")))
static inline uint64_t crc32c_past(uint32_t crc, size_t words)
{
    __m128i product = _mm_clmulepi64_si128(
        _mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)crc32c_shift[words]), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul")))
static uint32_t crc32c_sse42(uint32_t crc, const unsigned char *data, size_t size)
{
    uint64_t word, a = crc;
    while (size >= 160) {
        size_t words = size / 24, i;
        uint64_t b = 0, c = 0;
        const unsigned char *second, *third;
        const char *ahead;
        if (words > CRC32C_LANE / 8)
            words = CRC32C_LANE / 8;
        second = data + 8 * words;
        third = second + 8 * words;
        ahead = (const char *)data + (24 * words > CRC32C_AHEAD ? 24 * words : CRC32C_AHEAD);
        for (i = 0; i < words; i++) {
            if (!(i & 7)) {
                _mm_prefetch(ahead, _MM_HINT_T0);
                _mm_prefetch(ahead + 64, _MM_HINT_T0);
                _mm_prefetch(ahead + 128, _MM_HINT_T0);
                ahead += 192;
            }
            memcpy(&word, data + 8 * i, 8);
            a = _mm_crc32_u64(a, word);
            memcpy(&word, second + 8 * i, 8);
            b = _mm_crc32_u64(b, word);
            memcpy(&word, third + 8 * i, 8);
            c = _mm_crc32_u64(c, word);
        }
        a = crc32c_past((uint32_t)a, 2 * words) ^ crc32c_past((uint32_t)b, words) ^ c;
        data += 24 * words;
        size -= 24 * words;
    }
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        a = _mm_crc32_u64(a, word);
    }
    if (size & 4) {
        uint32_t half;
        memcpy(&half, data, 4);
        a = _mm_crc32_u32((uint32_t)a, half);
        data += 4;
    }
    for (size &= 3; size > 0; size--)
        a = _mm_crc32_u8((uint32_t)a, *data++);
    return (uint32_t)a;
}

static int crc32c_accelerate(void)
{
    /* x^31 is bit 0 of a reflected word; 33 is what the product and the last crc32 add. */
    uint32_t power = 0x80000000u, i, bit;
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul"))
        return 0;
    for (i = 0; i < 31; i++)  /* x^31: one word is 64 bits, less 33 */
        power = power >> 1 ^ (power & 1 ? CRC32C_REFLECTED : 0);
    for (i = 1; i <= 2 * CRC32C_LANE / 8; i++) {
        crc32c_shift[i] = power;
        for (bit = 0; bit < 64; bit++)
            power = power >> 1 ^ (power & 1 ? CRC32C_REFLECTED : 0);
    }
    crc32c_update = crc32c_sse42;
    return 1;
}
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

static uint32_t crc32c_armv8(uint32_t crc, const unsigned char *data, size_t size)
{
    uint64_t word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        crc = __crc32cd(crc, word);
    }
    while (size--)
        crc = __crc32cb(crc, *data++);
    return crc;
}

static int crc32c_accelerate(void)
{
    crc32c_update = crc32c_armv8;
    return 1;
}
#else
static int crc32c_accelerate(void)
{
    return 0;
}
#endif

static void crc32_init(void)
{
    uint32_t byte, crc, i;
    for (byte = 0; byte < 256; byte++) {
        crc = byte;
        for (i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? CRC32C_REFLECTED : 0);
        crc32c_table[0][byte] = crc;
        crc = byte;
        for (i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? CRC32_REFLECTED : 0);
        crc32_table[byte] = crc;
    }
    for (byte = 0; byte < 256; byte++)
        for (i = 1; i < 8; i++)
            crc32c_table[i][byte] = crc32c_table[i - 1][byte] >> 8
                ^ crc32c_table[0][crc32c_table[i - 1][byte] & 0xff];
    crc32c_update = crc32c_sliced;
    crc32c_accelerate();
}

/* The CRC of bytes whose CRC up to here is `value`. */
static inline uint32_t crc32c_from(uint32_t value, const unsigned char *data, size_t size)
{
    return ~crc32c_update(~value, data, size);
}

static inline uint32_t crc32c_of(const unsigned char *data, size_t size)
{
    return crc32c_from(0, data, size);
}

/* The CRC of `count` bytes and of the `size` behind them, which stand elsewhere. */
static inline uint32_t crc32c_joined(
    const unsigned char *before, size_t count, const unsigned char *data, size_t size)
{
    return ~crc32c_update(crc32c_update(~0u, before, count), data, size);
}

static inline uint32_t crc32_of(const unsigned char *data, size_t size)
{
    uint32_t crc = ~0u;
    while (size--)
        crc = crc >> 8 ^ crc32_table[(crc ^ *data++) & 0xff];
    return ~crc;
}

#endif
