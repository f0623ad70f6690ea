"""The line about kernels that are not compiled, after a command that took long."""

import pytest

from logtool import cli
from logtool.running import kernels


@pytest.mark.parametrize(
    ("seconds", "compiled", "reported"),
    [(9.9, False, False), (10.0, True, False), (10.0, False, True)],
)
def test_slow_kernels_are_reported_after_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    compiled: bool,
    reported: bool,
) -> None:
    monkeypatch.setattr(kernels, "is_compiled", lambda module: compiled)
    cli.report_slow_kernels(seconds)
    out, err = capsys.readouterr()
    assert not out
    assert bool(err) == reported
