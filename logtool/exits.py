"""The exit statuses of every command; public, changed only with a major version."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses, in the words of the command-line contract."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    INCOMPLETE = 4
    REFUSED = 5
    BUDGET = 6
    BUG = 70
    HANGUP = 129
    INTERRUPTED = 130
    CLOSED_PIPE = 141
    """The reader of the output closed the pipe (``| head``); the status that a shell gives a
    SIGPIPE."""
    TERMINATED = 143

    @classmethod
    def of_signal(cls, number: int) -> "Exit":
        """Return the status of a command that SIGHUP, SIGINT or SIGTERM ended: 128 + `number`."""
        return cls(128 + number)
