"""The report of a segment as text and bytes, for a later run that does not read the segment again.

The text is JSON with every field of `SegmentReport` but the errors among its findings and the
producer rows; these are the columns of a `BatchTable`, one after the other, as int64.
"""

import json
from dataclasses import asdict, fields
from typing import Any, Final

import numpy as np

from logtool.checks.old_formats import FormatExtent
from logtool.checks.report import InnerGaps, SegmentReport
from logtool.disk import files
from logtool.findings import Broker, Finding, Remedy
from logtool.formats.record_batch import BatchTable

_COLUMNS: Final = [one.name for one in fields(BatchTable)]
NOT_WRITTEN: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of `parse` for a text that this release did not write."""


def as_text(report: SegmentReport) -> str:
    """Return a report as JSON in ASCII, without its producer rows."""
    content = {
        one.name: getattr(report, one.name)
        for one in fields(report)
        if one.name not in ("findings", "gaps", "producer_rows")
    }
    content["gaps"] = asdict(report.gaps)
    content["old_formats"] = [asdict(one) for one in report.old_formats]
    content["findings"] = [
        finding_as_json(one) for one in report.findings if isinstance(one, Finding)
    ]
    return json.dumps(content)


def parse(text: str, producer_rows: bytes) -> SegmentReport:
    """Return the report of `as_text` and `columns_of`; one of `NOT_WRITTEN` for other texts."""
    content = json.loads(text)
    content["findings"] = [finding_of(one) for one in content["findings"]]
    gaps = InnerGaps(**content.pop("gaps"))
    gaps.first = None if gaps.first is None else (*gaps.first,)
    content["old_formats"] = tuple(FormatExtent(**one) for one in content.get("old_formats", ()))
    content["epochs"] = [(epoch, first, last) for epoch, first, last in content["epochs"]]
    columns = np.frombuffer(producer_rows, "<i8").astype(np.int64).reshape(len(_COLUMNS), -1)
    return SegmentReport(**content, gaps=gaps, producer_rows=BatchTable(*columns))


def columns_of(table: BatchTable) -> bytes:
    """Return the columns of a table, one after the other, as little-endian int64."""
    columns = [np.asarray(getattr(table, name), "<i8") for name in _COLUMNS]
    return np.stack(columns).tobytes()


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """Return the fields of a finding as values of JSON."""
    return asdict(finding) | {"path": finding.path and str(finding.path)}


def finding_of(content: dict[str, Any]) -> Finding:
    """Return the finding of `finding_as_json`."""
    path, broker = content["path"], content["broker_override"]
    remedy = content.get("remedy_override")
    return Finding(
        **content
        | {
            "path": path and files.path_of(path),
            "broker_override": broker and Broker(broker),
            "remedy_override": remedy and Remedy(remedy),
        }
    )
