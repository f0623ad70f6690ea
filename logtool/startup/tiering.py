"""A start on a log whose first segments are in remote storage: it reads nothing there.

The log start is the row in log-start-offset-checkpoint. A follower without a local log asks the
leader, learns that the offset is in remote storage, and takes leader epochs and producer snapshot
from there (``ReplicaFetcherTierStateMachine``); it fetches from the local log start of the leader
on. A leader without a local log does nothing of that: its log begins empty, and it uses no segment
beyond its end. Source: ``LogLoader.load``, ``TierStateMachine`` (Kafka 3.9 and 4.2).
"""

from collections.abc import Iterator

from logtool.actions import Action
from logtool.formats import wording
from logtool.loading.result import LoadResult
from logtool.metadata.image import MetadataImage
from logtool.startup.request import LoadRequest


def actions(request: LoadRequest, loaded: LoadResult) -> Iterator[Action]:
    """Yield the action of a start on a log that has a remote part, if there is one."""
    if not request.start.tiered:
        return
    log_start, local_start = loaded.log_start, loaded.local_log_start
    if loaded.log_end <= local_start:
        text = f"no record of this tiered log is local: it begins empty at {local_start}; "
        yield Action(action="tiered", path=request.path, reason=text + _of_role(request))
    elif log_start < local_start:
        text = f"{wording.offsets(log_start, local_start - 1)} are in remote storage alone, and "
        text += "the start reads nothing of them"
        yield Action(action="tiered", path=request.path, reason=text)


def _of_role(request: LoadRequest) -> str:
    """Return the fate of an empty log, by the leader that the metadata log knows."""
    follower = (
        "as a follower it takes leader epochs and producer snapshot from remote storage, and "
        "fetches from the local log start of the leader on"
    )
    leader = (
        "as the leader it takes nothing from remote storage: it does not use remote segments "
        "beyond its log end, and followers truncate to that"
    )
    settings = request.settings
    image: MetadataImage | None = settings.image if settings else None
    topic_id = image.topics.get(request.topic or "") if image else None
    state = image.partition(topic_id, request.partition or 0) if image and topic_id else None
    if state is None or settings is None or settings.node_id is None:
        return f"{follower}; {leader}"
    in_sync = tuple(state.isr) or tuple(state.elr)
    if in_sync == (settings.node_id,):
        return f"no other replica is in sync, and {leader}"
    return f"{follower}; {leader}" if settings.node_id in in_sync else follower
