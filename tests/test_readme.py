import subprocess
import sys

from readme import README, ROOT, blocks, run, steady


def test_readme_shows_what_its_commands_print() -> None:
    subprocess.run([sys.executable, ROOT / "tests" / "demo.py"], check=True, capture_output=True)

    for block in blocks(README.read_text()):
        assert steady(run(block)) == steady(block)
