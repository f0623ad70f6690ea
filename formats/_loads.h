/* Big-endian loads, in the form that compilers make one instruction of. `last` is the last byte that is
 * read: a build with checked indexes checks it where its address is taken. Of Redpanda's headers, which are
 * little-endian, there are loads too, and what makes them Kafka's where they stand. */
#ifndef LOGTOOL_LOADS_H
#define LOGTOOL_LOADS_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* gcc makes the same instruction of the form below, but only after it has decided, by the bytes that it counts,
 * that a function with a dozen of them is too large to be inlined. */
static inline uint16_t load16(const unsigned char *at, const unsigned char *last)
{
    uint16_t value;
    (void)last;
    memcpy(&value, at, 2);
    return __builtin_bswap16(value);
}

static inline uint32_t load32(const unsigned char *at, const unsigned char *last)
{
    uint32_t value;
    (void)last;
    memcpy(&value, at, 4);
    return __builtin_bswap32(value);
}

static inline uint64_t load64(const unsigned char *at, const unsigned char *last)
{
    uint64_t value;
    (void)last;
    memcpy(&value, at, 8);
    return __builtin_bswap64(value);
}
#else
static inline uint16_t load16(const unsigned char *at, const unsigned char *last)
{
    (void)last;
    return (uint16_t)((uint32_t)at[0] << 8 | (uint32_t)at[1]);
}

static inline uint32_t load32(const unsigned char *at, const unsigned char *last)
{
    (void)last;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3];
}

static inline uint64_t load64(const unsigned char *at, const unsigned char *last)
{
    (void)last;
    return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 | (uint64_t)at[2] << 40
        | (uint64_t)at[3] << 32 | (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16
        | (uint64_t)at[6] << 8 | (uint64_t)at[7];
}
#endif

static inline uint32_t load32le(const unsigned char *at, const unsigned char *last)
{
    (void)last;
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | (uint32_t)at[0];
}

static inline uint64_t load64le(const unsigned char *at, const unsigned char *last)
{
    return (uint64_t)load32le(at + 4, last) << 32 | load32le(at, last);
}

static inline void store32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
}

static inline void store64le(unsigned char *at, uint64_t value)
{
    int byte;
    for (byte = 0; byte < 8; byte++)
        at[byte] = (unsigned char)(value >> 8 * byte);
}

/* Writes the 40 bytes that Kafka's CRC begins with for a header of Redpanda, its fields with their bytes
 * reversed: as words, for a CRC that reads words out of narrower stores waits for each. */
static inline void store_covered(const unsigned char *at, const unsigned char *last, unsigned char *out)
{
    uint64_t attributes = load16(at + 21, at + 22), delta = load32(at + 23, at + 26);
    uint64_t first = load64(at + 27, at + 34), newest = load64(at + 35, at + 42);
    uint64_t producer = load64(at + 43, at + 50), epoch = load16(at + 51, at + 52);
    uint64_t sequence = load32(at + 53, at + 56), count = load32(at + 57, at + 60);
    (void)last;
    store64le(out, attributes | delta << 16 | first << 48);
    store64le(out + 8, first >> 16 | newest << 48);
    store64le(out + 16, newest >> 16 | producer << 48);
    store64le(out + 24, producer >> 16 | epoch << 48);
    store64le(out + 32, sequence | count << 32);
}

/* Writes Kafka's header over one of Redpanda of the same batch. */
static inline void store_kafka(unsigned char *at, const unsigned char *last, uint32_t epoch)
{
    uint64_t base_offset = load64le(at + 8, at + 15);
    uint32_t size = load32le(at + 4, at + 7), crc = load32le(at + 17, at + 20);
    store_covered(at, last, at + 21);  /* which has read all before it writes */
    store32(at, (uint32_t)(base_offset >> 32));
    store32(at + 4, (uint32_t)base_offset);
    store32(at + 8, size - 12);
    store32(at + 12, epoch);
    at[16] = 2;
    store32(at + 17, crc);
}

#endif
