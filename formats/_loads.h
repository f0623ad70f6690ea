/* Big-endian loads, in the form that compilers make one instruction of. `last` is the last byte that is
 * read: a build with checked indexes checks it where its address is taken. Of Redpanda's headers, which are
 * little-endian, there are loads too, and what makes them Kafka's where they stand. */
#ifndef LOGTOOL_LOADS_H
#define LOGTOOL_LOADS_H

#include <stdint.h>

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

static inline void turn16(unsigned char *at)
{
    unsigned char first = at[0];
    at[0] = at[1];
    at[1] = first;
}

static inline void turn32(unsigned char *at)
{
    store32(at, load32le(at, at + 3));
}

static inline void turn64(unsigned char *at)
{
    uint32_t low = load32le(at, at + 3), high = load32le(at + 4, at + 7);
    store32(at, high);
    store32(at + 4, low);
}

/* Reverses the bytes of each field from the CRC on; twice leaves the header as it was. */
static inline void turn_fields(unsigned char *at, const unsigned char *last)
{
    (void)last;
    turn32(at + 17);
    turn16(at + 21);
    turn32(at + 23);
    turn64(at + 27);
    turn64(at + 35);
    turn64(at + 43);
    turn16(at + 51);
    turn32(at + 53);
    turn32(at + 57);
}

/* Writes what stands before the CRC in a header of Kafka. */
static inline void store_front(unsigned char *at, const unsigned char *last, uint64_t base_offset,
                               uint32_t length, uint32_t epoch)
{
    (void)last;
    store32(at, (uint32_t)(base_offset >> 32));
    store32(at + 4, (uint32_t)base_offset);
    store32(at + 8, length);
    store32(at + 12, epoch);
    at[16] = 2;
}

#endif
