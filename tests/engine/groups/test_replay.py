"""The commits that count are those that their coordinator would load, record by record."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from group_records import OffsetsLog
from hypothesis import given
from hypothesis import strategies as st

from logtool.groups.commits import parse_commit_key
from logtool.groups.loading import LoadedGroups, load
from logtool.groups.membership import Memberships
from logtool.log import opening

Key = tuple[str, str, int]
KEYS: list[Key] = [("g", "t", 0), ("g", "t", 1), ("h", "t", 0)]


@dataclass
class Coordinator:
    """OffsetMetadataManager, as plainly as it can be said: the judge of the columns."""

    offsets: dict[Key, tuple[int, int]] = field(default_factory=dict)
    """Record offset and committed offset."""
    pending: dict[int, dict[Key, tuple[int, int]]] = field(default_factory=dict)

    def replay(self, at: int, producer_id: int, key: Key, offset: int | None) -> None:
        if offset is None:
            self.offsets.pop(key, None)
            for kept in self.pending.values():
                kept.pop(key, None)
        elif producer_id == -1:
            self.offsets[key] = at, offset
        else:
            self.pending.setdefault(producer_id, {})[key] = at, offset

    def end(self, producer_id: int, commit: bool) -> None:
        for key, (at, offset) in self.pending.pop(producer_id, {}).items():
            if commit and (key not in self.offsets or self.offsets[key][0] < at):
                self.offsets[key] = at, offset


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("commit"), st.sampled_from(KEYS), st.sampled_from([-1, -1, 7, 8]),
            st.one_of(st.none(), st.integers(0, 99)),
        ),
        st.tuples(st.just("end"), st.sampled_from([7, 8]), st.booleans()),
    ),
    max_size=40,
)  # fmt: skip


def loaded_of(log: OffsetsLog, home: Path) -> LoadedGroups:
    return load(opening.open_partition(log.write(home)), lambda _: None)


def committed(loaded: LoadedGroups, *, also_removed: bool = False) -> dict[Key, tuple[int, int]]:
    slots = loaded.slots
    return {
        parse_commit_key(slots.key(slot)): (int(slots.record_offset[slot]), int(slots.offset[slot]))
        for slot in range(len(slots))
        if slots.live[slot] or (also_removed and slots.record_offset[slot] >= 0)
    }


@given(steps=STEPS)
def test_commits_tombstones_and_transactions_in_any_order(
    steps: list[tuple], tmp_path_factory: pytest.TempPathFactory
) -> None:
    log, judge, of_last = OffsetsLog(), Coordinator(), Coordinator()
    newest: dict[Key, tuple[int, int]] = {}
    open_commits: dict[int, list[int]] = {}
    aborted: set[int] = set()
    for step in steps:
        if step[0] == "end":
            ended = open_commits.pop(step[1], [])
            aborted |= set() if step[2] else set(ended)
            log.end_transaction(step[1], commit=step[2])
            judge.end(step[1], step[2])
            of_last.end(step[1], step[2])
        else:
            _, key, producer_id, offset = step
            group, topic, number = key
            at = log.commit(group, topic, number, offset, producer_id=producer_id)
            judge.replay(at, producer_id, key, offset)
            if offset is not None:
                of_last.replay(at, producer_id, key, offset)
                newest[key] = at, offset
                open_commits.setdefault(producer_id, []).append(at)
    loaded = loaded_of(log, tmp_path_factory.mktemp("log"))
    assert committed(loaded) == judge.offsets
    assert committed(loaded, also_removed=True) == of_last.offsets
    slots = loaded.slots
    live = {
        parse_commit_key(slots.key(slot)): slot for slot in range(len(slots)) if slots.live[slot]
    }
    assert {key: slots.aborted_offset(slot) for key, slot in live.items()} == {
        key: newest[key][1] if newest[key][0] in aborted else None for key in live
    }
    pending = loaded.pending
    rows = pending.rows
    found: dict[tuple[int, Key], tuple[int, int]] = {}
    for row, producer_id in enumerate(pending.producer_id.tolist()):
        assert rows
        key = parse_commit_key(loaded.slots.key(int(rows.slot[row])))
        found[producer_id, key] = int(rows.record_offset[row]), int(rows.offset[row])
    assert found == {
        (producer_id, key): kept
        for producer_id, keys in judge.pending.items()
        for key, kept in keys.items()
    }


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_commit(tmp_path: Path, version: int) -> None:
    log = OffsetsLog()
    more = {"expireTimestamp": 99} if version == 1 else {}
    more |= {"leaderEpoch": 3} if version >= 3 else {}
    log.commit("g", "t", 0, 42, version=version, metadata="m\u00e9", **more)
    slots = loaded_of(log, tmp_path).slots
    assert (slots.offset[0], slots.leader_epoch[0]) == (42, 3 if version >= 3 else -1)
    assert slots.metadata == {0: "m\u00e9".encode()}
    assert slots.expire_timestamps == ({0: 99} if version == 1 else {})


def test_a_commit_of_kafka_0_8(tmp_path: Path) -> None:
    log = OffsetsLog()
    key = {"group": "g", "topic": "t", "partition": 5}
    log.add(0, key, {"offset": 9, "metadata": "", "commitTimestamp": 1})
    assert committed(loaded_of(log, tmp_path)) == {("g", "t", 5): (0, 9)}


def test_what_cannot_be_read_is_reported_and_the_rest_is_there(tmp_path: Path) -> None:
    log = OffsetsLog()
    log.commit("g", "t", 0, 1)
    log.raw(None, b"")
    log.raw(b"\0\1\0\1g", b"\0\0")
    log.raw(b"\0\x63\0\1g", b"\0\0")
    log.commit("g", "t", 1, 2)
    loaded = loaded_of(log, tmp_path)
    assert len(committed(loaded)) == 2
    assert [wrong.first_offset for wrong in loaded.wrong] == [1, 2]
    assert loaded.unknown_records == 1


def members(*records: tuple) -> Memberships:
    replayed = Memberships()
    for at, (kind, key, value) in enumerate(records):
        replayed.replay(kind, {"groupId": "g", **key}, value, at)
    return replayed


MEMBER = {
    "instanceId": None, "rackId": None, "clientId": "c", "clientHost": "/h",
    "subscribedTopicNames": ["t"], "subscribedTopicRegex": None,
}  # fmt: skip
ONE = {"memberId": "m"}
EPOCH, ASSIGNED = (3, {}, {"epoch": 4}), (6, {}, {"assignmentEpoch": 4})


def current(epoch: int, state: int = 0) -> tuple:
    topics = [{"topicId": "T", "partitions": [0]}]
    return 8, ONE, {"memberEpoch": epoch, "state": state, "assignedPartitions": topics}


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([EPOCH], "Empty"),
        ([(5, ONE, MEMBER), EPOCH], "Assigning"),
        ([(5, ONE, MEMBER), EPOCH, ASSIGNED], "Reconciling"),
        ([(5, ONE, MEMBER), EPOCH, ASSIGNED, current(3)], "Reconciling"),
        ([(5, ONE, MEMBER), EPOCH, ASSIGNED, current(4, 1)], "Reconciling"),
        ([(5, ONE, MEMBER), EPOCH, ASSIGNED, current(4)], "Stable"),
        ([(5, ONE, MEMBER), EPOCH, ASSIGNED, current(4), (8, ONE, None), (5, ONE, None)], "Empty"),
    ],
)
def test_states_of_a_consumer_group(records: list[tuple], state: str) -> None:
    assert members(*records).groups["g"].state == state


@pytest.mark.parametrize(("member_state", "state"), [(1, "Stable"), (2, "Reconciling")])
def test_a_member_of_a_streams_group_has_numbers_of_its_own(member_state: int, state: str) -> None:
    now = {"memberEpoch": 4, "state": member_state, "activeTasks": []}
    group = members(
        (17, {}, {"epoch": 4, "validatedTopologyEpoch": 1}),
        (19, ONE, {"clientId": "c", "clientHost": "h", "rackId": None}),
        (20, {}, {"assignmentEpoch": 4}),
        (22, ONE, now),
        (23, {}, {"epoch": 1, "subtopologies": []}),
    ).groups["g"]
    assert (group.type, group.state) == ("streams", state)


def test_owners_are_known_as_of_the_commit() -> None:
    group = members((5, ONE, MEMBER), current(4), (8, ONE, None)).groups["g"]
    assert [group.owner([("T", 0)], at) for at in (1, 2, 3)] == [None, "m", None]


def test_a_tombstone_removes_only_what_it_names() -> None:
    replayed = members((5, ONE, MEMBER), EPOCH, (5, {"memberId": "other"}, None))
    replayed.replay(3, {"groupId": "h"}, None, 9)
    assert list(replayed.groups["g"].members) == ["m"]
    replayed.replay(3, {"groupId": "g"}, None, 10)
    assert (replayed.groups, replayed.removed) == ({}, {"g": 10})
