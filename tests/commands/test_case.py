"""``logtool case``: what it keeps, and the answers of commands that take a case file."""

import os
import random
import re
from pathlib import Path

import metadata_secrets
import pytest
import redpanda_files as rp
from cases import COMMANDS, answers, content
from damage import cut, damage_file, flip, zero
from damage_rows.table import TABLE, log_dir_of
from verification import log_dirs, small_log_dir

from logtool.case import opening
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import record, record_batch
from logtool.log.batches import read_batches
from logtool.log.records import payload

PARTITIONS = ("codec-none-0", "codec-zstd-0", "codec-snappy-0", "tx.mixed-0", "codec-gzip-0",
              "codec-lz4-0", "headers.and-nulls-0")  # fmt: skip
LOG = f"{0:020d}.log"
LEAST = 6
"""Bytes of a key or value that are not found by accident."""


@pytest.fixture
def home(scenario, tmp_path: Path) -> Path:
    """Return a log dir with records of all codecs, transactions and the metadata log."""
    return small_log_dir(
        scenario("4.3.1/clean"), tmp_path / "data", *PARTITIONS, "__cluster_metadata-0",
        "__transaction_state-0",
    )  # fmt: skip


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return tmp_path / "case.tar.zst"


def hold_to_answers(run, tmp_path: Path, case: Path, *given: Path, commands=COMMANDS) -> None:
    """Assert that commands answer the same from a case file of directories as from these."""
    assert run("case", "--output", case, *given).status == 0
    target = tmp_path / "expanded"
    target.mkdir()
    found = opening.expand(case, target)
    inner = [target / one.given for one in found.dirs]
    tops = [target / one.place for one in found.dirs]
    outer = [one if top == whole else one.parent
             for one, top, whole in zip(given, tops, inner, strict=True)]  # fmt: skip
    # A file system may keep no attributes; then the file looks like a copy.
    for words in commands:
        expected = answers(run, words, given, outer)
        assert answers(run, words, inner, tops) == expected, words


@pytest.mark.long
def test_the_answers_are_those_of_the_log_dir(run, home, case, tmp_path) -> None:
    hold_to_answers(run, tmp_path, case, home)


def test_the_answers_about_damage_are_those_of_the_log_dir(run, home, case, tmp_path) -> None:
    damage_file(home / "codec-none-0" / LOG, flip, 70)
    damage_file(home / "codec-zstd-0" / LOG, cut, 900)
    damage_file(home / "codec-gzip-0" / LOG, zero, 300, 500)
    damage_file(home / "tx.mixed-0" / f"{0:020d}.index", zero, 0, 8)
    hold_to_answers(run, tmp_path, case, home)


def test_a_command_takes_a_case_file_in_place_of_a_directory(run, home, case) -> None:
    assert run("case", "--output", case, f"1={home}").status == 0
    expected = run("verify", "-f", "ndjson", home)
    found = run("verify", "-f", "ndjson", case)
    assert found.status == expected.status
    codes = [[one["code"] for one in by.of_type("finding")] for by in (found, expected)]
    assert codes[0] == codes[1]
    assert found.objects[-1]["records"] == expected.objects[-1]["records"]
    there, here = (
        [Path(one["path"]).name for one in run("gaps", "-f", "ndjson", path).of_type("partition")]
        for path in (case, home)
    )
    assert there == here
    replicas = run("watermark", "-f", "ndjson", case).of_type("replica")
    assert {one["node"] for one in replicas} == {1}


def test_a_partition_dir_comes_with_its_surroundings(run, home, case, tmp_path) -> None:
    hold_to_answers(run, tmp_path, case, home / "tx.mixed-0", commands=[("txns",), ("plan",)])


def test_no_key_and_no_value_is_in_a_case_file(run, tmp_path, case) -> None:
    draw = random.Random(3)
    folder = tmp_path / "data" / "orders-0"
    folder.mkdir(parents=True)
    secrets, log = [], b""
    for number in range(60):
        some = []
        for delta in range(number % 7 + 1):
            one = [draw.randbytes(draw.randint(LEAST, 60)) for _ in range(4)]
            secrets += one
            key, value, name, content_of_header = one
            some.append(record.Record(delta, delta, key, value, [(name, content_of_header)]))
        log += record_batch.encode(
            record.encode(some), base_offset=10 * number, last_offset_delta=len(some) - 1,
            record_count=len(some), attributes=number % 5, base_timestamp=1_700_000_000_000,
            max_timestamp=1_700_000_000_000 + len(some) - 1, leader_epoch=0,
        )  # fmt: skip
    for at in (70, 2500, 5000):
        log = flip(log, at)
    (folder / LOG).write_bytes(log + b"torn" + secrets[0])
    (tmp_path / "data" / "server.properties").write_text("ssl.keystore.password=open sesame\n")
    assert run("case", "--output", case, tmp_path / "data").status == 0
    found = content(case)
    target = tmp_path / "expanded"
    target.mkdir()
    opening.expand(case, target)
    (expanded,) = target.glob("*/*/*/*.log")
    unpacked = _unpacked(expanded)
    assert len(unpacked) > 5000
    for secret in (*secrets, b"open sesame"):
        for start in range(0, len(secret) - LEAST + 1, 8):
            assert secret[start : start + LEAST] not in found
            assert secret[start : start + LEAST] not in unpacked
    assert b"server.properties" in found


def _unpacked(log: Path) -> bytes:
    """Return the payload of the sound batches of a log, decompressed."""
    found = bytearray()
    with LogFile(log) as file:
        for chunk in read_batches(file, base_offset=0):
            for row in range(len(chunk.table)):
                body = payload(chunk, row)
                found += body if isinstance(body, memoryview) else b""
    return bytes(found)


def test_no_secret_of_the_metadata_log_is_in_a_case_file(run, tmp_path, case) -> None:
    home = tmp_path / "data"
    metadata_secrets.write(home)
    assert run("case", "--output", case, home).status == 0
    found = content(case)
    assert not metadata_secrets.spelled(found)
    assert b"background.threads" in found


def test_what_is_in_it_is_shown(run, home, case) -> None:
    (home / "codec-none-0" / "notes.txt").write_text("alice owes bob")
    made = run("case", "--output", case, "-f", "ndjson", home)
    shown = run("case", "--show", case, "-f", "ndjson")
    assert (made.status, shown.status) == (0, 0)
    assert made.objects[:-1] == shown.objects[:-1]
    (whole,) = shown.of_type("case")
    assert whole["batches"] > 100
    assert set(whole["names"]) >= {"codec-none", "tx.mixed"}
    kinds = {(one["kind"], one["treatment"]): one["files"] for one in shown.of_type("files")}
    assert kinds[".log", "headers"] == len([*home.glob("[!_]*/*.log")])
    assert kinds["others", "zeros"] >= 1
    assert b"alice" not in content(case)
    table = run("case", "--show", case)
    assert "codec-none" in table.stderr
    assert case.stat().st_size < 60_000


def test_times_are_kept_to_the_nanosecond(run, partition, case, tmp_path) -> None:
    os.utime(partition / LOG, ns=(5, 1_700_000_000_123_456_789))
    assert run("case", "--output", case, partition.parent).status == 0
    (tmp_path / "out").mkdir()
    opening.expand(case, tmp_path / "out")
    (expanded,) = (tmp_path / "out").glob(f"1/*/{partition.name}/{LOG}")
    assert expanded.stat().st_mtime_ns == 1_700_000_000_123_456_789


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((), 2), (("--output", "{case}", "--show", "{case}"), 2), (("--output", "x.zip"), 2),
        (("--show", "{case}", "{home}"), 2), (("--show", "{home}/missing.tar.zst"), 4),
        (("--show", "{home}/orders-0/00000000000000000000.log"), 4),
        (("--output", "{home}/a.tar.zst", "{home}"), 5),
        (("--output", "{home}/orders-0/a.tar.zst", "{home}"), 5),
        (("--output", "{case}", "{home}/orders-0/00000000000000000000.log"), 4),
        (("--output", "{case}", "--max-duration", "0.000001s", "{home}"), 6),
        (("--output", "{case}/none/a.tar.zst", "{home}"), 4),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(run, partition, case, words, status) -> None:
    home = partition.parent
    given = [word.format(home=home, case=case) for word in words]
    assert run("case", *given).status == status
    assert not case.exists()
    assert not [*case.parent.glob(".*unfinished")]


def test_directories_of_other_flavours_are_left_out_and_named(
    run, partition, scenario, case, tmp_path
) -> None:
    redpanda = rp.data_dir(tmp_path / "made", {"0-1-v1.log": rp.log(0, 4)}).parents[2]
    bucket = scenario("automq/broker-crash") / "s3"
    made = run("case", "--output", case, "-f", "ndjson", redpanda, bucket, partition.parent)
    assert made.status == 4
    assert [one["path"] for one in made.of_type("error")] == [str(redpanda), str(bucket)]
    (directory,) = made.of_type("directory")
    assert directory["place"] == f"3/{partition.parent.name}"
    assert [one["path"][:2] for one in made.of_type("absent")] == ["1/", "2/"]
    expected, found = (run("stat", "-f", "ndjson", path) for path in (partition.parent, case))
    assert found.objects[-1]["records"] == expected.objects[-1]["records"] > 0
    case.unlink()
    assert run("case", "--output", case, redpanda, bucket).status == 4
    assert not case.exists()


def test_an_existing_file_is_not_overwritten(run, partition, case) -> None:
    case.write_bytes(b"mine")
    assert run("case", "--output", case, partition).status == 5
    assert case.read_bytes() == b"mine"


def test_a_file_that_cannot_be_read_is_absent_and_named(run, partition, case, monkeypatch) -> None:
    read_into = LogFile.read_into

    def failing(self, buffer, position):
        if self.path == partition / LOG:
            raise UnreadableError(self.path, "byte 0: Input/output error")
        return read_into(self, buffer, position)

    monkeypatch.setattr(LogFile, "read_into", failing)
    made = run("case", "--output", case, "-f", "ndjson", partition.parent)
    monkeypatch.setattr(LogFile, "read_into", read_into)
    assert made.status == 4
    (absent,) = made.of_type("absent")
    assert absent["path"].endswith(f"{partition.name}/{LOG}")
    found = run("verify", "-f", "ndjson", case).objects[-1]
    assert (found["partitions"], found["batches"]) == (1, 0)


def test_other_commands_refuse_it(run, partition, case) -> None:
    assert run("case", "--output", case, partition.parent).status == 0
    for words in (("dump",), ("groups",), ("recover",), ("stat", "--level", "quick")):
        assert run(*words, case).status == 2


def test_a_case_file_that_is_cut_or_damaged_is_refused_in_one_line(run, partition, case) -> None:
    run("case", "--output", case, partition.parent)
    data = case.read_bytes()
    for size in (0, 5, 200, len(data) // 2, len(data) - 1):
        case.write_bytes(data[:size])
        found = run("verify", case)
        assert found.status == 4
        assert len(re.findall(r"\n", found.stderr)) == 1
    case.write_bytes(data[:300] + b"\0" + data[301:])
    assert run("verify", case).status == 4


DIRECTORIES = [
    "4.3.1/clean", "4.3.1/killed", "4.3.1/torn", "4.3.1/running", "4.3.1/cleaned", "4.3.1/empty",
    "4.3.1/formatted", "4.3.1/replicas", "3.9.2/clean", "3.9.2/two-log-dirs", "3.9.0/compaction",
    "2.8.2/zookeeper", "2.8.2/magic-1", "2.8.2/magic-0", "2.2.2/magic-1",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", DIRECTORIES)
def test_the_answers_are_those_of_real_directories(run, scenario, case, tmp_path, name) -> None:
    hold_to_answers(run, tmp_path, case, *log_dirs(scenario(name)))


@pytest.mark.long
@pytest.mark.parametrize("row", TABLE[::4], ids=lambda row: row.id)
def test_the_answers_are_those_of_damaged_directories(run, scenario, case, tmp_path, row) -> None:
    home = log_dir_of(scenario, row.home, tmp_path / "data")
    row.damage(home)
    hold_to_answers(run, tmp_path, case, *log_dirs(home))
