"""The record of outputs: a comparison that sees every byte, and inputs that are always the same."""

import os
from pathlib import Path

import pytest
from outputs import lines, printed_json
from outputs.__main__ import ROOT, Recording, report
from outputs.worker import Store, run_case

from logtool import cli

CASE = lines.Case((("stat", "x"),))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "contents")


@pytest.fixture
def recorded(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch):
    """Return a function that records a command which prints and writes its arguments."""
    home = tmp_path / "inputs"
    home.mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(home)

    def record(out: str = "out", err: str = "err", status: int = 0, file: str = "file", mode=0o644):
        def run(words: list[str]) -> int:
            os.write(1, out.encode())
            os.write(2, err.encode())
            path = Path("../work/case/file")
            path.write_text(file)
            path.chmod(mode)
            return status

        asked = {"name": CASE.name, "words": CASE.words, "copied": "", "directory": "../work/case"}
        return run_case(run, asked, store, tmp_path / "tree")

    return record


def test_what_is_the_same_is_equal(recorded, store, capsys):
    assert report([CASE], {CASE.name: recorded()}, {CASE.name: recorded()}, store, ()) == 0
    assert capsys.readouterr().out == "1 runs: 1 equal, 0 not\n"


@pytest.mark.parametrize(
    "other, said",
    [
        ({"out": "ouT"}, ["  stdout:", "-out", "+ouT"]),
        ({"out": "out\n"}, ["  stdout:"]),
        ({"out": "out\r"}, ["  stdout:", "+out\\r"]),
        ({"err": "erR"}, ["  stderr:", "-err", "+erR"]),
        ({"status": 1}, ["  status: 0, now 1"]),
        ({"file": "fIle"}, ["  file 'file':", "-file", "+fIle"]),
        ({"mode": 0o600}, ["mode and mtime: 100644 new, now 100600 new"]),
    ],
)
def test_one_byte_that_differs_is_reported(recorded, store, capsys, other, said):
    before, now = {CASE.name: recorded()}, {CASE.name: recorded(**other)}
    assert report([CASE], before, now, store, ()) == 1
    printed = capsys.readouterr().out
    assert "logtool stat x\n" in printed
    assert "1 runs: 0 equal, 1 not" in printed
    assert all(text in printed for text in said), printed


def test_a_file_that_is_only_there_now_is_reported(recorded, store, capsys):
    before, now = recorded(), recorded()
    before["files"] = {}
    assert report([CASE], {CASE.name: before}, {CASE.name: now}, store, ()) == 1
    assert "  file 'file': only now" in capsys.readouterr().out


def test_a_command_that_dies_has_a_status_of_its_own(recorded, store):
    def die(words: list[str]) -> int:
        raise RuntimeError(words[1])

    asked = {"name": CASE.name, "words": CASE.words, "copied": "", "directory": ""}
    died = run_case(die, asked, store, Path("/tree"))
    assert died["status"] == "99"
    assert b"RuntimeError: x" in store.get(died["stderr"])


def test_a_recording_is_read_again_without_a_line_that_was_cut(tmp_path, recorded):
    path = tmp_path / "recordings" / "one"
    one = recorded()
    Recording(path).add(one)
    with path.open("a") as file:
        file.write('{"name": "half')
    assert Recording(path).found == {CASE.name: one}


def test_every_command_has_command_lines_or_a_reason_why_not():
    listed = {*lines.TEMPLATES, *lines.NOT_RECORDED, *lines.WITHOUT_PLACE, "explain", "man"}
    groups = {name.split()[0] for name in listed if " " in name}
    assert set(cli.COMMANDS) - listed - groups == set()


def test_json_that_a_schema_does_not_accept_counts(recorded, store: Store) -> None:
    line = '{"schema": "logtool.plan/1", "type": "undo", "path": "/undo"}\n'
    for output, problems in ((line, 0), (line.replace('"/undo"', "7"), 1), ("not JSON\n", 0)):
        one = {CASE.name: recorded(output)}
        assert report([CASE], one, one, store, (ROOT,)) == problems


def test_the_items_of_a_document_are_validated_one_by_one() -> None:
    output = (
        b'{"schema": "logtool.plan/1", "type": "document", "items": [\n'
        b'{"type": "undo", "path": "/undo"},\n{"type": "undo"}\n],\n"summary": {}}\n'
    )
    assert len(list(printed_json.problems(output, (ROOT,)))) == 4
