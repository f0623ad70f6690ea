"""Lines on a terminal of 80 columns: every command, on sound and on damaged directories."""

import re
import shutil
from pathlib import Path

import pytest
from damage import damage_file, flip, remove_file
from outputs import inputs, lines

from logtool.commands.printing import fitting, terminal

WIDTH = 80
MOST = 3
"""Templates of a command that are run."""
LAID_OUT = {
    "kafka-dump-log": "prints the lines of Kafka's tool, which scripts read",
}
"""Commands whose lines are not folded, with the reason."""
COMMAND = re.compile(r" *(?:logtool|kafka-[a-z-]+\.sh|kcat|printf|echo|ls|cp|mv|rm) |# ")
DATA = re.compile(r"(?:key|value|headers) {2,}\S+$")
"""A value of a record of a width that no terminal has."""


@pytest.fixture(scope="module")
def home(tmp_path_factory, scenario):
    """Return a directory with log dirs: sound ones, and one with several kinds of damage."""
    home = tmp_path_factory.mktemp("folding") / "inputs"
    killed, damaged = home / "4.3.1/killed", home / "4.3.1/damaged"
    shutil.copytree(scenario("4.3.1/killed"), killed)
    shutil.copytree(killed, damaged)
    shutil.copytree(scenario("4.3.1/replicas"), home / "4.3.1/replicas")
    damage_file(damaged / "codec-none-0" / f"{0:020d}.log", flip, 14000)
    damage_file(damaged / "codec-lz4-0" / f"{0:020d}.timeindex", flip, 5)
    remove_file(damaged / "small-segments-0" / f"{422:020d}.log")
    (home / "redpanda").mkdir()
    inputs.write_redpanda(home / "redpanda")
    return home


@pytest.fixture
def too_long(run, home, monkeypatch):
    """Return a function that runs a case and returns the lines that are too long."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setattr(terminal, "width_of", lambda _, *, wide: None if wide else WIDTH)

    def run_case(case):
        if case.directory:
            place = Path(case.directory)
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            if case.copied:
                shutil.copytree(case.copied, place / Path(case.copied).name, symlinks=True)
        found = []
        for words in case.words:
            result = run(*words)
            printed = (result.stdout + "\n" + result.stderr).split("\n")
            assert any(printed)
            found += [
                line for line in printed
                if len(line) > WIDTH and " " in line.strip()
                and not COMMAND.match(line) and not DATA.match(line)
            ]  # fmt: skip
        return found

    return run_case


@pytest.mark.parametrize("command", [one for one in lines.TEMPLATES if one not in LAID_OUT])
@pytest.mark.parametrize("name", ["4.3.1/killed", "4.3.1/damaged", "redpanda/body/data"])
def test_no_line_but_a_command_is_wider_than_the_terminal(too_long, home, command, name):
    place = lines.Place(home, (name,), "4.3.1/killed")
    for template in lines.TEMPLATES[command][:MOST]:
        if "--wide" not in template:
            assert too_long(lines.case_of(place, command, template, "", 1)) == [], template


@pytest.mark.parametrize("command", lines.SEVERAL)
def test_no_line_about_several_log_dirs_is_wider_than_the_terminal(too_long, home, command):
    paths = tuple(f"4.3.1/replicas/node-{node}" for node in (1, 2, 3))
    place = lines.Place(home, paths, paths[0])
    for template in lines.SEVERAL[command]:
        assert too_long(lines.case_of(place, command, template, "", 1)) == [], template


@pytest.mark.parametrize(
    "line, folded",
    [
        ("  truncate  a @1: it ends here", ["  truncate  a @1:", "    it ends here"]),
        ("one two three four", ["one two three", "  four"]),
        ("    logtool verify /a/long/path", ["    logtool verify /a/long/path"]),
        ("  next: logtool verify /a/path", ["  next:", "    logtool verify /a/path"]),
        ("  next      logtool verify /a/b", ["  next", "    logtool verify /a/b"]),
        ("  to see it: kafka-x.sh --topic a", ["  to see it:", "    kafka-x.sh --topic a"]),
        (" < 1 KiB    10  ########", [" < 1 KiB    10  ########"]),
        ("# a comment of a script", ["# a comment of a script"]),
    ],
)
def test_a_line_is_folded_below_its_own_indent(line, folded):
    assert fitting.folded(line, 17).split("\n") == folded
    assert fitting.folded(line, None) == line
