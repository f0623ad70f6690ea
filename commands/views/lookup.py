"""Output of an answer of `lookup`."""

from collections.abc import Iterator
from pathlib import Path

from logtool.commands import options
from logtool.commands.output import OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.views.lookup_tables import DOCUMENT, LOOKUP, PLACE
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.lookup.run import Location, Lookup, LookupResult, LookupTarget, partition_of
from logtool.running.run import Progress
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.times import rfc3339, shown

SCHEMA = DOCUMENT.schema
_PLACE = columns(*PLACE.names(Way.CSV))
_TABLE = keep((
    *columns("by"),
    TableColumn("log", lambda obj: obj["path"] and Path(obj["path"]).name),
    *columns(
        "position", "size", "base_offset", "last_offset", "record", "offset", "timestamp",
        "problem",
    ),
), "by", "log", "position", "offset", "timestamp", where_said=("problem",))  # fmt: skip


def run(
    inputs: options.AnyInputs,
    printing: options.Printing,
    *,
    topic: str | None,
    partition: int | None,
    offset: int | None,
    timestamp: str | None,
    max_batch_memory: str,
) -> Exit:
    """Print where an offset is or, without one, a timestamp, in the one path of `inputs`."""
    settings = printing.settings()
    asked, value, moment = _question(offset, timestamp)
    given, summary = inputs.with_buckets(), ActionSummary()
    if len(given.paths) > 1:
        raise UsageError(f"unexpected extra argument ({given.paths[1]})")
    report = Report(settings=settings, view=_view(settings), summary=summary, inputs=given)

    def answers() -> Iterator[LookupResult]:
        (path,) = given.paths
        path = partition_of(path, topic, partition, given.flavour)
        if moment:
            report.note(moment, "dim")
        limit = parsing.parse_batch_memory(max_batch_memory)
        progress = Progress(on_progress=report.show)
        searched = Lookup(path, summary, progress, limit=limit, flavour=given.flavour)
        yield searched.find(asked, value)

    return report.consume(answers(), LookupPrinter(report, summary))


def _question(
    offset: int | None, timestamp: str | None
) -> tuple[LookupTarget, int | None, str | None]:
    """Return the target, its offset or time in ms, and for people the time of `timestamp`."""
    if timestamp is None:
        return LookupTarget.OFFSET, offset, None
    if timestamp in (LookupTarget.EARLIEST, LookupTarget.LATEST):
        return LookupTarget(timestamp), None, None
    try:
        return LookupTarget.TIMESTAMP, *parsing.parse_moment("--timestamp", timestamp)
    except UsageError as error:
        raise UsageError(f"{error}; or earliest or latest") from error


class LookupPrinter(Printer[LookupResult]):
    """Prints what was asked, then the place by index and the one by scan."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary

    def show(self, item: LookupResult) -> None:
        """Print one answer."""
        self._summary.to_do = not (item.is_there and item.agree)
        self._report.item(_asked(item))
        for place in item.places:
            self._report.item(PLACE.row(place))


def _view(settings: OutputSettings) -> View:
    """Return the view of `lookup`."""

    def layout(obj: Object) -> Columns | str | None:
        if obj["type"] == "place":
            return _TABLE if obj["path"] else None
        if obj["type"] != "lookup":
            return None
        style = "good" if obj["found"] and obj["agree"] else "error"
        line = f"{text.escape(obj['path'])}: {text.escape(obj['message'])}"
        return terminal.paint_stdout(line, style, settings.color)

    return View(schema=SCHEMA, columns=_PLACE, layout=layout, row_types=frozenset({"place"}))


def _asked(answer: LookupResult) -> Object:
    """Return the object with the question, and the answer as a message of one line."""
    by_time = answer.asked == "timestamp"
    return LOOKUP.make(
        path=answer.partition.path,
        topic=answer.partition.topic,
        partition=answer.partition.number,
        asked=str(answer.asked),
        asked_offset=None if by_time else answer.value,
        asked_timestamp_ms=answer.value if by_time else None,
        asked_timestamp=rfc3339(answer.value) if by_time else None,
        log_start_offset=answer.log_start,
        local_log_start_offset=answer.local_start,
        log_end_offset=answer.log_end,
        found=answer.is_there,
        agree=answer.agree,
        kafka_offset=answer.kafka_offset,
        message=_message(answer) + _kafka(answer),
    )


def _kafka(answer: LookupResult) -> str:
    """Return a note on the Kafka offset of a Raft offset; empty for a log of Kafka."""
    has_kafka_offset = answer.partition.flavour.has_raft_offsets and answer.asked != "latest"
    if not (has_kafka_offset and answer.is_there):
        return ""
    if answer.kafka_offset is None:
        return "; the Kafka offset is not known, or does not exist"
    return f"; the Kafka offset is {answer.kafka_offset}"


def _message(answer: LookupResult) -> str:
    """Return the answer in one line."""
    index, scan = answer.by_index, answer.by_scan
    if not answer.agree:
        why = "; an index is wrong or the log is damaged, see logtool verify"
        why = "" if index.problem else why
        return f"the index leads {_where(index)}, reading the log leads {_where(scan)}{why}"
    if not answer.is_there:
        return _missing(answer)
    if scan.problem:
        return f"index and scan agree, but {scan.problem}"
    if answer.asked == "earliest":
        return f"the log starts at offset {answer.log_start}; index and scan agree"
    if answer.asked == "offset" and scan.offset != answer.value:
        rest = f"the next record has offset {scan.offset}"
        if scan.offset is None:
            rest = "the batch holds no record from there on"
        return f"there is no record with offset {answer.value}: {rest}; index and scan agree"
    return f"offset {scan.offset}; index and scan agree"


def _missing(answer: LookupResult) -> str:
    """Return why nothing was found, by either way."""
    value, start, end = answer.value, answer.log_start, answer.log_end
    local = answer.local_start
    remote = f"is in remote storage, which logtool does not read: local segments begin at {local}"
    if answer.asked == "timestamp" and value is not None and start < local:
        return (
            f"no local record has a timestamp of {shown(value)} or a later one; offsets "
            f"{start} through {local - 1} are in remote storage, which logtool does not read"
        )
    if answer.asked != "timestamp" and start <= (start if value is None else value) < local:
        return f"offset {start if value is None else value} {remote}"
    if answer.asked == "timestamp" and value is not None:
        return f"no record has a timestamp of {shown(value)} or a later one"
    if value is not None and value < start:
        return f"offset {value} is below the log start offset {start}"
    if value is None:
        return f"the log is empty from its start offset {start} on"
    return f"offset {value} is not below the log end offset {end}"


def _where(location: Location) -> str:
    if location.problem:
        return f"nowhere ({location.problem})"
    if location.path is None:
        return "nowhere"
    at = "" if location.position is None else f" at byte {location.position}"
    return f"to offset {location.offset} in {location.path.name}{at}"
