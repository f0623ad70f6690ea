"""How far a run is, told to whoever shows it."""

from collections.abc import Callable
from pathlib import Path

from logtool.lazy_dataclass import dataclass


@dataclass(slots=True)
class Progress:
    """Bytes dealt with and to deal with; `on_progress` is called with it after each step."""

    bytes_done: int = 0
    bytes_total: int = 0
    """Those known so far: more come with each log dir that is listed."""
    path: Path = Path()
    """What is being read."""
    on_progress: "Callable[[Progress], None] | None" = None

    def advance(self, count: int, path: Path | None = None) -> None:
        """Count bytes that were dealt with, of `path` or else of the path as before."""
        self.bytes_done += count
        if path is not None:
            self.path = path
        if self.on_progress:
            self.on_progress(self)
