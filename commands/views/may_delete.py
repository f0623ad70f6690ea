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
    paths: Sequence[Path],
    among: Sequence[Path],
    running: options.Running,
    printing: options.Printing,
) -> Exit:
    """Print for each partition dir the proof that copies in `among` hold it, or what they lack."""
    refuse_several_clusters([*paths, *among])
    settings, summary = printing.settings(), ActionSummary()
    view = dirs.make(settings, DOCUMENT.schema)
    report = Report(settings=settings, view=view, summary=summary)
    proofs = _proofs(paths, among, running.run(report))
    return report.consume(proofs, dirs.ProofPrinter(report, summary))


def _proofs(
    paths: Sequence[Path], among: Sequence[Path], job: Run
) -> Iterator[Proof | UnreadableError]:
    """Yield the proofs, behind the directories that cannot be read.

    None of the partition dirs counts as a copy of another: all of them may be deleted together.
    """
    targets = [_target(path) for path in files.each_once(paths)]
    homes = [path.absolute().parent for path in paths]
    cluster, copies = yield from listed(files.each_once([*homes, *among]))
    gone = {target.path.resolve() for target in targets}
    stay = [one for one in copies if one.path.resolve() not in gone]
    for target in targets:
        yield from prove(target, cluster.others(target, stay), job, cluster.verdict(target))


def _target(path: Path) -> ListedCopy:
    """Return the partition dir; UnreadableError for what is not one."""
    lacking = "'logtool diff' compares the copies of a Redpanda partition"
    if kind_of(path, lacking=lacking) is PathKind.PARTITION_DIR:
        for one in find(path.absolute(), None, Selection()):
            if isinstance(one, ListedCopy):
                return one
    raise NothingMatchedError(path, "is not a partition dir")
