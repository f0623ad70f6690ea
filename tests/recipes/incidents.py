"""The directories of the recipes: log dirs of real brokers, with the damage of each incident."""

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from log_dir_damage import new_batch

DATA = Path(__file__).resolve().parent.parent / "data" / "4.3.1"


def killed(work: Path) -> Path:
    """Unpack as ``data`` the log dir of a broker that was killed."""
    return _unpack("killed", work)


def stopped(work: Path) -> Path:
    """Unpack as ``data`` the log dir of a broker that was stopped in order."""
    return _unpack("clean", work)


def forgotten(work: Path) -> None:
    """Empty the coordinators' logs, so that no coordinator ends the open transactions.

    They are those of a topic that was made again: no file shows that they had records.
    """
    data = killed(work)
    for folder in data.glob("__transaction_state-*"):
        for file in (*folder.glob("*.snapshot"), folder / "leader-epoch-checkpoint"):
            file.unlink()
        for log in folder.glob("*.log"):
            log.write_bytes(b"")
    # Rows of the checkpoints would say that the ends of these logs are lost.
    for name in ("replication", "recovery-point"):
        path = data / f"{name}-offset-checkpoint"
        version, _, *rows = path.read_text().splitlines()
        left = [row for row in rows if not row.startswith("__transaction_state ")]
        path.write_text("\n".join([version, str(len(left)), *left]) + "\n")


def disk_full(work: Path) -> None:
    """Cut the end of a log with acknowledged records, as a full disk does."""
    data = killed(work)
    log = data / "codec-zstd-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-100])


def corrupt_record(work: Path) -> None:
    """Flip one bit of a log; the other broker has the log as it was."""
    data = stopped(work)
    shutil.copytree(data, work / "other")
    log = data / "codec-none-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 0x01
    log.write_bytes(content)


def replicas(work: Path) -> None:
    """Unpack the log dirs of three brokers that were killed."""
    with tarfile.open(DATA / "replicas.tar.xz") as tar:
        tar.extractall(work, filter="tar")
    for node in sorted((work / "replicas").iterdir()):
        node.rename(work / node.name)


def missing_offsets(work: Path) -> None:
    """Remove a log in the middle of a partition, and leave its indexes."""
    data = stopped(work)
    logs = sorted((data / "small-segments-0").glob("*.log"))
    logs[len(logs) // 2].unlink()


def indexes_deleted(work: Path) -> None:
    """Remove .index files."""
    data = stopped(work)
    for index in data.glob("codec-*/*.index"):
        index.unlink()


def wrong_unit(work: Path) -> None:
    """Append a batch of a producer that sets timestamps in microseconds."""
    data = stopped(work)
    log = data / "codec-none-0" / "00000000000000000000.log"
    stamp = 1_763_000_000_000_000
    batch = new_batch(360, b"x", base_timestamp=stamp, max_timestamp=stamp, producer_id=7,
                      producer_epoch=0, base_sequence=0)  # fmt: skip
    log.write_bytes(log.read_bytes() + batch)


def no_recovery_point(work: Path) -> None:
    """Remove the checkpoint with the recovery points, so that a start reads every segment."""
    data = killed(work)
    (data / "recovery-point-offset-checkpoint").unlink()


def topic_deleted(work: Path) -> None:
    """Rename the partition dirs of a topic as a broker does when the topic is deleted."""
    data = stopped(work)
    for number, folder in enumerate(sorted(data.glob("codec-none-*"))):
        folder.rename(folder.with_name(f"{folder.name}.{number:032x}-delete"))


def tiered_disk_lost(work: Path) -> None:
    """Remove the partition dirs of a tiered topic, as a new disk does; its objects are there."""
    with tarfile.open(DATA.parent / "tiered" / f"{DATA.name}.tar.xz") as tar:
        tar.extractall(work, filter="tar")
    for name in ("data", "objects"):
        (work / DATA.name / name).rename(work / name)
    (work / DATA.name).rmdir()
    for folder in (work / "data").glob("aged-*"):
        shutil.rmtree(folder)


INCIDENTS: Final[dict[str, Callable[[Path], object]]] = {
    "01-disk-full": disk_full,
    "02-corrupt-record": corrupt_record,
    "03-best-replica": replicas,
    "04-stuck-last-stable-offset": forgotten,
    "05-missing-offsets": missing_offsets,
    "06-indexes-deleted": indexes_deleted,
    "07-slow-recovery": no_recovery_point,
    "08-bad-timestamps": wrong_unit,
    "09-nightly-scrub": stopped,
    "10-copy-and-prove": stopped,
    "11-record-by-key": stopped,
    "12-export-a-range": stopped,
    "13-offsets-of-groups": killed,
    "14-what-eats-the-disk": killed,
    "15-replica-at-hand": corrupt_record,
    "16-what-retention-deletes": stopped,
    "17-topic-not-compacted": forgotten,
    "18-topic-deleted": topic_deleted,
    "19-cut-by-an-election": replicas,
    "20-tiered-disk-lost": tiered_disk_lost,
}
"""Functions that prepare the directory of each recipe, by its name."""


def _unpack(name: str, work: Path) -> Path:
    with tarfile.open(DATA / f"{name}.tar.xz") as tar:
        tar.extractall(work, filter="tar")
    return (work / name).rename(work / "data")
