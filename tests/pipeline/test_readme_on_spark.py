"""What README says of Spark, run."""

import doctest
import subprocess
import sys

import pytest
from readme import ON_SPARK, README, ROOT, blocks, doctests, run, steady

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def demo() -> None:
    subprocess.run([sys.executable, ROOT / "tests" / "demo.py"], check=True, capture_output=True)


def test_readme_shows_what_its_commands_print() -> None:
    found = blocks(README.read_text(), ON_SPARK)
    assert found
    for block in found:
        assert steady(run(block)) == steady(block)


def test_readme_shows_what_its_python_prints(spark, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    found = doctests(README.read_text())
    assert found
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for text in found:
        result = runner.run(parser.get_doctest(text, {}, "README", str(README), 0))
        assert result.attempted > 3
        assert not result.failed
