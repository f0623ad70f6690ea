"""Findings: one thing that is wrong or worth knowing, with a stable code and a place.

The meaning of each code is in ``catalogue.toml`` next to this module; `explain` prints it, and a
finding takes its severity and the broker's behaviour from it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from logtool.lazy_dataclass import dataclass


class Severity(StrEnum):
    """Severity of a finding: see the fields. The order of definition is the order of weight."""

    INFO = "info"
    """Legal but worth knowing."""
    WARNING = "warning"
    """Inconsistent; is rebuilt, ignored or degrades service; no record is at stake."""
    ERROR = "error"
    """Records are unreadable, lost or will be lost, or the broker will not start."""

    @property
    def weight(self) -> int:
        """Return 0 for info, 1 for warning, 2 for error."""
        return list(Severity).index(self)


class Broker(StrEnum):
    """Reaction of a broker at its next start: it notices the problem and acts, or not."""

    ALWAYS = "always"
    IF_UNCLEAN = "if-unclean"
    NEVER = "never"
    REFUSES = "refuses-to-start"


class Remedy(StrEnum):
    """Way to mend what a finding reports."""

    BROKER = "broker"
    """The next start of the broker mends it."""
    RECOVER = "recover"
    """``recover --apply`` mends it without loss, with ``--full`` where no start would look."""
    CHECKPOINT = "checkpoint"
    """``checkpoint rebuild --apply`` mends it."""
    REMOTE = "remote"
    """``remote restore`` writes what mends it, from remote storage."""
    LOSS = "loss"
    """Mending it costs records."""
    REPLICA = "replica"
    """Another copy is needed."""
    NONE = "none"
    """Nothing is to be mended, or an operator does it by hand."""


FOREIGN_SEGMENT = "segment/other-partition"
"""Code of a segment that may hold batches of another partition."""
REACTIONS = {
    "start": "the next start does",
    "cleaner": "the cleaner and retention do",
    "follower": "a follower does",
    "consumer": "a consumer does",
}
"""Keys of the table ``broker-does``, with the words that follow "what" in a heading."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the catalogue."""

    code: str
    severity: Severity
    broker: Broker
    remedy: Remedy
    title: str
    """Title: the problem in one line."""
    meaning: str
    """The rule, and how the damage comes about."""
    action: str
    """Steps for a person to carry out."""
    start: str | None = None
    """Reaction of the next start; None if the finding makes no difference to it."""
    cleaner: str | None = None
    """Reaction of retention and the log cleaner; None if the finding makes no difference to it."""
    follower: str | None = None
    """Effect on replicas that follow or lead; None if the finding makes no difference to them."""
    consumer: str | None = None
    """Effect on consumers; None if the finding makes no difference to them."""
    redpanda: str | None = None
    """Difference in a directory of Redpanda; None if the code does not occur there."""

    @property
    def broker_does(self) -> dict[str, str]:
        """Return the texts by their keys in `REACTIONS`, without those that are None."""
        said = {role: getattr(self, role) for role in REACTIONS}
        return {role: text for role, text in said.items() if text is not None}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. A key that does not apply has None; offsets and positions are absolute."""

    code: str
    message: str
    """Expected and found values, with both numbers."""
    position: int | None = None
    """Byte position in the file where it begins."""
    length: int | None = None
    """Bytes affected."""
    first_offset: int | None = None
    last_offset: int | None = None
    path: Path | None = None
    topic: str | None = None
    partition: int | None = None
    segment: int | None = None
    """Base offset of the segment."""
    next: str | None = None
    """The exact command to run next."""
    broker_override: Broker | None = None
    """Set where the broker's behaviour depends on more than the code."""
    remedy_override: Remedy | None = None
    """Set where the remedy depends on more than the code."""

    @property
    def severity(self) -> Severity:
        """Return the severity that the catalogue gives the code."""
        return rule(self.code).severity

    @property
    def broker(self) -> Broker:
        """Return the reaction of a broker to the finding."""
        return self.broker_override or rule(self.code).broker

    @property
    def remedy(self) -> Remedy:
        """Return the way to mend what the finding reports."""
        return self.remedy_override or rule(self.code).remedy

    def placed(
        self,
        path: Path,
        *,
        topic: str | None = None,
        partition: int | None = None,
        segment: int | None = None,
        next_command: str | None = None,
    ) -> "Finding":
        """Return the finding with its place; what was already set stays."""
        return replace(
            self,
            path=self.path or path,
            topic=self.topic if self.topic is not None else topic,
            partition=self.partition if self.partition is not None else partition,
            segment=self.segment if self.segment is not None else segment,
            next=self.next or next_command,
        )


class _Catalogue(Mapping[str, Rule]):
    """Rules by code, each parsed when it is taken: all of them take as long as a format's imports.

    A heading is a line of its own, and no text in the file has a line that looks like one.
    """

    def __init__(self, text: str) -> None:
        _, *sections = text.split('\n["')
        self._texts = {code: body for code, _, body in (one.partition('"]\n') for one in sections)}
        self._rules: dict[str, Rule] = {}

    def __getitem__(self, code: str) -> Rule:
        if code not in self._rules:
            self._rules[code] = _parsed(code, self._texts[code])
        return self._rules[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _parsed(code: str, text: str) -> Rule:
    # Here, because a run that finds nothing needs no TOML.
    import tomllib

    entry = tomllib.loads(text)
    return Rule(
        code=code,
        severity=Severity(entry["severity"]),
        broker=Broker(entry["broker"]),
        remedy=Remedy(entry["remedy"]),
        title=entry["title"],
        meaning=entry["meaning"].strip(),
        action=entry["action"].strip(),
        **{role: text.strip() for role, text in entry["broker-does"].items()},
        redpanda=entry["redpanda"].strip() if "redpanda" in entry else None,
    )


@cache
def catalogue() -> Mapping[str, Rule]:
    """Return every rule by its code, in the order of the catalogue file."""
    return _Catalogue(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))


def rule(code: str) -> Rule:
    """Return the rule of `code`; KeyError for a code that is not in the catalogue."""
    return catalogue()[code]
