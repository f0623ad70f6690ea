"""The copies of a key in the log dirs of one or more brokers, file by file.

The log dirs of one broker are forecast together: those with the same node id, which is that of
``ID=DIR`` or else that in ``meta.properties``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from logtool.dump.records import Object
from logtool.erasure.files import KeySearch, RecordFile, listed
from logtool.erasure.forecast import BrokerForecast, ErasureOptions, KeyCopy
from logtool.errors import UnreadableError
from logtool.formats.names import DirectoryKind, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.flavour import Flavour
from logtool.log.inputs import NodeDir, root_of
from logtool.log.selection import Selection
from logtool.node.identity import identify
from logtool.retention.logs import LiveLogs
from logtool.running.run import Run
from logtool.running.summary import Summary


@dataclass(slots=True)
class _BrokerLogs:
    """The log dirs of one broker, and the files in them."""

    node: int | None
    paths: Sequence[Path]
    static: Mapping[str, str] | None
    """Settings in the broker's own file; None without the file."""
    logs: LiveLogs
    files: list[RecordFile] = field(default_factory=list)


class ErasureRun:
    """One run: iterate over copies in the order of the files, over damage and over errors."""

    def __init__(
        self,
        dirs: Sequence[NodeDir],
        options: ErasureOptions,
        summary: Summary,
        *,
        selection: Selection | None = None,
        run: Run | None = None,
        flavour: Flavour | None = None,
        static_of: Callable[[int | None], Mapping[str, str] | None] = lambda _: None,
    ) -> None:
        """Take log dirs; `static_of` returns the settings in the file of a broker, by its id."""
        self._options, self._summary, self._flavour = options, summary, flavour
        self._run = run or Run()
        chosen = selection or Selection()
        self._brokers = []
        for node, paths in _by_node(dirs, flavour).items():
            static = static_of(node)
            logs = self._logs(paths, static, chosen)
            self._brokers.append(_BrokerLogs(node, paths, static, logs))
        self.assumed: dict[str, str] = {}
        """Kafka's defaults on which an end rests, because the file of a broker was not given."""
        self.assumed_nodes: list[int | None] = []
        """The brokers for which they are assumed."""
        self._said: set[str] = set()
        self.knows_topics = True
        """False if a broker has no metadata log that says the settings of topics."""
        self.files = 0
        """Files in which the key was looked for."""

    def live_nodes(self, partition: TopicPartition) -> list[int | None]:
        """Return the brokers with a live copy of a partition."""
        return [
            broker.node
            for broker in self._brokers
            if any(
                file.is_segment
                and file.directory.kind is DirectoryKind.LIVE
                and (file.directory.topic, file.directory.partition) == partition
                for file in broker.files
            )
        ]

    def __iter__(self) -> Iterator[KeyCopy | Object | UnreadableError]:
        for broker in self._brokers:
            yield from self._new(broker.logs.open())
            for one in listed(broker.logs.directories()):
                if isinstance(one, RecordFile):
                    broker.files.append(one)
                else:
                    yield from self._new([one])
            self.knows_topics &= broker.logs.image is not None
            self.files += len(broker.files)
        search = KeySearch(self._options.key, self._summary, self._run)
        yield from search.among([file for one in self._brokers for file in one.files])
        for broker in self._brokers:
            options = replace(self._options, static=broker.static)
            forecast = BrokerForecast(broker.node, broker.logs, options)
            wanted = {
                (file.directory.topic, file.directory.partition)
                for file in broker.files
                if file.path in search.found and file.is_segment
            }
            if wanted:
                chosen = Selection(keys=frozenset(wanted))
                logs = self._logs(broker.paths, broker.static, chosen)
                yield from self._new(forecast.read(logs))
            for copy in forecast.copies(broker.files, search.found):
                yield from [copy] if isinstance(copy, KeyCopy) else self._new([copy])
            if forecast.assumed:
                self.assumed |= forecast.assumed
                self.assumed_nodes.append(broker.node)

    def _logs(
        self, paths: Sequence[Path], static: Mapping[str, str] | None, selection: Selection
    ) -> LiveLogs:
        return LiveLogs(
            paths, static or {}, selection=selection, run=self._run, flavour=self._flavour
        )

    def _new(self, errors: Iterable[UnreadableError]) -> Iterator[UnreadableError]:
        """Yield the errors that were not yielded before: the forecasts read the same files."""
        for error in errors:
            if str(error) not in self._said:
                self._said.add(str(error))
                yield error


def _by_node(
    dirs: Sequence[NodeDir], flavour: Flavour | None
) -> Mapping[int | None, Sequence[Path]]:
    """Return the paths of each broker; those of which no file says the broker are of one."""
    found: dict[int | None, list[Path]] = {}
    for one in dirs:
        node = one.node
        if node is None:
            with suppress(UnreadableError):
                root = opening.open_log_dir(root_of(one.path, flavour), flavour)
                node = identify(root).node_id
        found.setdefault(node, []).append(one.path)
    return found
