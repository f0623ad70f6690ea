"""``logtool case --anonymize``: other names of the same size, the same in all of a case file."""

import json
import re
from pathlib import Path
from typing import Any

import metadata_records as records
import pytest
import transaction_state
from cases import COMMANDS, answers, content
from damage import cut, damage_file, flip
from damage_rows.table import TABLE, log_dir_of
from hypothesis import given
from hypothesis import strategies as st
from verification import log_dirs, small_log_dir

from logtool.case import opening
from logtool.case.renaming import GROUP, TOPIC, Renaming
from logtool.errors import RefusedError
from logtool.formats import control_record, names, offset_checkpoint, record, record_batch
from logtool.formats.messages import codec, schema
from logtool.formats.messages.internal_topics import TABLES

PARTITIONS = ("codec-none-0", "codec-zstd-0", "tx.mixed-0", "tx-interleaved_v2-0",
              "compacted-tx-0", "headers.and-nulls-0")  # fmt: skip
IDS = ("A" * 21 + "Q", "A" * 21 + "g")


@pytest.fixture
def home(scenario, tmp_path: Path) -> Path:
    """Return a log dir with transactions, the metadata log and the coordinator's."""
    return small_log_dir(
        scenario("4.3.1/clean"), tmp_path / "data", *PARTITIONS, "__cluster_metadata-0",
        "__transaction_state-0", "__transaction_state-1",
    )  # fmt: skip


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return tmp_path / "case.tar.zst"


def replacements(path: Path) -> dict[str, str]:
    """Return the new name of each old one; the kinds in these tests have no name in common."""
    found = json.loads(path.read_text())["names"]
    return {one["name"]: one["replacement"] for one in found}


def hold_to_answers(run, tmp_path: Path, case: Path, *given: Path, commands=COMMANDS) -> None:
    """Assert that commands answer the same from a case file, but for the names."""
    written = tmp_path / "names.json"
    assert run("case", "--anonymize", "--names", written, "--output", case, *given).status == 0
    target = tmp_path / "expanded"
    target.mkdir()
    found = opening.expand(case, target)
    inner = [target / one.given for one in found.dirs]
    new = replacements(written)
    for words in commands:
        expected = answers(run, words, given, given)
        there = answers(run, words, inner, inner)
        assert there[0] == expected[0], words
        was, now = (
            sorted(json.dumps(renamed(one, some)) for one in objects)
            for objects, some in ((expected[1], new), (there[1], {}))
        )
        assert now == was, words


def renamed(value: Any, new: dict[str, str]) -> Any:
    """Return an answer with other names in it."""
    if isinstance(value, dict):
        return {key: renamed(one, new) for key, one in value.items() if key != "schema"}
    if isinstance(value, list):
        found = [renamed(one, new) for one in value]
        return sorted(found) if all(isinstance(one, str) for one in found) else found
    if not isinstance(value, str):
        return value
    some = sorted(new, key=len, reverse=True)
    pattern = "|".join(rf"(?<![\w.-]){re.escape(one)}(?![a-z_])" for one in some)
    return re.sub(pattern, lambda one: new[one[0]], value) if new else value


def test_the_answers_differ_in_names_alone(run, home, case, tmp_path) -> None:
    damage_file(home / "codec-none-0" / f"{0:020d}.log", flip, 70)
    damage_file(home / "codec-zstd-0" / f"{0:020d}.log", cut, 900)
    hold_to_answers(run, tmp_path, case, home)


def voters(host: str) -> bytes:
    """Return a control batch with a voter."""
    message = schema.table("control_records").named("VotersRecord")
    versions = {"minSupportedVersion": 0, "maxSupportedVersion": 1}
    voter = {"voterId": 1, "voterDirectoryId": IDS[0], "kRaftVersionFeature": versions,
             "endpoints": [{"name": "CONTROLLER", "host": host, "port": 9093}]}  # fmt: skip
    key = control_record.KEY.pack(0, control_record.KRAFT_VOTERS)
    value = codec.encode(message, 0, {"version": 0, "voters": [voter]})
    return record_batch.encode(
        record.encode([record.Record(0, 0, key, value)]), base_offset=0, last_offset_delta=0,
        record_count=1, leader_epoch=1, attributes=record_batch.CONTROL,
    )  # fmt: skip


def named(name: str, /, **fields: Any) -> bytes:
    """Return a record of the metadata log with these fields."""
    table = schema.table("cluster_metadata")
    message = table.named(name)
    version = message.versions.last
    value = codec.encode(message, version, fields)
    return b"".join(map(records.varint, (1, message.type, version))) + value


NAMES = {
    "topic": "payroll.berlin", "group": "payroll-readers", "txn": "payroll-writer-7",
    "client": "payroll-client", "host": "kafka-3.corp.example", "rack": "berlin-b2",
    "user": "alice.smith", "address": "10.20.30.40", "voter": "voter-1.corp.example",
    "plugin": "corp.plugin.secret", "listener": "BERLIN_OFFICE", "reason": "berlin burns",
    "file": "berlin-notes", "unknown": "unknown payroll", "newest": "payroll-later",
}  # fmt: skip


@pytest.fixture
def named_home(tmp_path: Path) -> Path:
    """Return a log dir whose files have every kind of name."""
    home = tmp_path / "kafka-3.corp.example"
    topic, group, host = NAMES["topic"], NAMES["group"], NAMES["host"]
    folder = home / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    endpoint = {"name": NAMES["listener"], "host": host, "port": 9092, "securityProtocol": 0}
    feature = {"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": 21}
    acl = {"id": IDS[1], "patternType": 3, "operation": 3, "permissionType": 3,
           "principal": f"User:{NAMES['user']}", "host": NAMES["address"]}  # fmt: skip
    values = [
        named("FeatureLevelRecord", name="metadata.version", featureLevel=21),
        named("RegisterBrokerRecord", brokerId=1, incarnationId=IDS[0], endPoints=[endpoint],
              features=[feature], rack=NAMES["rack"]),
        records.topic(topic, IDS[0]), records.partition(IDS[0], 0, [1]),
        records.config(2, topic, "retention.ms", "1000"),
        records.config(4, "1", "listeners", f"PLAINTEXT://{host}:9092"),
        records.config(4, "1", NAMES["plugin"], "open sesame"),
        records.config(32, group, "consumer.session.timeout.ms", "45000"),
        named("ClientQuotaRecord", key="producer_byte_rate", value=1.0, entity=[
            {"entityType": "user", "entityName": NAMES["user"]},
            {"entityType": "client-id", "entityName": NAMES["client"]}]),
        *(named("AccessControlEntryRecord", resourceType=kind, resourceName=name, **acl)
          for kind, name in ((2, topic), (3, group), (5, NAMES["txn"]), (4, "kafka-cluster"))),
        named("DelegationTokenRecord", owner=f"User:{NAMES['user']}", requester=NAMES["user"],
              renewers=[f"User:{NAMES['user']}"], tokenId="secret token"),
        named("AbortTransactionRecord", reason=NAMES["reason"]),
        records.framed(400, 0, records.text(NAMES["unknown"])),
        records.framed(2, 9, records.text(NAMES["newest"]), bytes(16)),
    ]  # fmt: skip
    (folder / f"{0:020d}.log").write_bytes(voters(NAMES["voter"]) + records.batch(1, *values))
    state = home / "__transaction_state-0"
    state.mkdir()
    (state / f"{0:020d}.log").write_bytes(transaction_state.log([
        transaction_state.entry(NAMES["txn"], "Ongoing", 7, partitions={topic: [0]}),
        transaction_state.entry(NAMES["txn"], "Ongoing", 7, version=0, partitions={topic: [0]}),
        (transaction_state.key(NAMES["txn"]), None), (b"\0\7" + NAMES["txn"].encode(), b"\0\0"),
    ]))  # fmt: skip
    for name in (f"{topic}-0", f"{topic}-1.{'a' * 32}-delete", f"{NAMES['file']}"):
        (home / name).mkdir()
        (home / name / f"{NAMES['file']}.log").write_bytes(b"")
    (home / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=Zm9v\n")
    (home / "recovery-point-offset-checkpoint").write_text(f"0\n2\n{topic} 0 0\n{topic} x\n")
    (home / f"{NAMES['file']}.txt").write_text(NAMES["file"])
    return home


def test_no_name_is_in_the_case_file(run, named_home, case, tmp_path) -> None:
    written = tmp_path / "names.json"
    made = run("case", "--anonymize", "--names", written, "--output", case, "-f", "ndjson",
               named_home)  # fmt: skip
    assert made.status == 0
    found = content(case)
    for kind, name in NAMES.items():
        assert name.encode() not in found, kind
    for word in (b"payroll", b"berlin", b"alice", b"example", b"sesame", b"secret"):
        assert word not in found, word
    new = replacements(written)
    assert {new[name].encode() in found for name in ("payroll.berlin", "payroll-writer-7")} == {
        True
    }
    assert all(len(old.encode()) == len(one.encode()) for old, one in new.items())
    (whole,) = made.of_type("case")
    assert new["payroll.berlin"] in whole["names"]
    assert (whole["renamed"], whole["replaced"]) == (4, 2)
    assert written.stat().st_mode & 0o777 == 0o600
    assert b"metadata.version" in found
    assert b"retention.ms" in found
    assert b"kafka-cluster" in found


def test_crcs_hold_and_sizes_stay(run, named_home, case, tmp_path) -> None:
    assert run("case", "--anonymize", "--output", case, named_home).status == 0
    (tmp_path / "out").mkdir()
    found = opening.expand(case, tmp_path / "out")
    codes = run("verify", "-f", "ndjson", case).objects[-1]["codes"]
    assert codes == run("verify", "-f", "ndjson", named_home).objects[-1]["codes"]
    sizes = [
        sorted(path.stat().st_size for path in top.rglob("*") if path.is_file())
        for top in (named_home, tmp_path / "out" / found.dirs[0].place)
    ]
    assert sizes[0] == sizes[1]


def test_the_manifest_says_that_names_were_replaced(run, partition, case) -> None:
    assert run("case", "--output", case, partition.parent).status == 0
    (plain,) = run("case", "--show", case, "-f", "ndjson").of_type("case")
    case.unlink()
    assert run("case", "--anonymize", "--output", case, partition.parent).status == 0
    (shown,) = run("case", "--show", case, "-f", "ndjson").of_type("case")
    assert (plain["renamed"], shown["renamed"]) == (None, 0)
    assert not set(plain["names"]) & set(shown["names"])


def test_copies_of_one_partition_are_compared(run, scenario, case, tmp_path) -> None:
    homes = log_dirs(scenario("4.3.1/replicas"))[:2]
    given = [f"{number}={home}" for number, home in enumerate(homes, 1)]
    assert run("case", "--anonymize", "--output", case, *given).status == 0
    expected, found = (run("diff", "-f", "ndjson", *paths) for paths in (homes, [case]))
    assert found.status == expected.status
    assert found.objects[-1]["codes"] == expected.objects[-1]["codes"]
    assert len(found.objects) == len(expected.objects)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--names", "{names}", "--output", "{case}"), 2),
        (("--anonymize", "--show", "{case}"), 2),
        (("--anonymize", "--names", "{home}/names", "--output", "{case}"), 5),
        (("--anonymize", "--names", "{home}/meta.properties", "--output", "{case}"), 5),
        (("--anonymize", "--names", "{names}/none/names", "--output", "{case}"), 4),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(run, named_home, case, tmp_path, words, status) -> None:
    given = [one.format(home=named_home, case=case, names=tmp_path / "names") for one in words]
    given += [] if "--show" in words else [str(named_home)]
    assert run("case", *given).status == status
    assert not case.exists()


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp")),
                min_size=1, max_size=40)  # fmt: skip


@given(st.lists(TEXTS, unique=True, max_size=30))
def test_a_name_has_one_replacement_of_its_size(texts: list[str]) -> None:
    renaming = Renaming()
    for replace in (lambda one: renaming.name(GROUP, one), renaming.topic):
        new = [replace(one) for one in texts]
        assert [replace(one) for one in texts] == new
        assert len(set(new)) == len(texts)
        assert [len(one.encode()) for one in new] == [len(one.encode()) for one in texts]
    for one in texts:
        legal = names.topic_fault(one) is None
        assert (names.topic_fault(renaming.topic(one)) is None) == legal
        if legal and one not in names.INTERNAL_TOPICS:
            assert renaming.topic(one) != one


@pytest.mark.parametrize(
    "name",
    ["a-0", "lost+found", f"orders-3.{'b' * 32}-delete", "orders-x", "orders", "backup.old-1",
     "orders-0-future", "-1", "remote-log-index-cache", "__consumer_offsets-3"],
)  # fmt: skip
def test_a_broker_makes_the_same_of_a_directory(name: str) -> None:
    new = Renaming().directory(name)
    before, after = names.parse_directory(name), names.parse_directory(new)
    assert type(before) is type(after)
    assert len(new) == len(name)
    if isinstance(before, names.PartitionDirectory):
        kept = "kind", "partition", "unique_id", "exact"
        assert all(getattr(before, one) == getattr(after, one) for one in kept)
        assert (before.topic == after.topic) == (before.topic in TABLES)


@pytest.mark.parametrize(
    "name",
    [f"{7:020d}.log", f"{7:020d}.log.swap", "orders.log", "7.index", f"{7:020d}.log.orders",
     "orders.deleted", "partition.metadata", "leader-epoch-checkpoint.orders", "notes"],
)  # fmt: skip
def test_a_broker_makes_the_same_of_a_file(name: str) -> None:
    new = Renaming().file(name)
    before, after = names.parse_partition_file(name), names.parse_partition_file(new)
    assert (after.kind, after.state, after.reception, after.offset) == (
        before.kind, before.state, before.reception, before.offset,
    )  # fmt: skip
    assert "orders" not in new


@pytest.mark.parametrize(
    "data",
    [b"", b"0\n1\norders 0 7\n", b"0\n1\norders 0\n", b"0\n2\norders 0 7\norders 0 8\n",
     b"0\r\n1\r\n 12345 0 7", b"orders\n", b"0\n1\nord\xffers 0 7\n", b"0\n1\norders 0 -7 x\n"],
)  # fmt: skip
def test_a_checkpoint_has_the_same_rows_and_faults(data: bytes) -> None:
    renaming = Renaming()
    new = renaming.checkpoint(data)
    before, after = offset_checkpoint.parse(data), offset_checkpoint.parse(new)
    assert len(new) == len(data)
    assert b"orders" not in new
    assert [(renaming.topic(one.topic), one.partition, one.offset) for one in before.rows] == [
        (one.topic, one.partition, one.offset) for one in after.rows
    ]
    faults = [
        [(one.code, one.position, one.length) for one in offset_checkpoint.check(parsed)]
        for parsed in (before, after)
    ]
    assert faults[0] == faults[1]


def test_more_names_of_one_character_than_there_are_are_refused() -> None:
    renaming = Renaming()
    with pytest.raises(RefusedError):
        for number in range(200):
            renaming.name(TOPIC, chr(number + 0x21))


@pytest.mark.long
@pytest.mark.parametrize("name", ["4.3.1/clean", "4.3.1/killed", "3.9.2/two-log-dirs",
                                  "2.8.2/zookeeper"])  # fmt: skip
def test_the_answers_are_those_of_real_directories(run, scenario, case, tmp_path, name) -> None:
    hold_to_answers(run, tmp_path, case, *log_dirs(scenario(name)))


@pytest.mark.long
@pytest.mark.parametrize("row", TABLE[2::4], ids=lambda row: row.id)
def test_the_answers_are_those_of_damaged_directories(run, scenario, case, tmp_path, row) -> None:
    home = log_dir_of(scenario, row.home, tmp_path / "data")
    row.damage(home)
    hold_to_answers(run, tmp_path, case, *log_dirs(home))
