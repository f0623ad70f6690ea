"""The metadata log: an image, its changes, how two images differ, and how these look."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from logtool.checks import metadata_records
from logtool.commands import options
from logtool.commands.output import Item, Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep, moment
from logtool.commands.views.metadata_tables import CHANGE, DIFFERENCE, DOCUMENT, ENTITY, IMAGE
from logtool.dump.values import parse_offsets
from logtool.errors import NothingMatchedError, UnreadableError, UsageError
from logtool.exits import Exit
from logtool.formats import wording
from logtool.lazy_dataclass import dataclass
from logtool.metadata import entities
from logtool.metadata.difference import Difference, differences
from logtool.metadata.history import MetadataEvent, MetadataHistory, takes
from logtool.metadata.image import END, Until, read_any
from logtool.metadata.state import MetadataImage
from logtool.running.summary import ActionSummary
from logtool.schemas.tables import FINDING
from logtool.times import rfc3339

SCHEMA = DOCUMENT.schema


def _state(key: str) -> TableColumn:
    return TableColumn(key, lambda obj: _value_text(obj["state"].get(key)))


def _value_text(value: object) -> str:
    """Return a value of a state on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(_value_text(one) for one in value) + "]"
    if isinstance(value, dict):
        return ", ".join(f"{name}={_value_text(one)}" for name, one in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else f"{value}"


def _whole(obj: Object) -> str:
    return ", ".join(f"{name}={_value_text(value)}" for name, value in obj["state"].items())


_PARTITION = keep((
    *columns("topic", "partition"),
    *map(_state, ("leader", "leader_epoch", "isr", "elr", "last_known_elr", "replicas",
                  "adding_replicas", "removing_replicas", "directories")),
), "topic", "partition", "leader", "isr")  # fmt: skip
_BY_KIND: dict[str, Columns] = {
    "topic": (*columns("topic", "topic_id"), _state("partitions")),
    "partition": _PARTITION,
    "broker": (
        TableColumn("broker", lambda obj: obj["name"]),
        *map(_state, ("fenced", "in_controlled_shutdown", "broker_epoch", "rack", "log_dirs",
                      "cordoned_log_dirs", "endpoints", "newest_metadata_version")),
    ),
    "feature": (
        TableColumn("feature", lambda obj: obj["name"]), _state("level"), _state("release"),
    ),
    "acl": tuple(map(_state, ("principal", "host", "operation", "permission", "resource_type",
                              "resource_name", "pattern"))),
}  # fmt: skip
_NAMED = keep((*columns("kind", "name"), TableColumn("state", _whole)), "kind", "name")
_CHANGE = keep((
    *columns("offset", "leader_epoch", "timestamp", "record", "name"),
    TableColumn("what", lambda obj: _changed(obj)),
), "offset", "record", "name", "what")  # fmt: skip
_DIFFERENCE = (
    *columns("kind", "name", "difference"),
    TableColumn("what", lambda obj: _changed(obj)),
)
_CSV = (
    *columns("type", "path", "kind", "name", "topic", "topic_id", "partition", "offset",
             "leader_epoch", "timestamp", "record", "difference", "problem"),
    TableColumn("what", lambda obj: _whole(obj) if "state" in obj else _changed(obj)),
)  # fmt: skip
_ROWS = frozenset(("entity", "change", "difference"))


def _changed(obj: Object) -> str:
    """Return the changes of a record, on one line."""
    if obj.get("problem"):
        return f"CANNOT BE APPLIED: {obj['problem']}"
    parts = []
    for one in obj["changes"]:
        before, after = one["before"], one["after"]
        if before is None:
            # Of what is new, only what says something.
            parts += [f"{one['field']} {_value_text(after)}"] if after not in ([], False) else []
        else:
            parts.append(f"{one['field']} {_value_text(before)} -> {_value_text(after)}")
    if obj["changes"] and all(one["after"] is None for one in obj["changes"]):
        return "removed"
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class ReadImage:
    """An image, with the path that it was read from and the end that was asked for."""

    path: Path
    image: MetadataImage
    until: Until = END


def run_show(
    inputs: options.Inputs,
    printing: options.Printing,
    topics: tuple[str, ...],
    *,
    show_secrets: bool,
    offset: int | None = None,
    time_ms: int | None = None,
    meaning: str | None = None,
) -> Exit:
    """Print the image of each path, at its end or at an offset or a time; return the exit status.

    `meaning` is the line that says which time was meant.
    """
    settings, summary, given = printing.settings(), ActionSummary(), inputs.of_one_cluster()
    report = Report(settings=settings, view=make(), summary=summary, inputs=given)
    printer = ImagePrinter(report, summary, topics, entities.EntityView(show_secrets=show_secrets))

    def images() -> Iterator[ReadImage | UnreadableError]:
        if meaning:
            report.note(meaning, "dim")
        until = Until(offset, time_ms)
        yield from _of_each(given.paths, lambda path: read_any(path, until), printer, topics, until)

    return report.consume(images(), printer)


def run_log(
    inputs: options.Inputs,
    printing: options.Printing,
    topics: tuple[str, ...],
    *,
    show_secrets: bool,
) -> Exit:
    """Print the changes by each record of the logs; return the exit status."""
    settings, summary, given = printing.settings(), ActionSummary(), inputs.of_one_cluster()
    report = Report(settings=settings, view=make(), summary=summary, inputs=given)
    printer = HistoryPrinter(report, summary)

    def read(path: Path) -> MetadataImage:
        # The view learns the names of the topics of one log.
        view = entities.EntityView(show_secrets=show_secrets)
        return read_any(path, END, MetadataHistory(printer.event, topics, view))

    return report.consume(_of_each(given.paths, read, printer, topics), printer)


def _of_each(
    paths: Sequence[Path],
    read: Callable[[Path], MetadataImage],
    printer: "MetadataPrinter[ReadImage]",
    topics: tuple[str, ...],
    until: Until = END,
) -> Iterator[ReadImage | UnreadableError]:
    """Yield the image of each path, and the paths that have none."""
    without: list[UnreadableError] = []
    found = False
    for path in paths:
        try:
            image = read(path)
        except NothingMatchedError as error:
            without.append(error)
        except UnreadableError as error:
            yield error
        else:
            found = True
            yield ReadImage(path, image, until)
    if not found:  # of the log dirs of a node only one holds the log
        yield from without
    elif topics and not printer.shown:
        words = " ".join(f"--topic {topic}" for topic in topics)
        for path in paths:
            yield NothingMatchedError(path, f"nothing matched {words}")


def run_diff(
    inputs: options.Inputs,
    printing: options.Printing,
    topics: tuple[str, ...],
    *,
    show_secrets: bool,
    offsets: str | None,
) -> Exit:
    """Print the differences between two images; return the exit status.

    The images are of two paths, or of one path at both ends of the range `offsets`.
    """
    paths = inputs.given()
    ends = [END, END]
    if offsets is not None:
        wanted = parse_offsets(offsets)
        if wanted.first is None or wanted.last is None or ".." not in offsets:
            raise UsageError(f"--offset {offsets}: expected A..B")
        ends = [Until(wanted.first), Until(wanted.last)]
        paths *= 2
    if len(paths) != 2 or (offsets is not None and paths[0] != paths[1]):
        raise UsageError("give two paths, or one path with --offset A..B")
    settings, summary, given = printing.settings(), ActionSummary(), inputs.of_one_cluster(paths)
    report = Report(settings=settings, view=make(), summary=summary, inputs=given)
    view = entities.EntityView(show_secrets=show_secrets)
    printer = DifferencePrinter(report, summary)

    def compared() -> Iterator[ReadImage | Difference]:
        images: list[MetadataImage] = []
        for path, until in zip(paths, ends, strict=True):
            image = read_any(path, until)
            yield ReadImage(path, image, until)
            images.append(image)
        yield from differences(images[0], images[1], view, topics)
        summary.partitions += 1

    return report.consume(compared(), printer)


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
    counted = [wording.count(counts[kind], kind) for kind in ("topic", "partition", "broker")]
    line = f"{obj['path']}: ends at offset {obj['end_offset']}"
    if time := moment(obj, "timestamp"):
        line += f", epoch {obj['leader_epoch']}, {time}"
    line += f": {', '.join(counted)}"
    if obj["snapshot"]:
        line += f"; begins with {Path(obj['snapshot']).name}"
    return text.escape(line)


class MetadataPrinter(Printer[Item]):
    """Prints what all commands say of an image, and counts what they print of it."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary
        self.shown = 0
        """Things or records of the topics meant."""

    def _head(self, one: ReadImage) -> None:
        """Print the summary of an image, and notes on records that it may lack or undo."""
        path, image, wanted = one.path, one.image, one.until.offset
        self._report.item(_image(path, image))
        if wanted is not None and image.offset <= wanted and not image.damage:
            self._report.note(f"{path}: the log ends at offset {image.offset}", "warning")
        self._say_how_far(path, image)

    def _say_how_far(self, path: Path, image: MetadataImage) -> None:
        if image.open_transaction is not None:
            self._report.note(
                f"{path}: the transaction that begins at offset {image.open_transaction} has not "
                "ended; later records have no effect",
                "warning",
            )
        voters = image.voters
        unsure = image.offset - image.snapshot_offset
        if unsure and (voters is None or len(voters) > 1):
            offsets = wording.offsets(image.snapshot_offset, image.offset - 1)
            self._report.note(
                f"{path}: {offsets} are newer than the newest snapshot; this disk does not show "
                "whether a majority of the controllers has these records",
                "dim",
            )
        if image.not_understood:
            count = wording.count(image.not_understood, "record")
            self._report.note(f"{path}: {count} of a newer release could not be read", "warning")

    def _findings(self, image: MetadataImage) -> None:
        """Print the unreadable files and the findings of an image."""
        for one in image.skipped:
            if isinstance(one, UnreadableError):
                self._report.unreadable(one)
        rules = metadata_records
        for check in (rules.skipped_snapshots, rules.check, rules.ends_early):
            for finding in check(image):
                self._summary.add(finding)
                self._report.item(FINDING.row(finding))
        self._summary.to_do |= image.damage is not None


class ImagePrinter(MetadataPrinter[ReadImage]):
    """Prints images with everything that they hold of the topics meant."""

    def __init__(
        self,
        report: Report,
        summary: ActionSummary,
        topics: tuple[str, ...],
        view: entities.EntityView,
    ) -> None:
        super().__init__(report, summary)
        self._topics = topics
        self._view = view

    def show(self, item: ReadImage) -> None:
        """Print one image."""
        self._head(item)
        for _, entity in self._view.all(item.image):
            if takes(self._topics, entity):
                self.shown += 1
                self._report.item(ENTITY.row(entity))
        self._findings(item.image)
        self._summary.partitions += 1


class HistoryPrinter(MetadataPrinter[ReadImage]):
    """Prints the records of logs while these are read, and what the image in the end lacks."""

    def event(self, event: MetadataEvent) -> None:
        """Print one record of a log."""
        self.shown += 1
        self._summary.records += 1
        self._report.item(CHANGE.row(event))

    def show(self, item: ReadImage) -> None:
        """Say where the history of a log begins, and how far it can be believed."""
        path, image = item.path, item.image
        if image.snapshot_offset:
            self._report.note(
                f"{path}: the history begins at offset {image.snapshot_offset}, after "
                f"{image.snapshot.name if image.snapshot else 'a snapshot'}",
                "dim",
            )
        self._say_how_far(path, image)
        self._findings(image)
        self._summary.partitions += 1


class DifferencePrinter(MetadataPrinter[ReadImage | Difference]):
    """Prints what two images are of, and what differs between them."""

    _differences = 0

    def show(self, item: ReadImage | Difference) -> None:
        """Print the summary and the findings of an image, or print one difference."""
        if isinstance(item, Difference):
            self._summary.to_do = True
            self._differences += 1
            self._report.item(DIFFERENCE.row(item))
        else:
            self._head(item)
            self._findings(item.image)

    def last_lines(self) -> Iterator[Line]:
        """Yield the number of differences, so that an answer without any is no empty answer."""
        if self._summary.partitions:
            state = text.state(self._summary)
            count = text.count(self._differences, "difference") if self._differences else (
                "no difference"
            )  # fmt: skip
            yield f"{state}{count}", "warning" if self._differences else "good"


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
