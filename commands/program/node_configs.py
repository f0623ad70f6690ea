"""Several ``--broker-config`` files: ``node.id`` in each says which log dirs it belongs to."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from logtool.commands.program.broker_config import NODE_IDS, OPTION, BrokerConfig
from logtool.errors import UsageError


class NodeConfigs:
    """The files of the brokers of a cluster; empty without a file."""

    def __init__(self, given: Sequence[BrokerConfig]) -> None:
        """Take the files; UsageError unless each of several has an id of its own."""
        self._given = given
        self._ids = [_id_of(one) for one in given]
        self._used: set[str] = set()
        for at, (one, node) in enumerate(zip(given, self._ids, strict=True)):
            if len(given) > 1 and node is None:
                raise UsageError(f"{OPTION} {one.path}: of several files each must have node.id")
            if node in self._ids[:at]:
                raise UsageError(f"{OPTION}: {given[self._ids.index(node)].path} and {one.path} "
                                 f"have the same node.id, {node}")  # fmt: skip

    def __bool__(self) -> bool:
        return bool(self._given)

    @property
    def warnings(self) -> Sequence[str]:
        """Return the warnings about the files, a line each."""
        return [line for one in self._given for line in one.warnings]

    def summary_line(self) -> str:
        """Return the line with the settings that were used."""
        return "; ".join(one.summary_line() for one in self._given)

    def source_of(self, path: Path) -> str | None:
        """Return file, line and key of a log dir; None if no file names it."""
        return next((found for one in self._given if (found := one.source_of(path))), None)

    def log_dirs(self) -> list[str]:
        """Return the log dirs of all brokers, each once."""
        return list(dict.fromkeys(path for one in self._given for path in one.log_dirs()))

    def take(self, node: int | None, keys: Sequence[str]) -> Mapping[str, str] | None:
        """Return the settings of a broker that are set; None if no file is that of the broker.

        A file without an id is for every broker, and the only file also for one that is not known.
        UsageError if it is not known and there are several files.
        """
        if node is None and len(self._given) > 1:
            raise UsageError(f"{OPTION}: no meta.properties says the broker of a path; give ID=DIR")
        for one, own in zip(self._given, self._ids, strict=True):
            if own is None or node in (own, None):
                self._used.add(one.path)
                return one.take(*keys)
        return None

    def require(self) -> None:
        """Raise UsageError for a file whose broker has none of the log dirs."""
        for one, node in zip(self._given, self._ids, strict=True):
            if one.path not in self._used:
                raise UsageError(f"{OPTION} {one.path}: no path is of its broker, {node}")


def _id_of(config: BrokerConfig) -> int | None:
    """Return the id of the broker; None where the file has none, or leaves it to Kafka."""
    found = [int(value) for value in config.take(*NODE_IDS).values()]
    return next((node for node in found if node >= 0), None)
