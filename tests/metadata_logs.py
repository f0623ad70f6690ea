"""Log dirs of controllers in tests: metadata logs of a few batches, and the other files there."""

import json
from collections.abc import Sequence
from pathlib import Path

import metadata_records

from logtool.formats import control_record, record, record_batch
from logtool.formats.messages import codec, schema
from logtool.formats.record_batch import CONTROL
from logtool.metadata.image import DIRECTORY
from logtool.quorum.voters import Endpoint, Voter, to_record

ELECTION: dict[str, object] = {
    "leaderId": 3, "leaderEpoch": 1, "votedId": -1, "votedDirectoryId": "A" * 22, "data_version": 1,
}  # fmt: skip
"""The content of quorum-state after an election."""
CLUSTER = "bG9ndG9vbC10ZXN0cy0wMQ"


def directory_id(node: int) -> str:
    return f"bG9ndG9vbC1kaXJzLS0w{node}Q"


def voter(node: int) -> Voter:
    endpoint = Endpoint("CONTROLLER", f"controller-{node}.invalid", 9090 + node)
    return Voter(node, directory_id(node), (endpoint,))


def control(
    base_offset: int, kind: int, *values: bytes, epoch: int = 1, kinds: Sequence[int] = ()
) -> bytes:
    """Return a control batch; `kinds` are those of the further values, by default the same."""
    types = (kind, *kinds, *[kind] * (len(values) - 1 - len(kinds)))
    records = [
        record.Record(number, key=control_record.KEY.pack(0, one), value=value)
        for number, (one, value) in enumerate(zip(types, values, strict=True))
    ]
    return record_batch.encode(
        record.encode(records),
        base_offset=base_offset,
        last_offset_delta=len(records) - 1,
        record_count=len(records),
        leader_epoch=epoch,
        attributes=CONTROL,
    )


def voters_batch(base_offset: int, voters: Sequence[int | Voter], epoch: int = 1) -> bytes:
    """Return the batch with which a quorum begins: kraft.version 1 and its voters, two offsets."""
    known = [one if isinstance(one, Voter) else voter(one) for one in voters]
    return control(
        base_offset, control_record.KRAFT_VERSION, bytes((0, 0, 0, 1, 0)),
        to_record(known), epoch=epoch,
        kinds=(control_record.KRAFT_VOTERS,),
    )  # fmt: skip


def data(base_offset: int, *values: bytes, epoch: int = 1) -> bytes:
    """Return a batch of metadata records."""
    batch = metadata_records.batch(base_offset, *values)
    if epoch == 1:
        return batch
    header = bytearray(batch)
    header[12:16] = epoch.to_bytes(4, "big")  # is not covered by the CRC
    return bytes(header)


def registration(node: int, role: str = "broker") -> bytes:
    """Return the record that registers a broker or a controller."""
    message = schema.table("cluster_metadata").named(f"Register{role.title()}Record")
    fields = {f"{role}Id": node, "incarnationId": CLUSTER, "endPoints": [], "features": []}
    more = {"brokerEpoch": 5, "rack": None} if role == "broker" else {}
    return metadata_records.framed(message.type, 0)[:-1] + codec.encode(message, 0, fields | more)


STATIC: dict[str, object] = {"data_version": 0, "clusterId": "", "appliedOffset": 0}
"""The further content of quorum-state in a static quorum; its voters are those of `static`."""


def static(*voters: int, epoch: int = 1) -> dict[str, object]:
    """Return the content of quorum-state in a static quorum."""
    return STATIC | {"leaderEpoch": epoch, "currentVoters": [{"voterId": one} for one in voters]}


NO_OP = metadata_records.framed(20, 0)


def log_dir(home: Path, node: int, *batches: bytes, state: dict[str, object] | None = None) -> Path:
    """Write the log dir of a controller and return it."""
    path = home / f"node-{node}"
    inner = path / DIRECTORY
    inner.mkdir(parents=True)
    (path / "meta.properties").write_text(
        f"version=1\nnode.id={node}\ncluster.id={CLUSTER}\ndirectory.id={directory_id(node)}\n"
    )
    (inner / f"{0:020d}.log").write_bytes(b"".join(batches))
    (inner / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    (inner / "quorum-state").write_text(json.dumps(ELECTION | (state or {})))
    return path
