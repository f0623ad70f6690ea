import random

import pytest
from salvage_campaign import SCENARIOS, partitions, try_one


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_no_damage_touched_is_saved_and_nothing_is_invented(scenario, tmp_path, name):
    for seed in range(4):
        source = random.Random(f"{name} {seed}").choice(partitions(scenario(name)))

        case = try_one(source, tmp_path / str(seed), seed)

        assert case.is_good, case
