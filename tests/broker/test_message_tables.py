"""The tables of fields agree with the released jars, also with those of an older release."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker import message_tables
from broker.install import KAFKA_3, KAFKA_NEWEST

from logtool.formats.messages import schema
from logtool.formats.messages.schema import Field, MessageSchema

pytestmark = pytest.mark.broker

EARLY = {"ShareGroupPartitionMetadataKey", "ShareGroupPartitionMetadataValue",
         "ShareGroupMetadataValue"}  # fmt: skip
"""Messages of share groups in the jars of 3.9 that differ from those of 4.x."""


@pytest.mark.parametrize("name", message_tables.SOURCES)
def test_the_tables_are_those_of_the_jars(name: str) -> None:
    text = (message_tables.TABLES / f"{name}.txt").read_text()
    assert message_tables.table(KAFKA_NEWEST, name) == text


def layout(message: MessageSchema, version: int) -> Iterator[tuple[object, ...]]:
    """Yield the layout of a version of a message, without its tagged fields."""
    yield (version in message.flexible,)
    yield from _fields(message.fields, version)


def _fields(fields: tuple[Field, ...], version: int) -> Iterator[tuple[object, ...]]:
    for one in fields:
        if version in one.versions and version not in one.tagged:
            yield one.name, one.type, one.is_array, version in one.nullable
            yield from _fields(one.fields, version)


@pytest.mark.parametrize("name", message_tables.SOURCES)
def test_what_3_9_wrote_is_read(name: str) -> None:
    """Every version of 3.9 has the layout of 4.x, except for tagged fields."""
    older = schema.parse(message_tables.table(KAFKA_3, name))
    newer = {one.name: one for one in schema.table(name).messages}
    different = set()
    for message in older.messages:
        for version in range(message.versions.first, message.versions.last + 1):
            # The schemas of 3.9 use the type of a key as its version; its layout is version 0.
            ours = 0 if message.name.endswith("Key") else version
            same = message.name in newer and ours in newer[message.name].versions
            if not same or [*layout(message, version)] != [*layout(newer[message.name], ours)]:
                different.add(message.name)
    assert different == (EARLY if name == "consumer_offsets" else set())
