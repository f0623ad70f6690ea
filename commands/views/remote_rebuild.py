"""Topics and partitions in a bucket, and what a new cluster lacks to read them."""

from collections import Counter
from collections.abc import Iterator

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import TableColumn, columns
from logtool.commands.views.remote_tables import DOCUMENT, REBUILD_PARTITION
from logtool.disk import files
from logtool.exits import Exit
from logtool.formats import wording
from logtool.formats.rsm_names import Plugin
from logtool.remote.rebuild import Lack, RebuildPartition, RebuildPlan, RebuildTopic
from logtool.remote.run import RemoteLineage
from logtool.running.summary import Summary
from logtool.schemas.columns import Way


def run(
    prefix: str,
    inputs: options.Inputs,
    running: options.Running,
    printing: options.Printing,
    *,
    plugin: str,
) -> Exit:
    """Print what is below `prefix`, which `plugin` wrote; return the exit status."""
    summary, lineage = Summary(), None
    has_dirs = bool(inputs.paths or inputs.broker) or inputs.files_from is not None
    given = inputs.of_one_cluster(inputs.given()) if has_dirs else inputs.resolved([])
    report = Report(printing.settings(), make(), summary, given if has_dirs else None)
    job_run = running.run(report)
    if has_dirs:
        lineage = RemoteLineage(paths=given.paths, selection=given.selection, run=job_run)
    job = RebuildPlan(
        plugin=Plugin(plugin), prefix=files.path_of(prefix), lineage=lineage,
        selection=given.selection, run=job_run, summary=summary,
    )  # fmt: skip
    return report.consume(job, RemoteRebuildPrinter(report, job))


def make() -> View:
    """Return the view of `remote rebuild-plan`."""
    return View(
        schema=DOCUMENT.schema,
        columns=columns("type", *REBUILD_PARTITION.names(Way.CSV)),
        layout=lambda obj: _LAYOUTS.get(str(obj["type"])),
        row_types=frozenset({"rebuild-partition"}),
    )


class RemoteRebuildPrinter(Printer[RebuildPartition | RebuildTopic]):
    """Prints partitions and topics, and counts what a new cluster lacks."""

    def __init__(self, report: Report, job: RebuildPlan) -> None:
        self._report = report
        self._job = job
        self._lacks: Counter[Lack] = Counter()
        self._topics: list[RebuildTopic] = []
        self._partitions = self._ready = 0

    def show(self, item: RebuildPartition | RebuildTopic) -> None:
        """Print one item of a run, and count it."""
        if isinstance(item, RebuildTopic):
            self._topics.append(item)
        else:
            self._partitions += 1
            self._ready += not item.lacks
            self._lacks.update(item.lacks)
        self._report.item(DOCUMENT.row(item))

    def last_lines(self) -> Iterator[Line]:
        """Yield a line for each lack with a way to end it, and the counts."""
        for lack, advice in _ADVICE.items():
            if self._lacks[lack]:
                count = text.count(self._lacks[lack], "partition")
                yield f"{count} without {advice}", "warning"
        number = self._job.metadata_partitions
        if number is not None:
            yield f"__remote_log_metadata needs {number} partitions, as before", None
        if self._partitions:
            yield "records from end_offset on were only in local segments", "warning"
        size = wording.size(sum(one.bytes for one in self._topics))
        parts = [
            text.count(len(self._topics), "topic"), text.count(self._partitions, "partition"), size,
            f"{self._ready} that a new cluster finds with the given log dirs",
        ]  # fmt: skip
        good = self._report.summary.complete and self._ready == self._partitions
        yield text.state(self._report.summary) + ", ".join(parts), "good" if good else "warning"


_ADVICE = {
    Lack.TOPIC_ID: "a topic id in a metadata log: no tool of Kafka creates a topic with a given "
    "id; begin with a copy of the old metadata log, or produce the records again to new topics",
    Lack.RECORDS: "all records in __remote_log_metadata: no tool of Kafka writes records for "
    "objects; restore the log dirs with that topic",
    Lack.LEADER_EPOCHS: "the leader epochs in a local copy: brokers look up segments by the epochs "
    "of the leader's log, and a leader with an empty log has none of them and deletes the "
    "segments; 'logtool remote restore' makes partition dirs with them",
    Lack.OBJECTS: "all objects: the records name segments that are not in the bucket",
    Lack.OFFSETS: "all offsets: no segment in the bucket has some between the first and the last",
}
"""The rest of the sentence about each lack."""
_PARTITION = (
    *columns("topic", "partition", "segments"),
    TableColumn("size", lambda obj: wording.size(obj["bytes"])),
    *columns("first_offset", "end_offset"),
    TableColumn("lacks", lambda obj: ", ".join(obj["lacks"])),
)
_TOPIC = (
    *columns("topic", "topic_id", "partitions", "replicas", "source"),
    TableColumn("settings", lambda obj: ", ".join(obj["settings"] or ())),
)
_LAYOUTS = {"rebuild-partition": _PARTITION, "rebuild-topic": _TOPIC}
