import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main

from logtool.cli import app
from logtool.commands.generate import generated_files, release_date, written_guides
from logtool.commands.program.command_tree import read_tree
from logtool.commands.program.option_groups import GROUPS

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = {f"man/{name}.md": text for name, text in written_guides(ROOT / "man").items()}
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
FILES = generated_files(
    typer.main.get_command(app), written_guides(ROOT / "man"), release_date(CHANGELOG)
)
PAGES = sorted(name for name in FILES if name.endswith(".1"))
GUIDES = sorted(name for name in FILES if name.endswith(".7"))


@pytest.mark.parametrize("name", FILES)
def test_what_is_committed_is_what_the_commands_make(name):
    assert (ROOT / name).read_text() == FILES[name], "run 'logtool generate .' and commit"


def test_nothing_else_is_committed():
    there = {f"{d}/{p.name}" for d in ("man", "completions") for p in (ROOT / d).iterdir()}
    made = {name for name in FILES if not name.startswith("logtool/schemas/")}
    assert there == made | set(WRITTEN)


def test_generate_writes_all_of_it_and_removes_pages_of_commands_that_are_gone(run, tmp_path):
    (tmp_path / "man").mkdir()
    for gone in ("logtool-gone.1", "logtool-gone.7"):
        (tmp_path / "man" / gone).write_text("")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    for name, text in WRITTEN.items():
        (tmp_path / name).write_text(text)
    assert run("generate", tmp_path).status == 0
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*") if p.is_file()} | {
        str(p.relative_to(tmp_path)) for p in (tmp_path / "completions").iterdir()
    } == {*FILES, *WRITTEN, "CHANGELOG.md"}
    assert run("generate", tmp_path / "missing").status == 2


def test_a_guide_without_a_title_is_refused_before_anything_is_written(run, tmp_path):
    (tmp_path / "man").mkdir()
    (tmp_path / "man" / "logtool-new.md").write_text("# A title\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    result = run("generate", tmp_path)
    assert (result.status, len(list(tmp_path.rglob("*.*")))) == (2, 2)
    assert "logtool-new.md" in result.stderr


@pytest.mark.parametrize("changelog", [None, "# Changelog\n\n## [Unreleased]\n"])
def test_a_changelog_without_a_release_is_refused_before_anything_is_written(
    run, tmp_path, changelog
):
    if changelog is not None:
        (tmp_path / "CHANGELOG.md").write_text(changelog)
    result = run("generate", tmp_path)
    assert result.status == 2
    assert "CHANGELOG.md" in result.stderr
    assert not (tmp_path / "man").exists()


def test_pages_have_the_date_of_the_newest_release():
    released = re.findall(r"^## \[\d.+\] - (.+)$", CHANGELOG, re.M)
    for page in (*PAGES, *GUIDES):
        assert re.findall(r'^\.TH \S+ \d "(.+?)"', FILES[page], re.M) == [max(released)]


@pytest.mark.parametrize("page", PAGES)
def test_at_most_two_paragraphs_stand_between_the_first_sentence_and_the_examples(page):
    description = FILES[page].partition(".SH DESCRIPTION\n")[2].partition(".SH ")[0]
    assert 1 <= len(re.findall(r"^\.PP$", description, re.M)) <= 3


@pytest.mark.parametrize("page", PAGES)
def test_options_are_grouped_in_the_order_of_the_help(page):
    options = FILES[page].partition(".SH OPTIONS\n")[2].partition(".SH ")[0]
    found = re.findall(r"^\.SS (.+)$", options, re.M)
    assert found == [title for title in GROUPS if title in found]
    assert "Output" in found  # --help, at least


def test_every_grouped_option_belongs_to_some_command():
    _, commands = read_tree(typer.main.get_command(app))
    there = {name for one in commands for param in one.options for name in param.names}
    assert {name for names in GROUPS.values() for name in names} - there == set()


def rendered(page):
    """Return the lines of a page on a terminal of 80 columns."""
    done = subprocess.run(
        ["groff", "-t", "-man", "-Kutf8", "-Tutf8", "-rLL=80n", "-P-cbou"],
        input=f".pl 9999v\n{FILES[page]}", capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_terminal_apart_from_literal_lines(page):
    literal = {
        line.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\").strip()
        for block in re.findall(r"^\.nf\n(.*?)^\.fi$", FILES[page], re.M | re.S)
        for line in block.splitlines()
    }
    assert [line for line in rendered(page) if len(line) > 80 and line.strip() not in literal] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_every_section_and_every_option(page):
    text = FILES[page]
    sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "OPTIONS", "EXIT STATUS", "SEE ALSO"]
    found = re.findall(r"^\.SH (.+)$", text, re.M)
    assert [s for s in found if s in sections] == sections
    assert "\\fB\\-\\-help\\fR" in text


@pytest.mark.parametrize("page", [*PAGES, *GUIDES])
def test_groff_takes_a_page_without_a_warning(page):
    # One long page, as man makes it: where a table meets the end of a page says nothing.
    done = subprocess.run(
        ["groff", "-t", "-man", "-Kutf8", "-Tutf8", "-ww", "-z"],
        input=f".pl 9999v\n{(ROOT / page).read_text()}",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def shells():
    """Return the shells that are here with how they check a script; bash always is."""
    checks = {"bash": "completions/logtool", "zsh": "completions/_logtool"}
    return [(shell, ["-n"], file) for shell, file in checks.items() if shutil.which(shell)] + (
        [("fish", ["--no-execute"], "completions/logtool.fish")] if shutil.which("fish") else []
    )


@pytest.mark.parametrize(("shell", "options", "file"), shells())
def test_the_shells_can_parse_their_scripts(shell, options, file):
    done = subprocess.run([shell, *options, file], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


COMPLETIONS = {
    "commands": (["logtool", "d"], ["doctor", "dump", "dump-index", "diff", "dirs"]),
    "options of the program": (["logtool", "--v"], ["--version"]),
    "options of a command": (
        ["logtool", "dump", "--f"], ["--files-from", "--flavour", "--format", "--fields"],
    ),
    "commands of a group": (["logtool", "checkpoint", "s"], ["show", "set"]),
    "options of a command of a group": (["logtool", "checkpoint", "set", "--d"], ["--delete"]),
    "choices of a command of a group": (["logtool", "checkpoint", "show", "-f", "n"], ["ndjson"]),
    "a command that also takes paths": (["logtool", "watermark", "sim"], ["simulate"]),
    "its options": (["logtool", "watermark", "a", "--le"], ["--leader"]),
    "those of the command in it": (["logtool", "watermark", "simulate", "--t"], ["--truncation"]),
    "choices": (["logtool", "dump", "-f", "k"], ["kafka", "kcat"]),
    "choices of another option": (["logtool", "verify", "--level", "b"], ["batches"]),
    "nothing for a number": (["logtool", "dump", "--limit", ""], []),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLETIONS)
def test_bash_completes(name):
    words, wanted = COMPLETIONS[name]
    script = (
        'source completions/logtool; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _logtool;'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *words],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == wanted


def test_bash_completes_paths_with_spaces(tmp_path):
    (tmp_path / "a b-0").mkdir()
    script = (
        'source "$1"; COMP_WORDS=(logtool verify a); COMP_CWORD=2; _logtool;'
        'printf "<%s>" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", str(ROOT / "completions" / "logtool")],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "<a b-0>"
