"""Commands after a forecast: they fill or accept a loss, and mend what stops the broker."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from logtool.checks.broker_dirs import LogDirCopy
from logtool.disk import files, shell
from logtool.log.inputs import GivenPaths
from logtool.startup.log_dir_start import LogDirStart
from logtool.startup.partition import PartitionForecast
from logtool.startup.request import LoadRequest

OF_REMOTE = frozenset({"lost", "lacks"})
"""Actions on partitions of which remote storage may have what is missing."""


def places(requests: Sequence[LoadRequest]) -> str:
    """Return the dirs of partitions as words of a command; the log dirs of more than five."""
    return shell.partition_dirs([one.path for one in requests])


def names(forecasts: Iterable[PartitionForecast]) -> Iterator[str]:
    """Yield the partitions as ``--accept-loss`` takes them."""
    for one in forecasts:
        yield f"{one.request.topic}-{one.request.partition}"


def fill(losing: Sequence[PartitionForecast]) -> str | None:
    """Return the command that takes losses from a copy on another broker; COPY is its path.

    None if each partition has a copy at hand, whose command `fix` is, and for Redpanda.
    """
    lacking = [one.request for one in losing if not one.fix and not one.request.redpanda]
    return f"logtool recover --fill-from COPY {places(lacking)}" if lacking else None


def remote(
    forecasts: Iterable[PartitionForecast], given: GivenPaths | None
) -> Iterator[tuple[str, str]]:
    """Yield the commands for partitions with a part in remote storage, each with its end.

    One shows what remote storage has of those that lack something. The other takes from it what the
    start would lose; PREFIX is the place of the objects.
    """
    if given is None or any(map(files.is_remote, given.paths)):
        return
    found: dict[str, dict[Path, None]] = {}
    for one in forecasts:
        for action in one.actions if one.request.start.tiered else ():
            found.setdefault(action.action, {})[one.request.log_dir] = None
    lost, lacks = found.get("lost", {}), found.get("lacks", {})
    for end, command, homes in (
        ("to take from remote storage what the start loses",
         "restore --output restored PREFIX", lost),
        ("to see what remote storage has of what is missing", "lineage", lost | lacks),
    ):  # fmt: skip
        if homes:
            yield end, " ".join(["logtool remote", command, *map(shell.path, homes)])


def accept(losing: Sequence[PartitionForecast], given: GivenPaths | None) -> str | None:
    """Return the command that accepts losses and does what the start does, on what was given."""
    if not losing or given is None or any(map(files.is_remote, given.paths)):
        return None
    options = (shell.option("--accept-loss", name) for name in dict.fromkeys(names(losing)))
    words = ["logtool recover --apply", *options, str(given.selection)]
    return " ".join(word for word in [*words, *map(shell.path, given.paths)] if word)


def show(hiding: Sequence[PartitionForecast]) -> Iterator[str]:
    """Yield the commands after which a start finds the end of a log again."""
    yield from (one.hidden.command for one in hiding if one.hidden)


def cut(refused: Sequence[PartitionForecast]) -> str | None:
    """Return the command that recovers logs which a broker does not load, but ``recover`` does."""
    stopped = [one for one in refused if one.outcome != "loads" and not one.request.redpanda]
    mended = [one.request for one in stopped if one.other_end is not None]
    return f"logtool recover {places(mended)}" if mended else None


def compare(copies: Iterable[LogDirCopy]) -> Iterator[str]:
    """Yield the command that compares each pair of a log dir and its copy."""
    for one in copies:
        yield f"logtool diff {shell.path(one.of)} {shell.path(one.path)}"


def groups(log_dirs: Sequence[LogDirStart]) -> str | None:
    """Return the command that shows groups; None without log dirs."""
    paths = [shell.path(one.log_dir.path) for one in log_dirs]
    return " ".join(["logtool groups", *paths]) if paths else None
