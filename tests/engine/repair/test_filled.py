import random

import pytest
from fill_campaign import METADATA, try_one
from salvage_campaign import SCENARIOS, partitions


@pytest.mark.parametrize("name", SCENARIOS)
def test_damage_to_one_copy_is_repaired_byte_for_byte_and_undone(scenario, tmp_path, name):
    homes = [path for path in partitions(scenario(name)) if path.name != METADATA]
    for seed in range(5):
        source = random.Random(f"{name} {seed}").choice(homes)

        case = try_one(source, tmp_path / str(seed), seed)

        assert case.is_good, case
