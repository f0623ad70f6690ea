"""Partition dirs that were made for tiered partitions without a local copy."""

from collections.abc import Iterator
from pathlib import Path

from logtool.checks import access
from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import TableColumn, columns
from logtool.commands.views.remote_tables import DOCUMENT, MENDED, RESTORED
from logtool.disk import files, shell
from logtool.exits import Exit
from logtool.formats import wording
from logtool.remote.mending import MendedPartition
from logtool.remote.restore import PLACE, RestoredPartition, RestoreRun
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Way


def run(prefix: str, inputs: options.Inputs, printing: options.Printing, *, output: Path) -> Exit:
    """Write the partition dirs into `output`; return the exit status."""
    summary = ActionSummary()
    has_dirs = bool(inputs.paths or inputs.broker) or inputs.files_from is not None
    given = inputs.of_one_cluster(inputs.given()) if has_dirs else inputs.resolved([])
    report = Report(printing.settings(), make(), summary, given if has_dirs else None)
    homes = given.paths if has_dirs else ()
    job = RestoreRun(
        files.path_of(prefix), homes, output, selection=given.selection, summary=summary
    )
    return report.consume(job, RemoteRestorePrinter(report, job, output))


def make() -> View:
    """Return the view of `remote restore`."""
    return View(
        schema=DOCUMENT.schema,
        columns=columns("type", *dict.fromkeys((*RESTORED.names(Way.CSV), *MENDED.names(Way.CSV)))),
        layout=lambda obj: _LAYOUTS.get(obj["type"]),
        row_types=frozenset(_LAYOUTS),
    )


class RemoteRestorePrinter(Printer[RestoredPartition | MendedPartition]):
    """Prints the partition dirs, and how they get into a log dir."""

    def __init__(self, report: Report, job: RestoreRun, output: Path) -> None:
        self._report, self._job, self._output = report, job, output
        self._restored: list[RestoredPartition] = []
        self._mended: list[MendedPartition] = []

    def show(self, item: RestoredPartition | MendedPartition) -> None:
        """Print one partition dir, or the files for one."""
        if isinstance(item, MendedPartition):
            self._mended.append(item)
        else:
            self._restored.append(item)
        self._report.item(DOCUMENT.row(item))

    def last_lines(self) -> Iterator[Line]:
        """Yield the commands that put the directories into a log dir, and the counts."""
        restored = self._restored
        if restored:
            lost = sum(one.lost_offsets for one in restored)
            known = f": {text.count(lost, 'acknowledged offset')} or more" if lost else ""
            yield f"records from end_offset on were only in the lost copies{known}", "warning"
            yield "Next, while the broker is stopped:", None
            for one in restored:
                if one.replaces:
                    aside = shell.path(self._output / one.replaces.name)
                    yield f"  mv {shell.path(one.replaces)} {aside}", None
            home = self._job.log_dir_for(restored)
            log_dir = shell.path(home) if home else "LOG_DIR"
            yield f"  cp -Rnp {shell.path(self._output / PLACE)}/* {log_dir}/", None
            if home and (owner := access.other_owner(home)):
                new = [shell.path(home / one.path.name) for one in restored]
                yield f"  chown -R {owner} {' '.join(new)}", None
            yield f"  logtool plan {log_dir}", None
        yield from self._commands_of_mended()
        size = wording.size(sum(one.bytes for one in restored))
        segments = text.count(sum(one.segments for one in restored), "remote segment")
        parts = f"{text.count(len(restored), 'partition dir')} for {segments} of {size}"
        parts = parts if restored else "no lost copy"
        if self._mended:
            parts += f"; files for {text.count(len(self._mended), 'partition dir')}"
        if left := self._job.kept - len(self._mended):
            parts += f"; {text.count(left, 'partition')} with a local copy left out"
        good = self._report.summary.complete
        yield text.state(self._report.summary) + parts, "good" if good else "warning"

    def _commands_of_mended(self) -> Iterator[Line]:
        """Yield the commands that put files into the partition dirs that lack them."""
        if not self._mended:
            return
        yield "Next, while the broker is stopped, all files of a partition together:", None
        for one in self._mended:
            if one.replaces:
                aside = shell.path(self._output / f"{one.of.name}-{one.replaces.name}")
                yield f"  mv {shell.path(one.replaces)} {aside}", None
            new = [shell.path(one.path / name) for name in one.files]
            yield f"  cp -np {' '.join(new)} {shell.path(one.of)}/", None
            if owner := access.other_owner(one.of.parent):
                there = [shell.path(one.of / name) for name in one.files]
                yield f"  chown {owner} {' '.join(there)}", None
        for home in dict.fromkeys(one.of.parent for one in self._mended):
            yield f"  logtool plan {shell.path(home)}", None


_COLUMNS = (
    *columns("topic", "partition"),
    TableColumn("replicas", lambda obj: ",".join(map(str, obj["replicas"]))),
    *columns("first_offset", "end_offset", "high_watermark", "segments"),
    TableColumn("size", lambda obj: wording.size(obj["bytes"])),
)
_LAYOUTS = {
    "restored-partition": _COLUMNS,
    "mended-partition": (
        *columns("topic", "partition"),
        TableColumn("leader epochs", lambda obj: str(len(obj["leader_epochs"]))),
        TableColumn("segments", lambda obj: str(len(obj["segments"]))),
        *columns("path"),
    ),
}
