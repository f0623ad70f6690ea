"""``--broker-config``: log dirs and settings from a broker's own file."""

import errno
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import metadata_records as made
import pytest
from log_dir_damage import new_batch
from verification import small_log_dir

from logtool.commands.program.broker_config import load
from logtool.errors import UsageError
from logtool.metadata import releases

WRITTEN = 1_700_000_000_000


@pytest.fixture
def properties(tmp_path):
    """Return a function that writes server.properties."""
    path = tmp_path / "server.properties"

    def write(text):
        path.write_text(text, encoding="iso-8859-1")
        return path

    return write


@pytest.fixture
def homes(scenario, tmp_path):
    """Return two log dirs of one broker, one of which has a space in its name."""
    source = scenario("4.3.1/clean")
    first = small_log_dir(source, tmp_path / "first", "__cluster_metadata-0", "codec-none-0")
    return first, small_log_dir(source, tmp_path / "the second", "index.dense-0")


LISTS = {
    "a list with spaces": ("log.dirs = /a , /b c,/d\n", ["/a", "/b c", "/d"]),
    "over more than one line": ("log.dirs=/a,\\\n   /b\n", ["/a", "/b"]),
    "log.dirs before log.dir": ("log.dir=/x\nlog.dirs=/a\n", ["/a"]),
    "log.dir alone": ("log.dir=/a, b\n", ["/a", "b"]),
    "each once, and none without a name": ("log.dirs=/a,,/a,\n", ["/a"]),
    "an escaped character": ("log.dirs=/d\\u00e4ta\n", ["/däta"]),
    "a colon": ("log.dirs: /a\n", ["/a"]),
    "neither is set": ("node.id=1\n", ["/tmp/kafka-logs"]),
    "the metadata log apart": (
        "process.roles=broker\nlog.dirs=/a\nmetadata.log.dir=/m\n", ["/a", "/m"],
    ),
    "the metadata log in one of them": (
        "process.roles=broker\nlog.dirs=/a,/m\nmetadata.log.dir=/m\n", ["/a", "/m"],
    ),
    "no metadata log with ZooKeeper": ("log.dirs=/a\nmetadata.log.dir=/m\n", ["/a"]),
}  # fmt: skip
"""A file, and the log dirs of its broker."""


@pytest.mark.parametrize("name", LISTS)
def test_log_dirs_are_those_that_a_broker_takes(properties, name):
    text, expected = LISTS[name]
    assert load(str(properties(text))).log_dirs() == expected


def assert_taken(result, file, setting):
    """Assert that the first line on stderr names the setting that was taken from the file."""
    first = result.stderr.splitlines()[0]
    assert str(file) in first
    assert setting in first


COMMANDS = (
    "verify", "plan", "stat", "gaps", "txns", "sanity", "doctor", "recover", "rebuild-index",
    "dump", "dump-index", "watermark", "checkpoint show", "checkpoint lint",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_log_dirs_of_the_file_are_taken_if_no_path_is_given(
    run, homes, properties, monkeypatch, command
):
    monkeypatch.chdir(homes[0].parent)
    file = properties("log.dirs=first , the second\n")
    by_file = run(*command.split(), "--broker-config", file, "-f", "csv")
    by_name = run(*command.split(), "-f", "csv", "first", "the second")
    assert by_file.status == by_name.status
    if command not in ("sanity", "doctor"):  # they show times, and the use of the disk
        assert by_file.stdout == by_name.stdout
    assert_taken(by_file, file, "log.dirs=first , the second (line 1)")


def test_a_path_of_the_command_line_goes_before_the_file(run, homes, properties):
    file = properties("log.dirs=/nowhere\nlog.index.interval.bytes=512\n")
    result = run("plan", "--broker-config", file, homes[0])
    assert result.status == 0
    assert_taken(result, file, "log.index.interval.bytes=512 (line 2)")
    assert "/nowhere" not in result.stderr
    quiet = run("verify", "--quiet", "--broker-config", file, homes[0])
    assert (quiet.status, quiet.stderr) == (0, "")
    nothing = run("stat", "--broker-config", file, homes[0]).stderr.splitlines()[0]
    assert nothing.startswith(f"{file}: ")
    assert "(line " not in nothing


def test_a_missing_log_dir_is_named_and_the_rest_is_done(run, homes, properties):
    file = properties(f"node.id=1\nlog.dirs=/nowhere,{homes[0]}\n")
    for command in ("verify", "plan", "stat", "gaps", "txns", "watermark"):
        result = run(command, "--broker-config", file, "-f", "ndjson")
        assert result.status == 4
        start = f"logtool: {file}:2: log.dirs: /nowhere: "
        assert sum(line.startswith(start) for line in result.stderr.splitlines()) == 1
        (error,) = result.of_type("error")
        assert error["path"] == "/nowhere"
        assert result.objects[-1]["partitions"] >= 1


BAD = {
    "no number": ("\nlog.index.interval.bytes=1k\n", 2, "log.index.interval.bytes", '"1k"'),
    "too small": ("num.recovery.threads.per.data.dir = 0", 1, "num.recovery.threads.per.data.dir"),
    "no number of a retention": ("log.retention.ms=7d\n", 1, "log.retention.ms"),
    "more than 32 bits": ("log.segment.bytes=4294967296", 1, "log.segment.bytes"),
    "no log dir": ("#\nlog.dir=/a\nlog.dirs=\n", 3, "log.dirs"),
    "a wrong escape": ("a=1\nb=2\nlog.dirs=\\u00g1\n", 3),
    "a config provider": ("log.dirs=${file:/x:dirs}", 1, "log.dirs", '"${file:/x:'),
    "no release": ("inter.broker.protocol.version=new", 1, "inter.broker.protocol.version"),
}
"""A file with something wrong, the number of the line, and parts of the message."""


@pytest.mark.parametrize("name", BAD)
def test_a_setting_that_a_broker_refuses_is_one_line_with_file_and_line(run, properties, name):
    text, number, *parts = BAD[name]
    file = properties(text)
    result = run("verify", "--broker-config", file)
    assert (result.status, result.stdout) == (2, "")
    line = result.stderr.splitlines()[0]
    assert line.startswith(f"logtool verify: {file}:{number}: "), line
    assert all(part in line for part in parts), line


@pytest.mark.parametrize(("name", "code"), [("none", errno.ENOENT), ("", errno.EISDIR)])
def test_a_file_that_cannot_be_read_is_named(run, tmp_path, name, code):
    result = run("verify", "--broker-config", tmp_path / name)
    assert (result.status, result.stdout) == (2, "")
    assert f"--broker-config {tmp_path / name}: {os.strerror(code)}" in result.stderr


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2**20 + 1)
    with pytest.raises(UsageError, match=re.escape(str(path))):
        load(str(path))


def test_the_last_of_two_settings_of_a_key_counts_and_a_line_names_both(run, homes, properties):
    file = properties(f"log.dirs=/nowhere\n# x\nlog.dirs={homes[0]}\n")
    result = run("verify", "--broker-config", file)
    assert result.status == 0
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"{file}:3: log.dirs: ")
    assert "line 1" in first


def test_other_keys_are_passed_over(run, homes, properties):
    file = properties(f"listeners=a\nlisteners=b\nnum.io.threads=x\nlog.dirs={homes[0]}\n")
    assert run("verify", "--broker-config", file).status == 0


def test_the_index_interval_of_the_file_comes_after_topic_and_command_line(
    run, homes, properties, tmp_path
):
    file = properties(f"log.dirs={homes[0]},{homes[1]}\nlog.index.interval.bytes=300\n")

    def built(name, *words):
        target = tmp_path / name
        assert run("rebuild-index", "--all", "--output", target, *words).status == 0
        return {
            path.relative_to(target).as_posix(): path.read_bytes()
            for path in target.rglob("*index")
        }

    def of_topic(files, name):
        return {path: data for path, data in files.items() if name in path}

    by_file = built("file", "--broker-config", file)
    by_option = built("option", "--index-interval-bytes", "300", *homes)
    plain = built("plain", *homes)
    both = built("both", "--broker-config", file, "--index-interval-bytes", "4096")
    # codec-none has no setting of its own; index.dense has 0 in the metadata log.
    assert of_topic(by_file, "codec-none") == of_topic(by_option, "codec-none")
    assert of_topic(by_file, "codec-none") != of_topic(plain, "codec-none")
    assert of_topic(both, "codec-none") == of_topic(plain, "codec-none")


def test_the_topic_goes_before_the_file(run, homes, properties):
    broker = small = homes[0].parent / "one"
    small.mkdir()
    for home in homes:
        for entry in home.iterdir():
            if not (small / entry.name).exists():
                entry.rename(small / entry.name)
    file = properties(f"log.dirs={broker}\nlog.index.interval.bytes=300\n")
    wrong = run("rebuild-index", "--broker-config", file, "-f", "ndjson").of_type("action")
    assert not [one for one in wrong if "index.dense-0" in one["path"]]


def test_the_threads_of_recovery_are_those_of_the_file(run, scenario, properties, tmp_path):
    home = small_log_dir(scenario("4.3.1/killed"), tmp_path / "data", "codec-none-0")
    file = properties(f"log.dirs={home}\nnum.recovery.threads.per.data.dir=3\n")
    words = ("plan", "--broker-config", file, "-f", "ndjson", "--read-rate", "100M")
    (one,) = run(*words).of_type("duration")
    assert one["threads"] == 3
    (one,) = run(*words, "--recovery-threads", "2").of_type("duration")
    assert one["threads"] == 2
    sanity = run("sanity", "--broker-config", file, "-f", "ndjson")
    assert {one["threads"] for one in sanity.objects if "threads" in one} == {3}


@pytest.mark.parametrize("command", ["verify", "stat", "gaps"])
def test_how_far_ahead_a_timestamp_may_be_is_that_of_the_file(run, properties, tmp_path, command):
    log = tmp_path / "data" / "orders-0" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    stamp = WRITTEN + 7_200_000
    log.write_bytes(new_batch(0, b"x", base_timestamp=stamp, max_timestamp=stamp))
    os.utime(log, ns=(WRITTEN * 1_000_000,) * 2)
    for text, count in (
        ("", 0),
        ("log.message.timestamp.after.max.ms=3600000\n", 1),
        ("log.message.timestamp.difference.max.ms=3600000\n", 1),
        ("log.message.timestamp.difference.max.ms=1\nlog.message.timestamp.after.max.ms=7200000\n",
         0),
    ):  # fmt: skip
        file = properties(text)
        for path in (log.parent, log):
            result = run(command, "--broker-config", file, "-f", "ndjson", path)
            found = [one for one in result.of_type("finding") if "timestamp" in one["code"]]
            assert len(found) == count, (text, path)


def test_how_sparse_an_offset_index_may_be_is_that_of_the_file_or_of_the_topic(
    run, properties, scenario, tmp_path
):
    home = tmp_path / "data"
    shutil.copytree(scenario("4.3.1/clean") / "index.dense-0", home / "orders-0")
    (home / "orders-0" / "partition.metadata").unlink()
    (index, _) = sorted((home / "orders-0").glob("*.index"))
    index.write_bytes(b"")
    missing = ["offset-index/incomplete"]
    wide = "log.index.interval.bytes=1000000\n"

    def found(text):
        words = "verify", "--broker-config", properties(text), "-f", "ndjson"
        every = [run(*words, path) for path in (home, home / "orders-0")]
        codes = [[one["code"] for one in result.of_type("finding")] for result in every]
        return [[code for code in of_path if code in missing] for of_path in codes]

    assert found("") == [missing] * 2
    assert found(wide) == [[]] * 2
    settings = [made.config(2, "orders", "index.interval.bytes", "1000000")]
    made.log_dir_of(home, [made.topic("orders", "J8aAPcfLQt2bqs1JT_rMgQ"), *settings])
    assert found("") == [[]] * 2


def test_the_default_policy_of_topics_gives_gaps_their_reason(run, properties, tmp_path):
    log = tmp_path / "orders-0" / f"{0:020d}.log"
    log.parent.mkdir()
    log.write_bytes(new_batch(0, b"x") + new_batch(9, b"x"))
    for policy, reason in (("compact", "compaction"), ("delete", "unknown")):
        file = properties(f"log.cleanup.policy={policy}\n")
        words = ("--broker-config", file, "-f", "ndjson", log.parent)
        (gap,) = run("gaps", *words).of_type("gap")
        assert gap["reason"] == reason
        assert f"cleanup.policy={policy} " in gap["evidence"]
        (other,) = run("gaps", "--cleanup-policy", "compact", *words).of_type("gap")
        assert other["reason"] == "compaction"
        holes = [one for one in run("verify", *words).of_type("finding")
                 if one["code"] == "batch/hole"]  # fmt: skip
        assert len(holes) == (reason == "unknown")
        assert all(f"cleanup.policy={policy} " in hole["message"] for hole in holes)


HINTS = {
    "nothing": ({}, None),
    "a protocol": ({"inter.broker.protocol.version": "3.7-IV4"}, (3, 7)),
    "a protocol of three numbers": ({"inter.broker.protocol.version": "3.8.1"}, (3, 8)),
    "ZooKeeper": ({"zookeeper.connect": "localhost:2181"}, (3, 9)),
}


@pytest.mark.parametrize("name", HINTS)
def test_the_file_hints_at_the_release(name):
    static, release = HINTS[name]
    assert releases.hinted(static) == release


def test_the_release_is_hinted_at_only_where_the_log_dirs_do_not_show_it(
    run, scenario, properties, tmp_path
):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "data", "codec-none-0")
    file = properties("inter.broker.protocol.version=3.7\nprocess.roles=broker\n")

    def release(*words):
        (one,) = run("doctor", "-f", "ndjson", *words).of_type("versions")
        return json.dumps(one)

    assert "3.7" in release("--broker-config", file, home)
    assert "3.9" in release("--broker-config", file, "--kafka-version", "3.9", home)
    assert "4.3" in release("--broker-config", file, scenario("4.3.1/clean"))


@pytest.mark.parametrize(
    "line",
    [
        "node.id=one", "broker.id=-2", "process.roles=brokers", "log.cleaner.enable=no",
        "remote.log.storage.system.enable=1", "controller.quorum.voters=1",
        "controller.quorum.voters=1@host",
    ],
)  # fmt: skip
def test_a_setting_of_the_node_that_a_broker_could_not_use_is_named(properties, line):
    with pytest.raises(UsageError) as caught:
        load(str(properties(f"log.dirs=/a\n{line}\n")))
    assert f":2: {line.partition('=')[0]}: " in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "node.id=1", "process.roles= broker , controller", "log.cleaner.enable=FALSE",
        "controller.quorum.voters=1@[::1]:9093, 2@host:9093", "controller.quorum.voters=",
    ],
)  # fmt: skip
def test_a_setting_of_the_node_that_a_broker_can_use_is_taken(properties, line):
    assert load(str(properties(f"log.dirs=/a\n{line}\n"))).warnings == ()


def test_a_setting_on_which_a_start_depends_and_that_no_rule_reads_is_named(properties):
    text = "log.dirs=/a\nzookeeper.metadata.migration.enable=secret\nnum.io.threads=1\n"
    (warning,) = load(str(properties(text))).warnings
    assert ":2: zookeeper.metadata.migration.enable: " in warning
    assert "secret" not in warning


def test_a_broken_row_of_the_cleaner_means_nothing_without_a_cleaner(run, homes, properties):
    (homes[0] / "cleaner-offset-checkpoint").write_bytes(b"0\n1\norders 0\n")
    text = f"log.dirs={homes[0]}\nprocess.roles=broker\n"
    on, off = (
        {one["action"] for one in run(
            "plan", "--broker-config", properties(text + f"log.cleaner.enable={value}\n"), "-f",
            "ndjson",
        ).of_type("action")}
        for value in ("true", "false")
    )  # fmt: skip
    assert {"offline", "refuse"} & on
    assert not {"offline", "refuse"} & off


def test_without_the_option_no_setting_is_taken(run, homes):
    assert "(line " not in run("plan", homes[0]).stderr


def test_other_commands_do_not_take_the_option(run, properties):
    file = properties("log.dirs=/a\n")
    assert run("doctor", "--environment", "--broker-config", file).status == 2
    for command in ("lookup", "diff", "undo", "checkpoint set", "checkpoint rebuild"):
        result = run(*command.split(), "--broker-config", file)
        assert result.status == 2
        assert "--broker-config" in result.stderr


def test_the_next_command_names_paths_that_work(run, homes, properties):
    file = properties(f"log.dirs={homes[1]}\n")
    next_commands = run("plan", "--broker-config", file, "-f", "ndjson").objects[-1]["next"]
    for line in next_commands:
        assert Path(shlex.split(line)[-1]).exists()
