"""Commits of offsets in columns, and a slot for each key.

`_offset_commits` has the loops, which are compiled where that can be; this is what others take from
it. `COMPILED` says whether they are.
"""

from logtool.formats._offset_commits import (
    COMMIT_COLUMNS,
    COMMIT_OTHER,
    COMMIT_TOMBSTONE,
    COMMIT_UNSURE,
    COMMIT_VALUE,
    COMPILED,
    decode_commits,
    fill_table,
    intern_keys,
)

__all__ = [
    "COMMIT_COLUMNS",
    "COMMIT_OTHER",
    "COMMIT_TOMBSTONE",
    "COMMIT_UNSURE",
    "COMMIT_VALUE",
    "COMPILED",
    "decode_commits",
    "fill_table",
    "intern_keys",
]
