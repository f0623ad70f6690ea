"""Small first inputs, cut from the files of real brokers: ``python -m fuzz.seeds``."""

import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from logtool.formats import compression, record, record_batch

TESTS = Path(__file__).parents[1]
CORPUS = Path(__file__).parent / "corpus"
SCENARIOS = ("4.3.1/killed", "3.9.2/clean", "2.8.2/magic-0", "2.8.2/magic-1")
MOST_OF_EACH = 6
LARGEST = 900
"""Largest size of a seed in bytes; small seeds are mutated fast."""
_BY_NAME = {
    ".kafka_cleanshutdown": "clean-shutdown",
    "leader-epoch-checkpoint": "leader-epoch-checkpoint",
    "meta.properties": "meta-properties",
    "partition.metadata": "partition-metadata",
    "quorum-state": "quorum-state",
    ".index": "offset-index",
    ".timeindex": "time-index",
    ".txnindex": "transaction-index",
    ".snapshot": "producer-snapshot",
}


def seeds(home: Path) -> Iterator[tuple[str, bytes]]:
    """Yield targets and inputs from the log dirs below `home`."""
    for path in sorted(home.rglob("*")):
        yield "names", path.name.encode()
        if path.is_dir():
            continue
        data = path.read_bytes()
        target = _BY_NAME.get(path.name) or _BY_NAME.get(path.suffix)
        if path.name.endswith("-offset-checkpoint"):
            target = "offset-checkpoint"
        if target and data:
            yield target, data
        if path.suffix == ".log":
            yield from _of_log(path, data)


def _values(payload: bytes, count: int) -> Iterator[bytes]:
    table, _ = record.parse(memoryview(payload), count)
    for at, size in zip(table.value_position.tolist(), table.value_length.tolist(), strict=True):
        yield payload[at : at + max(size, 0)]


def _of_log(path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the first batches of a log and their contents."""
    at = 0
    entries: list[bytes] = []
    while len(data) - at > 26 and len(entries) < 3:
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        entries.append(data[at:end])
        at = end
    if not entries or len(entries[0]) < 26:
        return
    some = b"".join(entries)
    yield "scan", b"\0" + some
    yield "kernel-walk", b"\0\0\7" + some
    for entry in entries:
        magic, attributes = entry[16], entry[22] if entry[16] == 2 else entry[17]
        if magic < 2:
            yield "legacy", entry
            continue
        codec, body = attributes & 7, entry[record_batch.HEADER_SIZE :]
        count = entry[57:61]
        yield "batch-header", entry
        yield "compression", bytes([codec]) + body
        payload = bytes(compression.decompress(codec, memoryview(body)))
        if int.from_bytes(count, "big") < 200:
            yield "records", count[2:] + payload[:LARGEST]
            yield "kernel-decode", bytes([1, count[3]]) + payload[:LARGEST]
        yield "kernel-render", bytes([codec, 0, 1, 0, 20, 0, 40]) + entry[:8] + payload[:200]
        if entry[21] == 0 and attributes & 0x20:
            yield "control-record", entry
        if path.parent.name.startswith("__cluster_metadata"):
            for value in _values(payload, int.from_bytes(count, "big")):
                yield "metadata-record", value


def main() -> None:
    """Write the corpus again."""
    shutil.rmtree(CORPUS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as home:
        for name in SCENARIOS:
            with tarfile.open(TESTS / "data" / f"{name}.tar.xz") as tar:
                tar.extractall(Path(home) / name.replace("/", "-"), filter="tar")
        chosen: dict[str, dict[str, bytes]] = {}
        for target, data in seeds(Path(home)):
            some = chosen.setdefault(target, {})
            if 0 < len(data) <= LARGEST and len(some) < MOST_OF_EACH * (
                4 if target == "names" else 1
            ):
                some.setdefault(hashlib.sha256(data).hexdigest()[:16], data)
    for target, some in chosen.items():
        (CORPUS / target).mkdir(parents=True)
        for name, data in some.items():
            (CORPUS / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
