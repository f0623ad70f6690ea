"""One run of ``logtool quorum``: the copies, the verdict, and the changes for other voters."""

from collections.abc import Generator, Iterator, Sequence, Set
from dataclasses import field, replace
from pathlib import Path

from logtool import apply
from logtool.actions import Action
from logtool.apply import Journal
from logtool.disk import in_use
from logtool.errors import RefusedError, UnreadableError
from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log.inputs import NodeDir
from logtool.quorum import giving
from logtool.quorum.copy import MetadataCopy, read
from logtool.quorum.rewrite import Rewrite, check_losses, plan
from logtool.quorum.strays import strays_with
from logtool.quorum.verdict import Quorum, judge
from logtool.quorum.voters import Voter
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError

Found = MetadataCopy | Quorum | Action | Rewrite
Item = Found | UnreadableError


@dataclass(frozen=True, slots=True)
class Order:
    """The voters that are wanted, and the changes that the user allows."""

    voters: tuple[Voter, ...]
    apply: bool
    accepted: Set[TopicPartition]
    """Partitions that may be left without a replica, or whose dirs may become strays; with the
    metadata log, changes of it may be lost."""
    undo_dir: Path | None
    command: str
    """Command line of this run, for anyone who finds the undo directory."""


@dataclass(slots=True)
class Inquiry:
    """One run: iterate over each copy, the verdict, and with an order the changes, done or planned.

    RefusedError if the order is not carried out, UnwritableError if that failed.
    """

    sources: Sequence[NodeDir]
    run: Run
    configured: tuple[Voter, ...] | None = None
    """The voters of a static quorum, from the configuration; None if not given."""
    order: Order | None = None
    undo_dirs: list[Path] = field(default_factory=list)
    """Directories from which the log dir can be restored, the oldest first."""

    def __iter__(self) -> Iterator[Item]:
        try:
            found = yield from self._judged()
            if found and self.order:
                yield from self._ordered(found, self.order)
        except OutOfTimeError:
            return

    @property
    def _wanted(self) -> Set[int]:
        """Return the nodes that are to vote."""
        return {voter.node for voter in self.order.voters} if self.order else frozenset()

    def _judged(self) -> Generator[Item, None, Quorum | None]:
        """Yield the copies and the verdict on them; return None if one could not be read."""
        copies, whole = [], True
        for item in read(self.sources, self.run):
            yield item
            if isinstance(item, UnreadableError):
                whole = False
            else:
                copies.append(item)
        if not copies:
            return None
        try:
            found = self._verdict(copies)
        except UnreadableError as error:
            yield error
            return None
        yield found
        return found if whole else None

    def _verdict(self, copies: Sequence[MetadataCopy]) -> Quorum:
        """Return the verdict with the strays; UnreadableError if a log dir cannot be read."""
        found = judge(copies, self.configured, self._wanted)
        found = replace(found, strays=tuple(strays_with(found.keep, copies)))
        if found.copying is None or found.heir is None:
            return found
        return replace(
            found,
            heir_strays=tuple(strays_with(found.heir, copies)),
            heir_losses=giving.losses(found),
        )

    def _ordered(self, found: Quorum, order: Order) -> Iterator[Item]:
        log_dir = found.keep.path.resolve().parent
        if not order.apply:
            yield from apply.finish_earlier(log_dir, order.undo_dir, dry_run=True)
            yield plan(found, order.voters, order.accepted)
            return
        _check_unused(found.copies)
        if order.undo_dir:
            apply.check_place(order.undo_dir, log_dir)
        with apply.locked(log_dir):
            for action in apply.finish_earlier(log_dir, order.undo_dir):
                self.undo_dirs.append(action.path)
                yield action
            # Another process may have changed it before it was locked.
            copies = [one for one in read(self.sources, self.run.restarted())
                      if isinstance(one, MetadataCopy)]  # fmt: skip
            again = self._verdict(copies) if copies else found
            if len(copies) < len(found.copies) or again.keep.path != found.keep.path:
                raise RefusedError(f"{found.keep.path}: the copies changed while logtool read them")
            rewrite = plan(again, order.voters, order.accepted)
            check_losses(rewrite)
            yield rewrite
            changes = [action.change for action in rewrite.actions if action.change]
            if changes:
                place = order.undo_dir or apply.default_undo_dir(log_dir)
                journal = Journal.begin(place, log_dir, order.command)
                journal.stage(changes)
                journal.commit()
                self.undo_dirs.append(journal.undo_dir)
                journal.carry_out()


def _check_unused(copies: Sequence[MetadataCopy]) -> None:
    """Raise RefusedError if a controller or broker runs on one of the copies."""
    for copy in copies:
        home = copy.path.resolve().parent
        if holder := in_use.holder(home):
            who = f"process {holder.pid} ({holder.command})" if holder.pid else "a process"
            raise RefusedError(f"{home}: is used by {who}; stop every controller first")
