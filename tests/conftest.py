"""Shared by all tests: the log directories that real brokers wrote, unpacked once."""

import gc
import hashlib
import importlib.util
import os
import signal
import sys
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import slow_tests
import sparse
from hypothesis import settings as drawing

from logtool.commands.program import settings

# The only settings of Hypothesis. Tests draw the same values on every machine, so that they have
# one result; `make explore` draws new values and keeps those that fail.
drawing.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=50)
drawing.register_profile("explore", derandomize=False, deadline=None, max_examples=3000)
drawing.load_profile("fixed")

# The settings of the user change no test, in this process or in another.
for name in settings.SETTINGS:
    os.environ.pop(settings.variable_of(name), None)
os.environ[settings.FILE_VARIABLE] = ""
os.environ.pop("COLUMNS", None)

# Under nohup, or in the background of a script, both signals are ignored, in the children of a
# test too. A signal with a handler here has its default action in a child.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

DATA = Path(__file__).parent / "data"
VERSIONS = sorted(path.name for path in DATA.glob("[0-9]*") if path.is_dir())
SCENARIOS = [
    f"{version}/{path.name.removesuffix('.tar.xz')}"
    for version in VERSIONS
    for path in sorted((DATA / version).glob("*.tar.xz"))
    if not path.name.endswith(".expected.tar.xz")
]


_ONCE_MORE = {
    *(name for name in SCENARIOS if name.split("/")[0] not in (VERSIONS[0], VERSIONS[-1])),
    *(f"{VERSIONS[-1]}/{name}" for name in ("killed", "running")),  # much the same as clean
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, and leave releases between the oldest and the newest to `make test-long`."""
    slow = slow_tests.slow_functions()
    for item in items:
        if slow_tests.function_of(item.nodeid) in slow:
            item.add_marker(pytest.mark.slow)
        call = getattr(item, "callspec", None)
        if call and any(str(given) in _ONCE_MORE for given in call.params.values()):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Leave what is loaded by now out of garbage collections, which take a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(autouse=True)
def without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out fsync in this process: it takes most of the time, and no test cuts the power."""
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, os.fstat)  # a bad descriptor stays an error


@cache
def _repeated() -> frozenset[tuple[str, str]]:
    """Return the (scenario, path in it) of each log that an earlier scenario has, byte for byte."""
    seen: set[bytes] = set()
    found: set[tuple[str, str]] = set()
    for name in SCENARIOS:
        with tarfile.open(DATA / f"{name}.tar.xz") as tar:
            for member in tar:
                if member.isfile() and member.name.endswith((".log", ".checkpoint")):
                    content = tar.extractfile(member)
                    assert content
                    digest = hashlib.sha256(content.read()).digest()
                    if digest in seen:
                        found.add((name, member.name.partition("/")[2]))
                    seen.add(digest)
    return frozenset(found)


def new_logs(name: str, home: Path) -> list[Path]:
    """Return the logs and snapshots of a scenario, unpacked at `home`, that none before it has.

    A broker that ran, was killed and was started again left the same bytes three times. They are
    enough once where a test looks at nothing but the bytes of one log.
    """
    logs = sorted([*home.rglob("*.log"), *home.rglob("*.checkpoint")])
    return [log for log in logs if (name, str(log.relative_to(home))) not in _repeated()]


def use_kernel(path: Path) -> None:
    """Let everything run on another build of a kernel: the plain text, or a checked one."""
    import logtool.formats

    name = f"logtool.formats.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    setattr(logtool.formats, path.stem, module)


for kernel in os.environ.get("LOGTOOL_KERNELS", "").split():
    use_kernel(Path(kernel))


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function from a name such as ``4.3.1/clean`` (or ``4.3.1/clean.expected``) to the
    unpacked directory, which is shared and must not be changed."""
    home = tmp_path_factory.mktemp("scenarios")

    def unpacked(name: str) -> Path:
        version, _, folder = name.partition("/")
        target = home / version / folder
        if not target.exists():
            with tarfile.open(DATA / f"{name}.tar.xz") as tar:
                tar.extractall(home / version, filter="tar")
            sparse.punch(target)
        return target

    return unpacked


@pytest.fixture(scope="session")
def template(scenario: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log dir that tests of changes copy; it must not be changed."""
    from changes import make_log_dir  # imports the engines

    return make_log_dir(scenario("4.3.1/killed"), tmp_path_factory.mktemp("changes") / "template")


@pytest.fixture
def copy_of(scenario: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a function like `scenario` whose directories, time stamps kept, may be changed."""

    def copied(name: str) -> Path:
        source = scenario(name)
        target = tmp_path / source.name
        return sparse.copytree(source, target)

    return copied


GROWN = "peak grew by MiB"
"""Property of a test that needed much memory, see broker/conftest.py."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests that raised the peak of the memory of their process by much."""
    reports = (one for some in terminalreporter.stats.values() for one in some)
    for report in reports:
        for name, grown in getattr(report, "user_properties", ()):
            if name == GROWN and report.when == "teardown":
                terminalreporter.write_line(f"{report.nodeid}: {name} {grown:,}")
