"""One cluster whose brokers are killed, hang and lead in turn, copied in three situations.

A situation has copies of the log dirs, the offsets that the brokers reported before, and the
changes that the brokers made to their logs at the next start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker import workloads
from broker.cluster import Cluster
from broker.protocol import Offsets
from broker.scenarios import SMALL
from broker.topics import TOPICS, Topic

BROKERS = (2, 3, 4)
COMMON = 70
"""Records that all replicas have before anything happens."""
UNCLEAN = {"unclean.leader.election.enable": "true"}

BEHIND = Topic("behind", "one follower was killed while a client wrote", replicas=BROKERS)
HUNG = Topic("hung", "the follower in sync hangs: records above the high watermark")
HUNG_UNCLEAN = Topic("hung.unclean", "the same, next led by a replica without them", config=UNCLEAN)
BELOW_MIN = Topic("below.min", "the leader alone is in sync", config={"min.insync.replicas": "2"})
OPEN = Topic("open.tx", "a transaction that stays open")
DIVERGED = Topic("diverged", "written by two leaders", config={**UNCLEAN, "segment.bytes": "4000"})
SEESAW = Topic(
    "seesaw", "led by each replica in turn while the other is away", replicas=(2, 3),
    config=UNCLEAN,
)  # fmt: skip
AGAIN = Topic("made.again", "deleted and made again while node 4 was away")
PLAIN = (BEHIND, HUNG, HUNG_UNCLEAN, BELOW_MIN, OPEN, DIVERGED, SEESAW)
COMPACTED = tuple(topic for topic in TOPICS if topic.name.startswith("compacted"))

_CONFIG = {
    **SMALL,
    # Only a broker that is killed or hangs leaves the ISR.
    "replica.lag.time.max.ms": "3600000",
    "replica.high.watermark.checkpoint.interval.ms": "300",
    # A broker that gets no processor for a moment stays registered.
    "broker.session.timeout.ms": "5000",
    "auto.leader.rebalance.enable": "false",
}
BACKOFF = "log.cleaner.backoff.ms"
_OWN_CONFIG = {3: {BACKOFF: "3600000"}, 4: {"log.cleaner.enable": "false"}}
"""Node 2 cleans at once, node 3 only after its first start, node 4 never."""

_LOADED = re.compile(r"Completed load of .*?\(dir=[^,]*/([^/,]+)-0, .*?logEndOffset=(\d+)\)")
_WATERMARK = re.compile(
    r"\[Partition (\S+)-0 broker=\d+\] Log loaded for .* initial high watermark (\d+)"
)
_CUT = re.compile(r"\[UnifiedLog partition=(\S+)-0, dir=[^]]+\] Truncating to offset (\d+)")

Key = tuple[str, int]
"""Topic and node."""
Leadership = Mapping[str, tuple[int, tuple[int, ...]]]


@dataclass
class Situation:
    """Log dirs of all nodes at one moment, with the offsets before and the changes after."""

    dirs: list[Path]
    """Node 1 first."""
    live: dict[Key, Offsets] = field(default_factory=dict)
    """Offsets of the replicas that answered and did not change any more."""
    leadership: Leadership = field(default_factory=dict)
    """Leaders and in-sync replicas, from the last node that knew them."""
    loaded: dict[Key, int] = field(default_factory=dict)
    """Log ends as brokers had loaded them at their next start."""
    watermarks: dict[Key, int] = field(default_factory=dict)
    """High watermarks that brokers had loaded at their next start."""
    cuts: dict[Key, list[int]] = field(default_factory=dict)
    """Offsets to which brokers truncated after their next start."""
    leaders: dict[str, int] = field(default_factory=dict)
    """Leaders after the next start."""
    away: frozenset[int] = frozenset()
    """Nodes that were not started."""

    def log_dir(self, node: int) -> Path:
        """Return the log dir of a node."""
        return self.dirs[node - 1]


@dataclass
class Story:
    """All situations in their order."""

    killed: Situation
    """Node 4 lags; node 2 leads with records that node 3 has not; then all were killed."""
    diverged: Situation
    """Node 2 wrote alone and was killed; then node 3 or 4 led without its last records."""
    seesaw: Situation
    """Nodes 2, 3, 2, 3 led one topic in turn, each without the last records of the other."""
    end: list[Path]
    """All in sync and stopped in order."""


def run(version: str, root: Path) -> Story:
    """Run the cluster."""
    with Cluster(version, root / "live", BROKERS, _CONFIG, _OWN_CONFIG) as cluster:
        return _Run(cluster, root).story()


class _Run:
    def __init__(self, cluster: Cluster, root: Path) -> None:
        self.cluster = cluster
        self.root = root
        self._read: dict[int, int] = dict.fromkeys(BROKERS, 0)
        """Size of the part of each broker's log that earlier situations have read."""

    def story(self) -> Story:
        self._begin()
        killed = self._killed()
        self._all_back(killed)
        diverged = self._diverged()
        seesaw = self._seesaw(diverged)
        self._all_back(seesaw)
        self.cluster.stop()
        return Story(killed, diverged, seesaw, self.cluster.freeze(self.root / "end"))

    def _begin(self) -> None:
        cluster = self.cluster
        cluster.start()
        topics = [
            Topic(one.name, one.shows, 1, one.replicas or BROKERS, one.config)
            for one in (*PLAIN, *COMPACTED, AGAIN)
        ]
        workloads.create_topics(cluster.bootstrap(1), cluster.version, topics)
        cluster.wait_for_leader(1, _names(PLAIN), [2])
        for topic in (*PLAIN, AGAIN):
            cluster.write(2, topic.name, "common", COMMON)
        workloads.write_compacted(cluster.bootstrap(2), cluster.log_dir(2))
        workloads.write_compacted_transactions(cluster.bootstrap(2), cluster.log_dir(2))
        self._open = workloads.transactional(cluster.bootstrap(2), "never-ends")
        self._open.producer.begin_transaction()
        self._open.batch(OPEN.name, workloads.messages("open", 5, workloads.now_ms()))
        cluster.write(2, OPEN.name, "behind it", 20)
        cluster.wait_until_equal(_names((*PLAIN, *COMPACTED)), (2, 3))

    def _killed(self) -> Situation:
        cluster = self.cluster
        with cluster.writing(2, BEHIND.name):
            before = cluster.offsets(2, BEHIND.name).log_end
            workloads.wait_for(
                lambda: cluster.offsets(4, BEHIND.name).log_end > before + 50, 60, "some records"
            )
            cluster.kill(4)
            cluster.wait_for_isr(2, _names([BEHIND, HUNG, HUNG_UNCLEAN, BELOW_MIN, OPEN]), (2, 3))
        self._make_again()
        cluster.wait_until_equal(_names([*PLAIN, AGAIN]), (2, 3))
        live = self._hang(PLAIN, 3)
        for topic in (HUNG, HUNG_UNCLEAN, BELOW_MIN):
            cluster.write(2, topic.name, "above", 30)
        live |= self._live(PLAIN, (2,))
        leadership = cluster.leadership(2, _names(PLAIN))
        cluster.kill()
        found = self._situation("killed", live, leadership)
        cluster.nodes[3].extra_config.pop(BACKOFF)
        cluster.start(1, 3, 4)
        cluster.wait_for_leader(1, _names([HUNG_UNCLEAN]), (3, 4))
        (leader, _) = cluster.leadership(1, [HUNG_UNCLEAN.name])[HUNG_UNCLEAN.name]
        cluster.write(leader, HUNG_UNCLEAN.name, "instead", 12)
        cluster.start(2)
        return found

    def _hang(self, topics: Sequence[Topic], follower: int) -> dict[Key, Offsets]:
        """Pause an in-sync follower; return its offsets and those of the leader, node 2, at rest.

        A paused controller does not remove the follower from the ISR. On a slow machine the
        controller may have removed it just before the pause.
        """
        cluster = self.cluster
        live: dict[Key, Offsets] = {}

        def hangs_in_sync() -> bool:
            nonlocal live
            live = self._at_rest(topics, (2, follower))
            cluster.pause(1, follower)
            known = cluster.leadership(2, _names(topics)).values()
            if all(in_sync == (2, follower) for _, in_sync in known):
                return True
            cluster.resume(1, follower)
            return False

        workloads.wait_for(hangs_in_sync, 300, f"node {follower} to hang while it is in sync")
        return live

    def _make_again(self) -> None:
        cluster, name = self.cluster, AGAIN.name
        workloads.delete_topic(cluster.bootstrap(2), cluster.log_dir(2), name)
        new = Topic(name, AGAIN.shows, replicas=BROKERS)
        workloads.create_topics(cluster.bootstrap(1), cluster.version, [new])
        cluster.wait_for_leader(2, [name], (2,))
        cluster.write(2, name, "again", 40)

    def _diverged(self) -> Situation:
        cluster = self.cluster
        workloads.write_compacted(cluster.bootstrap(2), cluster.log_dir(2), generation=2)
        for topic in COMPACTED:
            workloads.wait_for_cleaner(cluster.log_dir(3), topic.name, 0)
        cluster.pause(3, 4)
        cluster.wait_for_isr(2, _names(PLAIN), (2,))
        for topic, count in ((DIVERGED, 60), (SEESAW, 40), (BELOW_MIN, 30)):
            cluster.write(2, topic.name, "lost", count)
        live = self._at_rest(PLAIN, (2,))
        cluster.kill(2)
        cluster.resume(3, 4)
        cluster.wait_for_leader(1, [DIVERGED.name], (3, 4))
        cluster.wait_for_leader(1, [SEESAW.name], (3,))
        (leader, _) = cluster.leadership(1, [DIVERGED.name])[DIVERGED.name]
        cluster.write(leader, DIVERGED.name, "won", 25)
        cluster.write(3, SEESAW.name, "won", 25)
        cluster.wait_until_equal([DIVERGED.name], (3, 4))
        live |= self._at_rest(PLAIN, (3, 4))
        leadership = cluster.leadership(1, _names(PLAIN))
        cluster.pause(1, 3, 4)
        return self._situation("diverged", live, leadership)

    def _seesaw(self, before: Situation) -> Situation:
        cluster = self.cluster
        before.away = frozenset({3})
        cluster.resume(1, 4)
        cluster.start(2)
        cluster.wait_for_leader(1, [SEESAW.name], (2,))
        # Node 2 cuts each of its logs at its own pace, and has done so where it is in sync.
        cluster.wait_for_isr(1, _names([one for one in PLAIN if one is not SEESAW]), (2, 4))
        self._aftermath(before)
        cluster.write(2, SEESAW.name, "third", 15)
        live = self._at_rest(PLAIN, (2,))
        cluster.kill(2)
        cluster.resume(3)
        cluster.wait_for_leader(1, [SEESAW.name], (3,))
        # Node 3 comes back into sync at its own pace; who is in sync is asked when that is over.
        cluster.wait_for_isr(1, [DIVERGED.name], (3, 4))
        live |= self._at_rest(PLAIN, (3, 4))
        leadership = cluster.leadership(1, _names(PLAIN))
        cluster.pause(1, 3, 4)
        found = self._situation("seesaw", live, leadership)
        cluster.resume(1, 3, 4)
        cluster.start(2)
        return found

    def _all_back(self, situation: Situation) -> None:
        """Wait until all replicas are in sync, and read the brokers' logs."""
        three = [topic.name for topic in (*PLAIN, *COMPACTED) if topic is not SEESAW]
        self.cluster.wait_for_isr(1, three, BROKERS)
        self.cluster.wait_for_isr(1, [SEESAW.name], (2, 3))
        self._aftermath(situation)

    def _aftermath(self, situation: Situation) -> None:
        for node in BROKERS:
            log = self.cluster.nodes[node].log
            text, self._read[node] = log[self._read[node] :], len(log)
            situation.loaded |= {(name, node): int(end) for name, end in _LOADED.findall(text)}
            situation.watermarks |= {
                (name, node): int(offset) for name, offset in _WATERMARK.findall(text)
            }
            for name, offset in _CUT.findall(text):
                situation.cuts.setdefault((name, node), []).append(int(offset))
        names = _names((*PLAIN, *COMPACTED))
        for offsets in (situation.loaded, situation.watermarks, situation.cuts):
            for key in [key for key in offsets if key[0] not in names]:
                del offsets[key]
        found = self.cluster.leadership(1, names)
        situation.leaders = {name: leader for name, (leader, _) in found.items()}

    def _at_rest(self, topics: Sequence[Topic], nodes: Sequence[int]) -> dict[Key, Offsets]:
        """Return offsets that do not change any more, with the high watermarks on disk.

        A follower that returns catches up slowly on a busy machine.
        """
        found: dict[Key, Offsets] = {}

        def rests() -> bool:
            nonlocal found
            found = self._live(topics, nodes)
            on_disk = all(
                self.cluster.checkpointed(node, topic) == offsets.high_watermark
                for (topic, node), offsets in found.items()
            )
            whole = on_disk and self._settled(topics, found)
            return whole and self._live(topics, nodes) == found

        workloads.wait_for(rests, 90, "the replicas to come to rest")
        return found

    def _settled(self, topics: Sequence[Topic], found: dict[Key, Offsets]) -> bool:
        """Return whether the leaders among these nodes have nothing left to do.

        The offsets of a follower that has not begun to fetch again do not change either, but they
        will. A follower with all records joins the ISR a moment later, and the high watermark may
        wait for it.
        """
        for name, (leader, in_sync) in self.cluster.leadership(1, _names(topics)).items():
            here = {node: one for (topic, node), one in found.items() if topic == name}
            if leader not in here:
                continue
            ends = {one.log_end for one in here.values()}
            marks = {one.high_watermark for one in here.values()}
            if len(ends) > 1 or len(marks) > 1 or not set(here) <= set(in_sync):
                return False
            if len(in_sync) >= _min_in_sync(topics, name) and marks != ends:
                return False
        return True

    def _live(self, topics: Sequence[Topic], nodes: Sequence[int]) -> dict[Key, Offsets]:
        return {
            (topic.name, node): self.cluster.offsets(node, topic.name)
            for topic in topics
            for node in nodes
            if node in (topic.replicas or BROKERS)
        }

    def _situation(self, name: str, live: dict[Key, Offsets], leadership: Leadership) -> Situation:
        for node in BROKERS:
            self._read[node] = len(self.cluster.nodes[node].log)
        return Situation(self.cluster.freeze(self.root / name), live, leadership)


def _min_in_sync(topics: Sequence[Topic], name: str) -> int:
    (config,) = (topic.config for topic in topics if topic.name == name)
    return int(config.get("min.insync.replicas", 1))


def _names(topics: Sequence[Topic]) -> list[str]:
    return [topic.name for topic in topics]
