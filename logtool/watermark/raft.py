"""One replica of Redpanda, and what several add up to by the rules of Raft.

Redpanda keeps no high watermark on disk: what a majority of the replicas has is committed, and the
leader of the next term finds out how far that is. Offsets are Raft's, leader epochs are the terms.
The log end is that which the next start leaves; see `logtool.startup.redpanda_start`. Raft elects
no replica whose log is behind that of a majority, by the term of its last batch and then by its
offset, and a follower cuts what is of another term than the leader's log. Source:
``raft/consensus.cc`` (``do_vote``, ``do_append_entries``; Redpanda 1c6cff34ea, 2024-12-20).
"""

from collections.abc import Callable, Sequence

from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.log import opening, producer_state
from logtool.log.dir import Partition
from logtool.log.producer_state import ProducerState
from logtool.startup import redpanda_forecast, redpanda_start
from logtool.startup.redpanda_start import RedpandaStart, Replayed, SegmentOutcome
from logtool.startup.request import LoadRequest
from logtool.watermark.replica import SOUND, Replica, tail_of
from logtool.watermark.replica_group import ReplicaGroup, agreed_ends, furthest_of, truncations_of


def measure(
    request: LoadRequest, start: RedpandaStart, node: int | None, on_bytes: Callable[[int], None]
) -> Replica | UnreadableError:
    """Load one replica as a start of Redpanda would, in memory; work for a thread."""
    try:
        listed = opening.open_partition(request.path, request.flavour)
        found = redpanda_start.load(listed, start, on_bytes)
        loaded = redpanda_forecast.outcome_of(request, start, listed, found)
        tail = tail_of(listed, clean=False)
        stable = _last_stable(listed, found, loaded.log_end, on_bytes)
    except UnreadableError as error:
        return error
    broken = [item.code for item in tail if isinstance(item, Finding)]
    return Replica(
        path=request.path,
        topic=request.topic or "",
        partition=request.partition or 0,
        node=node,
        outcome=str(loaded.outcome),
        first_base_offset=listed.segments[0].base_offset if listed.segments else None,
        log_start=loaded.log_start,
        local_log_start=loaded.log_start,
        last_stable=max(stable, loaded.log_start),
        log_end=loaded.log_end,
        epochs=_terms(found),
        tail=broken[0] if broken else SOUND,
        lost_records=sum(action.loss.records for action in loaded.actions if action.loss),
        findings=tuple(tail),
        keeps_watermark=False,
    )


def group(replicas: Sequence[Replica], wanted: int | None) -> ReplicaGroup:
    """Return the group of the given replicas, which are taken to be all of the partition.

    A single replica does not show what is committed. The leader is the one `wanted`, else the one
    that is furthest: Raft elects no other while a majority is up.
    """
    furthest = furthest_of(replicas)
    named = [one for one in replicas if wanted is not None and one.node == wanted]
    leader = named[0] if named else furthest
    term = max(one.last_epoch for one in replicas) + 1
    majority = len(replicas) // 2 + 1
    ends = agreed_ends(replicas, furthest, term)
    agreed = sorted(ends.values(), reverse=True)[majority - 1] if len(replicas) > 1 else None
    committed = furthest.log_start if agreed is None else agreed
    done = {path: min(end, committed) for path, end in ends.items()}
    return ReplicaGroup(
        topic=replicas[0].topic,
        partition=replicas[0].partition,
        replicas=tuple(replicas),
        in_sync=tuple(one.node for one in replicas),
        from_metadata=False,
        least_in_sync=majority,
        high_watermark=agreed,
        committed=committed,
        leader=None,
        assumed=leader,
        furthest=furthest,
        truncations=tuple(truncations_of(replicas, leader, term, done)),
    )


def _terms(found: Sequence[Replayed]) -> tuple[tuple[int, int], ...]:
    """Return each term and the offset at which it begins, of the segments that stay."""
    terms: list[tuple[int, int]] = []
    for one in found:
        term = one.segment.log.name.epoch or 0
        stays = one.fate in (SegmentOutcome.STAYS, SegmentOutcome.REPLAYED)
        if stays and (not terms or terms[-1][0] < term):
            terms.append((term, one.segment.base_offset))
    return tuple(terms)


def _last_stable(
    listed: Partition, found: Sequence[Replayed], end: int, on_bytes: Callable[[int], None]
) -> int:
    """Return the first offset of the oldest transaction without a marker, `end` without one."""
    state = ProducerState()
    stay = {
        one.segment.log.path
        for one in found
        if one.fate in (SegmentOutcome.STAYS, SegmentOutcome.REPLAYED)
    }
    for segment in listed.segments:
        if segment.log.path not in stay:
            continue
        for chunk in segment.batches(payload=False):
            on_bytes(int(chunk.table.size.sum()))
            table = chunk.table[chunk.table.base_offset < end]
            state.apply(producer_state.significant(table))
    return state.oldest_open(none=end)
