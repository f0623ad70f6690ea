"""The log dirs of a scenario."""

from pathlib import Path


def homes(folder: Path) -> list[Path]:
    """Return the log dirs of a scenario: it, or those in it."""
    if (folder / "meta.properties").exists():
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir())
