"""Readers of the copies of a partition: block by block next to each other, or each as a whole."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from typing import TypeVar

from logtool.copies.batches import CopyBatches, CopyPart
from logtool.copies.copy import CopyReading, LateDamageError, WholeCopy, reading_of
from logtool.copies.segments import parts_of, try_segment, unreadable_segment
from logtool.copies.sources import ListedCopy, place_of
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind
from logtool.running.ahead import OneAhead
from logtool.running.budget import WORTH_A_POOL
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError, Pace

Result = TypeVar("Result")
Blocks = Sequence[Iterable[CopyBatches]]


def side_by_side(
    group: Sequence[ListedCopy],
    run: Run,
    work: Callable[[Sequence[ListedCopy], Sequence[CopyReading], Blocks], Result],
) -> Generator[UnreadableError, None, Result | None]:
    """Return the result of `work`, which gets the copies and reads their blocks to their ends.

    Errors of reading are yielded, and a copy that cannot be read at all is left out: if that shows
    while `work` runs, `work` is called again without the copy. None if no copy is left.
    OutOfTimeError once the time of the run is over. Each large copy is read in its own thread, up
    to the number of threads of the run.
    """
    warned: set[int] = set()
    while True:
        opened = []
        for listed in group:
            try:
                opened.append(_OpenCopy(listed, run.budget.pace, warned=id(listed) in warned))
            except UnreadableError as error:
                yield error
        group = [one.listed for one in opened]
        if not opened:
            return None
        try:
            result = _worked(opened, run, work)
        except _BrokenCopyError as broken:
            yield broken.error
            group = [listed for listed in group if listed is not broken.listed]
        except _LateCopyError as late:
            warned.add(id(late.listed))
        else:
            for one in opened:
                yield from one.errors
            return result
        run.advance(-sum(one.reported for one in opened))  # all is read again


def _worked(
    opened: Sequence["_OpenCopy"],
    run: Run,
    work: Callable[[Sequence[ListedCopy], Sequence[CopyReading], Blocks], Result],
) -> Result:
    threads = run.budget.jobs if sum(one.size for one in opened) >= WORTH_A_POOL else 1
    with ExitStack() as stack:
        blocks = []
        for number, one in enumerate(opened):
            reads_ahead = number < threads and threads > 1
            own = stack.enter_context(_ahead(one)) if reads_ahead else iter(one)
            blocks.append(_with_progress(one, own, run))
        try:
            return work([one.listed for one in opened], [one.reading for one in opened], blocks)
        except (_BrokenCopyError, _LateCopyError):
            raise
        except BaseException:
            run.budget.pace.end()  # no caller waits for a thread that keeps to a rate
            raise


class _BrokenCopyError(Exception):
    """A copy that cannot be read to its end, and is left out of the result."""

    def __init__(self, listed: ListedCopy, error: UnreadableError) -> None:
        super().__init__(listed, error)
        self.listed, self.error = listed, error


class _LateCopyError(Exception):
    """A copy whose damage must be known completely before it is compared."""

    def __init__(self, listed: ListedCopy) -> None:
        super().__init__(listed)
        self.listed = listed


class _OpenCopy:
    """A copy to be read in any thread; iterate over it for its blocks."""

    def __init__(self, listed: ListedCopy, pace: Pace, *, warned: bool) -> None:
        """Open a copy; with `warned` it is read once here, for its damage."""
        self.listed = listed
        self.errors: list[UnreadableError] = []
        """Errors of segments that cannot be read to their ends."""
        self.size = sum(segment.log.size for segment in listed.segments)
        self.done = 0
        """Number of bytes that were read."""
        self.reported = 0
        """Number of read bytes that the progress of the run already counts."""
        self._pace = pace
        if listed.saved:
            saved, number = listed.saved
            self.reading = saved.reading(number, listed.key, listed.node)
        else:
            place, start = place_of(listed), listed.rows.get(FileKind.LOG_START_CHECKPOINT, 0)
            damages = [one for part in self._parts() for one in part.damages] if warned else None
            self.errors, self.done = [], 0
            self.reading = reading_of(place, listed.segments, start, self._parts(), damages)

    def __iter__(self) -> Iterator[CopyBatches]:
        try:
            yield from self.reading
        except UnreadableError as error:
            raise _BrokenCopyError(self.listed, error) from error
        except LateDamageError as error:
            raise _LateCopyError(self.listed) from error

    def _parts(self) -> Iterator[CopyPart]:
        for segment in self.listed.segments:
            self._pace.spend(0)
            try:
                yield from parts_of(segment, self._on_bytes)
            except UnreadableError as error:
                self.errors.append(error)

    def _on_bytes(self, count: int) -> None:
        self.done += count
        self._pace.spend(count)


def _with_progress(
    one: _OpenCopy, blocks: Iterable[CopyBatches], run: Run
) -> Iterator[CopyBatches]:
    """Yield blocks, and add their bytes to the progress of the run."""

    def report() -> None:
        now = one.done
        run.path = one.listed.path
        run.advance(now - one.reported)
        one.reported = now

    for block in blocks:
        report()
        yield block
    report()


@contextmanager
def _ahead(one: _OpenCopy) -> Iterator[Iterator[CopyBatches]]:
    """Provide the blocks of a copy, while a thread reads the next block ahead."""
    next_block: OneAhead[CopyBatches | None] = OneAhead()
    blocks = iter(one)

    def taken() -> Iterator[CopyBatches]:
        while (block := next_block.end()) is not None:
            next_block.begin(partial(next, blocks, None))
            yield block

    next_block.begin(partial(next, blocks, None))  # at once: the other copies are read meanwhile
    try:
        yield taken()
    finally:
        next_block.close()


def read_groups(
    groups: Sequence[Sequence[ListedCopy]], run: Run
) -> Iterator[list[WholeCopy] | UnreadableError]:
    """Yield the copies of each group, and before each group the errors of reading it.

    A copy that cannot be read is left out of its group. OutOfTimeError once the time of the run is
    over.
    """
    with run.workers(try_segment) as workers:
        for group in groups:
            copies = []
            segments = [segment for one in group for segment in one.segments]
            results = workers.run(segments, lambda _: 0)
            for one in group:
                run.path = one.path
                try:
                    copies.append((yield from _copy(one, islice(results, len(one.segments)))))
                except UnreadableError as error:
                    yield error
            yield copies


def _copy(
    listed: ListedCopy, results: Iterator[CopyPart | UnreadableError | OutOfTimeError]
) -> Generator[UnreadableError, None, WholeCopy]:
    if listed.saved:
        saved, number = listed.saved
        return saved.reading(number, listed.key, listed.node).whole()
    parts = []
    for segment, result in zip(listed.segments, results, strict=True):
        if isinstance(result, OutOfTimeError):
            raise result
        if isinstance(result, UnreadableError):
            yield result
            result = unreadable_segment(segment, result.reason)
        parts.append(result)
    start = listed.rows.get(FileKind.LOG_START_CHECKPOINT, 0)
    damages = [one for part in parts for one in part.damages]
    return reading_of(place_of(listed), listed.segments, start, parts, damages).whole()
