"""Helpers of the tests of formats: findings of one file, and kernels as plain Python."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

FORMATS = Path(__file__).parents[1] / "formats"


def findings_of(module: Any, **defaults: object) -> Callable[..., list[tuple[str, int | None]]]:
    """Return a function from bytes to (code, position) of the findings of a format's module.

    A code has no topic. Arguments of the function replace those of `defaults` for the check.
    """

    def found_in(data: bytes, **facts: object) -> list[tuple[str, int | None]]:
        found = module.check(module.parse(data), **{**defaults, **facts})
        return [(one.code.partition("/")[2], one.position) for one in found]

    return found_in


def plain(name: str) -> ModuleType:
    """Return a kernel of `formats` from its plain text, next to the compiled one."""
    spec = importlib.util.spec_from_file_location(f"plain{name}", FORMATS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
