"""Completion scripts for bash, zsh and fish, made from the commands.

They are complete in themselves: pressing TAB starts no Python. Only for the codes of `explain`
`logtool` itself is asked.
"""

from collections.abc import Sequence
from dataclasses import replace

from logtool.commands.program import value_hints
from logtool.commands.program.command_tree import Command, Param
from logtool.commands.program.value_hints import ValueHint

_CODES = "logtool explain --format tsv 2> /dev/null | cut -f 1 | sed 1d"

_BASH = """\
# Completion of logtool for bash. Made by 'logtool generate'; do not edit.

_logtool()
{
    local cur prev lead=
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    # Bash takes --level=x for three words, unless '=' was taken out of COMP_WORDBREAKS.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $cur == --*=* ]]; then
        prev=${cur%%=*}
        lead=$prev=
        cur=${cur#*=}
    fi
    _logtool_offered
    COMPREPLY=( "${COMPREPLY[@]/#/$lead}" )
}

_logtool_several()
{
    local before=
    [[ $cur == *,* ]] && before=${cur%,*},
    compopt -o nospace 2> /dev/null
    COMPREPLY=( $(compgen -P "$before" -W "$1" -- "${cur##*,}") )
}

_logtool_topics()
{
    local word
    local -A topics=()
    for word in "${COMP_WORDS[@]:1}"; do
        word=${word/#\\~\\//$HOME/}
        _logtool_topics_of "${word//\\\\/}"
    done
    (( ${#topics[@]} )) || _logtool_topics_of .
    COMPREPLY=( $(compgen -W "${!topics[*]}" -- "$cur") )
}

_logtool_topics_of()
{
    local path
    [[ -d $1 ]] || return
    for path in "$1"/*/; do
        path=${path%/}
        [[ ${path##*/} =~ ^(.+)-[0-9]+$ ]] && topics[${BASH_REMATCH[1]}]=
    done
}

_logtool_offered()
{
    local command word i
    command=
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word != -* ]]; then
            command+=${command:+ }$word
            [[ " @GROUPS@ " == *" $command "* ]] || break
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
        '@NAME@')
            case $prev in
@VALUES@
            esac
            if [[ $cur == -* ]]; then
                COMPREPLY=( $(compgen -W '@OPTIONS@' -- "$cur") )
            else
                @REST@
            fi
            ;;"""

_BASH_GROUP = """\
        @NAME@)
            COMPREPLY=( $(compgen -W '@NAMES@' -- "$cur") )
            ;;"""

_ZSH_TOPICS = """\
_logtool_topics() {
  local word place
  local -aU found
  for word in "${(@Q)words}"; do
    word=${word/#\\~\\//$HOME/}
    [[ -n $word ]] || continue
    for place in $word/*-<->(N/:t) ${word#*=}/*-<->(N/:t); do
      found+=( ${place%-*} )
    done
  done
  if (( ! $#found )); then
    for place in *-<->(N/); do
      found+=( ${place%-*} )
    done
  fi
  compadd "$@" -a found
}
"""

_FISH_FUNCTIONS = """\
function __logtool_topics
    set -l found
    for word in (commandline -o) .
        set -l dir (string replace -r '^[0-9]+=' '' -- $word | string replace -r '^~/' "$HOME/")
        test -d "$dir" -a \\( "$word" != . -o -z "$found" \\); or continue
        for place in $dir/*-*/
            set -a found (string replace -rf '^.*/([^/]+)-[0-9]+/$' '$1' -- $place)
        end
    end
    printf '%s\\n' $found | sort -u
end

function __logtool_several
    set -l token (commandline -ct | string replace -r '^--[a-z-]+=' '')
    set -l before (string replace -r '[^,]*$' '' -- "$token")
    printf '%s\\n' "$before"$argv
end
"""

_BASH_FILES = 'compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur")'


def bash(root: Command, commands: list[Command]) -> str:
    """Return the script for bash."""
    groups = _groups(commands)
    alone = {command.name for command in commands}
    # The longest names first: that of a command with commands of its own matches theirs too.
    longest_first = sorted(commands, key=lambda command: -len(command.name.split()))
    parts = [_bash_command(command, groups.get(command.name, [])) for command in longest_first]
    for group, names in groups.items():
        if group in alone:
            continue
        part = _BASH_GROUP.replace("@NAMES@", " ".join([*names, "--help"]))
        parts.append(part.replace("@NAME@", group))
    names = [*_first_words(commands), *_long_first(root)]
    return (
        _BASH.replace("@COMMANDS@", "\n".join(parts))
        .replace("@GROUPS@", " ".join(groups))
        .replace("@NAMES@", " ".join(names))
    )


def _bash_command(command: Command, own: list[str]) -> str:
    """Return the branch of one command; `own` are the names of commands that may follow it."""
    values = []
    for param in command.options:
        if param.metavar is None:
            continue
        pattern = "|".join(param.names)
        action = _bash_hint(value_hints.of_option(param))
        values.append(
            f"                {pattern})\n                    {action}\n"
            "                    return\n                    ;;"
        )
    hint = value_hints.of_argument(command)
    rest = _bash_hint(replace(hint, words=(*hint.words, *own)))
    if command.name == "explain":
        rest = f'COMPREPLY=( $(compgen -W "$({_CODES})" -- "$cur") )'
    return (
        _BASH_COMMAND.replace("'@NAME@'", f"'{command.name}'{'*' if own else ''}")
        .replace("@VALUES@", "\n".join(values))
        .replace("@OPTIONS@", " ".join(_long_first(command)))
        .replace("@REST@", rest)
    )


def _bash_hint(hint: ValueHint) -> str:
    words = " ".join(hint.words)
    if hint.topics:
        return "_logtool_topics"
    if hint.several:
        return f"_logtool_several '{words}'"
    if hint.files:
        return _BASH_FILES.replace("-f --", f"-f -W '{words}' --") if words else _BASH_FILES
    return f"COMPREPLY=( $(compgen -W '{words}' -- \"$cur\") )" if words else ":"


def zsh(root: Command, commands: list[Command]) -> str:
    """Return the script for zsh."""
    lines = [
        "#compdef logtool",
        "# Completion of logtool for zsh. Made by 'logtool generate'; do not edit.",
        "",
        *_ZSH_TOPICS.splitlines(),
        "",
        "_logtool() {",
        "  local context state state_descr line",
        "  typeset -A opt_args",
        "  _arguments -C \\",
        *(f"    {spec} \\" for param in root.options for spec in _zsh_option(param)),
        "    '1:command:->command' \\",
        "    '*::argument:->argument'",
        *_zsh_level(commands, "  "),
        "}",
        "",
        '_logtool "$@"',
    ]
    return "\n".join(lines) + "\n"


def _zsh_level(commands: list[Command], indent: str) -> list[str]:
    """Return the lines that complete a command of `commands` and its arguments."""
    lines = ["case $state in", "  command)", "    local -a commands=("]
    lines += [
        f"      {_sh_quote(f'{name}:{summary}')}"
        for name, summary in _first_words(commands).items()
    ]
    lines += ["    )", "    _describe command commands", "    ;;", "  argument)"]
    lines += ["    case $line[1] in"]
    for command in commands:
        if " " in command.name:
            continue
        inner = [one for one in commands if one.name.startswith(f"{command.name} ")]
        lines += [f"      {command.name})"]
        for one in inner:
            lines += [
                f"        if (( CURRENT > 2 )) && [[ $words[2] == {one.name.split()[1]} ]]; then"
            ]
            lines += ["          shift words; (( CURRENT-- ))"]
            lines += [*_zsh_arguments(one, ()), "          return", "        fi"]
        lines += [*_zsh_arguments(command, [one.name.split()[1] for one in inner]), "        ;;"]
    alone = {command.name for command in commands}
    for group in _groups(commands):
        if group in alone:
            continue  # it stands above, with its own commands
        own = [
            replace(command, name=command.name.removeprefix(f"{group} "))
            for command in commands
            if command.name.startswith(f"{group} ")
        ]
        lines += [f"      {group})", "        _arguments -C \\"]
        lines += ["          '1:command:->command' \\", "          '*::argument:->argument'"]
        lines += [*_zsh_level(own, "        "), "        ;;"]
    lines += ["    esac", "    ;;", "esac"]
    return [indent + line for line in lines]


def _zsh_arguments(command: Command, own: Sequence[str]) -> list[str]:
    """Return the lines that complete arguments of a command; `own` are its subcommands."""
    specs = [spec for param in command.options for spec in _zsh_option(param)]
    hint = value_hints.of_argument(command)
    words = " ".join((*hint.words, *own))
    if command.name == "explain":
        rest = f"'1:code:($({_CODES}))'"
    elif words and hint.files:
        rest = f"""'*:path:{{_alternative "words:word:({words})" "files:file:_files"}}'"""
    else:
        rest = f"'1:word:({words})'" if words else "'*:path:_files'"
    return [
        "        _arguments -s -S \\",
        *(f"          {s} \\" for s in specs),
        f"          {rest}",
    ]


def _zsh_hint(hint: ValueHint) -> str:
    words = " ".join(hint.words)
    if hint.topics:
        return "_logtool_topics"
    if hint.several:
        return f"_values -s , word {words}"
    if hint.files:
        return "_files"
    return f"({words})" if words else " "


def _zsh_option(param: Param) -> list[str]:
    """Return the specifications of one option: one for each of its names."""
    text = param.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    value = ""
    if param.metavar is not None:
        name = param.metavar.replace("|", "\\|").replace(":", "\\:")
        value = f":{name}:{_zsh_hint(value_hints.of_option(param))}"
    many = "*" if param.repeatable else f"({' '.join(param.names)})"
    return [
        # With it a long option takes its value in the same word, too.
        _sh_quote(f"{many}{name}{'=' if value and name.startswith('--') else ''}[{text}]{value}")
        for name in param.names
    ]


def fish(root: Command, commands: list[Command]) -> str:
    """Return the script for fish."""
    lines = [
        "# Completion of logtool for fish. Made by 'logtool generate'; do not edit.",
        "",
        *_FISH_FUNCTIONS.splitlines(),
        "",
        "complete -c logtool -n __fish_use_subcommand -f",
        *(_fish_option(param, "__fish_use_subcommand") for param in root.options),
    ]
    for name, summary in _first_words(commands).items():
        lines.append(
            f"complete -c logtool -n __fish_use_subcommand -a {name} -d {_fish_quote(summary)}"
        )
    alone = {command.name for command in commands}
    for group, names in _groups(commands).items():
        when = f"'__fish_seen_subcommand_from {group}; and not __fish_seen_subcommand_from "
        files = "" if group in alone else "-f "
        names_there = " ".join(names)
        lines.append(f"complete -c logtool {files}-n {when}{names_there}' -a '{names_there}'")
    for command in commands:
        seen = (f"__fish_seen_subcommand_from {word}" for word in command.name.split())
        when = f"'{'; and '.join(seen)}'"
        lines.append("")
        if command.name == "explain":
            lines.append(f"complete -c logtool -n {when} -f -a '({_CODES})'")
        hint = value_hints.of_argument(command)
        if hint.words:
            only = "" if hint.files else "-f "
            lines.append(f"complete -c logtool -n {when} {only}-a '{' '.join(hint.words)}'")
        lines += [_fish_option(param, when) for param in command.options]
    return "\n".join(lines) + "\n"


def _fish_option(param: Param, when: str) -> str:
    names = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in param.names]
    value = ""
    if param.metavar is not None:
        value = _fish_hint(value_hints.of_option(param))
    return f"complete -c logtool -n {when} {' '.join(names)}{value} -d {_fish_quote(param.help)}"


def _fish_hint(hint: ValueHint) -> str:
    words = " ".join(hint.words)
    if hint.topics:
        return " -x -a '(__logtool_topics)'"
    if hint.several:
        return f" -x -a '(__logtool_several {words})'"
    if hint.files:
        return " -r -F"
    return f" -x -a '{words}'" if words else " -x"


def _groups(commands: list[Command]) -> dict[str, list[str]]:
    """Return the names in each group of commands."""
    groups: dict[str, list[str]] = {}
    for command in commands:
        group, _, name = command.name.rpartition(" ")
        if group:
            groups.setdefault(group, []).append(name)
    return groups


def _first_words(commands: list[Command]) -> dict[str, str]:
    """Return the possible first words, commands and groups, each with a summary."""
    groups = _groups(commands)
    alone = {c.name: c.summary for c in commands if " " not in c.name}
    return {group: ", ".join(names) for group, names in groups.items()} | alone


def _long_first(command: Command) -> list[str]:
    names = [name for param in command.options for name in param.names]
    return sorted(names, key=lambda name: not name.startswith("--"))


def _sh_quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
