"""Options that one would expect everywhere: the commands without them, and why."""

import pytest
import typer.main

from logtool import cli
from logtool.commands.program.command_tree import read_tree

COMMANDS = {
    command.name: {name for param in command.options for name in param.names}
    for command in read_tree(typer.main.get_command(cli.app))[1]
}
NO_LOG = {
    "watermark simulate": "reads a scenario",
    "explain": "reads no log",
    "schema": "reads no log",
    "completion": "reads no log",
    "man": "reads no log",
    "checkpoint set": "changes one row of one file",
    "convert": "writes segments, one by one, as others",
    "undo": "puts back the files of one undo directory, all or none",
    "kafka-dump-log": "takes the command line of Kafka's tool",
}
"""Commands for which none of these options makes sense, or none may be."""
METADATA = ("metadata show", "metadata at", "metadata log", "metadata diff")
SMALL = {
    **dict.fromkeys(METADATA, "reads the metadata log, each record after those before it"),
    "checkpoint show": "reads small files, and of logs what is not flushed",
    "checkpoint lint": "reads small files and the ends of logs",
}
_NAMES = "reads little more than names"
REMOTE = ("remote lineage", "remote verify", "remote rebuild-plan", "remote restore")
LIMITED = {"groups", "dump", *REMOTE} - {"remote restore"}
"""Commands that look at one thing after the other, and yet take as long as their input is large."""
ONE_BY_ONE = {
    "dump": "prints in the order of the files, at the pace of its reader",
    "dump-index": "prints in the order of the files, at the pace of its reader",
    "lookup": "reads one partition up to one record",
    "sanity": "measures times, which other threads or a limit would change",
    "groups": "replays one partition after the other, so that memory stays flat",
    **dict.fromkeys(REMOTE, "replays one partition after the other, and reads one object"),
    "scan": "Spark divides the work: --master and --conf",
    **dict.fromkeys(("retention", "cleaner", "space", "trim"), _NAMES),
}
ALL_OR_NONE = {
    "checkpoint rebuild": "a checkpoint is mended from all logs that it is about",
    "trim": "the segments to remove are chosen among all logs",
}
NO_VERDICT = {
    "dump": "prints what is there; damage is status 1 by itself",
    "dump-index": "prints what is there; a wrong entry is status 1 by itself",
    "remote rebuild-plan": "prints what is there and what is lacking",
    "remote restore": "writes what is lacking, which is no fault",
    "lookup": "the verdict is whether both ways agree",
    "diff": "the verdict is about copies; --identical makes it stricter",
    "plan": "the verdict is what the start loses",
    "quorum": "the verdict is whether a person must act",
    "dirs": "the verdict is whether a person must act",
    "may-delete": "the verdict is yes or no",
    "recover": "the verdict is whether there is something to do",
    "rebuild-index": "the verdict is whether there is something to do",
    "checkpoint rebuild": "the verdict is whether there is something to do",
    **dict.fromkeys(("salvage", "undelete"), "the verdict is whether something was rejected"),
    "gaps": "the verdict is whether a gap may mean loss",
    "sanity": "the verdict is what the checks of a broker do not see",
    "scan": "writes findings as a table",
    "case": "prints what is in a file, which is no fault",
    "txns": "the verdict is whether a transaction hangs",
    "checkpoint show": "prints what is there; --max-unflushed has a verdict",
    "retention": "prints what will be deleted, which is no fault",
    "cleaner": "prints what will be cleaned, which is no fault",
    "space": "the verdict is whether the steps free enough",
    "trim": "the verdict is whether there is something to do",
    **dict.fromkeys(METADATA, "the verdict is whether the log can be applied, or what differs"),
}
SUMS = "its rows are few, or all of them make up the answer; head cuts them"
NO_ROWS_TO_CUT = {
    **dict.fromkeys(
        ("groups", "case", *REMOTE, "salvage", "undelete",
         "doctor", "report", "plan", "recover", "rebuild-index", "diff", "sanity", "watermark",
         "scan", "lookup", "gaps", "txns", "dump-index", "quorum", "cluster", "dirs",
         "may-delete", "checkpoint show", "checkpoint lint", "retention", "cleaner", "space",
         "trim", "checkpoint rebuild", *METADATA),
        SUMS,
    ),
    **dict.fromkeys(("verify", "scrub"), "--max-findings N"),
    "stat": "--top N",
}  # fmt: skip
ORDERED = {
    **dict.fromkeys(
        ("groups", "case", *REMOTE, "salvage", "undelete",
         "doctor", "report", "verify", "scrub", "plan", "recover", "rebuild-index", "diff",
         "sanity", "watermark", "scan", "lookup", "gaps", "txns", "dump", "dump-index", "quorum",
         "cluster", "dirs", "may-delete", "checkpoint show", "retention", "cleaner", "space",
         "trim", "checkpoint lint", "checkpoint rebuild", *METADATA),
        "rows stand in the order of the paths, or the worst first",
    ),
}  # fmt: skip
WHOLE = {
    **dict.fromkeys(
        ("groups", "case", *REMOTE, "salvage", "undelete",
         "doctor", "report", "verify", "scrub", "stat", "plan", "recover", "rebuild-index", "diff",
         "sanity", "watermark", "scan", "gaps", "txns", "dump-index", "quorum", "cluster", "dirs",
         "may-delete", "checkpoint show", "retention", "cleaner", "space", "trim",
         "checkpoint lint", "checkpoint rebuild", "metadata show", "metadata log"),
        "judges whole segments: what stands before a place decides what is right there",
    ),
}  # fmt: skip
NO_START = {
    **dict.fromkeys(
        ("groups", "case", *REMOTE,
         "verify", "scrub", "dump", "dump-index", "stat", "diff", "gaps", "sanity", "scan", "txns",
         "lookup", "checkpoint show", "checkpoint lint", "checkpoint rebuild", "rebuild-index",
         "quorum", "dirs", "may-delete", "salvage", "undelete", "retention", "space", "trim",
         "cleaner",
         *METADATA),
        "says nothing that differs from release to release",
    ),
}  # fmt: skip
ONE_PARTITION = "looks at one partition dir"
WITHOUT = {
    "--jobs": {**NO_LOG, **SMALL, **ONE_BY_ONE, "case": "writes one file, byte after byte"},
    "--max-rate": {
        **NO_LOG, **SMALL,
        **{name: why for name, why in ONE_BY_ONE.items() if name not in LIMITED},
    },
    "--max-duration": {
        **NO_LOG, **SMALL, **ALL_OR_NONE,
        **{
            name: why for name, why in ONE_BY_ONE.items()
            if name not in LIMITED | {"sanity", "retention", "cleaner", "space", "trim"}
        },
    },
    "--fail-on": {**NO_LOG, **NO_VERDICT},
    "--limit": {**NO_LOG, **NO_ROWS_TO_CUT},
    "--sort": {**NO_LOG, **ORDERED},
    "--offset": {**NO_LOG, **WHOLE},
    "--timestamp": {
        **NO_LOG, **WHOLE, "metadata diff": "two times may have no record between them",
    },
    "--progress": {
        **NO_LOG, **SMALL, "sanity": "drawing would change the times measured",
        **dict.fromkeys(("retention", "cleaner", "space", "trim"), _NAMES),
        "checkpoint rebuild": "shows the difference that it makes, at once",
    },
    "--files-from": {
        **NO_LOG,
        "checkpoint rebuild": "mends one log dir, partition dir or file",
        "lookup": "looks into one partition",
        "may-delete": ONE_PARTITION,
    },
    "--broker-config": {
        **NO_LOG,
        "checkpoint rebuild": "mends one log dir, partition dir or file",
        "lookup": "looks into one partition",
        "may-delete": ONE_PARTITION,
        "diff": "compares the log dirs of several brokers, and the file names those of one",
    },
    "--partition": {
        **NO_LOG, "quorum": "looks at one partition, the metadata log",
        "may-delete": ONE_PARTITION, "case": "a part of a log dir has other answers",
        **dict.fromkeys(METADATA, "the metadata log has one partition"),
    },
    "--kafka-version": {**NO_LOG, **NO_START},
    "--json": {
        "completion": "prints what a shell reads", "man": "prints what man reads",
        "kafka-dump-log": "prints what Kafka's tool prints",
    },
}  # fmt: skip
"""By option: the commands without it, and why."""


@pytest.mark.parametrize("option", WITHOUT)
def test_each_command_has_the_option_or_a_reason_why_not(option):
    lacking = {name for name, options in COMMANDS.items() if option not in options}
    assert lacking == set(WITHOUT[option])
    assert all(WITHOUT[option].values())


@pytest.mark.parametrize("name", [name for name, have in COMMANDS.items() if "--output" in have])
def test_output_says_whether_it_is_a_file_or_a_directory(name):
    command = next(one for one in read_tree(typer.main.get_command(cli.app))[1]
                   if one.name == name)  # fmt: skip
    (output,) = [param for param in command.options if "--output" in param.names]
    assert output.metavar in ("FILE", "DIR")


@pytest.mark.parametrize(
    "name", [n for n in COMMANDS if n not in (*NO_LOG, "lookup", "may-delete")]
)
def test_the_usage_shows_whether_several_paths_are_taken(run, name):
    usage = run(*name.split(), "--help").stdout.splitlines()[0]
    several = "--files-from" in COMMANDS[name]
    assert usage.endswith(("[PATH...]", "[DIR...]")) is several, usage


PARTITIONS = {
    "one": (["0"], [0]),
    "some": (["0,2"], [0, 2]),
    "a range": (["1-3"], [1, 2, 3]),
    "both": (["0,2-3"], [0, 2, 3]),
    "given twice": (["0", "--partition", "2-2,0"], [0, 2]),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_partitions_are_named_by_numbers_and_ranges(run, tmp_path, name):
    given, expected = PARTITIONS[name]
    for number in range(5):
        directory = tmp_path / "data" / f"orders-{number}"
        directory.mkdir(parents=True)
        (directory / f"{0:020d}.log").write_bytes(b"")
    found = run("stat", "-f", "ndjson", "--partition", *given, tmp_path / "data")
    assert [one["partition"] for one in found.of_type("partition")] == expected


@pytest.mark.parametrize(
    "text", ["", "x", "1-", "-1", "3-1", "1,,2", "0-99999", "1-2-3", "2147483648"]
)
def test_what_names_no_partition_is_a_usage_error(run, tmp_path, text):
    result = run("stat", f"--partition={text}", tmp_path)
    assert (result.status, result.stdout) == (2, "")
    assert f"--partition {text}" in result.stderr


def test_checkpoints_of_a_list_of_log_dirs(run, scenario, tmp_path):
    home = scenario("4.3.1/clean")
    listed = tmp_path / "list"
    listed.write_text(f"{home}\n")
    for command in ("show", "lint"):
        by_list = run("checkpoint", command, "-f", "csv", "--files-from", listed)
        assert by_list.stdout == run("checkpoint", command, "-f", "csv", home).stdout
        assert by_list.status == 0


def test_checkpoint_rebuild_keeps_to_a_rate_and_says_the_same(run, scenario):
    home = scenario("4.3.1/killed")
    slow = run("checkpoint", "rebuild", "--max-rate", "100M", home)
    fast = run("checkpoint", "rebuild", home)
    assert (slow.status, slow.stdout, slow.stderr) == (1, fast.stdout, fast.stderr)
