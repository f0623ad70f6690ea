"""Damage that verify cannot see."""

from dataclasses import dataclass

from damage import cut, drop, flip
from damage_rows.rows import (
    CLEANED,
    COMPACTED,
    DENSE,
    KILLED,
    METADATA,
    PLAIN,
    RECOVERY,
    START,
    TXNS,
    UUID,
    WATERMARK,
    one_more,
    with_sound_crc,
)
from log_dir_damage import (
    Damage,
    all_of,
    entry,
    epochs,
    header,
    offset,
    on,
    producer,
    producers,
    remove,
    segment_files,
    with_batches,
)


@dataclass(frozen=True)
class Gap:
    """Damage that verify cannot see, and why."""

    id: str
    home: str
    damage: Damage
    reason: str


KNOWN_GAPS = [
    Gap("leader epoch of a batch -1", PLAIN, header(3, crc=False, leader_epoch=-1),
        "no CRC covers it, and batches of old releases have none"),
    Gap("a record changed and its CRC made right", PLAIN,
        with_sound_crc(3, lambda data, end: flip(data, end - 4, 0x20)),
        "nothing else knows what the record was"),
    Gap("a batch of a compacted log cut out where no index entry lies behind it", COMPACTED,
        with_batches(lambda d, t: drop(d, int(t.position[5]), int(t.size[5])), "3.log"),
        "compaction leaves the same"),
    Gap("the last batch cut off, and no checkpoint has the partition", "default-settings plain-0",
        with_batches(lambda d, t: cut(d, int(t.position[-1]))),
        "no other file has the end of the log"),
    Gap("segments removed that the cleaner has been to, the snapshots left", CLEANED,
        all_of(segment_files(5, ".timeindex", ".index", ".log"),
               segment_files(4, ".timeindex", ".index", ".log")),
        "it empties whole segments, and leaves the snapshot of a stop inside them"),
    Gap("index entries missing at the end", DENSE, on("0.index", cut, 200),
        "how dense an index is depends on a setting; lookups read more of the log"),
    Gap("index entries missing in the middle", DENSE, on("0.index", drop, 80, 400),
        "how dense an index is depends on a setting"),
    Gap("time entries missing in the middle", DENSE, on("0.timeindex", drop, 120, 600),
        "how dense an index is depends on a setting; only the closing entry must be there"),
    Gap("the active time index emptied", PLAIN, on("0.timeindex", cut, 0),
        "an active segment need not have a closing entry"),
    Gap("the last stable offset of an aborted transaction changed", TXNS,
        entry("1.txnindex", 0, last_stable_offset=lambda n: n - 3),
        "recovery computes others than appends do"),
    Gap("a snapshot removed", TXNS, remove("1.snapshot"), "a broker removes old ones itself"),
    Gap("a producer that the log does not know", TXNS,
        producers("1.snapshot", lambda rows: one_more(rows, producer_id=999)),
        "its batches may have been deleted by retention"),
    Gap("the timestamp of a producer", TXNS, producer("1.snapshot", 0, timestamp=5),
        "only expiration uses it, and releases differ in what they put there"),
    Gap("the coordinator epoch of a producer", TXNS, producer("1.snapshot", 0, coordinator_epoch=5),
        "markers emptied by compaction lost it"),
    Gap("a high watermark too low", PLAIN, offset(WATERMARK, "codec-none", 5),
        "a broker writes it every few seconds; it catches up"),
    Gap("a recovery point too low after a kill", KILLED, offset(RECOVERY, "codec-none", 5),
        "a broker writes it every minute; recovery only takes longer"),
    Gap("a recovery point too high, but in the log", "killed codec-none-0",
        offset(RECOVERY, "codec-none", 360), "what was flushed is nowhere else"),
    Gap("a log start in the log", PLAIN, offset(START, "codec-none", 300),
        "DeleteRecords does the same"),
    Gap("the topic id of a topic with one partition", "clean codec-gzip-0",
        on(METADATA, lambda d: d[:-22] + UUID.encode()),
        "only the metadata log knows the right one"),
    Gap("a row of an epoch without data dropped", "clean deleted-records.mid-0",
        epochs(lambda rows: rows[:1]), "the epoch left no batch"),
]  # fmt: skip
