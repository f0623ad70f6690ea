"""How the metadata log looks: an image, its changes, and how two images differ."""

from pathlib import Path
from typing import Any

from logtool.checks import metadata_records
from logtool.commands.output import Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Column, Columns, Object, columns, keep
from logtool.commands.views.metadata_tables import CHANGE, DIFFERENCE, DOCUMENT, ENTITY, IMAGE
from logtool.errors import UnreadableError
from logtool.formats import wording
from logtool.metadata import entities
from logtool.metadata.difference import Difference
from logtool.metadata.history import Event, takes
from logtool.metadata.image import Until
from logtool.metadata.state import MetadataImage
from logtool.running.summary import ActionSummary
from logtool.schemas.tables import FINDING
from logtool.times import rfc3339

SCHEMA = DOCUMENT.schema


def _state(key: str) -> Column:
    return Column(key, lambda obj: _told(obj["state"].get(key)))


def _told(value: object) -> str:
    """Return a value of a state on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(_told(one) for one in value) + "]"
    if isinstance(value, dict):
        return ", ".join(f"{name}={_told(one)}" for name, one in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else f"{value}"


def _whole(obj: Object) -> str:
    return ", ".join(f"{name}={_told(value)}" for name, value in obj["state"].items())


_PARTITION = keep((
    *columns("topic", "partition"),
    *map(_state, ("leader", "leader_epoch", "isr", "elr", "last_known_elr", "replicas",
                  "adding_replicas", "removing_replicas", "directories")),
), "topic", "partition", "leader", "isr")  # fmt: skip
_BY_KIND: dict[str, Columns] = {
    "topic": (*columns("topic", "topic_id"), _state("partitions")),
    "partition": _PARTITION,
    "broker": (
        Column("broker", lambda obj: obj["name"]),
        *map(_state, ("fenced", "in_controlled_shutdown", "broker_epoch", "rack", "log_dirs",
                      "cordoned_log_dirs", "endpoints", "newest_metadata_version")),
    ),
    "feature": (
        Column("feature", lambda obj: obj["name"]), _state("level"), _state("release"),
    ),
    "acl": tuple(map(_state, ("principal", "host", "operation", "permission", "resource_type",
                              "resource_name", "pattern"))),
}  # fmt: skip
_NAMED = keep((*columns("kind", "name"), Column("state", _whole)), "kind", "name")
_CHANGE = keep((
    *columns("offset", "leader_epoch", "timestamp", "record", "name"),
    Column("what", lambda obj: _changed(obj)),
), "offset", "record", "name", "what")  # fmt: skip
_DIFFERENCE = (
    *columns("kind", "name", "difference"),
    Column("what", lambda obj: _changed(obj)),
)
_CSV = (
    *columns("type", "path", "kind", "name", "topic", "topic_id", "partition", "offset",
             "leader_epoch", "timestamp", "record", "difference", "problem"),
    Column("what", lambda obj: _whole(obj) if "state" in obj else _changed(obj)),
)  # fmt: skip
_ROWS = frozenset(("entity", "change", "difference"))


def _changed(obj: Object) -> str:
    """Return what changed, on one line."""
    if obj.get("problem"):
        return f"CANNOT BE APPLIED: {obj['problem']}"
    parts = []
    for one in obj["changes"]:
        before, after = one["before"], one["after"]
        if before is None:
            # Of what is new, only what says something.
            parts += [f"{one['field']} {_told(after)}"] if after not in ([], False) else []
        else:
            parts.append(f"{one['field']} {_told(before)} -> {_told(after)}")
    if obj["changes"] and all(one["after"] is None for one in obj["changes"]):
        return "removed"
    return ", ".join(parts)


def make() -> View:
    """Return the view of all commands."""
    return View(schema=SCHEMA, columns=_CSV, layout=_layout, row_types=_ROWS)


def _layout(obj: Object) -> Columns | str | None:
    match obj["type"]:
        case "image":
            return _head(obj)
        case "entity":
            return _BY_KIND.get(obj["kind"], _NAMED)
        case "change":
            return _CHANGE
        case "difference":
            return _DIFFERENCE
        case "finding":
            place = f"{obj['path']} @{obj['position']}"
            label = f"{obj['severity'].upper():<7}"
            return text.escape(f"{label}  {obj['code']}  {place}  {obj['message']}")
    return None


def _head(obj: Object) -> str:
    """Return the line about an image."""
    counts = obj["counts"]
    held = [wording.count(counts[kind], kind) for kind in ("topic", "partition", "broker")]
    line = f"{obj['path']}: ends at offset {obj['end_offset']}"
    if obj["timestamp"]:
        line += f", epoch {obj['leader_epoch']}, {obj['timestamp']}"
    line += f": {', '.join(held)}"
    if obj["snapshot"]:
        line += f"; begins with {Path(obj['snapshot']).name}"
    return text.escape(line)


class Printer:
    """Prints images and what becomes of them."""

    def __init__(
        self,
        report: Report,
        summary: ActionSummary,
        view: entities.View,
        topics: tuple[str, ...],
    ) -> None:
        self._report = report
        self._summary = summary
        self.view = view
        self._topics = topics
        self.shown = 0
        """What was printed of the images: things, or records."""

    def image(self, path: Path, image: MetadataImage, until: Until) -> None:
        """Print what an image is of, and how far it can be believed."""
        self._report.item(_image(path, image))
        wanted = until.offset
        if wanted is not None and image.offset <= wanted and not image.damage:
            self._report.note(f"{path}: the log ends at offset {image.offset}", "warning")
        self._say_how_far(path, image)

    def _say_how_far(self, path: Path, image: MetadataImage) -> None:
        if image.open_transaction is not None:
            self._report.note(
                f"{path}: the transaction that begins at offset {image.open_transaction} has not "
                "ended: what is behind does not count",
                "warning",
            )
        voters = image.voters
        unsure = image.offset - image.snapshot_offset
        if unsure and (voters is None or len(voters) > 1):
            offsets = wording.offsets(image.snapshot_offset, image.offset - 1)
            self._report.note(
                f"{path}: {offsets} lie behind the newest snapshot: whether a majority of the "
                "controllers has them is not on this disk",
                "dim",
            )
        if image.not_understood:
            count = wording.count(image.not_understood, "record")
            text_ = f"{path}: {count} of a newer release could not be read"
            self._report.note(text_, "warning")

    def entities(self, image: MetadataImage) -> None:
        """Print everything that an image holds of the topics meant."""
        for _, entity in self.view.all(image):
            if takes(self._topics, entity):
                self.shown += 1
                self._report.item(ENTITY.row(entity))

    def event(self, event: Event) -> None:
        """Print one record of a log."""
        self.shown += 1
        self._report.summary.records += 1
        self._report.item(CHANGE.row(event))

    def differs(self, one: Difference) -> None:
        """Print one difference."""
        self._summary.to_do = True
        self._report.item(DIFFERENCE.row(one))

    def begun(self, path: Path, image: MetadataImage) -> None:
        """Say where a history begins, and how far it can be believed."""
        if image.snapshot_offset:
            self._report.note(
                f"{path}: the history begins at offset {image.snapshot_offset}, behind "
                f"{image.snapshot.name if image.snapshot else 'a snapshot'}",
                "dim",
            )
        self._say_how_far(path, image)

    def findings(self, image: MetadataImage) -> None:
        """Print what is wrong with an image."""
        for one in image.skipped:
            if isinstance(one, UnreadableError):
                self._report.unreadable(one)
        rules = metadata_records
        for check in (rules.skipped_snapshots, rules.check, rules.ends_early):
            for finding in check(image):
                self._report.summary.add(finding)
                self._report.item(FINDING.row(finding))
        self._summary.to_do |= image.damage is not None


def _image(path: Path, image: MetadataImage) -> dict[str, Any]:
    timestamp_ms = None if image.timestamp_ms < 0 else image.timestamp_ms
    return IMAGE.make(
        path=path,
        end_offset=image.offset,
        leader_epoch=image.epoch,
        timestamp_ms=timestamp_ms,
        timestamp=rfc3339(timestamp_ms),
        snapshot=image.snapshot,
        snapshot_offset=image.snapshot_offset,
        open_transaction=image.open_transaction,
        damage=image.damage,
        not_understood=image.not_understood,
        not_applied=image.problem_count,
        counts=image,
    )
