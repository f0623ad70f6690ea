"""The compiled kernels of this installation. They are looked up and not imported."""

from importlib import util

KERNELS = {
    "_kernels": "batch kernel", "_rendering": "dump kernel", "_offset_commits": "groups kernel",
}  # fmt: skip
"""The modules of `logtool.formats` that are many times slower without a compiler, with names."""
_EXTENSION = ".so"


def is_compiled(module: str) -> bool:
    """Return whether a module of `logtool.formats` is compiled here."""
    spec = util.find_spec(f"logtool.formats.{module}")
    return bool(spec and spec.origin and spec.origin.endswith(_EXTENSION))
