"""`logtool completion --install`, for a user with an empty home."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from readme import ROOT

PLACES = {
    "bash": (".local/share/bash-completion/completions/logtool", "completions/logtool"),
    "zsh": (".zfunc/_logtool", "completions/_logtool"),
    "fish": (".config/fish/completions/logtool.fish", "completions/logtool.fish"),
}


@pytest.fixture(autouse=True)
def new_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("shell", PLACES)
@pytest.mark.parametrize("named", [False, True])
def test_the_script_is_installed(
    run: Callable[..., Any],
    new_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    shell: str,
    named: bool,
) -> None:
    monkeypatch.setenv("SHELL", "/bin/other" if named else f"/usr/bin/{shell}")
    place, script = PLACES[shell]
    result = run("completion", "--install", *([shell] if named else []))
    assert result.status == 0
    assert result.stdout == f"{new_home / place}\n"
    assert (new_home / place).read_bytes() == (ROOT / script).read_bytes()


def test_bash_finds_the_installed_script(run: Callable[..., Any], new_home: Path) -> None:
    path = run("completion", "--install", "bash").stdout.strip()
    line = 'source "$1"; COMP_WORDS=(logtool ver); COMP_CWORD=1; _logtool; echo "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", line, "-", path], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["verify"]


@pytest.mark.parametrize("shell", ["", "/bin/ksh"])
def test_a_shell_that_is_not_supported_is_a_usage_error(
    run: Callable[..., Any], new_home: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("SHELL", shell)
    assert run("completion", "--install").status == 2
    assert run("completion").status == 2
    assert not list(new_home.iterdir())


def test_a_place_that_cannot_be_written_is_incomplete(
    run: Callable[..., Any], new_home: Path
) -> None:
    (new_home / ".zfunc").write_text("a file")
    result = run("completion", "--install", "zsh")
    assert result.status == 4
    assert str(new_home / ".zfunc") in result.stderr
