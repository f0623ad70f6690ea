"""Commands on replicas of which one has a segment file of another partition."""

import shlex

import pytest
from damage import flip
from swapped import BATCHES, END, SIZE, batch, path_of, swap, write_node

PRODUCERS = {"labels-0": 0, "tickets-0": 1}
LAST = END - SIZE


@pytest.fixture
def nodes(tmp_path):
    return [write_node(tmp_path / f"node-{node}", PRODUCERS, node=node) for node in (2, 3)]


def contents(folder):
    """Return the bytes of each file."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def logs(home):
    return [path.read_bytes() for path in sorted((home / "labels-0").glob("*.log"))]


def fill(run, home, *copies, apply=True):
    """Return the status, and the action and first offset of what is filled and what is not."""
    options = [word for copy in copies for word in ("--fill-from", copy)]
    more = ["--apply"] if apply else []
    result = run("recover", *options, home / "labels-0", *more, "-f", "ndjson")
    names = ("fill", "unfilled", "diverges")
    found = [one for one in result.of_type("action") if one["action"] in names]
    return result.status, [(one["action"], one["first_offset"]) for one in found]


@pytest.mark.parametrize("base", range(0, END, SIZE))
def test_a_segment_is_filled_with_the_batches_that_the_snapshot_names(run, nodes, base):
    right, wrong = nodes
    before = contents(wrong)
    swap(wrong, "labels-0", "tickets-0", base)
    swapped = contents(wrong)
    assert fill(run, wrong, right, apply=False) == (1, [("fill", base)])
    assert contents(wrong) == swapped
    assert fill(run, wrong, right) == (0, [("fill", base)])
    assert logs(wrong) == logs(right)
    assert fill(run, wrong, right) == (0, [])
    assert run("verify", wrong / "labels-0").status == 0
    (undo,) = wrong.parent.glob("*.logtool-undo-*")
    assert run("undo", "--apply", undo).status == 0
    assert contents(wrong) == swapped
    swap(wrong, "labels-0", "tickets-0", base)
    assert contents(wrong) == before


def test_two_segments_are_filled_at_once(run, nodes):
    right, wrong = nodes
    for base in (SIZE, 2 * SIZE):
        swap(wrong, "labels-0", "tickets-0", base)
    assert fill(run, wrong, right) == (0, [("fill", SIZE), ("fill", 2 * SIZE)])
    assert logs(wrong) == logs(right)


@pytest.mark.parametrize("base", [0, SIZE, LAST])
def test_nothing_is_taken_from_a_copy_that_is_the_wrong_one(run, nodes, base):
    right, wrong = nodes
    swap(wrong, "labels-0", "tickets-0", base)
    before = contents(right)
    assert fill(run, right, wrong) == (1, [("diverges", base)])
    assert contents(right) == before
    result = run("recover", "--fill-from", wrong, right / "labels-0", "-f", "ndjson")
    (action,) = result.of_type("action")
    assert (action["segment"], action["target"]) == (base, str(wrong / "labels-0"))
    assert "--full" not in run("recover", "--fill-from", wrong, right / "labels-0").stderr


@pytest.mark.parametrize("base", [0, SIZE, LAST])
def test_a_copy_without_the_batch_that_the_snapshot_names_fills_nothing(run, nodes, base):
    right, wrong = nodes
    swap(wrong, "labels-0", "tickets-0", base)
    offsets = range(base, base + SIZE, 2)
    data = b"".join(batch(5, at, at, text="else") for at in offsets)
    path_of(right, "labels-0", base).write_bytes(data)
    before = contents(wrong)
    status, found = fill(run, wrong, right)
    assert (status, set(found)) == (1, {("diverges", base), ("unfilled", base)})
    assert contents(wrong) == before


def test_the_second_copy_fills_what_the_first_one_cannot(run, nodes, tmp_path):
    right, wrong = nodes
    third = write_node(tmp_path / "node-4", PRODUCERS, node=4)
    for home in (wrong, third):
        swap(home, "labels-0", "tickets-0", SIZE)
    log = path_of(third, "labels-0", SIZE)
    log.write_bytes(flip(log.read_bytes(), 100))
    status, found = fill(run, wrong, third, right)
    assert status == 0
    assert ("fill", SIZE) in found
    assert logs(wrong) == logs(right)


def test_a_fill_from_a_copy_with_the_same_batches_has_nothing_to_do(run, nodes):
    right, other = nodes
    result = run("recover", "--fill-from", right, other / "labels-0", "-f", "ndjson")
    assert (result.status, result.of_type("action")) == (0, [])


def test_each_command_that_is_printed_fills_a_swapped_segment(run, nodes):
    right, wrong = nodes
    folders = [wrong / name for name in PRODUCERS]
    swap(wrong, "labels-0", "tickets-0", SIZE)
    for given in ([wrong], nodes):
        found = run("verify", "-f", "ndjson", *given).of_type("finding")
        found = [one for one in found if one["code"] != "metadata/absent"]
        assert [(one["code"], one["remedy"]) for one in found if one["severity"] != "info"] == [
            ("segment/other-partition", "replica")
        ] * 2
        lines = [line.strip() for line in run("verify", *given).stderr.splitlines()]
        copy = "COPY" if given == [wrong] else right
        assert f"logtool recover --fill-from {copy} {folders[0]} {folders[1]}" in lines
    assert {one["next"] for one in found if one["severity"] == "error"} == {
        f"logtool recover --apply --fill-from {right} {folder}" for folder in folders
    }
    result = run("doctor", "-f", "ndjson", *(f"{node}={one}" for node, one in enumerate(nodes, 2)))
    found = [one["command"] for kind in ("remedy", "next") for one in result.of_type(kind)]
    fills = [shlex.split(one) for one in found if one and "--fill-from" in one]
    assert {one[-1] for one in fills} == {str(wrong), str(folders[1])}
    for words in fills:
        assert words[1:4] == ["recover", "--fill-from", str(right)]


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


@pytest.mark.parametrize("base", [0, SIZE, LAST])
def test_a_swap_that_snapshots_show_is_reported_once(run, nodes, base):
    right, wrong = nodes
    swap(wrong, "labels-0", "tickets-0", base)
    result = run("verify", "--wrong-topic", "-f", "ndjson", right, wrong)
    (summary,) = result.of_type("summary")
    assert summary["codes"]["segment/other-partition"] == 2
    found = [one["path"] for one in result.of_type("finding") if one["severity"] == "error"]
    assert found == [str(path_of(wrong, name, base)) for name in PRODUCERS]
