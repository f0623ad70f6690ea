"""Common parts of the table of damage: a row, and the log dirs that rows begin with."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from crc32c import crc32c
from damage import overwrite
from log_dir_damage import (
    At,
    Damage,
    home_of,
    new_batch,
    own,
    with_batches,
)

from logtool.formats import record_batch
from logtool.formats.record_batch import BatchTable

RECOVERY, WATERMARK = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
START, CLEANER = "log-start-offset-checkpoint", "cleaner-offset-checkpoint"
EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"
META, QUORUM = "meta.properties", "quorum-state"
CLEAN = ".kafka_cleanshutdown"

Expected = list[tuple[str, str, int | At | None]]
"""(code, file, position); names as in `log_dir_damage`, ``.`` for the partition, ``..`` for the log
dir."""


@dataclass(frozen=True)
class Row:
    id: str
    home: str
    """Scenario, and the partitions taken from it."""
    damage: Damage
    expected: Expected
    names: tuple[str, ...] = ()
    """Words and numbers that some message must contain."""
    gone: Expected | tuple[()] = ()
    """Findings in the undamaged copy alone."""
    largest_log: int = record_batch.MAX_SEGMENT_SIZE
    """Size of the largest log that a broker opens."""


BEHIND_ONE = At(lambda path: path.stat().st_size + len(new_batch(0, b"x")))
PLAIN = "clean codec-none-0"
KILLED = "killed codec-none-0"
SMALL = "clean small-segments-0"
DENSE = "clean index.dense-0"
TXNS = "clean tx.mixed-0"
INTERLEAVED = "clean tx-interleaved_v2-0"
COMPACTED = "clean compacted.keys-0"
CLEANED = "cleaned compact.plain-0"
CONTROLLER = "clean __cluster_metadata-0"
UUID = "J8aAPcfLQt2bqs1JT_rMgQ"
"""An id of a topic or a directory, in no fixture."""


def zeros(data: bytes) -> bytes:
    return bytes(len(data))


def one_more(rows: np.ndarray, **fields: int) -> np.ndarray:
    """Return the rows and another of the given fields."""
    new = np.zeros(1, rows.dtype)
    for name, value in fields.items():
        new[name] = value
    return np.concatenate([rows, new]).astype(rows.dtype)


def with_sound_crc(
    number: int, change: Callable[[bytes, int], bytes], log: str = "0.log"
) -> Damage:
    """Change a batch, and make its CRC right; `change` gets the bytes and the end of the batch."""

    def changed(data: bytes, table: BatchTable) -> bytes:
        start, end = int(table.position[number]), int(table.end_position[number])
        new = change(data, end)
        return overwrite(new, start + 17, crc32c(new[start + 21 : end]).to_bytes(4, "big"))

    return with_batches(changed, log)


def place(home: Path, wanted: Expected | tuple[()]) -> Counter[tuple[str, str, int | None]]:
    """Return the expected findings with the names and positions they have in `home`."""
    found: Counter[tuple[str, str, int | None]] = Counter()
    for code, name, position in wanted:
        if name in (".", ".."):
            path = own(home) if name == "." else home
        else:
            path = home / name if "/" in name else home_of(home, name)
        at = position.resolve(path) if isinstance(position, At) else position
        found[code, path.name, at] += 1
    return found
