"""``dump --missing-in``: the records of one copy that another copy lacks."""

import json

import pytest
from producers import as_kcat

from logtool.formats import control_record, record

TOPIC_ID = "version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ"
TRANSACTIONAL, CONTROL = 16, 32


@pytest.fixture
def nodes(scenario):
    return [scenario("4.3.1/replicas") / f"node-{node}" for node in (1, 2, 3)]


@pytest.fixture
def write(tmp_path, make_batch):
    """Return a function that writes a copy of orders-0 on a node from its batches."""

    def written(node, *batches):
        home = tmp_path / f"node-{node}" / "orders-0"
        home.mkdir(parents=True)
        (home / "partition.metadata").write_text(TOPIC_ID)
        content = b"".join(
            make_batch(offset, [record.Record(0, 0, None, str(offset).encode())], **header)
            for offset, header in batches
        )
        (home / f"{0:020d}.log").write_bytes(content)
        return home

    return written


@pytest.fixture
def marker(make_batch):
    """Return the header and record of a marker, to be put into `write`."""

    def made(offset, producer, commit):
        key, value = control_record.encode_end_transaction(commit=commit, coordinator_epoch=0)
        header = {"attributes": TRANSACTIONAL | CONTROL, "producer_id": producer,
                  "producer_epoch": 0, "leader_epoch": 1}  # fmt: skip
        return make_batch(offset, [record.Record(0, 0, key, value)], **header)

    return made


def plain(epoch, producer=-1, sequence=-1, *, transactional=False):
    return {
        "leader_epoch": epoch,
        "producer_id": producer,
        "producer_epoch": 0 if producer >= 0 else -1,
        "base_sequence": sequence,
        "attributes": TRANSACTIONAL if transactional else 0,
    }


def asked(run, *words):
    result = run("dump", "-f", "ndjson", "--missing-in", *words)
    (found,) = result.of_type("missing")
    return result, [one["offset"] for one in result.of_type("record")], found


def test_the_records_behind_the_divergence_of_real_copies_are_printed(run, nodes):
    topic = ("--topic", "replica.diverged")
    (verdict,) = run("diff", *topic, *nodes[1:], "-f", "ndjson").of_type("partition")
    for old, new in (nodes[1:], nodes[:0:-1]):
        result, offsets, found = asked(run, new, *topic, old)
        everything = run("dump", "-f", "ndjson", "--records", *topic, old).of_type("record")
        behind = [one["offset"] for one in everything if one["offset"] >= verdict["diverges_at"]]
        assert result.status == 0
        assert offsets == behind != []
        assert (found["diverges_at"], found["records"]) == (verdict["diverges_at"], len(behind))
    result, offsets, found = asked(run, nodes[1], "--topic", "replica.in-sync", nodes[2])
    assert (result.status, offsets, found["records"]) == (0, [], 0)


def test_the_metadata_log_of_whole_log_dirs_is_not_compared(run, nodes):
    result = run("dump", "-f", "ndjson", "--missing-in", *nodes[1:])
    topics = {one["topic"] for one in result.of_type("missing")}
    assert len(topics) > 1
    assert "__cluster_metadata" not in topics


def test_a_copy_that_ends_before_lacks_the_rest(run, write):
    old = write(1, *((offset, plain(0)) for offset in range(5)))
    new = write(2, *((offset, plain(0)) for offset in range(3)))
    _, offsets, found = asked(run, new, old)
    assert offsets == [3, 4]
    assert (found["diverges_at"], found["first_offset"], found["last_offset"]) == (None, 3, 4)
    assert asked(run, old, new)[1] == []


def test_a_record_that_was_produced_again_is_left_out(run, write):
    common = [(offset, plain(0, 7, offset)) for offset in range(3)]
    old = write(1, *common, (3, plain(1, 7, 3)), (4, plain(1, 7, 4)), (5, plain(1)))
    new = write(2, *common, (3, plain(2, 9, 0)), (4, plain(2, 7, 4)), (5, plain(2)))
    _, offsets, found = asked(run, new, old)
    assert offsets == [3, 5]
    assert (found["diverges_at"], found["records"], found["repeated"]) == (3, 2, 1)


def test_of_transactions_only_the_committed_records_are_printed(run, write, marker):
    begun = [(0, plain(0, 5, 0, transactional=True))]
    behind = [
        (offset, plain(1, producer, sequence, transactional=True))
        for offset, producer, sequence in ((1, 5, 1), (2, 6, 0), (3, 8, 0))
    ]
    old, new = write(1, *begun, *behind), write(2, *begun)
    with (old / f"{0:020d}.log").open("ab") as log:
        log.write(marker(4, 5, True) + marker(5, 6, False))
    _, offsets, found = asked(run, new, old)
    assert offsets == [1]
    counts = ("records", "aborted", "open", "headless")
    assert [found[name] for name in counts] == [1, 1, 1, 1]


def test_a_repetition_in_an_aborted_transaction_counts_for_nothing(run, write, marker):
    sent = plain(1, 5, 0, transactional=True)
    old, new = write(1, (0, plain(0)), (1, sent)), write(2, (0, plain(0)), (1, plain(2)), (2, sent))
    for home, offset, commit in ((old, 2, True), (new, 3, False)):
        with (home / f"{0:020d}.log").open("ab") as log:
            log.write(marker(offset, 5, commit))
    assert asked(run, new, old)[1] == [1]


def test_a_hole_in_the_other_copy_is_missing_too(run, write):
    old = write(1, *((offset, plain(0)) for offset in range(6)))
    new = write(2, *((offset, plain(0)) for offset in (0, 1, 4, 5)))
    assert asked(run, new, old)[1] == [2, 3]


def test_another_topic_and_a_partition_without_a_copy_are_errors(run, write, tmp_path):
    old, new = write(1, (0, plain(0)), (1, plain(0))), write(2, (0, plain(0)))
    (new / "partition.metadata").write_text(TOPIC_ID.replace("J8a", "K8a"))
    result = run("dump", "-f", "ndjson", "--missing-in", new, old)
    assert (result.status, result.of_type("record")) == (4, [])
    (tmp_path / "empty").mkdir()
    result = run("dump", "-f", "ndjson", "--missing-in", tmp_path / "empty", old)
    assert (result.status, result.of_type("record")) == (4, [])


def test_copies_of_redpanda_are_an_error(run, rfc):
    result = run("dump", "-f", "ndjson", "--missing-in", rfc, rfc)
    assert (result.status, result.of_type("record")) == (4, [])


def test_the_lines_for_a_producer_are_those_records(run, write):
    old = write(1, *((offset, plain(0)) for offset in range(5)))
    new = write(2, *((offset, plain(0)) for offset in range(3)))
    result = run("dump", "-f", "kcat", "--missing-in", new, old)
    command = next(line for line in result.stderr.splitlines() if "kcat -P" in line)
    sent = as_kcat(result.stdout.encode(), command[command.index("kcat -P") :])
    assert (result.status, sent) == (0, [(None, b"3"), (None, b"4")])
    assert (
        run("dump", "--count", "-f", "ndjson", "--missing-in", new, old).of_type("total")[0][
            "records"
        ]
        == 2
    )
    document = json.loads(run("dump", "--json", "--missing-in", new, old).stdout)
    assert [one["offset"] for one in document["items"] if one["type"] == "record"] == [3, 4]
