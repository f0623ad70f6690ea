"""The tables of the state file of `scrub`, a SQLite database.

``PRAGMA application_id`` is `APPLICATION`, and ``PRAGMA user_version`` is `VERSION`. Paths, topics
and names are bytes as the system has them. Times are in ms since 1970.

segment  a row for each ``.log`` that the last run listed
  path           path of the log, absolute
  home           its partition dir
  topic          name of the topic; null where the directory has no name of a partition
  partition      number of the partition; null as for the topic
  base_offset    base offset of the segment
  size           bytes of the log
  files          JSON: inode, size and mtime_ns of the log, and the sizes of the indexes by kind
  active         1 for the segment that a broker appends to
  first_seen_ms  start of the first run that listed these files
  since_ms       start of the run from which on it counts as not checked: the first one that listed
                 the files, or the last check of a segment that was active then
  checked_ms     start of the run that checked the segment last; null for never
  level          level of that check
  whole          1 if these files are still those of that check
  findings       findings of that check at or above warning
  begun_ms       start of the last run whose time ran out in the segment
report   the report of the last check of a segment, for the judgements across segments
  path           that of the segment
  asked          release and options of the check
  content        JSON of `logtool.checks.kept_report`, compressed by zlib
  producer_rows  the rows of producers that go with it, compressed by zlib; null if they are too
                 large to be kept
part     the part that a run has read of a segment for which its time was too short
  path           that of the segment
  basis          JSON: size and mtime_ns of the log, and the basis of `segment_part`
  content        JSON of `segment_part`, compressed by zlib
finding  a row for each finding, open or gone
  home           partition dir that it is about; null: the log dir
  base_offset    base offset of the segment that it is about; null: the whole partition
  path, code, severity, position, first_offset
                 those of the finding
  content        JSON of the whole finding
  first_seen_ms, last_seen_ms
                 start of the first and of the last run that found it
  gone_ms        start of the first run that looked and did not find it; null: it is open
run      a row for each run
  start_ms, end_ms
                 times; the end is null while it runs, and after a kill
  cycle_ms       value of --cycle
  level          value of --level
  due_segments, due_bytes
                 segments that were due, and the bytes of their logs
  segments, bytes
                 segments that were checked, and the bytes of their logs
  complete       1 if all that were due were checked
  status         exit status; null as for the end
"""

from typing import Final

APPLICATION: Final = 0x6C_74_73_63
"""The letters ltsc."""
VERSION: Final = 1
CREATE_PART: Final = """CREATE TABLE IF NOT EXISTS part (
        path BLOB PRIMARY KEY, basis TEXT NOT NULL, content BLOB NOT NULL
    )"""
"""The statement for the table that older state files do not have."""
STATEMENTS: Final = (
    """CREATE TABLE segment (
        path BLOB PRIMARY KEY, home BLOB NOT NULL, topic BLOB, partition INTEGER,
        base_offset INTEGER NOT NULL, size INTEGER NOT NULL, files TEXT NOT NULL,
        active INTEGER NOT NULL, first_seen_ms INTEGER NOT NULL, since_ms INTEGER NOT NULL,
        checked_ms INTEGER, level TEXT,
        whole INTEGER NOT NULL DEFAULT 0, findings INTEGER NOT NULL DEFAULT 0, begun_ms INTEGER
    ) WITHOUT ROWID""",
    """CREATE TABLE report (
        path BLOB PRIMARY KEY, asked TEXT NOT NULL, content BLOB NOT NULL, producer_rows BLOB
    )""",
    CREATE_PART,
    """CREATE TABLE finding (
        id INTEGER PRIMARY KEY, home BLOB, base_offset INTEGER, path BLOB, code TEXT NOT NULL,
        severity TEXT NOT NULL, position INTEGER, first_offset INTEGER, content TEXT NOT NULL,
        first_seen_ms INTEGER NOT NULL, last_seen_ms INTEGER NOT NULL, gone_ms INTEGER
    )""",
    "CREATE INDEX finding_open ON finding (gone_ms)",
    """CREATE TABLE run (
        id INTEGER PRIMARY KEY, start_ms INTEGER NOT NULL, end_ms INTEGER,
        cycle_ms INTEGER NOT NULL, level TEXT NOT NULL, due_segments INTEGER NOT NULL,
        due_bytes INTEGER NOT NULL, segments INTEGER NOT NULL, bytes INTEGER NOT NULL,
        complete INTEGER NOT NULL, status INTEGER
    )""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
"""The statements that make an empty state file."""
