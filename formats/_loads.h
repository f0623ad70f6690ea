/* Big-endian loads, in the form that compilers make one instruction of. `last` is the last byte that is
 * read: a build with checked indexes checks it where its address is taken. */
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

#endif
