"""``logtool gaps``: every missing offset, with its reason. Writes only --output."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program import case_paths, parsing
from logtool.commands.program.case_inputs import CaseInputs
from logtool.commands.program.spread import spread
from logtool.disk import files
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass


class GapLevel(StrEnum):
    """Depth of the search."""

    BATCHES = "batches"
    RECORDS = "records"


class IsolationChoice(StrEnum):
    """Isolation level of a consumer, by Kafka's name."""

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
            help="batches: show how many records a batch lost; records: decode the batch and "
            "show which records.",
        ),
    ] = GapLevel.BATCHES
    isolation: Annotated[
        IsolationChoice,
        typer.Option(
            "--isolation",
            help="With read_committed, also list the offsets of transaction markers and of "
            "aborted records.",
        ),
    ] = IsolationChoice.READ_UNCOMMITTED
    max_batch_memory: options.MaxBatchMemory = options.MAX_BATCH_MEMORY
    cleanup_policy: Annotated[
        TopicPolicy | None,
        typer.Option(
            "--cleanup-policy",
            help="Cleanup policy of the topics, now or earlier. Default: from the metadata log "
            "in the log dir.",
        ),
    ] = None
    ghosts: Annotated[
        bool,
        typer.Option(
            "--ghosts", help="Print the empty batches that would fill the gaps, one by one."
        ),
    ] = False
    ghost_epoch: Annotated[
        GhostEpochChoice,
        typer.Option(
            "--ghost-epoch",
            help="Leader epoch of the empty batches. following: epoch of the batch after the "
            "gap, one empty batch for each gap; checkpoint: epoch in "
            "leader-epoch-checkpoint, if this file is sound.",
        ),
    ] = GhostEpochChoice.CHECKPOINT
    fill_losses: Annotated[
        bool,
        typer.Option(
            "--fill-losses",
            help="With --output: also fill gaps that may mean loss. The result then hides the "
            "loss.",
        ),
    ] = False
    as_stored: Annotated[
        bool,
        typer.Option(
            "--as-stored",
            help="With --output: leave out the empty batches, like a follower, which counts "
            "their offsets but does not store them.",
        ),
    ] = False
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            parser=options.local_path,
            help="Write one partition with filled gaps as one log segment (for Redpanda, as a "
            "directory); must not exist.",
        ),
    ] = None
    rounds: Annotated[
        str | None,
        typer.Option(
            "--rounds",
            metavar="SIZE",
            help="Show the rounds in which a follower would be recovered if it reads at most "
            "SIZE (for example 512K) in each: bytes read, empty batches, and offsets before"
            " and after.",
        ),
    ] = None
    follower: Annotated[
        Path | None,
        typer.Option(
            "--follower",
            metavar="DIR",
            parser=files.path_of,
            help="Show what the replica in the partition dir DIR would receive from PATH, and "
            "which offsets it would assign without empty batches.",
        ),
    ] = None

    @property
    def asks_for_ghosts(self) -> bool:
        """Return whether the empty batches that would fill the gaps are asked for."""
        asked = self.ghosts or self.following or self.rounds or self.follower or self.output
        return bool(asked)

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
                raise UsageError(f"{name} requires --output")
        if self.rounds:
            parsing.parse_size("--rounds", self.rounds)


@spread
def gaps(
    *,
    inputs: CaseInputs,
    shown: GapChoices,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """List every missing offset, with the reason.

    Every offset from the log start to the log end is one of three: a visible record, a transaction
    marker ("control"), or missing. Missing offsets are before the first batch, between batches or
    segments, inside a batch from which compaction removed records, or behind a lost log end. The
    reasons are compaction, retention (below the log start offset), remote (in remote storage),
    segment-missing, end-missing, truncation-hole, damage, and unknown; the last five may mean loss.

    The table shows each partition, and the gaps that may mean loss; -v shows all gaps. A topic
    counts as compacted if the metadata log in the same log dir sets or has set that policy, if
    cleaner-offset-checkpoint lists the partition, or if batches have a form that only the log
    cleaner leaves.

    Examples:
      logtool gaps /var/lib/kafka/data
      logtool gaps -v --level records --topic 'changelog*' /var/lib/kafka/data
      logtool gaps --output /tmp/filled/00000000000000000000.log data/orders-0
      logtool gaps --ghosts --format ndjson data/orders-0 | jq 'select(.type == "ghost")'
      logtool gaps --rounds 1M --topic orders /var/lib/kafka/data
      logtool gaps --follower /mnt/b/orders-0 /mnt/a/orders-0

    Lost ends:

    A log has lost its end if it ends below its high watermark, its recovery point or an offset that
    another of its files names, and its beginning if these files name offsets below the first
    segment. The same rules as in 'logtool verify' decide. Without a log dir around a partition, a
    lost end would not be found, and a line says so.

    Timestamps:

    The command reports timestamps that are far in the future or in another unit as findings of
    severity info, as 'logtool verify' does.

    A log without gaps:

    With --output, logtool writes the log of one partition as one segment in which empty batches
    fill the gaps; 'logtool verify' accepts the result. Gaps that may mean loss stay, unless
    --fill-losses is given. All real batches stay the same byte for byte; damaged bytes are left
    out. An empty batch has the form that Kafka's log cleaner leaves: a header with 0 records,
    without producer and time. Every broker and client reads it and skips it. The name of FILE is
    its first offset, as for every segment.

    Redpanda's ghost batches:

    Redpanda calls an empty batch that fills a gap a ghost batch: its proposal for Raft recovery
    sends them to followers. A ghost batch is a header of 61 bytes that covers a range of offsets.
    No ghost follows the last batch. A table counts ghosts with -v and with the options about them.
    --ghost-epoch selects the leader epoch of ghosts; the output shows both candidates.

    For a Redpanda partition, --output names a new directory with one segment for each segment of
    PATH, and ghosts of Redpanda's own batch type between the batches. A gap before a segment is
    filled at the start of that segment, with its term, as the RFC describes. No broker stores
    ghosts, so 'logtool verify' reports each one. With --as-stored, ghosts are left out; the result
    is what a follower of the RFC stores: every batch at the leader's offset.

    --rounds simulates the recovery of a follower as in the RFC: read, fill from the next offset of
    the follower on, continue after the last batch. A gap between two rounds is filled in the second
    round. The follower is empty, or the replica of --follower.

    --follower shows the result in a replica that numbers batches in the order in which they arrive,
    as Redpanda does; a Kafka follower keeps the leader's offsets. Raft offsets are shown together
    with Kafka offsets if the Kafka offsets are known.

    AutoMQ:

    With a bucket and the log dir of its metadata log as PATH, offsets that are in no object and not
    in the WAL are a gap, too. A missing or damaged object is an error, and the status is 4.

    Tiered storage:

    With the prefix of its objects and the log dirs of the cluster as PATH, the remote segments of a
    partition are part of its log; see 'logtool dump --help'. An object that is missing, and offsets
    that are in no segment, are errors, and the status is 4.

    Exit status:
      0    complete: no gap that may mean loss
      1    gaps that may mean loss
      2
      4    ..., or --output could not be written
      5    refused: --output exists, is among the files of a broker, or would not be a sound log
      6
      130

    """
    from logtool.commands.views.gaps import run

    case_paths.require(inputs.given(), records=True)

    raise typer.Exit(run(inputs, shown, running, printing))
