"""The state machine of replication: the numbers of the literature, and what holds for any schedule.

What is called the article is "关于Kafka high watermark的讨论2" (huxihx, 2018).
"""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.commands.views.watermark_tables import STATE, VERDICT
from logtool.errors import UsageError
from logtool.watermark.simulation import consumer, scenario
from logtool.watermark.simulation.producer import Acks, ProduceAnswer
from logtool.watermark.simulation.scenario import ScenarioEvent
from logtool.watermark.simulation.state_machine import (
    ImpossibleError,
    Occasion,
    Replication,
    TruncationRule,
)

EPOCHS, WATERMARKS = TruncationRule.LEADER_EPOCH, TruncationRule.HIGH_WATERMARK


def offsets(one: Replication, node: int) -> tuple[int, int]:
    """Return (log end, high watermark) of a replica."""
    return one.nodes[node].log_end, one.nodes[node].high_watermark


def played(name: str, rule: TruncationRule | None = None) -> tuple[list[Any], dict[str, Any]]:
    """Return the states behind each event of a scenario that comes along, and its verdict."""
    states, last = [], None
    for last in scenario.play(scenario.read(name), rule):
        states.append([STATE.row(one) for one in last.states()])
    assert last
    return states, VERDICT.row(scenario.verdict(last.replicas))


# The article


def test_the_walk_through_of_the_article_takes_two_rounds() -> None:
    states, verdict = played("walk-through")
    reported = [
        (leader["log_end_offset"], follower["remote_log_end_offset"], leader["high_watermark"],
         follower["log_end_offset"], follower["high_watermark"])
        for leader, follower in states
    ]  # fmt: skip
    assert reported == [(0, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 1, 0), (1, 1, 1, 1, 1)]
    assert verdict["committed_offset"] == 1


def test_bounds_are_exclusive() -> None:
    """Ten records have offsets 0 to 9, and the log ends at 10; the next one is at 10."""
    one = Replication([1, 2], 1)
    one.produce([f"m{number}" for number in range(10)])
    assert offsets(one, 1) == (10, 0)
    one.produce(["next"])
    assert one.nodes[1].log[10].name == "next"
    one.fetch(2, most=8)
    one.fetch(2, most=0)
    # For offsets 0 to 7 to be committed the high watermark is 8.
    assert offsets(one, 1) == (11, 8)
    assert [record.name for record in one.committed] == [f"m{number}" for number in range(8)]


def test_there_are_four_occasions_to_raise_the_high_watermark() -> None:
    one = Replication([1, 2], 1, lag_ms=100)
    assert one.tries.pop() == (Occasion.LEADER, 0, 0)
    one.produce(["a"])
    assert one.tries.pop() == (Occasion.PRODUCE, 0, 0)
    one.fetch(2)
    assert one.tries.pop() == (Occasion.FETCH, 0, 0)
    one.fetch(2)
    assert one.tries.pop() == (Occasion.FETCH, 0, 1)
    one.produce(["b"])
    one.crash(2)
    assert one.tries.pop() == (Occasion.PRODUCE, 1, 1)
    one.notice(2)
    assert one.tries.pop() == (Occasion.SHRINK, 1, 2)
    one.produce(["c"])
    assert one.tries.pop() == (Occasion.PRODUCE, 2, 3)
    assert not one.tries


def test_a_leader_that_knows_nothing_of_its_followers_yet_raises_nothing() -> None:
    one = Replication([1, 2], 1)
    one.produce(["a"])
    one.fetch(2)
    one.elect(2)
    assert one.tries[-1] == (Occasion.LEADER, 0, 0)
    assert one.remote[1].log_end is None
    one.fetch(1)
    assert offsets(one, 2) == (1, 1)


def test_a_follower_never_takes_a_high_watermark_beyond_its_own_log_end() -> None:
    one = Replication([1, 2, 3], 1)
    one.produce(["a", "b", "c"])
    for node in (2, 3, 2):
        one.fetch(node)
    one.crash(3, unflushed=2)
    one.restart(3)
    assert offsets(one, 3) == (1, 0)
    one.fetch(3, most=1)
    assert offsets(one, 3) == (2, min(2, offsets(one, 1)[1]))


# In sync or not


def test_a_follower_that_does_not_catch_up_in_time_is_put_out_of_sync() -> None:
    one = Replication([1, 2, 3], 1, lag_ms=100)
    one.produce(["a"])
    one.fetch(2)
    one.fetch(2)
    one.wait(100)
    assert one.in_sync == [1, 2, 3]
    one.wait(1)
    assert one.in_sync == [1, 2]
    # Who has all that there is stays, however long it is quiet.
    one.wait(1000)
    assert one.in_sync == [1, 2]
    assert offsets(one, 1) == (1, 1)


def test_fetching_without_catching_up_is_not_enough() -> None:
    one = Replication([1, 2], 1, lag_ms=100)
    one.produce(["a"] * 100)
    for _ in range(11):
        one.fetch(2, most=1)
        one.produce(["b"])
        one.wait(10)
    assert one.in_sync == [1]


def test_having_what_there_was_at_the_fetch_before_counts_as_caught_up() -> None:
    """So a follower keeps in sync with a leader that never stops writing."""
    one = Replication([1, 2], 1, lag_ms=100)
    for _ in range(20):
        one.produce(["a"])
        one.fetch(2)
        one.wait(45)
    assert one.in_sync == [1, 2]


def test_a_follower_is_in_sync_again_once_it_has_all_that_is_committed() -> None:
    one = Replication([1, 2], 1, lag_ms=100)
    one.produce(["a", "b"])
    one.wait(101)
    assert (one.in_sync, offsets(one, 1)) == ([1], (2, 2))
    one.fetch(2, most=1)
    one.fetch(2, most=1)
    assert one.in_sync == [1]
    one.fetch(2)
    assert one.in_sync == [1, 2]


def test_a_follower_that_may_join_any_time_already_holds_the_high_watermark_back() -> None:
    """The second condition of the article: it has caught up, but is not in sync yet.

    Here a follower that lacks what the new leader found cannot join, although it is at the high
    watermark, and was at the leader's end only a moment ago.
    """
    one = Replication([1, 2], 1, lag_ms=100)
    one.produce(["a"])
    one.wait(101)
    one.fetch(2)
    one.fetch(2)
    one.in_sync.remove(2)
    one.produce(["b"])
    assert offsets(one, 1) == (2, 1)
    one.wait(101)
    one.produce(["c"])
    assert offsets(one, 1) == (3, 3)


def test_below_the_least_number_in_sync_nothing_is_committed() -> None:
    one = Replication([1, 2], 1, min_in_sync=2)
    one.produce(["a"])
    one.crash(2)
    one.notice(2)
    assert (one.in_sync, offsets(one, 1)) == ([1], (1, 0))


def test_no_more_need_be_in_sync_than_there_are_replicas() -> None:
    one = Replication([1], 1, min_in_sync=3)
    one.produce(["a"], acks=Acks.ALL)
    assert (offsets(one, 1), one.requests[0].answer) == ((1, 1), ProduceAnswer.ACKNOWLEDGED)


def test_a_dead_leader_is_replaced_by_one_in_sync() -> None:
    one = Replication([1, 2, 3], 1)
    one.crash(1)
    with pytest.raises(ImpossibleError, match="1 is down"):
        one.produce(["a"])
    one.notice(1)
    assert (one.leader, one.epoch, one.in_sync) == (2, 1, [2, 3])
    one.crash(2)
    one.crash(3)
    one.notice(3)
    one.notice(2)
    assert (one.leader, one.in_sync) == (None, [2])
    with pytest.raises(ImpossibleError, match="3 is down"):
        one.elect(3)
    one.restart(3)
    with pytest.raises(ImpossibleError, match="3 is not in sync"):
        one.elect(3)
    one.elect(3, unclean=True)
    assert (one.leader, one.in_sync) == (3, [3])


# KIP-101


def test_kip_101_loses_a_committed_record_by_high_watermark_and_keeps_it_by_epoch() -> None:
    states, verdict = played("kip-101-loss")
    assert (verdict["truncation"], verdict["committed_offset"]) == ("high-watermark", 2)
    assert verdict["lost_offsets"] == [1]
    restarted = next(s for s in states if s[0]["event"] == "restart 1")[0]
    assert (restarted["log_end_offset"], restarted["high_watermark"]) == (1, 1)
    assert states[-1][0]["records"] == "m1"
    states, verdict = played("kip-101-loss", EPOCHS)
    assert (verdict["lost_offsets"], verdict["diverged"]) == ([], [])
    assert states[-1][0]["records"] == "m1 m2"


def test_kip_101_lets_logs_diverge_by_high_watermark_and_not_by_epoch() -> None:
    states, verdict = played("kip-101-divergence")
    assert verdict["diverged"] == [{"node": 1, "from_offset": 1}]
    assert [one["records"] for one in states[-1]] == ["m1 m2", "m1 m3"]
    states, verdict = played("kip-101-divergence", EPOCHS)
    assert verdict["diverged"] == []
    assert [one["records"] for one in states[-1]] == ["m1 m3", "m1 m3"]
    # Both replicas were lost at once, one with unflushed records: that is not survived.
    assert verdict["lost_offsets"] == [1]


# Any schedule

CHOICES = ("produce", "fetch", "fetch", "fetch", "lost", "few", "crash", "restart", "notice",
           "elect", "wait", "checkpoint")  # fmt: skip


def random_event(draw: random.Random, number: int) -> ScenarioEvent:
    """Return some event; it may be one that cannot happen."""
    name = draw.choice(CHOICES)
    node = draw.choice((1, 2, 3))
    if name == "produce":
        return ScenarioEvent(name, [f"m{number}"], {})
    if name == "wait":
        return ScenarioEvent(name, draw.choice((10, 101)), {})
    if name == "lost":
        return ScenarioEvent("fetch", node, {"response": "lost"})
    return (
        ScenarioEvent("fetch", node, {"most": 1})
        if name == "few"
        else ScenarioEvent(name, node, {})
    )


def check(one: Replication, before: tuple[int | None, int, int]) -> None:
    """Hold the state behind an event against what must always be."""
    assert all(node.high_watermark <= node.log_end for node in one.nodes.values())
    if one.leader is None or not one.nodes[one.leader].up:
        return
    watermark = one.nodes[one.leader].high_watermark
    assert watermark <= min(one.nodes[node].log_end for node in one.in_sync)
    if before[:2] == (one.leader, one.epoch):
        assert watermark >= before[2]
    assert one.lost() == []
    assert one.diverged() == {}


def leading(one: Replication) -> tuple[int | None, int, int]:
    watermark = 0 if one.leader is None else one.nodes[one.leader].high_watermark
    return one.leader, one.epoch, watermark


@given(st.randoms(use_true_random=False), st.booleans(), st.sampled_from([1, 2]))
def test_by_leader_epoch_committed_records_survive_any_schedule(
    draw: random.Random, checkpoints: bool, min_in_sync: int
) -> None:
    """Holds if leaders are in sync, and no crash loses written records."""
    one = Replication([1, 2, 3], 1, lag_ms=100, checkpoints=checkpoints, min_in_sync=min_in_sync)
    for number in range(80):
        before = leading(one)
        try:
            scenario.happen(one, random_event(draw, number))
        except ImpossibleError:
            continue
        check(one, before)


def test_by_high_watermark_some_schedule_loses_a_committed_record() -> None:
    found = set()
    for seed in range(200):
        draw = random.Random(seed)
        one = Replication([1, 2, 3], 1, rule=WATERMARKS, lag_ms=100)
        for number in range(80):
            try:
                scenario.happen(one, random_event(draw, number))
            except ImpossibleError:
                continue
            found |= {"lost"} if one.lost() else set()
            found |= {"diverged"} if one.diverged() else set()
    assert "lost" in found


@given(st.randoms(use_true_random=False))
def test_without_failures_both_rules_do_the_same(draw: random.Random) -> None:
    both = [Replication([1, 2, 3], 1, rule=rule, lag_ms=100) for rule in TruncationRule]
    for number in range(60):
        event = random_event(draw, number)
        if event.name in ("produce", "fetch", "wait"):
            for one in both:
                if event.value != one.leader:
                    scenario.happen(one, event)
    assert [(n.log, n.high_watermark) for n in both[0].nodes.values()] == [
        (n.log, n.high_watermark) for n in both[1].nodes.values()
    ]


# Consumers and producers


def test_what_consumers_see_never_ends_behind_a_bound_and_never_shrinks() -> None:
    for seed in range(60):
        draw = random.Random(seed)
        one = Replication([1, 2], 1, min_in_sync=draw.choice([1, 2]))
        seen: list[str] = []
        for number in range(40):
            opened = sorted(consumer.open_transactions(one.nodes[1].log))
            kind = draw.choice(["produce", "transaction", "decide", "fetch", "fetch"])
            if kind == "decide" and opened:
                draw.choice([one.commit, one.abort])(draw.choice(opened))
            elif kind == "fetch":
                one.fetch(2, most=draw.choice([None, 1]))
            else:
                name = draw.choice("st") if kind == "transaction" else ""
                one.produce([str(number)], transaction=name, acks=draw.choice([None, *Acks]))
            leader = one.nodes[1]
            mark = leader.high_watermark
            stable = consumer.last_stable_offset(leader.log, mark)
            uncommitted = consumer.read_uncommitted(leader.log, mark)
            committed = consumer.read_committed(leader.log, mark)
            assert 0 <= stable <= mark <= leader.log_end
            assert [name for name in uncommitted if name in committed] == committed
            assert committed[: len(seen)] == seen
            assert all(offset >= stable for offset in consumer.open_transactions(
                leader.log[:mark]).values())  # fmt: skip
            waiting = [one for one in one.requests if one.answer is None]
            assert all(request.end > mark and request.acks == "all" for request in waiting)
            seen = committed


def test_another_leader_gives_the_producers_of_the_old_one_an_error() -> None:
    one = Replication([1, 2], 1)
    one.produce(["a"], acks=Acks.ALL)
    one.elect(2)
    assert [request.answer for request in one.requests] == [ProduceAnswer.NOT_LEADER]


def test_what_a_leader_lacks_of_a_high_watermark_at_the_start_is_lost() -> None:
    one = Replication([1, 2], 1)
    one.begin_with({1: (3, 3, None), 2: (5, 4, None)})
    assert (len(one.committed), one.lost()) == (4, [3])


# The language

HEAD = "replicas = [1, 2]\nleader = 1\n"
WRONG = {
    "no TOML": ("replicas = [", "Invalid value"),
    "a part that is missing": ("replicas = [1]\nleader = 1\n", "events"),
    "a setting that does not exist": (HEAD + "events = []\nspeed = 1\n", "speed"),
    "a setting of another kind": (HEAD + 'events = "x"\n', "events.*list"),
    "a leader from nowhere": ("replicas = [1]\nleader = 2\nevents = []\n", "leader 2"),
    "a replica twice": ("replicas = [1, 1]\nleader = 1\nevents = []\n", "numbers"),
    "a rule that does not exist": (HEAD + 'events = []\ntruncation = "no"\n', "high"),
    "an unknown event": (HEAD + "events = [3]\n", "event 1.*3"),
    "an event without a name": (HEAD + "events = [{ most = 1 }]\n", "event 1"),
    "two events in one": (HEAD + "events = [{ fetch = 2, crash = 1 }]\n", "event 1"),
    "an event of a stranger": (HEAD + "events = [{ crash = 7 }]\n", "7"),
    "an option of another event": (HEAD + "events = [{ wait = 1, most = 1 }]\n", "most"),
    "an unknown answer": (HEAD + 'events = [{ fetch = 2, response = "x" }]\n', "response"),
    "a record without a name": (HEAD + "events = [{ produce = [1] }]\n", "quotes"),
    "unknown acks": (HEAD + 'events = [{ produce = ["a"], acks = "2" }]\n', "acks"),
    "a transaction without a name": (HEAD + 'events = [{ commit = "" }]\n', "name"),
    "a transaction that is not open": (HEAD + 'events = [{ abort = "t" }]\n', "open"),
    "a marker with too few in sync": (
        HEAD + "min_insync_replicas = 2\n"
        'events = [{ produce = ["a"], transaction = "t" }, { crash = 2 }, { notice = 2 },\n'
        '{ commit = "t" }]\n',
        "event 4, commit t",
    ),
    "a start of a stranger": (HEAD + "start = [{ replica = 3 }]\nevents = []\n", "3"),
    "a start that is no table": (HEAD + "start = [3]\nevents = []\n", "start.* 3"),
    "a high watermark beyond the end": (
        HEAD + "start = [{ replica = 1, log_end_offset = 3, high_watermark = 4 }]\nevents = []\n",
        "replica 1.*high_watermark",
    ),
    "a log that is too long": (
        HEAD + "start = [{ replica = 1, log_end_offset = 10001 }]\nevents = []\n", "<= 10000",
    ),
    "a negative number": (HEAD + "events = [{ wait = -1 }]\n", "negative"),
    "true for a number": (HEAD + "events = [{ wait = true }]\n", "wait"),
    "an event that cannot happen": (
        HEAD + "events = [{ crash = 1 }, { fetch = 2, most = 1 }]\n",
        "event 2, fetch 2, most 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_scenario_that_makes_no_sense_is_wrong_usage(name: str, tmp_path: Any) -> None:
    text, message = WRONG[name]
    path = tmp_path / "my.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        list(scenario.play(scenario.read(str(path))))


def test_a_scenario_that_is_not_there_names_those_that_are(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="kip-101-divergence, kip-101-loss, transactions"):
        scenario.read(str(tmp_path / "none.toml"))


@pytest.mark.parametrize("name", scenario.shipped())
def test_every_scenario_that_comes_along_says_what_it_shows(name: str) -> None:
    one = scenario.read(name)
    assert one.title
    assert len(one.about) > 100
