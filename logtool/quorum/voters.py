"""The voters of a metadata quorum, in control records and on the command line.

Source: ``VotersRecord.json``, ``KRaftVersionRecord.json``, ``VoterSet``, ``QuorumConfig``
(Kafka 3.9 to 4.3).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from logtool.errors import FormatError, UsageError
from logtool.formats import control_record
from logtool.formats.java_text import ZERO_UUID, parse_uuid
from logtool.formats.messages import codec, schema
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.record_table import Unread
from logtool.log.records import batch_records

_TABLE = "control_records"
_MESSAGES = {
    control_record.KRAFT_VERSION: "KRaftVersionRecord",
    control_record.KRAFT_VOTERS: "VotersRecord",
}
_NAMED = re.compile(r"([0-9]{1,10})(?:-([A-Za-z0-9_-]{22}))?@(\[[^\]]+\]|[^:\[\]@]+):([0-9]{1,5})")
_LARGEST_ID, _LARGEST_PORT = 2**31 - 1, 2**16 - 1
DEFAULT_LISTENER = "CONTROLLER"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a voter: listener, host and port."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Voter:
    """One voter, as far as it is known."""

    node: int
    directory_id: str | None = None
    """``directory.id`` of its metadata log dir; None in a static quorum, which has none."""
    endpoints: tuple[Endpoint, ...] = ()
    """Endpoints; in a static quorum only ``controller.quorum.voters`` has them."""
    versions: tuple[int, int] = (0, 1)
    """The least and the highest kraft.version that it supports."""

    @property
    def key(self) -> tuple[int, str | None]:
        """Return the identity of the voter in Raft: another directory is another voter."""
        return self.node, self.directory_id


def parse_named(text: str, option: str = "--voters") -> tuple[Voter, ...]:
    """Read ``ID@HOST:PORT,...``, where ID may be ``ID-DIRECTORY_ID``; UsageError for other text.

    Unlike other options this one is a list with commas, because ``controller.quorum.voters`` is.
    """
    voters = []
    for part in text.split(","):
        found = _NAMED.fullmatch(part.strip())
        if not found:
            form = "ID@HOST:PORT or ID-DIRECTORYID@HOST:PORT"
            raise UsageError(f"{option}: expected {form}, found {part.strip()!r}")
        node, port = int(found[1]), int(found[4])
        if node > _LARGEST_ID or not 0 < port <= _LARGEST_PORT:
            raise UsageError(f"{option}: {part.strip()!r} has an impossible number")
        if found[2] and parse_uuid(found[2]) in (None, ZERO_UUID):
            raise UsageError(f"{option}: {found[2]!r} is not a directory id")
        if any("\ud800" <= letter <= "\udfff" for letter in found[3]):
            raise UsageError(f"{option}: the host in {part.strip()!r} is not UTF-8")
        endpoint = Endpoint(DEFAULT_LISTENER, found[3].strip("[]"), port)
        voters.append(Voter(node, found[2], (endpoint,)))
    if len({voter.node for voter in voters}) < len(voters):
        raise UsageError(f"{option}: one node is listed twice")
    return tuple(voters)


def parse_batch(chunk: Chunk, row: int) -> Iterator[tuple[int, Any]]:
    """Yield type and message of the records about voters in a control batch.

    FormatError if a controller could not read them.
    """
    for part in batch_records(chunk, row):
        if isinstance(part, Unread):
            raise part.error
        for number in range(len(part.offset)):
            value = part.value(number) or b""
            kind = control_record.parse(part.key(number) or b"", value).type
            if kind in _MESSAGES:
                message = schema.table(_TABLE).named(_MESSAGES[kind])
                yield kind, codec.decode(message, 0, value)


def of_record(message: codec.Value) -> tuple[Voter, ...]:
    """Return the voters of a VotersRecord by node id."""
    voters = (
        Voter(
            node=one["voterId"],
            directory_id=one["voterDirectoryId"],
            endpoints=tuple(
                Endpoint(end["name"], end["host"], end["port"]) for end in one["endpoints"]
            ),
            versions=(
                one["kRaftVersionFeature"]["minSupportedVersion"],
                one["kRaftVersionFeature"]["maxSupportedVersion"],
            ),
        )
        for one in message["voters"]
    )
    return tuple(sorted(voters, key=lambda voter: voter.node))


def to_record(voters: Sequence[Voter]) -> bytes:
    """Return a VotersRecord; FormatError for a voter without directory id."""
    for voter in voters:
        if voter.directory_id is None:
            raise FormatError(f"voter {voter.node} has no directory id")
    value = {
        "version": 0,
        "voters": [
            {
                "voterId": voter.node,
                "voterDirectoryId": voter.directory_id,
                "endpoints": [
                    {"name": one.listener, "host": one.host, "port": one.port}
                    for one in voter.endpoints
                ],
                "kRaftVersionFeature": {
                    "minSupportedVersion": voter.versions[0],
                    "maxSupportedVersion": voter.versions[1],
                },
            }
            for voter in voters
        ],
    }
    return codec.encode(
        schema.table(_TABLE).named(_MESSAGES[control_record.KRAFT_VOTERS]), 0, value
    )
