"""`kafka-dump-log`: the command line of Kafka's tool, and what it printed for that."""

import re
from pathlib import Path

import pytest
from dumps import as_newest, expected, failures
from group_records import OffsetsLog
from log_dir_damage import new_batch

from logtool.commands.printing import kafka_lines
from logtool.formats import _rendering, record

DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}
_METADATA = re.compile(
    r"^\| offset: \d+ \w+: -?\d+ keySize: -?\d+ valueSize: -?\d+ sequence: -?\d+ "
    r"headerKeys: \[[\w,]*\]",
    re.MULTILINE,
)


@pytest.fixture
def killed(scenario, monkeypatch) -> Path:
    home: Path = scenario("4.3.1/killed")
    monkeypatch.chdir(home)
    return home


def printed(scenario, mode: str) -> dict[str, str]:
    """Return the output of Kafka's tool for each file."""
    given_up = failures("4.3.1/killed", mode)
    found = expected(scenario("4.3.1/killed.expected") / mode)
    return {file: as_newest(text) for file, text in found if file not in given_up}


@pytest.mark.parametrize(
    ("mode", "flags"),
    [("batches", ()), ("entries", ()), ("records", ("--deep-iteration", "--print-data-log"))],
)
def test_a_line_of_kafkas_tool_works_when_its_name_is_replaced(run, scenario, killed, mode, flags):
    wanted = printed(scenario, mode)
    result = run("kafka-dump-log", "--files", ",".join(wanted), *flags)
    assert result.status in (0, 1)
    for file, text in wanted.items():
        at = result.stdout.index(f"Dumping {file}\n")
        assert result.stdout[at : at + len(text)] == text, file
    assert len(result.stdout) == sum(map(len, wanted.values()))


@pytest.mark.parametrize("topic", DECODERS)
def test_records_are_decoded_as_is_asked_not_by_their_topic(run, scenario, killed, tmp_path, topic):
    wanted = {file: text for file, text in printed(scenario, "decoded").items() if topic in file}
    file, text = max(wanted.items(), key=lambda one: len(one[1]))
    elsewhere = tmp_path / Path(file).name
    elsewhere.write_bytes((killed / file).read_bytes())
    found = run("kafka-dump-log", DECODERS[topic], "--files", elsewhere).stdout
    assert found == text.replace(f"Dumping {file}\n", f"Dumping {elsewhere}\n")


def test_metadata_of_records_can_be_left_out(run, scenario, killed):
    wanted = printed(scenario, "records")
    file = "codec-none-0/00000000000000000000.log"
    lines = run("kafka-dump-log", "--skip-record-metadata", "--print-data-log", "--files", file)
    assert lines.stdout.splitlines() == _METADATA.sub("|", wanted[file]).splitlines()


def test_a_part_of_a_log_ends_behind_a_whole_batch(run, scenario, killed):
    file = "codec-none-0/00000000000000000000.log"
    whole = printed(scenario, "batches")[file].splitlines()
    size = int(whole[4].split(" position: ")[1].split()[0])
    for more, lines in ((0, 4), (-1, 3), (1, 4)):
        done = run("kafka-dump-log", "--files", file, "--max-bytes", size + more)
        assert (done.status, done.lines) == (0, whole[:lines])


def test_indexes_are_checked_as_a_broker_does_or_with_the_log(run, copy_of, monkeypatch):
    home = copy_of("4.3.1/clean") / "codec-none-0"
    monkeypatch.chdir(home)
    names = [f"{0:020d}.{suffix}" for suffix in ("index", "timeindex")]
    done = run("kafka-dump-log", "--index-sanity-check", "--files", ",".join(names))
    assert done.lines[-1] == f"{names[1]} passed sanity check."
    checked = run("kafka-dump-log", "--verify-index-only", "--files", ",".join(names))
    assert checked.lines == [f"Dumping {name}" for name in names]
    assert (done.status, checked.status) == (0, 0)
    index = bytearray(Path(names[1]).read_bytes())
    index[7] ^= 1
    Path(names[1]).write_bytes(index)
    checked = run("kafka-dump-log", "--verify-index-only", "--files", names[1])
    assert checked.status == 1
    assert f"{names[1]}: entry 0" in checked.stderr
    Path(names[1]).write_bytes(index[:-1])
    done = run("kafka-dump-log", "--index-sanity-check", "--files", names[1])
    assert (done.status, done.lines) == (1, [f"Dumping {names[1]}"])
    assert names[1] in done.stderr


def test_what_is_no_file_of_a_log_is_said_and_a_java_class_is_refused(run, killed):
    done = run("kafka-dump-log", "--files", "meta.properties")
    assert (done.status, done.stdout) == (0, "Dumping meta.properties\n")
    assert "meta.properties" in done.stderr
    assert run("kafka-dump-log", "--files", "none.log").status == 4
    text = "org.apache.kafka.tools.api.LongDecoder"
    done = run("kafka-dump-log", "--files", "none.log", "--value-decoder-class", text)
    assert (done.status, done.stdout) == (2, "")
    assert text in done.stderr


# What the tool of Kafka 4.3.1 said of the logs of `gaps`.
NON_CONSECUTIVE = """\
Non-consecutive offsets in {home}/00000000000000000000.log
  1 is followed by 5
  5 is followed by 20
  20 is followed by 23
  23 is followed by 25
  26 is followed by 40
Non-consecutive offsets in {home}/00000000000000000050.log
  -1 is followed by 52
Non-consecutive offsets in {home}/00000000000000000060.log
  -1 is followed by 60
  61 is followed by 64
"""


@pytest.fixture
def gaps(tmp_path, monkeypatch):
    """Return the names of logs with offsets that are missing between batches and in one."""
    records = [record.Record(0, 0, b"k", b"v"), record.Record(3, 1, b"k", b"v")]
    cleaned = new_batch(20, *[b""] * 5, payload=record.encode(records), record_count=2,
                        max_timestamp=1_700_000_000_001)  # fmt: skip
    logs = {
        0: [new_batch(0, b"x", b"x"), new_batch(5, b"x"), cleaned, new_batch(25, b"x", b"x"),
            new_batch(40, b"x")],
        50: [new_batch(52, b"x", b"x"), new_batch(54, b"x")],
        60: [new_batch(60, b"x", b"x"), new_batch(64, b"x")],
    }  # fmt: skip
    for base, batches in logs.items():
        (tmp_path / f"{base:020d}.log").write_bytes(b"".join(batches))
    monkeypatch.chdir(tmp_path)
    return [f"{base:020d}.log" for base in logs]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("flag", ["--deep-iteration", "--print-data-log"])
def test_offsets_that_are_not_consecutive_are_named_as_kafkas_tool_names_them(
    run, gaps, tmp_path, monkeypatch, flag, compiled
):
    monkeypatch.setattr(_rendering, "COMPILED", compiled and _rendering.COMPILED)
    done = run("kafka-dump-log", flag, "--files", ",".join(gaps))
    assert (done.status, done.stderr) == (0, NON_CONSECUTIVE.format(home=tmp_path))


def test_no_offsets_are_compared_where_no_records_are_read(run, gaps):
    done = run("kafka-dump-log", "--files", ",".join(gaps))
    assert (done.status, done.stderr) == (0, "")


def test_commits_are_decoded_in_blocks_as_they_are_one_by_one(run, tmp_path, monkeypatch):
    log = OffsetsLog()
    for version in range(5):
        log.commit("g", "orders", 0, 7, version=version, metadata='%d "\\ \x1f')
        log.commit("g\x07", "orders", version, 8, version=version, producer_id=3)
    log.commit("g", "orders", 1, 9, topicId="AAAAAAAAAAAAAAAAAAAAAQ")
    log.commit("g", "orders", 1, None)
    log.end_transaction(3, commit=True)
    log.commit("gr\u00fcn", "orders", 1, 9)
    log.raw(b"\0\1x", b"y")
    log.raw(b"\0\x63abc", b"\0\1")
    log.raw(None, b"")
    log.commit("g", "orders", 2, 10)
    path = log.write(tmp_path) / f"{0:020d}.log"
    arguments = ("kafka-dump-log", "--offsets-decoder", "--files", path)
    at_once = run(*arguments)
    monkeypatch.setattr(kafka_lines, "of_blocks", lambda **_: None)
    one_by_one = run(*arguments)
    assert at_once.stdout == one_by_one.stdout
    assert (at_once.stderr, at_once.status) == (one_by_one.stderr, one_by_one.status)
    assert at_once.stdout.count('"version":"') == 13
