"""The partition dirs that paths name, as far as they are wanted, and their listings."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast

from logtool.disk import files
from logtool.disk.assembled import AssembledPath
from logtool.errors import UnreadableError
from logtool.log import inputs, opening, redpanda_dir
from logtool.log.dir import Partition, Segment
from logtool.log.inputs import PathKind
from logtool.metadata import automq_tree
from logtool.spark.identity import place_of_dir
from logtool.spark.source.loss import report_loss
from logtool.spark.source.wanted import RowFilter


def expanded(paths: Sequence[Path]) -> list[Path]:
    """Return the paths without duplicates, with the matches of those that are globs.

    ``*``, ``?`` and ``[...]`` match within one name, as in a shell; an existing name with these
    characters is taken as it is. A bucket of AutoMQ and its metadata log are one path.
    UnreadableError if nothing matches a glob, or if a folder cannot be listed.
    """
    found = files.each_once([found for path in paths for found in _matches(path)])
    given = inputs.GivenPaths(found)
    return list(automq_tree.join(given).paths) if given.has_bucket_and_more else found


def _matches(path: Path) -> list[Path]:
    if not _is_glob(str(path)):
        return [path]
    found = []
    for folder in _folders_like(path.parent):
        known = {entry.name for entry in files.list_dir(folder)}
        taken = {path.name} & known or {name for name in known if _matches_name(name, path.name)}
        found += [folder / name for name in sorted(taken)]
    if not found:
        raise UnreadableError(path, "no path matches", missing=True)
    return found


def _folders_like(path: Path) -> list[Path]:
    """Return the folders that match; a path without a glob is returned even if it is no folder."""
    if not _is_glob(str(path)):
        return [path]
    return [one for one in _matches(path) if files.leads_to_dir(one)]


def _is_glob(text: str) -> bool:
    return bool(set("*?[") & set(text))


def _matches_name(name: str, glob: str) -> bool:
    return fnmatchcase(name, glob) and (glob.startswith(".") or not name.startswith("."))


def folders(path: Path, wanted: RowFilter) -> tuple[PathKind, list[Path]]:
    """Return the kind of a path, and the wanted partition dirs in it or around it."""
    kind = inputs.kind_of(path, redpanda=True)
    if kind is PathKind.LOG_DIR:
        found = [folder for folder, _ in opening.open_log_dir(path).partitions]
    else:
        found = [path.parent if kind is PathKind.FILE else path]
    return kind, [folder for folder in found if _takes(wanted, folder)]


def partitions(
    path: Path, wanted: RowFilter, *, fails: bool
) -> Iterator[tuple[Partition, Sequence[Segment]]]:
    """Yield the partitions of a log dir, a partition dir or a ``.log``, with segments to read.

    LostDataError, or with `fails` False a warning, for a partition dir that cannot be listed;
    UnreadableError where it was given itself.
    """
    kind, found = folders(path, wanted)
    for folder in found:
        try:
            one = opening.open_partition(folder)
        except UnreadableError as error:
            if kind is not PathKind.LOG_DIR:
                raise
            if not files.has_vanished(error):  # A moment later the log dir would not list it.
                report_loss(str(error), fails=fails)
            continue
        if files.is_assembled(folder):
            for problem in cast(AssembledPath, folder).tree.problems_of(folder.name):
                report_loss(str(problem), fails=fails)
        if kind is not PathKind.FILE:
            yield one, one.segments
            continue
        meant = [segment for segment in one.segments if segment.log.path.name == path.name]
        if not meant:
            raise UnreadableError(path, "expected a log dir, a partition dir or a .log")
        yield one, meant


def no_match(paths: Sequence[Path]) -> str:
    """Return the message where the options match no partition."""
    where = ", ".join(map(str, paths))
    return f"the options topic and partition match no partition in {where}"


def _takes(wanted: RowFilter, folder: Path) -> bool:
    of_redpanda = redpanda_dir.directory(folder)
    if of_redpanda:
        return wanted.selection.takes(of_redpanda)
    return wanted.takes(place_of_dir(folder).directory)
