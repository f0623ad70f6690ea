"""The command ``logtool``: its subcommands, and how the program ends.

Nothing heavy is imported here: a command imports the engine when it runs.
"""

import re
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
import typer.main

from logtool import __version__
from logtool.commands import checkpoint, output, text
from logtool.commands.diff import diff
from logtool.commands.dump import dump
from logtool.commands.dump_index import dump_index
from logtool.commands.explain import explain
from logtool.commands.gaps import gaps
from logtool.commands.generate import generate
from logtool.commands.lookup import lookup
from logtool.commands.options import help_text
from logtool.commands.plan import plan
from logtool.commands.rebuild_index import rebuild_index
from logtool.commands.recover import recover
from logtool.commands.sanity import sanity
from logtool.commands.stat import stat
from logtool.commands.txns import txns
from logtool.commands.undo import undo
from logtool.commands.verify import verify
from logtool.commands.watermark import simulate, watermark
from logtool.errors import LogtoolError, RefusedError, UsageError
from logtool.exits import Exit

NAME = "logtool"
_VERBOSE = re.compile(r"-[a-zA-Z]*v[a-zA-Z]*|--verbose")

app = typer.Typer(
    name=NAME,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
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
      130  interrupted
      141  whoever read the output stopped reading

    """


app.callback(help=help_text(logtool))(logtool)
for _name, _function in (
    ("verify", verify),
    ("dump", dump),
    ("dump-index", dump_index),
    ("stat", stat),
    ("diff", diff),
    ("plan", plan),
    ("recover", recover),
    ("rebuild-index", rebuild_index),
    ("undo", undo),
    ("gaps", gaps),
    ("sanity", sanity),
    ("watermark", watermark),
    ("watermark simulate", simulate),
    ("txns", txns),
    ("lookup", lookup),
    ("explain", explain),
):
    app.command(_name, help=help_text(_function))(_function)
app.add_typer(checkpoint.app, name="checkpoint", help=help_text(checkpoint.checkpoint))
app.command("generate", help=help_text(generate), hidden=True)(generate)


def main() -> None:
    """Run the command line of this process and end it with the status of the contract."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit status."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = Exit.INTERRUPTED
    except BrokenPipeError:
        output.discard_stdout()
        status = Exit.CLOSED_PIPE
    return status


def _run(arguments: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    arguments = _with_two_words(arguments)
    if not arguments:
        with command.make_context(NAME, [], resilient_parsing=True) as context:
            output.trouble(context.get_help())
        return Exit.USAGE
    try:
        with command.make_context(NAME, list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except UsageError as error:
        return _usage_error(str(error), _command_path(arguments))
    except RefusedError as error:
        output.error(str(error))
        return Exit.REFUSED
    except LogtoolError as error:
        output.error(str(error))
        return Exit.INCOMPLETE
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        # Typer's own exceptions for a wrong command line are told by what they can do: their
        # classes have moved between its releases.
        if hasattr(error, "format_message"):
            path = getattr(getattr(error, "ctx", None), "command_path", NAME)
            return _usage_error(error.format_message(), path)
        return _bug(error, arguments)
    return Exit.OK


def _with_two_words(arguments: Sequence[str]) -> Sequence[str]:
    """Return the command line with a command of two words as one argument.

    `watermark` takes paths, so it can be no group with a command `simulate` in it.
    """
    both = " ".join(arguments[:2])
    known = len(arguments) > 1 and any(both == one.name for one in app.registered_commands)
    return [both, *arguments[2:]] if known else arguments


def _command_path(arguments: Sequence[str]) -> str:
    """Return the program and the command of a command line, as far as they can be told."""
    at, path = app, [NAME]
    for argument in arguments:
        groups = {group.name: group.typer_instance for group in at.registered_groups}
        if argument in groups:
            at = groups[argument] or at
            path.append(argument)
        elif any(argument == command.name for command in at.registered_commands):
            return " ".join([*path, argument])
    return " ".join(path)


def _usage_error(message: str, path: str) -> int:
    output.trouble(f"{path}: {text.escape(message)}\nTry '{path} --help'.")
    return Exit.USAGE


def _bug(error: Exception, arguments: Sequence[str]) -> int:
    verbose = any(_VERBOSE.fullmatch(argument) for argument in arguments)
    if verbose:
        lines = "".join(traceback.format_exception(error)).splitlines()
        output.trouble("\n".join(text.escape(line) for line in lines))
    output.error(f"this is a bug in logtool {__version__}: {type(error).__name__}: {error}")
    hint = "the traceback above" if verbose else "what the same command prints with -v"
    output.trouble(f"Please report it with the command line and {hint}.")
    return Exit.BUG
