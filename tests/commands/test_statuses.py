"""Each error that ends a command has its exit status."""

import errno
import signal

import pytest
import typer

from logtool import cli
from logtool.errors import Ended, LogtoolError, RefusedError, UsageError
from logtool.exits import Exit


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (typer.Exit(Exit.FINDINGS), Exit.FINDINGS),
        (UsageError("no such topic"), Exit.USAGE),
        (LogtoolError("cannot be read"), Exit.INCOMPLETE),
        (OSError(errno.ENOSPC, "No space left on device"), Exit.INCOMPLETE),
        (RefusedError("is in use"), Exit.REFUSED),
        (ValueError("unexpected"), Exit.BUG),
        (KeyboardInterrupt(), Exit.INTERRUPTED),
        (Ended(signal.SIGHUP), Exit.HANGUP),
        (Ended(signal.SIGTERM), Exit.TERMINATED),
    ],
    ids=lambda one: repr(one),
)
def test_an_error_ends_a_command_with_its_status(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, status: Exit
) -> None:
    app = typer.Typer()

    @app.command()
    def fails(number: int) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    assert cli.run(["1"]) == status
    assert cli.run(["one"]) == Exit.USAGE
