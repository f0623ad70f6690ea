"""``logtool generate``: write the man pages and shell completions from the commands."""

from pathlib import Path
from typing import Annotated, Any

import typer

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The root of the repository.", show_default=False)
]


def generate(context: typer.Context, directory: Directory) -> None:
    """Write man/ and completions/ below DIR from the commands themselves.

    The same commands make the same files. Pages of commands that are gone are removed.

    Examples:
      logtool generate .

    Exit status:
      0    the files were written
      2    DIR is no directory

    """
    from logtool.errors import UsageError

    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    for folder in ("man", "completions"):
        (directory / folder).mkdir(exist_ok=True)
    files = generated_files(context.find_root().command)
    for stale in (directory / "man").glob("logtool*.1"):
        if f"man/{stale.name}" not in files:
            stale.unlink()
    for name, content in files.items():
        (directory / name).write_text(content, "utf-8")


def generated_files(program: Any) -> dict[str, str]:
    """Return every generated file by its path in the repository; `program` is the whole program."""
    from logtool.commands import completion, manual
    from logtool.commands.command_tree import read_tree

    root, commands = read_tree(program)
    pages = {
        f"man/{manual.page_name(command)}.1": manual.render(command, commands)
        for command in (root, *commands)
    }
    return pages | {
        "completions/logtool": completion.bash(root, commands),
        "completions/_logtool": completion.zsh(root, commands),
        "completions/logtool.fish": completion.fish(root, commands),
    }
