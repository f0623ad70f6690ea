"""The check of references in documents, docstrings and comments, which `make lint` runs."""

from pathlib import Path

import pytest
from stale import ROOT, Project, Stale, all_stale, defined_options, prose


@pytest.fixture(scope="module")
def project() -> Project:
    return Project(ROOT, {"--apply", "--level"})


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        ("As `logtool.forecast.Strategy` says.", "logtool.forecast.Strategy"),
        ("See logtool.verify.Lvl, which", "logtool.verify.Lvl"),
        ("see ``logtool.checks.report.Level.BATCH``", "logtool.checks.report.Level.BATCH"),
        ("Without ``--exact``, only headers are read.", "--exact"),
        ("Run `logtool recover --apply --force DIR`.", "--force"),
        ("tests/logtool/test_scan.py has more", "tests/logtool/test_scan.py"),
        ("`segment/scan.py` reads a log once", "segment/scan.py"),
        ("look into `survey.py` for it", "survey.py"),
        ("[report](tests/bench/OLD.md)", "tests/bench/OLD.md"),
    ],
)
def test_a_stale_reference_is_found(project: Project, line: str, gone: str) -> None:
    assert Stale("README.md", 7, gone) in list(project.stale("README.md", [(7, line)]))


@pytest.mark.parametrize(
    "line",
    [
        "As `logtool.verify.Level` and `logtool.checks.report.Level.BATCHES` say, in logtool.",
        "`logtool.checks.schedule.Engine` and the schema `logtool.dump/2`; ~/.logtool.json",
        "Run `logtool recover --apply DIR`, and `git log --oneline`.",
        "tests/engine/log/test_walk.py, `log/walk/scanner.py`, `scanner.py`, build/old.md",
        "[report](tests/bench/REPORT.md) and [more](https://example.org/gone.md)",
        "Write `man/logtool-NAME.md`, or tests/*/test_none.py",
    ],
)
def test_what_is_there_is_not_listed(project: Project, line: str) -> None:
    assert list(project.stale("README.md", [(1, line)])) == []


def test_docstrings_and_comments_are_prose_and_other_texts_are_not() -> None:
    source = '"""One.\n\nTwo."""\nX = "three"  # four\n"""Five."""\n'
    assert [text for _, text in prose(source) if text] == ["# four", "One.", "Two.", "Five."]
    assert dict(prose(source))[4] == "# four"


def test_a_program_among_the_tests_has_options_too() -> None:
    source = 'parser.add_argument("--seeds", help="how many --seeds")\n'
    assert defined_options(source) == {"--seeds"}


def test_a_planted_reference_is_found_in_a_checkout(tmp_path: Path) -> None:
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile"):
        (tmp_path / name).write_text("")
    for folder in ("logtool", "commands", "formats", "tests", "man", "completions"):
        (tmp_path / folder).mkdir()
    (tmp_path / "completions" / "logtool.fish").write_text("complete -c logtool -l apply\n")
    (tmp_path / "logtool" / "catalogue.toml").write_text("")
    (tmp_path / "logtool" / "verify.py").write_text("class Level:\n    QUICK = 1\n")
    (tmp_path / "tests" / "test_one.py").write_text(
        '"""Of `logtool.verify.Level.QUICK`."""\n# --apply, `--apply` and `--aply`\n'
    )
    (tmp_path / "man" / "logtool-x.md").write_text("`logtool.verify.Levels`\n")
    assert all_stale(tmp_path) == [
        Stale("man/logtool-x.md", 1, "logtool.verify.Levels"),
        Stale("tests/test_one.py", 2, "--aply"),
    ]
