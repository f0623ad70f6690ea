"""All rows of the table of damage, and the log dirs that they begin with."""

from collections.abc import Callable
from pathlib import Path

from damage import copied
from damage_rows import batches, checkpoints, indexes, segments
from verification import small_log_dir

VERSION = "4.3.1"

TABLE = [
    *batches.BATCHES, *batches.TAILS, *segments.CHAIN, *segments.NAMES, *indexes.INDEXES,
    *indexes.TRANSACTIONS, *indexes.SNAPSHOTS, *checkpoints.LEADER_EPOCHS, *checkpoints.STATE,
    *checkpoints.SEVERAL,
]  # fmt: skip


def log_dir_of(scenario: Callable[[str], Path], text: str, target: Path) -> Path:
    """Return a copy of the log dir that a row begins with: its scenario and its partitions."""
    name, *partitions = text.split()
    source = scenario(f"{VERSION}/{name}")
    return small_log_dir(source, target, *partitions) if partitions else copied(source, target)
