"""The next leader of a partition, by the rules of eligible leader replicas."""

import pytest

from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.watermark.election import standings
from logtool.watermark.replica_group import Election

CLEAN, LAST, UNCLEAN = Election.CLEAN, Election.LAST_KNOWN_LEADER, Election.UNCLEAN
NODES = (1, 2, 3)
TABLE = {
    "all in sync": ((1, 2, 3), (), (), 1, {}, [CLEAN, CLEAN, CLEAN]),
    "one left the ISR for good": ((1, 2), (), (), 1, {}, [CLEAN, CLEAN, UNCLEAN]),
    "one is eligible": ((1,), (2,), (), 1, {}, [CLEAN, CLEAN, UNCLEAN]),
    "no replica in sync, two eligible": ((), (1, 2), (1,), -1, {}, [CLEAN, CLEAN, UNCLEAN]),
    "one of them was killed":
        ((), (1, 2), (1,), -1, {1: True, 2: False}, [UNCLEAN, CLEAN, UNCLEAN]),
    "all of them were killed":
        ((), (1, 2), (1,), -1, {1: True, 2: True}, [LAST, UNCLEAN, UNCLEAN]),
    "no replica is left": ((), (), (2,), -1, {}, [UNCLEAN, LAST, UNCLEAN]),
    "the leader was killed with all in sync":
        ((1,), (), (), 1, {1: True}, [LAST, UNCLEAN, UNCLEAN]),
    "both in sync were killed":
        ((1, 2), (), (), 1, {1: True, 2: True}, [LAST, LAST, UNCLEAN]),
    "without ELR a kill changes nothing": ((1,), (), (), 1, {}, [CLEAN, UNCLEAN, UNCLEAN]),
    "the last leader is unknown": ((), (), (), -1, {}, [UNCLEAN, UNCLEAN, UNCLEAN]),
}  # fmt: skip
"""ISR, ELR, last known ELR, leader, who was stopped unclean; and how each of three may lead."""


@pytest.mark.parametrize("name", TABLE)
def test_who_may_lead_is_what_the_record_and_the_markers_say(name):
    isr, elr, last, leader, stops, expected = TABLE[name]
    known = PartitionRecord("id", 0, NODES, isr, leader, 5, 9, (), elr, last)
    found = standings(known, NODES, stops)
    assert [one.election for one in found] == expected
    assert [one.loses_it for one in found] == [bool(stops.get(node)) for node in NODES]
