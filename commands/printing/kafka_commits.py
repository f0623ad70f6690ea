"""The texts that Kafka's dump tool prints for commits of offsets, for a block of them at once.

The order of the fields in a value comes from the object path, which decodes one value of each
version.
"""

from itertools import accumulate, pairwise

import numpy as np

from logtool.commands.printing.kafka_text import java_json
from logtool.dump.blocks import Block
from logtool.formats import _offset_commits, java_text
from logtool.formats.names import CONSUMER_OFFSETS
from logtool.formats.record_batch import Column
from logtool.log.decoded import decode
from logtool.log.record_table import RecordTable

_DELETED = " payload: <DELETE>"
_NUMBERS = {"offset": 1, "leaderEpoch": 2, "commitTimestamp": 3, "expireTimestamp": 4}
"""Columns of `_offset_commits.decode_commits` by the names of fields."""
_ID_SIZE = 16
_MOST_KEYS = 65536


class Contents:
    """Makes the texts of blocks, one after the other; it keeps those of some keys."""

    def __init__(self) -> None:
        self._keys: dict[bytes, str] = {}

    def __call__(self, block: Block) -> tuple[bytes, Column]:
        """Return the texts of a block, which are ASCII, and where that of each record stands."""
        records, fields = block.records, block.commits
        assert records is not None
        assert fields is not None
        payloads = [_DELETED] * len(fields)
        live = np.flatnonzero(fields[:, 0] == _offset_commits.COMMIT_VALUE)
        data = np.frombuffer(records.data, np.uint8)
        version = data[records.spans.value_position[live] + 1].astype(np.int64)
        shape = 2 * version + (fields[live, 7] >= 0)
        for one in np.unique(shape).tolist():
            rows = live[shape == one]
            texts = _payloads(records, rows, fields[rows])
            for row, text in zip(rows.tolist(), texts, strict=True):
                payloads[row] = text
        keys = (self._key(records.key(row) or b"") for row in range(len(payloads)))
        texts = [key + payload for key, payload in zip(keys, payloads, strict=True)]
        places = np.array([*pairwise(accumulate(map(len, texts), initial=0))], np.int64)
        return "".join(texts).encode(), places.reshape(len(texts), 2)

    def _key(self, key: bytes) -> str:
        text = self._keys.get(key)
        if text is None:
            if len(self._keys) >= _MOST_KEYS:
                self._keys.clear()
            text = self._keys[key] = _key_text(key)
        return text


def _key_text(key: bytes) -> str:
    """Return the text of the key of a commit that was decoded before."""
    behind = 4 + int.from_bytes(key[2:4], "big")
    group, topic = (java_json(name.decode()) for name in (key[4:behind], key[behind + 2 : -4]))
    kind, number = int.from_bytes(key[:2], "big"), int.from_bytes(key[-4:], "big", signed=True)
    data = f'{{"group":{group},"topic":{topic},"partition":{number}}}'
    return f' key: {{"type":"{kind}","data":{data}}}'


def _payloads(records: RecordTable, rows: Column, fields: Column) -> list[str]:
    """Return the texts of values of one version, all of them with a topic id, or none."""
    first = int(rows[0])
    value = decode(CONSUMER_OFFSETS, records.key(first), records.value(first)).value
    assert value is not None
    columns: list[list[int] | list[str]] = []
    for name, example in value["data"].items():
        if name in _NUMBERS:
            columns.append(fields[:, _NUMBERS[name]].tolist())
        elif name == "metadata":
            places = zip(fields[:, 5].tolist(), fields[:, 6].tolist(), strict=True)
            columns.append(
                [java_json(bytes(records.data[at : at + n]).decode()) for at, n in places]
            )
        elif fields[0, 7] < 0:
            columns.append([java_json(example)] * len(rows))
        else:
            ids = (bytes(records.data[at : at + _ID_SIZE]) for at in fields[:, 7].tolist())
            columns.append([java_json(java_text.format_uuid(one)) for one in ids])
    cells = ",".join(f'"{name}":%s' for name in value["data"])
    text = f' payload: {{"version":"{value["version"]}","data":{{{cells}}}}}'
    return [text % values for values in zip(*columns, strict=True)]
