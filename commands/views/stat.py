"""How statistics look: a row for each partition, topic by topic, sparklines and a histogram."""

import re
from collections.abc import Callable, Mapping, Sequence

from logtool.commands.output import View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Column, Columns, Object, columns, keep
from logtool.commands.views.stat_tables import DOCUMENT, PARTITION, SEGMENT
from logtool.schemas.columns import Way

SCHEMA = DOCUMENT.schema
_DECIDE = ("partition", "segment", "topic", "in all", "size", "batches", "records", "damage")
"""The columns that stay on a narrow terminal."""
_BARS = "▁▂▃▄▅▆▇█"
_SPARK_WIDTH = 16
_BAR_WIDTH = 40


def make(*, segments: bool) -> View:
    """Return the view; with `segments` the rows of CSV and TSV are segments, else partitions."""
    table = SEGMENT if segments else PARTITION
    return View(
        schema=SCHEMA,
        columns=columns(*table.names(Way.CSV)),
        layout=_layout(segments=segments),
        row_types=frozenset({table.name}),
        sparse=True,
    )


def sparkline(values: Sequence[int], width: int = _SPARK_WIDTH) -> str:
    """Return bars for the values, each the sum of its neighbours where there are more than `width`.

    A space is nothing at all, the lowest bar is something.
    """
    step = -(-len(values) // width) or 1
    sums = [sum(values[at : at + step]) for at in range(0, len(values), step)]
    most = max(sums, default=0)
    return "".join(_BARS[(value * len(_BARS) - 1) // most] if value else " " for value in sums)


def histogram(sizes: Sequence[Mapping[str, int]]) -> str:
    """Return the batch sizes as lines of bars."""
    most = max((size["batches"] for size in sizes), default=0)
    lines = []
    for size in sizes:
        count = size["batches"]
        bar = "█" * -(-count * _BAR_WIDTH // most) if count else ""
        lines.append(f"  < {text.size(size['below']):>9}  {count:>12,}  {bar}".rstrip())
    return "\n".join(["batches by size", *lines])


def _layout(*, segments: bool) -> Callable[[Object], Columns | str | None]:
    rows = (_NAME, _SEGMENT, *_SHOWN) if segments else (_NAME, *_SHOWN)
    by_type = {
        "partition": keep(rows, *_DECIDE),
        "segment": keep(rows, *_DECIDE),
        "topic": keep(_TOPIC, *_DECIDE),
        "total": keep(_TOTAL, *_DECIDE),
    }

    def layout(obj: Object) -> Columns | str | None:
        if obj["type"] == "histogram":
            return histogram(obj["batch_sizes"]) if obj["batch_sizes"] else None
        return by_type.get(str(obj["type"]))

    return layout


_OF_REDPANDA = re.compile(r"[0-9]+_[0-9]+", re.ASCII)


def _directory(obj: Object) -> str:
    """Return the name of the directory: a moved or deleted one says so by its suffix."""
    path = str(obj["path"])
    if obj["type"] == "segment":
        path = path.rpartition("/")[0]
    above, _, name = path.rpartition("/")
    # Redpanda's are named alike in each topic.
    return f"{above.rpartition('/')[2]}/{name}" if _OF_REDPANDA.fullmatch(name) else name


def _sizes(obj: Object) -> str:
    if obj["batch_size_median"] is None:
        return ""
    return "/".join(str(obj[f"batch_size_{which}"]) for which in ("min", "median", "max"))


def _codecs(obj: Object) -> str:
    total = sum(obj["codecs"].values())
    shares = sorted(obj["codecs"].items(), key=lambda item: -item[1])
    if len(shares) == 1:
        return str(shares[0][0])
    return " ".join(f"{name} {count * 100 / total:.0f}%" for name, count in shares)


def _span(obj: Object) -> str:
    return "" if obj["span_ms"] is None else text.duration(obj["span_ms"] / 1000)


def _bytes(key: str, after: str = "") -> Callable[[Object], str]:
    return lambda obj: "" if obj[key] is None else text.size(obj[key]) + after


def _rate(obj: Object) -> str:
    rate = obj["records_per_second"]
    return "" if rate is None else f"{rate:.1f}"


def _over_time(obj: Object) -> str:
    return sparkline(obj["bytes_over_time"]["bytes"]) if obj["bytes_over_time"] else ""


def _by_size(obj: Object) -> str:
    return sparkline([size["batches"] for size in obj["batch_sizes"]])


def _damage(obj: Object) -> str:
    if obj["unread_segments"]:
        return text.count(obj["unread_segments"], "segment") + " not read"
    if not obj["damaged_ranges"]:
        return ""
    return f"{text.count(obj['damaged_ranges'], 'range')}, {text.size(obj['damaged_bytes'])}"


def _key(key: str) -> Callable[[Object], object]:
    return lambda obj: obj[key]


_NAME = Column("partition", _directory)
_SEGMENT = Column("segment", lambda obj: obj.get("segment", "all"))
_COUNTED = (
    Column("segments", _key("segments")),
    Column("size", _bytes("log_bytes")),
    Column("indexes", _bytes("index_bytes")),
    Column("batches", _key("batches")),
    Column("records", _key("records")),
    Column("batch size", _sizes),
    Column("codec", _codecs),
    Column("ratio", _key("compression_ratio")),
    Column("producers", _key("producers")),
)
_RATES = (
    Column("span", _span),
    Column("records/s", _rate),
    Column("rate", _bytes("bytes_per_second", "/s")),
    Column("over time", _over_time),
)
_LAST = (Column("by size", _by_size), Column("damage", _damage))
_SHOWN = (
    *_COUNTED,
    Column("first", _key("first_offset")),
    Column("last", _key("last_offset")),
    *_RATES,
    *_LAST,
)
_TOPIC = (
    Column("topic", _key("topic")), Column("partitions", _key("partitions")),
    *_COUNTED, *_RATES, *_LAST,
)  # fmt: skip
_TOTAL = (Column("in all", lambda _: ""), *_TOPIC[1:])
