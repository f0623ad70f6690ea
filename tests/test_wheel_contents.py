"""The list of packages and data in pyproject.toml against the source."""

import os
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ("*.so", "*.c", "*.pyc", "*.py")


def test_every_package_and_its_data_are_in_a_wheel() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = (*settings["package-data"]["*"], *BUILT)
    packages = set()
    for folder, _, names in os.walk(ROOT / "logtool", followlinks=True):
        if folder.endswith("__pycache__"):
            continue
        if "__init__.py" in names:
            packages.add(".".join(Path(folder).relative_to(ROOT).parts))
        assert [x for x in names if not any(fnmatch(x, one) for one in patterns)] == [], folder
    assert packages == set(settings["packages"])
    assert len(packages) > 40
