"""Rows that a read cannot return, because a file that was listed is gone, shorter or unreadable."""

import logging

from logtool.errors import LogtoolError

_log = logging.getLogger("logtool.spark")


class LostDataError(LogtoolError):
    """Rows that a read or a stream must return are gone."""


def report_loss(what: str, *, fails: bool, effect: str = "rows may be missing") -> None:
    """Raise LostDataError, or log a warning if the read or the stream is to go on."""
    if fails:
        raise LostDataError(
            f"{what}: {effect}; to continue anyway, set the option failOnDataLoss=false"
        )
    _log.warning("%s: %s, and the query continues (failOnDataLoss=false)", what, effect)
