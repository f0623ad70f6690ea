"""`logtool man` and `logtool completion`: what is installed, wherever that is."""

import shutil
import subprocess
from pathlib import Path

import pytest

from logtool.commands import man

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "man").iterdir() if path.suffix in (".1", ".7"))


@pytest.mark.parametrize(
    ("shell", "name"), [("bash", "logtool"), ("zsh", "_logtool"), ("fish", "logtool.fish")]
)
def test_completions_are_those_that_are_installed(run, shell, name):
    result = run("completion", shell)
    assert (result.status, result.stderr) == (0, "")
    assert result.stdout == (ROOT / "completions" / name).read_text()


def test_another_shell_is_wrong_usage(run):
    assert run("completion", "tcsh").status == 2


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_page_is_found_by_its_name_with_and_without_the_program(run, path):
    for name in {path.stem, path.stem.removeprefix("logtool-")}:
        result = run("man", *name.split("-", 1))
        assert (result.status, result.stdout) == (0, path.read_text())


def test_the_list_has_every_page_with_its_summary(run):
    lines = run("man").lines
    assert [line.partition("(")[0] for line in lines] == sorted(path.stem for path in PAGES)
    assert all(len(line.partition(")  ")[2]) > 10 for line in lines)
    assert any(line.startswith("logtool-verify(1)  ") for line in lines)


def test_a_typo_gets_the_nearest_page(run):
    result = run("man", "verfy")
    assert result.status == 2
    assert "logtool-verify" in result.stderr


def test_pages_are_found_where_a_package_installs_them(run, tmp_path, monkeypatch):
    for path in PAGES:
        home = tmp_path / "share" / "man" / f"man{path.suffix[1:]}"
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, home)
    monkeypatch.setattr(man, "_HOMES", (tmp_path / "none", tmp_path / "share" / "man"))
    assert run("man", "recipes").stdout == (ROOT / "man" / "logtool-recipes.7").read_text()
    monkeypatch.setattr(man, "_HOMES", (tmp_path / "none", tmp_path / "nothing"))
    result = run("man", "recipes")
    assert result.status == 4
    assert str(tmp_path) in result.stderr


@pytest.mark.skipif(shutil.which("man") is None, reason="needs the program man")
def test_the_program_man_reads_it(run):
    page = run("man", "verify").stdout
    done = subprocess.run(
        ["man", "-l", "-"], input=page, capture_output=True, text=True, check=True, timeout=60
    )
    assert "Exit status" in done.stdout or "EXIT STATUS" in done.stdout
