"""The inputs of a command that reads local paths, and a bucket of AutoMQ also behind a URL."""

from collections.abc import Iterable
from pathlib import Path

from logtool.commands import options
from logtool.disk import files
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BucketInputs(options.AnyLocalInputs):
    """Local inputs, or a bucket of AutoMQ and the log dir of its metadata log."""

    def path_of(self, text: str) -> Path:
        """Return the path that a text names; `require_local` refuses URLs later."""
        return files.path_of(text)


def require_local(paths: Iterable[Path]) -> None:
    """Raise UsageError for the URL of anything but a bucket that is read with its metadata log."""
    for path in paths:
        if files.is_remote(path) and not files.is_assembled(path):
            raise UsageError(f"{path}: this command requires a local path, not a URL")
