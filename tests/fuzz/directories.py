"""All commands in all formats on mutated log dirs: ``make mutate MUTATE_ARGS='--runs 50000'``.

A seed makes each log dir, and chooses the command lines that run on it, from those of ``make
outputs``. For any contents a command ends with an exit status of the contract and without a
traceback, in a limited time; it prints no control character, prints JSON and CSV that parse, and
changes nothing but a copy that it gets with ``--apply``.

What ran is kept in ``build/mutate``: a campaign that is stopped goes on where it was.
``--directory N`` makes one log dir again, and prints what its runs print.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fuzz import mutated, mutated_report
from outputs import inputs

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "mutate"
_WRITTEN_EVERY = 100
"""Number of log dirs between two writes of the report."""


def make_bases(home: Path) -> Path:
    """Unpack and write the log dirs that are mutated, unless they are there."""
    bases = home / "bases"
    if not bases.exists():
        part = home / "bases.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        list(inputs.unpack(part))
        inputs.write_bare(part)
        inputs.write_redpanda(part / "redpanda")
        part.rename(bases)
    return bases


def done_before(path: Path) -> list[dict[str, Any]]:
    """Return the results of earlier runs of the campaign; a line that was cut is dropped."""
    found: list[dict[str, Any]] = []
    if path.exists():
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                found.append(json.loads(line))
        path.write_text("".join(f"{json.dumps(one)}\n" for one in found))
    return found


def campaign(
    runs: int,
    seed: int,
    home: Path,
    workers: int = 2,
    on_directory: Callable[[list[dict[str, Any]]], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Run command lines on mutated log dirs until there are `runs`; return all log dirs' results.

    `on_directory` gets what there is after every log dir.
    """
    bases = make_bases(home)
    kept = home / f"seed-{seed}.ndjson"
    found = done_before(kept)
    known = {one["directory"] for one in found}
    count = sum(len(one["runs"]) for one in found)

    def numbers() -> Iterator[tuple[int, int]]:
        number = 0
        while count < runs:
            if number not in known:
                yield seed, number
            number += 1

    context = multiprocessing.get_context("spawn")
    work = home / f"seed-{seed}-work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    with (
        kept.open("a") as file,
        context.Pool(workers, mutated.begin, (ROOT, bases, work)) as pool,
    ):
        waiting = numbers()
        while count < runs:
            some = [one for _, one in zip(range(4 * workers), waiting, strict=False)]
            for result in pool.imap_unordered(mutated.run_directory, some):
                found.append(result)
                count += len(result["runs"])
                file.write(f"{json.dumps(result)}\n")
                file.flush()
                on_directory(found)
    shutil.rmtree(work)
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the campaign of the command line; return 1 if a run broke the contract."""
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", "--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="forget what ran before")
    parser.add_argument("--mended", action="store_true", help="repeat log dirs with broken runs")
    parser.add_argument("--directory", type=int, help="make one log dir, and show its runs")
    parser.add_argument("--report", type=Path, help="write a report there")
    chosen = parser.parse_args(arguments)
    HOME.mkdir(parents=True, exist_ok=True)
    if chosen.directory is not None:
        return _one(chosen.seed, chosen.directory)
    kept = HOME / f"seed-{chosen.seed}.ndjson"
    if chosen.again:
        kept.unlink(missing_ok=True)
    if chosen.mended:
        sound = [one for one in done_before(kept) if not mutated_report.broken(one)]
        kept.write_text("".join(f"{json.dumps(one)}\n" for one in sound))
    shown = 0

    def write(found: list[dict[str, Any]]) -> None:
        nonlocal shown
        for one in found[shown:]:
            sys.stderr.writelines(f"{line}\n" for line in mutated_report.broken(one))
        shown = len(found)
        if chosen.report and len(found) % _WRITTEN_EVERY == 0:
            chosen.report.write_text(mutated_report.page(found, chosen.seed))

    try:
        found = campaign(chosen.runs, chosen.seed, HOME, chosen.workers, write)
    except KeyboardInterrupt:
        found = done_before(kept)
    page = mutated_report.page(found, chosen.seed)
    sys.stdout.write(page)
    if chosen.report:
        chosen.report.write_text(page)
    return int(any(mutated_report.broken(one) for one in found))


def _one(seed: int, number: int) -> int:
    """Make one log dir, keep it, and print what its runs print."""
    work = HOME / f"seed-{seed}-{number}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    mutated.begin(ROOT, make_bases(HOME), work)
    result = mutated.run_directory((seed, number), shows=True)
    sys.stdout.write(f"{os.path.relpath(work)}: {'; '.join(result['changes'])}\n")
    sys.stdout.writelines(f"{line}\n" for line in mutated_report.broken(result))
    return int(any(mutated_report.broken(result)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
