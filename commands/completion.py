"""``logtool completion``: what a shell reads to complete logtool's commands and options."""

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """The shells that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShellName = Annotated[
    Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)
]


def completion(context: typer.Context, shell: ShellName) -> None:
    """Print what bash, zsh or fish read to complete commands, options and their values.

    A package of logtool installs the same files, where the shell of the system finds them by
    itself. In a virtual environment, or after pipx install, it does not: this brings them there.

    Examples:
      source <(logtool completion bash)
      logtool completion zsh > ~/.zfunc/_logtool
      logtool completion fish > ~/.config/fish/completions/logtool.fish

    Exit status:
      0    it was printed
      2    there is no such shell

    """
    from logtool.commands import output
    from logtool.commands.program import completion as shells
    from logtool.commands.program.command_tree import read_tree

    makers = {Shell.BASH: shells.bash, Shell.ZSH: shells.zsh, Shell.FISH: shells.fish}
    output.plain(makers[shell](*read_tree(context.find_root().command)))
