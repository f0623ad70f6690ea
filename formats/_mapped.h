/* Reading mapped files without dying of them.
 *
 * A page of a mapped file that the file no longer has, because a broker cut it, or that a disk cannot
 * read is no error but a signal, SIGBUS. For ranges that are watched the handler puts zeros in the
 * place of what is left of the range and notes it; whoever reads goes on with zeros, asks afterwards,
 * and reads the file in another way. Anything else goes to the handler that was there before.
 */
#ifndef LOGTOOL_MAPPED_H
#define LOGTOOL_MAPPED_H

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__) && (defined(__GNUC__) || defined(__clang__))
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* Ranges that are watched at once, at most: two or three for each thread that reads. */
#define MAPPED_RANGES 256

static struct {
    uintptr_t start, end;  /* end is 0 where the place is free, 1 while it is being taken */
    int struck;
} mapped_ranges[MAPPED_RANGES];
static uintptr_t mapped_page;
static struct sigaction mapped_before;

static void mapped_on_bus(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr, page = at & ~(mapped_page - 1);
    int i;
    (void)context;
    for (i = 0; i < MAPPED_RANGES && info->si_code > 0; i++) {
        uintptr_t end = __atomic_load_n(&mapped_ranges[i].end, __ATOMIC_ACQUIRE);
        if (end <= 1 || at < mapped_ranges[i].start || at >= end)
            continue;
        __atomic_store_n(&mapped_ranges[i].struck, 1, __ATOMIC_RELEASE);
        if (mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
            != MAP_FAILED)
            return;
    }
    sigaction(number, &mapped_before, NULL);
    if (info->si_code <= 0)
        raise(number);  /* it was sent; what a processor raises comes again by itself */
}

/* Watches `size` bytes from `start`, the beginning of a page, on; returns a number for them, or -1. */
static int mapped_watch(const unsigned char *start, size_t size)
{
    struct sigaction now, ours;
    int i;
    mapped_page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (sigaction(SIGBUS, NULL, &now))
        return -1;
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != mapped_on_bus) {
        ours.sa_sigaction = mapped_on_bus;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
        mapped_before = now;
        if (sigaction(SIGBUS, &ours, NULL))
            return -1;
    }
    for (i = 0; i < MAPPED_RANGES; i++) {
        uintptr_t unused = 0;
        if (!__atomic_compare_exchange_n(&mapped_ranges[i].end, &unused, 1, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        mapped_ranges[i].start = (uintptr_t)start;
        mapped_ranges[i].struck = 0;
        __atomic_store_n(&mapped_ranges[i].end, (uintptr_t)start + size, __ATOMIC_RELEASE);
        return i;
    }
    return -1;
}

/* Returns whether bytes of a watched range were replaced by zeros. */
static int mapped_struck(int range)
{
    return __atomic_load_n(&mapped_ranges[range].struck, __ATOMIC_ACQUIRE);
}

static void mapped_unwatch(int range)
{
    __atomic_store_n(&mapped_ranges[range].end, 0, __ATOMIC_RELEASE);
}

/* Returns how many of the pages are in memory, which reads none; -1 where the system does not tell. */
static long mapped_resident(const unsigned char *start, size_t size)
{
    unsigned char pages[4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), at, i;
    long found = 0;
    for (at = 0; at < size; at += sizeof pages * page) {
        size_t left = size - at, count = (left + page - 1) / page;
        if (count > sizeof pages)
            count = sizeof pages, left = sizeof pages * page;
        if (mincore((void *)(start + at), left, pages))
            return -1;
        for (i = 0; i < count; i++)
            found += pages[i] & 1;
    }
    return found;
}

#else
static int mapped_watch(const unsigned char *start, size_t size)
{
    (void)start;
    (void)size;
    return -1;
}

static int mapped_struck(int range)
{
    return range >= 0;
}

static void mapped_unwatch(int range)
{
    (void)range;
}

static long mapped_resident(const unsigned char *start, size_t size)
{
    (void)start;
    (void)size;
    return -1;
}
#endif

#endif
