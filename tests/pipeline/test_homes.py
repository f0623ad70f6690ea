"""The log dir that a path belongs to."""

from pathlib import Path

import pytest

from logtool.spark.identity import place_of

HOME = Path("/data/broker-1")


@pytest.mark.parametrize(
    ("path", "log_dir", "topic", "partition", "directory"),
    [
        (HOME, HOME, None, None, None),
        (HOME / "meta.properties", HOME, None, None, None),
        (HOME / "orders-3", HOME, "orders", 3, "orders-3"),
        (HOME / "orders-3" / "leader-epoch-checkpoint", HOME, "orders", 3, "orders-3"),
        (HOME / "notes.txt", HOME, None, None, None),
        (Path("/copy/orders-3"), Path("/copy"), "orders", 3, "orders-3"),
        (Path("/copy/orders-3/1.log"), Path("/copy"), "orders", 3, "orders-3"),
        (Path("/rp/kafka/orders/3_17/0-1-v1.log"), Path("/rp/kafka/orders"), "orders", 3, "3_17"),
    ],
)
def test_a_log_dir_with_the_name_of_a_partition_is_a_log_dir(
    path, log_dir, topic, partition, directory
):
    place = place_of(path, frozenset([HOME]))
    assert place == (str(log_dir), None, topic, partition, directory)


def test_the_node_is_that_of_the_log_dir(scenario):
    home = scenario("4.3.1/clean")
    assert place_of(home / "codec-none-0").node_id == 1
    assert place_of(home / "codec-none-0" / "x.log", frozenset([home])).node_id == 1
