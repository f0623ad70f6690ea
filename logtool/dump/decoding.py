"""Records of brokers' own topics in a dump: decoded, or as bytes with no secret in them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from logtool.dump.blocks import Block
from logtool.dump.files import Input
from logtool.dump.log import Filter, block_objects
from logtool.dump.records import Object, error_object
from logtool.formats import _offset_commits
from logtool.formats.names import CLUSTER_METADATA, CONSUMER_OFFSETS, FileKind
from logtool.log.decoded import decode, has_decoder, without_secrets

_BY_TOPIC = (FileKind.LOG, FileKind.REDPANDA_SEGMENT)
"""Files whose topic is that of their directory; others are of the metadata log."""


class Decoding:
    """Decodes records, and counts those of a newer release in `unknown` and `unknown_tags`."""

    def __init__(
        self,
        chosen: Filter,
        as_topic: str | None,
        unknown: Counter[tuple[str, int]],
        unknown_tags: Counter[str],
    ) -> None:
        self._chosen = chosen
        self._as_topic = as_topic
        self._unknown = unknown
        self._unknown_tags = unknown_tags

    def concerns(self, item: Input) -> bool:
        """Return whether records of a file are printed otherwise than as their bytes."""
        return self._topic(item) is not None or self._hides(item)

    def takes_blocks(self, item: Input) -> bool:
        """Return whether `among` decodes the records of blocks, too."""
        return item.name.kind is FileKind.LOG and self._topic(item) == CONSUMER_OFFSETS

    def among(self, item: Input, objects: Iterator[Object | Block]) -> Iterator[Object | Block]:
        """Yield objects of a file, its records with decoded fields and errors."""
        topic, hides = self._topic(item), self._hides(item)
        for obj in _with_commits(objects) if self.takes_blocks(item) else objects:
            if isinstance(obj, Block) or obj["type"] != "record" or obj["control"]:
                yield obj
                continue
            if hides and obj["value"] is not None:
                obj = {**obj, "value": without_secrets(obj["value"])}
            if topic is None:
                yield obj
            else:
                yield from self._decoded(topic, obj)

    def _topic(self, item: Input) -> str | None:
        """Return the topic whose decoder is used; None if records are printed as bytes."""
        return (self._as_topic or _topic(item)) if self._chosen.decode else None

    def _hides(self, item: Input) -> bool:
        """Return whether a file is of a metadata log and its secrets are hidden."""
        return not self._chosen.secrets and CLUSTER_METADATA in (self._as_topic, _topic(item))

    def _decoded(self, topic: str, obj: Object) -> Iterator[Object]:
        """Yield a record with its decoded fields, and an error if a broker cannot read it."""
        decoded = decode(topic, obj["key"], obj["value"], secrets=self._chosen.secrets)
        yield {**obj, "decoded": decoded}
        if decoded.unknown_type is not None:
            self._unknown[topic, decoded.unknown_type] += 1
        if decoded.unknown_tags:
            self._unknown_tags[topic] += decoded.unknown_tags
        if decoded.problem:
            text = f"offset {obj['offset']}: a broker cannot read this record: {decoded.problem}"
            yield error_object(Path(obj["path"]), "record", text, obj["batch_position"])


def _with_commits(objects: Iterator[Object | Block]) -> Iterator[Object | Block]:
    """Yield blocks of commits with their fields, and the objects of all other batches."""
    for obj in objects:
        if not isinstance(obj, Block) or obj.records is None:
            yield obj
            continue
        records, spans = obj.records, obj.records.spans
        fields = np.empty((len(spans), _offset_commits.COMMIT_COLUMNS), np.int64)
        _offset_commits.decode_commits(
            records.data, spans.key_position, spans.key_length, spans.value_position,
            spans.value_length, fields,
        )  # fmt: skip
        kinds = _offset_commits.COMMIT_VALUE, _offset_commits.COMMIT_TOMBSTONE
        batch_of = np.repeat(np.arange(len(records.counts)), records.counts)
        others = np.zeros(len(records.counts), np.bool_)
        others[batch_of[~np.isin(fields[:, 0], kinds)]] = True
        ends = np.concatenate(([0], np.cumsum(records.counts))).tolist()
        changes = (np.flatnonzero(np.diff(others)) + 1).tolist()
        for first, stop in pairwise([0, *changes, len(others)]):
            rows = slice(ends[first], ends[stop])
            part = obj.part(first, stop, rows)
            if others[first]:
                yield from block_objects(part)
            else:
                yield replace(part, commits=fields[rows])


def _topic(item: Input) -> str | None:
    """Return the topic of the records in a file; None if they cannot be decoded."""
    if item.name.kind not in _BY_TOPIC:
        return CLUSTER_METADATA
    return item.topic if has_decoder(item.topic) else None
