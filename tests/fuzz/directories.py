"""Commands on mutated log dirs, in this process: ``make mutate MUTATE_ARGS='--runs 100000'``.

A seed makes each log dir. For any contents a command that reads ends with an exit status of the
contract and without a traceback, prints no control character, and changes nothing.
"""

import argparse
import io
import os
import random
import shutil
import signal
import stat
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from logtool import cli

ROOT = Path(__file__).parents[2]
SCENARIOS = ("4.3.1/killed", "3.9.2/clean", "2.8.2/magic-0", "2.8.2/magic-1")
ALLOWED = {0, 1, 2, 4, 5}
A_WHILE = 120
"""Seconds after which a run counts as hanging."""
COMMANDS = (
    ("verify", "{}"),
    ("verify", "--level", "records", "-f", "ndjson", "{}"),
    ("verify", "--level", "quick", "-f", "csv", "{}"),
    ("doctor", "{}"),
    ("plan", "{}"),
    ("plan", "-f", "ndjson", "--kafka-version", "3.3", "{}"),
    ("recover", "{}"),
    ("recover", "--full", "--strategy", "supplement", "-f", "json", "{}"),
    ("recover", "--full", "--strategy", "supplement", "--trust-log", "-f", "json", "{}"),
    ("rebuild-index", "--all", "{}"),
    ("dump", "--records", "{}"),
    ("dump", "-f", "ndjson", "--records", "{}"),
    ("dump", "-f", "kafka", "--records", "{}"),
    ("dump", "-f", "tsv", "{}"),
    ("dump-index", "--join-log", "-f", "ndjson", "{}"),
    ("stat", "--level", "records", "{}"),
    ("gaps", "--level", "records", "-f", "markdown", "{}"),
    ("gaps", "--ghosts", "-f", "ndjson", "{}"),
    ("txns", "-v", "{}"),
    ("watermark", "{}"),
    ("checkpoint", "show", "{}"),
    ("checkpoint", "lint", "{}"),
    ("checkpoint", "rebuild", "{}"),
    ("sanity", "{}"),
    ("diff", "{}", "{}"),
    ("lookup", "--timestamp", "latest", "{partition}"),
    ("lookup", "--offset", "3", "{partition}"),
)
_WRITTEN_EVERY = 100
"""Number of log dirs between two writes of the report."""
NAMES = (
    "00000000000000000007.log", "00000000000000000000.index.deleted", "x.log", "-rf", "a\nb",
    "99999999999999999999.log", ".lock", "\udcff.snapshot", "00000000000000000005.log.swap",
    "00000000000000000003.log.cleaned", "meta.properties", "leader-epoch-checkpoint", "\x1b[2J",
    "\u202e",
)  # fmt: skip


class HangsError(BaseException):
    """A run took too long."""


@dataclass(slots=True)
class Tally:
    """The results of the runs."""

    directories: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    by_command: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return sum(self.statuses.values())


def make_templates(home: Path) -> list[Path]:
    """Unpack log dirs of real brokers and keep the small partitions."""
    found = []
    for name in SCENARIOS:
        target = home / name.replace("/", "-")
        with tarfile.open(ROOT / "tests" / "data" / f"{name}.tar.xz") as tar:
            tar.extractall(target, filter="tar")
        (log_dir,) = target.iterdir()
        kept = 0
        for partition in sorted(path for path in log_dir.iterdir() if path.is_dir()):
            size = sum(path.stat().st_size for path in partition.iterdir() if path.is_file())
            if size > 60_000 or kept == 6:
                shutil.rmtree(partition)
            else:
                kept += 1
        found.append(log_dir)
    return found


def mutate(draw: random.Random, log_dir: Path) -> list[str]:
    """Make one to five changes like those of disks, people and attackers; return descriptions."""
    done = []
    for _ in range(draw.randint(1, 5)):
        paths = sorted(path for path in log_dir.rglob("*") if _may_be_written(path))
        if not paths:
            break
        path = draw.choice(paths)
        data = bytearray(path.read_bytes())
        way = draw.randrange(9)
        at = draw.randrange(len(data))
        match way:
            case 0 | 1 | 2:
                for _ in range(draw.randint(1, 6)):
                    byte = draw.choice((0, 255, 128, draw.randrange(256)))
                    data[draw.randrange(len(data))] = byte
                path.write_bytes(data)
            case 3:
                path.write_bytes(data[:at])
            case 4:
                data[at:at] = draw.randbytes(draw.randint(1, 40))
                path.write_bytes(data)
            case 5:
                at = at // 4 * 4
                data[at : at + 4] = draw.choice((b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"))
                path.write_bytes(data)
            case 6:
                target = path.with_name(draw.choice(NAMES))
                if not target.is_dir():
                    path.rename(target)
            case 7:
                path.unlink()
                _put_instead(path, draw.randrange(4))
            case _:
                other = draw.choice(paths)
                path.write_bytes(other.read_bytes())
        done.append(f"{way} {path.name!r}")
    return done


def _may_be_written(path: Path) -> bool:
    """Return whether the path is a regular file with content and without other links."""
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size > 0


def _put_instead(path: Path, what: int) -> None:
    """Put a directory, a link, a pipe or nothing at the path."""
    if what == 0:
        path.mkdir()
    elif what == 1:
        path.symlink_to("/nothing/is/here")
    elif what == 2:
        os.mkfifo(path)


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


def run(words: tuple[str, ...], log_dir: Path, draw: random.Random) -> tuple[int, str]:
    """Run a command line in this process; return its status and output."""
    partitions = sorted(path for path in log_dir.iterdir() if path.is_dir()) or [log_dir]
    partition = str(draw.choice(partitions))
    line = [str(log_dir) if word == "{}" else partition if word == "{partition}" else word
            for word in words]  # fmt: skip
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    signal.alarm(A_WHILE)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = int(cli.run(line))
    finally:
        signal.alarm(0)
    said = out.buffer.getvalue() + err.buffer.getvalue()
    return status, said.decode("utf-8", "surrogateescape")


def problems(words: tuple[str, ...], status: int, said: str) -> Iterator[str]:
    """Yield the violations of the contract."""
    if status not in ALLOWED:
        yield f"status {status}"
    if "Traceback" in said:
        yield "a traceback"
    if "kafka" in words:
        return  # the bytes of Kafka's tool, escaped only for a terminal
    odd = {c for c in said if not c.isprintable() and c not in "\n\t"}
    if odd:
        yield f"control characters {sorted(odd)!r}"


def campaign(
    runs: int,
    seed: int,
    home: Path,
    each: int = 8,
    seconds: float = 0,
    on_directory: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Run commands, `each` on every log dir, and count the results.

    After `seconds` no new log dir is started. `on_directory` gets the tally after each log dir, so
    a campaign that is ended early keeps its results.
    """
    end = time.monotonic() + (seconds or 1e9)

    def hang(*_: object) -> None:
        raise HangsError

    signal.signal(signal.SIGALRM, hang)
    tally, templates = Tally(), make_templates(home / "templates")
    while tally.runs < runs and time.monotonic() < end:
        draw = random.Random(f"{seed} {tally.directories}")
        log_dir = home / "data"
        shutil.rmtree(log_dir, ignore_errors=True)
        shutil.copytree(draw.choice(templates), log_dir, symlinks=True)
        done = mutate(draw, log_dir)
        before = looks(log_dir)
        for words in draw.sample(COMMANDS, each):
            try:
                status, said = run(words, log_dir, draw)
                found = list(problems(words, status, said))
            except HangsError:
                status, found = -1, ["it hangs"]
            if looks(log_dir) != before:
                found.append("it changed its input")
                before = looks(log_dir)
            tally.statuses[status] += 1
            tally.by_command[words[0]] += 1
            for problem in found:
                where = f"directory {tally.directories} ({'; '.join(done)})"
                text = f"{where}: {' '.join(words)}: {problem}"
                tally.broken.append(text)
                sys.stderr.write(text + "\n")
        tally.directories += 1
        on_directory(tally)
    return tally


def report(tally: Tally, seconds: float, words: str) -> str:
    """Return the text of the committed report."""
    lines = [
        "# Commands on mutated log dirs",
        "",
        f"{tally.runs:,} runs of {len(tally.by_command)} commands on {tally.directories:,} log "
        f"dirs, in {seconds:.0f} s: {len(tally.broken)} broke the contract.",
        "",
        f"Again: `nice make mutate MUTATE_ARGS='{words}'`. Each run must have an exit",
        "status of 0, 1, 2, 4 or 5, no traceback, no control character in the output, no change in",
        "the log dir (names, modes, sizes, mtimes, ctimes, inodes), and an end within two minutes.",
        "",
        "| status | runs |",
        "| ---: | ---: |",
        *(f"| {status} | {count:,} |" for status, count in sorted(tally.statuses.items())),
        "",
        "| command | runs |",
        "| --- | ---: |",
        *(f"| {name} | {count:,} |" for name, count in sorted(tally.by_command.items())),
        "",
        *(f"- {one}" for one in tally.broken),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def main(arguments: list[str]) -> int:
    """Run the campaign of the command line; return 1 if a run broke the contract."""
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=0, help="start no log dir after this time")
    parser.add_argument("--report", type=Path, help="write a report there")
    chosen = parser.parse_args(arguments)
    started = time.monotonic()

    def page(tally: Tally) -> str:
        words = f"--runs {tally.runs} --seed {chosen.seed}"
        return report(tally, time.monotonic() - started, words)

    def write(tally: Tally) -> None:
        if chosen.report and tally.directories % _WRITTEN_EVERY == 0:
            chosen.report.write_text(page(tally))

    with tempfile.TemporaryDirectory() as home:
        tally = campaign(
            chosen.runs, chosen.seed, Path(home), seconds=chosen.seconds, on_directory=write
        )
    sys.stdout.write(page(tally))
    if chosen.report:
        chosen.report.write_text(page(tally))
    return int(bool(tally.broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
