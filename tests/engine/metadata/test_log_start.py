"""The log start offset of a partition, with segments in remote storage or without them."""

import pytest
from metadata_records import config, log_dir_of, topic

from logtool.metadata import image
from logtool.metadata.log_start import is_tiered, log_start

ID = "AAAAAAAAAAAAAAAAAAAAAg"


def remote(name, value="true"):
    return config(2, name, "remote.storage.enable", value)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("cold", [remote("cold")], True),
        ("cold", [remote("cold", "TRUE")], True),
        ("cold", [remote("cold", "false")], False),
        ("cold", [remote("warm")], False),
        ("cold", [remote("cold"), config(2, "cold", "cleanup.policy", "compact")], False),
        ("cold", [remote("cold"), config(2, "cold", "cleanup.policy", "delete")], True),
        ("__consumer_offsets", [remote("__consumer_offsets")], False),
        ("__remote_log_metadata", [remote("__remote_log_metadata")], False),
    ],
)
def test_topics_that_the_broker_keeps_in_remote_storage(tmp_path, name, settings, expected):
    log_dir_of(tmp_path, [topic(name, ID), *settings])
    assert is_tiered(image.read(tmp_path), name) is expected


def test_without_a_metadata_log_no_topic_is_tiered(tmp_path):
    log_dir_of(tmp_path, [remote("cold")])
    assert not is_tiered(None, "cold")
    assert not is_tiered(image.read(tmp_path), "cold")


@pytest.mark.parametrize(
    ("first", "row", "tiered", "expected"),
    [
        (500, 105, True, 105),
        (500, None, True, 0),
        (500, 105, False, 500),
        (500, 510, False, 510),
        (500, 510, True, 510),
        (500, None, False, 500),
        (500, -1, True, 0),
    ],
)
def test_log_start_offset(first, row, tiered, expected):
    assert log_start(first, row, tiered=tiered) == expected
