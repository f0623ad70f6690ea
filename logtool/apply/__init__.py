"""Carrying out a plan: the only package that changes files in a data directory.

Everything is written ahead. `Journal.begin` makes an undo directory outside of every log dir,
`stage` saves there what `finish` and `undo` need, `commit` makes it durable, and only then does
`carry_out` change the log dir. A kill before the commit leaves the log dir as it was; after it, the
files on disk show the progress, so that `finish` and `undo` can be run any number of times. The
caller holds `locked` all the time. A `PendingJournal` makes its journal with the first change.

``disk.py`` has every call that changes a file. Changes of one file are put together into a step,
and ``states.py`` finds the progress of a step from the file alone: there is no progress record that
a kill could leave wrong. ``dirfd.py`` reaches every file from a directory that is held open, so
that nothing can change between a check and its use, and ``parsing.py`` checks every line of a
journal.
``output_tree.py`` and ``unfinished.py`` write new directories and files outside of log dirs, which
get their names when they are complete. ``history.py`` lists what was applied, and ``hints.py`` says
how to go on after an error.
Owner and mode are set through the descriptor that wrote a file. A file with more than one name is
copied, never changed in place. ``tests/crash`` kills it, and lets the disk fail, at every call;
``tests/commands/test_hostile.py`` swaps names between any two calls.
"""

from logtool.apply.disk import sync
from logtool.apply.journal import (
    Journal,
    PendingJournal,
    default_undo_dir,
    find_unfinished,
    finish_earlier,
)
from logtool.apply.lock import locked
from logtool.apply.outside import check_place
from logtool.apply.parsing import PlanState

__all__ = [
    "Journal",
    "PendingJournal",
    "PlanState",
    "check_place",
    "default_undo_dir",
    "find_unfinished",
    "finish_earlier",
    "locked",
    "sync",
]
