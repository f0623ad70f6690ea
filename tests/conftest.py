"""Shared by all tests: the log directories that real brokers wrote, unpacked once."""

import importlib.util
import os
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The one place with settings of Hypothesis. Tests have the same draws on every machine, so that
# they have one answer; `make explore` draws anew and keeps what fails.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=150)
settings.register_profile("explore", derandomize=False, deadline=None, max_examples=3000)
settings.load_profile("fixed")

DATA = Path(__file__).parent / "data"
VERSIONS = sorted(path.name for path in DATA.iterdir() if path.is_dir())
SCENARIOS = [
    f"{version}/{path.name.removesuffix('.tar.xz')}"
    for version in VERSIONS
    for path in sorted((DATA / version).glob("*.tar.xz"))
    if not path.name.endswith(".expected.tar.xz")
]


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
        return target

    return unpacked


@pytest.fixture
def copy_of(scenario: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a function like `scenario` whose directories, time stamps kept, may be changed."""

    def copied(name: str) -> Path:
        source = scenario(name)
        target = tmp_path / source.name
        shutil.copytree(source, target)
        return target

    return copied
