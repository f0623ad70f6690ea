"""A start on a log whose first segments are in remote storage: it reads nothing there.

The log start is the row in log-start-offset-checkpoint. A follower without a local log asks the
leader, learns that the offset is in remote storage, and takes leader epochs and producer snapshot
from there (``ReplicaFetcherTierStateMachine``); it fetches from the local log start of the leader
on, or from the last remote offset (``follower.fetch.last.tiered.offset.enable``, Kafka 4.3). A
leader without a local log does nothing of that: its log begins empty, in a leader epoch of its own.
It uses no segment beyond its end, and deletes those whose leader epochs are all older than its
first one, whatever retention says. Source: ``LogLoader.load``, ``TierStateMachine``,
``RLMExpirationTask.cleanupExpiredRemoteLogSegments`` (Kafka 3.9 and 4.2; brokers of 3.9.2 and 4.3.1
deleted all segments of such a partition seconds after their start).
"""

from collections.abc import Iterator

from logtool.actions import Action, FileChange
from logtool.checks.absence import AS_FOLLOWER, AS_LEADER
from logtool.checks.index_cache import IndexCache
from logtool.formats import wording
from logtool.loading.result import LoadResult
from logtool.metadata.image import MetadataImage
from logtool.startup.request import LoadRequest

_REMOVES_PASSING = (4, 1)
"""The release since which a start deletes indexes that were to be deleted, and downloads."""
_AS_LEADER_WITH_EPOCHS = (
    "as the leader it uses the remote segments up to its log end that fit its leader epochs"
)


def actions(request: LoadRequest, loaded: LoadResult) -> Iterator[Action]:
    """Yield the action of a start on a log that has a remote part, if there is one."""
    if not request.start.tiered:
        return
    log_start, local_start = loaded.log_start, loaded.local_log_start
    if loaded.log_end <= local_start:
        text = f"no record of this tiered log is local: it begins empty at {local_start}; "
        as_leader = _AS_LEADER_WITH_EPOCHS if loaded.epochs else AS_LEADER
        is_leader = leads(request)
        # It leads for certain, and remote segments go.
        is_lost = is_leader is True and not loaded.epochs
        fates = {True: as_leader, False: AS_FOLLOWER, None: f"{AS_FOLLOWER}; {as_leader}"}
        if is_leader:
            text += "no other replica is in sync, and "
        action = "lost" if is_lost else "tiered"
        yield Action(action=action, path=request.path, reason=text + fates[is_leader])
    elif log_start < local_start:
        text = f"{wording.offsets(log_start, local_start - 1)} are in remote storage alone, and "
        text += "the start reads nothing of them"
        yield Action(action="tiered", path=request.path, reason=text)


def cache_actions(cache: IndexCache, kafka: tuple[int, int]) -> Iterator[Action]:
    """Yield the actions of a start on the indexes of remote segments that the broker keeps."""
    remove = str(FileChange.REMOVE)
    removes_passing = kafka >= _REMOVES_PASSING
    for path in cache.passing if removes_passing else ():
        text = "was to be deleted, or its download was not finished"
        yield Action(action=remove, path=path, reason=text)
    for path in cache.incomplete:
        text = "the broker fetches the three indexes of the segment again: one of them is missing"
        yield Action(action=remove, path=path, reason=text)
    for fault in cache.faults:
        text = f"the broker does not start: {fault.message}; it fetches the index again if the file"
        yield Action(action="refuse", path=fault.path or cache.path, position=fault.position,
                     reason=f"{text} is moved away")  # fmt: skip
    text = f"the start keeps the indexes of {wording.count(cache.kept, 'remote segment')}"
    if cache.passing and not removes_passing:
        text += f", and {wording.count(len(cache.passing), 'file')} that it no longer needs"
    yield Action(action="tiered", path=cache.path, reason=text)


def leads(request: LoadRequest) -> bool | None:
    """Return whether the node will lead a partition, by the metadata log; None: it may."""
    settings = request.settings
    image: MetadataImage | None = settings.image if settings else None
    topic_id = image.topics.get(request.topic or "") if image else None
    state = image.partition(topic_id, request.partition or 0) if image and topic_id else None
    if state is None or settings is None or settings.node_id is None:
        return None
    in_sync = tuple(state.isr) or tuple(state.elr)
    if in_sync == (settings.node_id,):
        return True
    return None if settings.node_id in in_sync else False
