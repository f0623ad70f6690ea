"""``logtool undo``: put back what a command with --apply changed."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread

UndoneDir = Annotated[
    Path,
    typer.Argument(
        metavar="UNDO_DIR",
        help="What the command that changed files named.",
        show_default=False,
        parser=options.local_path,
    ),
]


@spread
def undo(
    *,
    undo_dir: UndoneDir,
    apply: options.Apply = False,
    printing: Annotated[options.Printing, Without("progress", "verbose")],
) -> None:
    """Put back what a command with --apply changed: every byte, name, mode, owner and time.

    Without --apply it writes nothing and prints what it would put back. It undoes a change that was
    completed, and one that was stopped half way. If undo itself is stopped, run it again.

    If a file is neither what it was before the change nor what it was after it, something else has
    changed it, such as a broker that was started meanwhile. Then undo puts nothing back at all.

    The command does what the undo directory says. Therefore the directory must belong to you or to
    root, and nobody else may be able to write there. Nothing outside of its log dir is changed, and
    no symbolic link is followed there.

    The undo directory stays, and can be removed afterwards.

    Examples:
      logtool undo /var/lib/kafka/data.logtool-undo-20260102T030405Z
      logtool undo --apply /var/lib/kafka/data.logtool-undo-20260102T030405Z

    Exit status:
      0    with --apply: it was put back; without: nothing to put back
      1    without --apply: there is something to put back
      2
      4    some file could not be read or written; the message says how to go on
      5    refused: a broker holds the log dir, a file was changed by somebody else, the
           directory is no undo directory, or somebody else than you and root owns it or may
           write there
      130  interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP); the same command goes on

    """
    from logtool.commands.views.undo import run

    raise typer.Exit(run(undo_dir, printing, apply=apply))
