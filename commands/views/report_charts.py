"""Charts of a report as SVG inside HTML: the map of segments and damage, and the timeline."""

from collections.abc import Iterator, Sequence
from html import escape

from logtool import times
from logtool.commands.printing import text
from logtool.doctor.log_map import LogMap, place

_WIDTH = 1000
"""Units of a chart from its left to its right, whatever its width on the screen."""
_HEIGHT = 16
_MOST_SEGMENTS = 200
"""Segments of a log that are drawn one by one; more are drawn as one area."""
_MOST_MARKS = 200
_BARS = 60
_TIMELINE_HEIGHT = 120


def segment_map(log: LogMap) -> str:
    """Return the bar of a log: its segments by their bytes, what a start reads, and damage."""
    total = log.size or 1
    parts, at = [], 0.0
    read = log.recovered_from
    if len(log.segments) > _MOST_SEGMENTS:
        kept = sum(one.log.size for one in log.segments if read is None or one.base_offset < read)
        areas = [(kept, False), (log.size - kept, True)]
    else:
        areas = [
            (one.log.size, read is not None and one.base_offset >= read) for one in log.segments
        ]
    for size, is_read in areas:
        width = size * _WIDTH / total
        parts.append(
            f'<rect class="{"read" if is_read else "kept"}" x="{at:.2f}" y="0" '
            f'width="{max(width - 1, 0.5):.2f}" height="{_HEIGHT}"/>'
        )
        at += width
    for mark in log.marks[:_MOST_MARKS]:
        x = min(place(log, mark) * _WIDTH / total, _WIDTH - 3)
        parts.append(
            f'<rect class="{mark.severity}" x="{x:.2f}" y="0" width="3" height="{_HEIGHT}">'
            f"<title>segment {mark.segment}, byte {mark.position}</title></rect>"
        )
    label = f"{len(log.segments)} segments, {len(log.marks)} damaged places"
    return _svg(_HEIGHT, label, parts)


def timeline(logs: Sequence[LogMap]) -> str:
    """Return bars of the bytes of logs by the time of their last write; empty without any."""
    written = sorted(
        (segment.log.mtime_ns // 1_000_000, segment.log.size)
        for log in logs
        for segment in log.segments
        if segment.log.mtime_ns
    )
    if not written:
        return ""
    first, last = written[0][0], written[-1][0]
    step = max((last - first) // _BARS + 1, 1)
    sizes, counts = [0] * _BARS, [0] * _BARS
    for at, size in written:
        bar = min((at - first) // step, _BARS - 1)
        sizes[bar] += size
        counts[bar] += 1
    most = max(sizes) or 1
    return _svg(
        _TIMELINE_HEIGHT,
        f"bytes of logs by the time of the last write, from {times.shown(first)} "
        f"to {times.shown(last)}",
        _bars(sizes, counts, first, step, most),
    ) + (
        f'<p class="axis"><span>{times.shown(first)}</span>'
        f"<span>{escape(text.size(most))} in the highest bar</span>"
        f"<span>{times.shown(last)}</span></p>"
    )


def _bars(
    sizes: Sequence[int], counts: Sequence[int], first: int, step: int, most: int
) -> Iterator[str]:
    width = _WIDTH / _BARS
    for bar, size in enumerate(sizes):
        if not counts[bar]:
            continue
        height = max(size * _TIMELINE_HEIGHT / most, 2)
        title = f"{times.shown(first + bar * step)}: {text.size(size)} in {counts[bar]} segments"
        yield (
            f'<rect class="bar" x="{bar * width:.2f}" y="{_TIMELINE_HEIGHT - height:.2f}" '
            f'width="{width - 2:.2f}" height="{height:.2f}"><title>{escape(title)}</title></rect>'
        )


def _svg(height: int, label: str, parts: Iterator[str] | Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}" style="height:{height}px">{"".join(parts)}</svg>'
    )
