"""The tables of fields are those of the released jars; what an older release has differently."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker import message_tables
from broker.install import KAFKA_3, KAFKA_4

from logtool.formats.messages import schema
from logtool.formats.messages.schema import Field, MessageSchema

pytestmark = pytest.mark.broker

EARLY = {"ShareGroupPartitionMetadataKey", "ShareGroupPartitionMetadataValue",
         "ShareGroupMetadataValue"}  # fmt: skip
"""Of share groups, which 3.9 has in its jars alone and 4.x has differently."""


@pytest.mark.parametrize("name", message_tables.SOURCES)
def test_the_tables_are_those_of_the_jars(name: str) -> None:
    text = (message_tables.TABLES / f"{name}.txt").read_text()
    assert message_tables.table(KAFKA_4, name) == text


def layout(message: MessageSchema, version: int) -> Iterator[tuple[object, ...]]:
    """Yield what decides how a version of a message is read, without its tagged fields."""
    yield (version in message.flexible,)
    yield from _fields(message.fields, version)


def _fields(fields: tuple[Field, ...], version: int) -> Iterator[tuple[object, ...]]:
    for one in fields:
        if version in one.versions and version not in one.tagged:
            yield one.name, one.type, one.is_array, version in one.nullable
            yield from _fields(one.fields, version)


@pytest.mark.parametrize("name", message_tables.SOURCES)
def test_what_3_9_wrote_is_read(name: str) -> None:
    """Tagged fields aside, which a reader takes as they come, every version is laid out alike."""
    older = schema.parse(message_tables.table(KAFKA_3, name))
    newer = {one.name: one for one in schema.table(name).messages}
    different = set()
    for message in older.messages:
        for version in range(message.versions.first, message.versions.last + 1):
            # The schemas of 3.9 give a key its type as version; it is laid out as version 0 is.
            ours = 0 if message.name.endswith("Key") else version
            same = message.name in newer and ours in newer[message.name].versions
            if not same or [*layout(message, version)] != [*layout(newer[message.name], ours)]:
                different.add(message.name)
    assert different == (EARLY if name == "consumer_offsets" else set())
