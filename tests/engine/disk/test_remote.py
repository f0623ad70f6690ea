"""Log dirs behind a URL: the same answers as on disk, by ranges, and one line for what fails."""

import errno
import os
import pickle
import random
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.fs
import pytest
import s3fs
from conftest import SCENARIOS
from damage import cut, flip, zero
from fsspec.implementations.arrow import ArrowFSWrapper, HadoopFileSystem
from s3_server import serving, settings
from verification import Outcome, ignored, log_dirs, rewrite, small_log_dir, verify

from logtool import cli
from logtool.checks import segment_ranges
from logtool.checks.partition import CheckRequest, plan
from logtool.checks.segment_ranges import check_tasks
from logtool.disk import files, remote
from logtool.errors import UnreadableError, UsageError
from logtool.formats import record, record_batch
from logtool.log import opening
from logtool.log.dir import Partition
from logtool.running.budget import Budget
from logtool.verify import Level

MIB = 1024 * 1024
ROOT = Path(__file__).resolve().parents[3]


# In memory: what is said does not depend on where the files are


@pytest.fixture
def in_memory() -> Iterator[Callable[[Path], Path]]:
    """Return a function that copies a directory, times too, and returns its URL."""
    memory = fsspec.filesystem("memory")

    def copied(home: Path) -> Path:
        memory.makedirs(f"/{home.name}", exist_ok=True)
        for path in sorted(home.rglob("*")):
            name = f"/{home.name}/{path.relative_to(home)}"
            if path.is_dir():
                memory.makedirs(name, exist_ok=True)
            else:
                memory.pipe_file(name, path.read_bytes())
                memory.store[name].created = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return remote.parse(f"memory://{home.name}")

    yield copied
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def said(outcome: Outcome, home: Path) -> tuple[Any, ...]:
    """Return all that a run said, with paths as they are below `home`."""
    start, summary = str(home), outcome.summary
    return (
        [
            (f.code, f.severity, str(f.path).removeprefix(start), f.segment, f.position, f.length,
             f.first_offset, f.last_offset, f.message.replace(start, ""),
             f.next and f.next.replace(start, ""))
            for f in outcome.findings
        ],
        [str(error).replace(start, "") for error in outcome.unreadable],
        (summary.partitions, summary.segments, summary.batches, summary.records, summary.bytes),
        summary.codes, summary.exit_status(),
    )  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_gets_the_same_findings_as_on_disk(name, scenario, in_memory):
    home = scenario(name)
    there = in_memory(home)
    for level in Level:
        local = verify(*log_dirs(home), level=level)
        away = verify(*(there / p.name if p != home else there for p in log_dirs(home)),
                      level=level)  # fmt: skip
        assert said(away, there) == said(local, home)


@pytest.mark.parametrize("seed", range(12))
def test_damage_gets_the_same_findings_as_on_disk(seed, scenario, tmp_path, in_memory):
    source = scenario(("4.3.1/clean", "3.9.2/killed")[seed % 2])
    folders = sorted(path.name for path in source.iterdir() if path.is_dir())
    rng = random.Random(seed)
    home = small_log_dir(source, tmp_path / f"home-{seed}", *rng.sample(folders, 6))
    for path in rng.choices([p for p in home.rglob("*") if p.is_file() and p.stat().st_size], k=12):
        damaged(path, rng)
    local, there = verify(home), in_memory(home)
    assert local.findings
    assert said(verify(there), there) == said(local, home)


def damaged(path: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    at = rng.randrange(max(1, len(data)))
    kind = rng.choice(("flip", "cut", "empty", "zero"))
    if kind == "empty" or not data:
        rewrite(path, b"")
    elif kind == "cut":
        rewrite(path, cut(data, at))
    elif kind == "zero" and any(data[at : at + 64]):
        rewrite(path, zero(data, at, min(64, len(data) - at)))
    else:
        rewrite(path, flip(data, at, 1 << rng.randrange(8)))


def test_threads_and_pieces_change_nothing(scenario, in_memory):
    home = scenario("4.3.1/clean")
    there = in_memory(home)
    assert said(verify(there, budget=Budget(jobs=4)), there) == said(verify(home), home)


def test_a_path_and_what_is_listed_at_it_can_be_sent_to_another_process(scenario, in_memory):
    there = in_memory(scenario("4.3.1/clean"))
    folder, _ = opening.open_log_dir(there).partitions[0]
    found = opening.open_partition(folder)
    sent = pickle.loads(pickle.dumps(found))
    assert sent == found
    assert hash(sent.path) == hash(folder)
    assert str(sent.segments[0].log.path) == f"{folder}/{found.segments[0].log.name.name}"
    tasks = plan(found, CheckRequest(Level.RECORDS))
    # By their text: tables do not compare.
    assert str(check_tasks(pickle.loads(pickle.dumps(tasks)), ignored)) == str(
        check_tasks(tasks, ignored)
    )


def test_a_file_is_read_at_any_place_and_in_any_order():
    data = random.Random(1).randbytes(3 * MIB + 5)
    fsspec.filesystem("memory").pipe_file("/any/x.log", data)
    path, rng = remote.parse("memory://any/x.log"), random.Random(2)
    with files.LogFile(path) as file:
        assert file.size == len(data)
        for _ in range(300):
            at, size = rng.randrange(len(data) + 10), rng.choice((1, 8, 61, 4096, 300_000))
            assert file.read(at, size) == data[at : at + size]
            buffer = bytearray(size)
            count = file.read_into(memoryview(buffer), at)
            assert buffer[:count] == data[at : at + size]


def test_a_file_that_is_shorter_than_listed_ends_where_it_ends():
    fsspec.filesystem("memory").pipe_file("/short/x.log", b"abc")
    with files.LogFile(remote.parse("memory://short/x.log"), 10) as file:
        assert file.read(0, 10) == b"abc"
        assert file.size_now() == 3


def test_a_small_file_has_a_limit():
    fsspec.filesystem("memory").pipe_file("/small/meta.properties", b"12345")
    path = remote.parse("memory://small/meta.properties")
    assert files.read_small(path, 5) == b"12345"
    with pytest.raises(UnreadableError, match=r"\b4\b"):
        files.read_small(path, 4)


@pytest.mark.parametrize("text", ["/a/b", "a", "s3:/bucket/x", "./s3://bucket/x", "a=s3://b/x"])
def test_what_is_no_url_is_a_local_path(text):
    assert files.path_of(text) == Path(text)
    assert type(files.path_of(text)) is type(Path())


def test_a_file_url_is_the_local_path(tmp_path):
    assert remote.parse(f"file://{tmp_path}") == tmp_path
    assert not files.is_remote(tmp_path)


def test_a_url_is_printed_as_it_was_given():
    for text in ("s3://bucket/logs/broker-1", "s3://bucket", "memory:///a/b", "hdfs://host:8020/a"):
        assert str(remote.parse(text)) == text
        assert str(remote.parse(text + "/") / "t-0" / "0.log") == f"{text}/t-0/0.log"


class Hadoop(ArrowFSWrapper):
    """Files of this system in the way of HDFS, which needs Java: Arrow's file systems are alike."""

    protocol = "hdfs"

    def __init__(self, host: str = "", port: int = 0) -> None:
        super().__init__(pyarrow.fs.LocalFileSystem())

    _get_kwargs_from_urls = HadoopFileSystem._get_kwargs_from_urls


@pytest.fixture
def hadoop() -> Iterator[None]:
    fsspec.register_implementation("hdfs", Hadoop, clobber=True)
    yield
    fsspec.register_implementation("hdfs", HadoopFileSystem, clobber=True)


def test_a_file_system_of_arrow_says_the_same(scenario, hadoop):
    home = scenario("4.3.1/replicas")
    for here in log_dirs(home):
        there = remote.parse(f"hdfs://{here}")
        assert said(verify(there), there) == said(verify(here), here)


def test_two_hosts_are_two_places(hadoop):
    one, other, again = (remote.parse(f"hdfs://{host}:8020/logs") for host in "aba")
    assert files.real(one) == files.real(again)
    assert files.real(one) != files.real(other)


def test_large_logs_are_cut_in_pieces(large, in_memory, monkeypatch):
    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", 8 * MIB)
    there = in_memory(large)
    away = verify(there, level=Level.BATCHES, budget=Budget(jobs=2))
    assert said(away, there) == said(verify(large, level=Level.BATCHES), large)


def test_a_url_is_taken_apart_like_a_path():
    bucket = remote.parse("s3://bucket")
    log = bucket / "logs" / "t-0" / "0.log"
    assert (log.name, log.parent.name, str(log.parent)) == ("0.log", "t-0", "s3://bucket/logs/t-0")
    assert log.with_name("0.index") == log.parent / "0.index"
    assert list(log.parents) == [bucket / "logs" / "t-0", bucket / "logs", bucket]
    assert (bucket.name, bucket.parent) == ("", bucket)
    assert sorted([log, bucket]) == [bucket, log]
    assert log.resolve() == log.absolute() == pickle.loads(pickle.dumps(log))
    assert log != Path("s3:/bucket/logs/t-0/0.log")
    assert "s3://bucket/logs" in repr(log)


# The command line


@dataclass
class Result:
    """Status and output of one run of logtool."""

    status: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Return a function that runs a command line in this process."""

    def run_here(*arguments: object) -> Result:
        capsys.readouterr()
        status = cli.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(int(status), captured.out, captured.err)

    return run_here


REFUSED = (
    ["plan", "memory://a"], ["recover", "memory://a"], ["recover", "--apply", "memory://a"],
    ["rebuild-index", "memory://a/t-0"], ["rebuild-index", "--apply", "memory://a/t-0"],
    ["sanity", "memory://a"], ["watermark", "memory://a"], ["checkpoint", "show", "memory://a"],
    ["checkpoint", "lint", "memory://a"], ["undo", "--apply", "memory://a"],
    ["checkpoint", "set", "--apply", "memory://a/recovery-point-offset-checkpoint", "t-0", "1"],
    ["gaps", "memory://a", "--output", "memory://b/0.log"],
    ["recover", "/nowhere", "--undo-dir", "memory://b"],
    ["verify", "memory://a", "--resume", "memory://b"],
)  # fmt: skip


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_what_needs_local_files_refuses_a_url(arguments, run):
    result = run(*arguments)
    assert result.status == 2
    assert "memory://" in result.stderr.splitlines()[0]
    assert "local path" in result.stderr.splitlines()[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "-f", "ndjson"],
        ["stat", "-f", "ndjson"],
        ["gaps", "-f", "ndjson"],
        ["txns", "-f", "ndjson"],
        ["dump", "-f", "ndjson", "--records"],
        ["dump-index", "-f", "ndjson", "--join-log"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_say_the_same_as_on_disk(arguments, scenario, tmp_path, in_memory, run):
    source = scenario("3.9.2/killed")
    folders = [path.name for path in source.iterdir() if path.is_dir()]
    home = small_log_dir(source, tmp_path / "home", *sorted(folders)[-4:])
    there = in_memory(home)
    local, away = run(*arguments, home), run(*arguments, there)

    assert local.stdout
    assert timeless(away, there) == timeless(local, home)
    assert away.status == local.status


def test_lookup_says_the_same_as_on_disk(scenario, in_memory, run):
    home = scenario("4.3.1/clean")
    there = in_memory(home)
    folder = max(home.rglob("*.log"), key=lambda log: log.stat().st_size).parent.name
    for what in (["--offset", "5"], ["--timestamp", "0"]):
        local, away = (run("lookup", at / folder, *what, "-f", "ndjson") for at in (home, there))
        assert local.status == 0, local.stderr
        assert timeless(away, there) == timeless(local, home)


def timeless(result: Result, home: Path) -> list[str]:
    """Return the lines of NDJSON without where it was and how long it took."""
    text = result.stdout.replace(str(home), "HOME")
    return re.sub(r'"(elapsed_s|age_ms)": ?[0-9.]+', "", text).splitlines()


def test_diff_takes_a_url_and_a_directory(scenario, in_memory, run):
    home = scenario("4.3.1/clean")
    there = in_memory(home)
    result = run("diff", f"1={home}", f"2={there}")
    assert (result.status, result.stderr) == run_pair(run, home)


def run_pair(run: Callable[..., Result], home: Path) -> tuple[int, str]:
    result = run("diff", f"1={home}", f"2={home}")
    return result.status, result.stderr


def test_urls_may_stand_in_a_list_of_paths(scenario, tmp_path, in_memory, run):
    there = in_memory(scenario("4.3.1/empty"))
    listed = tmp_path / "list"
    listed.write_text(f"{there}\n{there}\n")
    result = run("verify", "--files-from", listed, "-f", "ndjson")
    assert result.status in (0, 1), result.stderr
    assert f'"path": "{there}/' in result.stdout or f'"path":"{there}' in result.stdout


def test_a_url_without_its_library_names_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    result = run("verify", "s3://bucket/broker-1")
    assert result.status == 2
    first = result.stderr.splitlines()[0]
    assert "s3://bucket/broker-1" in first
    assert "pip install 'kafka-logtool[remote]'" in first


def test_s3_without_its_library_names_what_to_install(monkeypatch):
    def missing(_: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(UsageError, match=r"s3fs: pip install 'kafka-logtool\[remote\]'"):
        remote.parse("s3://bucket/x")
    with pytest.raises(UsageError, match="gs://bucket/x: Install"):
        remote.parse("gs://bucket/x")


def test_an_unknown_scheme_is_a_usage_error(run):
    result = run("verify", "nosuch://bucket/x")
    assert result.status == 2
    assert "nosuch://bucket/x: " in result.stderr


def test_local_paths_import_nothing_of_fsspec(scenario):
    code = (
        "import sys; from logtool import cli; cli.run(sys.argv[1:]);"
        "names = {'fsspec', 's3fs', 'asyncio', 'logtool.disk.remote'} & set(sys.modules);"
        "print(*names, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", "-q", str(scenario("4.3.1/empty"))],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert done.stderr.strip() == ""


# A server that speaks S3


@dataclass
class Requests:
    """Requests to the server."""

    calls: list[str] = field(default_factory=list)
    bytes: int = 0
    largest: int = 0

    def of(self, name: str) -> int:
        return self.calls.count(name)

    def clear(self) -> None:
        self.calls, self.bytes, self.largest = [], 0, 0


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Return the address of an S3 server that holds nothing yet."""
    with serving() as address:
        yield address


@pytest.fixture
def s3(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Return the file system of the server, found as a command finds it: by the environment."""
    for name, value in settings(server, tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    s3fs.S3FileSystem.clear_instance_cache()
    yield fsspec.filesystem("s3")
    s3fs.S3FileSystem.clear_instance_cache()
    reset(server, "moto-api/reset")


def reset(server: str, what: str, data: bytes = b"") -> None:
    plain = {"Content-Type": "text/plain"}
    urllib.request.urlopen(urllib.request.Request(f"{server}/{what}", data, plain)).close()


@pytest.fixture
def requests(s3: Any, monkeypatch: pytest.MonkeyPatch) -> Requests:
    """Return a count of what is asked of S3, by the names of its operations."""
    counted = Requests()
    real = s3fs.S3FileSystem._call_s3

    async def counting(self: Any, method: str, *more: Any, **named: Any) -> Any:
        counted.calls.append(method)
        answer = await real(self, method, *more, **named)
        if method == "get_object":
            counted.bytes += answer["ContentLength"]
            counted.largest = max(counted.largest, answer["ContentLength"])
        return answer

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counting)
    return counted


@pytest.fixture
def upload(s3: Any) -> Callable[[Path], Path]:
    """Return a function that copies a directory into a bucket and returns its URL."""

    def uploaded(home: Path) -> Path:
        s3.mkdir("bucket")
        s3.put(f"{home}/", "bucket/logs/broker-1/", recursive=True)
        return remote.parse("s3://bucket/logs/broker-1")

    return uploaded


@pytest.fixture
def small(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a log dir of three partitions."""
    source = scenario("4.3.1/killed")
    folders = sorted(path.name for path in source.iterdir() if path.is_dir())
    return small_log_dir(source, tmp_path / "broker-1", *folders[:3])


def test_verify_says_of_a_bucket_what_it_says_of_a_disk(small, upload, requests, run):
    there = upload(small)
    requests.clear()
    away = verify(there)
    listed = list(opening.open_log_dir(small).partitions)
    parts = [opening.open_partition(path) for path, _ in listed]
    calls = dict.fromkeys(requests.calls)
    assert said(away, there) == said(verify(small), small)
    # Twice the root: what it is, and what is in it; and once more the metadata log, which is read
    # first for what topics are set to. One is by the helper that runs verify. No other file is
    # asked for its size; a closed segment is asked for its ETag once it was read.
    assert requests.of("list_objects_v2") + requests.of("ListObjectsV2") <= len(parts) + 6, calls
    closed = sum(not segment.is_active for part in parts for segment in part.segments)
    assert requests.of("head_object") <= 6 + closed
    readable = sum(1 for part in parts for _ in part.files())
    # For what should be there the offset checkpoints, the leader epochs and the end of the index
    # are read once more.
    again = 4 + 2 * len(parts)
    assert requests.of("get_object") <= readable + len(list(small.iterdir())) + again, (
        requests.calls
    )
    result = run("verify", there, "-f", "ndjson")
    assert result.status == away.exit_status
    assert "s3://bucket/logs/broker-1/" in result.stdout


def test_one_segment_is_dumped(small, upload, requests, run):
    log = next(path for path in sorted(small.rglob("*.log")) if path.stat().st_size)
    there = upload(small) / log.parent.name / log.name
    requests.clear()
    away, local = (run("dump", "-f", "ndjson", path) for path in (there, log))
    assert away.status == 0, away.stderr
    assert timeless(away, there) == timeless(local, log)
    assert requests.of("get_object") == 1
    assert requests.bytes == log.stat().st_size


def test_an_executor_of_another_process_reads_what_was_listed_here(small, upload):
    there = upload(small)
    folder = opening.open_log_dir(there).partitions[0][0]
    tasks = plan(opening.open_partition(folder), CheckRequest(Level.RECORDS))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        away = pool.submit(check_tasks, tasks, ignored).result()
    assert str(away) == str(check_tasks(tasks, ignored))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Return a partition dir with a log of 48 MiB and its offset index."""
    home = tmp_path / "large-0"
    home.mkdir()
    value = random.Random(3).randbytes(MIB)
    one = bytearray(
        record_batch.encode(
            record.encode([record.Record(0, 0, b"k", value)]), base_offset=0, last_offset_delta=0,
            record_count=1, leader_epoch=0, base_timestamp=1_700_000_000_000,
            max_timestamp=1_700_000_000_000,
        )
    )  # fmt: skip
    with (home / f"{0:020d}.log").open("wb") as log, (home / f"{0:020d}.index").open("wb") as index:
        for offset in range(48):
            one[:8] = offset.to_bytes(8, "big")  # outside of what the CRC covers
            if offset:
                index.write(offset.to_bytes(4, "big") + log.tell().to_bytes(4, "big"))
            log.write(one)
    (home / f"{0:020d}.timeindex").touch()
    (home / "partition.metadata").write_text("version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ")
    (home / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return home


def test_a_large_log_is_read_by_ranges(large, s3, requests):
    s3.mkdir("bucket")
    s3.put(f"{large}/", "bucket/large-0/", recursive=True)
    there = remote.parse("s3://bucket/large-0")
    size = (large / f"{0:020d}.log").stat().st_size
    requests.clear()
    quick = verify(there, level=Level.QUICK)
    assert said(quick, there) == said(verify(large, level=Level.QUICK), large)
    assert requests.bytes < 3 * MIB
    assert requests.of("get_object") < 8
    requests.clear()
    whole = verify(there, level=Level.BATCHES)
    assert said(whole, there) == said(verify(large, level=Level.BATCHES), large)
    assert whole.summary.batches == 48
    assert size <= requests.bytes < size + MIB
    assert requests.largest <= remote.READ_AHEAD
    # Two more are for what should be there: the leader epochs, and the end of the offset index.
    assert requests.of("get_object") <= size // remote.READ_AHEAD + 8
    assert requests.of("head_object") <= 2  # One is by the helper that runs verify.


def test_a_missing_bucket_is_one_line(s3, run):
    result = run("verify", "s3://nosuchbucket/broker-1")
    assert result.status == 4
    first = result.stderr.splitlines()[0]
    assert first.startswith("logtool: s3://nosuchbucket/broker-1: ")
    assert "does not exist" in first or "No such file" in first


def test_a_missing_prefix_is_one_line(s3, run):
    s3.mkdir("bucket")
    result = run("verify", "s3://bucket/broker-1")
    assert result.status == 4
    assert f"s3://bucket/broker-1: {os.strerror(errno.ENOENT)}" in result.stderr


def test_a_wrong_endpoint_is_one_line(s3, run, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    result = run("verify", "s3://bucket/broker-1")
    assert result.status == 4
    first = result.stderr.splitlines()[0]
    assert "s3://bucket/broker-1: " in first
    assert "endpoint" in first


def test_no_credentials_are_one_line(s3, run, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = run("verify", "s3://bucket/broker-1")
    assert result.status == 4
    assert "s3://bucket/broker-1: " in result.stderr
    assert "credentials" in result.stderr


def test_denied_access_is_one_line(small, upload, server, run):
    there = upload(small)
    reset(server, "moto-api/reset-auth", b"0")
    try:
        result = run("verify", there)
    finally:
        reset(server, "moto-api/reset-auth", b"1000000000")
    assert result.status == 4
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"logtool: {there}: ")


def test_a_directory_may_have_an_object_of_its_own_name(s3):
    s3.mkdir("bucket")
    s3.pipe_file("bucket/home/t-0/partition.metadata", b"x")
    client = s3.s3
    fsspec.asyn.sync(s3.loop, client.put_object, Bucket="bucket", Key="home/t-0/", Body=b"")
    entries = files.list_dir(remote.parse("s3://bucket/home/t-0"))
    assert [entry.name for entry in entries] == ["partition.metadata"]
    with pytest.raises(UnreadableError, match="Not a directory"):
        files.list_dir(remote.parse("s3://bucket/home/t-0/partition.metadata"))


def test_a_listing_is_made_again_each_time(s3):
    s3.mkdir("bucket")
    home = remote.parse("s3://bucket/home")
    for count in (1, 2):
        fsspec.asyn.sync(
            s3.loop, s3.s3.put_object, Bucket="bucket", Key=f"home/{count}.log", Body=b"x"
        )
        assert len(files.list_dir(home)) == count


def test_a_file_of_unknown_size_is_not_taken_for_empty(monkeypatch):
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/sizeless/x.log", b"abc")
    monkeypatch.setattr(
        type(memory), "ls", lambda *_, **__: [{"name": "/sizeless/x.log", "type": "file"}]
    )
    with pytest.raises(UnreadableError, match=r"size.*x\.log|x\.log.*size"):
        files.list_dir(remote.parse("memory://sizeless"))


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_file_that_fails_in_the_middle_is_reported_and_the_rest_is_checked(
    suffix, scenario, in_memory, monkeypatch
):
    there = in_memory(scenario("4.3.1/clean"))
    real = remote.read
    whole = verify(there)

    def failing(path: Path, start: int, stop: int) -> bytes:
        if path.name.endswith(suffix) and "compacted" not in str(path):
            raise UnreadableError(path, "Connection was reset")
        return real(path, start, stop)

    monkeypatch.setattr(remote, "read", failing)
    outcome = verify(there, budget=Budget(jobs=2))
    assert outcome.exit_status == 4
    assert outcome.unreadable
    assert {error.reason for error in outcome.unreadable} == {"Connection was reset"}
    assert outcome.summary.partitions == whole.summary.partitions


def test_a_log_that_vanished_since_the_listing_was_not_read(scenario, in_memory, monkeypatch):
    """A running broker deletes files by retention; a store keeps the files that it lists."""
    there = in_memory(scenario("4.3.1/empty"))
    real = opening.open_partition

    listed: set[Path] = set()

    def vanishing(path: Path, *more: Any) -> Partition:
        found = real(path, *more)
        if path not in listed:  # for the settings of topics, which the metadata log holds
            listed.add(path)
            return found
        for segment in found.segments:
            fsspec.filesystem("memory").rm_file(f"/empty/{path.name}/{segment.log.name.name}")
        return found

    monkeypatch.setattr(opening, "open_partition", vanishing)
    outcome = verify(there)
    logs = {error.path.name for error in outcome.unreadable}
    assert logs == {"00000000000000000000.log"}
    assert len(outcome.unreadable) == outcome.summary.partitions
    assert outcome.exit_status == 4
