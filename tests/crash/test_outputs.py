"""Every command with --output, killed or out of room: a part of ``make outputs-killed``."""

import random

import pytest
from crash.outputs import OUTPUTS, OutputCommand, sweep

# From Python 3.12 on; the child only does what is tested here, and no thread is waited for.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
SHORT = ("case", "salvage, Redpanda", "gaps", "rebuild-index", "convert to Redpanda")


@pytest.mark.parametrize(
    ("name", "moments"),
    [pytest.param(name, 3) if name in SHORT else pytest.param(name, 8, marks=pytest.mark.long)
     for name in OUTPUTS],
)  # fmt: skip
def test_nothing_incomplete_has_a_final_name(scenario, tmp_path, name, moments):
    command = OutputCommand(OUTPUTS[name], scenario("4.3.1/killed"), tmp_path)
    draw = random.Random(name)
    chosen = sorted(draw.sample(range(1, command.calls), min(moments, command.calls - 1)))
    tally = sweep(command, [*chosen, command.calls], draw)
    assert tally.problems == []
    assert tally.kills >= 2 * len(chosen)
