"""Schemas of a registry, as its topic ``_schemas`` on the same disks names them.

Source: ``SchemaKey`` and ``SchemaValue`` of ``io.confluent.kafka.schemaregistry.storage``: keys and
values are JSON, and the last value of a key counts.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from logtool.lazy_dataclass import dataclass
from logtool.log.record_objects import LogRecord

TOPIC = "_schemas"


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One version of a subject in a registry."""

    subject: str
    version: int
    deleted: bool
    """True if the version was deleted softly: its id still resolves."""


@dataclass(frozen=True, slots=True)
class SchemaUse:
    """Records of a topic whose keys, or values, have one schema id."""

    topic: str | None
    """None for a file that is not in a partition dir."""
    field: str
    """``key`` or ``value``."""
    schema_id: int | UUID | None
    """None for keys or values without an id."""
    records: int
    schemas: tuple[RegisteredSchema, ...] = ()
    """Subjects and versions of the id; empty where ``_schemas`` is absent or does not name it."""

    @property
    def shown_id(self) -> int | str | None:
        """Return the id as a number, or the GUID as text."""
        return str(self.schema_id) if isinstance(self.schema_id, UUID) else self.schema_id


Registered = dict[int | UUID, tuple[RegisteredSchema, ...]]


Uses = Counter[tuple[str | None, str, int | UUID | None]]
"""Numbers of records by topic, field and schema id."""


def uses(counts: Uses, known: Registered) -> list[SchemaUse]:
    """Return counts as objects, by topic and field, the most frequent ids first."""
    rows = sorted(counts.items(), key=lambda one: (one[0][0] or "", one[0][1], -one[1]))
    return [
        SchemaUse(topic, field, found, number, () if found is None else known.get(found, ()))
        for (topic, field, found), number in rows
        if number
    ]


def count_uses(records: Iterable[tuple[str | None, LogRecord]]) -> list[SchemaUse]:
    """Return the counts of records with their topics; those of ``_schemas`` resolve the ids."""
    counts: Uses = Counter()
    pairs: list[tuple[bytes | None, bytes | None]] = []
    for topic, record in records:
        if topic == TOPIC:
            pairs.append((record.key, record.value))
            continue
        counts[topic, "key", record.key_schema_id] += record.key is not None
        counts[topic, "value", record.value_schema_id] += record.value is not None
    return uses(counts, registered(pairs))


def registered(records: Iterable[tuple[bytes | None, bytes | None]]) -> Registered:
    """Return the subjects and versions of each id and GUID.

    `records` are the keys and values of the topic in order; those of other kinds are skipped.
    """
    last: dict[tuple[str, int], dict[str, Any]] = {}
    for pair in records:
        key, value = map(_object, pair)
        subject, version = key.get("subject"), key.get("version")
        if key.get("keytype") != "SCHEMA" or not isinstance(subject, str):
            continue
        if isinstance(version, int):
            last[subject, version] = value
    found: dict[int | UUID, list[RegisteredSchema]] = {}
    for (subject, version), value in sorted(last.items()):
        one = RegisteredSchema(subject, version, deleted=value.get("deleted") is True)
        for name in _names(value):
            found.setdefault(name, []).append(one)
    return {name: tuple(some) for name, some in found.items()}


def _names(value: dict[str, Any]) -> Iterable[int | UUID]:
    if isinstance(value.get("id"), int):
        yield value["id"]
    if isinstance(value.get("guid"), str):
        try:
            yield UUID(value["guid"])
        except ValueError:
            return


def _object(data: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
