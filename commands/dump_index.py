"""``logtool dump-index``: print indexes, with what they point at. Writes nothing."""


def dump_index() -> None:
    """Print offset, time and transaction indexes."""
