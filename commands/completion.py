"""``logtool completion``: completion scripts for shells."""

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """Supported shells."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShellName = Annotated[
    Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)
]


def completion(context: typer.Context, shell: ShellName) -> None:
    """Print the completion script for bash, zsh or fish.

    The script completes commands, options and values. A system package of logtool installs the
    scripts where the shells find them. In a virtual environment, or after pipx install, use this
    command to install the script.

    Examples:
      source <(logtool completion bash)
      logtool completion zsh > ~/.zfunc/_logtool
      logtool completion fish > ~/.config/fish/completions/logtool.fish

    Exit status:
      0    the script was printed
      2    the shell is not supported

    """
    from logtool.commands import output
    from logtool.commands.program import command_tree
    from logtool.commands.program import completion as shells

    makers = {Shell.BASH: shells.bash, Shell.ZSH: shells.zsh, Shell.FISH: shells.fish}
    output.plain(makers[shell](*command_tree.read_tree(context.find_root().command)))
