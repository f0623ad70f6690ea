"""The builds of the kernels that must agree: plain text, compiled, and checked."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType

import logtool.formats._kernels
import logtool.formats._rendering

ROOT = Path(__file__).parents[2]
CHECKED = ROOT / "build" / "checked"
_CHOSEN = {
    "_kernels": logtool.formats._kernels,
    "_rendering": logtool.formats._rendering,
}


def load(path: Path, instrument: Callable[[CodeType], CodeType] | None = None) -> ModuleType:
    """Return a new build; `instrument` instruments its plain text for coverage."""
    name = f"fuzzed{path.stem}_{path.suffix[1:]}" if path.suffix == ".py" else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    if instrument and path.suffix == ".py":
        code = compile(path.read_text(), str(path), "exec")
        exec(instrument(code), module.__dict__)
    else:
        spec.loader.exec_module(module)
    return module


def builds_of(
    name: str, instrument: Callable[[CodeType], CodeType] | None = None
) -> dict[str, ModuleType]:
    """Return the builds of one kernel: plain and installed, and checked if it exists."""
    found = {"plain": load(ROOT / "formats" / f"{name}.py", instrument), "installed": _CHOSEN[name]}
    checked = CHECKED / f"{name}.so"
    if checked.exists():
        found["checked"] = load(checked)
    return found
