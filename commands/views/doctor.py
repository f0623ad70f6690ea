"""Output of the answers of `doctor`: one screen, or one row for each answer."""

import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from logtool.commands import options
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import fitting, terminal, text
from logtool.commands.printing.writers import Object, TableColumn
from logtool.commands.views import after_start, examinations
from logtool.commands.views.doctor_tables import DOCUMENT
from logtool.commands.views.findings import to_repair
from logtool.commands.views.rows import RowPrinter
from logtool.doctor import diagnosis
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.running.summary import ActionSummary

SCHEMA = DOCUMENT.schema
ANSWERS = frozenset(
    {
        "node",
        "damage",
        "start",
        "after_start",
        "transactions",
        "high_watermark",
        "broker",
        "versions",
        "old_formats",
        "disk",
        "limit",
        "remedy",
        "quorum",
        "next",
    }
)
"""Types of object that answer a question: the rows of every table."""
MOST_GROUPS = 3
"""Kinds of finding, or of action, that the screen shows."""
_NARROWEST, _WIDEST = 60, 100
_INDENT = 19
LABELS = {
    "after_start": "retention",
    "transactions": "txns",
    "high_watermark": "watermark",
    "old_formats": "formats",
    "limit": "limits",
}
_WORDS = {"good": "ok", "warning": "WARNING", "error": "ERROR"}
_LIMITS = {"open-files": "open files", "max-map-count": "maps"}


def run(
    inputs: options.Inputs, running: options.Running, printing: options.Printing,
    *, kafka_version: str | None, fail_on: Severity,
) -> Exit:  # fmt: skip
    """Print the problems of log dirs and the steps to take; return the exit status."""
    settings, given, summary = printing.settings(), inputs.resolved(), ActionSummary()
    jobs = examinations.of(inputs, running, summary, kafka_version, lambda one: report.show(one))
    report = Report(settings, make(settings, given.paths), summary, given)
    return report.consume(diagnosis.diagnose(jobs), RowPrinter(report, DOCUMENT.row), fail_on)


def make(settings: OutputSettings, paths: Sequence[Path]) -> View:
    """Return the view; of one path alone the names of files are shown without it."""
    prefix = f"{paths[0]}/" if len(paths) == 1 else ""
    rows = (
        TableColumn("answer", lambda obj: obj["type"]),
        TableColumn("state", lambda obj: obj.get("state")),
        TableColumn("text", lambda obj: " ".join(sentences(obj))),
    )
    return View(
        schema=SCHEMA,
        columns=rows,
        layout=lambda obj: rows if obj["type"] in ANSWERS else None,
        lines={"table": lambda obj: _screen(obj, settings, prefix)},
        row_types=ANSWERS,
        sparse=True,
    )


def _screen(obj: Object, settings: OutputSettings, prefix: str) -> str | None:
    """Return the lines of an answer, as wide as the terminal; None for a limit that suffices."""
    if obj["type"] not in ANSWERS:
        return None
    if obj["type"] == "next":
        return f"Next, {obj['reason']}:\n  {text.escape(obj['command'])}"
    if obj["type"] == "limit" and obj["state"] == "good":
        return None
    if obj["type"] == "remedy":
        command = f":\n  {text.escape(obj['command'])}" if obj["command"] else ""
        words = to_repair(obj["findings"], obj["remedy"], obj["command"])
        return fitting.folded(f"{words}{command}", _width())
    if obj["type"] == "node":
        return f"Broker {next(_node(obj))}"
    width = _width()
    state = obj["state"]
    label = f"{_WORDS.get(state, state):<8} {LABELS.get(obj['type'], obj['type']):<10}"
    lines = _wrapped(" ".join(sentences(obj)), width)
    lines[0] = terminal.paint_stdout(label, state, settings.color) + lines[0][_INDENT:]
    lines += _groups(obj, settings, prefix, width)
    return "\n".join(lines)


def _width() -> int:
    """Return the columns that the screen takes: those of the terminal, within limits."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, _NARROWEST), _WIDEST)


def _wrapped(line: str, width: int, columns: int = _INDENT) -> list[str]:
    """Return the indented lines of a text; a word longer than a line is left whole."""
    indent = " " * columns
    return textwrap.wrap(
        text.escape(line), width, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    ) or [indent]  # fmt: skip


_SHOWN_INFOS = frozenset({"batch/timestamp-future", "batch/timestamp-unit"})
"""Codes of severity info that a person is shown: they change what retention deletes."""


def _groups(obj: Object, settings: OutputSettings, prefix: str, width: int) -> Iterator[str]:
    groups = [
        group
        for group in obj.get("groups", ())
        if group["state"] != "info" or group["name"] in _SHOWN_INFOS
    ]
    for group in groups[:MOST_GROUPS]:
        count = f" x{group['count']:,}" if group["count"] > 1 else ""
        place = str(group["path"] or "").removeprefix(prefix)
        if group["position"] is not None:
            place += f" @{group['position']}"
        name = terminal.paint_stdout(group["name"], group["state"], settings.color)
        fits = len(group["name"]) + len(count) + len(place) + 4 <= width
        yield f"  {name}{count}" + (f"  {text.escape(place)}" if fits else "")
        if not fits:
            yield f"    {text.escape(place)}"
        yield from _wrapped(group["message"], width, 4)
        if len(group["partitions"]) > 1:
            yield from _wrapped(f"in {_named(group['partitions'])}", width, 4)
    if len(groups) > MOST_GROUPS:
        more = "more kinds" if len(groups) > MOST_GROUPS + 1 else "more kind"
        yield f"  and {len(groups) - MOST_GROUPS} {more}; --format json has them all"


def sentences(obj: Object) -> Iterator[str]:
    """Yield the sentences about an object of the diagnosis."""
    yield from _TEXTS[obj["type"]](obj)


def _node(obj: Object) -> Iterator[str]:
    yield f"{obj['node']}: {text.escape(' '.join(obj['paths']))}"


def _remedy(obj: Object) -> Iterator[str]:
    command = f": {text.escape(obj['command'])}" if obj["command"] else ""
    yield f"{to_repair(obj['findings'], obj['remedy'], obj['command'])}{command}"


def _damage(obj: Object) -> Iterator[str]:
    found, segments = obj["findings"], obj["segments"]
    if obj["unreadable"]:
        missing = f"incomplete, {text.count(obj['unreadable'], 'input')} could not be read"
        yield f"{missing}:" if obj["partitions"] else missing
        if not obj["partitions"]:
            return
    elif not obj["complete"]:
        yield "incomplete, the time limit was reached:"
    counted = [
        text.count(found[name], name, plural)
        for name, plural in (("error", "errors"), ("warning", "warnings"), ("info", "infos"))
        if found[name]
    ]
    if not (found["error"] or found["warning"]):
        counted = ["no errors, no warnings", *counted]
    yield f"{', '.join(counted)} in {text.count(obj['partitions'], 'partition')},"
    yield f"{text.count(segments, 'segment')}, {text.size(obj['log_bytes'])};"
    if obj["looked_at_segments"] < segments and obj["checked_segments"] < segments:
        yield f"{obj['looked_at_segments']:,} segments were checked quickly, and"
    if obj["checked_segments"] >= segments:
        yield "every readable batch was checked" if obj["unreadable"] else "every batch was checked"
    else:
        read = text.size(obj["checked_bytes"])
        yield f"the batches of {obj['checked_segments']:,} segments were checked, {read}"


def _start(obj: Object) -> Iterator[str]:
    lost = obj["lost_records"]
    if obj["refuses"]:
        yield "A BROKER REFUSES TO START;"
    if obj["losing_partitions"]:
        where = text.count(len(obj["losing_partitions"]), "partition")
        what = text.count(lost, "record") if lost else "acknowledged offsets"
        stops = obj["refuses"] or obj["partitions_not_loaded"] or obj["offline_log_dirs"]
        starts = "" if stops else "the broker starts, and "
        yield f"{starts}LOSES {what} in {where};"
    if obj["offline_log_dirs"]:
        yield f"{text.count(obj['offline_log_dirs'], 'log dir')} offline;"
    if obj["partitions_not_loaded"]:
        yield f"{text.count(obj['partitions_not_loaded'], 'partition')} not loaded;"
    if not obj["complete"] and not obj["partitions_not_reached"]:
        yield "incomplete, some inputs could not be read;"
    if obj["partitions_not_reached"]:
        missing = text.count(obj["partitions_not_reached"], "partition")
        yield f"{missing} not checked, the time was over;"
    if not obj["complete"]:
        if not obj["partitions"]:
            yield "the effect of the start is not known"
            return
        yield f"in {text.count(obj['partitions'], 'partition')} that were checked:"
    if not obj["recovered_segments"]:
        yield "no segment is recovered,"
    else:
        segments = text.count(obj["segments"], "segment")
        because = f" because {obj['cause']}" if obj["cause"] else ""
        without = " (the metadata log not counted)" if obj["metadata_log"] else ""
        yield f"{obj['recovered_segments']:,} of {segments} recovered{because}{without},"
    yield f"{text.count(obj['changed_files'], 'file')} cut, rebuilt or removed;"
    if obj["purged_partitions"]:
        dirs = text.count(
            obj["purged_partitions"], "-delete directory is", "-delete directories are"
        )
        yield f"{dirs} deleted afterwards (logtool undelete saves them);"
    if obj["reappearing_partitions"]:
        where = text.count(obj["reappearing_partitions"], "partition")
        code = "checkpoint/log-start-behind"
        yield f"deleted records are readable again in {where} (logtool explain {code});"
    yield f"reads {text.size(obj['read_bytes'])}" if obj["read_bytes"] else "reads no log"
    if obj["seconds"] is not None:
        span = text.span(obj["seconds_low"], obj["seconds_high"], text.duration)
        yield f"in {span}; logtool plan explains this time"


def _after_start(obj: Object) -> Iterator[str]:
    if obj["segments"] is None:
        yield f"not looked at, because there are many partitions: {text.escape(obj['command'])}"
        return
    parts = []
    if obj["segments"]:
        what = f"{text.count(obj['segments'], 'segment')} ({text.size(obj['bytes'])})"
        where = text.count(obj["partitions"], "partition")
        delay = text.duration(obj["delay_ms"] / 1000)
        oldest = text.escape(obj["oldest"])
        parts.append(
            f"deletes {what} of {where} {delay} after the start; the oldest is of {oldest}"
        )
    if obj["early"]:
        named = _named(_partition(one["path"]) for one in obj["early"])
        parts.append(after_start.too_early(named, obj["early"]))
    if obj["future_stamped"]:
        first = obj["future_stamped"][0]
        said = after_start.keeps(_partition(first["path"]), first["base_offset"], first["until"])
        more = len(obj["future_stamped"]) - 1
        parts.append(
            "retention " + said + (f", and {text.count(more, 'more partition')}" if more else "")
        )
    if obj["kept"]:
        named = _named(_partition(one["path"]) for one in obj["kept"])
        parts.append(f"open transactions keep {named} from being compacted")
    if obj["uncleanable"]:
        named = _named(_partition(one["path"].rpartition("/")[0]) for one in obj["uncleanable"])
        parts.append(after_start.gives_up(named, cleaner_off=obj["cleaner_off"]))
    yield "; ".join(parts)


def _partition(path: str) -> str:
    return path.rpartition("/")[2]


def _named(names: Iterable[str]) -> str:
    """Return the first names, with the number of the rest."""
    return text.some(names, MOST_GROUPS)


def _transactions(obj: Object) -> Iterator[str]:
    if not obj["complete"]:
        yield "incomplete: at least"
    where = text.count(obj["partitions"], "partition")
    yield f"{text.count(obj['open'], 'open transaction')} in {where},"
    kinds = [f"{obj['hanging']:,} hanging"] if obj["hanging"] else []
    if obj["unknown"]:
        kinds.append(f"{obj['unknown']:,} old whose coordinator's state is not known")
    if obj["marker_lost"]:
        kinds.append(f"{obj['marker_lost']:,} committed without the marker, which is lost")
    if others := obj["open"] - obj["hanging"] - obj["unknown"] - obj["marker_lost"]:
        verb = "ends" if others == 1 else "end"
        kinds.append(f"{others:,} that {verb} without help, by a client or a timeout")
    yield f"{', '.join(kinds)};"
    if obj["stuck"]:
        kind = "no marker ends them" if obj["marker_lost"] else "hanging or unknown"
        yield f"{kind} in {_named(obj['stuck'])};"
    if obj["oldest"]:
        age = text.duration(obj["age_ms"] / 1000)
        yield f"the oldest in {text.escape(obj['oldest'])} from offset {obj['oldest_offset']},"
        yield f"open for {age};"
    yield "read_committed consumers stop at them"


def _high_watermark(obj: Object) -> Iterator[str]:
    missing = obj["partitions_not_reached"]
    if not obj["below"]:
        known = text.count(obj["partitions_known"], "partition")
        of = "of those checked, " if missing else ""
        yield f"{of}no log ends below its high watermark; {known} with a known high watermark"
        return
    lost = sum(one["lost_acknowledged"] for one in obj["below"])
    yield f"{text.count(lost, 'acknowledged offset')} missing after the start, in"
    named = [f"{one['topic']}-{one['partition']}" for one in obj["below"][:MOST_GROUPS]]
    more = len(obj["below"]) - len(named)
    yield ", ".join(named) + (f" and {more:,} more" if more else "")


def _broker(obj: Object) -> Iterator[str]:
    if obj["in_use"]:
        who = f"process {obj['pid']}" if obj["pid"] else "a process that is not visible from here"
        name = f" ({obj['command']})" if obj["command"] else ""
        lock = "pid.lock" if obj["clean"] is None else ".lock"
        yield f"{who}{name} holds {lock} of {obj['path']}: these results may be out of date"
        return
    if obj["clean"] is None:
        yield "no process holds pid.lock"
        return
    yield f"no process holds .lock of {text.escape(str(obj['path']))};"
    yield "clean stop" if obj["clean"] else "unclean stop: no .kafka_cleanshutdown"


def _versions(obj: Object) -> Iterator[str]:
    level, written = obj["metadata_version"], obj["written_by"]
    if level is not None:
        yield f"last started with Kafka {written} (metadata.version up to {level});"
    elif written:
        yield f"written by Kafka {written} ({', '.join(obj['evidence'])});"
    if obj["kafka_shown"] != obj["kafka"]:
        yield f"the start is predicted for Kafka {obj['kafka']} (--kafka-version);"
    finalized = obj["finalized"].get("metadata.version")
    if finalized is not None:
        yield f"finalized metadata.version {finalized} ({obj['finalized_name']});"
    mode = {"kraft": "KRaft", "zookeeper": "ZooKeeper"}.get(obj["mode"] or "")
    if mode:
        yield f"{mode};"
    found = obj["meta_properties"]
    if not found:
        yield "no meta.properties"
        return
    versions = sorted({str(one["version"]) for one in found})
    nodes = sorted({str(one["node_id"]) for one in found if one["node_id"] is not None})
    clusters = sorted({one["cluster_id"] for one in found if one["cluster_id"] is not None})
    of_cluster = f" of cluster {' and '.join(clusters)}" if clusters else ""
    yield f"node {' and '.join(nodes) or 'not known'}{of_cluster},"
    yield f"meta.properties version {' and '.join(versions)}"


def _old_formats(obj: Object) -> Iterator[str]:
    named = obj["partitions"][:MOST_GROUPS]
    more = len(obj["partitions"]) - len(named)
    yield "batches of magic 0 or 1 in"
    also = f" and {text.count(more, 'more partition')}" if more else ""
    yield f"{', '.join(named)}{also};"
    if not obj["complete"]:
        yield "not every batch was checked;"
    yield f"brokers and Java clients up to Kafka {obj['newest_reader']} read them,"
    yield "librdkafka 2.5 to 2.15 gives NULL for their keys and values, or stops at them"


def _disk(obj: Object) -> Iterator[str]:
    free = f"{text.size(obj['available_bytes'])} of {text.size(obj['total_bytes'])} free"
    inodes = "" if obj["inodes_percent"] is None else f", inodes {obj['inodes_percent']} %"
    yield f"{obj['used_percent']} % used, {free}{inodes};"
    if obj["read_only"]:
        yield "mounted read-only;"
    yield f"{text.size(obj['log_dir_bytes'])} in {' '.join(obj['paths'])}"


def _limit(obj: Object) -> Iterator[str]:
    allowed = "any number" if obj["allowed"] is None else f"{obj['allowed']:,}"
    whose = f" of process {obj['pid']}" if obj["pid"] else ""
    yield f"{_LIMITS[obj['name']]}: {obj['needed']:,} needed, {allowed} allowed{whose}"


def _quorum(obj: Object) -> Iterator[str]:
    voters, missing = obj["voters"], obj["missing"]
    given = [one for one in voters if one not in missing]
    yield f"{len(given)} of {text.count(len(voters), 'voter')} here ({', '.join(map(str, given))}),"
    yield f"without {', '.join(map(str, missing))}: no controller can be elected with these nodes,"
    yield "and no broker starts without one. The copies of the metadata log compared, and the one"
    yield f"to keep: {text.escape(obj['command'])}"


def _next(obj: Object) -> Iterator[str]:
    yield str(obj["command"])


_TEXTS: dict[str, Callable[[Object], Iterator[str]]] = {
    "node": _node,
    "damage": _damage,
    "start": _start,
    "after_start": _after_start,
    "transactions": _transactions,
    "high_watermark": _high_watermark,
    "broker": _broker,
    "versions": _versions,
    "old_formats": _old_formats,
    "disk": _disk,
    "limit": _limit,
    "remedy": _remedy,
    "quorum": _quorum,
    "next": _next,
}
