"""The segments of a log while it is loaded, in a shadow of their directory."""

from collections.abc import Iterator

from logtool.formats import names, offset_index, time_index
from logtool.formats.names import FileKind, FileState
from logtool.loading.kafka_reading import IndexedLog, StartFailsError
from logtool.loading.shadow import Shadow
from logtool.metadata.releases import NEWEST


class LoadedSegment:
    """One segment that a broker has opened."""

    def __init__(
        self,
        shadow: Shadow,
        base_offset: int,
        state: FileState = FileState.LIVE,
        *,
        kafka: tuple[int, int] = NEWEST,
    ) -> None:
        self._shadow = shadow
        self._by_base = kafka >= (4, 1)
        self.base_offset = base_offset
        self._state = state

    def name(self, kind: FileKind) -> str:
        """Return the name of its file of a kind."""
        return names.format_partition_file(self.base_offset, kind, self._state)

    @property
    def size(self) -> int:
        """Return the bytes of its log."""
        return self._shadow.files[self.name(FileKind.LOG)].size

    def reader(self) -> IndexedLog:
        """Return its log with its index, to be read as a broker does."""
        files = self._shadow.files
        index = files.get(self.name(FileKind.OFFSET_INDEX))
        log = files[self.name(FileKind.LOG)]
        return IndexedLog(base_offset=self.base_offset, log=log, index=index, by_base=self._by_base)

    def next_offset(self) -> int:
        """Return the offset behind its last batch as a broker finds it."""
        return self.reader().next_offset()

    def files(self) -> Iterator[str]:
        """Yield the names of its files that are there."""
        for kind in (FileKind.LOG, *names.INDEX_KINDS):
            if self.name(kind) in self._shadow:
                yield self.name(kind)


def check_index_sizes(shadow: Shadow, active: LoadedSegment, max_size: int) -> None:
    """Hold the active segment's indexes against the size to which a broker grows them.

    StartFailsError where one is larger.
    """
    for kind, entry in (
        (FileKind.OFFSET_INDEX, offset_index),
        (FileKind.TIME_INDEX, time_index),
    ):
        file = shadow.files.get(active.name(kind))
        used = file.size // entry.ENTRY_SIZE * entry.ENTRY_SIZE if file else 0
        most = max_size // entry.ENTRY_SIZE * entry.ENTRY_SIZE
        if used > most:
            raise StartFailsError(
                f"{active.name(kind)} holds {used:,} bytes, but at most {most:,} fit"
            )
