import json
import os
import shutil
from importlib.resources import files

import answers
import metadata_records
import numpy as np
import pytest
import redpanda_files
from damage import damage_file, flip
from group_records import OffsetsLog, data_log
from jsonschema import Draft202012Validator
from transaction_state import entry, write
from verification import small_log_dir

from logtool.commands.program.printed import documents_printed
from logtool.formats import producer_snapshot

SCHEMAS = {one.name: one.schema for one in documents_printed()}
FILES = {"recover": "plan", "undelete": "salvage"}
"""Schemas that have the name of another command."""
SCHEMAS |= {command: SCHEMAS[name] for command, name in FILES.items()}
HERE = [name for name in SCHEMAS if name != "scan"]
"""Commands that print without Spark; tests/pipeline/test_cli.py has `scan`."""
GROUPS = ("checkpoint", "metadata", "remote")
"""Commands that stand before another word."""
OF_EACH_SHAPE = (
    "compacted-tx-0", "compacted.keys-0", "tx.mixed-0", "__consumer_offsets-0",
    "__cluster_metadata-0",
)  # fmt: skip
"""Partitions with every kind of object of `dump` and every set of its fields; others repeat it."""


def schema_of(name):
    return json.loads((files("logtool.schemas") / f"{FILES.get(name, name)}.json").read_text())


def validator(name):
    return Draft202012Validator(schema_of(name))


def problems(name, obj):
    return answers.problems(FILES.get(name, name), obj)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_are_sound_and_carry_the_name_that_is_printed(name):
    Draft202012Validator.check_schema(schema_of(name))
    assert schema_of(name)["$defs"]["document"]["properties"]["schema"] == {"const": SCHEMAS[name]}


def test_what_the_commands_share_is_the_same_in_each_schema():
    def shared(name):
        text = json.dumps({k: schema_of(name)["$defs"][k] for k in ("error", "summary")})
        return text.replace(SCHEMAS[name], "")

    assert len({shared(name) for name in SCHEMAS}) == 1


def _forgotten(home):
    """Return a log dir whose coordinators know of no transaction but one that is prepared."""
    write(home, entry("ours", "PrepareAbort", 1009, partitions={"tx.mixed": [0]}))
    return home


def _contradicted(log_dir):
    """Return a partition dir whose newest producer snapshot has no producers."""
    folder = log_dir / "tx.mixed-0"
    empty = producer_snapshot.build(np.empty(0, producer_snapshot.ENTRY))
    max(folder.glob("*.snapshot")).write_bytes(producer_snapshot.encode(empty))
    return folder


def contradicting(tmp_path):
    """Return a metadata log whose record cannot be applied."""
    home = tmp_path / "__cluster_metadata-0"
    home.mkdir()
    log = metadata_records.batch(0, metadata_records.remove_topic("J8aAPcfLQt2bqs1JT_rMgQ"))
    (home / f"{0:020d}.log").write_bytes(log)
    return home


def _torn(source, target):
    """Return a partition dir that has lost a batch inside of a transaction."""
    log = small_log_dir(source, target, "tx.mixed-0") / "tx.mixed-0" / f"{0:020d}.log"
    damage_file(log, flip, 2000)
    return log.parent


def _with_pipe(log_dir):
    """Return a log dir with an entry that is no file."""
    os.mkfifo(log_dir / "pipe")
    return log_dir


def _applied(run, copy_of):
    """Return a log dir that a command changed."""
    home = copy_of("4.3.1/clean")
    file = home / "cleaner-offset-checkpoint"
    assert run("checkpoint", "set", "--delete", "--apply", file).status == 0
    return home


@pytest.fixture
def lines(run, scenario, copy_of, partition, damaged_log, tmp_path):
    """Return a function: real output of every kind, one object a line."""

    def of_each_shape(name):
        return small_log_dir(scenario(name), tmp_path / name, *OF_EACH_SHAPE)

    def tiered(part):
        return scenario("tiered/4.3.1") / part

    def damaged_tiers(part):
        copied = tmp_path / "tiers" / part
        if not copied.exists():
            shutil.copytree(tiered(part), copied)
            shutil.rmtree(next(copied.glob("aged-0-*" if part == "objects" else "aged-1")))
        return copied

    scrubbed = ("--state", tmp_path / "scrub.db")
    runs = {
        "verify": lambda: [[partition], [scenario("4.3.1/killed")], [tmp_path / "missing"]],
        "scrub": lambda: [
            [*scrubbed, "--cycle", "1d", damaged_log.parent, tmp_path / "missing"],
            [*scrubbed, "--status"],
        ],
        "case": lambda: [
            ["--output", tmp_path / "case.tar.zst", _with_pipe(damaged_log.parent)],
            ["--show", tmp_path / "case.tar.zst"],
            ["--output", tmp_path / "other.tar.zst", tmp_path / "missing"],
        ],
        "doctor": lambda: [
            [damaged_log.parent],
            [scenario("4.3.1/torn"), scenario("2.2.2/zookeeper"), tmp_path / "missing"],
            ["--environment"],
        ],
        "report": lambda: [["--output", tmp_path / "r.html", damaged_log.parent]],
        "dump": lambda: [
            ["--records", partition],
            ["--records", "--values", "hex", "--limit", "9", partition],
            ["--records", "--values", "len", "--topic", "tx*", scenario("4.3.1/clean")],
            ["--records", scenario("4.3.1/clean") / "__cluster_metadata-0"],
            ["--count", "--key", "key", partition],
            [of_each_shape("3.9.2/killed")],
            [tmp_path / "missing"],
        ],
        "dump-index": lambda: [
            [of_each_shape("4.3.1/clean")],
            ["--join-log", of_each_shape("4.3.1/running")],
        ],
        "explain": lambda: [[], ["batch/crc"]],
        "schema": lambda: [[], ["records"], ["offset-index"], ["kafka"]],
        "plan": lambda: [
            [scenario("4.3.1/torn")],
            [scenario("4.3.1/killed"), tmp_path / "missing"],
        ],
        "recover": lambda: [
            ["--mark-clean", scenario("4.3.1/torn"), tmp_path / "missing"],
            [
                "--apply",
                small_log_dir(scenario("4.3.1/killed"), tmp_path / "small", "codec-none-0"),
            ],
            ["--undo-dir", scenario("4.3.1/torn") / "undo", scenario("4.3.1/torn")],
        ],
        "lookup": lambda: [
            ["--offset", "4", partition],
            ["--timestamp", "latest", scenario("4.3.1/clean") / "tx.mixed-0"],
            ["--offset", "9999", partition],
            ["--offset", "0", tmp_path / "missing"],
        ],
        "cluster": lambda: [
            [f"{node}={scenario('4.3.1/replicas') / f'node-{node}'}" for node in (1, 2, 3)],
            [scenario("4.3.1/replicas") / "node-1", tmp_path / "missing"],
        ],
        "quorum": lambda: [
            [scenario("4.3.1/replicas") / name for name in ("node-1", "node-2")],
            [scenario("4.3.1/replicas") / "node-3", tmp_path / "missing"],
            ["--voters", "1@10.0.0.1:9093", scenario("4.3.1/replicas") / "node-1"],
            [
                *("--apply", "--voters", "1@10.0.0.1:9093"),
                small_log_dir(scenario("4.3.1/killed"), tmp_path / "q", "__cluster_metadata-0"),
            ],
        ],
        "salvage": lambda: [
            [
                *("--records", "kcat", "--decode-damaged", "--output", tmp_path / "saved"),
                _torn(scenario("4.3.1/killed"), tmp_path / "torn"),
                tmp_path / "missing",
            ],
        ],
        "convert": lambda: [
            [
                *("--to", "kafka", "--output", tmp_path / "converted"),
                redpanda_files.data_dir(tmp_path / "rp", {"0-1-v1.log": redpanda_files.log()}),
                tmp_path / "missing",
            ],
        ],
        "undelete": lambda: [
            ["--output", tmp_path / "back", scenario("4.3.1/killed")],
        ],
        "sanity": lambda: [
            ["--background-threads", "2", "--project", "segments=9", scenario("4.3.1/killed")],
            [tmp_path / "missing"],
        ],
        "txns": lambda: [
            ["--all", scenario("4.3.1/killed")],
            [scenario("4.3.1/killed") / "replication-offset-checkpoint"],
            [_contradicted(copy_of("4.3.1/clean"))],
            [_forgotten(copy_of("4.3.1/killed"))],
        ],
        "checkpoint": lambda: [
            ["show", scenario("4.3.1/clean")],
            ["show", scenario("4.3.1/clean") / "codec-lz4-0"],
            ["show", scenario("4.3.1/clean") / "log-start-offset-checkpoint"],
            ["show", tmp_path / "missing"],
        ],
        "metadata": lambda: [
            ["show", scenario("4.3.1/clean")],
            ["log", "--topic", "doomed*", scenario("4.3.1/clean")],
            ["diff", "--offset", "100..250", scenario("4.3.1/clean")],
            ["show", contradicting(tmp_path)],
            ["at", "--offset", "9", tmp_path / "missing"],
        ],
        "diff": lambda: [
            [scenario("4.3.1/replicas") / name for name in ("node-1", "node-2", "node-3")],
            [damaged_log.parent, tmp_path / "missing"],
            ["--fingerprint", partition],
        ],
        "dirs": lambda: [
            [scenario("4.3.1/two-log-dirs")],
            [scenario("4.3.1/replicas") / name for name in ("node-1", "node-2", "node-3")],
            [scenario("4.3.1/clean"), tmp_path / "missing"],
        ],
        "may-delete": lambda: [[partition], [partition, "--among", tmp_path / "missing"]],
        "stat": lambda: [
            ["--segments", "--level", "records", scenario("4.3.1/clean")],
            ["--level", "quick", scenario("4.3.1/clean")],
            [tmp_path / "missing"],
        ],
        "gaps": lambda: [
            ["--isolation", "read_committed", "--ghosts", scenario("4.3.1/clean")],
            ["--follower", partition, scenario("4.3.1/clean") / "compacted-tx-0"],
            [partition],
            [tmp_path / "missing"],
        ],
        "groups": lambda: [
            [scenario("4.3.1/running"), tmp_path / "missing"],
            ["--group", "group-t*", "--history", "group_next", scenario("4.3.1/running")],
            ["--restore-plan", scenario("4.3.1/running")],
            ["--sizes", scenario("4.3.1/java-clients")],
            [_groups(tmp_path / "groups")],
        ],
        "retention": lambda: [
            ["--segments", "--at", "2026-11-01", scenario("4.3.1/clean"), tmp_path / "missing"],
            ["--with", "retention.ms=5", scenario("4.3.1/killed")],
            ["--with", "retention.bytes=2000", scenario("tiered/4.3.1") / "data"],
            ["--key", "key-0001", scenario("4.3.1/clean"), damaged_log.parent],
        ],
        "cleaner": lambda: [
            ["--records", scenario("4.3.1/clean"), tmp_path / "missing"],
            ["--sizes", "--with", "min.cleanable.dirty.ratio=0", scenario("4.3.1/killed")],
        ],
        "space": lambda: [
            ["--free", "1M", "--at", "2026-12-30", scenario("4.3.1/clean"), tmp_path / "missing"],
        ],
        "trim": lambda: [
            ["--free", "1M", scenario("4.3.1/clean"), tmp_path / "missing"],
            ["--free", "1M", "--apply", scenario("4.3.1/clean")],
        ],
        "remote": lambda: [
            ["lineage", tiered("data")],
            ["lineage", damaged_tiers("data")],
            ["verify", "--rsm", "local", tiered("objects"), tiered("data")],
            ["verify", "--rsm", "local", damaged_tiers("objects"), tmp_path / "missing"],
            ["rebuild-plan", "--rsm", "local", tiered("objects"), tiered("data")],
            ["rebuild-plan", "--rsm", "local", damaged_tiers("objects")],
            ["restore", "--output", tmp_path / "back", damaged_tiers("objects")],
        ],
        "undo": lambda: [["--list", _applied(run, copy_of), tmp_path / "missing"]],
        "watermark": lambda: [
            [scenario("4.3.1/replicas") / f"node-{node}" for node in (1, 2, 3)],
            [scenario("4.3.1/torn"), tmp_path / "missing"],
            ["simulate", "kip-101-divergence"],
        ],
    }

    def printed(name):
        for arguments in runs[name]():
            at = 1 if name in GROUPS or arguments[:1] == ["simulate"] else 0
            words = [name, *arguments[:at], "-f", "ndjson", *arguments[at:]]
            yield from run(*words).objects

    return printed


def _groups(home):
    """Return a log dir with a member, a pending commit and a finding."""
    log = OffsetsLog()
    member = {
        "memberId": "m", "clientId": "c", "clientHost": "/h", "sessionTimeout": 1,
        "subscription": b"", "assignment": b"",
    }  # fmt: skip
    group = {"protocolType": "consumer", "generation": 1, "protocol": "range", "leader": "m"}
    log.add(2, {"group": "g"}, {**group, "members": [member]}, version=3)
    log.commit("g", "t", 0, 5)
    log.commit("g", "t", 0, 6, producer_id=7)
    log.write(home)
    data_log(home, "t-0", 3)
    return home


@pytest.mark.parametrize("name", HERE)
def test_real_output_keeps_to_the_schema(lines, name):
    for obj in lines(name):
        assert not problems(name, obj), obj


@pytest.mark.long
@pytest.mark.parametrize("name", HERE)
def test_a_missing_or_unknown_key_is_caught(lines, name):
    seen = {}
    for obj in lines(name):
        seen.setdefault((obj["type"], obj.get("kind")), obj)
    assert len(seen) >= 2
    checker = validator(name)
    for obj in seen.values():
        assert not checker.is_valid({**obj, "surprise": 1})
        for key in obj:
            if key != "schema":
                assert not checker.is_valid({k: v for k, v in obj.items() if k != key}), key


@pytest.mark.parametrize("name", ["doctor", "dump", "dump-index", "verify"])
def test_the_document_keeps_to_the_schema(run, damaged_log, name):
    document = json.loads(run(name, "--json", damaged_log.parent).stdout)
    assert document["items"]
    assert problems(name, document) == []
    assert problems(name, {k: v for k, v in document.items() if k != "summary"})
