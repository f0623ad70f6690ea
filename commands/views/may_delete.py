"""The proof that a partition dir may be deleted, or the lack of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from logtool.commands import options
from logtool.commands.output import Report
from logtool.commands.views import dirs
from logtool.copies.sources import ListedCopy, find
from logtool.dirs.directories import listed
from logtool.dirs.proof import Proof, prove
from logtool.disk import files
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.exits import Exit
from logtool.log.inputs import PathKind, kind_of
from logtool.log.selection import Selection
from logtool.node.identity import refuse_several_clusters
from logtool.running.run import Run
from logtool.running.summary import ActionSummary
from logtool.schemas.document import Document

DOCUMENT: Final = Document(
    name="may-delete", title="Objects that logtool may-delete prints", tables=(dirs.PROOF,)
)


def run(
    path: Path, among: Sequence[Path], running: options.Running, printing: options.Printing
) -> Exit:
    """Print the proof that the copies in `among` hold all of a partition dir, or what they lack."""
    refuse_several_clusters([path, *among])
    settings, summary = printing.settings(), ActionSummary()
    view = dirs.make(settings, DOCUMENT.schema)
    report = Report(settings=settings, view=view, summary=summary)
    proofs = _proofs(path, among, running.run(report))
    return report.consume(proofs, dirs.ProofPrinter(report, summary))


def _proofs(path: Path, among: Sequence[Path], job: Run) -> Iterator[Proof | UnreadableError]:
    """Yield the proof, behind the directories that cannot be read."""
    target = _target(path)
    cluster, copies = yield from listed(files.each_once([path.absolute().parent, *among]))
    yield from prove(target, cluster.others(target, copies), job, cluster.verdict(target))


def _target(path: Path) -> ListedCopy:
    """Return the partition dir; UnreadableError for what is not one."""
    lacking = "'logtool diff' compares the copies of a Redpanda partition"
    if kind_of(path, lacking=lacking) is PathKind.PARTITION_DIR:
        for one in find(path.absolute(), None, Selection()):
            if isinstance(one, ListedCopy):
                return one
    raise NothingMatchedError(path, "is not a partition dir")
