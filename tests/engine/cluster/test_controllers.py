"""The controllers that may win an election, by the copies of the metadata log that were given."""

from pathlib import Path

import pytest
from metadata_logs import NO_OP, data, log_dir, static, voters_batch

from logtool.cluster.controllers import Controllers, elect
from logtool.log.inputs import NodeDir
from logtool.quorum.copy import MetadataCopy, read
from logtool.quorum.verdict import judge
from logtool.running.run import Run

BEGIN = voters_batch(0, (1, 2, 3))
"""Offsets 0 and 1."""
TABLE: dict[str, tuple[dict[int, tuple[int, ...]], tuple[int, ...], bool]] = {
    "all are equal": ({1: (5,), 2: (5,), 3: (5,)}, (1, 2, 3), True),
    "one is ahead": ({1: (9,), 2: (5,), 3: (5,)}, (1, 2, 3), False),
    "one is behind": ({1: (9,), 2: (7,), 3: (5,)}, (1, 2), False),
    "two are ahead": ({1: (9,), 2: (9,), 3: (5,)}, (1, 2), True),
    "one is missing": ({1: (5,), 3: (9,)}, (3,), True),
    "two are missing": ({3: (9,)}, (), False),
    "a newer epoch counts before a longer log": ({1: (9,), 2: (3, 5), 3: (4,)}, (2, 1), False),
    "an observer has no vote": ({1: (5,), 2: (5,), 7: (9,)}, (1, 2), True),
}
"""Ends of the logs by node, each in a leader epoch of its own; who may win; whether it is sure."""


def elected(home: Path, ends: dict[int, tuple[int, ...]], wanted: int | None = None) -> Controllers:
    dirs = []
    for node, parts in ends.items():
        batches, start = [BEGIN], 2
        for epoch, end in enumerate(parts, 1):
            batches.append(data(start, *[NO_OP] * (end - start), epoch=epoch))
            start = end
        dirs.append(NodeDir(log_dir(home, node, *batches)))
    copies = list(read(dirs, Run()))
    return elect(judge([one for one in copies if isinstance(one, MetadataCopy)]), wanted)


@pytest.mark.parametrize("name", TABLE)
def test_who_may_win_is_who_is_not_behind_a_majority(name: str, tmp_path: Path) -> None:
    ends, winners, is_sure = TABLE[name]
    found = elected(tmp_path, ends)
    assert set(found.nodes) == set(winners)
    assert found.nodes[:1] == winners[:1]
    assert (found.has_majority, found.is_sure) == (bool(winners), is_sure)
    assert found.voters == (1, 2, 3)


def test_the_image_is_that_of_a_voter_even_if_a_broker_is_ahead(tmp_path: Path) -> None:
    found = elected(tmp_path, {1: (5,), 2: (5,), 3: (5,), 7: (9,)})
    assert (found.leader.node, found.leader.log_end, found.behind) == (1, 5, 4)
    assert found.image is not None
    assert found.image.offset == 5
    assert found.is_wrong
    assert found.command.startswith("logtool quorum ")


def test_the_copy_of_a_broker_never_leads_without_a_majority(tmp_path: Path) -> None:
    found = elected(tmp_path, {2: (5,), 7: (9,)})
    assert (found.leader.node, found.may_win, found.behind) == (2, (), 4)
    assert found.quorum.copying
    alone = elected(tmp_path / "alone", {7: (9,)})
    assert alone.leader.node == 7  # all that is known


def test_the_voters_of_a_static_quorum_are_those_of_the_controller_that_was_changed(
    tmp_path: Path,
) -> None:
    one = log_dir(tmp_path, 2, data(0, NO_OP), state=static(2, epoch=2))
    broker = log_dir(tmp_path, 7, data(0, NO_OP), data(1, NO_OP), state=static(1, 2, 3))
    copies = list(read([NodeDir(one), NodeDir(broker)], Run()))
    found = elect(judge([one for one in copies if isinstance(one, MetadataCopy)]))
    assert (found.voters, found.nodes, found.leader.node, found.behind) == ((2,), (2,), 2, 1)


@pytest.mark.parametrize(
    ("ends", "wanted", "leader"),
    [
        ({1: (9,), 2: (9,), 3: (5,)}, 2, 2),
        ({1: (9,), 2: (9,), 3: (5,)}, 3, 3),
        ({1: (9,), 2: (9,), 7: (9,)}, 7, 1),
        ({1: (9,), 2: (9,)}, 3, 1),
        ({2: (5,), 7: (9,)}, 2, 2),
        ({2: (5,), 7: (9,)}, 7, 2),
    ],
)
def test_the_controller_that_is_wanted_leads_or_it_is_said_why_not(
    tmp_path: Path, ends, wanted, leader
) -> None:
    found = elected(tmp_path, ends, wanted)
    assert found.leader.node == leader
    assert (found.not_assumed is None) == (leader == wanted)
    assert (found.unlikely is None) == (wanted != 3 or leader == 1)


def test_without_a_majority_the_longest_copy_shows_what_was_known(tmp_path: Path) -> None:
    found = elected(tmp_path, {2: (7,)})
    assert (found.leader.node, found.may_win, found.has_majority) == (2, (), False)
    assert found.quorum.missing_nodes == (1, 3)
    assert found.is_wrong
