"""Rows of the table: segments that are missing or overlap, and files of other names."""

import os
import shutil
from pathlib import Path

import metadata_records
from damage import cut, damage_file, drop
from damage_rows.rows import (
    CLEANED,
    CLEANER,
    COMPACTED,
    CONTROLLER,
    EPOCHS,
    META,
    METADATA,
    PLAIN,
    RECOVERY,
    SMALL,
    UUID,
    WATERMARK,
    Row,
)
from log_dir_damage import (
    SIZE,
    Damage,
    all_of,
    batch,
    behind,
    create,
    home_of,
    line,
    new_batch,
    offset,
    on,
    own,
    remove,
    rename,
    row_of,
    segment_files,
    with_batches,
)
from verification import batches


def next_batch_too(home: Path) -> None:
    """Append the first batch of segment 5 to segment 4: a roll that was not remembered."""
    after = home_of(home, "5.log")
    first = after.read_bytes()[: int(batches(after).size[0])]
    damage_file(home_of(home, "4.log"), lambda data: data + first)


ENLARGED = 1 << 20


def enlarge(path: Path) -> None:
    times = path.stat()
    os.truncate(path, ENLARGED)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


CHAIN = [
    Row("a batch of the next segment too", SMALL, next_batch_too,
        [("segment/overlap", "4.log", None), ("time-index/incomplete", "4.timeindex", None)]),
    Row("the first segment removed", SMALL, segment_files(0, ".timeindex", ".index", ".log"),
        [("log/beginning-absent", "small-segments-0", None)]),
    Row("a log removed", SMALL, segment_files(4, ".log"),
        [("segment/missing", "3.log", None), ("partition/orphan-index", "4.index", None),
         ("partition/orphan-index", "4.timeindex", None)]),
    Row("a log and its indexes removed", SMALL, segment_files(4, ".timeindex", ".index", ".log"),
        [("segment/hole", "3.log", None)]),
    Row("two segments removed, the snapshot between them left", SMALL,
        all_of(segment_files(5, ".timeindex", ".index", ".log", ".snapshot"),
               segment_files(4, ".timeindex", ".index", ".log", ".snapshot")),
        [("segment/hole", "3.log", None)]),
    Row("two segments removed, the snapshots left", SMALL,
        all_of(segment_files(5, ".timeindex", ".index", ".log"),
               segment_files(4, ".timeindex", ".index", ".log")),
        [("segment/missing", "3.log", None)]),
    Row("a batch cut out where no index entry lies behind it", SMALL,
        with_batches(lambda d, t: drop(d, int(t.position[6]), int(t.size[6])), "4.log"),
        [("batch/hole", "4.log", batch(6))]),
    Row("a segment of a compacted log removed", COMPACTED,
        segment_files(4, ".timeindex", ".index", ".log", ".snapshot"),
        [("segment/gap", "3.log", None)]),
    Row("two segments removed that the cleaner has not come to, the snapshots left", CLEANED,
        all_of(offset(CLEANER, "compact.plain", 969),
               segment_files(5, ".timeindex", ".index", ".log"),
               segment_files(4, ".timeindex", ".index", ".log")),
        [("segment/missing", "3.log", None)], gone=[("segment/gap", "3.log", None)]),
    Row("a segment removed that the cleaner has not come to", CLEANED,
        all_of(offset(CLEANER, "compact.plain", 993),
               segment_files(5, ".timeindex", ".index", ".log", ".snapshot")),
        [("segment/uncleaned-hole", "4.log", None)]),
    Row("a log removed that the cleaner has been to", CLEANED, segment_files(5, ".log"),
        [("segment/missing", "4.log", None), ("partition/orphan-index", "5.index", None),
         ("partition/orphan-index", "5.timeindex", None)]),
    Row("the active segment removed", SMALL,
        segment_files(-1, ".timeindex", ".index", ".log"),
        [("checkpoint/recovery-point-beyond-end", RECOVERY, row_of("small-segments")),
         ("checkpoint/high-watermark-beyond-end", WATERMARK, row_of("small-segments")),
         ("producer-snapshot/beyond-end", "-1.snapshot", None),
         ("leader-epoch/beyond-end", EPOCHS, line(4))]),
    Row("a log larger than a broker can open", SMALL, lambda home: enlarge(home_of(home, "4.log")),
        [("log/too-large", "4.log", None), ("log/truncated", "4.log", SIZE)],
        largest_log=ENLARGED - 1),
]  # fmt: skip


def suffixed(suffix: str) -> Damage:
    """Rename the partition as a broker does that deletes or moves it."""

    def damage(home: Path) -> None:
        own(home).rename(home / f"{own(home).name}.{HEX}-{suffix}")

    return damage


HEX = "0123456789abcdef0123456789abcdef"
MOVED = f"version=0\nbroker.id=1\ndirectory.id={UUID}\n".encode()


NAMES = [
    Row("a .deleted file", PLAIN, create("partition/00000000000000000009.log.deleted", b"x"),
        [("partition/leftover-deleted", "00000000000000000009.log.deleted", None)]),
    Row("a .cleaned file", COMPACTED, create("partition/00000000000000000009.log.cleaned", b"x"),
        [("partition/leftover-cleaned", "00000000000000000009.log.cleaned", None)]),
    Row("a .swap file", COMPACTED, rename("3.log", lambda name: f"{name}.swap"),
        [("partition/leftover-swap", "00000000000000000336.log.swap", None),
         ("partition/orphan-index", "3.index", None),
         ("partition/orphan-index", "3.timeindex", None),
         ("segment/gap", "2.log", None)]),
    Row("a .swap file that was not committed", COMPACTED, all_of(
        rename("3.log", lambda name: f"{name}.swap"),
        create("partition/00000000000000000009.log.cleaned", b"x")),
        [("partition/leftover-cleaned", "00000000000000000336.log.swap", None),
         ("partition/leftover-cleaned", "00000000000000000009.log.cleaned", None),
         ("partition/orphan-index", "3.index", None),
         ("partition/orphan-index", "3.timeindex", None),
         ("segment/missing", "2.log", None)]),
    Row("a .tmp file", PLAIN, create("partition/leader-epoch-checkpoint.tmp", b"x"),
        [("partition/leftover-temporary", "leader-epoch-checkpoint.tmp", None)]),
    Row("a snapshot being written", CONTROLLER,
        create("__cluster_metadata-0/00000000000000000009-0000000001-77.checkpoint.part", b"x"),
        [("partition/leftover-temporary",
          "00000000000000000009-0000000001-77.checkpoint.part", None)]),
    Row("a record of the metadata log that cannot be applied", CONTROLLER,
        behind(lambda offset: new_batch(offset, metadata_records.remove_topic(UUID))),
        [("metadata/does-not-apply", "0.log", SIZE)]),
    Row("a file that stops the broker", PLAIN, create("partition/copy.log", b"x"),
        [("partition/stops-broker", "copy.log", None)]),
    Row("a name that Kafka can read", PLAIN, create("partition/+7.log", b"x"),
        [("partition/odd-name", "+7.log", None)]),
    Row("a note in a partition", PLAIN, create("partition/README.txt", b"x"),
        [("partition/unknown-file", "README.txt", None)]),
    Row("a directory in a partition", PLAIN, lambda home: (own(home) / "backup").mkdir(),
        [("partition/unknown-file", "backup", None)]),
    Row("an index without its log", PLAIN, create("partition/00000000000000000999.index"),
        [("partition/orphan-index", "00000000000000000999.index", None)]),
    Row("an empty partition", PLAIN, lambda home: (home / "new-topic-0").mkdir(),
        [("partition/empty", "new-topic-0", None)]),
    Row("a partition being deleted", PLAIN, suffixed("delete"),
        [("partition/pending-delete", f"codec-none-0.{HEX}-delete", None)]),
    Row("a partition being moved", PLAIN, suffixed("future"),
        [("partition/future", f"codec-none-0.{HEX}-future", None)]),
    Row("a stray partition", PLAIN, suffixed("stray"),
        [("partition/stray", f"codec-none-0.{HEX}-stray", None)]),
    Row("a partition number with a sign", PLAIN,
        lambda home: own(home).rename(home / "codec-none-+0"),
        [("partition/odd-name", "codec-none-+0", None)]),
    Row("a partition twice in a log dir", PLAIN,
        lambda home: shutil.copytree(own(home), home / "codec-none-00"),
        [("partition/odd-name", "codec-none-00", None),
         ("data-dir/duplicate-partition", "codec-none-00", None)]),
    Row("lost+found", PLAIN, lambda home: (home / "lost+found").mkdir(),
        [("data-dir/stops-broker", "lost+found", None)]),
    Row("a directory with a dash", PLAIN, lambda home: (home / "my-backup").mkdir(),
        [("data-dir/stops-broker", "my-backup", None)]),
    Row("a note in a log dir", PLAIN, create("README.txt", b"x"),
        [("data-dir/unknown-file", "README.txt", None)]),
    Row("a .tmp checkpoint", PLAIN, create(f"{WATERMARK}.tmp", b"x"),
        [("data-dir/leftover-temporary", f"{WATERMARK}.tmp", None)]),
    Row("no partition.metadata", PLAIN, remove(METADATA),
        [("partition-metadata/missing", ".", None)]),
    Row("no partition.metadata with ZooKeeper", PLAIN,
        all_of(remove(METADATA), on(META, lambda _: b"version=0\nbroker.id=1\n")),
        [("partition-metadata/not-written", ".", None)]),
    Row("no partition.metadata on the way from ZooKeeper to KRaft", PLAIN,
        all_of(remove(METADATA), on(META, lambda _: MOVED)),
        [("partition-metadata/missing", ".", None)]),
    Row("no partition.metadata with a metadata log", "clean codec-none-0 __cluster_metadata-0",
        all_of(remove(METADATA), on(META, lambda _: b"version=0\nbroker.id=1\ncluster.id=c\n")),
        [("partition-metadata/missing", ".", None), ("meta-properties/unknown-voter", META, None)]),
    Row("no partition.metadata and no meta.properties", "clean codec-none-0 codec-none-1",
        all_of(remove(METADATA), lambda home: (home / META).unlink()),
        [("partition-metadata/missing", ".", None)]),
    Row("a partition.metadata of 0 bytes", PLAIN, on(METADATA, cut, 0),
        [("partition-metadata/malformed", METADATA, 0)]),
    Row("a partition.metadata cut", PLAIN, on(METADATA, cut, 20),
        [("partition-metadata/malformed", METADATA, line(2))]),
    Row("a partition.metadata of version -1", PLAIN,
        on(METADATA, lambda d: d.replace(b": 0", b": -1")),
        [("partition-metadata/version", METADATA, 0)]),
    Row("the topic id zero", PLAIN,
        on(METADATA, lambda d: d[:-22] + b"A" * 22),
        [("partition-metadata/zero-id", METADATA, line(2))]),
    Row("another key", PLAIN, on(METADATA, lambda d: d.replace(b"topic_id", b"topic-id")),
        [("partition-metadata/key", METADATA, line(2))]),
    Row("another topic id", "clean codec-none-0 codec-none-1",
        on(METADATA, lambda d: d[:-22] + UUID.encode()),
        [("partition-metadata/topic-id", "codec-none-1/partition.metadata", None)]),
]  # fmt: skip
