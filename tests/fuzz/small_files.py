"""Targets for the small files: any bytes parse, encode returns them, check never fails."""

from collections.abc import Callable
from typing import Any

from logtool.formats import (
    clean_shutdown,
    kraft_snapshot,
    leader_epoch_checkpoint,
    meta_properties,
    names,
    offset_checkpoint,
    offset_index,
    partition_metadata,
    producer_snapshot,
    quorum_state,
    time_index,
    transaction_index,
)

Target = Callable[[bytes], None]


def of_format(module: Any, **facts: int) -> Target:
    """Return the target of a format; `facts` are arguments of its check."""

    def prove(data: bytes) -> None:
        value = module.parse(data)
        assert module.encode(value) == data
        for found in module.check(value, **facts):
            assert found.code.count("/") == 1
            assert found.message.isascii()
            assert found.message.isprintable()
            assert found.position is not None
            assert 0 <= found.position <= found.position + (found.length or 0) <= len(data)

    return prove


def every_name(data: bytes) -> None:
    """Read any bytes as the name of a file or directory."""
    name = data.decode("utf-8", "surrogateescape")
    names.parse_directory(name)
    names.parse_root_file(name)
    names.parse_remote_index(name)
    for metadata_log in (False, True):
        found = names.parse_partition_file(name, metadata_log=metadata_log)
        exact = found.reception is names.Reception.EXACT and found.offset is not None
        if exact and found.kind is names.FileKind.LOG:
            rest = name.removesuffix(str(found.state))
            assert names.format_partition_file(found.offset or 0, found.kind) == rest
    snapshot = kraft_snapshot.parse(name)
    assert snapshot is None or kraft_snapshot.encode(snapshot) == name


TARGETS: dict[str, Target] = {
    "clean-shutdown": of_format(clean_shutdown),
    "leader-epoch-checkpoint": of_format(leader_epoch_checkpoint),
    "meta-properties": of_format(meta_properties),
    "names": every_name,
    "offset-checkpoint": of_format(offset_checkpoint),
    "offset-index": of_format(offset_index, log_size=5000),
    "partition-metadata": of_format(partition_metadata),
    "producer-snapshot": of_format(producer_snapshot, end_offset=60),
    "quorum-state": of_format(quorum_state),
    "time-index": of_format(time_index),
    "transaction-index": of_format(transaction_index, base_offset=55),
}
