"""Builders of the packages: wheels, sources, a program for hosts without Python, a .deb."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_BUILD = ["setuptools>=77", "Cython>=3.1,<4", "wheel"]
_PYINSTALLER = "pyinstaller>=6.10,<7"
_CONTROL = """\
Package: logtool
Version: {version}
Architecture: {architecture}
Maintainer: the maintainers of logtool
Section: admin
Priority: optional
Depends: libc6 (>= {libc})
Description: verify, inspect, predict and repair Kafka log directories offline
 The program works with no broker running, and needs no Python on the host.
"""


def run(*words: str | Path, **more: str) -> str:
    """Run a program and return its output; its errors go to ours."""
    done = subprocess.run(
        [str(word) for word in words], env=os.environ | more, stdout=subprocess.PIPE, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout


def installed() -> Iterator[str]:
    """Yield the programs of the supported releases of Python on this machine, oldest first."""
    homes = [Path(sys.executable).resolve().parent, Path("/usr/bin"), Path("/usr/local/bin")]
    homes += sorted(Path.home().glob(".pyenv/versions/*/bin"), reverse=True)
    for release in PYTHONS:
        found = (home / f"python{release}" for home in homes)
        here = next((str(path) for path in found if path.exists()), None)
        if here:
            yield here


def environment(python: str | Path, home: Path, *packages: str | Path) -> Path:
    """Make a clean environment with packages, and return its programs' directory."""
    run(python, "-m", "venv", home)
    pip = home / "bin" / "pip"
    run(pip, "install", "-q", "--disable-pip-version-check", *packages)
    return home / "bin"


def sources(work: Path, output: Path) -> Path:
    """Build the source package of this tree."""
    bin_dir = environment(sys.executable, work / "sources", *_BUILD)
    code = f"from setuptools import build_meta; print(build_meta.build_sdist({str(output)!r}))"
    copy = work / "tree"
    run("git", "clone", "-q", ROOT, copy)
    done = subprocess.run(
        [bin_dir / "python", "-c", code], cwd=copy, check=True, stdout=subprocess.PIPE, text=True
    )
    return output / done.stdout.splitlines()[-1]


def wheel(python: str, package: Path, work: Path, output: Path) -> Path:
    """Build the wheel of one Python from the source package, with its kernels."""
    bin_dir = environment(python, work, *_BUILD)
    before = set(output.glob("*.whl"))
    run(bin_dir / "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", output, package,
        LOGTOOL_REQUIRE_KERNELS="1")  # fmt: skip
    (made,) = set(output.glob("*.whl")) - before
    return made


def installed_by(tool: str, words: Sequence[str], made_wheel: Path, home: Path) -> Path:
    """Install a wheel with `pipx` or `uv` for a user with an empty home; return the program."""
    bin_dir = environment(sys.executable, home / "tool", tool)
    run(bin_dir / words[0], *words[1:], made_wheel, "--python", sys.executable, HOME=str(home))
    return home / ".local" / "bin" / "logtool"


def program(made_wheel: Path, work: Path, output: Path) -> tuple[Path, Path]:
    """Build the single file and the directory, with the Python that runs this."""
    bin_dir = environment(sys.executable, work / "pyinstaller", made_wheel)
    # PyInstaller's own starter needs libz.so.1 on the host; one with zlib inside is compiled.
    static = work / "static"
    static.mkdir()
    shutil.copy(run("cc", "-print-file-name=libz.a").strip(), static)
    run(bin_dir / "pip", "install", "-q", "--disable-pip-version-check", "--no-binary",
        "pyinstaller", _PYINSTALLER, PYINSTALLER_COMPILE_BOOTLOADER="1",
        LDFLAGS=f"-L{static}")  # fmt: skip
    run(bin_dir / "pyinstaller", "--distpath", work / "out", "--workpath", work / "work", "-y",
        "--log-level", "WARN", ROOT / "tests" / "packages" / "logtool.spec",
        LOGTOOL_SOURCE=str(ROOT))  # fmt: skip
    machine = os.uname().machine
    single = output / f"logtool-linux-{machine}"
    shutil.copy(work / "out" / "logtool", single)
    directory = work / "out" / "logtool-directory"
    return single, directory


def image(directory: Path, base: Path, work: Path) -> tuple[list[str | Path], dict[str, Any]]:
    """Build the last stage of the Containerfile with buildah, on a base with the C library alone.

    Return the words of buildah for its own storage, and the configuration of the image.
    """
    context = work / "image"
    for path, name in ((base, "base"), (directory, "out/logtool-directory")):
        shutil.copytree(path, context / name, symlinks=True)
    (context / "source").mkdir()
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, context / "source")
    _, _, stage = (ROOT / "Containerfile").read_text().rpartition("\nFROM ")
    lines = stage.replace("--from=build /", "").splitlines()[1:]
    (context / "Containerfile").write_text("\n".join(["FROM scratch", "COPY base /", *lines, ""]))
    buildah: list[str | Path] = [
        "buildah", "--root", work / "storage", "--runroot", work / "run", "--storage-driver", "vfs",
    ]  # fmt: skip
    run(*buildah, "build", "-q", "--isolation", "chroot", "-t", "logtool", context)
    described = json.loads(run(*buildah, "inspect", "--type", "image", "logtool"))
    return buildah, described["OCIv1"]["config"]


def libc() -> str:
    """Return the version of the C library here; what is built here needs it, or a newer one."""
    return os.confstr("CS_GNU_LIBC_VERSION").split()[-1]


def debian(directory: Path, version: str, work: Path, output: Path) -> Path:
    """Build a .deb of the directory, with man pages and completions."""
    tree = work / "deb"
    lib = tree / "usr" / "lib" / "logtool"
    shutil.copytree(directory, lib)
    for name in ("bin", "share/man", "share/doc/logtool"):
        (tree / "usr" / name).mkdir(parents=True)
    (tree / "usr" / "bin" / "logtool").symlink_to("../lib/logtool/logtool-starter")
    notice, licence = (ROOT / name for name in ("NOTICE", "LICENSE"))
    about = tree / "usr" / "share" / "doc" / "logtool" / "copyright"
    about.write_text(f"{notice.read_text()}\n{licence.read_text()}")
    for page in sorted((ROOT / "man").glob("logtool*.[17]")):
        section = tree / "usr" / "share" / "man" / f"man{page.suffix[1:]}"
        section.mkdir(exist_ok=True)
        content = gzip.compress(page.read_bytes(), mtime=0)
        (section / f"{page.name}.gz").write_bytes(content)
    shells = {
        "logtool": "bash-completion/completions", "_logtool": "zsh/vendor-completions",
        "logtool.fish": "fish/vendor_completions.d",
    }  # fmt: skip
    for name, place in shells.items():
        home = tree / "usr" / "share" / place
        home.mkdir(parents=True)
        shutil.copy(ROOT / "completions" / name, home / name)
    architecture = run("dpkg", "--print-architecture").strip()
    (tree / "DEBIAN").mkdir()
    text = _CONTROL.format(version=version, architecture=architecture, libc=libc())
    (tree / "DEBIAN" / "control").write_text(text)
    made = output / f"logtool_{version}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", "--build", tree, made)
    return made
