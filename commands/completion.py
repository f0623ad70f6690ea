"""``logtool completion``: completion scripts for shells."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.errors import UnwritableError, UsageError


class Shell(StrEnum):
    """Supported shells."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShellName = Annotated[
    Shell | None,
    typer.Argument(
        metavar="[SHELL]",
        help="bash, zsh or fish; with --install by default the shell of the variable SHELL.",
        show_default=False,
    ),
]
Install = Annotated[
    bool,
    typer.Option(
        "--install", help="Write the script where the shell of this user finds it; print its path."
    ),
]


def completion(context: typer.Context, shell: ShellName = None, install: Install = False) -> None:
    """Print or install the completion script for bash, zsh or fish.

    The script completes commands, options and values. A system package of logtool installs the
    scripts where the shells find them. In a virtual environment, or after pipx install, install the
    script with --install.

    Examples:
      logtool completion --install
      logtool completion --install zsh
      source <(logtool completion bash)

    Files of --install:

      bash  bash-completion/completions/logtool in $XDG_DATA_HOME, or in ~/.local/share; the package
            bash-completion reads it
      zsh   .zfunc/_logtool in $ZDOTDIR or in the home directory; the directory must be in fpath
            before compinit runs, for example by this line of .zshrc: fpath=(~/.zfunc $fpath)
      fish  fish/completions/logtool.fish in $XDG_CONFIG_HOME, or in ~/.config

    Exit status:
      0    the script was printed or installed
      2    the shell is not supported, or not known
      4    the script could not be written

    """
    from logtool.commands import output
    from logtool.commands.program import command_tree, completion

    shell = shell or _own_shell(install)
    shells = {
        Shell.BASH: completion.bash, Shell.ZSH: completion.zsh, Shell.FISH: completion.fish,
    }  # fmt: skip
    script = shells[shell](*command_tree.read_tree(context.find_root().command))
    if not install:
        output.plain(script)
        return
    path = _place(shell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, "utf-8")
    except OSError as error:
        raise UnwritableError(path, os.strerror(error.errno or 0)) from error
    output.plain(str(path))


def _own_shell(install: bool) -> Shell:
    """Return the shell of the user; UsageError if it is not known or not supported."""
    if not install:
        raise UsageError("name a shell: bash, zsh or fish")
    name = Path(os.environ.get("SHELL", "")).name
    if name not in set(Shell):
        raise UsageError(f"the variable SHELL names {name or 'no shell'!a}: name bash, zsh or fish")
    return Shell(name)


def _place(shell: Shell) -> Path:
    """Return the path at which a shell finds the script of a user."""
    home = Path.home()
    if shell is Shell.ZSH:
        return Path(os.environ.get("ZDOTDIR") or home) / ".zfunc" / "_logtool"
    if shell is Shell.FISH:
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish" / "completions" / "logtool.fish"
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return data / "bash-completion" / "completions" / "logtool"
