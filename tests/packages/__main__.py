"""Builds every package of this tree in clean environments, and tries each: ``make dist``.

The packages go to ``dist``, with SHA256SUMS: the sources, a wheel for each supported Python that is
installed, a single file and a .deb that need no Python on the host.
"""

import argparse
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from packages import building, manifests, trying
from packages.building import ROOT

from logtool import __version__


def main() -> int:
    """Build and try all packages; the exit status is 1 at the first that fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    output = parser.parse_args().output.absolute()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="logtool-dist-") as temporary:
        try:
            build(Path(temporary), output)
        except trying.TrialError as error:
            print(error, file=sys.stderr)
            return 1
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(output.iterdir())
    ]
    (output / "SHA256SUMS").write_text("".join(sums))
    return 0


def build(work: Path, output: Path) -> None:
    """Build the packages and try each of them."""
    sound, damaged = trying.samples(work)
    package = building.sources(work, output)
    done(package)

    plain = building.environment(sys.executable, work / "plain", "setuptools>=77", "Cython>=3.1,<4")
    building.run(plain / "pip", "install", "-q", "--no-build-isolation", package, CC="false")
    trying.answers([plain / "logtool"], __version__, sound, damaged)
    if trying.is_compiled([plain / "logtool"]):
        raise trying.TrialError("an installation without a compiler claims compiled kernels")
    done("  installed without a compiler")

    mine = f"cp{sys.version_info.major}{sys.version_info.minor}"
    for python in building.installed():
        name = Path(python).name
        made = building.wheel(python, package, work / f"build-{name}", output)
        clean = building.environment(python, work / f"clean-{name}", made)
        trying.answers([clean / "logtool"], __version__, sound, damaged)
        trying.answers([clean / "python", "-m", "logtool"], __version__, sound, damaged)
        if not trying.is_compiled([clean / "logtool"]):
            raise trying.TrialError(f"{made.name} has no kernels")
        done(made)

    wheel = next(output.glob(f"*-{mine}-*.whl"))
    for tool, words in (("pipx", ["pipx", "install"]), ("uv", ["uv", "tool", "install"])):
        installed = building.installed_by(tool, words, wheel, work / f"home-{tool}")
        trying.answers([installed], __version__, sound, damaged)
        done(f"  installed by {' '.join(words)} into a home of its own")

    single, directory = building.program(wheel, work, output)
    trying.answers([single], __version__, sound, damaged)
    done(single, f"starts in {trying.second_start([single]):.2f} s, needs glibc {building.libc()}")
    if trying.is_root():
        in_a_bare_root(work, single, directory, sound, damaged)

    made = building.debian(directory, __version__, work, output)
    trying.debian(made, work, __version__, sound, damaged)
    done(made)
    done(f"  {manifests.validate(work)} Kubernetes manifests of the guide are valid")


def in_a_bare_root(work: Path, single: Path, directory: Path, sound: Path, damaged: Path) -> None:
    """Try the single file and the directory with the C library alone, as user 1001."""
    home = work / "bare"
    trying.root_with_libc(home)
    for path in (sound, damaged):
        shutil.copytree(path, home / "data" / path.name)
    building.run("chown", "-R", "1001:1001", home / "data")
    shutil.copy(single, home / "logtool")
    shutil.copytree(directory, home / "opt" / "logtool", symlinks=True)
    data = Path("/data")
    for program in ("/logtool", "/opt/logtool/logtool-starter"):
        command = trying.confined(home, program, 1001)
        trying.answers(command, __version__, data / sound.name, data / damaged.name)
    done("  single file and directory run with glibc alone, as user 1001")
    if not shutil.which("buildah"):
        done("  no image: buildah is not installed; the directory holds all that the image adds")
        return
    base = work / "base"
    trying.root_with_libc(base)
    shutil.rmtree(base / "dev")  # a container has its own
    readable = (home / "data" / path.name for path in (sound, damaged))
    trying.image(*building.image(directory, base, work), __version__, *readable)
    done("  image of the Containerfile, on a base with glibc alone")


def done(what: Path | str, note: str = "") -> None:
    """Print that a package was built and tried."""
    size = f"{what.stat().st_size / 1e6:.1f} MB" if isinstance(what, Path) else ""
    print("  ".join(filter(None, (str(getattr(what, "name", what)), size, note))), flush=True)


if __name__ == "__main__":
    sys.exit(main())
