"""Writes formats/messages/tables from the message schemas in the jars of a Kafka release.

Run as ``make messages``. The schemas are JSON with comments; only facts are taken from them: names,
types, versions, tags and defaults.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broker.install import KAFKA_NEWEST, install

TABLES = Path(__file__).resolve().parents[2] / "formats" / "messages" / "tables"
SOURCES = {
    "consumer_offsets": ("kafka-group-coordinator", "common/message/", ""),
    "transaction_state": ("kafka-transaction-coordinator", "common/message/", ""),
    "share_group_state": ("kafka-share-coordinator", "common/message/", ""),
    "remote_log_metadata": ("kafka-storage", "message/Remote", ""),
    "cluster_metadata": ("kafka-metadata", "common/metadata/", ""),
    "quorum_state": ("kafka-raft", "common/message/", ""),
    "control_records": (
        "kafka-clients", "common/message/",
        "EndTxnMarker|LeaderChangeMessage|SnapshotHeaderRecord|SnapshotFooterRecord"
        "|KRaftVersionRecord|VotersRecord",
    ),
    "consumer_protocol": (
        "kafka-clients", "common/message/", "ConsumerProtocol(Subscription|Assignment)",
    ),
}  # fmt: skip
"""By table: the jar, how the names of the schemas begin in it, and which of them are meant."""
PARTS = {"coordinator-key": "key", "coordinator-value": "value", "metadata": "value"}
EMPTY = (None, "", 0, "0", "false", "0x0000")


def schemas(release: str, name: str) -> list[dict[str, Any]]:
    """Return the schemas of a table in a release, by part, type and name; empty without the jar."""
    jar, prefix, wanted = SOURCES[name]
    path = install(release) / f"{jar}-{release}.jar"
    if not path.exists():
        return []
    with zipfile.ZipFile(path) as archive:
        found = [
            json.loads(re.sub(r"^\s*//.*$", "", archive.read(one).decode(), flags=re.MULTILINE))
            for one in archive.namelist()
            if one.startswith(prefix) and one.endswith(".json")
            and re.fullmatch(wanted or ".*", Path(one).stem)
        ]  # fmt: skip
    return sorted(found, key=lambda one: (part(one), one.get("apiKey", -1), one["name"]))


def part(schema: dict[str, Any]) -> str:
    """Return which part of a record a schema describes."""
    return PARTS.get(schema["type"], "data")


def table(release: str, name: str) -> str:
    """Return the text of a table, made from the jars of a release."""
    lines = [f"# Kafka {release}, {SOURCES[name][0]}; written by make messages."]
    for schema in schemas(release, name):
        lines += ["", *message(schema)]
    return "\n".join(lines) + "\n"


def message(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of one message."""
    words = [part(schema), str(schema.get("apiKey", "-")), schema["name"], schema["validVersions"]]
    if schema["flexibleVersions"] != "none":
        words += ["flexible", schema["flexibleVersions"]]
    yield " ".join(words)
    common = {one["name"]: one["fields"] for one in schema.get("commonStructs", [])}
    yield from fields(schema["fields"], common, 1)


def fields(described: list[dict[str, Any]], common: dict[str, Any], level: int) -> Iterator[str]:
    """Yield the lines of fields and of the fields in their structures."""
    for one in described:
        kind = one["type"].removeprefix("[]")
        inner = one.get("fields") or common.get(kind)
        array = "[]" if one["type"].startswith("[]") else ""
        words = [one["name"][0].lower() + one["name"][1:], array + ("struct" if inner else kind)]
        # Three fields name no versions but those of their tag.
        words.append(one.get("versions") or one["taggedVersions"])
        if "nullableVersions" in one:
            words += ["null", one["nullableVersions"]]
        if "tag" in one:
            words += ["tag", str(one["tag"]), one["taggedVersions"]]
        default = one.get("default")
        # An unquoted null is not a default: the generator of the classes reads a string.
        if default not in EMPTY and default is not False:
            words += ["=", str(default).lower()]
        yield "  " * level + " ".join(words)
        yield from fields(inner or [], common, level + 1)


def main() -> int:
    """Write every table."""
    for name in SOURCES:
        (TABLES / f"{name}.txt").write_text(table(KAFKA_NEWEST, name), "ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
