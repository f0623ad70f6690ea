"""The documents that the commands print, each declared next to its view."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from logtool.commands import views
from logtool.schemas.document import Document


def documents_printed() -> Iterator[Document]:
    """Yield every document that a command prints, each once."""
    found: dict[str, Document] = {}
    for module in pkgutil.iter_modules(views.__path__):
        names = vars(import_module(f"{views.__name__}.{module.name}")).values()
        found |= {one.name: one for one in names if isinstance(one, Document)}
    yield from found.values()
