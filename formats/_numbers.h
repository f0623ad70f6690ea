/* Numbers and times as text, eight digits in one go: a division for each digit took longer than all else
 * of a line.
 *
 * What is written may reach a few bytes beyond what counts: `last` is the last byte that may be written. A
 * build with checked indexes checks it where its address is taken.
 */
#ifndef LOGTOOL_NUMBERS_H
#define LOGTOOL_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#define LOGTOOL_ZEROS UINT64_C(0x3030303030303030)

/* The decimal digits of a number below 10^8, the first in the lowest byte. */
static inline uint64_t eight_digits(uint32_t value)
{
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t high = fours * 10486 >> 20 & UINT64_C(0x7f0000007f);
    uint64_t twos = high | (fours - 100 * high) << 16;
    uint64_t tens = twos * 103 >> 10 & UINT64_C(0xf000f000f000f);
    return tens | (twos - 10 * tens) << 8;
}

static inline void store_eight(unsigned char *to, uint64_t bytes)
{
    int place;
    for (place = 0; place < 8; place++)
        to[place] = (unsigned char)(bytes >> 8 * place);
}

/* Writes a number below 10^8 without zeros before it; returns its digits. */
static inline size_t write_few(unsigned char *to, uint32_t value)
{
    uint64_t digits = eight_digits(value);
    int before = 0;
    while (before < 7 && !(digits >> 8 * before & 0xff))
        before++;
    store_eight(to, (digits | LOGTOOL_ZEROS) >> 8 * before);
    return (size_t)(8 - before);
}

/* Writes a number, 21 bytes at most; returns how many of them count. */
static inline size_t write_decimal(unsigned char *to, const unsigned char *last, int64_t value)
{
    const uint64_t most = 100000000;
    uint64_t raw = value < 0 ? 0 - (uint64_t)value : (uint64_t)value, high;
    size_t at = 0;
    (void)last;
    if (value < 0)
        to[at++] = '-';
    if (raw < most)
        return at + write_few(to + at, (uint32_t)raw);
    high = raw / most;
    if (high < most) {
        at += write_few(to + at, (uint32_t)high);
    } else {
        at += write_few(to + at, (uint32_t)(high / most));
        store_eight(to + at, eight_digits((uint32_t)(high % most)) | LOGTOOL_ZEROS);
        at += 8;
    }
    store_eight(to + at, eight_digits((uint32_t)(raw % most)) | LOGTOOL_ZEROS);
    return at + 8;
}

/* Writes milliseconds since 1970, up to the year 9999, as RFC 3339 has them: 24 bytes, and none beyond. */
static inline void write_time(unsigned char *to, const unsigned char *last, int64_t milliseconds)
{
    /* Years begin in March here, so that the leap day is the last: days since 0000-03-01, of which 146097
     * are 400 years. */
    uint32_t day = (uint32_t)((uint64_t)milliseconds / 86400000) + 719468;
    uint32_t rest = (uint32_t)((uint64_t)milliseconds % 86400000);
    uint32_t era = day / 146097, of_era = day % 146097;
    uint32_t of_year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint32_t of_march = of_era - (365 * of_year + of_year / 4 - of_year / 100);
    uint32_t month = (5 * of_march + 2) / 153, year = era * 400 + of_year + (month > 9);
    uint32_t date = of_march - (153 * month + 2) / 5 + 1;
    uint32_t seconds = rest / 1000, minutes = seconds / 60;
    uint64_t digits;
    (void)last;
    month = month > 9 ? month - 9 : month + 3;
    /* Of each group of eight digits some stand apart, or belong to the next. */
    digits = eight_digits(year % 10000 * 10000 + month * 100 + date) | LOGTOOL_ZEROS;
    store_eight(to, digits);
    to[4] = to[7] = '-';
    to[5] = (unsigned char)(digits >> 32);
    to[6] = (unsigned char)(digits >> 40);
    to[8] = (unsigned char)(digits >> 48);
    to[9] = (unsigned char)(digits >> 56);
    to[10] = 'T';
    digits = eight_digits(minutes / 60 * 1000000 + minutes % 60 * 10000 + seconds % 60 * 100) | LOGTOOL_ZEROS;
    to[11] = (unsigned char)digits;
    to[12] = (unsigned char)(digits >> 8);
    to[13] = to[16] = ':';
    to[14] = (unsigned char)(digits >> 16);
    to[15] = (unsigned char)(digits >> 24);
    to[17] = (unsigned char)(digits >> 32);
    to[18] = (unsigned char)(digits >> 40);
    to[19] = '.';
    rest %= 1000;
    to[20] = (unsigned char)('0' + rest / 100);
    to[21] = (unsigned char)('0' + rest / 10 % 10);
    to[22] = (unsigned char)('0' + rest % 10);
    to[23] = 'Z';
}

#endif
