"""The schema ids of records that are dumped, counted by topic."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from logtool.dump.registry import TOPIC, Registered, SchemaUse, Uses, registered, uses
from logtool.errors import UnreadableError
from logtool.formats import schema_id
from logtool.formats.names import DirectoryKind
from logtool.log import inputs, opening
from logtool.log.dir import Partition
from logtool.log.inputs import GivenPaths, PathKind
from logtool.log.record_table import RecordTable
from logtool.log.records import records

_HEADERS = {"key": schema_id.KEY_HEADER, "value": schema_id.VALUE_HEADER}


class SchemaIds:
    """Takes the records of a dump, names their schema ids, and counts them."""

    def __init__(self, given: GivenPaths) -> None:
        self._given = given
        self._counts: Uses = Counter()

    def named(self, record: Mapping[str, Any], shown: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a record as it is shown, with the schema ids of its key and value."""
        if record["control"] or record["topic"] == TOPIC:
            return shown
        headers = [(key.decode(errors="replace"), value) for key, value in record["headers"]]
        found = dict(shown)
        for field, header in _HEADERS.items():
            if record[field] is None:
                continue
            one = schema_id.of_record(record[field], headers, header)
            self._counts[record["topic"], field, one] += 1
            if one is not None:
                plain = str(one) if isinstance(one, UUID) else one
                found[field] = {**found[field], "schema_id": plain}
        return found

    def uses(self) -> list[SchemaUse]:
        """Return the ids of each topic; ``_schemas`` is read now."""
        return uses(self._counts, self._registered())

    def _registered(self) -> Registered:
        pairs: list[tuple[bytes | None, bytes | None]] = []
        flavour = self._given.flavour
        roots = []
        for path in self._given.paths:
            with suppress(UnreadableError):
                is_file = inputs.kind_of(path, flavour, redpanda=True) is PathKind.FILE
                roots.append(inputs.root_of(path.parent if is_file else path, flavour))
        for root in dict.fromkeys(roots):
            with suppress(UnreadableError):
                for path, one in opening.open_log_dir(root, flavour).latest:
                    if one.topic == TOPIC and one.kind is DirectoryKind.LIVE:
                        pairs += _pairs(opening.open_partition(path, flavour))
        return registered(pairs)


def _pairs(partition: Partition) -> Iterator[tuple[bytes | None, bytes | None]]:
    for segment in partition.segments:
        for chunk in segment.batches():
            for part in records(chunk):
                if isinstance(part, RecordTable):
                    rows = range(len(part.offset))
                    yield from ((part.key(row), part.value(row)) for row in rows)
