"""A streams group (KIP-1071) of one member, joined without Kafka Streams.

The first heartbeat sends the topology, the last one accepts the assigned tasks. The requests are
built from the schemas in the jars.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import time
import zipfile
from typing import Any

from broker import message_tables
from broker.install import HarnessError, install
from deadlines import deadline_in

from logtool.formats.messages import codec, schema

_HEARTBEAT = 88
_NOT_YET = (14, 15, 16)
"""Errors of a coordinator that loads, is not available yet, or moves."""


def join(bootstrap: str, release: str, group: str, topic: str) -> None:
    """Join a group whose topology reads a topic, and accept the assigned tasks."""
    topology = {
        "epoch": 1,
        "subtopologies": [{"subtopologyId": "0", "sourceTopics": [topic]}],
    }
    member = {"groupId": group, "memberId": "the-member", "processId": "the-process"}
    none: dict[str, Any] = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}
    first = {"rebalanceTimeoutMs": 1000, "topology": topology, "clientTags": []}
    answer = _heartbeat(bootstrap, release, member | first | none)
    deadline = deadline_in(60)
    while not answer["activeTasks"]:
        if time.monotonic() > deadline:
            raise HarnessError(f"{group} was assigned nothing")
        time.sleep(0.1)
        answer = _heartbeat(bootstrap, release, member | {"memberEpoch": answer["memberEpoch"]})
    taken = none | {"activeTasks": answer["activeTasks"]}
    _heartbeat(bootstrap, release, member | {"memberEpoch": answer["memberEpoch"]} | taken)


def _heartbeat(bootstrap: str, release: str, fields: dict[str, Any]) -> dict[str, Any]:
    request = codec.encode(_message(release, "StreamsGroupHeartbeatRequest"), 0, fields)
    deadline = deadline_in(60)
    while True:
        answer = codec.decode(
            _message(release, "StreamsGroupHeartbeatResponse"), 0, _exchange(bootstrap, request)
        )
        error = answer["errorCode"]
        if error == 0:
            return answer
        if error not in _NOT_YET or time.monotonic() > deadline:
            raise HarnessError(f"streams group: error {error}, {answer['errorMessage']}")
        time.sleep(0.1)


def _exchange(bootstrap: str, body: bytes) -> bytes:
    """Send a request with header version 2; returns the body of an answer with version 1."""
    host, _, port = bootstrap.rpartition(":")
    head = struct.pack(">hhih", _HEARTBEAT, 0, 1, len(b"harness")) + b"harness\0"
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        with connection.makefile("rb") as answer:
            (size,) = struct.unpack(">i", answer.read(4))
            return answer.read(size)[5:]


def _message(release: str, name: str) -> schema.MessageSchema:
    path = install(release) / f"kafka-clients-{release}.jar"
    with zipfile.ZipFile(path) as archive:
        text = archive.read(f"common/message/{name}.json").decode()
    described = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    described["apiKey"] = "-"
    return schema.parse("\n".join(message_tables.message({**described}))).named(name)
