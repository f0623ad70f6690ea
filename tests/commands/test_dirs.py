"""``logtool dirs`` and ``may-delete``: ids, assignments, futures, strays and their proofs."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from answers import last_line, numbers
from damage import damage_file, flip
from group_records import OffsetsLog
from metadata_logs import CLUSTER, NO_OP, data, directory_id, log_dir, static, voters_batch
from metadata_records import batch, config, remove_topic, topic, varint

from logtool.formats.messages import codec, schema

METADATA = "__cluster_metadata-0"
LOST, UNASSIGNED = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAQ"
ORDERS = "bG9ndG9vbC10b3BpYy0tMQ"
OTHER = "bG9ndG9vbC10b3BpYy0tMg"
LATER = "0123456789abcdef0123456789abcdef"
BATCHES = [batch(0, b"a", b"b"), batch(2, b"c"), batch(3, b"d", b"e")]
"""Offsets 0 through 4."""


def framed(kind: int, version: int, value: dict[str, Any]) -> bytes:
    message = schema.table("cluster_metadata").find("value", kind)
    assert message
    head = varint(1) + varint(kind) + varint(version)
    return head + codec.encode(message, version, value)


def register(node: int, *ids: str, cordoned: tuple[str, ...] = ()) -> bytes:
    return framed(0, 4, {
        "brokerId": node, "incarnationId": ORDERS, "brokerEpoch": 1, "endPoints": [],
        "features": [], "rack": None, "fenced": False, "inControlledShutdown": False,
        "isMigratingZkBroker": False, "logDirs": list(ids), "cordonedLogDirs": list(cordoned),
    })  # fmt: skip


def placed(topic_id: str, number: int, *where: tuple[int, str]) -> bytes:
    nodes = [node for node, _ in where]
    return framed(3, 1, {
        "partitionId": number, "topicId": topic_id, "replicas": nodes, "isr": nodes,
        "removingReplicas": [], "addingReplicas": [], "leader": nodes[0], "leaderEpoch": 1,
        "partitionEpoch": 1, "directories": [one for _, one in where],
    })  # fmt: skip


def meta(home: Path, node: int, own: str | None) -> None:
    home.mkdir(parents=True, exist_ok=True)
    last = f"directory.id={own}\n" if own else ""
    text = f"version=1\nnode.id={node}\ncluster.id={CLUSTER}\n{last}"
    (home / "meta.properties").write_text(text)


def replica(home: Path, name: str, *batches: bytes, topic_id: str | None = ORDERS) -> Path:
    path = home / name
    path.mkdir(parents=True)
    first = int.from_bytes(batches[0][:8], "big") if batches else 0
    (path / f"{first:020d}.log").write_bytes(b"".join(batches))
    if topic_id:
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    return path


@pytest.fixture
def brokers(tmp_path):
    """Return a function that makes three log dirs: two of broker 1, one of broker 2."""

    def make(*records: bytes) -> tuple[Path, Path, Path]:
        first = log_dir(tmp_path, 1, voters_batch(0, (1,)), data(2, *records))
        second, third = tmp_path / "second", tmp_path / "third"
        meta(second, 1, directory_id(4))
        meta(third, 2, directory_id(5))
        return first, second, third

    return make


KNOWN = [
    register(1, directory_id(1), directory_id(4)),
    register(2, directory_id(5)),
    topic("orders", ORDERS),
]


@pytest.fixture
def placed_well(brokers):
    """Return the three log dirs with a replica in each log dir that has it by assignment."""
    where = (1, directory_id(4)), (2, directory_id(5))
    homes = brokers(*KNOWN, placed(ORDERS, 0, *where))
    for home in homes[1:]:
        replica(home, "orders-0", *BATCHES)
    return homes


def items(result) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in result.items:
        found.setdefault(one["type"], []).append(one)
    return found


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"node.id": "7"}, "meta-properties/mismatch"),
        ({"log.dirs": "{1},{0}"}, "metadata/location"),
        ({"log.dirs": "{0}"}, "data-dir/not-named"),
        ({"log.dirs": "{0},{1},{1}-gone"}, "meta-properties/missing"),
        ({"controller.quorum.voters": "1@h:1,2@h:2"}, "metadata/no-majority"),
        ({"controller.quorum.voters": "2@h:2"}, "broker-config/own-vote"),
        ({}, None),
    ],
)
def test_a_file_that_contradicts_the_log_dirs_is_reported_as_plan_and_verify_do(
    run, copy_of, tmp_path, wrong, code
):
    found = copy_of("4.3.1/two-log-dirs")
    homes = sorted(
        (found / "dir-1", found / "dir-2"), key=lambda home: not (home / METADATA).is_dir()
    )
    right = {"node.id": "1", "log.dirs": "{0},{1}", "process.roles": "broker,controller",
             "controller.quorum.voters": "1@h:1"}  # fmt: skip
    file = tmp_path / "server.properties"
    lines = [f"{key}={value.format(*homes)}" for key, value in (right | wrong).items()]
    file.write_text("\n".join(lines))
    args = ("--json", "--broker-config", file, *homes)
    result, verified = run("dirs", *args), run("verify", *args)

    def findings(items):
        return {
            (one["code"], one["path"], one["message"]) for one in items if one["type"] == "finding"
        }

    assert result.status == (1 if code else 0), result.stdout
    assert findings(result.items) <= findings(verified.items)
    assert (code in {found for found, *_ in findings(result.items)}) == bool(code)


def test_a_file_is_about_the_broker_whose_log_dirs_or_node_id_it_names(run, placed_well, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=9\nprocess.roles=broker\nlog.dirs={placed_well[2]}\n")
    result = run("dirs", "--json", "--broker-config", file, *placed_well)
    found = [one["path"] for one in result.items if one["type"] == "finding"]
    assert found == [str(placed_well[2] / "meta.properties")]
    file.write_text("node.id=9\nprocess.roles=broker\nlog.dirs=/elsewhere\n")
    assert run("dirs", "--broker-config", file, *placed_well).status == 0


def test_replicas_in_their_assigned_log_dirs_are_in_order(run, placed_well):
    first, second, third = placed_well
    result = run("dirs", "--json", first, second, third)
    assert result.status == 0, result.stdout
    assert [(d["node"], d["status"], d["partitions"]) for d in items(result)["directory"]] == [
        (1, "online", 0), (1, "online", 1), (2, "online", 1),
    ]  # fmt: skip
    assert numbers(last_line(run("dirs", first, second, third))) == [3, 0, 0]


def test_a_metadata_log_under_another_name_is_no_partition_either(run, placed_well):
    first = placed_well[0]
    inner = first / "__cluster_metadata-0"
    inner.rename(first / f"{inner.name}.{'0' * 32}-future")
    result = run("dirs", "--json", first)
    assert [one["partitions"] for one in items(result)["directory"]] == [0]


def test_id_and_dir_name_the_owner_of_a_log_dir(run, placed_well):
    first, second, third = placed_well
    for home in (second, third):  # only the command line names the owners
        meta = home / "meta.properties"
        meta.write_text(meta.read_text().replace("node.id", "not.the.id"))

    def owners(*paths: object) -> dict[str, tuple[int, str]]:
        directories = items(run("dirs", "--json", *paths))["directory"]
        return {one["path"]: (one["node"], one["status"]) for one in directories}

    unknown = owners(first, second, third)
    assert unknown[str(second)] == unknown[str(third)] == (None, "unknown")
    result = run("dirs", "--json", first, f"1={second}", f"2={third}")
    assert result.status == 0, result.stdout
    assert owners(first, f"1={second}", f"2={third}") == {
        str(first): (1, "online"), str(second): (1, "online"), str(third): (2, "online"),
    }  # fmt: skip
    assert owners(first, f"1={second}", f"1={third}")[str(third)] == (1, "unregistered")


@pytest.mark.parametrize("name", ["2.8.2/zookeeper", "1.0.2/zookeeper"])
def test_a_log_dir_of_a_release_without_directory_ids_is_nothing_to_look_at(run, scenario, name):
    result = run("dirs", "--json", scenario(name))
    assert result.status == 0
    (found,) = items(result)["directory"]
    assert (found["directory_id"], found["status"]) == (None, "unknown")


def test_log_dirs_are_compared_with_the_registration(run, brokers, tmp_path):
    known = register(1, directory_id(1), directory_id(7), cordoned=(directory_id(7),))
    assigned = placed(ORDERS, 0, (1, directory_id(8)))
    first, second, third = brokers(known, topic("orders", ORDERS), assigned)
    cordoned, nameless = tmp_path / "cordoned", tmp_path / "nameless"
    meta(cordoned, 1, directory_id(7))
    meta(nameless, 1, None)
    result = run("dirs", "--json", first, second, cordoned, nameless, third)
    assert result.status == 1
    found = {d["path"] or d["directory_id"]: d for d in items(result)["directory"]}
    assert {key: one["status"] for key, one in found.items()} == {
        str(first): "online", str(second): "unregistered", str(cordoned): "cordoned",
        str(nameless): "unidentified", str(third): "unknown", directory_id(8): "absent",
    }  # fmt: skip
    assert found[directory_id(8)]["partitions"] == 1


def test_a_log_dir_that_was_given_for_another_node_is_named(run, scenario):
    home = scenario("4.3.1/replicas")
    given = [f"1={home / 'node-1'}", f"2={home / 'node-3'}", f"3={home / 'node-2'}"]
    found = run("dirs", "-f", "ndjson", *given)
    assert found.status == 1
    absent = {one["node"]: one["given_as"] for one in found.of_type("directory")
              if one["status"] == "absent"}  # fmt: skip
    assert absent == {2: str(home / "node-2"), 3: str(home / "node-3")}


def test_a_metadata_log_dir_outside_of_log_dirs_is_never_registered(run, brokers):
    registration = register(1, directory_id(4)), topic("orders", ORDERS)
    first, second, _ = brokers(*registration, placed(ORDERS, 0, (1, directory_id(4))))
    replica(second, "orders-0", *BATCHES)
    result = run("dirs", "--json", first, second)
    assert result.status == 0
    assert [one["status"] for one in items(result)["directory"]] == ["metadata", "online"]


def test_a_log_dir_is_offline_only_if_the_metadata_log_knows_its_id(run, brokers):
    where = (1, directory_id(4))
    first, second, _ = brokers(register(1, directory_id(1)), topic("orders", ORDERS),
                               placed(ORDERS, 0, where))  # fmt: skip
    replica(second, "orders-0", *BATCHES)
    result = run("dirs", "--json", first, second)
    assert result.status == 1
    assert [one["status"] for one in items(result)["directory"]] == ["online", "offline"]


@pytest.mark.parametrize(
    ("assigned", "status", "exit_status"),
    [(directory_id(1), "elsewhere", 1), (LOST, "lost", 1), (UNASSIGNED, "unassigned", 0)],
)
def test_a_replica_in_another_log_dir(run, brokers, assigned, status, exit_status):
    first, second, _ = brokers(*KNOWN, placed(ORDERS, 0, (1, assigned)))
    path = replica(second, "orders-0", *BATCHES)
    result = run("dirs", "--json", first, second)
    assert result.status == exit_status
    (found,) = items(result)["assignment"]
    assert (found["path"], found["status"]) == (str(path), status)
    assert (found["directory_id"], found["assigned"]) == (directory_id(4), assigned)


FUTURES: dict[str, Any] = {
    "behind": (BATCHES[:2], "catching-up", 2, False, 0),
    "whole": (BATCHES, "caught-up", 0, True, 0),
    "further": ([*BATCHES, batch(5, b"f")], "ahead", 0, True, 1),
    "other": ([*BATCHES[:2], batch(3, b"x", b"y")], "diverged", 0, False, 1),
    "damaged": ([*BATCHES[:2], BATCHES[2][:-1] + b"?", batch(5, b"f")], "damaged", 0, False, 1),
}


@pytest.mark.parametrize("name", FUTURES)
def test_a_future_copy_is_compared_with_the_live_one(run, brokers, name):
    batches, status, behind, superset, exit_status = FUTURES[name]
    first, second, _ = brokers(*KNOWN, placed(ORDERS, 0, (1, directory_id(1))))
    live = replica(first, "orders-0", *BATCHES)
    replica(second, f"orders-0.{LATER}-future", *batches)
    result = run("dirs", "--json", first, second)
    (found,) = items(result)["future"]
    row = (found["status"], found["behind"], found["superset"], found["live"])
    assert row == (status, behind, superset, str(live))
    assert found["assigned"] is False
    assert result.status == exit_status


@pytest.mark.parametrize("others", [(), ((2, 5),)])
def test_the_cut_of_a_future_copy_is_a_loss_unless_another_replica_is_in_sync(run, brokers, others):
    where = ((1, directory_id(1)), *((node, directory_id(own)) for node, own in others))
    first, second, _ = brokers(*KNOWN, placed(ORDERS, 0, *where))
    replica(first, "orders-0", *BATCHES)
    future = replica(second, f"orders-0.{LATER}-future", *BATCHES, batch(5, b"f"))
    for command in ("plan", "cluster"):
        found = run(command, "-f", "ndjson", first, second)
        kinds = [(one["action"], one["path"]) for one in found.of_type("action")]
        assert (("discard", str(future)) in kinds) is not bool(others)
    plan = run("plan", "-f", "ndjson", first, second).of_type("action")
    losses = [(one["first_offset"], one["last_offset"]) for one in plan
              if one["action"] == "discard"]  # fmt: skip
    assert losses == ([] if others else [(5, 5)])


def test_a_future_copy_without_a_live_one_is_abandoned(run, brokers):
    first, second, _ = brokers(*KNOWN, placed(ORDERS, 0, (1, directory_id(4))))
    path = replica(second, f"orders-0.{LATER}-future", *BATCHES)
    result = run("dirs", "--json", first, second)
    (found,) = items(result)["future"]
    assert (found["status"], found["live"], found["assigned"]) == ("abandoned", None, True)
    assert result.status == 1
    assert str(path) in run("dirs", first, second).stdout


def test_strays_come_with_their_proof(run, brokers):
    first, second, third = brokers(*KNOWN, placed(ORDERS, 0, (2, directory_id(5))))
    unknown = replica(first, "orders-0", *BATCHES[:2])
    aside = replica(second, f"orders-0.{LATER}-stray", *BATCHES, batch(5, b"only here"))
    live = replica(third, "orders-0", *BATCHES)
    result = run("dirs", "--json", first, second, third)
    assert result.status == 1
    found = {one["path"]: one for one in items(result)["proof"]}
    assert found[str(unknown)]["may_delete"]
    assert found[str(unknown)]["held_by"] == [
        {"path": str(live), "node": 2, "batches": 2, "ranges": [[0, 2]]}
    ]
    assert not found[str(aside)]["may_delete"]
    (only,) = found[str(aside)]["only_here"]
    assert (only["first_offset"], only["last_offset"], only["batches"]) == (5, 5, 1)
    assert numbers(only["reason"]) == [5]
    # The live replica of broker 1, which the metadata log does not know, proves nothing of value.
    lines = run("dirs", first, second, third).lines
    assert [line for line in lines if f": {unknown}" in line and "MUST STAY" not in line]
    assert [line for line in lines if f"MUST STAY: {aside} " in line]


@pytest.mark.parametrize(
    ("records", "status", "offset"),
    [
        ((placed(ORDERS, 0, (1, directory_id(4))),), "assigned", 7),
        ((placed(ORDERS, 0, (2, directory_id(5))),), "moved", 7),
        ((placed(ORDERS, 0, (1, directory_id(4))), remove_topic(ORDERS)), "removed", 6),
        ((topic("orders", ORDERS), remove_topic(ORDERS), topic("orders", OTHER)), "removed", 6),
        (None, "unknown", 3),
    ],
)
def test_the_state_in_the_metadata_log_is_said(run, brokers, records, status, offset):
    known = [] if records is None else [*KNOWN, *records]
    first, second, _ = brokers(*known, register(1, directory_id(1)))
    path = replica(second, f"orders-0.{LATER}-stray", *BATCHES)
    for result in (run("dirs", "--json", first, second), asked(run, path, first)):
        (found,) = items(result)["proof"]
        assert (found["metadata"], found["metadata_offset"]) == (status, offset)
    assert not found["may_delete"]
    lines = run("may-delete", path, "--among", first).lines
    assert any(str(offset) in numbers_in for numbers_in in lines[1:]) is (status != "assigned")


def test_a_damaged_metadata_log_is_not_in_order(run, brokers):
    homes = brokers(*KNOWN)
    (log,) = homes[0].glob("__cluster_metadata-0/*.log")
    damage_file(log, flip, log.stat().st_size - 1)
    result = run("dirs", *homes)
    assert result.status == 1
    assert f"{log}: byte " in result.stderr


def test_without_a_metadata_log_no_status_is_known(run, brokers):
    _, second, third = brokers(*KNOWN)
    result = run("dirs", "--json", second, third)
    assert result.status == 0
    assert [one["status"] for one in items(result)["directory"]] == ["unknown", "unknown"]
    assert "metadata log" in result.stderr
    assert run("dirs", second / "orders-0").status == 4


def pair(tmp_path: Path, mine: list[bytes], *others: list[bytes], **more: Any) -> list[Path]:
    """Return a partition dir, and log dirs with a live copy each."""
    first = replica(tmp_path / "mine", more.pop("name", "orders-0"), *mine)
    homes = [tmp_path / f"other-{number}" for number in range(len(others))]
    for home, batches in zip(homes, others, strict=True):
        meta(home, 2, directory_id(2))
        replica(home, more.get("other", "orders-0"), *batches, topic_id=more.get("id", ORDERS))
    return [first, *homes]


def asked(run, path: Path, *among: Path):
    return run("may-delete", "--json", path, *(w for one in among for w in ("--among", one)))


def only_proof(result) -> dict[str, Any]:
    (found,) = items(result)["proof"]
    return found


def test_a_copy_whose_batches_another_copy_has_may_go(run, tmp_path):
    result = asked(run, *pair(tmp_path, BATCHES, [*BATCHES, batch(5, b"f")]))
    assert result.status == 0
    found = only_proof(result)
    assert found["may_delete"]
    assert found["held_by"][0]["ranges"] == [[0, 4]]
    assert len(found["digest"]) == 64
    assert (
        only_proof(asked(run, tmp_path / "other-0" / "orders-0", tmp_path / "mine"))["digest"]
        != found["digest"]
    )


def test_the_same_directory_under_another_name_proves_nothing(run, tmp_path):
    (path,) = pair(tmp_path, BATCHES)
    (tmp_path / "link").symlink_to(path.parent)
    assert asked(run, path, tmp_path / "link").status == 1
    assert asked(run, path, tmp_path / "link" / "orders-0").status == 1


def test_two_copies_hold_it_together(run, tmp_path):
    result = asked(run, *pair(tmp_path, BATCHES, BATCHES[:1], BATCHES[1:]))
    assert result.status == 0
    assert [one["ranges"] for one in only_proof(result)["held_by"]] == [[[0, 1]], [[2, 4]]]


BAD = BATCHES[1][:-1] + b"?"
NOT_PROVEN: dict[str, Any] = {
    "it ends earlier": ([BATCHES[:2]], {}, (3, 4)),
    "it begins later": ([BATCHES[1:]], {}, (0, 1)),
    "another epoch": ([[*BATCHES[:2], data(3, b"d", b"e", epoch=2)]], {}, (3, 4)),
    "another CRC": ([[*BATCHES[:2], batch(3, b"x", b"e")]], {}, (3, 4)),
    "it lacks one": ([[BATCHES[0], BATCHES[2]]], {}, (2, 2)),
    "it is damaged": ([[BATCHES[0], BAD, BATCHES[2]]], {}, (0, 4)),
    "another topic": ([BATCHES], {"id": OTHER}, (0, 4)),
    "no topic id": ([BATCHES], {"id": None}, (0, 4)),
    "a stray": ([BATCHES], {"other": f"orders-0.{LATER}-stray"}, (0, 4)),
    "a future": ([BATCHES], {"other": f"orders-0.{LATER}-future"}, (0, 4)),
    "a deleted one": ([BATCHES], {"other": f"orders-0.{LATER}-delete"}, (0, 4)),
    "no other copy": ([], {}, (0, 4)),
}


@pytest.mark.parametrize("name", NOT_PROVEN)
def test_without_a_proof_a_copy_must_stay(run, tmp_path, name):
    others, more, offsets = NOT_PROVEN[name]
    result = asked(run, *pair(tmp_path, BATCHES, *others, **more))
    found = only_proof(result)
    assert (result.status, found["may_delete"]) == (1, False)
    (only,) = found["only_here"]
    assert (only["first_offset"], only["last_offset"]) == offsets
    # A whole copy that proves nothing is listed; a copy that lacks something is named in `reason`.
    other = str(tmp_path / "other-0")
    listed = [one["path"].startswith(other) for one in found["no_proof"]]
    assert listed == [True] * (len(others) and offsets == (0, 4))
    assert (other in only["reason"]) == (offsets != (0, 4))


def test_of_copies_that_diverge_a_third_one_proves_it(run, tmp_path):
    others = [BATCHES, [*BATCHES, batch(5, b"x")], [*BATCHES, batch(5, b"y")]]
    found = only_proof(asked(run, *pair(tmp_path, BATCHES, *others)))
    assert found["may_delete"]
    assert len(found["no_proof"]) == 2


def test_damage_of_its_own_counts_where_no_other_is_whole(run, tmp_path):
    mine = [BATCHES[0], BAD, BATCHES[2]]
    path, other = pair(tmp_path, mine, BATCHES)
    assert asked(run, path, other).status == 0
    (log,) = (other / "orders-0").glob("*.log")
    log.write_bytes(BATCHES[0] + BATCHES[2])
    result = asked(run, path, other)
    assert result.status == 1
    assert "damaged" in only_proof(result)["only_here"][0]["reason"]


def test_an_empty_directory_may_go_and_a_file_is_no_directory(run, tmp_path):
    path = replica(tmp_path / "mine", "orders-0")
    result = run("may-delete", "--json", path)
    assert (result.status, only_proof(result)["batches"]) == (0, 0)
    assert run("may-delete", path / f"{0:020d}.log").status == 4
    assert run("may-delete", path, "--among", tmp_path / "missing").status == 4


def test_real_replicas_prove_each_other(run, scenario):
    homes = [scenario("4.3.1/replicas") / f"node-{node}" for node in (2, 3)]
    names = sorted({p.name for p in homes[0].iterdir()} & {p.name for p in homes[1].iterdir()})
    partitions = [name for name in names if (homes[0] / name).is_dir() and name[0] != "_"]
    assert partitions
    for name in partitions:
        judged = run("diff", "--identical", *(home / name for home in homes)).status
        proven = run("may-delete", homes[0] / name, "--among", homes[1])
        if judged == 0:
            assert proven.status == 0, proven.stdout


def test_records_without_a_key_are_not_replaced_by_a_compacted_copy(run, scenario, tmp_path):
    home = scenario("4.3.1/clean")
    whole = replica(
        tmp_path / "mine", "compacted-0", *BATCHES,
        topic_id=(home / "compacted-tx-0" / "partition.metadata").read_text().split()[-1],
    )  # fmt: skip
    result = run("may-delete", "--json", whole, "--among", home / "compacted-tx-0")
    assert result.status == 1
    (reason,) = {only["reason"] for only in only_proof(result)["only_here"]}
    assert " key" in reason


def test_a_compacted_topic_is_shown_with_its_replaced_records(run, tmp_path):
    log = OffsetsLog()
    for value in (b"1", b"2", None):
        log.raw(b"a", value)
    log.raw(b"b", b"1")
    path, other = pair(tmp_path, log.batches, log.batches[3:])
    cleaned = other / "cleaner-offset-checkpoint"
    cleaned.write_text("0\n1\norders 0 3\n")
    result = asked(run, path, other)
    assert result.status == 0, result.stdout
    replaced = only_proof(result)["replaced"]
    assert (replaced["ranges"], replaced["keys"], replaced["deleted"]) == ([[0, 2]], 1, 1)
    (by,) = replaced["by"]
    assert by["path"] == str(other / "orders-0")
    assert "cleaner-offset-checkpoint" in by["evidence"]
    text = run("may-delete", path, "--among", other).stdout
    assert [3, 0, 2, 1] in [numbers(line)[:4] for line in text.splitlines()]
    assert f" {other / 'orders-0'}: {by['evidence']}" in text
    cleaned.write_text("0\n1\norders 0 2\n")
    result = asked(run, path, other)
    assert result.status == 1
    (only,) = only_proof(result)["only_here"]
    assert (only["first_offset"], only["last_offset"], only["batches"]) == (2, 2, 1)
    assert "compacted" in only["reason"]


def test_records_after_the_compaction_of_a_topic_must_all_be_there(run, brokers):
    log = OffsetsLog()
    for number in range(6):
        log.raw(b"key", b"%d" % number)
    where = (1, directory_id(4)), (2, directory_id(5))
    today = config(2, "orders", "cleanup.policy", "delete")
    first, second, third = brokers(*KNOWN, today, placed(ORDERS, 0, *where))
    path = replica(second, "orders-0", *log.batches)
    replica(third, "orders-0", log.batches[2], log.batches[5])
    (third / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    (only,) = only_proof(asked(run, path, first, third))["only_here"]
    assert (only["first_offset"], only["last_offset"]) == (3, 4)
    assert "compacted" in only["reason"]
    # Without the metadata log, which has the policy of the topic, the answer is no better.
    without = asked(run, path, third)
    assert without.status == 1
    assert only_proof(without)["only_here"] == [only]


def stranger(home):
    (home / "saved").mkdir()
    (home / f"{0:020d}.log").rename(home / "saved" / f"{0:020d}.log")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda home: (home / f"{0:020d}.log").rename(home / f"{0:020d}.log.swap"), "log.swap"),
        (lambda home: (home / f"{0:020d}.log").rename(home / "backup.log.1"), "backup.log.1"),
        (stranger, "saved"),
    ],
    ids=["swap", "stranger", "directory"],
)
def test_an_unknown_entry_that_may_hold_records_forbids_a_deletion(run, tmp_path, change, name):
    log = OffsetsLog()
    log.raw(b"a", b"1")
    path, other = pair(tmp_path, log.batches, log.batches)
    assert asked(run, path, other).status == 0
    change(path)
    for among in ((), (other,)):
        result = asked(run, path, *among)
        assert result.status == 1
        (only,) = only_proof(result)["only_here"]
        assert name in only["reason"]


def test_several_directories_do_not_prove_each_other(run, scenario):
    homes = [scenario("4.3.1/replicas") / f"node-{node}" for node in (2, 3)]
    first, second = (home / "replica.in-sync-0" for home in homes)
    for one, other in ((first, homes[1]), (second, homes[0])):
        assert run("may-delete", one, "--among", other).status == 0
    both = run("may-delete", "-f", "ndjson", first, second)
    assert both.status == 1
    assert [one["may_delete"] for one in both.objects[:-1]] == [False, False]
    more = homes[0] / "replica.fetched-at-once-0"
    result = run("may-delete", "-f", "ndjson", first, more, "--among", homes[1])
    assert (result.status, [one["path"] for one in result.objects[:-1]]) == (
        0, [str(first), str(more)],
    )  # fmt: skip


def test_partitions_that_only_this_node_has_and_that_are_gone_are_problems(run, copy_of):
    home = copy_of("4.3.1/clean")
    assert run("dirs", home).status == 0
    (home / "codec-none-0").rename(home / f"codec-none-0.{'0' * 32}-delete")
    result = run("dirs", "-f", "ndjson", home)
    (found,) = result.of_type("finding")
    assert (found["code"], found["topic"], found["partition"]) == (
        "partition/lost",
        "codec-none",
        0,
    )
    assert result.status == 1
    assert run("dirs", "--topic", "codec-gzip", home).status == 0


@pytest.mark.parametrize(("voters", "strays"), [((1,), 1), ((1, 2, 3), 0)])
def test_the_metadata_log_of_a_majority_counts_before_a_longer_one(run, tmp_path, voters, strays):
    one = log_dir(tmp_path, 1, data(0, NO_OP), state=static(*voters, epoch=2))
    known = data(1, topic("orders", ORDERS), placed(ORDERS, 0, (7, directory_id(7))))
    broker = log_dir(tmp_path, 7, data(0, NO_OP), known, state=static(1, 2, 3))
    replica(broker, "orders-0", *BATCHES)
    result = run("dirs", "-f", "ndjson", one, broker)
    assert len(result.of_type("proof")) == strays
    assert result.status == bool(strays)


def test_a_log_dir_without_an_id_is_identified_by_its_partitions(run, copy_of):
    home = copy_of("4.3.1/replicas")
    homes = [home / f"node-{node}" for node in (1, 2, 3)]
    meta = homes[1] / "meta.properties"
    known = {line for line in meta.read_text().splitlines() if not line.startswith("#")}
    meta.write_bytes(b"")
    # Node 3 has the same partitions: without its log dir, the id of the node decides.
    for given in ([homes[1], homes[2]], [f"2={homes[1]}"]):
        found = run("dirs", "-f", "ndjson", homes[0], *given).of_type("directory")
        (lost,) = (one for one in found if one["path"] == str(homes[1]))
        assert {*lost["restored"]} == known
    found = run("dirs", "-f", "ndjson", *homes[:2]).of_type("directory")
    assert not any(one["restored"] for one in found)
    shutil.rmtree(homes[1] / "replica.in-sync-0")
    found = run("dirs", "-f", "ndjson", *homes).of_type("directory")
    assert not any(one["restored"] for one in found)


def test_no_copy_replaces_the_metadata_log_of_a_node(run, scenario, tmp_path):
    home = scenario("4.3.1/replicas") / "node-1"
    backup = shutil.copytree(home, tmp_path / "backup")
    result = run("may-delete", "--json", backup / METADATA, "--among", home)
    (found,) = items(result)["proof"]
    assert (result.status, found["may_delete"], found["metadata"]) == (1, False, None)
    assert sum(one["batches"] for one in found["held_by"]) == found["batches"]
