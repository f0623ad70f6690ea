"""The objects that `scrub` prints: logtool.scrub/1."""

from dataclasses import replace
from typing import Final

from logtool.schemas.columns import Column, Kind, Table, count, size, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_ALL = "the row is about all topics, or the directory has no name of a partition"
COVERAGE: Final = Table("coverage", "topic, and a row for all topics", (
    Column("scope", Kind.STRING, "all topics together, or one topic", words=("all", "topic")),
    Column("topic", Kind.STRING, "name of the topic", null=_ALL),
    count("segments", "segments"),
    size("bytes", "bytes of their logs"),
    Column("share", Kind.FLOAT, "part of the bytes that was checked within the cycle, from 0 to 1",
           digits=6),
    size("day_bytes", "bytes that were checked within a day", "ages.day.bytes"),
    size("week_bytes", "further bytes that were checked within a week", "ages.week.bytes"),
    size("cycle_bytes", "further bytes that were checked within the cycle", "ages.cycle.bytes"),
    size("older_bytes", "bytes that were checked longer ago", "ages.older.bytes"),
    size("never_bytes", "bytes that were never checked, or only at a lower level",
         "ages.never.bytes"),
    count("never_segments", "segments that were never checked, or only at a lower level",
          "ages.never.segments"),
    Column("oldest_s", Kind.FLOAT, "time since the check of the segment that was checked the "
           "longest ago; for a segment that was never checked, since it was first seen", "s"),
), note="The part of the bytes that was checked, by the age of the last check.", type="coverage",
    made_from="logtool.scrub.coverage:CheckCoverage")  # fmt: skip
_RUNS = "the run has not ended, or was killed"
RUN: Final = Table("run", "run", (
    *timed("start_ms", "start of the run", None),
    *timed("end_ms", "end of the run", _RUNS),
    count("due_segments", "segments that were due"),
    size("due_bytes", "bytes of their logs"),
    count("segments", "segments that were checked"),
    size("bytes", "bytes of their logs"),
    Column("level", Kind.STRING, "level of the checks", words=("batches", "records")),
    Column("complete", Kind.BOOL, "true if every segment that was due was checked"),
    Column("status", Kind.INT32, "exit status", null=_RUNS),
), note="One run of logtool scrub.", type="run",
    made_from="logtool.scrub.state:RunRow")  # fmt: skip
_LAST_RUN = replace(RUN, name="last_run", type=None)
_REPORTED = replace(FINDING, name="reported", type=None)
STATUS: Final = Table("status", "state file", (
    Column("path", Kind.PATH, "path of the state file"),
    Column("cycle_s", Kind.FLOAT, "time in which every segment is checked once", "s"),
    count("runs", "runs so far"),
    Column("last_run", Kind.OBJECT, "the last run", null="there was no run", of=_LAST_RUN),
    Column("complete_in_s", Kind.FLOAT, "time until every segment was checked within the cycle, at "
           "the pace of the last three runs in which segments were due; 0 if every segment was",
           "s",
           "these runs checked nothing, or there was no run"),
    count("open_errors", "open findings that are errors"),
    count("open_warnings", "open findings that are warnings"),
    count("open_infos", "open findings that are only information"),
    count("gone", "findings that are gone"),
), note="The state of all segments that earlier runs listed.", type="status",
    made_from="logtool.commands.views.scrub_status:StatusTotal")  # fmt: skip
STORED: Final = Table("stored_finding", "finding of an earlier run", (
    Column("state", Kind.STRING, "open, or gone: what the finding is about was looked at again "
           "and did not show it, or does not exist any more", words=("open", "gone")),
    Column("finding", Kind.OBJECT, "the finding as the last run that saw it printed it",
           of=_REPORTED),
    *timed("first_seen_ms", "start of the first run that found it", None),
    *timed("last_seen_ms", "start of the last run that found it", None),
    *timed("gone_ms", "start of the first run that did not find it any more", "it is open"),
), note="A finding in the state file.", type="stored-finding",
    made_from="logtool.scrub.open:StoredFinding")  # fmt: skip
DOCUMENT: Final = Document(
    name="scrub",
    title="Objects that logtool scrub prints",
    tables=(FINDING, COVERAGE, RUN, STATUS, STORED),
)
