"""Compares the working tree with a commit: ``make bench BENCH_ARGS="--base COMMIT"``.

Both are installed in the same way, with the same compiler and flags, each into a directory of its
own below build/bench: the base once, the working tree whenever it has changed. Modules may have
other names in the two, so both are measured by what is stable, which is the command line.

Each of the two has a process that runs one command line after another (`worker.py`), for the start
of Python takes longer than the work of most rows, and its noise would hide theirs. The process
calls what the program itself calls, and is a new one for each row. The rows of the job `start` are
whole processes, as the start is what they measure. Commands that take -j have one thread.

The two run in turns (ours, base, ours, base ...). A row is the median of the ratios of the pairs,
our time divided by that of the base, so less than 1 is faster. The bar is for the time by the
clock. The time of processors and the fastest runs are reported next to it, as neighbours on the
machine disturb them less.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import NamedTuple

from bench.generate import KIB, MIB, Spec, generate
from bench.measure import environment, spread
from bench.rows import ROOT, SIZES, Bench, many_partitions

BAR = 1.05
FEW, MANY, QUICK = 7, 21, 3
"""Pairs of a row, of one that takes less than a second, and of any with --quick."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""The names of codecs, in the order of their ids."""
_ZSTD = CODECS.index("zstd")
_PADDED = 10 * MIB // 24 * 24
"""Bytes of an index that a broker had open when it was killed."""
_WITHOUT_TESTS = ("--", ".", ":!tests")


class Took(NamedTuple):
    """The exit status of a command, and its seconds by the clock and of processors."""

    status: object
    wall: float
    processor: float


Run = Callable[[Sequence[str]], Took]


@dataclass(frozen=True)
class Case:
    """A command line to be measured."""

    title: str
    arguments: list[str]
    before: Callable[[], object] = lambda: None
    """A call before each run, which is not timed."""
    is_whole: bool = False
    """The command is run as a process of its own, which is timed with the start of Python."""


@dataclass(frozen=True)
class Compared:
    """A command line with its times on both sides, pair by pair."""

    job: str
    title: str
    ours: list[Took]
    base: list[Took]

    @property
    def wall(self) -> list[float]:
        """Return the ratios of the times by the clock."""
        return [a.wall / b.wall for a, b in zip(self.ours, self.base, strict=True)]

    @property
    def processor(self) -> list[float]:
        """Return the ratios of the times of processors."""
        return [a.processor / b.processor for a, b in zip(self.ours, self.base, strict=True)]

    @property
    def met(self) -> bool:
        """Return whether the median is below the bar."""
        return spread(self.wall)[0] < BAR

    def cells(self) -> list[str]:
        """Return the row of the report."""
        median, smallest, largest = spread(self.wall)
        ours, base = (spread([took.wall for took in side]) for side in (self.ours, self.base))
        return [
            self.job, self.title, f"{median:.3f} ({smallest:.3f} .. {largest:.3f})",
            f"{spread(self.processor)[0]:.3f}", f"{ours[1] / base[1]:.3f}", str(len(self.ours)),
            f"{ours[0]:.3g} s", f"{base[0]:.3g} s", "met" if self.met else "NOT MET",
        ]  # fmt: skip


_COLUMNS = [
    "job", "row", "by the clock", "of processors", "fastest", "pairs", "ours", "base",
    f"below {BAR}",
]  # fmt: skip
_HEAD = """\
# Times of {ours} divided by those of {base}

Measured on {now}; less than 1 is faster. The times by the clock and those of processors are medians
of the ratios of the pairs, the former with the smallest and the largest ratio. Next to them is our
fastest run divided by the fastest of the base, which neighbours on the machine disturb the least.
The bar is for the median by the clock. The seconds are medians by the clock.

"""


def compare(bench: Bench, base: str, jobs: Sequence[str], ours: str) -> int:
    """Compare jobs with a commit, and write build/bench/BASE.md; return the exit status.

    `ours` is the name of the commit that is checked out.
    """
    commit = _git("rev-parse", "--verify", f"{base}^{{commit}}")
    tree = _working_tree(bench.home)
    for outdated in bench.home.glob("ours-*"):
        if outdated.name != f"ours-{tree}":
            shutil.rmtree(outdated)
    # Their paths have one length, as the size of the environment moves the stack of a process.
    sites = (
        _installed(bench.home / f"ours-{tree}", tree),
        _installed(bench.home / f"base-{commit}", commit),
    )
    head = _HEAD.format(ours=ours, base=commit[:7], now=time.strftime("%Y-%m-%d %H:%M"))
    found: list[Compared] = []
    for job in jobs:
        for case in JOBS[job](bench):
            with _side(sites[0], case) as a, _side(sites[1], case) as b:
                row = in_turns(job, case, a, b, bench.quick)
            found.append(row)
            sys.stderr.write(f"bench: {' | '.join(row.cells())}\n")
            # After each row: a run that is ended early keeps its rows.
            (bench.home / "BASE.md").write_text(head + as_table(found))
    return verdict(found)


def in_turns(job: str, case: Case, ours: Run, base: Run, is_quick: bool) -> Compared:
    """Run a command line on both sides in turns, after one run of each that does not count."""

    def run(side: Run) -> Took:
        case.before()
        return side(case.arguments)

    first = run(ours), run(base)
    row = Compared(job, case.title, [], [])
    for _ in range(QUICK if is_quick else MANY if max(took.wall for took in first) < 1 else FEW):
        row.ours.append(run(ours))
        row.base.append(run(base))
    statuses = {took.status for took in (*first, *row.ours, *row.base)}
    # A command that finds something ends with 1.
    if statuses not in ({0}, {1}):
        raise AssertionError(f"{case.arguments} ended with the exit statuses {statuses}")
    return row


def as_table(rows: Sequence[Compared]) -> str:
    """Return the rows as a table in Markdown."""
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *(row.cells() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def verdict(rows: Sequence[Compared]) -> int:
    """Return the exit status: 1 if a row is above the bar."""
    return int(not all(row.met for row in rows))


@contextmanager
def _side(site: Path, case: Case) -> Iterator[Run]:
    """Yield a function that runs command lines of a build; its process ends with the context."""
    if case.is_whole:
        yield lambda arguments: whole(site, arguments)
        return
    with worker(site) as run:
        yield run


@contextmanager
def worker(site: Path) -> Iterator[Run]:
    """Provide a process that runs command lines one after another."""
    program = Path(__file__).with_name("worker.py")
    process = subprocess.Popen(
        [sys.executable, "-P", program], env=_environment(site), text=True, bufsize=1,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip

    def run(arguments: Sequence[str]) -> Took:
        process.stdin.write(json.dumps(arguments) + "\n")
        return Took(*json.loads(process.stdout.readline()))

    with process:
        yield run


def whole(site: Path, arguments: Sequence[str]) -> Took:
    """Run a command line as a process of its own."""
    before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "logtool", *arguments], env=_environment(site),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    elapsed, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(done.returncode, elapsed, worked)


def _environment(site: Path) -> dict[str, str]:
    return environment() | {"PYTHONPATH": str(site)}


def _installed(target: Path, tree: str) -> Path:
    """Install a commit or tree below `target`, unless it is there; return the path to import from.

    A kernel that does not compile is an error.
    """
    site, stamp = target / "site", target / "stamp"
    content = f"{tree} {sysconfig.get_config_var('EXT_SUFFIX')}\n"
    if stamp.is_file() and stamp.read_text() == content:
        return site
    sys.stderr.write(f"bench: builds {os.path.relpath(target)}\n")
    shutil.rmtree(target, ignore_errors=True)
    source = target / "source"
    archive = subprocess.run(
        ["git", "archive", tree, *_WITHOUT_TESTS], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(source, filter="tar")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", site, source],
        env=environment() | {"LOGTOOL_REQUIRE_KERNELS": "1"}, check=True,
    )  # fmt: skip
    shutil.rmtree(source)
    stamp.write_text(content)
    return site


def _working_tree(home: Path) -> str:
    """Return the name of a tree with all files as they are now, also those not committed."""
    index = home / "index"
    index.unlink(missing_ok=True)
    _git("add", "--all", *_WITHOUT_TESTS, index=index)
    return _git("write-tree", index=index)


def _git(*arguments: str, index: Path | None = None) -> str:
    more = {"GIT_INDEX_FILE": str(index)} if index else {}
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, env=os.environ | more, stdout=subprocess.PIPE, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout.strip()


def _start(bench: Bench) -> Iterator[Case]:
    """Yield commands with next to no work."""
    small = bench.fixture() / "codec-none-0"
    for title, arguments in (
        ("--version", ["--version"]),
        ("verify --help", ["verify", "--help"]),
        ("verify of a small directory", ["verify", str(small)]),
        ("plan of a small directory", ["plan", str(small)]),
        ("dump --limit 1 of a small log", ["dump", "--limit", "1", _log(small)]),
    ):
        yield Case(f"{title}, whole process", arguments, is_whole=True)


def _verify(bench: Bench) -> Iterator[Case]:
    for name, size in SIZES.items():
        directory = generate(bench.home, Spec(size, bench.total))
        yield Case(f"verify, batches of {name}", ["verify", "-j", "1", str(directory)])


def _tiny(bench: Bench) -> Iterator[Case]:
    """Yield commands that open very many small files."""
    # Short runs in many pairs are less at the mercy of neighbours than few long ones.
    home, count = many_partitions(replace(bench, quick=True))
    for command in ("verify", "plan"):
        title = f"{command} of {count} partitions of 5 segments of 1 KiB"
        yield Case(title, [command, "-j", "1", str(home)])
    count = 1000 if bench.quick else 10_000
    directory = generate(bench.home, Spec(KIB, count * KIB, segment_size=KIB))
    yield Case(f"verify of {count} segments of 1 KiB", ["verify", "-j", "1", str(directory)])


def _decode(bench: Bench) -> Iterator[Case]:
    for name in ("16 KiB", "1 MiB"):
        directory = str(generate(bench.home, Spec(SIZES[name], bench.total)))
        for command in (["verify", "-j", "1", "--level", "records"], ["dump", "--count"]):
            title = f"{' '.join(command)}, batches of {name}"
            yield Case(title, [*command, directory])


def _codecs(bench: Bench) -> Iterator[Case]:
    for codec, name in enumerate(CODECS):
        directory = generate(bench.home, Spec(16 * KIB, bench.total // 4, codec))
        arguments = ["verify", "-j", "1", "--level", "records", str(directory)]
        yield Case(f"verify --level records, 16 KiB of {name}", arguments)


def _recovery(bench: Bench) -> Iterator[Case]:
    """Yield a plan and a recovery of a log that was never flushed."""
    log_dir = bench.home / "base-recovery" / "data"
    for name, size in SIZES.items():
        source = generate(bench.home, Spec(size, bench.total))
        for command in (["plan"], ["recover", "--apply"]):
            arguments = [*command, "-j", "1", str(log_dir)]
            title = f"{' '.join(command)}, batches of {name}"
            yield Case(title, arguments, partial(_killed, source, log_dir))
    shutil.rmtree(log_dir.parent)


def _killed(source: Path, log_dir: Path) -> None:
    """Make a log dir with a copy of a partition as a broker leaves it that is killed."""
    # The undo directory of a recovery is next to the log dir and is removed too.
    shutil.rmtree(log_dir.parent, ignore_errors=True)
    partition = log_dir / source.name
    partition.mkdir(parents=True)
    for file in source.iterdir():
        if file.suffix == ".log":
            # It is sound, so no recovery writes to it.
            (partition / file.name).hardlink_to(file)
        else:
            shutil.copy(file, partition)
        if file.suffix in (".index", ".timeindex"):
            os.truncate(partition / file.name, _PADDED)


def _kafka_records(bench: Bench) -> Iterator[Case]:
    large, small = (
        _log(generate(bench.home, Spec(size, bench.total // 4))) for size in (16 * KIB, 200)
    )
    for command, log, name in (
        (["dump", "--records", "--format", "ndjson"], large, "16 KiB"),
        (["kafka-dump-log", "--print-data-log", "--files"], large, "16 KiB"),
        (["kafka-dump-log", "--files"], small, "200 B"),
    ):
        yield Case(f"{' '.join(command)}, batches of {name}", [*command, log])


def _dump_parquet(bench: Bench) -> Iterator[Case]:
    target = bench.home / "base.parquet"
    command = ["dump", "--records", "--format", "parquet", "--output", str(target)]
    for codec in (0, _ZSTD):
        log = _log(generate(bench.home, Spec(16 * KIB, bench.total // 4, codec)))
        title = f"dump --records --format parquet, records of 200 B ({CODECS[codec]})"
        yield Case(title, [*command, log], partial(target.unlink, missing_ok=True))
    target.unlink()


def _log(directory: Path) -> str:
    """Return the first log of a directory."""
    return str(min(directory.glob("*.log")))


JOBS: dict[str, Callable[[Bench], Iterator[Case]]] = {
    "start": _start,
    "verify": _verify,
    "tiny": _tiny,
    "decode": _decode,
    "codecs": _codecs,
    "recovery": _recovery,
    "kafka-records": _kafka_records,
    "dump-parquet": _dump_parquet,
}
