import subprocess
import sys

import pytest
from readme import README, ROOT, blocks, run, steady


@pytest.fixture(scope="module", autouse=True)
def demo() -> None:
    """Make build/demo as `make demo` does."""
    subprocess.run([sys.executable, ROOT / "tests" / "demo.py"], check=True, capture_output=True)


@pytest.mark.parametrize("block", blocks(README.read_text()))
def test_readme_shows_what_its_commands_print(block: str) -> None:
    assert steady(run(block)) == steady(block)
