"""One mutated log dir, the command lines that run on it, and what is wrong with what they do.

A worker loads logtool once; each command line then runs in a child of its own, so that a hang, a
signal and the memory belong to that line alone.
"""

import csv
import gc
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

from fuzz.mutations import mutate
from outputs import inputs, lines, printed_json, worker

ALLOWED = {0, 1, 2, 4, 5, 6}
A_WHILE = 60
"""Seconds after which a command line is killed."""
LINES = 10
"""Number of command lines for each log dir."""
_LARGE = 300_000
"""Bytes of a partition that is left out of most log dirs."""
_BARE = ("formatted", "empty")
"""Log dirs with few partitions, of which a campaign needs less."""
_FREE_TEXT = {"kafka", "kcat", "console-producer"}
"""Formats that print bytes as another tool does."""
_MORE: dict[str, tuple[str, ...]] = {
    "doctor": ("--broker-config {checkpoint} {}",),
    "plan": ("--broker-config {checkpoint} {}", "--kafka-version all {}"),
    "verify": ("--files-from {checkpoint}", "{partition} {other_partition} {log}"),
    "undo": ("{partition}", "{}", "--apply {copy}"),
    "watermark simulate": ("{checkpoint}", "{log}"),
    "salvage": ("--output {out}/saved --retry {other} {}",),
}
"""Arguments by command, in addition to those of ``make outputs``."""
_VALIDATED = 4
"""Number of JSON outputs of which one is validated against its schema."""
_MOST_MEMORY = 1024
"""MiB."""
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_loaded: dict[str, Any] = {}


def begin(tree: Path, bases: Path, work: Path) -> None:
    """Load logtool into this process, with clocks that stand still."""
    # Ctrl-C ends the campaign, not each worker.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.make_steady()
    worker.A_WHILE = A_WHILE
    _loaded.update(run=worker.load(tree), bases=bases, work=work, tree=tree)
    # A child that looks for garbage among what is loaded copies the pages of its parent.
    gc.set_threshold(50_000)
    gc.freeze()


def run_directory(which: tuple[int, int], *, shows: bool = False) -> dict[str, Any]:
    """Make the log dir of a seed and a number, and run command lines on it; return the results.

    With `shows` the log dir is kept, and what was printed is shown.
    """
    seed, number = which
    draw = random.Random(f"{seed} {number}")
    home = _loaded["work"] / str(number) / "inputs"
    (home.parent / "work").mkdir(parents=True)
    home.mkdir()
    os.chdir(home)
    base, place, changes = make_place(draw, _loaded["bases"], home)
    result: dict[str, Any] = {
        "directory": number, "base": base, "changes": changes, "runs": [],
    }  # fmt: skip
    before = looks(home)
    for case in choose(draw, place, LINES):
        for run in _run_case(case, shows):
            after = looks(home)
            if after != before:
                run["problems"].append("it changed its input")
                before = after
            result["runs"].append(run)
    os.chdir("/")
    if not shows:
        shutil.rmtree(home.parent)
    return result


def make_place(draw: random.Random, bases: Path, home: Path) -> tuple[str, lines.Place, list[str]]:
    """Copy a part of a base into `home` and mutate it; return its name, the place, the changes."""
    kind = draw.choices(("kafka", "redpanda", "bare"), (80, 17, 3))[0]
    if kind == "kafka":
        base = draw.choice(sorted(bases.glob("[0-9]*/*")))
        if base.name in _BARE:
            base = draw.choice(sorted(bases.glob("[0-9]*/*")))
        sources = inputs.log_dirs(base)
        if len(sources) > 1 and draw.random() < 0.4:
            sources = [draw.choice(sources)]
        for number, source in enumerate(sources, 1):
            copy_some(draw, source, home / f"dir-{number}")
        copied = [f"dir-{number}" for number in range(1, len(sources) + 1)]
    elif kind == "redpanda":
        base = draw.choice(sorted((bases / "redpanda").iterdir()))
        worker.copy(base / "data", home / "data")
        copied = ["data"]
    else:
        base = bases / "bare" / draw.choice(("files", "tx-interleaved_v2-0"))
        worker.copy(base, home / base.name)
        copied = [base.name]
    other = copied[-1]
    if len(copied) == 1:
        other = "other"
        worker.copy(home / copied[0], home / other)
    changes = []
    for name in copied:
        if name == copied[0] or draw.random() < 0.4:
            changes += [f"{name}: {one}" for one in mutate(draw, home / name)]
    return str(base.relative_to(bases)), lines.Place(home, tuple(copied), other), changes


def copy_some(draw: random.Random, source: Path, target: Path) -> None:
    """Copy a log dir with one to four of its partitions, rather those that hold something."""
    partitions = sorted(path for path in source.iterdir() if path.is_dir())
    full = [path for path in partitions if 0 < _size(path) < _LARGE]
    some = full if draw.random() < 0.8 else partitions
    kept = draw.sample(some, min(len(some), draw.randint(1, 4)))
    kept += [path for path in full if path.name == "__cluster_metadata-0" and draw.random() < 0.6]
    left_out = {path.name for path in partitions} - {path.name for path in kept}
    shutil.copytree(
        source,
        target,
        symlinks=True,
        ignore=lambda folder, names: left_out if folder == str(source) else set(),
    )


def _size(partition: Path) -> int:
    """Return the bytes in the logs of a partition, and all those in large files."""
    sizes = [(path.suffix, path.stat().st_size) for path in partition.iterdir() if path.is_file()]
    return sum(size for suffix, size in sizes if suffix == ".log" or size > _LARGE)


def choose(draw: random.Random, place: lines.Place, count: int) -> Iterator[lines.Case]:
    """Yield command lines for a place."""
    templates = lines.SEVERAL if len(place.paths) > 1 and draw.random() < 0.5 else lines.TEMPLATES
    if templates is lines.TEMPLATES:
        place = lines.Place(place.home, place.paths[:1], place.other)
    if templates is lines.TEMPLATES:
        both = {*templates, *_MORE}
        templates = {name: templates.get(name, ()) + _MORE.get(name, ()) for name in both}
    seen = set()
    there = {path.name for one in place.paths for path in (place.home / one).glob("*")}
    commands = [name for name in sorted(templates) if _has_subject(name, there)]
    for _ in range(count):
        command = draw.choice(commands if draw.random() < 0.95 else sorted(templates))
        text = draw.choice(templates[command])
        name = draw.choice(lines.formats(command))
        case = lines.case_of(place, command, text, name, draw.choice((1, 1, 2)))
        if case.name not in seen:
            seen.add(case.name)
            yield case


def _has_subject(command: str, there: set[str]) -> bool:
    """Return whether a log dir with these names has something that the command is about."""
    if command.startswith(("metadata", "quorum")):
        return any(name.startswith("__cluster_metadata") for name in there)
    if command == "groups":
        return any(name.startswith("__consumer_offsets") for name in there) or "kafka" in there
    return command != "convert" or "kafka" in there or len(there) % 2 == 0


def _run_case(case: lines.Case, shows: bool) -> Iterator[dict[str, Any]]:
    """Run the command lines of a case one after another; yield a result for each."""
    directory = Path(case.directory) if case.directory else None
    if directory:
        directory.mkdir()
    if directory and case.copied:
        worker.copy(Path(case.copied), directory / Path(case.copied).name)
    for words in case.words:
        ended = worker.in_child(partial(worker.as_typed, _loaded["run"], list(words)))
        peak = ended.usage.ru_maxrss // 1024
        found = list(problems(words, ended.status, ended.stdout, ended.stderr))
        if peak > _MOST_MEMORY:
            found.append(f"{peak} MiB of memory")
        if shows:
            text = (ended.stdout + ended.stderr).decode("utf-8", "backslashreplace")
            sys.stdout.write(f"$ logtool {shlex.join(words)}\n{text}[{ended.status}] {found}\n")
        yield {
            "words": list(words), "status": ended.status, "problems": found, "peak": peak,
            "cpu": round(ended.usage.ru_utime + ended.usage.ru_stime, 2),
        }  # fmt: skip
    if directory and not shows:
        shutil.rmtree(directory)


def problems(words: Sequence[str], status: int, out: bytes, err: bytes) -> Iterator[str]:
    """Yield the violations of the contract."""
    if status not in ALLOWED:
        yield f"signal {-status}" if status < 0 else f"status {status}"
    if b"Traceback" in err:
        yield "a traceback"
    last = err.decode("utf-8", "backslashreplace").strip().splitlines()
    if status == 70:
        yield next((line for line in last if "bug in" in line), "")
    name = words[words.index("-f") + 1] if "-f" in words else "table"
    if words[0] == "kafka-dump-log" or name in _FREE_TEXT:
        return
    printed = (out + err).decode("utf-8", "surrogateescape")
    if "always" in words:
        printed = _COLORS.sub("", printed)
    odd = {c for c in printed if not c.isprintable() and c not in "\n\t"}
    if odd and name not in ("csv", "tsv"):
        yield f"control characters {sorted(odd)!r}"
    if status not in ALLOWED or not out:
        return
    try:
        if name == "json":
            json.loads(out)
        elif name == "ndjson":
            for line in out.splitlines():
                json.loads(line)
        elif name in ("csv", "tsv"):
            text = io.StringIO(out.decode(), newline="")
            list(csv.reader(text, "excel" if name == "csv" else "excel-tab", strict=True))
    except (ValueError, csv.Error) as error:
        yield f"{name} does not parse: {error}"
    else:
        if name in ("json", "ndjson") and crc32(out) % _VALIDATED == 0:
            yield from printed_json.problems(out, [_loaded["tree"]])


def looks(log_dir: Path) -> list[tuple[object, ...]]:
    """Return all names with inode, mode, size and times."""
    rows: list[tuple[object, ...]] = []
    for folder, names, files in os.walk(log_dir):
        for name in ("", *names, *files):
            path = os.path.join(folder, name)  # noqa: PTH118
            status = os.lstat(path)
            rows.append((path, status.st_ino, status.st_mode, status.st_size,
                         status.st_mtime_ns, status.st_ctime_ns))  # fmt: skip
    return sorted(rows)
