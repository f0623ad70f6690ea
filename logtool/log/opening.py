"""Log dirs and partition dirs are listed here, and it is decided which flavour each has.

This is the only module that knows all flavours. One that is given, as by ``--flavour``, overrules
what the names of files and directories say.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from logtool.disk import files
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.log import redpanda_dir
from logtool.log.automq import AUTOMQ
from logtool.log.dir import LogDir, Partition
from logtool.log.flavour import Flavour, FlavourName
from logtool.log.kafka import KAFKA, holds_log
from logtool.log.redpanda import REDPANDA

FLAVOURS: dict[FlavourName, Flavour] = {
    flavour.name: flavour for flavour in (KAFKA, REDPANDA, AUTOMQ)
}
MOST_LOOKS = 5
"""Attempts to read a partition while a broker deletes files of it."""
_LISTINGS = 32
"""Directories behind URLs that are listed at once."""


def flavour_at(path: Path, flavour: Flavour | None = None) -> Flavour:
    """Return the flavour of a directory or of a file, by the names alone; UnreadableError.

    `flavour` overrules the names; NothingMatchedError for a directory that holds nothing of it.
    """
    if files.leads_to_dir(path):
        return detect(path, [entry.name for entry in files.list_dir(path)], flavour)
    return flavour_of_file(path, flavour)


def flavour_of_file(path: Path, flavour: Flavour | None = None) -> Flavour:
    """Return the flavour of a file by its name: Redpanda if it is a segment or an index of it.

    A file that Redpanda does not write counts as Kafka's, even if `flavour` is Redpanda.
    """
    of_redpanda = flavour is not KAFKA and redpanda_dir.place(path) is not None
    return REDPANDA if of_redpanda else KAFKA


def try_flavour(path: Path, flavour: Flavour | None = None) -> Flavour | None:
    """Return the flavour of what lies at `path`; None where that cannot be looked at.

    A file of Redpanda's may be missing: its name is enough.
    """
    if flavour_of_file(path, flavour) is REDPANDA:
        return REDPANDA
    try:
        return flavour_at(path, flavour)
    except UnreadableError:
        return None


def detect(path: Path, entries: Sequence[str], flavour: Flavour | None = None) -> Flavour:
    """Return the flavour of the directory `path`, which has these names; see `flavour_at`.

    A directory with files that Kafka writes is Kafka's, also if other files lie in it, unless its
    name and a segment in it are those of a partition of Redpanda.
    """
    if flavour is REDPANDA and not REDPANDA.holds(path, entries):
        text = "nothing matched: the directory has no file that Redpanda writes; expected a data "
        text += "directory, a namespace, a topic, a partition or a file"
        raise NothingMatchedError(path, text)
    if AUTOMQ.holds(path, entries):
        return AUTOMQ
    if flavour is AUTOMQ:
        text = "nothing matched: this is not a bucket of AutoMQ that was given with the log dir "
        raise NothingMatchedError(path, f"{text}of its metadata log")
    if flavour is not None:
        return flavour
    if files.is_assembled(path):  # A look at names would read all partitions.
        return KAFKA
    if redpanda_dir.is_data_dir(entries) or redpanda_dir.is_surely_partition(path, entries):
        return REDPANDA
    if KAFKA.holds(path, entries):
        return KAFKA
    return REDPANDA if REDPANDA.holds(path, entries) else KAFKA


def open_log_dir(path: Path, flavour: Flavour | None = None) -> LogDir:
    """List a log dir; `flavour` overrules the names. UnreadableError, NothingMatchedError."""

    def described(entries: Sequence[files.Entry]) -> LogDir:
        return detect(path, [entry.name for entry in entries], flavour).log_dir(path, entries)

    return files.at_one_moment(path, described)


def open_partition(path: Path, flavour: Flavour | None = None) -> Partition:
    """List a partition dir; `flavour` is that of its log dir or overrules it. UnreadableError."""

    def described(entries: Sequence[files.Entry]) -> Partition:
        known = flavour or _flavour_of_partition(path, [entry.name for entry in entries])
        return known.partition(path, entries)

    return files.at_one_moment(path, described)


def try_partition(path: Path, flavour: Flavour | None = None) -> Partition | UnreadableError:
    """List a partition dir, with the error as a value: work for a thread or an executor."""
    try:
        return open_partition(path, flavour)
    except UnreadableError as error:
        return error


def try_partitions(
    paths: Sequence[Path], flavour: Flavour | None = None
) -> Iterator[Partition | UnreadableError]:
    """List partition dirs in order; behind URLs several at once, ahead of the caller.

    The time of such a listing is mostly that of a round trip.
    """
    listing = partial(try_partition, flavour=flavour)
    if not any(map(files.is_remote, paths)):
        yield from map(listing, paths)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_LISTINGS) as pool:
        for at in range(0, len(paths), _LISTINGS):
            yield from pool.map(listing, paths[at : at + _LISTINGS])


def _flavour_of_partition(path: Path, entries: Sequence[str]) -> Flavour:
    """Return the flavour of a partition dir, without a look at what lies below it."""
    if redpanda_dir.is_surely_partition(path, entries):
        return REDPANDA
    of_kafka = holds_log(entries) or not redpanda_dir.is_partition(path, entries)
    return KAFKA if of_kafka else REDPANDA
