"""How a comparison of replicas looks: a verdict for each partition, and why."""

from collections.abc import Sequence
from typing import Any

from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns, keep
from logtool.copies.pair import Status
from logtool.copies.verdict import Verdict
from logtool.errors import UnreadableError
from logtool.running.summary import ActionSummary

SCHEMA = "logtool.diff/1"
_PAIR = columns(
    "topic", "partition", "left", "right", "status", "first_offset", "end_offset",
    "left_end_offset", "right_end_offset", "equal_batches", "rewritten_batches", "diverges_at",
    "left_batch", "right_batch", "left_lacks", "right_lacks", "common_epoch", "epochs_diverge_at",
)  # fmt: skip
_PARTITION = keep(columns(
    "topic", "partition", "copies", "status", "diverges_at", "superset", "behind", "damaged",
    "unfilled", "in_sync", "eligible", "fixes",
), "topic", "partition", "status", "diverges_at", "behind")  # fmt: skip
_DAMAGE = columns("topic", "partition", "copy", "segment", "position", "length", "reason",
                  "first_offset", "last_offset", "filled_by")  # fmt: skip
_MOST_EPOCHS = 4
_WORDS = {
    Status.SAME: "the same",
    Status.ALONE: "one copy only",
    Status.BEHIND: "the same as far as they go",
    Status.COMPACTED: "the same, compacted differently",
    Status.DISJOINT: "no offset in common",
    Status.MISSING: "BATCHES ARE MISSING",
    Status.DAMAGED: "DAMAGED",
    Status.DIVERGED: "DIVERGED",
    Status.OTHER_TOPIC: "TOPIC IDS DIFFER: not the same topic",
}
_STYLES = {Status.COMPACTED: "info", Status.BEHIND: "warning", Status.DISJOINT: "warning"}


def make(settings: OutputSettings) -> View:
    """Return the view."""
    layouts = {"partition": _PARTITION, "damage": _DAMAGE}
    return View(
        schema=SCHEMA,
        columns=_PAIR,
        layout=lambda obj: layouts.get(str(obj["type"])),
        lines={"table": lambda obj: _line(obj, settings)},
        row_types=frozenset({"pair"}),
        sparse=True,
    )


class Printer:
    """Prints verdicts; a table leaves out partitions whose copies are as they should be."""

    def __init__(self, report: Report, summary: ActionSummary, *, identical: bool = False) -> None:
        """Begin; with `identical`, copies that differ in anything are as grave as damage."""
        self._report = report
        self._summary = summary
        self._brief = report.settings.format == "table" and not report.settings.verbose
        self._identical = identical
        self._unequal = 0
        self._found: dict[Status, int] = {}

    def verdict(self, verdict: Verdict) -> None:
        """Print one partition: the verdict, the copies, each two of them, the damage."""
        summary = self._summary
        summary.partitions += 1
        for copy in verdict.copies:
            summary.segments += copy.segments
            summary.batches += copy.tally.batches
            summary.records += copy.records
            summary.bytes += copy.bytes
        status = verdict.status
        self._found[status] = self._found.get(status, 0) + 1
        unequal = self._identical and not verdict.identical
        self._unequal += unequal
        summary.to_do |= status.is_grave or unequal
        if self._brief and status in (Status.SAME, Status.ALONE) and not unequal:
            return
        self._report.item(verdict.as_json())
        for parts in (verdict.copies, verdict.pairs, verdict.wounds):
            for part in parts:
                self._report.item(part.as_json())

    def problem(self, error: UnreadableError) -> None:
        """Print what could not be read."""
        self._summary.add(error)
        self._report.unreadable(error)

    def conclude(self, *, compared: bool) -> None:
        """Print how many partitions are what, and what that says, for people."""
        counts = sorted(self._found.items(), key=lambda item: list(Status).index(item[0]))
        parts = [f"{count} {_WORDS[status]}" for status, count in counts]
        total = text.count(self._summary.partitions, "partition")
        line = f"{total}: {', '.join(parts)}" if parts else total
        self._report.note(
            text.state(self._summary) + line, "error" if self._summary.to_do else None
        )
        if compared:
            self._report.note(self._extent())

    def _extent(self) -> str:
        """Return what the verdict is about, for who wants to delete a copy."""
        if not self._identical:
            return (
                "batches were compared; log starts, leader epochs, indexes and producer snapshots "
                "were not; before a copy is deleted, ask with --identical"
            )
        found = f"NOT IDENTICAL: {text.count(self._unequal, 'partition')}"
        if not self._unequal and self._summary.complete:
            found = "all copies are identical"
        return (
            f"{found}; batches, log starts, log ends and leader epochs were compared, indexes and "
            "producer snapshots, which a broker makes from the log, were not"
        )


def _line(obj: Object, settings: OutputSettings) -> str | None:
    kind = obj["type"]
    if kind == "partition":
        return _partition(obj, settings)
    if kind == "copy":
        return f"  {text.escape(obj['copy'])}: {_copy(obj)}"
    if kind == "pair":
        told = _pair(obj)
        return f"  {text.escape(obj['left'])} and {text.escape(obj['right'])}: {told}"
    return f"  {text.escape(obj['copy'])}: {_damage(obj)}" if kind == "damage" else None


def _partition(obj: Object, settings: OutputSettings) -> str:
    status = Status(obj["status"])
    style = "error" if status.is_grave else _STYLES.get(status, "good")
    words = output.paint_stdout(_WORDS[status], style, settings.color)
    line = f"{text.escape(obj['topic'])}-{obj['partition']}: {words}"
    if status is Status.SAME and not obj["identical"]:
        line += ", but for log starts, leader epochs or an unfinished append"
    if obj["diverges_at"] is not None:
        line += f" at offset {obj['diverges_at']}"
    if obj["superset"] and len(obj["superset"]) < len(obj["copies"]):
        line += f"; everything is in {_names(obj['superset'])}"
    if obj["behind"]:
        line += f"; behind: {_names(obj['behind'])}"
    if obj["unfilled"]:
        line += f"; {text.count(obj['unfilled'], 'range')} that no copy can fill"
    if obj["in_sync"] is not None:
        nodes = ", ".join(map(str, obj["in_sync"])) or "no broker"
        line += f"; in sync by the metadata log: {nodes}"
    if obj["eligible"]:
        line += f"; eligible as leaders: {', '.join(map(str, obj['eligible']))}"
    return "\n  next: ".join([line, *map(text.escape, obj["fixes"])])


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
    if status in (Status.SAME, Status.OTHER_TOPIC, Status.DISJOINT):
        return _WORDS[Status(status)]
    same = text.count(obj["equal_batches"], "batch", "batches")
    parts = [f"{same} the same"]
    if obj["rewritten_batches"]:
        parts.append(f"{obj['rewritten_batches']} rewritten by compaction")
    if obj["diverges_at"] is not None:
        sides = " against ".join(_batch(obj[side]) for side in ("left_batch", "right_batch"))
        parts.append(f"diverge at offset {obj['diverges_at']}: {sides}")
        if obj["epochs_diverge_at"] is not None:
            parts.append(f"leader epochs differ from offset {obj['epochs_diverge_at']} on")
    for side in ("left", "right"):
        parts += [f"{text.escape(obj[side])} lacks {what}" for what in _lacks(obj[f"{side}_lacks"])]
    return "; ".join(parts)


def _batch(batch: dict[str, Any] | None) -> str:
    if batch is None:
        return "nothing"
    span = text.through(batch["base_offset"], batch["last_offset"])
    return f"{span} of epoch {batch['leader_epoch']} (CRC {batch['crc']})"


def _lacks(obj: dict[str, Any]) -> list[str]:
    words = {
        "before": "before its start",
        "behind": "after its end",
        "damaged": "where it is damaged",
        "compacted": "to compaction",
    }
    parts = [
        f"{text.count(obj[key], 'batch', 'batches')} {where}"
        for key, where in words.items()
        if obj[key]
    ]
    return parts + [text.offsets(first, last) for first, last in obj["missing"]]


def _damage(obj: Object) -> str:
    what = "unfinished append" if obj["torn_tail"] else f"damage ({obj['reason']})"
    line = (
        f"{what} in segment {obj['segment']} @{obj['position']}, {text.size(obj['length'])}: "
        f"{text.escape(obj['message'])}"
    )
    if obj["first_offset"] is None:
        return f"{line}; no offset is missing"
    last = "the end" if obj["last_offset"] is None else obj["last_offset"]
    line += f"; {text.offsets(obj['first_offset'], last)}"
    if obj["filled_by"]:
        return f"{line}, sound in {_names(obj['filled_by'])}"
    if obj["partly_filled_by"]:
        return f"{line}, partly in {_names(obj['partly_filled_by'])}"
    return f"{line}, sound in no other copy"


def _names(labels: Sequence[str]) -> str:
    return ", ".join(text.escape(label) for label in labels)
