"""The command ``logtool``: its subcommands, and how the program ends.

Nothing is imported here that the help of the program can do without: the module of a command when
it is asked for, the engine when the command runs, and what prints when there is something to say.
"""

import gc
import os
import re
import sys
from collections.abc import Sequence
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
_VERBOSE = re.compile(r"-[a-zA-Z]*v[a-zA-Z]*|--verbose")

COMMANDS = {
    "doctor": "Say on one screen what is wrong with log dirs, what the next start does, and what "
    "to do.",
    "verify": "Check log dirs, partition dirs or files; the verdict is the exit status.",
    "dump": "Print what the files of a data directory hold, record by record where they hold "
    "records.",
    "kafka-dump-log": "Print what kafka-dump-log.sh of Kafka 4.3 prints, given its command line.",
    "dump-index": "Print offset, time and transaction indexes of files, partition dirs or log "
    "dirs.",
    "stat": "Show sizes, counts, codecs, producers, time span and rate of partitions or segments.",
    "diff": "Compare the copies of partitions on several brokers, batch by batch.",
    "plan": "Say what a broker will do to log dirs or partition dirs at its next start, and how "
    "long.",
    "recover": "Recover log dirs or partition dirs as a broker would, without a broker; can be "
    "undone.",
    "salvage": "Save every sound batch of damaged logs into new partition dirs, and say what is "
    "left.",
    "undelete": "Bring back what still waits for its deletion, as new partition dirs.",
    "convert": "Write segments of Redpanda as logs of Kafka, or logs of Kafka as segments of "
    "Redpanda.",
    "rebuild-index": "Build indexes and producer snapshots anew, byte by byte as a broker's "
    "recovery would.",
    "undo": "Put back what a command with --apply changed: every byte, name, mode, owner and time.",
    "gaps": "List every missing offset of log dirs, partition dirs or logs, with the reason.",
    "sanity": "Time the sanity checks of indexes at a broker's start, eager and lazy; say what "
    "each misses.",
    "watermark": "Show high watermark, log end and leader epoch of replicas, and what a new leader "
    "would cost.",
    "watermark simulate": "Play a scenario of replication, and show log ends and high watermarks "
    "after every event.",
    "scan": "Turn log dirs or partition dirs into Parquet tables, on Spark.",
    "groups": "Show groups, their members, committed offsets and lag as __consumer_offsets has "
    "them.",
    "metadata": "Show the metadata log of a KRaft cluster: topics, brokers, settings, and how they "
    "changed.",
    "txns": "Show producers and transactions of log dirs, partition dirs or logs, and what is "
    "stuck.",
    "dirs": "Hold log dirs against the metadata log: their ids, misplaced replicas, futures and "
    "strays.",
    "may-delete": "Say whether a partition dir may be deleted, with the proof, or what only it "
    "has.",
    "quorum": "Say what the controllers that are left know, who votes, and which copy to keep.",
    "lookup": "Find the segment, the batch and the record of an offset or a timestamp in a "
    "partition dir.",
    "explain": "Explain what a finding means, what a broker does about it, and what to do.",
    "schema": "Print the columns of a table: name, type, unit, what null says, and the meaning.",
    "completion": "Print what bash, zsh or fish read to complete commands, options and their "
    "values.",
    "man": "Print a page of the manual as the program man reads it, or list the pages.",
    "checkpoint": "Show, check, mend and change the checkpoints of a log dir.",
    "generate": "Write man/ and completions/ below DIR from the commands and the guides "
    "themselves.",
}
"""Every command with the first line of its docstring, in the order of the help."""
HIDDEN = ("generate",)


class _Summaries(LazyGroup):
    summaries = COMMANDS
    hidden_names = HIDDEN


app = new_app(
    name=NAME,
    cls=_Summaries,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from logtool.commands import output

        output.plain(f"{NAME} {__version__}")
        raise typer.Exit


def logtool(
    version: Annotated[
        bool,
        typer.Option(
            "-V", "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Verify, dump, foretell and recover the log directories of Apache Kafka, with no broker.

    Nothing is ever written to a data directory without --apply: a copy or a read-only mount is
    enough. What --apply changes, 'logtool undo' puts back.

    Examples:
      logtool verify /var/lib/kafka/data
      logtool plan /var/lib/kafka/data
      logtool dump --records /var/lib/kafka/data/orders-0/00000000000000000000.log
      logtool explain batch/crc

    Exit status:
      0    complete, and nothing found
      1    complete, with findings
      2    the command line makes no sense
      4    incomplete: some input could not be read
      5    refused: it would not be safe
      6    a time limit ran out
      70   a bug in logtool
      129, 130, 143  ended by SIGHUP, Ctrl-C or SIGTERM
      141  whoever read the output stopped reading

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
    status = run(sys.argv[1:])
    # The interpreter looks for garbage three times as it ends: a seventh of a short run, and the
    # memory goes back to the system a moment later anyway.
    gc.freeze()
    sys.exit(status)


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
    command = typer.main.get_command(app)
    arguments = _with_two_words(arguments)
    if not arguments:
        with command.make_context(NAME, [], resilient_parsing=True) as context:
            from logtool.commands import output

            output.trouble(context.get_help())
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
            return _usage_error(error.format_message(), path)
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            return _unwritten(error)
        return _bug(error, arguments)
    return Exit.OK


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


def _usage_error(message: str, path: str) -> int:
    from logtool.commands import output
    from logtool.commands.printing import text

    output.trouble(f"{path}: {text.escape(message)}\nTry '{path} --help'.")
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

    from logtool.commands import output
    from logtool.commands.printing import text

    verbose = any(_VERBOSE.fullmatch(argument) for argument in arguments)
    if verbose:
        lines = "".join(traceback.format_exception(error)).splitlines()
        output.trouble("\n".join(text.escape(line) for line in lines))
    output.error(f"this is a bug in logtool {__version__}: {type(error).__name__}: {error}")
    hint = "the traceback above" if verbose else "what the same command prints with -v"
    output.trouble(f"Please report it with the command line and {hint}.")
    return Exit.BUG
