"""The documents that the commands print, each declared next to its view."""

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from logtool.schemas.document import Document

_MODULES: Final = ("plan_tables",)
"""The modules of `logtool.commands.views` that have one or more documents."""


def documents_printed() -> Iterator[Document]:
    """Yield every document that a command prints."""
    for name in _MODULES:
        module = import_module(f"logtool.commands.views.{name}")
        yield from (one for one in vars(module).values() if isinstance(one, Document))
