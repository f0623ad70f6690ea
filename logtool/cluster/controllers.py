"""The controllers that may win the next election, and the image with which brokers start.

A voter wins with the votes of a majority, and gives its vote only to a candidate whose log is not
behind its own. So of three voters the one with the second longest log may win too, and then cuts
what only the longest has. A broker fetches the metadata log of the winner before it decides which
of its logs are strays, even if its own copy is longer.
Source: ``KafkaRaftClient``, ``BrokerServer.startup``, ``BrokerMetadataPublisher`` (Kafka 3.9, 4.3).
"""

from collections.abc import Iterator

from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.metadata.image import MetadataImage
from logtool.quorum.copy import MetadataCopy
from logtool.quorum.verdict import Quorum, is_of

_UNLIKELY = "its metadata log is behind those of a majority of the voters"


@dataclass(frozen=True, slots=True)
class Controllers:
    """The outcome of the election of a controller."""

    quorum: Quorum
    may_win: tuple[MetadataCopy, ...]
    """Copies of voters that a majority of the voters may elect, the furthest first; empty if the
    copies given are fewer than a majority."""
    leader: MetadataCopy
    """The copy whose image the brokers get: the one that is wanted, else the first that may win;
    without a majority the furthest of the voters, as the copy of another node never leads, and
    without a voter the copy that `quorum` keeps."""
    image: MetadataImage | None
    """None if the metadata log cannot be read."""
    not_assumed: str | None = None
    """Why the node that is wanted is not the leader; None if it is, or if none is wanted."""
    unlikely: str | None = None
    """Why the node that is wanted, and taken to win, is not expected to; None if it may win."""

    @property
    def voters(self) -> tuple[int, ...]:
        """Return the node ids of the voters; empty if no copy names them."""
        return tuple(one.node for one in self.quorum.voters or ())

    @property
    def nodes(self) -> tuple[int | None, ...]:
        """Return the nodes that may win, the furthest first."""
        return tuple(one.node for one in self.may_win)

    @property
    def has_majority(self) -> bool | None:
        """Return whether a controller can be elected; None if the voters are not known."""
        return None if self.quorum.voters is None else bool(self.may_win)

    @property
    def is_sure(self) -> bool:
        """Return whether all that may win end at the same record."""
        return len({one.position for one in self.may_win}) == 1

    @property
    def behind(self) -> int:
        """Return the offsets at the end of the furthest copy that the leader lacks."""
        return max(0, self.quorum.keep.log_end - self.leader.log_end)

    @property
    def lacks_changes(self) -> bool:
        """Return whether it is not known that all which the leader lacks are NoOp records."""
        is_behind = self.leader.position < self.quorum.keep.position
        return is_behind and (self.quorum.voters_are_behind or not self.quorum.unvoted)

    @property
    def unread(self) -> str | None:
        """Return why the image is not known to its end; None if it is."""
        return self.image.damage if self.image else "cannot be read"

    @property
    def is_wrong(self) -> bool:
        """Return whether a person has to act before the controllers serve, or choose the order."""
        return not self.has_majority or not self.is_sure or self.quorum.is_grave

    @property
    def command(self) -> str:
        """Return the command that compares the copies in full."""
        return " ".join(["logtool quorum", *(one.argument for one in self.quorum.copies)])


def elect(quorum: Quorum, wanted: int | None = None) -> Controllers:
    """Return the outcome of the election that the given copies allow.

    The voter that is `wanted` is taken to win, also if its log is behind those of a majority: with
    other voters than the given ones it may. Else it is the one with the longest log of those that
    may win, or of all voters without a majority.
    """
    candidates = [one for one in _of_voters(quorum) if one.is_whole]
    majority = quorum.majority or 0
    winners = [
        one
        for one in candidates
        if len([other for other in candidates if other.position <= one.position]) >= majority > 0
    ]
    able = sorted(winners or candidates, key=lambda one: one.position, reverse=True)
    named = [one for one in candidates if one.node == wanted]
    leader = next(iter(named or able), quorum.keep)
    try:
        image = leader.image
    except UnreadableError:
        image = None
    return Controllers(
        quorum=quorum,
        may_win=tuple(able) if winners else (),
        leader=leader,
        image=image,
        not_assumed=_not_assumed(quorum, wanted) if wanted is not None and not named else None,
        unlikely=_UNLIKELY if named and named[0] not in able else None,
    )


def _not_assumed(quorum: Quorum, wanted: int) -> str:
    """Return why a node cannot win the election."""
    own = [one for one in quorum.copies if one.node == wanted]
    if not own:
        return "no metadata log of this node was given"
    if not any(is_of(one, voter) for one in own for voter in quorum.voters or ()):
        return "it is not a voter"
    return "its metadata log lacks records"


def _of_voters(quorum: Quorum) -> Iterator[MetadataCopy]:
    """Yield the copy of each voter, of several the furthest."""
    for voter in quorum.voters or ():
        own = [one for one in quorum.copies if is_of(one, voter)]
        if own:
            yield max(own, key=lambda one: one.position)
