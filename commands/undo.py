"""``logtool undo``: reversal of a command with --apply, and of that reversal."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError

UndoneDirs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="UNDO_DIR",
        help="Undo directory; the command that made the changes printed its path. With --list: "
        "log dirs, or directories that hold undo directories. Default with --list: the current "
        "directory.",
        show_default=False,
        parser=options.local_path,
    ),
]
ListOption = Annotated[
    bool,
    typer.Option("--list", help="List the commands that changed a log dir, and change nothing."),
]

RedoOption = Annotated[
    bool,
    typer.Option("--redo", help="Undo the undo: make the changes of the command again."),
]


@spread
def undo(
    *,
    undo_dir: UndoneDirs = None,
    list_commands: ListOption = False,
    redo: RedoOption = False,
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
      logtool undo --list /var/lib/kafka/data
      logtool undo /var/lib/kafka/data.logtool-undo-20260102T030405Z
      logtool undo --apply /var/lib/kafka/data.logtool-undo-20260102T030405Z
      logtool undo --redo --apply /var/lib/kafka/data.logtool-undo-20260102T030405Z

    Redo:

    --redo makes changes again that were undone, from the same undo directory; they can be undone
    again. It is refused if a file is not as the undo left it, for example because a broker ran in
    between. A second undo without --redo changes nothing.

    History:

    With --list, it prints the commands with --apply that changed a log dir: when, how many files,
    the undo directory, and whether the changes were undone or redone. It finds undo directories
    with the default name next to the log dir, and those in the given directories.

    Security:

    The contents of the undo directory determine which files logtool writes. Therefore it must
    belong to you or to root, and no other user may have write access to it. logtool changes nothing
    outside of the log dir, and follows no symbolic link in the log dir.

    Exit status:
      0    with --apply: done; without: nothing to restore or to redo
      1    without --apply: something to restore or to redo
      2
      4    a file could not be read or written; the message shows how to continue
      5    refused: a broker has locked the log dir, another program changed a file, the directory
           is not an undo directory, or its owner or permissions are not safe (see Security)
      130  ...; run the same command again to continue

    """
    if list_commands and (apply or redo):
        raise UsageError("--list cannot be combined with --apply or --redo")
    given = undo_dir or []
    if not list_commands and len(given) != 1:
        raise UsageError("give one UNDO_DIR, or --list")
    from logtool.commands.views import undo, undo_list

    if list_commands:
        raise typer.Exit(undo_list.run(given or [Path()], printing))
    raise typer.Exit(undo.run(given[0], printing, apply=apply, redo=redo))
