"""Numbers for the keys of records: for anyone who looks at the last record of each key."""

import numpy as np

from logtool.formats import _offset_commits
from logtool.formats.record_batch import Column

NONE = -1
_FIRST_ROOM, _FIRST_BYTES, _FIRST_TABLE = 1024, 64 * 1024, 4096
_GROWTH = 1.5


class KeyTable:
    """Numbers, from 0 on, for the keys of records: a slot for each."""

    def __init__(self) -> None:
        self.count = 0
        self.keys: Column = np.empty(_FIRST_BYTES, np.uint8)
        """The keys of all slots, one behind the other; behind them there is room for more."""
        self.key_end: Column = np.empty(0, np.int64)
        """End of the key of each slot in `keys`; the key begins at the end of the one before."""
        self._table = np.full(_FIRST_TABLE, NONE, np.int32)
        """Finds the slot of a key by its hash; see `_offset_commits.intern_keys`."""
        self._lengthen(_FIRST_ROOM)

    def __len__(self) -> int:
        return self.count

    def key(self, slot: int) -> bytes:
        """Return the bytes of a key."""
        start = int(self.key_end[slot - 1]) if slot else 0
        return self.keys[start : int(self.key_end[slot])].tobytes()

    def intern(self, data: memoryview, position: Column, length: Column) -> Column:
        """Return the slot of each key in `data`, a new one where it was not there."""
        found = np.empty(len(position), np.int64)
        row = 0
        while True:
            row, self.count = _offset_commits.intern_keys(
                data,
                position,
                length,
                row,
                self.keys.data,
                self.key_end,
                self.count,
                self._table,
                found,
            )
            if row == len(found):
                return found
            self._make_room(int(length[row]))

    def _make_room(self, key_size: int) -> None:
        """Make room for one more key of so many bytes, and for many more."""
        count = self.count
        used = int(self.key_end[count - 1]) if count else 0
        if count == len(self.key_end):
            self._lengthen(int(count * _GROWTH))
        if used + key_size > len(self.keys):
            keys = np.empty(int(used * _GROWTH) + key_size, np.uint8)
            keys[:used] = self.keys[:used]
            self.keys = keys
        if 2 * count + 2 > len(self._table):
            self._table = np.full(4 * len(self._table), NONE, np.int32)
            _offset_commits.fill_table(self.keys.data, self.key_end, count, self._table)

    def _lengthen(self, room: int) -> None:
        """Make room for so many slots; a subclass with more columns lengthens them as well."""
        self.key_end = lengthened(self.key_end, self.count, room, 0)


def lengthened(column: Column, count: int, room: int, empty: int) -> Column:
    """Return the first `count` rows of a column with room for more, which hold `empty`."""
    longer = np.full(room, empty, column.dtype)
    longer[:count] = column[:count]
    return longer
