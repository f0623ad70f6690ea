"""Packages for others: sources that build, and wheels named for their machines."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import locked
import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "NOTICE", "logtool",
    "commands", "formats", "man", "completions", "tests",
)  # fmt: skip
# Compiling takes minutes on a busy machine.
pytestmark = [pytest.mark.timeout(1200), pytest.mark.long]
COMPILER = {"CFLAGS": "-O0"}
NO_COMPILER = {"CC": "false"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a copy of the sources as a clone has them: with links, and nothing built."""
    home = tmp_path / "source"
    home.mkdir()
    built = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "data", "build")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, home / name, symlinks=True, ignore=built)
        else:
            shutil.copy(ROOT / name, home / name)
    return home


def build(source: Path, what: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Build ``wheel`` or ``sdist`` into ``dist``, as pip and `python -m build` do."""
    code = f"from setuptools import build_meta; build_meta.build_{what}('dist')"
    unset = ("CC", "CFLAGS", "LOGTOOL_REQUIRE_KERNELS")
    environment = {key: value for key, value in os.environ.items() if key not in unset} | more
    return subprocess.run(
        [sys.executable, "-c", code], cwd=source, env=environment, capture_output=True, text=True,
        check=False, timeout=1000,
    )  # fmt: skip


def wheel(source: Path, **more: str) -> tuple[str, list[str]]:
    """Return the name of a wheel that is built, and the kernels in it."""
    done = build(source, "wheel", **more)
    assert done.returncode == 0, done.stderr
    (path,) = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as content:
        names = content.namelist()
    assert "logtool/formats/record_batch.py" in names
    assert "logtool/commands/verify.py" in names
    return path.name, [name for name in names if name.endswith(".so")]


def test_a_wheel_without_kernels_is_for_every_platform(source: Path) -> None:
    name, kernels = wheel(source, **NO_COMPILER)
    assert kernels == []
    assert name.endswith("-py3-none-any.whl")


def test_a_kernel_of_an_earlier_build_does_not_get_into_a_wheel(source: Path) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    tag = f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    old = source / "build" / f"lib.{tag}" / "logtool" / "formats" / f"_kernels{suffix}"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"of yesterday")
    os.utime(old, (1, 1))
    name, kernels = wheel(source, **NO_COMPILER)
    assert (kernels, name.endswith("-py3-none-any.whl")) == ([], True)
    assert not old.exists()


def test_a_packager_who_requires_kernels_gets_no_wheel_without_them(source: Path) -> None:
    assert build(source, "wheel", LOGTOOL_REQUIRE_KERNELS="1", **NO_COMPILER).returncode != 0
    assert not list((source / "dist").glob("*.whl"))


def test_the_sdist_holds_no_test_and_builds_a_wheel_with_kernels_for_its_platform(source, tmp_path):
    done = build(source, "sdist")
    assert done.returncode == 0, done.stderr
    (path,) = (source / "dist").glob("*.tar.gz")
    with tarfile.open(path) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
        tar.extractall(tmp_path / "unpacked", filter="data")
    assert not [name for name in names if name.startswith("tests")]
    assert {"logtool/formats/_kernels.pxd", "logtool/formats/_crc32.h", "setup.py"} <= names
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    name, kernels = wheel(unpacked, LOGTOOL_REQUIRE_KERNELS="1", **COMPILER)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert name.endswith(f"-{platform}.whl")
    built = {Path(kernel).name.partition(".")[0] for kernel in kernels}
    assert built == {"_kernels", "_mapped", "_offset_commits", "_rendering"}


LOCK = """\
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:aa
    # via
    #   kafka-logtool (pyproject.toml)
    #   pandas
numpy==2.5.5 ; python_full_version >= '3.12' \\
    --hash=sha256:bb \\
    --hash=sha256:cc
    # via
    #   kafka-logtool (pyproject.toml)
    #   pandas
pandas==2.2.0 \\
    --hash=sha256:dd
    # via kafka-logtool (pyproject.toml)
six==1.17.0 \\
    --hash=sha256:ee
    # via Python_DateUtil
python-dateutil==2.9.0 \\
    --hash=sha256:ff
    # via pandas
"""


def test_a_part_of_the_lock_has_what_its_requirements_need_with_every_hash() -> None:
    entries = locked.parse(LOCK)
    some = locked.needed(entries, {"numpy"})
    assert [one.name for one in some] == ["numpy", "numpy"]
    assert some[1].lines == LOCK.splitlines()[5:8]
    names = {one.name for one in locked.needed(entries, {"pandas"})}
    assert names == {"numpy", "pandas", "python-dateutil", "six"}
    with pytest.raises(SystemExit, match=r": rich; .*make lock"):
        locked.needed(entries, {"rich", "numpy"})


def test_a_group_asks_for_what_other_groups_ask_for_that_it_names() -> None:
    project = {
        "build-system": {"requires": ["setuptools>=77", "Cython>=3.1"]},
        "project": {
            "dependencies": ["numpy>=1.26,<3"],
            "optional-dependencies": {
                "remote": ["fsspec>=2024.2"], "test": ["kafka-logtool[remote]", "Moto[server]>=5"],
            },
        },
    }  # fmt: skip
    assert locked.direct(project, ["run", "build"]) == {"numpy", "setuptools", "cython"}
    assert locked.direct(project, ["test"]) == {"fsspec", "moto"}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-lowest.txt"])
def test_each_release_in_a_lock_has_a_hash_and_none_an_address(name: str) -> None:
    text = (ROOT / name).read_text()
    entries = locked.parse(text)
    assert len(entries) >= 5
    for one in entries:
        assert "--hash=sha256:" in "".join(one.lines), one.name
    assert "://" not in text
    assert "-index" not in text.lower()
