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
        help="Undo directory; the command that made the changes printed its path.",
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
    """Undo the changes of one command that ran with --apply.

    logtool restores content, names, modes, owners and times of changed and removed files, and
    removes the files that the command created. Without --apply it writes nothing and prints what it
    would restore. It can undo a command that finished, and also one that was interrupted. If undo
    itself is interrupted, run it again. The undo directory stays; you can delete it afterwards.

    Before logtool writes, it compares each file with its state before and after the change. If a
    file matches neither, another program (for example a broker) has changed it, and logtool
    restores no file at all.

    Examples:
      logtool undo /var/lib/kafka/data.logtool-undo-20260102T030405Z
      logtool undo --apply /var/lib/kafka/data.logtool-undo-20260102T030405Z

    Security:

    The contents of the undo directory determine which files logtool writes. Therefore it must
    belong to you or to root, and no other user may have write access to it. logtool changes nothing
    outside of the log dir, and follows no symbolic link in the log dir.

    Exit status:
      0    with --apply: done; without: nothing to restore
      1    without --apply: something to restore
      2
      4    a file could not be read or written; the message shows how to continue
      5    refused: a broker has locked the log dir, another program changed a file, the directory
           is not an undo directory, or its owner or permissions are not safe (see Security)
      130  ...; run the same command again to continue

    """
    from logtool.commands.views.undo import run

    raise typer.Exit(run(undo_dir, printing, apply=apply))
