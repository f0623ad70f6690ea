import json

import pytest

from logtool.formats import quorum_state

V0 = {
    "clusterId": "",
    "leaderId": 1,
    "leaderEpoch": 2,
    "votedId": -1,
    "appliedOffset": 0,
    "currentVoters": [{"voterId": 1}, {"voterId": 2}],
    "data_version": 0,
}
V1 = {
    "leaderId": -1,
    "leaderEpoch": 2,
    "votedId": 1,
    "votedDirectoryId": "J8aAPcfLQt2bqs1JT_rMgQ",
    "data_version": 1,
}


def written(state: dict[str, object], **changes: object) -> bytes:
    return json.dumps(state | changes).encode()


def found_in(data: bytes) -> list[str]:
    state = quorum_state.parse(data)
    return [found.code for found in quorum_state.check(state)]


def test_version_0_is_read() -> None:
    state = quorum_state.parse(written(V0))
    assert (state.data_version, state.leader_id, state.leader_epoch) == (0, 1, 2)
    assert (state.voted_id, state.voted_directory_id) == (-1, None)
    assert state.current_voters == (1, 2)


def test_version_1_is_read() -> None:
    state = quorum_state.parse(written(V1))
    assert (state.data_version, state.leader_id, state.leader_epoch) == (1, -1, 2)
    assert (state.voted_id, state.voted_directory_id) == (1, "J8aAPcfLQt2bqs1JT_rMgQ")
    assert state.current_voters is None


@pytest.mark.parametrize(
    "data",
    [
        written(V0),
        written(V1),
        written(V0, currentVoters=None),
        written(V0, currentVoters=[]),
        written(V1, unknown=[1]),
        written(V1) + b"\nanything",
    ],
)
def test_a_sound_state_has_no_findings(data: bytes) -> None:
    assert found_in(data) == []


@pytest.mark.parametrize("state", [V0, V1])
def test_every_key_is_mandatory(state: dict[str, object]) -> None:
    for key in state:
        rest = {other: value for other, value in state.items() if other != key}
        rule = "version" if key == "data_version" else "malformed"
        assert found_in(written(rest)) == [f"quorum-state/{rule}"]


@pytest.mark.parametrize("state", [V0, V1])
def test_a_missing_version_is_the_only_missing_key_that_is_an_io_error(
    state: dict[str, object],
) -> None:
    assert quorum_state.refusal(quorum_state.parse(written(state))) is None
    for key in state:
        rest = {other: value for other, value in state.items() if other != key}
        refusal = quorum_state.refusal(quorum_state.parse(written(rest)))

        assert refusal.is_io_error == (key == "data_version")


@pytest.mark.parametrize(
    ("damaged", "code"),
    [
        (b"", "malformed"),
        (b"\n" + written(V1), "malformed"),
        (written(V1)[:-1], "malformed"),
        (b"\xff" + written(V1), "malformed"),
        (b"[]", "malformed"),
        (b"[" * 100_000, "malformed"),
        (written(V1, data_version=2), "version"),
        (written(V1, data_version="1"), "version"),
        (written(V1, data_version=[[1]]), "version"),
        (written(V1, leaderId="1"), "malformed"),
        (written(V1, leaderEpoch=2**31), "malformed"),
        (written(V1, votedId=True), "malformed"),
        (written(V1, votedDirectoryId="short"), "malformed"),
        (written(V0, clusterId=None), "malformed"),
        (written(V0, appliedOffset=0.5), "malformed"),
        (written(V0, currentVoters=[{"voterId": 1}, {}]), "malformed"),
        (written(V0, currentVoters=[1]), "malformed"),
        (written(V0, currentVoters={}), "malformed"),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: bytes, code: str) -> None:
    assert found_in(damaged) == [f"quorum-state/{code}"]


def test_a_message_says_what_was_expected_and_found() -> None:
    messages = [
        found.message
        for found in quorum_state.check(quorum_state.parse(written(V1, leaderId=[], votedId="x")))
    ]
    for message, parts in zip(messages, (("leaderId", "list"), ("votedId", "'x'")), strict=True):
        assert message.startswith("line 1: ")
        assert [part for part in ("int32", *parts) if part not in message] == []
