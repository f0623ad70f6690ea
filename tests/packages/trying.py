"""Trials of the packages: each gives the answers of logtool, on sound and on damaged data."""

import os
import resource
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packages.building import ROOT, run

_START_SECONDS = 1.5
"""Limit for the second start of the single file."""
_NO_HURRY = ("--max-duration", "10m")
"""A slow machine needs more than the ten seconds that `doctor` takes by default."""
_LIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")


class TrialError(Exception):
    """A package that does not do what it should."""


def samples(work: Path) -> tuple[Path, Path]:
    """Return a sound log dir that a broker wrote, and one with a damaged log."""
    with tarfile.open(ROOT / "tests" / "data" / "4.3.1" / "clean.tar.xz") as tar:
        tar.extractall(work, filter="data")
    sound, damaged = work / "clean", work / "damaged"
    shutil.copytree(sound, damaged)
    log = max(damaged.glob("*/*.log"), key=lambda path: path.stat().st_size)
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    return sound, damaged


def status(command: Sequence[str | Path], *words: str | Path) -> tuple[int, str]:
    """Run a program; return its exit status and its output."""
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, check=False, timeout=600,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def expect(command: Sequence[str | Path], wanted: int, *words: str | Path) -> str:
    """Return the output of a program; TrialError if its exit status is another."""
    found, shown = status(command, *words)
    if found != wanted:
        raise TrialError(f"{command} {words}: status {found} in place of {wanted}:\n{shown}")
    return shown


def answers(command: Sequence[str | Path], version: str, sound: Path, damaged: Path) -> None:
    """Try the commands that the first five minutes need."""
    if version not in expect(command, 0, "--version"):
        raise TrialError(f"{command} has another version than {version}")
    expect(command, 0, "verify", sound)
    if "batch/crc" not in expect(command, 1, "verify", damaged):
        raise TrialError(f"{command} does not name the damage")
    expect(command, 0, "doctor", *_NO_HURRY, sound)
    expect(command, 1, "doctor", *_NO_HURRY, damaged)
    if ".TH" not in expect(command, 0, "man", "verify"):
        raise TrialError(f"{command} has no man page")
    expect(command, 0, "completion", "bash")


def is_compiled(command: Sequence[str | Path]) -> bool:
    """Return whether the kernels are compiled, by `--version`."""
    return "kernels compiled" in expect(command, 0, "--version").splitlines()


def second_start(command: Sequence[str | Path]) -> float:
    """Return the processor seconds of the second start; TrialError above the limit.

    On a machine with other work the time of a clock would say nothing about the program.
    """
    seconds = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        expect(command, 0, "--version")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    best = min(seconds[1:])
    if best > _START_SECONDS:
        raise TrialError(f"{command} needs {best:.2f} s of a processor to start")
    return best


def root_with_libc(home: Path) -> None:
    """Make a root directory that holds the C library and /dev/null, and nothing else."""
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    (home / "lib64").mkdir(parents=True)
    shutil.copy(loader.resolve(), home / "lib64" / loader.name)
    for name in _LIBC:
        found = next(Path("/usr/lib").glob(f"*-linux-gnu/{name}"), None)
        if found:
            # Without a cache of ld.so it looks in these directories alone.
            place = home / "lib" / found.parent.name
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(found.resolve(), place / name)
    for name in ("tmp", "data", "proc"):
        (home / name).mkdir()
    (home / "tmp").chmod(0o1777)
    (home / "dev").mkdir()
    os.mknod(home / "dev" / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (home / "dev" / "null").chmod(0o666)


def confined(home: Path, program: str, user: int) -> list[str]:
    """Return the command that runs a program in a root directory, as a user without rights."""
    return ["/usr/sbin/chroot", f"--userspec={user}:{user}", str(home), program]


def image(
    buildah: Sequence[str | Path],
    settings: dict[str, Any],
    version: str,
    sound: Path,
    damaged: Path,
) -> None:
    """Try an image with its own user and entry point; log dirs are mounted read-only."""
    if settings["User"] != "1001:1001":
        raise TrialError(f"the image runs as user {settings['User']}")
    container = run(*buildah, "from", "logtool").strip()
    mounts = [word for path in (sound, damaged) for word in ("-v", f"{path}:/data/{path.name}:ro")]
    command = [
        *buildah,
        "run",
        "--isolation",
        "chroot",
        *mounts,
        container,
        *settings["Entrypoint"],
    ]
    answers(command, version, Path("/data", sound.name), Path("/data", damaged.name))
    run(*buildah, "rm", container)


def debian(package: Path, work: Path, version: str, sound: Path, damaged: Path) -> None:
    """Install a .deb into a root directory of its own, try it, and remove it."""
    home = work / "deb-root"
    admin = home / "var" / "lib" / "dpkg"
    for name in ("info", "updates", "triggers"):
        (admin / name).mkdir(parents=True)
    (admin / "status").touch()
    words = [f"--root={home}", f"--log={home}/log", "--force-not-root", "--force-depends"]
    run("dpkg", *words, "-i", package)
    answers([home / "usr" / "bin" / "logtool"], version, sound, damaged)
    if not (home / "usr/share/man/man1/logtool-verify.1.gz").exists():
        raise TrialError("the .deb has no man pages")
    run("dpkg", *words, "-r", "logtool")
    left = [path for path in (home / "usr").rglob("*") if not path.is_dir()]
    if left:
        raise TrialError(f"the removed .deb leaves {left[:3]}")


def is_root() -> bool:
    """Return whether this process may change its root directory."""
    return os.geteuid() == 0
