"""The lines of ``journal.ndjson``, the undo journal that `logtool.apply` writes and reads."""

from typing import Final

from logtool.schemas.columns import Column, Kind, Table
from logtool.schemas.document import LinesFile

_VERSION: Final = 1
SCHEMA: Final = f"logtool.journal/{_VERSION}"
"""The value of ``schema`` in the first line."""

BEGIN: Final = Table("begin", "plan", (
    Column("schema", Kind.STRING, "name and version of this format", words=(SCHEMA,)),
    Column("version", Kind.STRING, "version of logtool that made the plan"),
    Column("time", Kind.STRING, "time at which the journal was written", "UTC"),
    Column("command", Kind.STRING, "command line that made the plan"),
    Column("log_dir", Kind.PATH, "absolute path of the log dir that the plan changes"),
), note="The log dir that a plan changes, and the command line that made it.",
    type="begin")  # fmt: skip
DIRECTORY: Final = Table("directory", "directory in which names change", (
    Column("path", Kind.PATH, "path of the directory; . is the log dir"),
    Column("mtime_ns", Kind.INT64, "time of the last change of the directory before the plan",
           "ns since 1970"),
), note="A directory in which names change, and the time of its last change before the plan.",
    type="directory")  # fmt: skip
LOOK: Final = Table("look", "file before a step or after it", (
    Column("size", Kind.INT64, "size of the file", "bytes"),
    Column("mtime_ns", Kind.INT64, "time of the last change of the file", "ns since 1970"),
    Column("mode", Kind.UINT32, "permissions of the file as a number"),
    Column("user", Kind.UINT32, "id of the user who owns the file"),
    Column("group", Kind.UINT32, "id of the group of the file"),
    Column("crc32c", Kind.UINT32, "CRC-32C of the bytes in the undo directory: the whole file, or "
           "the tail that is cut off", null="the undo directory has no bytes of the file"),
), note="Size, times, mode and owner of a file.",
    made_from="logtool.apply.steps:FileAttributes")  # fmt: skip
STEP: Final = Table("step", "file that is changed", (
    Column("number", Kind.INT64, "number of the step, from 1, in the order in which files were "
           "saved", "count"),
    Column("kind", Kind.STRING, "kind of the change; rename: the content stays the same",
           words=("truncate", "replace", "create", "remove", "rename")),
    Column("before", Kind.PATH, "path of the file before the step",
           null="the file does not exist before the step"),
    Column("after", Kind.PATH, "path of the file after the step", null="the file is removed"),
    Column("old", Kind.OBJECT, "attributes of the file before the step",
           null="the file does not exist before the step",
           of=LOOK),
    Column("new", Kind.OBJECT, "attributes of the file after the step",
           null="the file is removed, or its content stays the same", of=LOOK),
), note="The change of one file: NNNNNN.old and NNNNNN.new next to the journal hold its bytes.",
    type="step")  # fmt: skip
COMMIT: Final = Table("commit", "plan that is complete", (
    Column("steps", Kind.INT64, "number of steps of the plan", "count"),
    Column("crc32c", Kind.UINT32, "CRC-32C of all bytes of the journal before this line"),
), note="After this line logtool carries out or undoes the plan.", type="commit")  # fmt: skip
STATE: Final = Table("state", "state that a plan has reached", (
    Column("state", Kind.STRING, "state of the plan", words=("done", "undoing", "undone",
           "redoing", "redone")),
    Column("time", Kind.STRING, "time at which the plan reached the state", "UTC"),
), note="The state of the plan.", type="state")  # fmt: skip

JOURNAL: Final = LinesFile(
    name="journal",
    version=_VERSION,
    title="A line of journal.ndjson in an undo directory",
    note="One begin, the directories, the steps, one commit; then a line for each state that was "
    "reached. Paths are relative to the log dir.",
    tables=(BEGIN, DIRECTORY, STEP, COMMIT, STATE),
)
