"""The environment of logtool. Packages are looked up and not imported, least of all Spark."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata, util
from pathlib import Path

from logtool import __version__
from logtool.doctor.answers import Component, Gravity
from logtool.node import host_limits
from logtool.running import java
from logtool.running.kernels import KERNELS, is_compiled
from logtool.running.workers import available_cpus

PACKAGES = {
    "numpy": "", "cramjam": "", "pyarrow": "extra parquet or spark", "fsspec": "extra remote",
    "s3fs": "extra remote", "pandas": "extra spark", "pyspark": "extra spark",
}  # fmt: skip
"""The packages that are looked up, each with the extra of logtool that installs it."""


def components() -> Iterator[Component]:
    """Yield the components, each with its version if it has one."""
    detail = f"{platform.python_implementation()}, {sys.executable}"
    yield Component("python", True, platform.python_version(), detail)
    yield Component("logtool", True, __version__, str(Path(__file__).parents[1]))
    for module, name in KERNELS.items():
        yield _kernel(module, name)
    yield _crc()
    for name, extra in PACKAGES.items():
        yield _package(name, extra)
    yield _java()
    yield from _host()


def _kernel(module: str, name: str) -> Component:
    """Return the state of a kernel: one that is not compiled is many times slower."""
    compiled = is_compiled(module)
    said = (
        "compiled"
        if compiled
        else ("plain Python, many times slower: no C compiler was found at installation")
    )
    return Component(name, compiled, None, said,
                     Gravity.GOOD if compiled else Gravity.WARNING)  # fmt: skip


def _crc() -> Component:
    import crc32c

    fast = bool(crc32c.hardware_based)
    said = "with the processor's CRC instruction" if fast else "in software, which is slow"
    return Component("crc32c", True, metadata.version("crc32c"), said,
                     Gravity.GOOD if fast else Gravity.WARNING)  # fmt: skip


def _package(name: str, extra: str) -> Component:
    if util.find_spec(name) is None:
        return Component(name, False, None, f"not installed ({extra})", Gravity.INFO)
    version = None
    with suppress(metadata.PackageNotFoundError):
        version = metadata.version(name)
    return Component(name, True, version, extra or None)


def _java() -> Component:
    found = java.find()
    if found is None:
        detail = f"{java.missing()} (Spark needs 17 or newer)"
        return Component("java", False, None, detail, Gravity.INFO)
    return Component("java", True, found.version, found.program)


def _host() -> Iterator[Component]:
    width, height = shutil.get_terminal_size((0, 0))
    said = f"{width} columns, {height} lines" if width else None
    term = os.environ.get("TERM") or "not set"
    yield Component("terminal", bool(width), said, f"TERM is {term}")
    yield Component("processors", True, str(available_cpus()), "that this process may use")
    yield Component("page size", True, str(os.sysconf("SC_PAGESIZE")), "bytes")
    soft, hard = ("unlimited" if one is None else str(one) for one in host_limits.open_files())
    yield Component("open files", True, soft, f"soft limit; hard limit {hard}")
    maps = host_limits.most_maps()
    yield Component("max_map_count", maps is not None, None if maps is None else str(maps),
                    "vm.max_map_count, maps of one process")  # fmt: skip
