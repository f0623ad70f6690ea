"""A forecast without a load, for small partitions without faults that were closed in order.

A broker reads nothing of such a log but the ends of its files: it changes at most
leader-epoch-checkpoint. `logtool.checks.fast_path` recognises them. Whatever is out of the
ordinary ends the attempt with None, and the log is loaded on its shadow.
"""

import os
import threading

from logtool.actions import Action
from logtool.checks.fast_path import LARGEST, PlainPartitions
from logtool.checks.plain_files import PlainFiles
from logtool.checks.report import PartitionSummary
from logtool.disk import files
from logtool.formats import producer_snapshot
from logtool.formats.names import (
    DirectoryKind,
    FileKind,
    PartitionDirectory,
    parse_directory,
    parse_partition_file,
)
from logtool.lazy_dataclass import dataclass
from logtool.loading.actions import actions
from logtool.loading.epochs import EpochCache
from logtool.loading.producers import ProducerManager, decode
from logtool.loading.result import LoadResult, Outcome, StartConditions
from logtool.loading.shadow import Shadow
from logtool.log.file import File
from logtool.log.producer_state import ProducerState
from logtool.metadata.log_start import lacks_remote_epochs
from logtool.startup import tiering
from logtool.startup.partition import PartitionForecast, placed
from logtool.startup.request import LoadRequest

_EPOCHS = FileKind.LEADER_EPOCH_CHECKPOINT.value
_OLDEST = (3, 4)
"""First release that takes every version of partition.metadata."""


class PlainLooks(threading.local):
    """A fast check for each thread: it is not shared, because it reuses its memory."""

    def __init__(self) -> None:
        self.plain = PlainPartitions()


@dataclass(frozen=True, slots=True)
class PlainLoad:
    """A plain partition, and the result of its load."""

    facts: PartitionSummary
    files: PlainFiles
    loaded: LoadResult


def load(request: LoadRequest, looks: PlainLooks) -> PlainLoad | None:
    """Return the result of loading a plain partition; None if it must be loaded on its shadow."""
    if not _may_be_plain(request):
        return None
    facts = looks.plain.look(request.path, request.start.log_start, None, clean=True)
    found = looks.plain.files
    loaded = facts and _loaded(request, facts, found)
    return PlainLoad(facts, found, loaded) if facts and loaded else None


def forecast(request: LoadRequest, looks: PlainLooks) -> PartitionForecast | None:
    """Return the forecast of a plain partition; None if it must be loaded on its shadow."""
    plain = load(request, looks)
    if not plain:
        return None
    facts, found, loaded = plain.facts, plain.files, plain.loaded
    done = list(actions(loaded, request.high_watermark))
    done += tiering.actions(request, loaded)
    if request.fate:
        done.append(Action(action=request.fate.action, path=request.path, reason=request.fate.text))
    return PartitionForecast(
        request=request,
        outcome=Outcome.LOADS,
        log_start=loaded.log_start,
        log_end=loaded.log_end,
        recovery_point=loaded.recovery_point,
        segments=facts.segments,
        needs=found.numbers.needs,
        producers=loaded.producers,
        in_transaction=loaded.in_transaction,
        epoch_starts=tuple(one for one in loaded.epochs if one[1] < loaded.log_end),
        newest_log=facts.newest_log,
        unread_segments=facts.segments,
        unread_bytes=facts.bytes,
        log_bytes=facts.bytes,
        last_bytes=found.last_bytes,
        actions=tuple(placed(action, request) for action in done),
        other_end=loaded.log_end,
    )


def _may_be_plain(request: LoadRequest) -> bool:
    """Return whether the log of a request can be plain, by what is known without a look."""
    assumed, start, around = request.assumed, request.start, request.around
    directory = parse_directory(request.path.name)
    special = assumed.verify or assumed.truncate_to or assumed.fill_from or assumed.supplement
    return (
        around is not None
        and around.clean
        and start.clean
        and start.truncate_to is None
        and start.kafka >= _OLDEST
        and start.max_index_size >= LARGEST
        and not special
        and not files.is_remote(request.path)
        and isinstance(directory, PartitionDirectory)
        and directory.kind is DirectoryKind.LIVE
    )


def _loaded(request: LoadRequest, facts: PartitionSummary, found: PlainFiles) -> LoadResult | None:
    """Return the result of loading a plain log; None if a broker would do more than is known here.

    The steps are those of `logtool.loading.loader` that are left for such a log.
    """
    start, end, first = request.start, facts.log_end_offset or 0, facts.first_base_offset or 0
    log_start = start.log_start_of(first)
    known = max(request.high_watermark or 0, request.flushed or 0, start.log_start)
    is_new = not facts.bytes and not end and not found.snapshots
    if known > end or not (is_new or facts.bytes):
        return None
    if found.snapshots and (found.snapshots[0] <= log_start or found.snapshots[-1] != end):
        return None  # The start deletes snapshots.
    if start.tiered and lacks_remote_epochs(found.epochs, start.log_start, first):
        return None
    cache = EpochCache(found.epochs)
    cache.truncate_from_end(end)
    cache.truncate_from_start(start.log_start)
    shadow = Shadow(request.path, ())
    content = cache.encode() if cache.changed else found.epochs_content
    if content != found.epochs_content:
        file = _epochs_file(request, found)
        if file is None:
            return None
        shadow = Shadow(request.path, (file,))
        shadow.write(_EPOCHS, content)
    loaded = LoadResult(
        shadow,
        log_start=log_start,
        local_log_start=max(start.log_start, first),
        log_end=end,
        recovery_point=max(end, log_start),
        epochs=cache.rows,
    )
    loaded.take_producers(_producers(request, start, found.newest_snapshot))
    return loaded


def _epochs_file(request: LoadRequest, found: PlainFiles) -> File | None:
    """Return leader-epoch-checkpoint as it was read; None if it has changed since."""
    path = request.path / _EPOCHS
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    if status.st_size != len(found.epochs_content):
        return None
    name = parse_partition_file(_EPOCHS)
    return File(path, name, status.st_size, status.st_mtime_ns, status.st_ino)


def _producers(request: LoadRequest, start: StartConditions, snapshot: bytes) -> ProducerState:
    """Return the producers of the newest snapshot that are not forgotten."""
    if len(snapshot) <= producer_snapshot.HEADER.size:
        return ProducerState()
    manager = ProducerManager(Shadow(request.path, ()), start.now_ms, start.idle_ms, start.kafka)
    manager.begin(0, decode(snapshot) or {})
    return manager.state
