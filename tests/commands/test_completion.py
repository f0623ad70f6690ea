"""Completions of values, asked of the shells themselves."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from readme import ROOT

CASES = {
    "a choice behind an equals sign": ("verify --level=b", "--level=batches"),
    "a choice in a word of its own": ("verify --level b", "batches"),
    "a choice of a short option": ("dump -f ndj", "ndjson"),
    "a table": ("scan --tables seg", "segments"),
    "a table behind an equals sign": ("scan --tables=seg", "--tables=segments"),
    "another table": ("scan --tables segments,repl", "segments,replicas"),
    "another table behind both": ("scan --tables=segments,repl", "--tables=segments,replicas"),
    "a scenario": ("watermark simulate walk", "walk-through"),
    "an option of simulate": ("watermark simulate --trunc", "--truncation"),
    "a topic of a log dir": ("dump {home} --topic app", "app-logs"),
    "a topic behind an equals sign": ("dump {home} --topic=app", "--topic=app-logs"),
    "a topic of one of two": ("watermark 1={home} 2={other} --topic ord", "orders.v1"),
    "the columns of a table": ("schema offset-i", "offset-index"),
    "a shell": ("completion zs", "zsh"),
}
SETUP = {
    "bash": "source completions/logtool",
    "zsh": "bindkey -e; fpath=($PWD/completions $fpath); autoload -U compinit; compinit -D -u",
}
COMMAND = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
SHELLS = [one for one in (*SETUP, "fish") if shutil.which(one)]
TO_START, TO_END = b"\x01", b"\x05"


@pytest.fixture
def home(tmp_path):
    """Return a log dir with names that a careless pattern would take for others."""
    for name in ("app-logs-0", "app-logs-11", "orders.v1-2", "not-a-topic", "x-0-delete"):
        (tmp_path / "data" / name).mkdir(parents=True)
    (tmp_path / "data" / "file-3").write_text("")
    (tmp_path / "other" / "orders.v1-7").mkdir(parents=True)
    return tmp_path / "data"


def in_terminal(shell: str, line: str, place: Path) -> str:
    """Type a line and TAB into a shell at `place`; return the last word that then stands there."""
    parent, child = pty.openpty()
    keys = line.encode() + b"\t" + TO_START + b"printf '<%s>\\n' " + TO_END + b" END\n"
    environment = {**os.environ, "TERM": "xterm", "PS1": "ready> ", "HISTFILE": "/dev/null"}
    seen = ""
    with subprocess.Popen(
        COMMAND[shell], stdin=child, stdout=child, stderr=child, cwd=ROOT, env=environment,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(child)
        try:
            setup = f"{SETUP[shell]}; cd {shlex.quote(str(place))}; echo set''up\n"
            os.write(parent, setup.encode())
            seen += _until(parent, r"setup\r?\n")
            os.write(parent, keys)
            seen += _until(parent, r"<END>")
        finally:
            process.kill()
            os.close(parent)
    return re.findall(r"<([^<>\r\n]*)>", seen)[-2]


def _until(parent: int, pattern: str) -> str:
    """Read what a shell prints until the pattern is in it; a shell that is silent has failed."""
    seen = b""
    while not re.search(pattern, seen.decode(errors="replace")):
        assert select.select([parent], [], [], 60)[0], seen
        seen += os.read(parent, 65536)
    return seen.decode(errors="replace")


def by_fish(line: str, place: Path) -> str:
    """Return the words that fish offers, one word in every case."""
    script = 'source completions/logtool.fish; cd "$argv[2]"; complete -C "$argv[1]"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", script, line, str(place)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return " ".join(found.partition("\t")[0] for found in done.stdout.splitlines())


def completed(shell: str, line: str, place: Path) -> str:
    return by_fish(line, place) if shell == "fish" else in_terminal(shell, line, place)


@pytest.mark.parametrize(
    ("shell", "name"),
    [
        # Each value in one shell, which take turns; the rest in the long run.
        pytest.param(shell, name, marks=() if is_short else pytest.mark.long)
        for number, name in enumerate(CASES)
        for shell in SHELLS
        for is_short in [shell == SHELLS[number % len(SHELLS)]]
    ],
)
def test_a_shell_completes_values(shell, name, home):
    words, expected = CASES[name]
    line = f"logtool {words.format(home=home, other=home.with_name('other'))}"
    assert completed(shell, line, ROOT) == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_without_a_directory_the_topics_are_those_of_the_current_one(shell, home):
    other = home.with_name("other")
    for line, place, expected in [
        ("dump --topic app", home, "app-logs"),
        ("lookup --topic ord", home, "orders.v1"),
        (f"dump {other} --topic ord", home.parent, "orders.v1"),
    ]:
        assert completed(shell, f"logtool {line}", place) == expected


def test_bash_without_the_equals_sign_among_its_breaks_completes_too(home):
    script = (
        'source completions/logtool; COMP_WORDS=(logtool verify "$1"); COMP_CWORD=2; _logtool;'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", "--level="],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["--level=quick", "--level=batches", "--level=records"]


def test_of_no_directory_there_are_no_topics():
    script = (
        "source completions/logtool; COMP_WORDS=(logtool dump --topic ''); COMP_CWORD=3; _logtool;"
        "echo ${#COMPREPLY[@]}"
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
