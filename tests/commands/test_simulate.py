"""``logtool watermark simulate``: every number of the article on high watermark and log end offset.

A produce request, a fetch request and a fetch response are followed step by step.
"""

import pytest
from answers import assert_valid

PARTS = {
    "produce": "produce request at the leader",
    "fetch": "fetch request at the leader",
    "response": "fetch response at the follower",
}
DOES = {
    "offset": "fetch offset of the request",
    "write": "write to the log",
    "leo": "log end offset",
    "remote leo": "remote log end offset",
    "hw": "high watermark",
    "hw sent": "high watermark in the response",
    "answer": "answer to the producer",
}
"""Short names in these tests for the values of ``part`` and ``does``."""


def simulated(run, scenario, *words):
    result = run("watermark", "simulate", scenario, *words, "-f", "ndjson")
    assert_valid("watermark", result.objects)
    return result


def by_step(objects):
    steps = {}
    for one in objects:
        steps.setdefault(one["step"], []).append(one)
    return steps


def short(one):
    """Return the part of a request and what is done, by their short names."""
    names = {long: name for table in (PARTS, DOES) for name, long in table.items()}
    return names[one["part"]], names[one["does"]]


STEPS = {
    1: [
        ("produce", "write", 1, None, None, "m0"),
        ("produce", "leo", 1, 0, 1, ""),
        ("produce", "hw", 1, 0, 0, ""),  # not yet
        ("produce", "answer", 1, None, 1, "m0"),  # "acks=1: it returns"
    ],
    2: [
        ("fetch", "offset", 2, None, 0, ""),
        ("fetch", "remote leo", 2, 0, 0, ""),
        ("fetch", "hw", 1, 0, 0, ""),
        ("fetch", "hw sent", 1, None, 0, "m0"),
        ("response", "write", 2, None, None, "m0"),
        ("response", "leo", 2, 0, 1, ""),
        ("response", "hw", 2, 0, 0, ""),
    ],
    3: [
        ("fetch", "offset", 2, None, 1, ""),
        ("fetch", "remote leo", 2, 0, 1, ""),
        ("fetch", "hw", 1, 0, 1, ""),
        ("fetch", "hw sent", 1, None, 1, ""),
        ("response", "leo", 2, 1, 1, ""),
        ("response", "hw", 2, 0, 1, ""),
    ],
}
"""By step: part, what is done, node, the offset before and after, records."""


def test_a_produce_and_two_fetches_move_leo_and_hw_in_the_order_of_the_article(run):
    objects = simulated(run, "walk-through", "--steps").of_type("substep")
    names = ("node", "before", "after", "records")
    assert {
        step: [(*short(one), *(one[name] for name in names)) for one in ones]
        for step, ones in by_step(objects).items()
    } == STEPS


def test_the_hw_of_a_follower_is_the_lesser_of_its_leo_and_that_of_the_response(run, tmp_path):
    path = tmp_path / "far-behind.toml"
    path.write_text(
        "replicas = [1, 2, 3]\nleader = 1\nreplica_lag_time_max_ms = 10\nevents = [\n"
        "{ wait = 11 }, { produce = ['a', 'b', 'c'] }, { wait = 11 }, { fetch = 2, most = 1 },\n"
        "{ fetch = 2, response = 'lost' },\n]\n"
    )
    steps = by_step(simulated(run, path, "--steps").of_type("substep"))
    after = {short(one): one["after"] for one in steps[4]}
    assert after["fetch", "hw sent"] == 3
    assert after["response", "leo"] == after["response", "hw"] == 1
    assert {short(one)[0] for one in steps[5]} == {"fetch"}


def test_without_steps_only_the_states_are_shown(run):
    assert simulated(run, "walk-through").of_type("substep") == []
    words = ("watermark", "simulate", "walk-through")
    assert len(run(*words, "--steps").lines) > len(run(*words).lines)
    assert len(run(*words, "--steps", "-f", "csv").lines) == 1 + 17 + 8


FIGURES = {
    # The four figures of the example: at the start, after the produce, after each of two fetches.
    "walk-through": ["1:0/-/0 2:0/0/0", "1:1/-/0 2:0/0/0", "1:1/-/0 2:1/0/0", "1:1/-/1 2:1/1/1"],
    # The corrected figure: high watermark 8, log end 15; then "the LEO is updated to" one more.
    "bounds-are-exclusive": ["1:15/-/8 2:8/8/8", "1:16/-/8 2:8/8/8"],
    "four-occasions": [
        "1:0/-/0 2:0/0/0 3:0/0/0", "1:1/-/0 2:0/0/0 3:0/0/0", "1:1/-/0 2:1/0/0 3:0/0/0",
        "1:1/-/0 2:1/0/0 3:1/0/0", "1:1/-/0 2:1/1/0 3:1/0/0", "1:1/-/1 2:1/1/0 3:1/1/1",
        "1:2/-/1 2:1/1/0 3:1/1/1", "1:2/-/1 2:2/1/1 3:1/1/1", "1:2/-/1 2:2/2/1 3:1/1/1",
        "1:2/-/1 2:2/2/1 3:1/1/0", "1:2/-/2 2:2/2/1 3:1/1/0", "1:2/-/2 2:2/2/0 3:1/1/0",
        "1:2/-/2 2:2/2/0 3:1/1/0", "1:3/-/3 2:2/2/0 3:1/1/0", "1:3/-/0 2:2/2/0 3:1/1/0",
        "1:3/-/3 2:2/-/0 3:1/-/0",
    ],
    "caught-up-not-in-sync": [
        "1:0/-/0 2:0/0/0 3:0/0/0", "1:2/-/0 2:0/0/0 3:0/0/0", "1:2/-/0 2:2/0/0 3:0/0/0",
        "1:2/-/0 2:2/2/0 3:0/0/0", "1:2/-/2 2:2/2/0 3:0/0/0", "1:2/-/2 2:2/2/0 3:2/0/2",
        "1:3/-/2 2:2/2/0 3:2/0/2", "1:3/-/2 2:3/2/2 3:2/0/2", "1:3/-/3 2:3/3/3 3:2/0/2",
        "1:3/-/3 2:3/3/3 3:3/2/3", "1:4/-/3 2:3/3/3 3:3/2/3", "1:4/-/3 2:4/3/3 3:3/2/3",
        "1:4/-/3 2:4/4/3 3:3/2/3", "1:4/-/3 2:4/4/3 3:4/3/3", "1:4/-/4 2:4/4/3 3:4/4/4",
    ],
}  # fmt: skip
"""By scenario, for each step: replica, log end, what the leader knows of that, high watermark."""


def states_of(run, scenario):
    steps = by_step(simulated(run, scenario).of_type("state"))
    return [steps[number] for number in sorted(steps)]


@pytest.mark.parametrize("name", FIGURES)
def test_every_number_of_the_figures_of_the_article(run, name):
    def offsets_of(one):
        known = one["remote_log_end_offset"]
        known = "-" if known is None else known
        return f"{one['node']}:{one['log_end_offset']}/{known}/{one['high_watermark']}"

    assert [" ".join(map(offsets_of, step)) for step in states_of(run, name)] == FIGURES[name]


def test_messages_below_the_hw_are_backed_up_and_that_at_the_hw_cannot_be_consumed(run):
    before, after = (step[0] for step in states_of(run, "bounds-are-exclusive"))
    assert before["records"] == " ".join(map(str, range(15)))
    assert before["read_uncommitted"] == "0 1 2 3 4 5 6 7"
    assert after["records"] == " ".join(map(str, range(16)))  # "its offset is" the old log end
    assert after["read_uncommitted"] == before["read_uncommitted"]


def test_read_uncommitted_is_limited_to_the_hw_and_read_committed_to_the_last_stable_offset(run):
    steps = [step[0] for step in states_of(run, "transactions")]
    assert [one["last_stable_offset"] for one in steps] == [0, 0, 0, 0, 0, 0, 1, 1, 1, 5]
    assert [one["high_watermark"] for one in steps] == [0, 0, 0, 0, 0, 0, 4, 4, 4, 5]
    assert [steps[6][name] for name in ("read_uncommitted", "read_committed")] == ["a b c", "a"]
    assert [steps[9][name] for name in ("read_uncommitted", "read_committed")] == ["a b c", "a c"]


def test_the_hw_of_the_leader_is_tried_on_four_occasions_and_each_of_them_raises_it(run):
    raised, before = set(), 0
    for step in states_of(run, "four-occasions"):
        (mark, looked_at) = step[0]["high_watermark"], step[0]["looked_at"]
        raised |= {looked_at} if mark > before else set()
        before = mark
    assert raised == {"became leader", "in-sync replicas shrank", "produce", "fetch"}


def test_a_replica_that_has_caught_up_but_is_not_in_the_isr_still_holds_the_hw_back(run):
    steps = states_of(run, "caught-up-not-in-sync")
    leader, _, third = steps[12]  # the others are at 4
    assert (leader["high_watermark"], third["in_sync"]) == (3, False)
    assert [steps[13][2]["in_sync"], steps[14][0]["high_watermark"]] == [True, 4]


def answers(run, scenario):
    result = simulated(run, scenario)
    (verdict,) = result.of_type("verdict")
    found = [(o["step"], o["records"], o["acks"], o["answer"]) for o in result.of_type("answer")]
    return result.status, found, verdict


def test_with_acks_1_the_leader_returns_as_soon_as_it_has_written(run):
    status, found, _ = answers(run, "walk-through")
    assert (status, found) == (0, [(1, "m0", "1", "acknowledged")])
    status, found, verdict = answers(run, "acks-1-loss")
    assert (status, found) == (
        1, [(1, "m0", "1", "acknowledged"), (3, "m1", "all", "the leader is gone")],
    )  # fmt: skip
    assert (verdict["acknowledged_lost"], verdict["lost_offsets"]) == (["m0"], [])


def test_acks_all_waits_for_the_hw_and_needs_min_insync_replicas(run):
    status, found, verdict = answers(run, "acks")
    assert (status, verdict["waiting"]) == (0, [])
    assert found == [
        (1, "a", "0", "not awaited"),
        (2, "b", "1", "acknowledged"),
        (5, "c", "all", "acknowledged"),
        (9, "e", "all", "NOT_ENOUGH_REPLICAS"),
        (10, "f", "1", "acknowledged"),
        (13, "d", "all", "acknowledged"),
    ]
    leader = [step[0] for step in states_of(run, "acks")]
    assert leader[9]["records"] == "a b c d"  # e was not written
    assert (leader[10]["records"], leader[10]["high_watermark"]) == ("a b c d f", 3)
    assert leader[13]["answers"] == "d: acknowledged"


def test_a_simulation_may_begin_anywhere(run, tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(
        "replicas = [1, 2]\nleader = 1\nstart = [\n"
        "{ replica = 1, log_end_offset = 10, high_watermark = 6 },\n"
        "{ replica = 2, log_end_offset = 8, high_watermark = 6, remote_log_end_offset = 6 },\n"
        "]\nevents = [{ fetch = 2 }, { fetch = 2 }]\n"
    )
    figures = [
        [(one["log_end_offset"], one["remote_log_end_offset"], one["high_watermark"])
         for one in step]
        for step in states_of(run, path)
    ]  # fmt: skip
    assert figures == [
        [(10, None, 6), (8, 6, 6)], [(10, None, 8), (10, 8, 8)], [(10, None, 10), (10, 10, 10)],
    ]  # fmt: skip
