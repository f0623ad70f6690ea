import subprocess
import sys

from readme import DOCUMENTS, README, ROOT, blocks, run, steady


def test_readme_and_guides_show_what_their_commands_print() -> None:
    # One test for all: they work on the same directories.
    subprocess.run([sys.executable, ROOT / "tests" / "demo.py"], check=True, capture_output=True)
    for document in DOCUMENTS:
        for block in blocks(document.read_text()):
            assert steady(run(block)) == steady(block), document.name


def test_readme_is_short() -> None:
    # The terms, what is not supported and the cost of 1 TB took it from 10 to 13 KiB.
    assert README.stat().st_size <= 13 * 1024
