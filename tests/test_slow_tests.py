"""The list of slow tests is that of tests in the tree."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import slow_tests

ROOT = Path(__file__).parent.parent


def test_each_slow_function_is_in_its_file() -> None:
    names = {}
    for name in slow_tests.slow_functions():
        file, _, function = name.partition("::")
        if file not in names:
            tree = ast.parse((ROOT / file).read_text())
            names[file] = {
                node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            }
        assert function in names[file], name
    assert len(names) >= 10


def test_a_listed_test_is_marked_with_all_its_parameters() -> None:
    listed = sorted(slow_tests.slow_functions())[0]
    words = ["-m", "pytest", "-q", "--collect-only", "-m", "not slow", listed]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout
