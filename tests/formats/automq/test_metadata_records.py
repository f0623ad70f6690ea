"""The records of AutoMQ's metadata log equal what AutoMQ's own dump tool prints."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logtool.dump.log import Filter
from logtool.dump.stream import Dump
from logtool.formats.messages import codec, internal_topics, secrets
from logtool.formats.names import CLUSTER_METADATA
from logtool.log.decoded import decode, plain, without_secrets

LOG = "00000000000000000000.log"
LOGS = {
    "broker-crash": (f"meta/__cluster_metadata-0/{LOG}", "truth-metadata-records.jsonl"),
    "broker-clean": (f"meta/__cluster_metadata-0/{LOG}", "truth-metadata-records.jsonl"),
    "broker-clean later": (
        "meta-later/00000000000000001984-0000000003.checkpoint",
        "meta-later/truth-checkpoint-records.jsonl",
    ),
}
NO_OP = 20


def values(path: Path) -> list[tuple[int, bytes]]:
    return [
        (one["offset"], one["value"])
        for one in Dump([path], Filter(records=True, secrets=True))
        if isinstance(one, dict) and one["type"] == "record" and not one["control"]
    ]


@pytest.mark.parametrize("name", LOGS)
def test_every_record_equals_the_answer_of_automqs_dump_tool(
    name: str, scenario: Callable[[str], Path]
) -> None:
    path, answers = LOGS[name]
    folder = name.split()[0]
    truth: list[dict[str, Any]] = [
        json.loads(line)
        for line in (scenario(f"automq/{folder}.expected") / answers).read_text().splitlines()
    ]
    found = []
    for offset, value in values(scenario(f"automq/{folder}") / path):
        decoded = internal_topics.decode_framed(CLUSTER_METADATA, value)
        assert decoded.message
        assert decoded.data is not None
        _, _, at = internal_topics.parse_frame(value)
        assert codec.encode(decoded.message, decoded.version, decoded.data) == value[at:]
        if decoded.type != NO_OP:
            kind = decoded.message.name.upper()
            found.append((offset, kind, decoded.version, plain(decoded.data)))
    if "offset" not in truth[0]:
        found = [(0, *rest) for _, *rest in found]
    wanted = [
        (one.get("offset", 0), one["type"].replace("_", ""), one["version"], one["data"])
        for one in truth
    ]
    assert found == wanted


def key_value(version: int = 1) -> bytes:
    message = internal_topics.framed_message(CLUSTER_METADATA, 516)
    assert message
    pairs = [
        {"key": "_kafka_c/topic/0", "value": bytes(7) + b"\x21"},
        {"key": "__automq_node/1", "value": b'{"w":"0@s3://b?accessKey=open&secretKey=sesame"}'},
        {"key": "of.a.plugin", "value": b"sesame"},
    ]
    return b"\x01\x84\x04" + bytes([version]) + codec.encode(message, 1, {"keyValues": pairs})


def test_the_keys_of_an_object_store_are_hidden() -> None:
    value = key_value()
    shown = decode(CLUSTER_METADATA, None, value).value
    assert shown
    stream, node, plugin = (one["value"] for one in shown["data"]["keyValues"])
    assert base64.b64decode(stream) == bytes(7) + b"\x21"
    assert node == plugin == secrets.REDACTED
    starred = without_secrets(value)
    assert len(starred) == len(value)
    assert bytes(7) + b"\x21" in starred
    assert not {part for part in (b"open", b"sesame", b"s3://") if part in starred}


def test_a_version_that_is_not_known_is_hidden_as_a_whole() -> None:
    starred = without_secrets(key_value(version=2))
    assert starred[:4] == b"\x01\x84\x04\x02"
    assert set(starred[4:]) == {ord("*")}
