"""The lines of ``journal.ndjson``, the undo journal that `logtool.apply` writes and reads."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table
from logtool.schemas.document import LinesFile

_VERSION: Final = 1
SCHEMA: Final = f"logtool.journal/{_VERSION}"
"""The value of ``schema`` in the first line."""

BEGIN: Final = Table("begin", "plan", (
    Column("schema", Kind.STRING, "name and version of this format", words=(SCHEMA,)),
    Column("version", Kind.STRING, "the version of logtool that made the plan"),
    Column("time", Kind.STRING, "when the journal was written", "UTC"),
    Column("command", Kind.STRING, "the command line that made the plan"),
    Column("log_dir", Kind.PATH, "the log dir that the plan changes, absolute"),
), note="The log dir that a plan changes, and the command line that made it.",
    type="begin")  # fmt: skip
DIRECTORY: Final = Table("directory", "directory in which names change", (
    Column("path", Kind.PATH, "the directory; . is the log dir"),
    Column("mtime_ns", Kind.INT64, "time of its last change before the plan", "ns since 1970"),
), note="A directory in which names change, and its time before.", type="directory")  # fmt: skip
LOOK: Final = Table("look", "file before a step or after it", (
    Column("size", Kind.INT64, "size of the file", "bytes"),
    Column("mtime_ns", Kind.INT64, "time of its last change", "ns since 1970"),
    Column("mode", Kind.UINT32, "permissions of the file, as the system has them"),
    Column("user", Kind.UINT32, "id of the user who owns the file"),
    Column("group", Kind.UINT32, "id of the group of the file"),
    Column("crc32c", Kind.UINT32, "CRC-32C of what the undo directory holds: the whole file, "
           "or the tail that is cut off", null="it holds nothing of the file"),
), note="What the file looks like.", made_from="logtool.apply.steps:FileAttributes")  # fmt: skip
STEP: Final = Table("step", "file that is changed", (
    Column("number", Kind.INT64, "number of the step, from 1, in the order in which files were "
           "saved", "count"),
    Column("kind", Kind.STRING, "what happens to the content of the file; rename: it stays",
           words=("truncate", "replace", "create", "remove", "rename")),
    Column("before", Kind.PATH, "the file before the step", null="it is not there yet"),
    Column("after", Kind.PATH, "the file after the step", null="it goes"),
    Column("old", Kind.OBJECT, "the look of the file before the step", null="it is not there yet",
           of=LOOK),
    Column("new", Kind.OBJECT, "the look of the file after the step",
           null="it goes, or its content stays", of=LOOK),
), note="What becomes of one file: NNNNNN.old and NNNNNN.new next to the journal hold its bytes.",
    type="step")  # fmt: skip
COMMIT: Final = Table("commit", "plan that is complete", (
    Column("steps", Kind.INT64, "steps of the plan", "count"),
    Column("crc32c", Kind.UINT32, "CRC-32C of all bytes of the journal before this line"),
), note="From here on the plan is carried out or undone.", type="commit")  # fmt: skip
STATE: Final = Table("state", "state that a plan has come to", (
    Column("state", Kind.STRING, "how far the plan has come", words=("done", "undoing", "undone")),
    Column("time", Kind.STRING, "when the plan came to it", "UTC"),
), note="How far the plan has come.", type="state")  # fmt: skip

JOURNAL: Final = LinesFile(
    name="journal",
    version=_VERSION,
    title="A line of journal.ndjson in an undo directory",
    note="One begin, the directories, the steps, one commit; then a line for each state that was "
    "reached. Paths are relative to the log dir.",
    tables=(BEGIN, DIRECTORY, STEP, COMMIT, STATE),
)
