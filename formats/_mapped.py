# cython: language_level=3, annotation_typing=False, boundscheck=False, wraparound=False
"""Watching mapped files: bytes that cannot be read become zeros and are told, not a signal.

A mapped file is read without being copied, which is most of what a pass over a warm log costs. But
where the file was cut meanwhile, or its disk fails, a processor raises SIGBUS and the process ends.
``_mapped.h`` catches that for the ranges that are watched here. Plain Python cannot, so without the
compiled module nothing is watched, and nobody maps what is not watched.
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
    """Watch the bytes of a mapping, from the beginning of a page on; return a number for them.

    -1 where nothing can be watched: not compiled, not Linux, or too many ranges at once.
    """
    return watch_bytes(data)


def is_struck(number: int) -> bool:
    """Return whether bytes of a watched range could not be read and were replaced by zeros."""
    return mapped_struck(number)


def unwatch(number: int) -> None:
    """Give up a range, which has to happen before its mapping is closed."""
    mapped_unwatch(number)


def resident(data: memoryview) -> int:
    """Return how many pages of a mapping are in memory; none is read for that.

    -1 where nobody tells: not compiled, or not Linux.
    """
    return resident_pages(data)
