"""Objects as the plugin of Aiven writes them, made of those of Kafka's own plugin for tests."""

import base64
import json
from pathlib import Path
from typing import Any

import cramjam

from logtool.formats import rsm_manifest

INDEXES = {"offset": ".index", "timestamp": ".timeindex", "producerSnapshot": ".snapshot",
           "leaderEpoch": ".leader_epoch_checkpoint", "transaction": ".txnindex"}  # fmt: skip


def write(
    source: Path,
    home: Path,
    topic: str,
    *,
    chunk_size: int = 4 * 1024 * 1024,
    compress: bool = False,
    encrypt: bool = False,
) -> Path:
    """Write the segments of a topic; what stands for encrypted bytes is not encrypted at all."""
    for folder in source.glob(f"{topic}-*"):
        name, _, topic_id = folder.name[:-23], "", folder.name[-22:]
        partition = name.rpartition("-")[2]
        target = home / f"{topic}-{topic_id}" / partition
        target.mkdir(parents=True)
        for log in folder.glob("*.log"):
            _segment(log, target / log.stem, topic, topic_id, int(partition),
                     chunk_size=chunk_size, compress=compress, encrypt=encrypt)  # fmt: skip
    return home


def _segment(
    log: Path, key: Path, topic: str, topic_id: str, partition: int,
    *, chunk_size: int, compress: bool, encrypt: bool,
) -> None:  # fmt: skip
    data = log.read_bytes()
    chunks = [data[at : at + chunk_size] for at in range(0, len(data), chunk_size)]
    if compress:
        chunks = [bytes(cramjam.zstd.compress(one)) for one in chunks]
    if encrypt:
        chunks = [_encrypted(one) for one in chunks]
    sizes = tuple(map(len, chunks))
    index: dict[str, Any] = {"originalChunkSize": chunk_size, "originalFileSize": len(data)}
    if compress:
        packed = bytes(cramjam.zstd.compress(rsm_manifest.encode_sizes(sizes)))
        index = {"type": "variable", **index,
                 "transformedChunks": base64.b64encode(packed).decode()}  # fmt: skip
    else:
        index = {"type": "fixed", **index, "transformedChunkSize": sizes[0],
                 "finalTransformedChunkSize": sizes[-1]}  # fmt: skip
    indexes, ranges = b"", {}
    for name, suffix in INDEXES.items():
        file = log.with_suffix(suffix)
        content = file.read_bytes() if file.exists() else None
        if content is not None and encrypt:
            content = _encrypted(content)
        ranges[name] = None if content is None else {"position": len(indexes), "size": len(content)}
        indexes += content or b""
    first = int(log.name.partition("-")[0])
    manifest = {
        "version": "1", "chunkIndex": index, "segmentIndexes": ranges, "compression": compress,
        **({"encryption": {"dataKey": "key:AAAA", "aad": "AAAA"}} if encrypt else {}),
        "remoteLogSegmentMetadata": {
            "remoteLogSegmentId": {
                "topicIdPartition": {
                    "topicId": topic_id, "topicPartition": {"topic": topic, "partition": partition},
                },
                "id": log.stem.partition("-")[2],
            },
            "startOffset": first, "endOffset": first, "maxTimestampMs": 0, "brokerId": 1,
            "eventTimestampMs": 0, "segmentLeaderEpochs": {"0": first},
        },
    }  # fmt: skip
    key.with_name(key.name + ".log").write_bytes(b"".join(chunks))
    key.with_name(key.name + ".indexes").write_bytes(indexes)
    key.with_name(key.name + ".rsm-manifest").write_text(json.dumps(manifest))


def _encrypted(data: bytes) -> bytes:
    """Return bytes that are as many as encrypted ones, and say nothing."""
    return bytes(rsm_manifest.OVERHEAD + len(data))
