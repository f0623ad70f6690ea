"""The examples with Spark of README and the guides, run."""

import doctest
import subprocess
import sys

import pytest
from readme import DOCUMENTS, ON_SPARK, ROOT, blocks, doctests, run, steady

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def demo() -> None:
    subprocess.run([sys.executable, ROOT / "tests" / "demo.py"], check=True, capture_output=True)


def test_what_the_commands_print_is_what_is_shown() -> None:
    found = [(d.name, block) for d in DOCUMENTS for block in blocks(d.read_text(), ON_SPARK)]
    assert found
    for name, block in found:
        assert steady(run(block)) == steady(block), name


def test_what_python_prints_is_what_is_shown(spark, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    found = [(document, text) for document in DOCUMENTS for text in doctests(document.read_text())]
    assert found
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for document, text in found:
        result = runner.run(parser.get_doctest(text, {}, document.name, str(document), 0))
        assert result.attempted > 3
        assert not result.failed
