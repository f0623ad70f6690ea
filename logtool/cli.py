"""The command ``logtool``: its subcommands, and how the program ends.

Nothing is imported here that the help of the program can do without: the module of a command when
it is asked for, the engine when the command runs, and what prints when there is something to say.
"""

import gc
import os
import re
import sys
import textwrap
import time
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer
import typer.main

from logtool import __version__
from logtool.commands.printing.streams import NO_SPACE, discard_stdout, occupy, problem_of_stdout
from logtool.commands.program.lazy_group import LazyGroup, help_text, new_app
from logtool.errors import LogtoolError, RefusedError, UsageError, signal_of
from logtool.exits import Exit

NAME = "logtool"
_COLLECTED = 50_000
"""Objects that may refer to others, beyond those let go, after which garbage is looked for."""
_LONG_SECONDS = 10
"""Duration of a command after which the kernels are looked up."""
_VERBOSE = re.compile(r"-[a-zA-Z]*v[a-zA-Z]*|--verbose")

SECTIONS = {
    "In an incident": {
        "doctor": "Show on one screen what is wrong, what the next start will do, and what to do.",
        "verify": "Check log dirs, partition dirs or files; the exit status is the verdict.",
        "explain": "Explain a finding: its meaning, what a broker does about it, and what to do.",
        "plan": "Show what a broker will do at its next start, and how long it will take.",
        "recover": "Recover logs as a broker would at its start, without a broker; can be undone.",
        "undo": "Undo the changes of one command that ran with --apply.",
    },
    "Judge": {
        "report": "Write one page: what is wrong, what the next start does, a map of the damage.",
        "scrub": "Check every segment once in a cycle, a share at each run.",
        "case": "Write log dirs into one file without payload, to send it to somebody who helps.",
        "gaps": "List every missing offset, with the reason.",
        "txns": "Show producers and transactions, and find hanging transactions.",
        "retention": "Show what retention deletes when, and what keeps the rest.",
        "cleaner": "Show which compacted partitions are cleaned, and why others are not.",
        "space": "Show what takes the space of log dirs, when a disk is full, and what to free.",
        "may-delete": "Check whether other copies hold all data of a partition dir.",
        "sanity": "Measure the index sanity checks of a broker's start, and what they miss.",
    },
    "Look inside": {
        "dump": "Print the content of log segments, indexes and checkpoints.",
        "dump-index": "Print offset, time and transaction indexes.",
        "kafka-dump-log": "Print what kafka-dump-log.sh of Kafka 4.4 prints; takes its options.",
        "stat": "Show sizes, counts, codecs, producers, time span and rate of logs.",
        "lookup": "Find the segment, batch and record of an offset or a timestamp.",
        "remote": "Show and check what tiered storage holds, and what only it holds.",
        "groups": "Show groups, members, committed offsets and lag from __consumer_offsets.",
        "metadata": "Show the KRaft metadata log: topics, brokers, settings, and their changes.",
    },
    "Compare": {
        "diff": "Compare the copies of partitions on several brokers, batch by batch.",
        "dirs": "Compare log dirs with the metadata log: ids, misplaced replicas, strays.",
        "watermark": "Show high watermarks and log ends, and what a new leader would lose.",
        "watermark simulate": "Simulate replication, and show log ends and high watermarks.",
    },
    "Repair": {
        "salvage": "Save every sound batch of damaged logs into new partition dirs.",
        "undelete": "Restore deleted segments and partitions that are still on the disk.",
        "trim": "Remove the oldest segments of logs while the broker is stopped; can be undone.",
        "rebuild-index": "Rebuild indexes and producer snapshots as a broker's recovery would.",
        "checkpoint": "Show, check, repair and edit the checkpoint files of a log dir.",
        "convert": "Convert Redpanda segments to Kafka logs, or Kafka logs to Redpanda segments.",
    },
    "Many brokers": {
        "cluster": "Judge the volumes of all nodes before the start: who leads, what is lost.",
        "quorum": "Compare the controllers' copies of the metadata log; change the voters.",
        "scan": "Write log dirs as Parquet tables, with Spark.",
    },
    "About the tool": {
        "schema": "Print the columns of a table: name, type, unit and meaning.",
        "man": "Print a page of the manual, or list the pages.",
        "completion": "Print or install the completion script for bash, zsh or fish.",
    },
}
"""The first line of the docstring of each command, by the sections and in the order of the help."""
HIDDEN = {"generate": "Write man pages, completions and JSON Schemas below DIR."}
COMMANDS = {name: line for lines in (*SECTIONS.values(), HIDDEN) for name, line in lines.items()}
"""Every command with the first line of its docstring."""


class _Summaries(LazyGroup):
    summaries = COMMANDS
    hidden_names = HIDDEN
    sections = SECTIONS


app = new_app(
    name=NAME,
    cls=_Summaries,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from logtool.commands.program import version

        version.show(NAME)
        raise typer.Exit


def logtool(
    version: Annotated[
        bool,
        typer.Option(
            "-V",
            "--version",
            callback=_version,
            is_eager=True,
            help="Print versions, and which kernels are compiled.",
        ),
    ] = False,
) -> None:
    """Check, inspect, compare and repair the log directories of Apache Kafka, without a broker.

    logtool reads the files of a log dir directly, so a copy or a read-only mount is enough. It
    changes files in a log dir only with --apply; 'logtool undo' restores them. 'logtool COMMAND
    --help' shows the options of a command.

    Examples:
      logtool doctor /var/lib/kafka/data
      logtool verify /var/lib/kafka/data
      logtool plan /var/lib/kafka/data
      logtool dump --records /var/lib/kafka/data/orders-0/00000000000000000000.log
      logtool explain batch/crc

    Exit status:
      0    complete, nothing found
      1    complete, something found
      2
      4
      5    refused, because it would not be safe
      6
      70   a bug in logtool
      129  ended by SIGHUP
      130  interrupted by Ctrl-C
      141  the reader of the output stopped reading
      143  ended by SIGTERM

    """


app.callback(help=help_text(logtool))(logtool)


def main() -> None:
    """Run the command line of this process and end it with the status of the contract."""
    # What imports leave is no garbage, and to look through it takes a tenth of a short run.
    gc.set_threshold(_COLLECTED)
    # Nothing here multiplies matrices, and OpenBLAS spends a sixth of a short run on its threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not occupy():
        text = "standard output is closed, so no result could be printed; nothing was done"
        sys.exit(_failed(Exit.INCOMPLETE, text))
    begin = time.monotonic()
    status = run(sys.argv[1:])
    if {"-q", "--quiet"}.isdisjoint(sys.argv):
        report_slow_kernels(time.monotonic() - begin)
    # The interpreter looks for garbage three times as it ends: a seventh of a short run, and the
    # memory goes back to the system a moment later anyway.
    gc.freeze()
    sys.exit(status)


def report_slow_kernels(seconds: float) -> None:
    """Print one line if a command took long, and kernels are not compiled."""
    if seconds < _LONG_SECONDS:
        return
    from logtool.running.kernels import KERNELS, is_compiled

    if not all(map(is_compiled, KERNELS)):
        _trouble(
            f"{NAME}: kernels are not compiled, so that large logs take many times longer; "
            f"see '{NAME} doctor --environment'"
        )


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit status."""
    try:
        status = _run(arguments)
        problem = problem_of_stdout()
        if problem:
            status = _unwritten(problem)
    except KeyboardInterrupt as end:
        status = Exit.of_signal(signal_of(end))
    except BrokenPipeError:
        discard_stdout()
        status = Exit.CLOSED_PIPE
    return status


def _run(arguments: Sequence[str]) -> int:
    command = _command(app)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    arguments = _with_two_words(arguments)
    if not arguments:
        with command.make_context(NAME, [], resilient_parsing=True) as context:
            _trouble(context.get_help())
        return Exit.USAGE
    try:
        given = _settings(command, arguments)
    except UsageError as error:
        return _failed(Exit.USAGE, str(error))
    try:
        with command.make_context(NAME, list(arguments), default_map=given) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except UsageError as error:
        return _usage_error(str(error), _command_path(command, arguments))
    except RefusedError as error:
        return _failed(Exit.REFUSED, str(error))
    except LogtoolError as error:
        return _failed(Exit.INCOMPLETE, str(error))
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        # Typer's own exceptions for a wrong command line are recognized by what they can do:
        # their classes have moved between its releases.
        if hasattr(error, "format_message"):
            path = getattr(getattr(error, "ctx", None), "command_path", NAME)
            # Typer puts each choice of a missing option on a line of its own.
            return _usage_error(error.format_message().replace("\n\t", " "), path)
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            return _unwritten(error)
        return _bug(error, arguments)
    return Exit.OK


@cache
def _command(program: typer.Typer) -> Any:
    """Return the command of the whole program, whose subcommands are imported when they run."""
    return typer.main.get_command(program)


def _settings(command: Any, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the user's own defaults; UsageError for what makes no sense in them.

    The help needs none of them to be sound, nor does the command that shows where they come from.
    """
    from logtool.commands.program import settings

    try:
        return settings.defaults(command, arguments)
    except UsageError:
        if {"-h", "--help", "-V", "--version", "--environment"}.isdisjoint(arguments):
            raise
        return {}


def _with_two_words(arguments: Sequence[str]) -> Sequence[str]:
    """Return the command line with a command of two words as one argument.

    `watermark` takes paths, so it can be no group with a command `simulate` in it.
    """
    both = " ".join(arguments[:2])
    return [both, *arguments[2:]] if len(arguments) > 1 and both in COMMANDS else arguments


def _command_path(command: Any, arguments: Sequence[str]) -> str:
    """Return the program and the command of a command line, as far as they are recognized."""
    path = [NAME]
    for argument in arguments:
        if argument in getattr(command, "commands", ()):
            command = command.commands[argument]
            path.append(argument)
    return " ".join(path)


def _trouble(message: str) -> None:
    """Print a message on standard error."""
    from logtool.commands import output

    output.trouble(message)


def _usage_error(message: str, path: str) -> int:
    from logtool.commands.printing import terminal, text

    lines = [f"{path}: {text.escape(message)}"]
    if width := terminal.width_of(sys.stderr, wide=False):
        lines = textwrap.wrap(
            lines[0], width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    _trouble("\n".join([*lines, f"Try '{path} --help'."]))
    return Exit.USAGE


def _failed(status: Exit, message: str) -> int:
    from logtool.commands import output

    output.error(message)
    return status


def _unwritten(problem: OSError) -> int:
    """Say that standard output takes no more, and drop the rest of it."""
    discard_stdout()
    return _failed(Exit.INCOMPLETE, f"cannot write the output: {problem.strerror}")


def _bug(error: Exception, arguments: Sequence[str]) -> int:
    import traceback

    from logtool.commands.printing import text

    verbose = any(_VERBOSE.fullmatch(argument) for argument in arguments)
    if verbose:
        lines = "".join(traceback.format_exception(error)).splitlines()
        _trouble("\n".join(text.escape(line) for line in lines))
    _failed(Exit.BUG, f"this is a bug in logtool {__version__}: {type(error).__name__}: {error}")
    hint = "the traceback above" if verbose else "the output of the same command with -v"
    _trouble(f"Please report it with the command line and {hint}.")
    return Exit.BUG
