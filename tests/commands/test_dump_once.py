"""`dump --once` prints a record once where several copies of a partition have it."""

import json
from itertools import pairwise

import pytest

TOPICS = ("--topic", "replica.in-sync", "--topic", "replica.diverged", "--topic", "replica.lagging")


@pytest.fixture
def nodes(scenario):
    return [scenario("4.3.1/replicas") / f"node-{node}" for node in (2, 3)]


def records(run, *arguments):
    """Return place and content of the records that are printed, in their order."""
    return [
        (one["topic"], one["offset"], one["timestamp_ms"], json.dumps([one["key"], one["value"]]))
        for one in run("dump", "-f", "ndjson", *arguments).of_type("record")
    ]


def test_every_record_of_any_copy_comes_once(run, nodes):
    both = records(run, "--records", *TOPICS, *nodes)
    once = records(run, "--once", *TOPICS, *nodes)
    assert once == list(dict.fromkeys(both))
    # Copies that diverged have two records at one offset.
    assert len({one[:2] for one in once}) < len(once) < len(both)


def test_copies_of_a_hit_are_one_hit(run, nodes):
    key = json.loads(records(run, "--records", *TOPICS, nodes[0])[1][3])[0]["utf8"]
    every = records(run, "--key", key, *TOPICS, *nodes)
    once = records(run, "--key", key, "--once", *TOPICS, *nodes)
    assert once == list(dict.fromkeys(every)) != every
    counted = run("dump", "--key", key, "--once", "--count", "-f", "ndjson", *TOPICS, *nodes)
    (total,) = (one for one in counted.objects if one["type"] == "total")
    assert (total["records"], counted.objects[-1]["found"]) == (len(once), len(once))


def test_only_files_and_batches_with_records_of_their_own_are_shown(run, nodes):
    found = run("dump", "--once", "-f", "ndjson", *TOPICS, *nodes).objects
    for above, one in pairwise(found):
        if above["type"] in ("file", "batch"):
            assert one["type"] == ("batch" if above["type"] == "file" else "record")
            assert one["path"] == above["path"]
    first = [one for one in found if one.get("path", "").startswith(str(nodes[0]))]
    assert first == run("dump", "--once", "-f", "ndjson", *TOPICS, nodes[0]).objects[:-1]
    again = run("dump", "--once", "--topic", "replica.in-sync", *nodes)
    assert str(nodes[0]) in again.stdout
    assert str(nodes[1]) not in again.stdout


def test_another_partition_is_no_copy(run, nodes):
    log_dir = nodes[0]
    assert records(run, "--once", log_dir) == records(run, "--records", log_dir)
