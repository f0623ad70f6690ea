"""Fixtures of the tests of the command line: a small data directory, and ways to run a command.

Every run checks the first promise of a command that reads: it leaves its inputs alone.
"""

import csv
import errno
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redpanda_files
from damage import damage_file, overwrite, remove_file
from recovering import PARTITIONS, POINTS, logs
from verification import fingerprint, small_log_dir

from logtool import cli
from logtool.commands.program import parsing
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import record, record_batch

ROOT = Path(__file__).resolve().parents[2]
FIRST_TIME = 1_700_000_000_000


@dataclass(frozen=True)
class Result:
    """The exit status and the output of one run of logtool."""

    status: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Return the objects of NDJSON."""
        return [json.loads(line) for line in self.lines]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [obj for obj in self.objects if obj["type"] == kind]

    @property
    def document(self) -> dict[str, Any]:
        """Return the document of JSON."""
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    @property
    def items(self) -> list[dict[str, Any]]:
        """Return the objects of the document of JSON, without its summary."""
        found: list[dict[str, Any]] = self.document["items"]
        return found

    @property
    def rows(self) -> list[dict[str, str]]:
        """Return the rows of CSV."""
        return list(csv.DictReader(io.StringIO(self.stdout)))


class Watch:
    """Remembers what inputs looked like when a command began."""

    def __init__(self) -> None:
        self._before: dict[Path, Any] = {}

    def look(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if os.path.lexists(path):
                self._before[path] = fingerprint(path)

    def forget(self) -> None:
        """Allow the changes that the last command was asked to make."""
        self._before = {}

    def check(self) -> None:
        before, self._before = self._before, {}
        for path, then in before.items():
            assert fingerprint(path) == then, f"{path} was changed"


@pytest.fixture(autouse=True)
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Prove for every command that takes paths that they are the same byte by byte afterwards."""
    watching = Watch()
    all_texts = parsing.all_texts

    def watched(*args: Any) -> list[str]:
        texts = all_texts(*args)
        watching.look([Path(text) for text in texts])
        return texts

    monkeypatch.setattr(parsing, "all_texts", watched)
    yield watching
    watching.check()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], watch: Watch) -> Callable[..., Result]:
    """Return a function that runs a command line in this process."""

    def run_here(*arguments: object) -> Result:
        capsys.readouterr()
        status = cli.run([str(argument) for argument in arguments])
        if "--apply" in arguments:
            watch.forget()
        watch.check()
        captured = capsys.readouterr()
        return Result(int(status), captured.out, captured.err)

    return run_here


@pytest.fixture
def objects(run: Callable[..., Result]) -> Callable[..., list[dict[str, Any]]]:
    """Return a function: the objects that `dump` prints, without the summary."""

    def dumped(*arguments: object, status: int = 0) -> list[dict[str, Any]]:
        result = run("dump", "-f", "ndjson", *arguments)
        assert result.status == status, result.stderr
        return result.objects[:-1]

    return dumped


@pytest.fixture
def spawn(watch: Watch) -> Callable[..., Result]:
    """Return a function that runs a command line in a process of its own."""

    def run_there(*arguments: object, **more: Any) -> Result:
        given = [str(argument) for argument in arguments]
        watch.look([path for path in map(Path, given) if path.is_absolute()])
        done = subprocess.run(
            [sys.executable, "-m", "logtool", *given],
            capture_output=True, check=False, env=environment(), timeout=120, **more,
        )  # fmt: skip
        watch.check()
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run_there


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a child: without what would change the output."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", "COLUMNS")}
    return kept | {"PYTHONPATH": str(ROOT), "TERM": "xterm"} | more


@pytest.fixture
def child_environment() -> Callable[..., dict[str, str]]:
    return environment


@pytest.fixture
def make_batch() -> Callable[..., bytes]:
    """Return a function that writes a batch of records, one offset each."""
    return batch


def batch(base_offset: int, records: Sequence[record.Record], **header: Any) -> bytes:
    last = records[-1].offset_delta if records else 0
    stamps = [r.timestamp_delta for r in records]
    fields = {
        "base_offset": base_offset,
        "last_offset_delta": last,
        "record_count": len(records),
        "leader_epoch": 0,
        "base_timestamp": FIRST_TIME + base_offset,
        "max_timestamp": FIRST_TIME + base_offset + max(stamps, default=0),
    }
    return record_batch.encode(record.encode(records), **(fields | header))


RECORDS = (
    record.Record(0, 0, b"key", b"value", [(b"trace", b"1"), (b"none", None)]),
    record.Record(1, 1, None, b"\x1b[31mred\x1b[0m\nnext"),
    record.Record(2, 2, b"", b"\xff\xfe"),
)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Return a partition dir: three sound batches, two indexes, the small files."""
    path = tmp_path / "data" / "orders-0"
    path.mkdir(parents=True)
    batches = [
        batch(0, RECORDS),
        batch(3, RECORDS, attributes=2, producer_id=7, producer_epoch=1, base_sequence=0),
        batch(6, RECORDS),
    ]
    (path / f"{0:020d}.log").write_bytes(b"".join(batches))
    second = len(batches[0])
    (path / f"{0:020d}.index").write_bytes(b"".join(n.to_bytes(4, "big") for n in (5, second)))
    stamp = FIRST_TIME + 5
    (path / f"{0:020d}.timeindex").write_bytes(stamp.to_bytes(8, "big") + (5).to_bytes(4, "big"))
    (path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (path / "partition.metadata").write_text("version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ")
    return path


@pytest.fixture
def clean(scenario: Callable[[str], Path]) -> Path:
    """Return the log dir of a broker of Kafka 4.3.1 after a clean shutdown, not to be changed."""
    return scenario("4.3.1/clean")


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    """Return a copy of `home`, as the log dir of another broker."""
    return Path(shutil.copytree(home, tmp_path / "copy"))


@pytest.fixture
def rfc(tmp_path: Path) -> Path:
    """Return a partition of Redpanda with the gaps of the RFC about ghost batches."""
    return redpanda_files.of_rfc(tmp_path)


@pytest.fixture
def log(partition: Path) -> Path:
    """Return the log of `partition`."""
    return partition / f"{0:020d}.log"


@pytest.fixture
def damaged_log(log: Path) -> Path:
    """Return the log of `partition` with one bit of its second batch flipped."""
    data = bytearray(log.read_bytes())
    size = int.from_bytes(data[8:12], "big") + 12
    data[size + 70] ^= 1
    log.write_bytes(data)
    return log


@pytest.fixture
def killed(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a log dir of three partitions whose broker was killed; no record is bad."""
    return small_log_dir(scenario("4.3.1/killed"), tmp_path / "data", *PARTITIONS)


@pytest.fixture
def stopped(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return the partitions of `killed` after an orderly stop."""
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", *PARTITIONS)


@pytest.fixture
def cut(killed: Path) -> Path:
    """Return the killed log dir with a bad batch in the third of 69 segments, nothing flushed."""
    remove_file(killed / POINTS)
    damage_file(logs(killed)[2], overwrite, 70, b"\xff\xff")
    return killed


@pytest.fixture
def lock_up(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes the listing of a folder fail, for good or because it is gone."""
    list_dir, scandir = files.list_dir, os.scandir

    def lock(path: Path, *, missing: bool = False) -> None:
        number = errno.ENOENT if missing else errno.EACCES
        text = os.strerror(number)

        def refusing(asked: Path) -> Sequence[files.Entry]:
            if Path(asked).resolve() == path.resolve():
                raise UnreadableError(asked, text, missing=missing)
            return list_dir(asked)

        def refusing_to_look(asked: Any = ".") -> Any:
            if isinstance(asked, str | Path) and Path(asked).resolve() == path.resolve():
                raise OSError(number, text, asked)
            return scandir(asked)

        monkeypatch.setattr(files, "list_dir", refusing)
        monkeypatch.setattr(os, "scandir", refusing_to_look)

    return lock
