"""``logtool undo``: reversal of a command with --apply."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread

UndoneDir = Annotated[
    Path,
    typer.Argument(
        metavar="UNDO_DIR",
        help="Undo directory that the changing command printed.",
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
    """Restore every file that a command with --apply changed.

    The command restores content, names, modes, owners and times. Without --apply it writes nothing
    and prints what it would restore. It can undo a complete change and one that was interrupted. If
    undo itself is interrupted, run it again. The undo directory stays; you can delete it
    afterwards.

    If a file differs from both its state before the change and its state after the change, another
    program (for example a broker) has changed it. Then undo restores nothing.

    Examples:
      logtool undo /var/lib/kafka/data.logtool-undo-20260102T030405Z
      logtool undo --apply /var/lib/kafka/data.logtool-undo-20260102T030405Z

    Security:

    The undo directory decides which files are written. Therefore it must belong to you or to root,
    and no other user may have write access to it. The command changes nothing outside of the log
    dir and follows no symbolic link there.

    Exit status:
      0    with --apply: done; without: nothing to restore
      1    without --apply: something to restore
      2
      4    a file could not be read or written; the message shows how to continue
      5    refused: a broker holds the log dir, another program changed a file, the directory is not
           an undo directory, or a user other than you and root owns it or can write to it
      130  ...; run the same command again to continue

    """
    from logtool.commands.views.undo import run

    raise typer.Exit(run(undo_dir, printing, apply=apply))
