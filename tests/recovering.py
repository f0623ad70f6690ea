"""Names and helpers of tests that recover a small log dir."""

from pathlib import Path

from verification import batches

from logtool.formats import offset_checkpoint

POINTS = "recovery-point-offset-checkpoint"
PARTITIONS = ("small-segments-0", "codec-none-0", "tx.mixed-0", "__cluster_metadata-0")
TRUNCATE = ("recover", "--truncate-to", "small-segments-0=100")


def logs(home: Path) -> list[Path]:
    """Return the logs of small-segments-0, oldest first."""
    return sorted((home / "small-segments-0").glob("*.log"))


def points(home: Path) -> dict[tuple[str, int], int]:
    """Return the recovery points of a log dir."""
    return dict(offset_checkpoint.parse((home / POINTS).read_bytes()).offsets)


def offsets(home: Path) -> list[tuple[int, int]]:
    """Return the first and the last offset of each batch of small-segments-0."""
    tables = [batches(log) for log in logs(home) if log.stat().st_size]
    return [
        (int(first), int(last))
        for table in tables
        for first, last in zip(table.base_offset, table.last_offset, strict=True)
    ]
