"""Commands on replicas of which one has a segment file of another partition."""

import shlex

import pytest
from swapped import BATCHES, END, SIZE, batch, path_of, swap, write_node

PRODUCERS = {"labels-0": 0, "tickets-0": 1}
LAST = END - SIZE


@pytest.fixture
def nodes(tmp_path):
    return [write_node(tmp_path / f"node-{node}", PRODUCERS, node=node) for node in (2, 3)]


@pytest.mark.parametrize("base", [0, SIZE, LAST])
def test_a_fill_from_a_copy_that_diverges_names_the_offset_and_fills_nothing(run, nodes, base):
    right, wrong = nodes
    swap(wrong, "labels-0", "tickets-0", base)
    before = path_of(wrong, "labels-0", base).read_bytes()
    words = ("recover", "--fill-from", right, wrong / "labels-0")
    planned = run(*words, "-f", "ndjson")
    (action,) = planned.of_type("action")
    assert (action["action"], action["segment"], action["first_offset"]) == ("diverges", base, base)
    assert action["target"] == str(right / "labels-0")
    assert planned.status == 1
    assert "--full" not in run(*words).stderr
    assert run(*words, "--apply").status == 1
    assert path_of(wrong, "labels-0", base).read_bytes() == before


def test_a_fill_from_a_copy_with_the_same_batches_has_nothing_to_do(run, nodes):
    right, other = nodes
    result = run("recover", "--fill-from", right, other / "labels-0", "-f", "ndjson")
    assert (result.status, result.of_type("action")) == (0, [])


def test_no_command_that_is_printed_writes_to_a_swapped_segment(run, nodes):
    right, wrong = nodes
    swap(wrong, "labels-0", "tickets-0", SIZE)
    for given in ([wrong], nodes):
        found = run("verify", "-f", "ndjson", *given).of_type("finding")
        found = [one for one in found if one["code"] != "metadata/absent"]
        assert [(one["code"], one["remedy"]) for one in found if one["severity"] != "info"] == [
            ("segment/other-partition", "replica")
        ] * 2
        assert "recover" not in run("verify", *given).stderr
    assert {one["next"] for one in found if one["severity"] == "error"} == {
        f"logtool diff --topic {topic} {right} {wrong}" for topic in ("labels", "tickets")
    }
    result = run("doctor", "-f", "ndjson", *(f"{node}={one}" for node, one in enumerate(nodes, 2)))
    commands = [one["command"] for kind in ("remedy", "next") for one in result.of_type(kind)]
    assert not [one for one in commands if one and shlex.split(one)[1] in ("recover", "salvage")]
    assert f"logtool diff --topic labels --topic tickets 2={right} 3={wrong}" in commands


def test_a_batch_that_was_written_twice_is_said_to_be_the_same(run, nodes):
    home = nodes[0]
    log = path_of(home, "labels-0", SIZE)
    data, size = log.read_bytes(), len(batch(0, SIZE, SIZE, text="labels-0"))
    again = data[size : 2 * size]
    log.write_bytes(data[: 2 * size] + again + data[2 * size :])
    (twice,) = (one for one in run("verify", "-f", "ndjson", home).of_type("finding")
                if one["code"] == "batch/offset-order")  # fmt: skip
    assert (twice["first_offset"], twice["position"]) == (SIZE + 2, 2 * size)
    assert f"byte {size} " in twice["message"]


def test_folded_warnings_name_their_partitions(run, tmp_path):
    home = write_node(tmp_path / "node", {f"orders-{number}": number for number in range(5)})
    for number in range(5):
        older = path_of(home, f"orders-{number}", SIZE, ".snapshot").read_bytes()
        path_of(home, f"orders-{number}", END, ".snapshot").write_bytes(older)
    (line,) = (one for one in run("verify", home).stderr.splitlines() if " x5 " in one)
    assert all(f"orders-{number}" in line for number in range(5))


@pytest.mark.parametrize("base", [0, SIZE, LAST])
def test_a_comparison_says_how_far_a_divergence_goes_and_which_segment_is_another_one(
    run, nodes, base
):
    right, wrong = nodes
    swap(wrong, "labels-0", "tickets-0", base)
    given = [f"{node}={one}" for node, one in enumerate(nodes, 2)]
    result = run("diff", "-f", "ndjson", "--topic", "labels", "--topic", "tickets", *given)
    meets = base + SIZE if base < LAST else None
    for pair in result.of_type("pair"):
        assert (pair["diverges_at"], pair["meets_at"]) == (base, meets)
        assert (pair["left_different"], pair["right_different"]) == (BATCHES, BATCHES)
    for partition, other in zip(
        result.of_type("partition"), ("tickets-0", "labels-0"), strict=True
    ):
        assert partition["foreign"] == [f"segment {base} of 3 is that of {right / other}"]
        assert shlex.split(partition["next"])[1:] == ["verify", "--wrong-topic", *given]


def test_copies_that_differ_to_their_end_do_not_meet(run, nodes):
    log = path_of(nodes[1], "labels-0", LAST)
    offsets = range(LAST, END, 2)
    log.write_bytes(b"".join(batch(0, at, at, text="else") for at in offsets[:-1]))
    result = run("diff", "-f", "ndjson", "--topic", "labels", *nodes)
    (pair,), (partition,) = result.of_type("pair"), result.of_type("partition")
    assert (pair["diverges_at"], pair["meets_at"]) == (LAST, None)
    assert (pair["left_different"], pair["right_different"]) == (BATCHES - 1, BATCHES - 1)
    assert partition["foreign"] == []
    assert shlex.split(partition["next"])[1] == "verify"  # no election explains it


@pytest.mark.parametrize("base", [0, SIZE, LAST])
def test_a_swap_is_found_across_replicas_as_one_finding_for_each_segment(run, nodes, base):
    right, wrong = nodes
    swap(wrong, "labels-0", "tickets-0", base)
    for node in nodes:  # Without the snapshots, only the batches show it.
        for path in node.rglob("*.snapshot"):
            path.unlink()

    def found(*given):
        items = run("verify", "--wrong-topic", "-f", "ndjson", *given).of_type("finding")
        codes = ("segment/other-partition", "batch/other-topic")
        return [
            (one["code"], one["path"], one["last_offset"]) for one in items if one["code"] in codes
        ]

    expected = [
        ("segment/other-partition", str(path_of(wrong, name, base)), base + SIZE - 1)
        for name in PRODUCERS
    ]
    assert found(right, wrong) == expected
    assert found(wrong / "labels-0", right / "tickets-0") == expected[:1]
    assert found(right) == []
