"""Errors that can stop a job. Damage in the data is never one of these: that is a finding."""

import signal
from pathlib import Path


class LogtoolError(Exception):
    """The job cannot be done; the message says who must act. The command exits non-zero."""


class Ended(KeyboardInterrupt):
    """A signal that ends a command: Ctrl-C, SIGTERM or SIGHUP."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def ending(number: int) -> KeyboardInterrupt:
    """Return the exception to raise for a signal that ends a command.

    Not KeyboardInterrupt itself: where that is raised while `exec` runs a text, as dataclasses do,
    the interpreter later ends with the signal and not with the status (CPython 3.11, pythonrun.c).
    """
    return Ended(number)


def signal_of(end: KeyboardInterrupt) -> int:
    """Return the number of the signal that was raised as `end`; Ctrl-C is SIGINT."""
    return end.number if isinstance(end, Ended) else signal.SIGINT


def mark_unfinished(error: BaseException) -> None:
    """Note at an error that it stopped changes of files of which some may be made."""
    error.__dict__["is_unfinished"] = True


def is_unfinished(error: BaseException) -> bool:
    """Return whether an error stopped changes of files of which some may be made."""
    return bool(error.__dict__.get("is_unfinished"))


class FormatError(LogtoolError):
    """Bytes that do not follow their format.

    `reason` is one line; `position` is the byte where the bytes stop making sense, counted from the
    start of what was parsed; `path` is filled in by a caller that knows the file.
    """

    def __init__(self, reason: str, position: int = 0, path: Path | None = None) -> None:
        super().__init__(reason, position, path)
        self.reason = reason
        self.position = position
        self.path = path

    def at(self, path: Path, base: int = 0) -> "FormatError":
        """Return the same error for the file `path`, `base` bytes further on."""
        return FormatError(self.reason, self.position + base, path)

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}byte {self.position}: {self.reason}"


class LimitError(FormatError):
    """Bytes that may be sound, but grow beyond the limit of what is decompressed."""


class UsageError(LogtoolError):
    """The command line asks for something that makes no sense; exit status 2."""


class RefusedError(LogtoolError):
    """A request that would not be safe, such as writing into a log dir; exit status 5."""


class UnreadableError(LogtoolError):
    """A path that could not be read (missing, permission, I/O); exit status 4.

    It says nothing about corruption.
    """

    def __init__(self, path: Path, reason: str, *, missing: bool = False) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason
        self.missing = missing
        """True if the path does not exist, or no longer exists."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class BatchTooLargeError(UnreadableError):
    """A batch that decompresses to more bytes than it may; it may well be sound."""

    def __init__(self, path: Path, position: int, limit: int) -> None:
        super().__init__(
            path,
            f"byte {position}: the batch decompresses to more than the limit of {limit} "
            "bytes (see --max-batch-memory); logtool did not read its records",
        )


class NothingMatchedError(UnreadableError):
    """A path at which there is nothing to look at: no files of Kafka's, or none that is selected.

    A script that misspells a path or a topic must not read it as a sound answer.
    """


class UnwritableError(LogtoolError):
    """A file that could not be written, for lack of space, permission or I/O; exit status 4.

    `state` says what things are like now and how to go on.
    """

    def __init__(self, path: Path, reason: str, state: str | None = None) -> None:
        super().__init__(path, reason, state)
        self.path = path
        self.reason = reason
        self.state = state

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" + (f"; {self.state}" if self.state else "")
