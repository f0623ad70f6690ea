"""Two builds run the same command lines in turns, and a row above the bar fails the comparison."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench import __main__ as program
from bench import against_base
from bench.against_base import FEW, MANY, QUICK, Case, Compared, Run, Took, in_turns

ARGUMENTS = ["verify", "data"]


def side(name: str, done: list[str], wall: float = 1, status: int = 0) -> Run:
    """Return a side that records its name at each call in place of a run."""

    def run(arguments: Sequence[str]) -> Took:
        assert arguments == ARGUMENTS
        done.append(name)
        return Took(status, wall, wall / 2)

    return run


def test_the_sides_alternate_with_something_before_each_run() -> None:
    done: list[str] = []
    case = Case("a row", ARGUMENTS, before=lambda: done.append("before"))
    row = in_turns("verify", case, side("ours", done), side("base", done), is_quick=False)
    assert done == ["before", "ours", "before", "base"] * (1 + FEW), "one pair to warm up"
    assert len(row.ours) == len(row.base) == FEW


@pytest.mark.parametrize(
    ("wall", "is_quick", "pairs"), [(0.9, False, MANY), (1, False, FEW), (0.9, True, QUICK)]
)
def test_a_short_command_has_more_pairs(wall: float, is_quick: bool, pairs: int) -> None:
    sides = side("ours", [], wall), side("base", [], wall)
    assert len(in_turns("verify", Case("a row", ARGUMENTS), *sides, is_quick).ours) == pairs


@pytest.mark.parametrize(("ours", "base"), [(0, 1), (4, 4)])
def test_a_command_that_fails_or_ends_otherwise_is_not_measured(ours: int, base: int) -> None:
    sides = side("ours", [], status=ours), side("base", [], status=base)
    with pytest.raises(AssertionError, match="exit statuses"):
        in_turns("verify", Case("a row", ARGUMENTS), *sides, is_quick=True)


def compared(*walls: float) -> Compared:
    """Return a row in which the base takes 2 s by the clock and 1 s of a processor each time."""
    ours = [Took(0, wall, 1.5) for wall in walls]
    return Compared("verify", "a row", ours, [Took(0, 2, 1)] * len(walls))


def test_a_row_has_the_median_of_the_ratios_and_their_spread() -> None:
    assert compared(1, 3, 1.9).cells() == [
        "verify", "a row", "0.950 (0.500 .. 1.500)", "1.500", "0.500", "3", "1.9 s", "2 s", "met",
    ]  # fmt: skip


def test_the_bar_itself_is_not_met() -> None:
    assert [compared(wall).met for wall in (2, 2.098, 2.1, 4)] == [True, True, False, False]


@pytest.mark.parametrize(("wall", "status", "said"), [(2, 0, "met"), (3, 1, "NOT MET")])
def test_a_row_above_the_bar_is_reported_and_makes_the_exit_status_1(
    wall: float, status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walls = {"ours": wall, "base": 2}

    @contextmanager
    def worker(site: Path) -> Iterator[Run]:
        yield side(site.name, [], walls[site.name.partition("-")[0]])

    monkeypatch.setattr(against_base, "_installed", lambda target, tree: target)
    monkeypatch.setattr(against_base, "worker", worker)
    monkeypatch.setattr(against_base, "_git", lambda *arguments, index=None: "f" * 40)
    monkeypatch.setattr(against_base, "JOBS", {"verify": lambda bench: [Case("a row", ARGUMENTS)]})
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench", "--base", "HEAD", "--quick"])
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code == status
    lines = (tmp_path / "build" / "bench" / "BASE.md").read_text().splitlines()
    assert lines[0].endswith(" fffffff")
    assert lines[-1].endswith(f"| 2 s | {said} |")


@pytest.mark.parametrize("options", [["--update"], ["--drop-cache"], ["--only", "memory"]])
def test_options_without_effect_on_a_base_are_refused(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--base", "HEAD", *options])
    with pytest.raises(SystemExit, match="2"):
        program.main()


def test_the_working_tree_has_every_file_with_its_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(against_base, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in ("new.py", "tests/test.py", "build/kept"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("/build/\n")
    tree = against_base._working_tree(tmp_path / "build")
    assert against_base._git("ls-tree", "-r", "--name-only", tree) == ".gitignore\nnew.py"
    assert against_base._git("ls-files") == "", "the user's index changed"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a build whose program prints and ends with the number of its arguments."""
    package = tmp_path / "logtool"
    package.mkdir()
    (package / "__main__.py").write_text(
        "import sys\n"
        "def main():\n"
        "    print('what a command prints')\n"
        "    sys.exit(len(sys.argv) - 1)\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    return tmp_path


def test_a_worker_runs_command_lines_of_its_own_build_one_after_another(site: Path) -> None:
    with against_base.worker(site) as run:
        assert [run(["a"] * count).status for count in (0, 3, 1)] == [0, 3, 1]


def test_a_whole_process_runs_its_build(site: Path) -> None:
    assert against_base.whole(site, ["a", "b"]).status == 2


def test_all_jobs_have_the_names_of_jobs_of_the_report() -> None:
    assert set(against_base.JOBS) <= set(program.ROWS)
