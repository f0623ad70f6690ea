"""The findings of `verify` in object stores: buckets of AutoMQ, and objects of tiered storage."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.checks import automq
from logtool.checks.report import Level
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.rsm_names import Plugin
from logtool.log.buckets import plugin_of
from logtool.log.selection import Selection
from logtool.remote.run import RemoteLineage
from logtool.remote.verification import RemoteVerification
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.verify import Verification


def in_buckets(
    paths: Sequence[Path], selection: Selection, level: Level, job: Verification
) -> Iterator[Finding | UnreadableError]:
    """Yield the findings of buckets of AutoMQ, compared with the metadata logs among the paths."""
    yield from automq.BucketVerification(
        paths,
        job.summary,
        selection=selection,
        reads_blocks=level != Level.QUICK,
        each=job.engine.map if job.engine else automq.here,
    )


def in_tiers(
    prefixes: Sequence[Path],
    log_dirs: Sequence[Path],
    selection: Selection,
    level: Level,
    job: Verification,
    budget: Budget,
) -> Iterator[Finding | UnreadableError]:
    """Yield the findings of `remote verify`, with the records in the log dirs if there are some."""
    for prefix in prefixes:
        run = Run(budget=budget)
        lineage = RemoteLineage(log_dirs, selection, run=run) if log_dirs else None
        for item in RemoteVerification(
            plugin_of(prefix) or Plugin.LOCAL, prefix, lineage, selection, level, run, job.summary
        ):
            if isinstance(item, Finding | UnreadableError):
                yield item
