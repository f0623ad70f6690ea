"""Log dirs with an old copy of ``__transaction_state``: its end is lost, and a transaction open."""

from collections.abc import Sequence
from pathlib import Path

import metadata_records
from scans import batch, marker
from transaction_state import FIRST, Keyed, entry, write

from logtool.formats import offset_checkpoint
from logtool.formats.record_batch import TRANSACTIONAL

PRODUCER = 5
NAME = "payout-worker"
BEGUN = 1_700_000_000_000
"""Time of all records, in ms since 1970."""
_UUIDS = ("A" * 21 + "g", "B" * 21 + "g")
COMPLETE = entry(NAME, "CompleteCommit", PRODUCER, transactionLastUpdateTimestampMs=BEGUN)
"""State that is left of the application: its first transaction is over."""
NEEDED = 5
"""Entries of what the producer did later: InitProducerId, three of a commit, and Ongoing."""


def data(offset: int, epoch: int, sequence: int = 0) -> bytes:
    """Return one transactional record."""
    return batch(
        offset, b"value", codec=TRANSACTIONAL, producer_id=PRODUCER, producer_epoch=epoch,
        base_sequence=sequence,
    )  # fmt: skip


def ended(offset: int, epoch: int, *, commit: bool = True) -> bytes:
    """Return a marker."""
    return marker(offset, commit=commit, producer_id=PRODUCER, producer_epoch=epoch)


SESSIONS = (
    data(0, 0), ended(1, 0),
    data(2, 1), ended(3, 1),
    data(4, 1, 1),
)  # fmt: skip
"""A transaction before the copy was made, one after it, and the open one, from offset 4."""


def log_dir(
    home: Path,
    *,
    lost: int = NEEDED,
    left: Sequence[Keyed] = (COMPLETE,),
    batches: Sequence[bytes] = SESSIONS,
    replicas: Sequence[int] = (1,),
    node: int = 1,
    clean: bool = True,
    metadata: bool = True,
) -> Path:
    """Make the log dir of a node whose only coordinator log has lost entries at its end."""
    (home / "payouts-0").mkdir(parents=True)
    (home / "payouts-0" / FIRST).write_bytes(b"".join(batches))
    write(home, *left)
    if metadata:
        values = [
            each
            for name, uuid, nodes in (
                ("payouts", _UUIDS[0], [node]), ("__transaction_state", _UUIDS[1], replicas),
            )
            for each in (
                metadata_records.topic(name, uuid), metadata_records.partition(uuid, 0, nodes, node)
            )
        ]  # fmt: skip
        metadata_records.log_dir_of(home, values)
    rows = {("payouts", 0): len(batches), ("__transaction_state", 0): len(left) + lost}
    content = offset_checkpoint.encode(offset_checkpoint.build(rows))
    for name in ("recovery-point", "replication"):
        (home / f"{name}-offset-checkpoint").write_bytes(content)
    (home / "meta.properties").write_text(f"version=1\nnode.id={node}\ncluster.id=AAAA\n")
    if clean:
        (home / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return home
