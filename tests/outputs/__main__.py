"""Compare output, files and exit status of every command with a commit: ``make outputs``.

``make outputs OUTPUTS_ARGS="--base COMMIT"`` runs the same command lines with that commit and with
this checkout, on the same directories, and shows what differs: a status, a byte of standard output
or standard error, or a file that was written. JSON must keep to the JSON Schemas of both. It ends
with status 1 where anything differs.

What the commit gave is kept in ``build/outputs``, so that the next comparison with it runs only
this checkout. `inputs` has the directories, `lines` the command lines, and `worker` runs them.
"""

import argparse
import difflib
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from outputs import inputs, lines, printed_json
from outputs.worker import STEADY, Store

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "build" / "outputs"
_TESTS = ROOT / "tests"
_MAKES_INPUTS = ("redpanda_files.py", "damage.py", "fuzz/mutations.py", "fuzz/fields.py")
"""Files of tests/ that have a part in the inputs."""
_WORKERS = 2
_REPORTED_EVERY = 1000
_SHOWN_LINES = 12
Recorded = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Compare, or list the command lines; return 1 for a difference."""
    parser = argparse.ArgumentParser(
        prog="make outputs", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--base", metavar="COMMIT", default="HEAD", help="compare with it")
    parser.add_argument("--only", metavar="COMMAND", action="append", help="repeatable")
    parser.add_argument("--list", action="store_true", help="print the command lines, run nothing")
    parser.add_argument("--steady", action="store_true", help="print what is made steady, and why")
    chosen = parser.parse_args(arguments)
    if chosen.steady:
        sys.stdout.writelines(f"{name}: {why}\n" for name, why in STEADY.items())
        return 0
    key = make_inputs(HOME)
    cases = [
        case
        for case in lines.cases(HOME / "inputs")
        if not chosen.only or " ".join(case.words[0]).startswith(tuple(chosen.only))
    ]
    if chosen.list:
        sys.stdout.writelines(f"{case.name}\n" for case in cases)
        return 0
    commit = _git("rev-parse", "--short=12", f"{chosen.base}^{{commit}}")
    base = Recording(HOME / "recordings" / f"{commit}-{key}.ndjson")
    missing = [case for case in cases if case.name not in base.found]
    store = Store(HOME / "contents")
    if missing:
        _run(check_out(commit, chosen.base), missing, base, f"base {commit}")
    here = Recording(HOME / "recordings" / "here.ndjson", again=True)
    _run(ROOT, cases, here, "this checkout")
    trees = (check_out(commit, chosen.base), ROOT)
    return report(cases, base.found, here.found, store, trees)


def make_inputs(home: Path) -> str:
    """Make the inputs unless they are there, and see that nothing changed them.

    Returns a text that is another one once the inputs or the way to record are others.
    """
    here = Path(__file__).parent
    makers = [here / "inputs.py", *(_TESTS / one for one in _MAKES_INPUTS)]
    of_inputs = _digest([*makers, *sorted(inputs.DATA.glob("*/*.tar.xz"))])
    mark = home / "inputs.key"
    if not mark.exists() or mark.read_text() != of_inputs:
        shutil.rmtree(home / "inputs", ignore_errors=True)
        (home / "inputs").mkdir(parents=True)
        inputs.make(home / "inputs")
        (home / "inputs.fingerprint").write_text(inputs.fingerprint(home / "inputs"))
        mark.write_text(of_inputs)
    _check_inputs(home)
    return _digest([mark, here / "worker.py"])


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def _check_inputs(home: Path) -> None:
    before = (home / "inputs.fingerprint").read_text().splitlines()
    now = inputs.fingerprint(home / "inputs").splitlines()
    changed = sorted(set(before) ^ set(now))
    if changed:
        (home / "inputs.key").unlink()
        names = {os.fsdecode(bytes.fromhex(row.split()[0])) for row in changed}
        sys.exit(f"A command changed the inputs, so nothing is compared: {sorted(names)[:5]!r}")


def check_out(commit: str, given: str) -> Path:
    """Return a tree of a commit, with its kernels compiled."""
    tree = HOME / f"base-{commit}"
    if tree.exists():
        return tree
    part = tree.with_name(f"{tree.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    archive = subprocess.run(("git", "archive", commit), cwd=ROOT, check=True, capture_output=True)
    subprocess.run(("tar", "-x", "-C", part), input=archive.stdout, check=True)
    kernels = ("formats/_*.py", "formats/_*.pxd", "formats/_*.h")
    same = subprocess.run(("git", "diff", "--quiet", commit, "--", *kernels), cwd=ROOT, check=False)
    if same.returncode == 0:
        for path in (ROOT / "formats").glob("*.so"):
            shutil.copy2(path, part / "formats")
    else:
        sys.stderr.write(f"{given} has other kernels, which are compiled now\n")
        build = (sys.executable, "setup.py", "-q", "build_ext", "--inplace")
        subprocess.run(build, cwd=part, check=True)
    part.rename(tree)
    return tree


class Recording:
    """The results of command lines with one tree, by their names: a file with a line for each."""

    def __init__(self, path: Path, *, again: bool = False) -> None:
        self.path = path
        self.found: dict[str, Recorded] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if again:
            path.unlink(missing_ok=True)
        if path.exists():
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # else it was written when the run was killed
                    one = json.loads(line)
                    self.found[one["name"]] = one

    def add(self, recorded: Recorded) -> None:
        """Keep one more result."""
        self.found[recorded["name"]] = recorded
        with self.path.open("a") as file:
            file.write(json.dumps(recorded) + "\n")


def _run(tree: Path, cases: Sequence[lines.Case], recording: Recording, words: str) -> None:
    """Run command lines with a tree in several workers, and record the results."""
    began = time.monotonic()
    sys.stderr.write(f"{words}: {len(cases):,} runs\n")
    (HOME / "work").mkdir(exist_ok=True)
    todo: queue.SimpleQueue[lines.Case | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[Recorded | None] = queue.SimpleQueue()
    for case in (*cases, *[None] * _WORKERS):
        todo.put(case)
    threads = [threading.Thread(target=_work, args=(tree, todo, done)) for _ in range(_WORKERS)]
    for thread in threads:
        thread.start()
    ended = count = 0
    while ended < _WORKERS:
        recorded = done.get()
        if recorded is None:
            ended += 1
            continue
        recording.add(recorded)
        count += 1
        if count % _REPORTED_EVERY == 0:
            sys.stderr.write(f"{words}: {count:,} done after {time.monotonic() - began:.0f} s\n")
    _check_inputs(HOME)
    if len(recording.found.keys() & {case.name for case in cases}) < len(cases):
        sys.exit(f"{words}: a worker ended early")
    sys.stderr.write(f"{words}: {time.monotonic() - began:.0f} s\n")


def _work(tree: Path, todo: "queue.SimpleQueue[lines.Case | None]", done: Any) -> None:
    """Hand cases to one worker until there are no more."""
    command = (sys.executable, "-P", "-m", "outputs.worker", str(tree), str(HOME / "contents"))
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(
            command, cwd=HOME / "inputs", env=_environment(tree), stdin=pipe, stdout=pipe
        ) as worker:
            assert worker.stdin and worker.stdout
            while (case := todo.get()) is not None:
                line = json.dumps(asdict(case) | {"name": case.name}) + "\n"
                worker.stdin.write(line.encode())
                worker.stdin.flush()
                done.put(json.loads(worker.stdout.readline()))
            worker.stdin.close()
    finally:
        done.put(None)


def _environment(tree: Path) -> dict[str, str]:
    """Return the environment of a worker: nothing of the user's that could change an output."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{tree}{os.pathsep}{_TESTS}",
        "PYTHONHASHSEED": "0",
        "HOME": str(HOME / "work"),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "TZ": "UTC",
        "LOGTOOL_CONFIG": "",
        "OPENBLAS_NUM_THREADS": "1",
    }


def report(
    cases: Sequence[lines.Case],
    base: dict[str, Recorded],
    here: dict[str, Recorded],
    store: Store,
    trees: Sequence[Path],
) -> int:
    """Print the differences and the sums; return 1 for a difference.

    An object that the JSON Schema of one of the trees does not accept counts as a difference.
    """
    different = 0
    for case in cases:
        found = list(differences(base[case.name], here[case.name], store))
        found += printed_json.problems(store.get(here[case.name]["stdout"]), trees)
        if found:
            different += 1
            sys.stdout.write("\n".join((f"\n{case.name}", *found)) + "\n")
    sys.stdout.write(f"{len(cases):,} runs: {len(cases) - different:,} equal, {different:,} not\n")
    return int(bool(different))


def differences(base: Recorded, here: Recorded, store: Store) -> Iterator[str]:
    """Yield the differences between two recordings of one command line."""
    if base["status"] != here["status"]:
        yield f"  status: {base['status']}, now {here['status']}"
    for stream in ("stdout", "stderr"):
        if base[stream] != here[stream]:
            yield f"  {stream}:"
            yield from _difference(store.get(base[stream]), store.get(here[stream]))
    for name in sorted(base["files"].keys() | here["files"].keys()):
        before, now = base["files"].get(name), here["files"].get(name)
        if before == now:
            continue
        if before is None or now is None:
            yield f"  file {name!r}: {'only now' if before is None else 'no longer'}"
            continue
        (mode, time_ns, *content), (new_mode, new_time_ns, *new_content) = (
            before.split(),
            now.split(),
        )
        yield f"  file {name!r}:"
        if (mode, time_ns) != (new_mode, new_time_ns):
            yield f"    mode and mtime: {mode} {time_ns}, now {new_mode} {new_time_ns}"
        if content != new_content:
            yield from _difference(
                b"".join(map(store.get, content)), b"".join(map(store.get, new_content))
            )


def _difference(before: bytes, now: bytes) -> Iterator[str]:
    """Yield the first lines of a unified diff, in which no byte is lost."""
    texts = [_lines(data) for data in (before, now)]
    # The lines in front that are equal are left out here: a diff of megabytes takes minutes.
    first = next(
        (n for n, (one, other) in enumerate(zip(*texts, strict=False)) if one != other),
        min(map(len, texts)),
    )
    start = max(first - 3, 0)
    near = [text[start : first + 200] for text in texts]
    diff = list(difflib.unified_diff(near[0], near[1], n=2, lineterm=""))[2:]
    yield f"    first at line {first + 1} of {len(texts[0])}, now {len(texts[1])}"
    yield from (f"    {line[:300]}" for line in diff[:_SHOWN_LINES])
    if len(diff) > _SHOWN_LINES:
        yield "    ..."


def _lines(data: bytes) -> list[str]:
    """Return the lines of some bytes with unprintable characters escaped."""
    text = data.decode("utf-8", "backslashreplace")
    return [line.encode("unicode_escape").decode() for line in text.split("\n")]


def _git(*words: str) -> str:
    done = subprocess.run(("git", *words), cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
