"""Paths that were given, and the log dirs that they lead to; each is looked up once."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.formats.names import CLUSTER_METADATA, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import LogDir
from logtool.log.flavour import Flavour
from logtool.log.redpanda import REDPANDA
from logtool.log.redpanda_dir import data_dir_of
from logtool.log.selection import Selection


@dataclass(frozen=True, slots=True)
class Opened:
    """What a path leads to."""

    log_dir: Path
    name: str | None
    """Of the one partition dir that is meant; None: the whole log dir is."""
    contents: LogDir | UnreadableError
    """What the log dir holds, or why that cannot be read."""
    within: Path | None = None
    """Of Redpanda: the namespace, topic or partition of the data directory that is meant."""
    flavour: Flavour | None = None
    """The value of ``--flavour``; None: as the names say."""

    def read(self) -> LogDir:
        """Return what the log dir holds; UnreadableError where that cannot be read."""
        if isinstance(self.contents, UnreadableError):
            raise self.contents
        return self.contents

    def chosen(self, selection: Selection) -> list[tuple[Path, PartitionDirectory]]:
        """Return the partitions that are meant; UnreadableError as for `read`."""
        return [
            (folder, directory)
            for folder, directory in self.read().partitions
            if directory.topic != CLUSTER_METADATA
            and selection.takes(directory)
            and self._means(folder)
        ]

    def _means(self, folder: Path) -> bool:
        if self.within is not None:
            # What is above it could not be listed, and stands for what lies in it.
            above = folder in self.within.parents
            return folder == self.within or self.within in folder.parents or above
        return self.name in (None, folder.name)

    def again(self) -> "Opened":
        """Return it with what the log dir holds now."""
        return replace(self, contents=_read(self.log_dir, self.flavour))


def open_each(
    paths: Iterable[Path], flavour: Flavour | None = None
) -> Iterator[Opened | UnreadableError]:
    """Yield what each path leads to, or why that is not known; no log dir is read twice.

    `flavour` overrules what the names of files and directories say.
    """
    known: dict[Path, LogDir | UnreadableError] = {}
    for path in paths:
        within = None
        try:
            if opening.flavour_at(path, flavour) is REDPANDA:
                log_dir, within = data_dir_of(path)
                is_whole = log_dir == within
            else:
                log_dir, is_whole = inputs.log_dir_of(path, flavour)
        except UnreadableError as error:
            yield error
            continue
        if log_dir not in known:
            known[log_dir] = _read(log_dir, flavour)
        name = None if is_whole else path.resolve().name
        yield Opened(log_dir, name, known[log_dir], None if is_whole else within, flavour)


def _read(log_dir: Path, flavour: Flavour | None) -> LogDir | UnreadableError:
    try:
        return opening.open_log_dir(log_dir, flavour)
    except UnreadableError as error:
        return error
