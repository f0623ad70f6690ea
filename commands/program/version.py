"""The lines of ``logtool --version``: what a report of a bug needs to say."""

import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import logtool
from logtool.commands import output
from logtool.running.kernels import KERNELS, is_compiled

_COMMIT_FILE = "commit.txt"
"""File in the package in which a builder of packages may have written the commit."""
_SHOWN = 12


def show(name: str) -> None:
    """Print the version, its commit if it is known, the kernels, and the libraries."""
    root = Path(logtool.__file__).resolve().parent
    commit = commit_of(root)
    output.plain(f"{name} {logtool.__version__}" + (f" (commit {commit})" if commit else ""))
    output.plain(f"kernels {_kernels()}")
    output.plain(f"{platform.python_implementation()} {platform.python_version()}")
    output.plain(f"numpy {_numpy()}")


def commit_of(package: Path) -> str | None:
    """Return the commit of a package: as its builder wrote it, or that of the clone around it."""
    with suppress(OSError, ValueError):
        return (package / _COMMIT_FILE).read_text("ascii").strip()[:_SHOWN]
    with suppress(OSError, ValueError, IndexError):
        return _of_clone(package.parent / ".git")[:_SHOWN]
    return None


def _of_clone(git: Path) -> str:
    """Return the commit that is checked out; OSError, ValueError or IndexError without one."""
    if git.is_file():  # a worktree
        git = git.parent / git.read_text("utf-8").removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text("ascii").strip()
    if not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    shared = git / "commondir"
    home = git / shared.read_text("utf-8").strip() if shared.exists() else git
    if (home / name).exists():
        return (home / name).read_text("ascii").strip()
    rows = [line.split() for line in (home / "packed-refs").read_text("utf-8").splitlines()]
    return next(row[0] for row in [*rows, []] if not row or row[-1] == name)


def _kernels() -> str:
    missing = [name for module, name in KERNELS.items() if not is_compiled(module)]
    if not missing:
        return "compiled"
    return f"in plain Python, many times slower: {', '.join(missing)}"


def _numpy() -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version("numpy")
    return "not installed"
