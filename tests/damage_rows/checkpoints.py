"""Rows of the table: checkpoints, KRaft snapshots, and the files of a log dir."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from damage import copied, cut, damage_file, drop, flip, zero
from damage_rows.rows import (
    CLEAN,
    CLEANER,
    COMPACTED,
    CONTROLLER,
    EPOCHS,
    KILLED,
    META,
    PLAIN,
    QUORUM,
    RECOVERY,
    START,
    UUID,
    WATERMARK,
    Row,
    zeros,
)
from log_dir_damage import (
    SIZE,
    At,
    Damage,
    batch,
    epochs,
    home_of,
    in_batch,
    offset,
    on,
    remove,
)
from verification import batches

from logtool.formats.record_batch import BatchTable


def in_snapshot(change: Callable[[bytes, BatchTable], bytes]) -> Damage:
    """Change the second snapshot of the metadata log by what its batches are."""

    def damage(home: Path) -> None:
        path = home_of(home, "1.checkpoint")
        table = batches(path)
        damage_file(path, lambda data: change(data, table))

    return damage


def later(path: Path, than: Path, seconds: int) -> None:
    when = than.stat().st_mtime_ns + seconds * 1_000_000_000
    os.utime(path, ns=(when, when))


def first_epoch_moved(home: Path) -> None:
    """Move the first epoch up; the log starts were not written at the stop."""
    epochs(lambda rows: [(rows[0][0], 5), *rows[1:]])(home)
    later(home / START, than=home / CLEAN, seconds=2)


LEADER_EPOCHS = [
    Row("the checkpoint removed", PLAIN, remove(EPOCHS), [("leader-epoch/missing", ".", None)]),
    Row("a row dropped", PLAIN, epochs(lambda rows: rows[:1]),
        [("leader-epoch/missing-epoch", EPOCHS, None)]),
    # As DeleteRecords and a kill leave it: a broker of 4.3.1 and 3.9.2 keeps it so.
    Row("the first row dropped", PLAIN, epochs(lambda rows: rows[1:]),
        [("leader-epoch/begins-later", EPOCHS, None)]),
    Row("the first row dropped after a kill", KILLED, epochs(lambda rows: rows[1:]),
        [("leader-epoch/begins-later", EPOCHS, None)]),
    Row("a start offset moved up", PLAIN, epochs(lambda rows: [rows[0], (2, rows[1][1] + 5)]),
        [("leader-epoch/mismatch", EPOCHS, None)]),
    Row("a start offset moved down", PLAIN, epochs(lambda rows: [rows[0], (2, rows[1][1] - 5)]),
        [("leader-epoch/mismatch", EPOCHS, None)]),
    # As DeleteRecords leaves it, before the new log start is checkpointed too.
    Row("the first row moved up", PLAIN, epochs(lambda rows: [(rows[0][0], 5), *rows[1:]]),
        [("checkpoint/log-start-behind", START, None)]),
    Row("the first row moved up, log starts of another time", PLAIN, first_epoch_moved,
        [("checkpoint/log-start-lost", START, None)]),
    Row("the epochs cut at the end of the log", KILLED, epochs(lambda rows: [(rows[-1][0], 360)]),
        [("checkpoint/log-start-behind", START, None),
         ("leader-epoch/begins-later", EPOCHS, None)]),
    Row("another epoch", PLAIN, epochs(lambda rows: [rows[0], (7, rows[1][1])]),
        [("leader-epoch/missing-epoch", EPOCHS, None)]),
    Row("an epoch without data", PLAIN,
        epochs(lambda rows: [rows[0], (1, rows[1][1] - 1), rows[1]]),
        [("leader-epoch/mismatch", EPOCHS, None)]),
    Row("an epoch without data at the end", PLAIN, epochs(lambda rows: [*rows, (9, 360)]), []),
    Row("a stale row behind the end", PLAIN, epochs(lambda rows: [*rows, (9, 5000)]),
        [("leader-epoch/beyond-end", EPOCHS, SIZE)]),
    Row("rows in the wrong order", PLAIN, epochs(lambda rows: rows[::-1]),
        [("leader-epoch/order", EPOCHS, 10)]),
    Row("a negative epoch", PLAIN, on(EPOCHS, lambda d: b"0\n3\n-4 0\n" + d[4:]),
        [("leader-epoch/negative", EPOCHS, 4)]),
    Row("version 1 of the epochs", PLAIN, on(EPOCHS, lambda d: b"1" + d[1:]),
        [("leader-epoch/version", EPOCHS, 0)]),
    Row("a count too high", PLAIN, on(EPOCHS, lambda d: b"0\n9" + d[3:]),
        [("leader-epoch/count", EPOCHS, 2)]),
    Row("a line of text", PLAIN, on(EPOCHS, lambda d: b"0\n3" + d[3:] + b"hello\n"),
        [("leader-epoch/malformed-line", EPOCHS, SIZE)]),
    Row("an epoch file of 0 bytes", PLAIN, on(EPOCHS, cut, 0),
        [("leader-epoch/missing-epoch", EPOCHS, None)]),
    Row("an epoch file of NUL bytes", PLAIN, on(EPOCHS, zeros),
        [("leader-epoch/version", EPOCHS, 0)]),
]  # fmt: skip


NONE = "codec-none"


def without_cluster(data: bytes) -> bytes:
    return re.sub(rb"cluster.id=.*\n", b"", data)


WITHOUT_CLUSTER = At(lambda path: len(without_cluster(path.read_bytes())))


def key(name: str) -> At:
    """Return where a key stands in meta.properties."""
    return At(lambda path: path.read_bytes().index(f"\n{name}=".encode()) + 1)


STATE = [
    Row("a recovery point behind the end", PLAIN, offset(RECOVERY, NONE, 361),
        [("checkpoint/recovery-point-beyond-end", RECOVERY, 4)]),
    Row("a recovery point behind the end of a copy that was made while the broker ran", KILLED,
        offset(RECOVERY, NONE, 361), [("checkpoint/recovery-point-ahead", RECOVERY, 4)]),
    Row("a recovery point below the end of a clean log", PLAIN, offset(RECOVERY, NONE, 5),
        [("checkpoint/recovery-point-behind", RECOVERY, 4)]),
    Row("no row of the recovery point", PLAIN, on(RECOVERY, lambda d: b"0\n0\n"),
        [("checkpoint/no-recovery-point", RECOVERY, None)]),
    Row("a high watermark behind the end", PLAIN, offset(WATERMARK, NONE, 10**12),
        [("checkpoint/high-watermark-beyond-end", WATERMARK, 4)]),
    Row("a high watermark behind the end of a copy that was made while the broker ran", KILLED,
        offset(WATERMARK, NONE, 361), [("checkpoint/high-watermark-ahead", WATERMARK, 4)]),
    Row("a high watermark below the start of a clean log", "clean deleted-pending-0",
        offset(WATERMARK, "deleted-pending", 3),
        [("checkpoint/high-watermark-below-start", WATERMARK, 4)]),
    Row("a high watermark below the start after a kill", "killed deleted-pending-0",
        offset(WATERMARK, "deleted-pending", 3),
        [("checkpoint/high-watermark-behind", WATERMARK, 4)]),
    Row("a log start behind the end", PLAIN, offset(START, NONE, 500),
        [("checkpoint/log-start-beyond-end", START, 4)]),
    Row("a cleaner offset behind the end", COMPACTED, offset(CLEANER, "compacted.keys", 10**9),
        [("checkpoint/cleaner-out-of-range", CLEANER, 4)]),
    Row("a cleaner offset below the start", "clean deleted_segments-0",
        offset(CLEANER, "deleted_segments", 3),
        [("checkpoint/cleaner-out-of-range", CLEANER, 4)]),
    Row("a row of a topic with dots and dashes that is gone", PLAIN,
        offset(WATERMARK, "my.topic-with_all-3", 7),
        [("checkpoint/unknown-partition", WATERMARK, SIZE), ("partition/lost", WATERMARK, SIZE)]),
    Row("a checkpoint of 0 bytes", PLAIN, on(WATERMARK, cut, 0),
        [("checkpoint/empty", WATERMARK, 0)]),
    Row("a recovery checkpoint of 0 bytes", PLAIN, on(RECOVERY, cut, 0),
        [("checkpoint/empty", RECOVERY, 0), ("checkpoint/no-recovery-point", RECOVERY, None)]),
    Row("only a version line", PLAIN, on(WATERMARK, lambda d: b"0\n"),
        [("checkpoint/empty", WATERMARK, 0)]),
    Row("version 3", PLAIN, on(WATERMARK, lambda d: b"3" + d[1:]),
        [("checkpoint/version", WATERMARK, 0)]),
    Row("a count too high in a checkpoint", PLAIN, on(WATERMARK, lambda d: b"0\n7" + d[3:]),
        [("checkpoint/count", WATERMARK, 2)]),
    Row("a count too low in a checkpoint", PLAIN, on(WATERMARK, lambda d: b"0\n0" + d[3:]),
        [("checkpoint/count", WATERMARK, 2)]),
    Row("an empty line more", PLAIN, on(WATERMARK, lambda d: b"0\n2" + d[3:] + b"\n"),
        [("checkpoint/malformed-line", WATERMARK, SIZE)]),
    Row("a checkpoint of NUL bytes", PLAIN, on(WATERMARK, zeros),
        [("checkpoint/version", WATERMARK, 0), ("checkpoint/empty", WATERMARK, 0)]),
    Row("NUL bytes in a row", PLAIN, on(WATERMARK, zero, 6, 4),
        [("checkpoint/unknown-partition", WATERMARK, 4)]),
    Row("a row without offset", PLAIN, on(WATERMARK, lambda d: b"0\n1\ncodec-none 0\n"),
        [("checkpoint/malformed-line", WATERMARK, 4)]),
    Row("a negative offset", PLAIN, offset(WATERMARK, NONE, -7),
        [("checkpoint/negative-offset", WATERMARK, 4)]),
    Row("a negative partition", PLAIN, on(WATERMARK, lambda d: b"0\n2" + d[3:] + b"t -1 5\n"),
        [("checkpoint/negative-partition", WATERMARK, SIZE),
         ("checkpoint/unknown-partition", WATERMARK, SIZE)]),
    Row("a partition twice", PLAIN,
        on(WATERMARK, lambda d: b"0\n2" + d[3:] + b"codec-none 0 3\n"),
        [("checkpoint/duplicate", WATERMARK, SIZE)]),
    Row("a log written after the clean marker", PLAIN,
        lambda home: later(home_of(home, "0.log"), home / CLEAN, 3600),
        [("clean-shutdown/stale", CLEAN, None)]),
    Row("a log written with the clean marker", PLAIN,
        lambda home: later(home_of(home, "0.log"), home / CLEAN, 1), []),
    Row("garbage in the clean marker", PLAIN, on(CLEAN, lambda d: b"yes"),
        [("clean-shutdown/malformed", CLEAN, 0)]),
    Row("a clean marker of 0 bytes", PLAIN, on(CLEAN, cut, 0), []),
    Row("no meta.properties", CONTROLLER, remove(META), [("meta-properties/missing", "..", None)]),
    Row("no cluster id", PLAIN, on(META, without_cluster),
        [("meta-properties/missing-key", META, WITHOUT_CLUSTER)]),
    Row("a node id that is no number", PLAIN, on(META, lambda d: d.replace(b"id=1", b"id=one")),
        [("meta-properties/malformed", META, key("node.id"))]),
    Row("version 9 of meta.properties", PLAIN,
        on(META, lambda d: d.replace(b"version=1", b"version=9")),
        [("meta-properties/version", META, key("version"))]),
    Row("a reserved directory id", PLAIN,
        on(META, lambda d: re.sub(rb"directory.id=.*", b"directory.id=" + b"A" * 22, d)),
        [("meta-properties/reserved-directory-id", META, key("directory.id"))]),
    Row("a meta.properties of 0 bytes", PLAIN, on(META, cut, 0),
        [("meta-properties/empty", META, 0)]),
    Row("quorum-state of 0 bytes", CONTROLLER, on(QUORUM, cut, 0),
        [("quorum-state/malformed", QUORUM, 0)]),
    Row("quorum-state cut", CONTROLLER, on(QUORUM, cut, 20),
        [("quorum-state/malformed", QUORUM, 0)]),
    Row("quorum-state of version 7", CONTROLLER,
        on(QUORUM, lambda d: d.replace(b'"data_version":1', b'"data_version":7')),
        [("quorum-state/version", QUORUM, 0)]),
    Row("a bit of a KRaft snapshot", CONTROLLER, in_batch(1, 70, log="1.checkpoint"),
        [("kraft-snapshot/damaged", "1.checkpoint", batch(1))]),
    Row("a KRaft snapshot without its footer", CONTROLLER,
        in_snapshot(lambda d, t: cut(d, int(t.position[-1]))),
        [("kraft-snapshot/footer", "1.checkpoint", batch(-2))]),
    Row("a KRaft snapshot without its header", CONTROLLER,
        in_snapshot(lambda d, t: d[int(t.size[0]):]),
        [("kraft-snapshot/header", "1.checkpoint", 0),
         ("kraft-snapshot/offsets", "1.checkpoint", 0)]),
    Row("a KRaft snapshot of 0 bytes", CONTROLLER, on("1.checkpoint", cut, 0),
        [("kraft-snapshot/header", "1.checkpoint", 0)]),
    Row("a KRaft snapshot with a batch of another epoch", CONTROLLER,
        on("1.checkpoint", flip, 15, 4), [("kraft-snapshot/epoch", "1.checkpoint", 0)]),
    Row("a KRaft snapshot with a batch missing", CONTROLLER,
        in_snapshot(lambda d, t: drop(d, int(t.position[1]), int(t.size[1]))),
        [("kraft-snapshot/offsets", "1.checkpoint", batch(1))]),
]  # fmt: skip


TWO = "two-log-dirs"
"""The two log dirs of one broker, given together."""

SEVERAL = [
    Row("a partition in two log dirs", TWO,
        lambda home: copied(home / "dir-1/staying.topic-0", home / "dir-2/staying.topic-0"),
        [("data-dir/duplicate-partition", "staying.topic-0", None),
         ("checkpoint/no-recovery-point", "dir-2/recovery-point-offset-checkpoint", None)]),
    Row("another node id in the second log dir", TWO,
        on("dir-2/meta.properties", lambda d: d.replace(b"node.id=1", b"node.id=2")),
        [("meta-properties/mismatch", "dir-2/meta.properties", None)]),
    Row("another cluster id in the second log dir", TWO,
        on("dir-2/meta.properties", lambda d: re.sub(rb"cluster.id=.*", b"cluster.id=other", d)),
        [("meta-properties/mismatch", "dir-2/meta.properties", None)]),
    Row("one directory id in two log dirs", TWO,
        lambda home: shutil.copy(home / "dir-1/meta.properties", home / "dir-2/meta.properties"),
        [("meta-properties/duplicate-id", "dir-2/meta.properties", None)]),
    Row("another topic id in the second log dir", TWO,
        on("dir-2/staying.topic-1/partition.metadata", lambda d: d[:-22] + UUID.encode()),
        [("partition-metadata/topic-id", "dir-2/staying.topic-1/partition.metadata", None)]),
]  # fmt: skip
