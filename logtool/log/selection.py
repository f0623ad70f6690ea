"""The partitions of a log dir that a command is to look at."""

from fnmatch import fnmatchcase

from logtool.disk import shell
from logtool.formats.names import PartitionDirectory
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """The partitions of a log dir that are meant; an empty selection means all."""

    topics: tuple[str, ...] = ()
    """Globs of topics to take."""
    exclude_topics: tuple[str, ...] = ()
    """Globs of topics to leave out; these win."""
    partitions: tuple[int, ...] = ()
    keys: frozenset[tuple[str, int]] = frozenset()
    """Exact (topic, partition)."""

    def takes(self, directory: PartitionDirectory) -> bool:
        """Return whether the partition is among those meant.

        A folder that could not be listed always is: what lies in it is not known, and the error is
        reported when it is read.
        """
        if directory.unlisted:
            return True
        topic = directory.topic
        return (
            (not self.topics or any(fnmatchcase(topic, glob) for glob in self.topics))
            and not any(fnmatchcase(topic, glob) for glob in self.exclude_topics)
            and (not self.partitions or directory.partition in self.partitions)
            and (not self.keys or (topic, directory.partition) in self.keys)
        )

    def __str__(self) -> str:
        """Return the options that say the same."""
        words = [
            *(shell.option("--topic", glob) for glob in self.topics),
            *(shell.option("--exclude-topic", glob) for glob in self.exclude_topics),
            *(f"--partition {number}" for number in self.partitions),
            *(f"{topic}-{number}" for topic, number in sorted(self.keys)),
        ]
        return " ".join(words)
