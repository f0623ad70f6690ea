"""The log dirs of one node, opened to be read and to be asked what the commands are asked."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from logtool.actions import Action
from logtool.disk import files
from logtool.dump.registry import SchemaUse, count_uses
from logtool.errors import NothingMatchedError, UnreadableError, UsageError
from logtool.findings import Finding
from logtool.formats.names import DirectoryKind
from logtool.gaps.missing import MissingOffsets, missing_offsets
from logtool.gaps.run import GapOptions, Gaps, Result
from logtool.lazy_dataclass import dataclass
from logtool.library.reading import OpenedPartition
from logtool.log import inputs, opening
from logtool.log.dir import LogDir, Partition
from logtool.log.flavour import FlavourName
from logtool.log.inputs import NodeDir, PathKind
from logtool.metadata import releases
from logtool.node.claims import has_list
from logtool.node.identity import identify
from logtool.node.node import nodes_of
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.verify import Level, Verification
from logtool.watermark.replica import Replica
from logtool.watermark.replica_group import ReplicaGroup
from logtool.watermark.run import Watermarks

T = TypeVar("T")
StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The result of one question about log dirs; what does not apply is empty."""

    partitions: tuple[T, ...] = ()
    """One object for each partition."""
    findings: tuple[Finding, ...] = ()
    actions: tuple[Action, ...] = ()
    """Actions of a broker that are about log dirs, or about partitions that it does not load."""
    replicas: tuple[Replica, ...] = ()
    """Every replica, also those with which no broker starts."""
    unread: tuple[UnreadableError, ...] = ()
    """Errors of inputs that could not be read."""
    partition_list: bool | None = None
    """True if a file names the partitions that should exist, so that absent ones are found; None
    if the question does not look for absent partitions."""

    @property
    def complete(self) -> bool:
        """Return whether every input was read."""
        return not self.unread


class OpenedLogDirs:
    """Log dirs of one node, and partition dirs; see `logtool.open`."""

    paths: tuple[Path, ...]

    def __init__(self, paths: tuple[Path, ...], flavour: str | None, **how: bool) -> None:
        self.paths = paths
        if flavour not in (None, *FlavourName):
            raise UsageError(f"flavour {flavour!r}: expected 'kafka' or 'redpanda'")
        self._flavour = opening.FLAVOURS[FlavourName(flavour)] if flavour else None
        self._how = how
        self._places = [_opened(path, self._flavour) for path in paths]
        homes = [identify(place) for place in self._places if isinstance(place, LogDir)]
        if len(nodes_of(homes, releases.NEWEST)) > 1:
            raise UsageError("the log dirs belong to several nodes; open those of each node alone")

    def partitions(self) -> Iterator[OpenedPartition]:
        """Yield every live partition by log dir, topic and number; UnreadableError.

        A directory with the suffix ``-delete``, ``-future`` or ``-stray`` is read if its own path
        is opened.
        """
        for place in self._places:
            for one in _live(place) if isinstance(place, LogDir) else [place]:
                if isinstance(one, UnreadableError):
                    raise one
                yield OpenedPartition(one, **self._how)

    def partition(self, topic: str, partition: int) -> OpenedPartition:
        """Return one live partition; NothingMatchedError if it does not exist."""
        for one in self.partitions():
            if (one.topic, one.partition) == (topic, partition):
                return one
        text = f"nothing matched: there is no partition {topic}-{partition}"
        raise NothingMatchedError(self.paths[0], text)

    def schema_ids(self) -> list[SchemaUse]:
        """Count the records of each topic by the schema ids of their keys and values.

        The ids are resolved to subjects and versions if ``_schemas`` lies in the same log dirs.
        """
        records = ((one.topic, record) for one in self.partitions() for record in one.records())
        return count_uses(records)

    def verify(self, level: Literal["quick", "batches", "records"] = "batches") -> Answer[None]:
        """Check everything, as `logtool verify --level` does: the findings."""
        job = Verification(self.paths, level=Level(level), flavour=self._flavour)
        return _answer(job, lambda: job.summary.partition_list)

    def plan(self, kafka_version: str | None = None) -> Answer[PartitionForecast]:
        """Predict the next start of a broker, as `logtool plan` does: a forecast of each partition.

        `kafka_version` such as ``4.3`` is the release that will start; None: the one that the
        log dirs show. UsageError for an unknown release.
        """
        release = releases.parse(kafka_version) if kafka_version else None
        if kafka_version and not release:
            raise UsageError(f"kafka_version {kafka_version!r}: logtool does not know this release")
        job = Forecast(self.paths, StartOptions(kafka=release), flavour=self._flavour)
        return _answer(job, lambda: has_list([job.broker.node]))

    def gaps(self, *, exact: bool = False) -> Answer[MissingOffsets]:
        """List missing offsets with their reasons, as `logtool gaps` does.

        With `exact` offsets that are missing inside a batch are named one by one.
        """
        job = Gaps(self.paths, GapOptions(exact=exact, sums_alone=True), flavour=self._flavour)
        return _answer(chain.from_iterable(map(_of_gaps, job)))

    def watermark(self, *others: "OpenedLogDirs") -> Answer[ReplicaGroup]:
        """Compare the replicas here and on other nodes, as `logtool watermark` does."""
        places = [NodeDir(path) for one in (self, *others) for path in one.paths]
        job = Watermarks(places, StartOptions(releases.NEWEST), flavour=self._flavour)
        return _answer(job, lambda: job.summary.partition_list)


def open(
    path: StrPath,
    *more: StrPath,
    damage: Literal["raise", "report"] = "raise",
    flavour: Literal["kafka", "redpanda"] | None = None,
    show_secrets: bool = False,
) -> OpenedLogDirs:
    """Open log dirs of one node, or partition dirs; nothing is ever written.

    With ``damage="raise"`` reading stops at damage with a `DamageError`; with ``"report"`` damage
    is left out, and `batches().damage` and `damage()` return it as values. `flavour` overrules what
    the names of files say. Without `show_secrets` secrets in a metadata log are stars.

    UnreadableError for a path that cannot be read, and as NothingMatchedError where it is no log
    dir; UsageError for a file, and for log dirs of several nodes.
    """
    if damage not in ("raise", "report"):
        raise UsageError(f"damage {damage!r}: expected 'raise' or 'report'")
    paths = tuple(files.path_of(os.fspath(one)) for one in (path, *more))
    return OpenedLogDirs(paths, flavour, raises=damage == "raise", shows_secrets=show_secrets)


def _opened(path: Path, flavour: Any) -> LogDir | Partition:
    kind = inputs.kind_of(path, flavour, redpanda=True)
    if kind is PathKind.FILE:
        raise UsageError(f"{path}: expected a log dir or a partition dir, found a file")
    is_log_dir = kind is PathKind.LOG_DIR
    return (opening.open_log_dir if is_log_dir else opening.open_partition)(path, flavour)


def _live(log_dir: LogDir) -> Iterator[Partition | UnreadableError]:
    live = [path for path, one in log_dir.latest if one.kind is DirectoryKind.LIVE]
    return opening.try_partitions(live, log_dir.flavour)


def _of_gaps(item: Result | UnreadableError) -> Iterator[Any]:
    if isinstance(item, UnreadableError):
        yield item
    else:
        yield missing_offsets(item)
        yield from item.findings


def _answer(
    items: Iterable[Any], partition_list: Callable[[], bool | None] = lambda: None
) -> Answer[Any]:
    """Return the items of a job by their types; `partition_list` is asked at its end."""
    kinds: dict[str, Any] = {
        "findings": Finding, "actions": Action, "replicas": Replica, "unread": UnreadableError,
    }  # fmt: skip
    found: dict[str, list[Any]] = {name: [] for name in (*kinds, "partitions")}
    for item in items:
        name = next((one for one, kind in kinds.items() if isinstance(item, kind)), "partitions")
        found[name].append(item)
    parts = {name: tuple(some) for name, some in found.items()}
    return Answer(**parts, partition_list=partition_list())
