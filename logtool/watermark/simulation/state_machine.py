"""Log end offsets and high watermarks as replication moves them: a state machine of one partition.

Pure: no disk, no clock. Every offset that is a bound is exclusive. The rules are those of
``Partition`` and ``ReplicaFetcherThread`` (Kafka 3.9 and 4.x), with the truncation of brokers
before 0.11 as a choice:

- A follower asks for what lies behind its log end. By that offset the leader learns how far the
  follower is (its remote log end), and only then looks at its own high watermark: so what one fetch
  copies, the next one commits, and the follower hears of it with the answer to that.
- The leader's high watermark is the least log end of those in sync and of those that have caught up
  so lately that they may join. It looks at it on four occasions: see `Occasion`.
- Who becomes a follower cuts its log, by its own high watermark or by leader epochs.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from logtool.lazy_dataclass import dataclass
from logtool.watermark.simulation.consumer import open_transactions
from logtool.watermark.simulation.node import Remote, SimulatedNode, SimulatedRecord
from logtool.watermark.simulation.producer import Acks, ProduceAnswer, Request
from logtool.watermark.simulation.truncation import by_high_watermark, by_leader_epoch

DEFAULT_LAG_MS = 30_000
"""Default of ``replica.lag.time.max.ms``, in ms."""


class TruncationRule(StrEnum):
    """By what a follower cuts its log."""

    HIGH_WATERMARK = "high-watermark"
    """Before Kafka 0.11."""
    LEADER_EPOCH = "leader-epoch"
    """KIP-101 and KIP-279."""


class Occasion(StrEnum):
    """Occasions on which a leader looks whether its high watermark may rise."""

    LEADER = "became leader"
    SHRINK = "in-sync replicas shrank"
    PRODUCE = "produce"
    FETCH = "fetch"


class ProtocolStep(StrEnum):
    """A stretch of processing, from a request or an answer that comes in to its end."""

    PRODUCE = "produce request at the leader"
    FETCH = "fetch request at the leader"
    ANSWER = "fetch response at the follower"


class Does(StrEnum):
    """One thing that is done in it."""

    ASK = "fetch offset of the request"
    WRITE = "write to the log"
    LOG_END = "log end offset"
    REMOTE_LOG_END = "remote log end offset"
    HIGH_WATERMARK = "high watermark"
    RESPOND = "high watermark in the response"
    ANSWER = "answer to the producer"


@dataclass(frozen=True, slots=True)
class SubStep:
    """One thing that is done while an event is processed, in its turn."""

    part: ProtocolStep
    node: int
    """Node that has the log, log end or high watermark; for a remote log end, the follower it is
    of."""
    does: Does
    before: int | None = None
    """The offset until then; None for a number that is sent, or for a write."""
    after: int | None = None
    records: tuple[str, ...] = ()
    """Names of the records that are written or sent."""


class ImpossibleError(Exception):
    """An event that cannot happen in the present state."""


_PARTS = {Occasion.PRODUCE: ProtocolStep.PRODUCE, Occasion.FETCH: ProtocolStep.FETCH}


class Replication:
    """One partition: its replicas, who leads, who is in sync, and what was ever committed."""

    def __init__(
        self,
        nodes: Iterable[int],
        leader: int,
        *,
        rule: TruncationRule = TruncationRule.LEADER_EPOCH,
        lag_ms: int = DEFAULT_LAG_MS,
        min_in_sync: int = 1,
        checkpoints: bool = True,
    ) -> None:
        self.nodes = {node: SimulatedNode(node) for node in nodes}
        self.rule = rule
        self.lag_ms = lag_ms
        # Of a partition with fewer replicas, all of them are enough (`Partition.effectiveMinIsr`).
        self.min_in_sync = min(min_in_sync, len(self.nodes))
        self.checkpoints = checkpoints
        """True if each new high watermark is written to disk immediately."""
        self.now_ms = 0
        self.epoch = -1
        self.leader: int | None = None
        self.in_sync = list(self.nodes)
        self.remote: dict[int, Remote] = {}
        self.committed: list[SimulatedRecord] = []
        """Records that the high watermark of some leader has passed, by offset."""
        self.tries: list[tuple[Occasion, int, int]] = []
        """Each look of a leader at its high watermark: the occasion, before, after."""
        self.requests: list[Request] = []
        """Requests of producers with known acks, in order."""
        self.trace: list[SubStep] = []
        """Actions done for produce and fetch requests, in order."""
        self._fenced: set[int] = set()
        self.elect(leader)
        for remote in self.remote.values():
            remote.log_end = 0  # the logs are new, so there is nothing to learn

    # What may happen

    def begin_with(self, log_ends: Mapping[int, tuple[int, int, int | None]]) -> None:
        """Fill the new logs: of each replica log end, high watermark, and what the leader knows.

        The records are named after their offsets, and all that some high watermark has passed
        counts as committed.
        """
        records = [
            SimulatedRecord(str(offset), self.epoch)
            for offset in range(max(end for end, *_ in log_ends.values()))
        ]
        for number, (end, mark, known) in log_ends.items():
            node = self.nodes[number]
            node.append(records[:end])
            node.high_watermark = node.checkpointed = mark
            if number in self.remote:
                self.remote[number].log_end = end if known is None else known
        self.committed = records[: max(mark for _, mark, _ in log_ends.values())]

    def produce(
        self, names: Iterable[str], *, acks: Acks | None = None, transaction: str = ""
    ) -> None:
        """Append records to the leader's log; without `acks` no producer waits for an answer."""
        leader = self._leading()
        records = [SimulatedRecord(name, self.epoch, transaction) for name in names]
        request = None
        if acks is not None:
            request = Request(acks, tuple(records), leader.log_end)
            self.requests.append(request)
            if acks is Acks.ALL and len(self.in_sync) < self.min_in_sync:
                self._answer(request, ProduceAnswer.NOT_ENOUGH_REPLICAS, ProtocolStep.PRODUCE)
                return
        self._write(leader, records, ProtocolStep.PRODUCE)
        self._try_to_raise(Occasion.PRODUCE)
        if request and acks is Acks.LEADER:
            self._answer(request, ProduceAnswer.ACKNOWLEDGED, ProtocolStep.PRODUCE)
        elif request and acks is Acks.NONE:
            request.answer = ProduceAnswer.NOT_AWAITED

    def commit(self, transaction: str) -> None:
        """Write the marker that commits a transaction, as its coordinator does with acks=all."""
        self._decide(transaction, "commit")

    def abort(self, transaction: str) -> None:
        """Write the marker that aborts a transaction."""
        self._decide(transaction, "abort")

    def fetch(self, node: int, *, answered: bool = True, most: int | None = None) -> None:
        """Let a follower ask the leader for more; the answer may not arrive."""
        leader, follower = self._leading(), self._up(node)
        if node == self.leader:
            raise ImpossibleError(f"{node} is the leader, so it does not fetch")
        self._follow(follower)
        if follower.log_end > leader.log_end:
            follower.cut(leader.log_end)  # out of range: it continues at the end of the leader
        begin = follower.log_end
        self.trace.append(SubStep(ProtocolStep.FETCH, node, Does.ASK, after=begin))
        self._learn(node, begin, leader)
        end = leader.log_end if most is None else min(leader.log_end, begin + most)
        sent, mark = leader.log[begin:end], leader.high_watermark
        names = tuple(record.name for record in sent)
        self.trace.append(
            SubStep(ProtocolStep.FETCH, leader.node, Does.RESPOND, after=mark, records=names)
        )
        if answered:
            self._write(follower, sent, ProtocolStep.ANSWER)
            before = follower.high_watermark
            self._set_high_watermark(follower, min(mark, follower.log_end))
            after = follower.high_watermark
            self.trace.append(
                SubStep(ProtocolStep.ANSWER, node, Does.HIGH_WATERMARK, before, after)
            )

    def crash(self, node: int, unflushed: int = 0) -> None:
        """Kill a replica; the last `unflushed` records had not reached its disk."""
        replica = self._up(node)
        replica.up = False
        if node == self.leader:
            self._give_up(ProduceAnswer.LEADER_GONE)
        replica.cut(max(0, replica.log_end - unflushed))
        replica.high_watermark = min(replica.checkpointed, replica.log_end)
        replica.follows = -1

    def restart(self, node: int) -> None:
        """Start it again: a follower, unless it is elected."""
        replica = self.nodes[node]
        if replica.up:
            raise ImpossibleError(f"{node} is up")
        replica.up = True
        self._fenced.discard(node)
        if node == self.leader:
            self.elect(node)
        elif self.leader is not None and self.nodes[self.leader].up:
            self._follow(replica)

    def notice(self, node: int) -> None:
        """Let the controller see that a replica is down: out of sync, and if it led, replaced."""
        if self.nodes[node].up:
            raise ImpossibleError(f"{node} is up")
        self._fenced.add(node)
        if node != self.leader:
            self._shrink({node})
            return
        able = [member for member in self.in_sync if self.nodes[member].up]
        if able:
            self.elect(able[0])
        else:
            self.leader = None

    def elect(self, node: int, *, unclean: bool = False) -> None:
        """Let a replica lead from now on; `unclean`: one that is not in sync."""
        replica = self._up(node)
        if node not in self.in_sync and not unclean:
            raise ImpossibleError(f"{node} is not in sync")
        before, self.leader = self.leader, node
        if before != node:
            self._give_up(ProduceAnswer.NOT_LEADER)
        self.epoch += 1
        replica.epochs.assign(self.epoch, replica.log_end)
        replica.follows = self.epoch
        if node not in self.in_sync:
            self.in_sync = [node]
        elif before is not None and not self.nodes[before].up:
            self.in_sync.remove(before)
        self.remote = {
            other: Remote(caught_up_ms=self.now_ms if other in self.in_sync else -self.lag_ms - 1)
            for other in self.nodes
            if other != node
        }
        for other in self.nodes.values():
            if other.up and other is not replica:
                self._follow(other)
        self._try_to_raise(Occasion.LEADER)

    def wait(self, milliseconds: int) -> None:
        """Let time pass; the leader puts those out of sync that have lagged for too long."""
        self.now_ms += milliseconds
        if self.leader is None or not self.nodes[self.leader].up:
            return
        end = self.nodes[self.leader].log_end
        late = {
            node
            for node, remote in self.remote.items()
            if remote.log_end != end and not self._is_recent(remote)
        }
        self._shrink(late)

    def checkpoint(self, node: int) -> None:
        """Let a replica write its high watermark to disk."""
        replica = self._up(node)
        replica.checkpointed = replica.high_watermark

    # Answers to producers

    def _decide(self, transaction: str, marker: str) -> None:
        leader = self._leading()
        if transaction not in open_transactions(leader.log):
            raise ImpossibleError(f"transaction {transaction} is not open")
        if len(self.in_sync) < self.min_in_sync:
            raise ImpossibleError("too few replicas are in sync for a marker, which needs acks=all")
        record = SimulatedRecord(f"{marker}:{transaction}", self.epoch, transaction, marker)
        self._write(leader, [record], ProtocolStep.PRODUCE)
        self._try_to_raise(Occasion.PRODUCE)

    def _answer(self, request: Request, answer: ProduceAnswer, part: ProtocolStep | None) -> None:
        """Answer a producer; add this to the trace if it is part of a request that is processed."""
        request.answer = answer
        if part and self.leader is not None:
            names = tuple(record.name for record in request.records)
            after = request.end if answer is ProduceAnswer.ACKNOWLEDGED else None
            self.trace.append(SubStep(part, self.leader, Does.ANSWER, None, after, names))

    def _give_up(self, answer: ProduceAnswer) -> None:
        for request in self.requests:
            if request.answer is None:
                request.answer = answer

    # What came of it

    def acknowledged_lost(self) -> list[str]:
        """Return the acknowledged records that the leader does not have, with acks 1 or all."""
        if self.leader is None:
            return []
        log = self.nodes[self.leader].log
        return [
            record.name
            for request in self.requests
            if request.answer is ProduceAnswer.ACKNOWLEDGED
            for offset, record in enumerate(request.records, request.offset)
            if log[offset : offset + 1] != [record]
        ]

    def lost(self) -> list[int]:
        """Return the offsets of committed records that the leader does not have."""
        if self.leader is None:
            return []
        log = self.nodes[self.leader].log
        return [
            offset
            for offset, record in enumerate(self.committed)
            if log[offset : offset + 1] != [record]
        ]

    def diverged(self) -> dict[int, int]:
        """Return followers that hold other records than the leader, and the first such offset."""
        if self.leader is None:
            return {}
        leader = self.nodes[self.leader]
        found = {}
        for node, replica in self.nodes.items():
            pairs = enumerate(zip(replica.log, leader.log, strict=False))
            first = next((offset for offset, (own, theirs) in pairs if own != theirs), None)
            if replica.follows == self.epoch and first is not None:
                found[node] = first
        return found

    # How the leader learns

    def _write(
        self, node: SimulatedNode, records: list[SimulatedRecord], part: ProtocolStep
    ) -> None:
        """Append records to a log, which moves its end."""
        before = node.log_end
        if records:
            names = tuple(record.name for record in records)
            self.trace.append(SubStep(part, node.node, Does.WRITE, records=names))
        node.append(records)
        self.trace.append(SubStep(part, node.node, Does.LOG_END, before, node.log_end))

    def _learn(self, node: int, offset: int, leader: SimulatedNode) -> None:
        """Take from a fetch how far a follower is."""
        remote = self.remote[node]
        step = SubStep(ProtocolStep.FETCH, node, Does.REMOTE_LOG_END, remote.log_end, offset)
        self.trace.append(step)
        if offset >= leader.log_end:
            remote.caught_up_ms = self.now_ms
        elif offset >= remote.leader_end and remote.log_end is not None:
            remote.caught_up_ms = max(remote.caught_up_ms, remote.fetched_ms)
        remote.log_end, remote.fetched_ms, remote.leader_end = offset, self.now_ms, leader.log_end
        # It needs all that is committed, and all that this leader found when it took over.
        taken_over = leader.epochs.rows[-1][1] if leader.epochs.rows else 0
        if offset >= max(leader.high_watermark, taken_over) and node not in self.in_sync:
            self.in_sync.append(node)
        self._try_to_raise(Occasion.FETCH)

    def _shrink(self, gone: set[int]) -> None:
        left = [node for node in self.in_sync if node not in gone]
        # The last one stays, so that somebody can be elected.
        if left and left != self.in_sync:
            self.in_sync = left
            if self.leader is not None and self.nodes[self.leader].up:
                self._try_to_raise(Occasion.SHRINK)

    def _try_to_raise(self, occasion: Occasion) -> None:
        leader = self._leading()
        before = leader.high_watermark
        ends = [leader.log_end]
        for node, remote in self.remote.items():
            if node in self.in_sync or (node not in self._fenced and self._is_recent(remote)):
                ends.append(-1 if remote.log_end is None else remote.log_end)
        if len(self.in_sync) >= self.min_in_sync and min(ends) > before:
            self._set_high_watermark(leader, min(ends))
            self.committed += leader.log[len(self.committed) : leader.high_watermark]
        self.tries.append((occasion, before, leader.high_watermark))
        part = _PARTS.get(occasion)
        if part:
            mark = leader.high_watermark
            step = SubStep(part, leader.node, Does.HIGH_WATERMARK, before, mark)
            self.trace.append(step)
        for request in self.requests:
            waits = request.acks is Acks.ALL and request.answer is None
            if waits and request.end <= leader.high_watermark:
                self._answer(request, ProduceAnswer.ACKNOWLEDGED, part)

    def _is_recent(self, remote: Remote) -> bool:
        return self.now_ms - remote.caught_up_ms <= self.lag_ms

    def _set_high_watermark(self, replica: SimulatedNode, offset: int) -> None:
        replica.high_watermark = offset
        if self.checkpoints:
            replica.checkpointed = offset

    def _follow(self, follower: SimulatedNode) -> None:
        """Let a replica cut its log once for the present leader."""
        if follower.follows == self.epoch:
            return
        follower.follows = self.epoch
        if self.rule is TruncationRule.HIGH_WATERMARK:
            follower.cut(by_high_watermark(follower.state).offset)
        else:
            follower.cut(by_leader_epoch(follower.state, self._leading().state).offset)
        if self.checkpoints:
            follower.checkpointed = follower.high_watermark

    def _up(self, node: int) -> SimulatedNode:
        if not self.nodes[node].up:
            raise ImpossibleError(f"{node} is down")
        return self.nodes[node]

    def _leading(self) -> SimulatedNode:
        if self.leader is None:
            raise ImpossibleError("there is no leader")
        return self._up(self.leader)
