"""Output of a comparison of replicas: a verdict for each partition, and why."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object, columns, keep
from logtool.commands.views.diff_tables import ABSENT, COPY, DAMAGE, DIFFERENCE, DOCUMENT, PARTITION
from logtool.copies.absent_copies import AbsentCopy, AbsentState
from logtool.copies.log_dirs import DifferenceKind, LogDirDifference
from logtool.copies.pair import Status
from logtool.copies.segments import UNREADABLE
from logtool.diff import Compared, Diff
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.log.inputs import GivenPaths
from logtool.log.selection import Selection
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way
from logtool.schemas.printed import PAIR

SCHEMA = DOCUMENT.schema
_PAIR = columns(*PAIR.names(Way.CSV))
_PARTITION = keep(
    columns(*PARTITION.names(Way.CSV)), "topic", "partition", "status", "diverges_at", "behind"
)
_DAMAGE = columns("topic", "partition", "copy", "segment", "position", "length", "reason",
                  "first_offset", "last_offset", "filled_by")  # fmt: skip
_MOST_EPOCHS = 4
_WORDS = {
    Status.SAME: "the same",
    Status.ALONE: "one copy only",
    Status.BEHIND: "the same up to the end of the shorter copy",
    Status.COMPACTED: "the same, compacted differently",
    Status.DISJOINT: "no offset in common",
    Status.MISSING: "BATCHES ARE MISSING",
    Status.DAMAGED: "DAMAGED",
    Status.UNREAD: "NOT READ AS A WHOLE",
    Status.DIVERGED: "DIVERGED",
    Status.OTHER_TOPIC: "TOPIC IDS DIFFER: not the same topic",
}
_STYLES = {
    Status.COMPACTED: "info", Status.BEHIND: "warning", Status.DISJOINT: "warning",
    Status.UNREAD: "warning",
}  # fmt: skip


def run(
    inputs: options.AnyInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    identical: bool,
    digest: Path | None,
) -> Exit:
    """Print a verdict on the copies of each partition, or save a scan as `digest`."""
    settings = printing.settings()
    if identical and digest:
        raise UsageError("use only one of --identical and --digest")
    summary = ActionSummary()
    sources = inputs.node_dirs()
    given = GivenPaths(
        [source.path for source in sources], inputs.selection, files_select=True,
        flavour=inputs.given_flavour,
    )  # fmt: skip
    layouts = {"partition": _PARTITION, "damage": _DAMAGE}
    view = View(
        schema=SCHEMA,
        columns=_PAIR,
        layout=lambda obj: layouts.get(str(obj["type"])),
        lines={"table": lambda obj: _line(obj, settings)},
        row_types=frozenset({"pair"}),
        sparse=True,
    )
    report = Report(settings=settings, view=view, summary=summary, inputs=given)
    job = Diff(
        sources, selection=given.selection, run=running.run(report), save=digest,
        whole=identical, flavour=given.flavour,
    )  # fmt: skip
    printer = DiffPrinter(report, summary, job, identical=identical, saved=digest)
    return report.consume(job, printer)


class DiffPrinter(Printer[Compared]):
    """Prints verdicts; a table leaves out partitions whose copies are as they should be."""

    def __init__(
        self,
        report: Report,
        summary: ActionSummary,
        job: Diff,
        *,
        identical: bool,
        saved: Path | None,
    ) -> None:
        """Begin; with `identical`, copies that differ in anything are as grave as damage.

        With `saved`, nothing is compared, and the scan is in that file in the end.
        """
        self._report = report
        self._summary = summary
        self._job = job
        self._brief = report.settings.format == "table" and not report.settings.verbose
        self._identical = identical
        self._saved = saved
        self._unequal = self._differences = self._missing = 0
        self._is_bad = False
        """True if the copies of a partition are not as they should be."""
        self._found: dict[Status, int] = {}

    def show(self, item: Compared) -> None:
        """Print one partition: the verdict, the copies, each two of them, the damage."""
        summary = self._summary
        if isinstance(item, AbsentCopy):
            is_missing = item.state is AbsentState.MISSING
            self._missing += is_missing
            self._is_bad |= is_missing
            summary.to_do |= is_missing
            self._report.item(ABSENT.row(item))
            return
        if isinstance(item, LogDirDifference):
            self._differences += 1
            summary.to_do = True
            self._report.item(DIFFERENCE.row(item))
            return
        summary.partitions += 1
        for copy in item.copies:
            summary.segments += copy.segments
            summary.batches += copy.tally.batches
            summary.records += copy.records
            summary.bytes += copy.bytes
        status = item.status
        self._found[status] = self._found.get(status, 0) + 1
        unequal = self._identical and not item.identical
        self._unequal += unequal
        is_bad = item.is_grave or unequal or bool(item.stuck or item.without_beginning)
        self._is_bad |= is_bad
        summary.to_do |= is_bad
        if self._brief and status in (Status.SAME, Status.ALONE) and not unequal:
            return
        self._report.item(PARTITION.row(item))
        for table, parts in (
            (COPY, item.copies),
            (PAIR, item.pairs),
            (DAMAGE, item.wounds),
        ):
            for part in parts:
                self._report.item(table.row(part))

    def last_lines(self) -> Iterator[Line]:
        """Yield how many partitions are what, and what that says, for people."""
        summary = self._summary
        counts = sorted(self._found.items(), key=lambda item: list(Status).index(item[0]))
        parts = [f"{count} {_WORDS[status]}" for status, count in counts]
        if self._missing:
            parts.append(f"{self._missing} MISSING in a copy of their log dir")
        total = text.count(summary.partitions, "partition")
        line = f"{total}: {', '.join(parts)}" if parts else total
        yield text.state(summary) + line, "error" if self._is_bad else None
        if not self._saved:
            is_unequal = self._identical and bool(self._unequal or self._differences)
            yield self._extent(), "error" if is_unequal else None
        elif not summary.out_of_time and not summary.interrupted:
            yield f"saved in {self._saved}", "good"

    def _extent(self) -> str:
        """Return the extent of the comparison and its result, for anyone who will delete a copy."""
        if not self._identical:
            return (
                "only batches were compared, not log starts, leader epochs, indexes and producer "
                "snapshots; use --identical before you delete a copy"
            )
        parts = [text.count(self._unequal, "partition")] if self._unequal else []
        if self._differences:
            parts.append(text.count(self._differences, "other file or directory",
                                    "other files or directories"))  # fmt: skip
        found = f"NOT IDENTICAL: {' and '.join(parts) or '0 partitions'}"
        if not parts and self._summary.complete:
            found = "all copies are identical"
            if damaged := self._found.get(Status.DAMAGED, 0):
                number = text.count(damaged, "partition")
                found += f", and all have the same damage in {number}"
        given = self._report.inputs
        also = ""
        if self._job.whole_log_dirs:
            chosen = given is not None and given.selection != Selection()
            also = "the directories of the selected partitions" if chosen else (
                "directories, checkpoints, meta.properties and other files"
            )  # fmt: skip
            also += f" of {text.count(self._job.whole_log_dirs, 'log dir')}, "
        compared = f"{found}; {also}batches, log starts, log ends and leader epochs"
        if self._job.without_indexes:
            return (
                f"{compared} were compared; indexes and producer snapshots were not, because a "
                "digest does not contain them"
            )
        return (
            f"{compared} were compared, with the same batches also indexes and producer snapshots; "
            "owner and mode of the files were not"
        )


def _line(obj: Object, settings: OutputSettings) -> str | None:
    kind = obj["type"]
    if kind == "partition":
        return _partition(obj, settings)
    if kind == "copy":
        return f"  {text.escape(obj['copy'])}: {_copy(obj)}"
    if kind == "pair":
        agreement = _pair(obj)
        return f"  {text.escape(obj['left'])} and {text.escape(obj['right'])}: {agreement}"
    if kind == "absent":
        return _absent(obj, settings)
    if kind == "difference":
        place = text.escape(obj["path"])
        if obj["kind"] != DifferenceKind.ABSENT:
            place += f" and {text.escape(obj['other'])}"
        return f"{place}: NOT IDENTICAL: {text.escape(obj['message'])}"
    return f"  {text.escape(obj['copy'])}: {_damage(obj)}" if kind == "damage" else None


def _absent(obj: Object, settings: OutputSettings) -> str:
    state = obj["state"]
    lacks = text.escape(obj["log_dir"])
    words = {
        AbsentState.MISSING: f"MISSING in {lacks}, whose own files name it",
        AbsentState.NOT_ASSIGNED: f"not in {lacks}, whose metadata log does not give it to this "
        "log dir: it was created, deleted or moved in between",
        AbsentState.UNKNOWN: f"not in {lacks}, whose files do not show whether it should be there",
    }
    style = "error" if state == AbsentState.MISSING else "good"
    said = terminal.paint_stdout(words[state], style, settings.color)
    line = f"{text.escape(obj['topic'])}-{obj['partition']}: only in {text.escape(obj['path'])}"
    command = f"\n  next: {text.escape(obj['next'])}" if obj["next"] else ""
    return f"{line}; {said}{command}"


def _partition(obj: Object, settings: OutputSettings) -> str:
    status = Status(obj["status"])
    style = "error" if status.is_grave else _STYLES.get(status, "good")
    if obj["new_topic"]:
        style = "info"
    words = terminal.paint_stdout(_WORDS[status], style, settings.color)
    line = f"{text.escape(obj['topic'])}-{obj['partition']}: {words}"
    if status is Status.SAME and not obj["identical"]:
        line += f", except for {text.escape('; '.join(obj['unequal']))}"
    if obj["new_topic"]:
        line += ", which was created again between these copies of the log dir"
    if obj["diverges_at"] is not None:
        line += f" at offset {obj['diverges_at']}"
    if obj["same_damage"]:
        line += ", with the same bytes in all copies"
    if obj["superset"] and len(obj["superset"]) < len(obj["copies"]):
        line += f"; complete: {_names(obj['superset'])}"
    if obj["behind"]:
        line += f"; behind: {_names(obj['behind'])}"
    if obj["damaged"] and not obj["same_damage"]:
        line += f"; damaged: {_names(obj['damaged'])}"
    if obj["stuck"]:
        line += (
            f"; {_names(obj['stuck'])} CANNOT CATCH UP: a follower skips batches whose leader "
            "epoch is above that of the partition, and later batches show a smaller one; stop both "
            f"brokers and copy the partition directory of {_names(obj['superset']) or 'the leader'}"
            ", or elect leaders until the epoch of the partition is larger"
        )
    if obj["without_beginning"]:
        line += (
            f"; {_names(obj['without_beginning'])} LACKS ITS BEGINNING: its leader epochs begin "
            "before its log, and retention would have moved them, unless the broker was killed "
            "just then"
        )
    if obj["unfilled"]:
        line += f"; {text.count(obj['unfilled'], 'range')} that no copy can fill"
    if obj["in_sync"] is not None:
        line += f"; according to the metadata log {_candidates(obj['in_sync'], obj['eligible'])}"
    if obj["foreign"]:
        line += f"; {text.escape('; '.join(obj['foreign']))}"
    commands = [*obj["fixes"], *([obj["next"]] if obj["next"] else [])]
    return "\n  next: ".join([line, *map(text.escape, commands)])


def _candidates(in_sync: Sequence[int], eligible: Sequence[int]) -> str:
    """Return which brokers may lead without loss: those of the ISR, else those of the ELR."""
    if not in_sync and not eligible:
        return "the ISR and the ELR are empty"
    said = "no broker is in the ISR"
    if in_sync:
        said = f"the ISR is {', '.join(map(str, in_sync))}"
    if eligible:
        one = len(eligible) == 1
        who = f"{'broker' if one else 'brokers'} {', '.join(map(str, eligible))}"
        verb = "is an eligible leader replica" if one else "are eligible leader replicas"
        said += f"; {who} {verb} (ELR), with all committed records"
    return said


def _copy(obj: Object) -> str:
    chain = obj["leader_epochs"] or obj["batch_epochs"]
    shown = [f"{epoch}@{at}" for epoch, at in chain[-_MOST_EPOCHS:]]
    before = "... " if len(chain) > _MOST_EPOCHS else ""
    parts = [
        text.extent(obj["log_start_offset"], obj["log_end_offset"]),
        f"{text.count(obj['batches'], 'batch', 'batches')}, "
        f"{text.count(obj['records'], 'record')}, {text.size(obj['bytes'])}",
        f"epochs {before}{' '.join(shown) or 'none'}",
    ]
    if obj["compaction_hints"]:
        parts.append(f"compacted ({', '.join(obj['compaction_hints'])})")
    return ", ".join(parts)


def _pair(obj: Object) -> str:
    status = obj["status"]
    if status in (Status.SAME, Status.OTHER_TOPIC, Status.DISJOINT, Status.UNREAD):
        return _WORDS[Status(status)]
    same = text.count(obj["equal_batches"], "batch", "batches")
    parts = [f"{same} the same"]
    if obj["rewritten_batches"]:
        parts.append(f"{obj['rewritten_batches']} rewritten by compaction")
    if obj["diverges_at"] is not None:
        sides = " against ".join(_batch(obj[side]) for side in ("left_batch", "right_batch"))
        parts.append(f"diverge at offset {obj['diverges_at']}: {sides}")
        parts.append(_extent_of_divergence(obj))
        if obj["epochs_diverge_at"] is not None:
            parts.append(f"leader epochs differ from offset {obj['epochs_diverge_at']} on")
    for side in ("left", "right"):
        parts += [f"{text.escape(obj[side])} lacks {what}" for what in _lacks(obj[f"{side}_lacks"])]
    return "; ".join(parts)


def _extent_of_divergence(obj: Object) -> str:
    """Return how many batches differ, and where the copies meet again."""
    left, right = obj["left_different"], obj["right_different"]
    count = text.count(left, "batch differs", "batches differ")
    if left != right:
        count = f"{left:,} against {text.count(right, 'batch differs', 'batches differ')}"
    if obj["meets_at"] is None:
        return f"{count}, up to the end of the shorter copy"
    return f"{count}; from offset {obj['meets_at']} on both are the same again"


def _batch(batch: dict[str, Any] | None) -> str:
    if batch is None:
        return "nothing"
    span = text.through(batch["base_offset"], batch["last_offset"])
    return f"{span} of epoch {batch['leader_epoch']} (CRC {batch['crc']})"


def _lacks(obj: dict[str, Any]) -> list[str]:
    words = {
        "before": "before its start",
        "behind": "after its end",
        "damaged": "where the copy is damaged",
        "compacted": "to compaction",
    }
    parts = [
        f"{text.count(obj[key], 'batch', 'batches')} {where}"
        for key, where in words.items()
        if obj[key]
    ]
    return parts + [text.offsets(first, last) for first, last in obj["missing"]]


def _damage(obj: Object) -> str:
    place = f"segment {obj['segment']} @{obj['position']}, {text.size(obj['length'])}"
    if obj["reason"] == UNREADABLE:
        return f"{place}: cannot be read ({text.escape(obj['message'])})"
    what = "unfinished append" if obj["torn_tail"] else f"damage ({obj['reason']})"
    line = f"{what} in {place}: {text.escape(obj['message'])}"
    if obj["first_offset"] is None:
        return f"{line}; no offset is missing"
    last = "the end" if obj["last_offset"] is None else obj["last_offset"]
    line += f"; {text.offsets(obj['first_offset'], last)}"
    if obj["filled_by"]:
        return f"{line}, sound in {_names(obj['filled_by'])}{_difference(obj)}"
    if obj["partly_filled_by"]:
        return f"{line}, partly sound in {_names(obj['partly_filled_by'])}{_difference(obj)}"
    return f"{line}, sound in no other copy"


def _difference(obj: Object) -> str:
    """Return the first byte that differs from a sound copy; nothing if it is not known."""
    if obj["differs_at"] is None:
        return ""
    place = ""
    if obj["header_field"] is not None:
        place = f", in the field {obj['header_field']} of the header of the batch"
    elif obj["record_offset"] is not None:
        place = f", in the record at offset {obj['record_offset']}"
    elif obj["differs_in_codec"] is not None:
        place = f"; the batch is compressed ({obj['differs_in_codec']}), so no record can be named"
    other = text.escape(obj["differs_from"])
    return f"; first byte that differs from {other}: {obj['differs_at']}{place}"


def _names(labels: Sequence[str]) -> str:
    return ", ".join(text.escape(label) for label in labels)
