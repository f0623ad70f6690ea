"""One pass over a ``.log``: tables of sound batches, and the damage between them.

Memory is flat: the file goes by in a buffer of a few MiB. Behind damage the scan resynchronises at
the next batch that is provably sound, as a broker never does, so that a caller can say how
much would be lost.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from logtool.errors import FormatError
from logtool.formats import (
    _kernels,
    legacy_batch,
    record_batch,
    wording,
)
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import (
    CONTROL,
    HEADER_SIZE,
    MAGIC,
    BatchTable,
    Column,
)
from logtool.log.chunk import (
    LARGEST_BUFFERED_BATCH,
    MOST_ROWS,
    Chunk,
    Inspect,
    PlainTotals,
    PlainWalk,
    Source,
)
from logtool.log.control_rows import fill_control
from logtool.log.damage import Damage, DamageReason, reason_of
from logtool.log.order import BatchOrder
from logtool.log.walk.candidates import OffsetBounds
from logtool.log.walk.forms import Form
from logtool.log.walk.resync import WIDEST_WINDOW
from logtool.log.walk.window import Window

BUFFER_SIZE = 2 * 1024 * 1024
"""Bytes that are read at once: few enough for a processor's own cache."""
_FEW = 8
"""Batches that fill less than this part of a chunk are copied out of it."""
_LONGEST_CHUNK = 16 * 1024 * 1024
"""Bytes of a chunk without payload, about: few enough to keep to a rate and to a time limit."""
SEARCH_BUDGET = 256 * 1024 * 1024
"""Bytes that may be hashed in vain in one scan, so that look-alikes cost bounded time. Once it is
spent, damage that does not end where its size field says reaches to the end of the file."""

_LARGEST_OFFSET = 2**63 - 1
_NOTHING = memoryview(b"")
_COLUMNS = [field.name for field in fields(BatchTable)]
_ATTRIBUTES, _MAGIC, _TYPE = map(_COLUMNS.index, ("attributes", "magic", "batch_type"))
_OFFSETS_AND_EPOCH = slice(_COLUMNS.index("base_offset"), _COLUMNS.index("leader_epoch") + 1)
_NEAR_EDGE = 64
"""Batches at the end of a chunk among which it ends at one that is in order."""


class Scanner:
    """One walk over the bytes of a log; `logtool.log.batches.read_batches` says what it takes."""

    def __init__(
        self,
        source: Source,
        base_offset: int,
        form: Form,
        payload: bool,
        end: int,
        unpack_limit: int,
        inspect: Inspect | None,
        plain_walk: PlainWalk | None,
        last_offset: int | None,
    ) -> None:
        self._form = form
        self._unpack_limit = unpack_limit
        self._payload = payload
        self._base_offset = base_offset
        # Room is reserved by Redpanda alone, whose segments may reach as far as offsets go.
        reach = _LARGEST_OFFSET if self._form.reserves else MAX_RELATIVE_OFFSET
        self._highest_offset = min(base_offset + reach, _LARGEST_OFFSET)
        self._last_offset = base_offset - 1 if last_offset is None else last_offset
        self._order = BatchOrder(base_offset, self._last_offset)
        # Only kernels read what is mapped; who inspects batches wants Kafka's headers.
        maps = not payload and not (inspect and self._form.reserves)
        stretch = getattr(source, "stretch", None)
        at_once = min(stretch or BUFFER_SIZE, BUFFER_SIZE)
        self._longest_chunk = at_once // 2 if stretch else _LONGEST_CHUNK
        self._window = Window(source, end, at_once, maps=maps)
        self._search = self._form.search(self._window, SEARCH_BUDGET, at_once)
        self._rows = self._fresh_rows()
        self._count = 0
        self._control_errors: list[tuple[int, FormatError]] = []
        self._control_times: dict[int, int] = {}
        self._inspect = inspect
        self._inspected: list[Any] = []
        self._suspects = np.empty(MOST_ROWS if inspect else 0, np.uint8)
        self._facts = np.empty(_kernels.FACTS, np.int64)
        self._is_plain = True
        """True if all batches of the chunk so far are plain; then the facts are theirs."""
        self._plain_walk = plain_walk
        self._at_edges = False
        """True if the chunk so far has rows of batches at edges alone."""
        self._goes_on = True
        """True if the next chunk may have such rows alone: the last one had, or could have had."""

    def run(self, position: int) -> Iterator[Chunk]:
        """Yield the chunks from byte `position` on, where a batch is expected."""
        try:
            yield from self._chunks(position)
        finally:
            self._window.unmap()

    def _chunks(self, position: int) -> Iterator[Chunk]:
        stub = self._form.longest_stub
        need = stub + 1
        while position < self._window.end:
            if self._window.map_from(position, need):
                walked = self._walk_mapped(position)
                if walked is None:
                    continue
                stop, why, seen = walked
                data = _NOTHING
            else:
                data = self._window.ahead(position, need)
                stop, why = self._walk(data, position)
                seen = len(data)
            need = stub + 1
            if self._count and (self._payload or why != _kernels.MORE or self._is_long()):
                yield self._chunk(data, position)
            position += stop
            unseen = seen - stop <= stub < self._window.end - position
            if why == _kernels.FULL or (why == _kernels.MORE and unseen):
                continue  # the walk saw too little of the next one to judge it
            size = self._form.entry_size(self._window.read(position, self._form.head))
            left = self._window.end - position
            if left <= 0:
                break
            if why != _kernels.MORE:
                damage = self._damage(position, reason_of(why))
            elif size is None or size > left:
                if self._count:  # what is behind damage has to go on from there
                    yield self._chunk(data[:0], position)
                damage = self._damage(position, DamageReason.INCOMPLETE)
            elif size <= LARGEST_BUFFERED_BATCH:
                need = size
                continue
            else:
                if self._count:
                    yield self._chunk(data[:0], position)
                if self._search.holds(position, size):
                    head = self._window.read(position, HEADER_SIZE)
                    table = self._form.header(head)
                    table.position[0] = position
                    chunk = Chunk(
                        table=table,
                        data=head,
                        data_position=position,
                        damage=None,
                        control_errors=[],
                        misplaced=self._order.misplaced(table, None),
                    )
                    chunk.inspected.extend(self._inspect(chunk) if self._inspect else ())
                    if self._payload:
                        self._window.lend()
                    yield chunk
                    position += size
                    continue
                self._search.budget -= size
                damage = self._damage(position, DamageReason.CRC)
            if self._count:
                yield self._chunk(data[:0], position)
            if (
                damage.reason is DamageReason.ZEROS
                and self._form.reserves
                and not damage.resynchronised
            ):
                return
            if damage.length:
                yield Chunk(
                    table=record_batch.empty_table(),
                    data=data[:0],
                    data_position=position,
                    damage=damage,
                    control_errors=[],
                )
            position += damage.length
        if self._count:
            yield self._chunk(_NOTHING, position)

    def _walk(self, data: memoryview, position: int) -> tuple[int, int]:
        """Add the sound batches of `data` to those of the chunk; returns where and why it ended."""
        first = self._count
        if self._plain_walk and self._walks_edges():
            count, stop, why = self._plain_walk.walk(data, position, self._rows, first)
            self._rows[-self._form.unwritten :, first : first + count] = -1
            self._count += count
            self._at_edges |= count > 0
            if why == _kernels.NOT_PLAIN:
                self._goes_on, why = False, _kernels.FULL  # it goes on there, by the other walk
            return stop, why
        span = data, 0, len(data), position, self._rows, first
        suspects = None
        if self._inspect and self._form.walk_records:
            suspects = self._suspects
            count, stop, why = self._form.walk_records(*span, suspects)
        else:
            count, stop, why = self._form.walk(*span)
        if count and why == _kernels.FULL:
            count = self._in_order(first, count)
            stop = int(self._rows[:2, first + count - 1].sum()) - position
        self._count += count
        self._rows[-self._form.unwritten :, first : self._count] = -1
        if count:
            self._judge(first)
            if not self._is_plain:
                self._look_inside(first, data, position)
        if count and self._inspect:
            table = BatchTable(*self._rows[:, first : self._count])
            suspects = None if suspects is None else suspects[first : self._count]
            chunk = Chunk(table, data, position, None, [], suspects=suspects)
            self._inspected += self._inspect(chunk)
        return stop, why

    def _in_order(self, first: int, count: int) -> int:
        """Return how many of the rows from `first` on make a full chunk: one that ends in order.

        Only the next batch shows whether one that leaves out offsets, or has a higher epoch, stands
        where it should. So such a batch is left to the next chunk, where few are of that kind.
        """
        begin = max(first, first + count - _NEAR_EDGE)
        base, last, epoch = self._rows[_OFFSETS_AND_EPOCH, begin : first + count]
        rows = np.flatnonzero((base[1:] == last[:-1] + 1) & (epoch[1:] == epoch[:-1]))
        return begin - first + int(rows[-1]) + 2 if len(rows) else count

    def _walks_edges(self) -> bool:
        """Return whether the next batches may have rows at edges alone."""
        return self._at_edges or (self._goes_on and not self._count)

    def _is_long(self) -> bool:
        """Return whether a chunk without payload is long enough."""
        begin, end = self._rows[0, 0], self._rows[0, self._count - 1]
        return bool(end - begin >= self._longest_chunk)

    def _judge(self, first: int) -> None:
        """Note whether the batches from row `first` on are plain, if those before them are."""
        types = self._rows[_TYPE, first : self._count]
        self._is_plain = (
            (self._is_plain or not first)
            and self._form.is_plain(types)
            and _kernels.plain_facts(self._rows, first, self._count, self._facts)
        )

    def _look_inside(self, first: int, data: memoryview, position: int) -> None:
        """Complete the rows from `first` on by what stands in the batches themselves."""
        rows = self._rows[:, first : self._count]
        if int(rows[_MAGIC].min()) < MAGIC:
            legacy_batch.count(BatchTable(*rows), data, position, self._unpack_limit)
        if int(np.bitwise_or.reduce(rows[_ATTRIBUTES])) & CONTROL:
            errors = fill_control(
                BatchTable(*rows), data, position, self._form.batch, self._control_times
            )
            self._control_errors += [(first + row, error) for row, error in errors]

    def _walk_mapped(self, position: int) -> tuple[int, int, int] | None:
        """Walk over what is mapped from `position` on; returns where, why and before what it ended.

        It sees all that is mapped, and never ends at damage, which only a copy shows. None where
        the file has changed or cannot be read: nothing was added, and from now on it is copied.
        """
        first, errors, inspected = self._count, len(self._control_errors), len(self._inspected)
        edges = self._plain_walk if self._walks_edges() else None
        data = self._window.mapped(position)
        stop, why = self._walk(data, position)
        seen = len(data)
        del data  # not by `with`: an interrupt inside could not release what it holds itself
        if self._window.is_whole():
            if position + stop >= self._window.end:
                self._window.unmap()
            if why not in (_kernels.FULL, _kernels.MORE):
                # A broker may be writing there, so one copy must show what is wrong and why.
                self._window.copy_at(position + stop)
                why = _kernels.FULL
            return stop, why, seen
        self._window.map_no_more()
        self._count = first
        if edges:
            edges.forget()
            self._at_edges = first > 0
        else:
            self._is_plain = True
            self._judge(0)
        del self._control_errors[errors:], self._inspected[inspected:]
        self._control_times = {at: ms for at, ms in self._control_times.items() if at < position}
        return None

    def _chunk(self, data: memoryview, base: int) -> Chunk:
        """Return the batches since the last chunk as a chunk, and begin the next one."""
        rows = self._rows[:, : self._count]
        few = self._count <= self._rows.shape[1] // _FEW
        if few:  # a caller that keeps them would keep all the room that they leave
            rows = rows.copy()
        table = BatchTable(*rows)
        errors, inspected = self._control_errors, self._inspected
        times, self._control_times = self._control_times, {}
        at_edges, self._at_edges = self._at_edges, False
        if at_edges and self._plain_walk:
            plain: PlainTotals | None = self._plain_walk.facts()
        else:
            plain = PlainTotals(*[*self._facts.tolist(), len(table)]) if self._is_plain else None
            offsets = int(table.last_offset[-1]) - int(table.base_offset[0]) + 1
            self._goes_on = plain is not None and plain.records == offsets
        self._rows, self._count = self._rows if few else self._fresh_rows(), 0
        self._control_errors, self._inspected = [], []
        if self._payload:
            self._window.lend()
        last = table.last_offset
        if self._base_offset <= last[-1] <= self._highest_offset:
            self._last_offset = int(last[-1])
        else:
            possible = last[(last >= self._base_offset) & (last <= self._highest_offset)]
            if len(possible):
                self._last_offset = int(possible[-1])
        return Chunk(
            table=table,
            data=data if self._payload else data[:0],
            data_position=base,
            damage=None,
            control_errors=errors,
            control_times=times,
            plain=plain,
            inspected=inspected,
            at_edges=at_edges,
            misplaced=self._order.misplaced(table, plain),
        )

    def _fresh_rows(self) -> Column:
        """Return room for the batches of a chunk: no more than the file can hold."""
        most = self._window.end // self._form.least_size + 1
        return np.empty((_kernels.BATCH_COLUMNS, min(most, MOST_ROWS)), np.int64)

    def _damage(self, at: int, reason: DamageReason) -> Damage:
        """Describe the damage that begins at `at` and find where it ends."""
        window = self._window
        head = bytes(window.read(at, HEADER_SIZE))
        if len(head) <= self._form.longest_stub:
            reason = DamageReason.INCOMPLETE
        size = self._form.entry_size(head)
        # As with preallocation: nothing is looked for in what has no byte but zero.
        zeros = not any(head[: self._form.zeros])
        if zeros and window.end - at >= self._form.zeros and self._zeros(at, window.end - at):
            return self._zero_bytes(at, window.end - at, resynchronised=False)
        message = self._form.describe(head, reason, window.end - at)
        behind = at + size if size and reason is not DamageReason.INCOMPLETE else window.end + 1
        offsets = OffsetBounds(self._last_offset, self._highest_offset)
        framed = behind <= window.end and self._search.frames(at, behind, offsets)
        torn = reason is DamageReason.INCOMPLETE
        next_batch = self._search.next_batch(at, behind if framed else None, offsets, torn=torn)
        if framed and size and next_batch is None:
            if head[16] != MAGIC and self._search.holds(at, size, magic=MAGIC):
                message += "; the CRC is that of a sound magic 2 batch"
            return Damage(
                position=at,
                length=size,
                reason=reason,
                message=message,
                resynchronised=behind < window.end,
                framed=True,
            )
        length = (window.end if next_batch is None else next_batch) - at
        is_run = next_batch is not None and zeros and length >= self._form.zeros
        if is_run and self._zeros(at, length):
            return self._zero_bytes(at, length, resynchronised=True)
        if next_batch is not None and reason is DamageReason.INCOMPLETE:
            reason = DamageReason.SIZE
        return Damage(
            position=at,
            length=length,
            reason=reason,
            message=message,
            resynchronised=next_batch is not None,
        )

    def _zero_bytes(self, at: int, length: int, *, resynchronised: bool) -> Damage:
        return Damage(
            position=at,
            length=length,
            reason=DamageReason.ZEROS,
            message=f"{wording.count(length, 'zero byte')} where a batch should begin",
            resynchronised=resynchronised,
        )

    def _zeros(self, position: int, length: int) -> bool:
        """Return whether all bytes are zero, as far as the file still has them."""
        end = position + length
        while position < end:
            window = self._window.read(position, min(WIDEST_WINDOW, end - position))
            if np.frombuffer(window, np.uint8).any():
                return False
            if not len(window):
                break
            position += len(window)
        return True
