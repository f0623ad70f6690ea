"""The directories that the command lines read: healthy and damaged, the same bytes every time.

They are made once below ``build/outputs/inputs``, from ``tests/data`` and from the writer of
Redpanda's files in ``tests/redpanda_files.py``. Nothing here comes from `logtool` itself, which may
differ between the two trees that are compared.
"""

import os
import random
import shutil
import struct
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import redpanda_files as rp
from crc32c import crc32c
from damage import cut, damage_file, drop, flip, overwrite, repeat, swap, zero
from fuzz.mutations import mutate_files

DATA = Path(__file__).resolve().parents[1] / "data"
STAMP_NS = 1_795_348_800 * 10**9
"""The mtime of everything that was not unpacked as it is: 2026-11-22T12:00:00Z."""
_BATCH_HEADER = 61
_ROOT_FILES = (
    "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    "log-start-offset-checkpoint", "cleaner-offset-checkpoint", "meta.properties",
    ".kafka_cleanshutdown",
)  # fmt: skip


def make(home: Path) -> None:
    """Write all directories below `home`, which is empty."""
    kinds = sorted(_KAFKA_DAMAGE)
    for release, name in unpack(home):
        for kind in random.Random(f"{release} {name}").sample(kinds, 2):
            target = home / "damaged" / kind / release / name
            _damaged_copy(home / release / name, target, _KAFKA_DAMAGE[kind])
    write_bare(home)
    write_redpanda(home / "redpanda")


def unpack(home: Path) -> Iterator[tuple[str, str]]:
    """Unpack every log dir of ``tests/data``; yield its release and its name."""
    for archive in sorted(DATA.glob("[0-9]*/*.tar.xz")):
        if not archive.name.endswith(".expected.tar.xz"):
            with tarfile.open(archive) as tar:
                tar.extractall(home / archive.parent.name, filter="tar")
            yield archive.parent.name, archive.name.removesuffix(".tar.xz")


def log_dirs(path: Path) -> list[Path]:
    """Return the log dirs of an unpacked archive: the directory itself, or those in it."""
    inside = sorted(child for child in path.iterdir() if child.is_dir())
    several = [child for child in inside if child.name.startswith(("node-", "dir-"))]
    return several or [path]


def partitions(log_dir: Path) -> list[Path]:
    """Return the directories in a log dir that hold a log, by name."""
    return sorted({path.parent for path in log_dir.glob("*/*.log") if path.parent.is_dir()})


def _damaged_copy(
    source: Path, target: Path, damage: Callable[[random.Random, Path], None]
) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, symlinks=True)
    times = {path: path.lstat().st_mtime_ns for path in (target, *target.rglob("*"))}
    for log_dir in log_dirs(target):
        damage(random.Random(f"{log_dir.relative_to(target.parents[2])}"), log_dir)
    _set_times(target, times)


def _set_times(home: Path, known: dict[Path, int]) -> None:
    """Give a fixed mtime to all that was written now; nothing else keeps it from one day to the
    next."""
    for path in sorted((home, *home.rglob("*")), reverse=True):
        if path.lstat().st_mtime_ns != known.get(path):
            os.utime(path, ns=(STAMP_NS, STAMP_NS), follow_symlinks=False)


def batch_positions(data: bytes) -> list[int]:
    """Return where the batches of a log begin, of any magic, as far as their sizes lead."""
    found, at = [], 0
    while at + 17 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        if size <= 0 or at + 12 + size > len(data):
            break
        found.append(at)
        at += 12 + size
    return found


def _with_right_crc(data: bytes, at: int) -> bytes:
    """Return a log with the CRC of the batch of magic 2 at `at` made right."""
    end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    return data[: at + 17] + struct.pack(">I", crc32c(data[at + 21 : end])) + data[at + 21 :]


def _damage_log(draw: random.Random, data: bytes, way: int) -> bytes:
    """Return a log with one damage; `way` says which, of as many as there are."""
    starts = [*batch_positions(data), len(data)]
    if len(starts) < 2:
        return data + draw.randbytes(90)
    number = draw.randrange(len(starts) - 1)
    at, end = starts[number], starts[number + 1]
    match way % 14:
        case 0:  # anything in the batch
            return flip(data, draw.randrange(at, end), 1 << draw.randrange(8))
        case 1:  # the CRC, or what stands there in older formats
            return flip(data, at + draw.randrange(17, 21))
        case 2:  # the base offset
            return flip(data, at + draw.randrange(8), 1)
        case 3:  # the size
            return flip(data, at + draw.randrange(8, 12), 4)
        case 4:  # magic and leader epoch
            return flip(data, at + draw.randrange(12, 17), 2)
        case 5:
            return cut(data, draw.randrange(at + 1, end))
        case 6:
            return cut(data, at)
        case 7:
            return zero(data, at + 8, min(end - at - 8, draw.choice((13, 512, 4096))))
        case 8:
            return drop(data, at, end - at)
        case 9:
            return repeat(data, at, end - at)
        case 10:
            return data + bytes(draw.choice((1, 61, 4096)))
        case 11:
            return data + draw.randbytes(draw.choice((5, 61, 300)))
        case 12:
            size = min(12, (end - at) // 2)
            return swap(data, at, at + size, size)
        case _:  # a field of the header of magic 2, with a CRC that holds
            if data[at + 16] != 2 or end - at < _BATCH_HEADER:
                return flip(data, end - 1)
            field = draw.choice((22, 26, 30, 38, 46, 52, 56, 60))
            return _with_right_crc(flip(data, at + field, draw.choice((1, 0x80))), at)


def _damage_batches(draw: random.Random, log_dir: Path) -> None:
    """Damage the logs: most partitions in one place, some in two, and some lose a segment."""
    way = draw.randrange(14)
    for partition in partitions(log_dir):
        if draw.random() < 0.15:
            continue
        logs = sorted(path for path in partition.glob("*.log") if path.stat().st_size)
        if len(logs) > 2 and draw.random() < 0.2:
            base = draw.choice(logs).name[:20]
            for path in partition.glob(f"{base}.*"):
                path.unlink()
            continue
        for log in draw.sample(logs, min(len(logs), draw.choice((1, 1, 2)))):
            way += 1
            damage_file(log, lambda data: _damage_log(draw, data, way))  # noqa: B023


def _damage_small(draw: random.Random, data: bytes) -> bytes:
    """Return the bytes of a small file, or of an index, with one damage."""
    at = draw.randrange(len(data))
    used = len(data.rstrip(b"\0")) or len(data)
    match draw.randrange(7):
        case 0:
            return flip(data, draw.randrange(used), 1 << draw.randrange(8))
        case 1:
            return flip(data, min(used - 1, draw.randrange(12)))
        case 2:
            return cut(data, at)
        case 3:
            return overwrite(data, 0, bytes(byte ^ 0x55 for byte in data[:8]))
        case 4:
            return data + draw.randbytes(5)
        case 5:
            return b"garbage\n"
        case _:
            return b""


def _damage_indexes(draw: random.Random, log_dir: Path) -> None:
    """Damage, remove or exchange indexes and producer snapshots."""
    suffixes = (".index", ".timeindex", ".txnindex", ".snapshot")
    for partition in partitions(log_dir):
        files = sorted(
            path for path in partition.iterdir() if path.suffix in suffixes and path.is_file()
        )
        for path in draw.sample(files, min(len(files), draw.choice((0, 1, 2, 3)))):
            way = draw.randrange(4)
            if way == 0:
                path.unlink()
            elif way == 1:
                other = draw.choice(files)
                if other.exists():
                    path.write_bytes(other.read_bytes())
            elif path.stat().st_size:
                damage_file(path, lambda data: _damage_small(draw, data))


def _damage_small_files(draw: random.Random, log_dir: Path) -> None:
    """Damage checkpoints and the like, and put files and directories where they do not belong."""
    for name in _ROOT_FILES:
        path = log_dir / name
        way = draw.randrange(4)
        if not path.exists():
            if name == ".kafka_cleanshutdown" and way:
                path.write_text('{"version":0,"brokerEpoch":7}')
        elif way == 0:
            path.unlink()
        elif way == 1 and path.stat().st_size:
            damage_file(path, lambda data: _damage_small(draw, data))
        elif way == 2:
            lines = path.read_text().splitlines()
            # One row says another offset; the count of rows stays right.
            if len(lines) > 2:
                number = draw.randrange(2, len(lines))
                lines[number] = lines[number].rpartition(" ")[0] + f" {draw.randrange(2000)}"
            path.write_text("\n".join(lines) + "\n")
    all_partitions = partitions(log_dir)
    for partition in all_partitions:
        for name in ("leader-epoch-checkpoint", "partition.metadata"):
            path = partition / name
            if path.exists() and path.stat().st_size and draw.random() < 0.3:
                damage_file(path, lambda data: _damage_small(draw, data))
        if draw.random() < 0.3:
            _misplace(draw, partition, draw.choice(all_partitions))


def _misplace(draw: random.Random, partition: Path, other: Path) -> None:
    """Put a file or a directory where it does not belong, or under another name."""
    log = min(partition.glob("*.log"))
    other_log = max(other.glob("*.log"), default=log)
    match draw.randrange(9):
        case 0:
            shutil.copyfile(other_log, partition / f"{draw.randrange(9999):020d}.log")
        case 1:
            (partition / "00000000000000000007.index").write_bytes(bytes(8))
        case 2:
            log.rename(log.with_name(log.name + ".swap"))
        case 3:
            shutil.copyfile(log, log.with_name(log.name + ".cleaned"))
        case 4:
            log.rename(log.with_name(log.name + ".deleted"))
        case 5:
            shutil.copytree(partition, partition.with_name(f"{partition.name}x"))
        case 6:
            deleted = f"{partition.name}.0123456789abcdef0123456789abcdef-delete"
            shutil.copytree(partition, partition.with_name(deleted))
        case 7:
            future = f"{partition.name}.0123456789abcdef0123456789abcdef-future"
            shutil.copytree(partition, partition.with_name(future))
        case _:
            (partition / "notes.txt").write_text("not a file of Kafka\n")
            (partition / "00000000000000000009.log").mkdir()


def _mutate(draw: random.Random, log_dir: Path) -> None:
    """Mutate files like `make mutate`, once for every three partitions."""
    for _ in range(1 + len(partitions(log_dir)) // 3):
        mutate_files(draw, log_dir)


_KAFKA_DAMAGE: dict[str, Callable[[random.Random, Path], None]] = {
    "batches": _damage_batches,
    "indexes": _damage_indexes,
    "small-files": _damage_small_files,
    "mutated": _mutate,
}


def write_bare(inputs: Path) -> None:
    """Write places that are not log dirs: a partition, a file of each kind, nothing, nonsense."""
    home, release = inputs / "bare", inputs / "4.3.1"
    (home / "empty").mkdir(parents=True)
    shutil.copytree(release / "clean" / "tx-interleaved_v2-0", home / "tx-interleaved_v2-0")
    (home / "text.txt").write_text("no file of a broker\n")
    (home / "files").mkdir()
    for partition in ("tx-interleaved_v2-0", "__cluster_metadata-0"):
        for path in sorted((release / "clean" / partition).iterdir()):
            if path.is_file() and path.suffix and not (home / "files" / path.name).exists():
                shutil.copyfile(path, home / "files" / path.name)
    log = home / "files" / "00000000000000000000.log"
    (home / "damaged.log").write_bytes(flip(log.read_bytes(), 70))
    lines = [
        str(path.relative_to(home.parent))
        for path in (home / "tx-interleaved_v2-0", home / "files")
    ]
    (home / "paths").write_text("\n".join(lines) + "\n")
    (home / "server.properties").write_text(
        "log.dirs=4.3.1/two-log-dirs/dir-1,4.3.1/two-log-dirs/dir-2\n"
        "log.index.interval.bytes=1024\nnum.recovery.threads.per.data.dir=2\n"
    )
    _set_times(home, {})


def write_redpanda(home: Path) -> None:
    """Write data directories of Redpanda, each at ``NAME/data``, and mutated copies of them."""
    _write_redpanda_cluster(home / "healthy", _sound)
    for name, change in _REDPANDA_DAMAGE.items():
        _write_redpanda_cluster(home / name, change)
    rp.of_rfc(home / "rfc")
    cut_below = rp.filled(1000, 1009) + rp.batch(1010, b"c", kind=rp.CONFIGURATION)
    folder = rp.data_dir(home / "snapshot", {"1000-1-v1.log": cut_below + rp.filled(1011, 1019)})
    metadata = struct.pack("<qqb9sqq", 999, 1, 64, b"the group", 0, 40)
    (folder / "snapshot").write_bytes(rp.snapshot(metadata))
    real = (DATA / "redpanda" / "test_segment.bin").read_bytes()
    rp.data_dir(home / "real", {"0-1-v1.log": real})
    for number in range(4):
        target = home / f"mutated-{number}"
        shutil.copytree(home / "healthy", target)
        draw = random.Random(f"redpanda {number}")
        for _ in range(2 + number):
            mutate_files(draw, target / "data")
    _set_times(home, {})


def _sound(data: bytes) -> bytes:
    return data


_REDPANDA_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "body": lambda data: flip(data, rp.positions(data)[2] + 99, 1),
    "header": lambda data: flip(data, rp.positions(data)[1] + 20),
    "torn": lambda data: cut(data, len(data) - 5),
    "zeros": lambda data: zero(data, rp.positions(data)[1], 200),
    "room": lambda data: data + bytes(4096),
}


def _write_redpanda_cluster(home: Path, change: Callable[[bytes], bytes]) -> None:
    """Write two topics, the offsets of groups and a kvstore; `change` is done to some segments."""
    first, second, third = rp.log(0, 4), rp.log(13, 4), rp.log(26, 4)
    folder = rp.data_dir(
        home, {"0-1-v1.log": change(first), "13-1-v1.log": second, "26-2-v1.log": change(third)}
    )
    at = rp.positions(first)
    _write(folder, "0-1-v1.base_index", rp.index(0, 12, (0, 0), (7, at[3])))
    _write(folder, "13-1-v1.base_index", rp.index_4(13, 25, (0, 0)))
    if change is not _sound:
        _write(folder, "13-1-v1.base_index", flip(rp.index(13, 25, (0, 0)), 30))
    commits = rp.records(
        rp.commit(b"g", b"orders", 0, 5),
        rp.commit(b"g", b"orders", 7, 1),
        rp.commit(b"far", b"orders", 0, 99),
    )
    offsets = rp.batch(0, b"config", kind=rp.CONFIGURATION) + rp.batch(1, body=commits, count=3)
    offsets += rp.prepared(4, 70, b"g", (b"orders", 0, 9, b"why"), (b"new", 1, 3, None))
    offsets += rp.ended(5, 70, b"g", commits=True)
    offsets += rp.prepared(6, 71, b"h", (b"orders", 0, 2, None))
    groups = home / "data" / "kafka" / "__consumer_offsets" / "3_9"
    _write(groups, "0-1-v1.log", offsets + bytes(4096))
    gaps = home / "data" / "kafka" / "compacted" / "0_30"
    _write(gaps, "0-1-v1.log", change(rp.log(0, 3)) + rp.filled(40, 49) + rp.filled(60, 61))
    (gaps / "0-1-v1.compaction_index").touch()
    stored = [
        rp.stored(0, (rp.log_key(0), struct.pack("<q", 0))),
        rp.stored(
            1, (rp.log_key(1), rp.clean_segment("26-2-v1.log")), rp.offset_map(22, 1, (0, 1))
        ),
    ]
    stored[1] = stored[1] if change is _sound else flip(stored[1], 70)
    rp.kvstore(home / "data", *stored)


def _write(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def fingerprint(home: Path) -> str:
    """Return the names, modes, sizes and mtimes of all inputs, to detect changes."""
    return "\n".join(_rows(home))


def _rows(home: Path) -> Iterable[str]:
    for folder, folders, files in os.walk(home):
        folders.sort()
        for name in (*sorted(folders), *sorted(files)):
            path = Path(folder, name)
            status = path.lstat()
            size = 0 if path.is_dir() else status.st_size
            place = os.fsencode(path.relative_to(home)).hex()
            yield f"{place} {status.st_mode:o} {size} {status.st_mtime_ns}"
