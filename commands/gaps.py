"""``logtool gaps``: every missing offset and why. Writes nothing but --output."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import parsing
from logtool.commands.program.spread import spread
from logtool.disk import files
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass


class GapLevel(StrEnum):
    """Depth of the search."""

    BATCHES = "batches"
    RECORDS = "records"


class IsolationChoice(StrEnum):
    """Isolation level of the consumer whose view is shown, with Kafka's name."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class TopicPolicy(StrEnum):
    """Cleanup policy that a topic has or had."""

    COMPACT = "compact"
    DELETE = "delete"


class GhostEpochChoice(StrEnum):
    """Source of the leader epoch of a ghost."""

    FOLLOWING = "following"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class GapChoices:
    """Options for the gaps to look for and to show."""

    level: Annotated[
        GapLevel,
        typer.Option(
            "--level",
            help="batches: of a batch that lost records, how many; records: decode it and say "
            "which.",
        ),
    ] = GapLevel.BATCHES
    isolation: Annotated[
        IsolationChoice,
        typer.Option(
            "--isolation",
            help="read_committed: list the offsets of markers and of aborted records too.",
        ),
    ] = IsolationChoice.READ_UNCOMMITTED
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY
    cleanup_policy: Annotated[
        TopicPolicy | None,
        typer.Option(
            "--cleanup-policy",
            help="What the topics are, or were, set to; by default as the metadata log in the log "
            "dir says.",
        ),
    ] = None
    ghosts: Annotated[
        bool,
        typer.Option("--ghosts", help="Print the batches that would fill the gaps, one by one."),
    ] = False
    ghost_epoch: Annotated[
        GhostEpochChoice,
        typer.Option(
            "--ghost-epoch",
            help="Whose leader epoch a ghost has. following: that of the batch behind the gap, one "
            "ghost for one gap; checkpoint: where leader-epoch-checkpoint is sound, what it says.",
        ),
    ] = GhostEpochChoice.CHECKPOINT
    fill_losses: Annotated[
        bool,
        typer.Option(
            "--fill-losses",
            help="With --output: fill the gaps too that may mean loss, so that nobody sees them.",
        ),
    ] = False
    as_stored: Annotated[
        bool,
        typer.Option(
            "--as-stored",
            help="With --output: leave the ghosts out, as a follower does, which counts their "
            "offsets but does not store them.",
        ),
    ] = False
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            parser=options.local_path,
            help="Write one partition with its gaps filled as a log of its own, of Redpanda as a "
            "directory; must not exist.",
        ),
    ] = None
    rounds: Annotated[
        str | None,
        typer.Option(
            "--rounds",
            metavar="SIZE",
            help="Show the rounds in which a follower is recovered if each reads at most SIZE, "
            "such as 512K: what is read, the ghosts, and the offsets before and after.",
        ),
    ] = None
    follower: Annotated[
        Path | None,
        typer.Option(
            "--follower",
            metavar="DIR",
            parser=files.path_of,
            help="Show what the replica in the partition dir DIR would be sent from PATH, and how "
            "it would number it without ghosts.",
        ),
    ] = None

    @property
    def exact(self) -> bool:
        """Return whether records are decoded."""
        return self.level is GapLevel.RECORDS

    @property
    def isolated(self) -> bool:
        """Return whether markers and aborted records are listed too."""
        return self.isolation is IsolationChoice.READ_COMMITTED

    @property
    def following(self) -> bool:
        """Return whether a ghost has the leader epoch of the batch behind the gap."""
        return self.ghost_epoch is GhostEpochChoice.FOLLOWING

    def check(self) -> None:
        """Raise UsageError for options that contradict each other."""
        if self.fill_losses and self.as_stored:
            raise UsageError("--fill-losses and --as-stored contradict each other")
        for given, name in ((self.fill_losses, "--fill-losses"), (self.as_stored, "--as-stored")):
            if given and not self.output:
                raise UsageError(f"{name} is for --output")
        if self.rounds:
            parsing.parse_size("--rounds", self.rounds)


@spread
def gaps(
    *,
    inputs: options.AnyInputs,
    shown: GapChoices,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """List every missing offset of log dirs, partition dirs or logs, with the reason.

    From the log start to the log end, each offset is visible, is the marker of a transaction
    ("control"), or is missing: before the first batch, between batches or segments, or inside a
    batch whose records compaction removed. Reasons are compaction, retention (below the log start),
    segment-missing, truncation-hole, damage and unknown; the last four may mean loss. Three things
    show that a topic is or was compacted: the metadata log in the same log dir, by today's policy
    or an earlier one, the cleaner's checkpoint, and what only the cleaner leaves in batches.

    The table shows each partition with the gaps that may mean loss; -v shows all gaps. Timestamps
    far in the future or in another unit are told as infos, as verify tells them.

    Ghosts are the empty batches that would fill the gaps, as Redpanda's Raft recovery sends them: a
    header of 61 bytes that covers the offsets from a first through a last one. There is none behind
    the last batch. --ghost-epoch says which leader epoch they have; both are shown.

    --output writes the log of one partition, filled with ghosts, as one segment that 'logtool
    verify' accepts. Gaps that may mean loss stay unless --fill-losses is given. Every real batch
    stays byte for byte as it is, and what is damaged is left out. Kafka has no type for ghosts:
    they are written as what its cleaner leaves of an emptied batch, a header with 0 records, here
    of no producer and no time, which every broker and client reads and steps over. FILE is called
    by its first offset, as a segment is.

    Of Redpanda --output names a new directory with a segment for each one, ghosts of its own type
    between the batches. A gap before a segment goes to its head, with its term, as the RFC has it.
    No broker stores ghosts, and verify tells of each. With --as-stored there are none: that is what
    a follower of the RFC has on disk, every batch at the leader's offset.

    --rounds plays the recovery of a follower as the RFC does it: read, fill from the follower's
    next offset on, go on behind the last batch. A gap between two rounds is filled in the second.
    The follower is empty, or that of --follower.
    --follower shows what becomes of the log in a replica that numbers batches as they arrive, as
    Redpanda's does; Kafka's keeps the leader's offsets. Raft's offsets come with Kafka's, if known.

    Examples:
      logtool gaps /var/lib/kafka/data
      logtool gaps -v --level records --topic 'changelog*' /var/lib/kafka/data
      logtool gaps --ghosts --format ndjson data/orders-0 | jq 'select(.type == "ghost")'
      logtool gaps --output /tmp/filled/00000000000000000000.log data/orders-0
      logtool gaps --rounds 1M --topic orders /var/lib/kafka/data
      logtool gaps --follower /mnt/b/orders-0 /mnt/a/orders-0

    Exit status:
      0    complete, and no gap that may mean loss
      1    complete, with gaps that may mean loss
      2
      4    incomplete: nothing matched, some input could not be read, or --output not be written
      5    refused: --output is there, lies among files of a broker, or would be no sound log
      6
      130

    """
    from logtool.commands.views.gaps import run

    raise typer.Exit(run(inputs, shown, running, printing))
