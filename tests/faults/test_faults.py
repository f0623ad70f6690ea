"""The seeded faults fit the tree, and the script reports those that no test notices."""

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faults import __main__ as script
from faults.entries import COMPILED, FOLDERS, ROOT, Fault, applied, load

FAULTS = load()
SOUND = "LEAST = 1\n\n\ndef is_enough(number):\n    return number >= LEAST\n"
TESTS = """\
from logtool.number import is_enough


def test_one_is_enough():
    assert is_enough(1)


def test_zero_is_not():
    assert not is_enough(0)
"""


def test_there_are_at_least_fifty_faults():
    assert len(FAULTS) >= 50


def test_each_part_of_the_program_has_a_fault():
    packages = {Path(fault.file).parts[1] for fault in FAULTS}
    assert packages >= {
        "apply", "checkpoints", "checks", "convert", "copies", "doctor", "dump", "gaps", "groups",
        "loading", "log", "lookup", "metadata", "quorum", "redpanda", "repair", "running",
        "startup", "txns", "watermark",
    }  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_tree(fault: Fault):
    text = fault.faulty(ROOT)
    assert fault.file.split("/")[0] in FOLDERS
    assert fault.file not in COMPILED
    compile(text, fault.file, "exec", dont_inherit=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a module and its tests, which pass."""
    home = tmp_path / "tree"
    (home / "logtool").mkdir(parents=True)
    (home / "logtool" / "__init__.py").touch()
    (home / "logtool" / "number.py").write_text(SOUND)
    (home / "tests").mkdir()
    (home / "tests" / "test_number.py").write_text(TESTS)
    (home / "pytest.ini").write_text("[pytest]\nmarkers =\n  broker\n  spark\n  long\n")
    return home


def fault(name: str = "larger", old: str = "LEAST = 1", new: str = "LEAST = 2") -> Fault:
    """Return a fault of the module; the one by default is noticed."""
    return Fault(
        name=name, file="logtool/number.py", old=old, new=new, wrong="1 is not enough.",
        tests=("tests/test_number.py",),
    )  # fmt: skip


@pytest.fixture
def run(tree: Path, tmp_path: Path) -> Callable[..., int]:
    """Return a function that runs the script with some faults; returns its status."""

    def of(*faults: Fault, options: tuple[str, ...] = ()) -> int:
        listed = tmp_path / "faults.toml"
        keys = ("name", "file", "old", "new", "wrong")
        listed.write_text(
            "".join(
                "[[fault]]\n"
                + "".join(f"{key} = '''{getattr(one, key)}'''\n" for key in keys)
                + f"tests = {list(one.tests)}\n"
                for one in faults
            )
        )
        return script.main(options, root=tree, listed=listed)

    return of


def test_a_fault_is_noticed_by_the_first_test_that_fails(run, tree, capsys):
    assert run(fault()) == 0
    out = capsys.readouterr().out
    assert "tests/test_number.py::test_one_is_enough" in out
    assert "1 faults: 1 noticed, 0 not noticed, 0 errors" in out
    assert (tree / "logtool" / "number.py").read_text() == SOUND


def test_a_fault_that_no_test_notices_is_reported(run, capsys):
    same = fault("float", new="LEAST = 1.0")
    assert run(fault(), same) == 1
    out = capsys.readouterr().out
    assert "NOT NOTICED" in out
    assert "2 faults: 1 noticed, 1 not noticed, 0 errors" in out


def test_one_fault_can_be_run_alone(run, capsys):
    same = fault("float", new="LEAST = 1.0")
    assert run(fault(), same, options=("--only", "larger")) == 0
    assert "float" not in capsys.readouterr().out


def test_a_test_that_fails_without_a_fault_is_an_error(run, tree, capsys):
    (tree / "tests" / "test_number.py").write_text(TESTS.replace("not is_enough(0)", "False"))
    assert run(fault()) == 2
    captured = capsys.readouterr()
    assert "tests/test_number.py::test_zero_is_not" in captured.err
    assert "noticed" not in captured.out


def test_a_fault_with_which_no_test_loads_is_an_error(run, capsys):
    assert run(fault("import", new="import nothing_of_this_name")) == 2
    assert "0 noticed, 0 not noticed, 1 errors" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        fault("absent", old="MOST = 1"),
        fault("twice", old="LEAST"),
        fault("same", new="LEAST = 1"),
        replace(fault("no-file"), file="logtool/nothing.py"),
        replace(fault("no-test"), tests=("tests/test_nothing.py",)),
        replace(fault("no-tests"), tests=()),
    ],
    ids=lambda one: one.name,
)
def test_an_entry_that_does_not_fit_is_an_error_that_names_it(run, capsys, wrong: Fault):
    assert run(fault(), wrong) == 2
    assert capsys.readouterr().err.startswith(f"{wrong.name}: ")


def test_a_name_that_is_not_listed_is_an_error(run, capsys):
    assert run(fault(), options=("--only", "other")) == 2
    assert capsys.readouterr().err == "no entry has the name other\n"


def test_two_entries_with_one_name_are_an_error(run, capsys):
    assert run(fault(), fault()) == 2
    assert capsys.readouterr().err.startswith("larger: ")


def test_python_compiles_the_file_again_for_each_fault_of_one_size(tree: Path):
    path = tree / "logtool" / "number.py"

    def least() -> int:
        # As an import does: a compiled file that is up to date is used.
        spec = importlib.util.spec_from_file_location("number_of_the_tree", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.LEAST

    before, written = sys.dont_write_bytecode, path.stat().st_mtime_ns
    sys.dont_write_bytecode = False
    try:
        found = [least()]
        for number in range(2):
            with applied(fault(new=f"LEAST = {number + 2}"), tree, number):
                found.append(least())
        found.append(least())
    finally:
        sys.dont_write_bytecode = before
    assert found == [1, 2, 3, 1]
    assert path.stat().st_mtime_ns == written
