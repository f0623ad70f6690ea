"""Completion scripts for bash, zsh and fish, made from the commands.

They are complete in themselves: pressing TAB starts no Python. Only for the codes of `explain`
`logtool` itself is asked.
"""

from logtool.commands.command_tree import Command, Param

_CODES = "logtool explain --format tsv 2> /dev/null | cut -f 1 | sed 1d"

_BASH = """\
# Completion of logtool for bash. Made by 'logtool generate'; do not edit.

_logtool()
{
    local cur prev command word i
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    command=
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word != -* ]]; then
            command=$word
            break
        fi
    done
    case $command in
@COMMANDS@
        *)
            [[ -z $command ]] && COMPREPLY=( $(compgen -W '@NAMES@' -- "$cur") )
            ;;
    esac
}

complete -F _logtool logtool
"""

_BASH_COMMAND = """\
        @NAME@)
            case $prev in
@VALUES@
            esac
            if [[ $cur == -* ]]; then
                COMPREPLY=( $(compgen -W '@OPTIONS@' -- "$cur") )
            else
                @REST@
            fi
            ;;"""

_BASH_FILES = 'compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur")'


def bash(root: Command, commands: list[Command]) -> str:
    """Return the script for bash."""
    names = " ".join([*(c.name for c in commands), *_long_first(root)])
    parts = [_bash_command(command) for command in commands]
    return _BASH.replace("@COMMANDS@", "\n".join(parts)).replace("@NAMES@", names)


def _bash_command(command: Command) -> str:
    values = []
    for param in command.options:
        if param.metavar is None:
            continue
        pattern = "|".join(param.names)
        if param.choices:
            action = f"COMPREPLY=( $(compgen -W '{' '.join(param.choices)}' -- \"$cur\") )"
        else:
            action = _BASH_FILES if param.metavar == "FILE" else ":"
        values.append(f"                {pattern})\n                    {action}\n"
                      "                    return\n                    ;;")  # fmt: skip
    rest = _BASH_FILES
    if command.name == "explain":
        rest = f'COMPREPLY=( $(compgen -W "$({_CODES})" -- "$cur") )'
    return (
        _BASH_COMMAND.replace("@NAME@", command.name)
        .replace("@VALUES@", "\n".join(values))
        .replace("@OPTIONS@", " ".join(_long_first(command)))
        .replace("@REST@", rest)
    )


def zsh(root: Command, commands: list[Command]) -> str:
    """Return the script for zsh."""
    lines = [
        "#compdef logtool",
        "# Completion of logtool for zsh. Made by 'logtool generate'; do not edit.",
        "",
        "_logtool() {",
        "  local context state state_descr line",
        "  typeset -A opt_args",
        "  _arguments -C \\",
        *(f"    {spec} \\" for param in root.options for spec in _zsh_option(param)),
        "    '1:command:->command' \\",
        "    '*::argument:->argument'",
        "  case $state in",
        "    command)",
        "      local -a commands=(",
        *(f"        {_sh_quote(f'{c.name}:{c.summary}')}" for c in commands),
        "      )",
        "      _describe command commands",
        "      ;;",
        "    argument)",
        "      case $line[1] in",
    ]
    for command in commands:
        specs = [spec for param in command.options for spec in _zsh_option(param)]
        rest = f"'1:code:($({_CODES}))'" if command.name == "explain" else "'*:path:_files'"
        lines += [f"        {command.name})", "          _arguments -s -S \\"]
        lines += [f"            {spec} \\" for spec in specs]
        lines += [f"            {rest}", "          ;;"]
    lines += ["      esac", "      ;;", "  esac", "}", "", '_logtool "$@"']
    return "\n".join(lines) + "\n"


def _zsh_option(param: Param) -> list[str]:
    """Return the specifications of one option: one for each of its names."""
    text = param.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    value = ""
    if param.metavar is not None:
        name = param.metavar.replace("|", "\\|").replace(":", "\\:")
        action = f"({' '.join(param.choices)})" if param.choices else " "
        value = f":{name}:{'_files' if param.metavar == 'FILE' else action}"
    many = "*" if param.repeatable else f"({' '.join(param.names)})"
    return [_sh_quote(f"{many}{name}[{text}]{value}") for name in param.names]


def fish(root: Command, commands: list[Command]) -> str:
    """Return the script for fish."""
    lines = [
        "# Completion of logtool for fish. Made by 'logtool generate'; do not edit.",
        "",
        "complete -c logtool -n __fish_use_subcommand -f",
        *(_fish_option(param, "__fish_use_subcommand") for param in root.options),
    ]
    for command in commands:
        when = f"'__fish_seen_subcommand_from {command.name}'"
        summary = _fish_quote(command.summary)
        lines += [
            "",
            f"complete -c logtool -n __fish_use_subcommand -a {command.name} -d {summary}",
        ]
        if command.name == "explain":
            lines.append(f"complete -c logtool -n {when} -f -a '({_CODES})'")
        lines += [_fish_option(param, when) for param in command.options]
    return "\n".join(lines) + "\n"


def _fish_option(param: Param, when: str) -> str:
    names = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in param.names]
    value = ""
    if param.choices:
        value = f" -x -a '{' '.join(param.choices)}'"
    elif param.metavar is not None:
        value = " -r -F" if param.metavar == "FILE" else " -x"
    return f"complete -c logtool -n {when} {' '.join(names)}{value} -d {_fish_quote(param.help)}"


def _long_first(command: Command) -> list[str]:
    names = [name for param in command.options for name in param.names]
    return sorted(names, key=lambda name: not name.startswith("--"))


def _sh_quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
