"""Kills and full disks of every command with ``--output``: ``make outputs-killed``.

A process dies, or the disk is full, at each call that changes something. Then nothing incomplete
has its final name, and the same command, which may be killed once more, ends as if nothing had
been. `test_outputs.py` does a part of it.
"""

import os
import random
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path

import redpanda_files as rp
from changes import count, disk_full, failing, make_log_dir
from crash import commands_killed, kills, mounts

from logtool import cli
from logtool.case import manifest
from logtool.case.archive import ArchiveReader
from logtool.disk.unfinished import is_unfinished
from logtool.errors import FormatError
from logtool.repair import output

TESTS = Path(__file__).parents[1]
Tree = dict[str, object]
_REFUSED, _UNWRITABLE = 5, 4
_SEGMENT_FILES = (".log", ".index", ".timeindex", ".snapshot", ".base_index")


def delete_segments(home: Path) -> None:
    """Let a segment wait for its deletion, and a whole partition."""
    for path in (home / "small-segments-0").glob(f"{0:020d}.*"):
        if not path.name.endswith(".swap"):
            path.rename(f"{path}.deleted")
    (home / "codec-none-0").rename(home / f"codec-none-0.{'c' * 32}-delete")


def sound_redpanda(home: Path) -> None:
    """Put a data directory of Redpanda with two sound segments in its place."""
    shutil.rmtree(home)
    segments = {"0-1-v1.log": rp.log(0, 4), "20-2-v1.log": rp.log(20, 4)}
    made = rp.data_dir(home.parent / "made", segments)
    made.parents[2].rename(home)


def tiered_objects(home: Path) -> None:
    """Put the objects of tiered topics in its place."""
    shutil.rmtree(home)
    with tarfile.open(TESTS / "data" / "tiered" / "4.3.1.tar.xz") as tar:
        tar.extractall(home.parent / "made", filter="tar")
    (home.parent / "made" / "4.3.1" / "objects").rename(home)


@dataclass(frozen=True, slots=True)
class OutputJob:
    """One command line: ``{}`` is the log dir, ``{copy}`` another copy, ``{out}`` a folder."""

    words: tuple[str, ...]
    damage: Callable[[Path], None] = commands_killed.leave


_SALVAGE = ("salvage", "--output", "{out}/made")
_GAPS = ("gaps", "--fill-losses", "--output")
OUTPUTS = {
    "salvage": OutputJob((*_SALVAGE, "{}"), commands_killed.damage_one_copy),
    "salvage, filled, with records": OutputJob(
        (*_SALVAGE, "--fill-from", "{copy}", "--records", "ndjson", "--decode-damaged", "{}"),
        commands_killed.damage_one_copy),
    "salvage, with a table of records": OutputJob(
        (*_SALVAGE, "--records", "parquet", "{}"), commands_killed.damage_logs),
    "salvage, Redpanda": OutputJob((*_SALVAGE, "{}"), commands_killed.redpanda),
    "undelete": OutputJob(("undelete", "--output", "{out}/made", "{}"), delete_segments),
    "convert to Redpanda": OutputJob(
        ("convert", "--to", "redpanda", "--output", "{out}/made", "{}/codec-none-0")),
    "convert to Kafka": OutputJob(
        ("convert", "--to", "kafka", "--output", "{out}/made", "{}/kafka/orders/0_22"),
        sound_redpanda),
    "gaps": OutputJob((*_GAPS, f"{{out}}/{0:020d}.log", "{}/small-segments-0")),
    "gaps, Redpanda": OutputJob((*_GAPS, "{out}/made", "{}/kafka/orders/0_22"), sound_redpanda),
    "rebuild-index": OutputJob(
        ("rebuild-index", "--all", "--output", "{out}/made", "{}"),
        commands_killed.damage_indexes),
    "rebuild-index, Redpanda": OutputJob(
        ("rebuild-index", "--all", "--output", "{out}/made", "{}"),
        commands_killed.redpanda_indexes),
    "remote restore": OutputJob(
        ("remote", "restore", "--output", "{out}/made", "{}"), tiered_objects),
    "diff --digest": OutputJob(("diff", "--digest", "{out}/d.npz", "{}")),
    "case": OutputJob(("case", "--output", "{out}/c.tar.zst", "{}")),
    "case --anonymize": OutputJob(
        ("case", "--anonymize", "--output", "{out}/c.tar.zst", "{}"), commands_killed.damage_logs),
    "dump to Parquet": OutputJob(
        ("dump", "-f", "parquet", "--output", "{out}/b.parquet", "{}/codec-none-0")),
}  # fmt: skip


class OutputCommand:
    """A command whose output is made again and again."""

    def __init__(self, job: OutputJob, source: Path, home: Path) -> None:
        self._home, self.out = home, home / "out"
        self._log_dir = home / "data"
        make_log_dir(source, self._log_dir)
        job.damage(self._log_dir)
        names = {"out": self.out, "copy": home / "copy"}
        self._words = [word.format(self._log_dir, **names) for word in job.words]
        self.begin()
        self.calls = count(self.run)
        self.done = self.tree()
        self.begin()
        with failing(0, lambda: None):
            self.status = self.run()
        assert self.tree() == self.done, "two runs differ"
        assert self.status in (0, 1)

    def begin(self) -> None:
        """Remove what was written."""
        if self.out.is_mount():
            for path in self.out.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            return
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()

    def run(self) -> int:
        """Run the command; returns its status."""
        with (
            Path(os.devnull).open("w") as null,
            redirect_stdout(null),
            redirect_stderr(null),
        ):
            return cli.run(self._words)

    def tree(self) -> Tree:
        """Return names and contents of the output."""
        return {
            str(path.relative_to(self.out)): _content(path) for path in self.out.rglob("*")
        }  # fmt: skip

    def problems(self) -> Iterator[str]:
        """Yield incomplete files and folders that have a final name."""
        found = named(self.tree())
        for name, content in found.items():
            if self.done.get(name, "") != content:
                yield f"{name} has its final name and is not complete"
        for folder in self._partitions() & found.keys():
            if _inside(found, folder) != _inside(self.done, folder):
                yield f"{folder} has its final name and lacks files"

    def again(self, status: int | None = None) -> Iterator[str]:
        """Run the command once more, and yield what is not as if nothing had been."""
        was_done = named(self.tree()) == self.done
        status = self.run() if status is None else status
        if status != self.status and not (was_done and status == _REFUSED):
            yield f"status {status} of the same command"
        now = self.tree()
        if named(now) != self.done or (now != self.done and not was_done):
            yield "the same command does not end where it should"

    def _partitions(self) -> set[str]:
        files = [name for name in self.done if name.endswith(_SEGMENT_FILES) and "/" in name]
        return {str(Path(name).parent) for name in files}


def named(tree: Tree) -> Tree:
    """Return the files and folders with a final name."""
    return {
        name: content
        for name, content in tree.items()
        if not any(map(is_unfinished, Path(name).parts))
    }


def _inside(tree: Tree, folder: str) -> set[str]:
    return {name for name in tree if name.startswith(f"{folder}/")}


def _content(path: Path) -> object:
    if path.is_dir():
        return None
    if path.suffix == ".npz":  # A zip holds the time at which it was written.
        try:
            with zipfile.ZipFile(path) as file:
                return [(one.filename, one.CRC) for one in file.infolist()]
        except zipfile.BadZipFile:
            return "not a zip"
    if path.name.endswith(".tar.zst"):
        try:
            return _case_without_its_time(path)
        except FormatError:
            return "not a case file"
    return path.read_bytes()


def _case_without_its_time(path: Path) -> object:
    """Return the manifest of a case file, and its members; FormatError if it is not complete."""
    with path.open("rb") as file:
        reader = ArchiveReader(file)
        members = {one.place: b"".join(map(bytes, reader.blocks())) for one in reader.members()}
    return replace(manifest.parse(members.pop(manifest.NAME)), made_ms=0), members


@dataclass(slots=True)
class OutputTally:
    """The results of one command."""

    calls: int = 0
    kills: int = 0
    full: int = 0
    problems: list[str] = field(default_factory=list)


def sweep(command: OutputCommand, moments: list[int], draw: random.Random) -> OutputTally:
    """Kill a command, and let its disk be full, at these moments; go on, or be killed once more."""
    tally = OutputTally(calls=command.calls)
    for number in moments:
        for way in ("kill", "kill twice", "full"):
            command.begin()
            problems: list[str] = []
            if way == "full":
                with failing(number, disk_full):
                    status = command.run()
                tally.full += 1
                if status not in (command.status, _UNWRITABLE, _REFUSED):
                    problems.append(f"status {status} on a full disk")
            else:
                tally.kills += kills.kill(command.run, number)
            problems += command.problems()
            if way == "kill twice":
                tally.kills += kills.kill(command.run, draw.randint(1, command.calls + 20))
                problems += command.problems()
            with failing(0, lambda: None):
                problems += command.again()
            where = f"{way} at call {number} of {tally.calls}"
            tally.problems += [f"{where}: {problem}" for problem in problems]
    return tally


def sweep_disks(command: OutputCommand, steps: int) -> OutputTally:
    """Run a command on file systems that have room for a part of its output: bytes, or inodes."""
    tally = OutputTally(calls=command.calls)
    sizes = [len(one) if isinstance(one, bytes) else 4096 for one in command.done.values()]
    most = {"size": sum(-(-size // 4096) * 4096 for size in sizes) + (1 << 16),
            "nr_inodes": 2 * len(sizes) + 10}  # fmt: skip
    for kind, limit in most.items():
        for step in range(1, steps + 1):
            shutil.rmtree(command.out)
            room = max(limit * step // (steps + 1), 4096 if kind == "size" else 2)
            with mounts.limited_disk(command.out, kind, room):
                status = command.run()
                tally.full += 1
                problems = list(command.problems())
                if status == command.status and named(command.tree()) != command.done:
                    problems.append("ends well with another output")
                with mounts.grown(command.out):
                    problems += command.again()
            command.begin()
            tally.problems += [f"{kind}={room}: {problem}" for problem in problems]
    return tally


_PAGE = """\
# Kills and full disks of every command with --output

Written by `make outputs-killed`. A process dies, by SIGKILL, just before each call that changes
something on disk; then the same command runs again, in half of the cases killed once more. The
same calls fail with ENOSPC, and each command runs on file systems with too little room or too few
inodes. *Problems* counts files and partition dirs with a final name that were not byte for byte
what a run without a kill makes, and second runs that did not end as such a run does.

| command | calls that change | kills | full disks | problems |
| --- | ---: | ---: | ---: | ---: |
"""


def main(source: Path, target: Path, only: list[str]) -> int:
    """Run the whole campaign and write its report; returns the exit status."""
    tallies: dict[str, OutputTally] = {}
    for name, job in OUTPUTS.items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as home:
            command = OutputCommand(job, source, Path(home))
            moments = list(range(1, command.calls + 1))
            tally = tallies[name] = sweep(command, moments, random.Random(name))
            if mounts.may_mount():
                disks = sweep_disks(command, 12)
                tally.full += disks.full
                tally.problems += disks.problems
            sys.stderr.write(f"{name}: {tally}\n")
        if not only:
            target.write_text(_page(tallies))
    if only:
        sys.stdout.write(_page(tallies))
    return int(any(one.problems for one in tallies.values()))


def _page(tallies: dict[str, OutputTally]) -> str:
    """Return the page that is committed, with the commands that were done."""
    total = OutputTally()
    for one in tallies.values():
        total.calls += one.calls
        total.kills += one.kills
        total.full += one.full
        total.problems += one.problems
    rows = [
        f"| {name} | {one.calls:,} | {one.kills:,} | {one.full:,} | {len(one.problems)} |\n"
        for name, one in (tallies | {"all": total}).items()
    ]
    return _PAGE + "".join(rows) + "".join(f"- {one}\n" for one in total.problems)


if __name__ == "__main__":
    # A process that dies loses nothing that it wrote: fsync, which is slow, may be left out.
    os.fsync = lambda fd: None
    output._SPARE = -(1 << 40)  # A disk that is too small is to be found while it is written.
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(TESTS / "data" / "4.3.1" / "killed.tar.xz") as tar:
            tar.extractall(place, filter="tar")
        report = TESTS / "bench" / "reports" / "kills" / "OUTPUTS.md"
        sys.exit(main(Path(place) / "killed", report, sys.argv[1:]))
