from pathlib import Path

import lint_prose
from lint_prose import in_file, in_python, main


def reasons(source: str) -> list[tuple[int, str]]:
    return [(place.line, place.reason) for place in in_python(source)]


def test_docstrings_words_and_names_are_found():
    source = '''"""Module of logs."""
class Log:
    size: int
    """Of its file, in bytes."""
def read(told):
    """Whether it is whole."""
    raise ValueError("the log is none")  # nobody reads it
'''
    assert reasons(source) == [
        (4, "a docstring begins with 'Of'"),
        (6, "a docstring begins with 'Whether'"),
        (7, "the word 'is none'"),
        (7, "the word 'nobody'"),
        (5, "the name 'told'"),
    ]


def test_what_only_looks_like_it_is_not_found():
    source = '"""Offsets of the log."""\nhousehold = "told"\nprint("withheld, a storyteller")\n'
    assert reasons(source) == []


def test_the_name_of_a_file_and_its_prose_count(tmp_path):
    (tmp_path / "beside.md").write_text("One line.\nThe broker foretells it.\n")
    assert [(place.line, place.reason) for place in in_file(tmp_path / "beside.md")] == [
        (1, "the file name 'beside.md'"),
        (2, "the word 'foretells'"),
    ]


def test_places_are_allowed_by_file_and_text_and_an_entry_without_a_place_is_an_error(
    tmp_path, monkeypatch, capsys
):
    allowed = tmp_path / "allowed.toml"
    monkeypatch.setattr(lint_prose, "ALLOWED", allowed)
    page = tmp_path / "page.md"
    page.write_text("The log is told.\n")
    allowed.write_text("allowed = []\n")
    assert main([str(page)]) == 1
    assert capsys.readouterr().out.startswith(f"{page}:1: ")
    entry = '[[allowed]]\nfile = "page.md"\ntext = "is told"\nreason = "a test"\n'
    allowed.write_text(entry)
    assert main([str(tmp_path / "page.md")]) == 0
    allowed.write_text(entry + entry.replace("is told", "was told"))
    assert main([str(page)]) == 1


def test_every_allowed_place_has_a_reason_and_they_are_few():
    entries = lint_prose.tomllib.loads(Path(lint_prose.__file__).with_suffix(".toml").read_text())[
        "allowed"
    ]
    assert all(entry.keys() == {"file", "text", "reason"} and entry["reason"] for entry in entries)
    assert len(entries) < 30
