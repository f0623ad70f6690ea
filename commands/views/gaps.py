"""How gaps look: partitions, what is missing in them, topics, ghosts."""

from collections.abc import Iterator
from pathlib import Path

from logtool.commands import output
from logtool.commands.output import OutputSettings, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns
from logtool.running.summary import Summary

_MOST_NAMED = 4
"""Ghosts that the line of a round names."""
SCHEMA = "logtool.gaps/1"
_GAP = columns(
    "path", "topic", "partition", "kind", "first_offset", "last_offset", "missing", "reason",
    "loss", "evidence", "before_segment", "after_segment", "position", "leader_epoch",
    "before_timestamp_ms", "before_timestamp", "after_timestamp_ms", "after_timestamp", "ghosts",
    "ghost_bytes",
)  # fmt: skip
_PARTITION_MARKDOWN = columns(
    "path", "log_start_offset", "log_end_offset", "visible", "control", "missing",
    "missing_share", "losses", "ghosts",
)  # fmt: skip
_GAP_MARKDOWN = columns(
    "path", "kind", "first_offset", "last_offset", "missing", "reason", "evidence"
)
_TOPIC_MARKDOWN = columns("topic", "partitions", "offsets", "missing", "missing_share", "losses")
_GHOST_MARKDOWN = columns(
    "path", "first_offset", "last_offset", "leader_epoch", "epoch_from", "following_leader_epoch",
    "checkpoint_leader_epochs", "reason",
)  # fmt: skip
_STRETCH_MARKDOWN = columns(
    "path", "ghost", "reason", "first_offset", "last_offset", "without_ghosts_first_offset",
    "without_ghosts_last_offset",
)  # fmt: skip
_ROUND_MARKDOWN = columns(
    "path", "round", "start_offset", "first_offset", "last_offset", "batches", "size",
    "base_batch_offset_before", "last_batch_offset_before", "base_batch_offset",
    "last_batch_offset",
)  # fmt: skip
_MARKDOWN = {
    "partition": _PARTITION_MARKDOWN, "gap": _GAP_MARKDOWN, "topic": _TOPIC_MARKDOWN,
    "ghost": _GHOST_MARKDOWN, "stretch": _STRETCH_MARKDOWN, "round": _ROUND_MARKDOWN,
}  # fmt: skip


def make(settings: OutputSettings) -> View:
    """Return the view of ``gaps``."""
    return View(
        schema=SCHEMA,
        columns=_GAP,
        layout=lambda obj: _MARKDOWN.get(obj["type"]),
        lines={"table": lambda obj: _lines(obj, settings)},
        row_types=frozenset({"gap"}),
        sparse=True,
    )


def last_lines(total: Object, summary: Summary) -> Iterator[str]:
    """Yield what is said in the end, for people."""
    losses = total["losses"]
    if losses:
        verdict = f"{text.count(losses, 'gap')} that may mean loss"
    elif summary.complete:
        verdict = "no gap means loss"
    else:
        verdict = "no gap of what was read means loss"
    missing = f"{total['missing']:,} of {text.count(total['offsets'], 'offset')} missing"
    yield (
        f"{text.state(summary)}{verdict}; {missing}"
        f"{_percent(total['missing_share'])} in {text.count(total['partitions'], 'partition')}"
    )


def written(path: Path, size: int, partition: Object, *, losses_too: bool) -> str:
    """Return what is said of a log that was written, for people.

    With `losses_too`, gaps that may mean loss were filled as well.
    """
    ghosts = partition["ghosts"] - (0 if losses_too else partition["ghosts_of_losses"])
    line = f"{path}: {text.size(size)}, {text.count(ghosts, 'ghost')}"
    if partition["losses"] and losses_too:
        line += "; gaps that may mean loss are filled too, and it does not tell which"
    elif partition["losses"]:
        line += "; gaps that may mean loss are left as they are; --fill-losses fills them too"
    return line


def stored(path: Path, size: int, ghosts: int) -> str:
    """Return what is said of a log without its ghosts, for people."""
    left = text.count(ghosts, "ghost")
    return f"{path}: {text.size(size)}, without {left} that a follower counts and does not store"


def _lines(obj: Object, settings: OutputSettings) -> str | None:
    kind = obj["type"]
    if kind in ("partition", "topic") and not (obj["reasons"] or settings.verbose):
        return None
    if kind == "partition":
        return _partition(obj)
    if kind == "topic":
        return _topic(obj)
    if kind == "gap":
        return _gap(obj, settings) if obj["loss"] or settings.verbose else None
    if kind == "ghost":
        span = text.through(obj["first_offset"], obj["last_offset"])
        line = f"  ghost {span} epoch {obj['leader_epoch']} ({obj['epoch_from']})"
        by_checkpoint = ", ".join(map(str, obj["checkpoint_leader_epochs"])) or "not known"
        line += f": following-batch {obj['following_leader_epoch']}, leader-epoch-checkpoint "
        reason = str(obj["reason"])
        if obj["loss"]:
            reason = output.paint_stdout(f"{reason}, MAY MEAN LOSS", "error", settings.color)
        return f"{line}{by_checkpoint}; {reason}"
    if kind == "round":
        return _round(obj)
    if kind == "stretch":
        return _stretch(obj)
    return None


def _partition(obj: Object) -> str:
    extent = text.extent(obj["log_start_offset"], obj["log_end_offset"])
    line = f"{text.escape(obj['path'])}: {extent}, {_counts(obj)}"
    if obj["kafka_offsets_unknown"]:
        line += f"\n  Kafka offsets are not known: {obj['kafka_offsets_unknown']}"
    elif obj["kafka_offsets_from"]:
        first, end = obj["kafka_log_start_offset"], obj["kafka_log_end_offset"]
        span = f"from {first} on, up to the first loss" if end is None else text.extent(first, end)
        line += f"\n  of Kafka: {span}, counted from {obj['kafka_offsets_from']}"
    return line


def _topic(obj: Object) -> str | None:
    if obj["partitions"] < 2:
        return None
    partitions = text.count(obj["partitions"], "partition")
    return f"topic {text.escape(obj['topic'])}: {partitions}, {_counts(obj)}"


def _counts(obj: Object) -> str:
    parts = [f"{obj['visible']:,} visible"]
    if obj["aborted"]:
        parts[0] += f" ({obj['aborted']:,} aborted)"
    if obj["control"]:
        parts.append(f"{obj['control']:,} control")
    parts.append(f"{obj['missing']:,} missing{_percent(obj['missing_share'])}")
    told = "; ".join(
        f"{reason} {counts['offsets']:,} in {text.count(counts['gaps'], 'gap')}"
        for reason, counts in obj["reasons"].items()
    )
    if obj["ghosts"]:
        ghosts = f"{text.count(obj['ghosts'], 'ghost')} of {text.size(obj['ghost_bytes'])}"
        by_rfc = f"{text.size(obj['ghost_bytes_by_rfc'])} by the RFC"
        told += f"; {ghosts} ({by_rfc}), {obj['ghost_share'] * 100:.2f} % of the log, would fill it"
        if obj["ghosts_of_losses"]:
            told += f", {obj['ghosts_of_losses']:,} of them where it may mean loss"
    return ", ".join(parts) + (f": {told}" if told else "")


def _percent(share: float) -> str:
    return f" ({share * 100:.2f} %)" if share else ""


def _gap(obj: Object, settings: OutputSettings) -> str:
    last = obj["last_offset"]
    span = text.through(obj["first_offset"], "the end" if last is None else last)
    if obj["kafka_first_offset"] is not None:
        behind = obj["kafka_last_offset"]
        of_kafka = text.through(obj["kafka_first_offset"], "?" if behind is None else behind)
        span += f" (Kafka {of_kafka})"
    reason = str(obj["reason"])
    if obj["loss"]:
        reason = output.paint_stdout(reason, "error", settings.color)
    where = obj["kind"]
    if obj["kind"] == "in-batch" and last is not None:
        width = last - obj["first_offset"] + 1
        where += f", {obj['missing']} of {width}" if obj["missing"] < width else ""
    return f"  {span}: {reason} ({where}): {text.escape(obj['evidence'])}"


def _round(obj: Object) -> str:
    span = text.through(obj["first_offset"], obj["last_offset"])
    read = f"{text.count(obj['batches'], 'batch', 'batches')}, {text.size(obj['size'])}"
    line = f"  round {obj['round']} from {obj['start_offset']}: read {span} ({read})"
    made = [
        f"{text.through(one['first_offset'], one['last_offset'])} epoch {one['leader_epoch']}"
        for one in obj["ghosts"]
    ]
    if made:
        more = f" and {len(made) - _MOST_NAMED:,} more" if len(made) > _MOST_NAMED else ""
        named = ", ".join(made[:_MOST_NAMED])
        line += f"; {text.count(len(made), 'ghost')}: {named}{more}"
    for name in ("base_batch_offset", "last_batch_offset"):
        before = obj[f"{name}_before"]
        line += f"; _{name} {'not set' if before is None else before} to {obj[name]}"
    return line


def _stretch(obj: Object) -> str:
    span = text.through(obj["first_offset"], obj["last_offset"])
    if obj["ghost"]:
        return f"  ghost   {span} ({obj['reason']})"
    first, last = obj["without_ghosts_first_offset"], obj["without_ghosts_last_offset"]
    wrong = (
        ""
        if first == obj["first_offset"]
        else f", without ghosts {text.through(first, last)}: WRONG"
    )
    return f"  batches {span}{wrong}"
