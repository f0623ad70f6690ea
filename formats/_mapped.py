# cython: language_level=3, annotation_typing=False, boundscheck=False, wraparound=False
"""Watching mapped files: bytes that cannot be read become zeros and are reported, without a signal.

A mapped file is read without a copy, which is the largest part of a pass over a warm log. But if
the file was cut meanwhile, or its disk fails, the processor raises SIGBUS and the process ends.
``_mapped.h`` catches the signal for the watched ranges. Plain Python cannot catch it, so without
the compiled module no range is watched, and callers map only watched ranges.
"""

try:
    import cython
except ModuleNotFoundError:  # needed to compile this module, not to run it
    from logtool.formats._uncompiled import cython

if not cython.compiled:
    from logtool.formats._uncompiled import (
        mapped_struck,
        mapped_unwatch,
        resident_pages,
        watch_bytes,
    )


def watch(data: memoryview) -> int:
    """Watch the bytes of a mapping, from the beginning of a page; return the number of the range.

    Returns -1 if the range cannot be watched: not compiled, not Linux, or too many ranges at once.
    """
    return watch_bytes(data)


def is_struck(number: int) -> bool:
    """Return whether bytes of a watched range could not be read and were replaced by zeros."""
    return mapped_struck(number)


def unwatch(number: int) -> None:
    """Give up a range, which has to happen before its mapping is closed."""
    mapped_unwatch(number)


def resident(data: memoryview) -> int:
    """Return the number of pages of a mapping that are in memory, without reading pages.

    Returns -1 if the number is not known: not compiled, or not Linux.
    """
    return resident_pages(data)
