"""The engine of `dump` and `dump-index`: files as a stream of plain objects."""
