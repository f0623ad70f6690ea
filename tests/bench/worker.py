"""Runs command lines of logtool in one process, one after another: see `against_base`.

Each line of standard input holds the arguments of a command as JSON. Each line of standard output
answers one with its exit status, its seconds by the clock and those that processors worked for it.
What the commands print goes to /dev/null.
"""

import gc
import json
import os
import sys
import time

from logtool.__main__ import main as logtool


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    questions = os.fdopen(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    for line in questions:
        answers.write(json.dumps(_run(json.loads(line))) + "\n")


def _run(arguments: list[str]) -> tuple[object, float, float]:
    """Run one command line as the program would, with its settings of the garbage collector."""
    # A program freezes what is left as it ends. Here it must not pile up from run to run.
    gc.unfreeze()
    gc.collect()
    sys.argv = ["logtool", *arguments]
    status: object = None
    worked, began = time.process_time(), time.perf_counter()
    try:
        logtool()
    except SystemExit as end:
        status = end.code
    return status, time.perf_counter() - began, time.process_time() - worked


if __name__ == "__main__":
    main()
