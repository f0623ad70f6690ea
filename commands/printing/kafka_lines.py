"""The lines of Kafka's own dump tool, for objects one by one or for blocks of them."""

from collections.abc import Callable
from functools import partial

from logtool.commands.printing import kafka_commits, kafka_text, terminal
from logtool.commands.printing.block_lines import BlockLines
from logtool.dump.values import Values
from logtool.formats import _rendering


def of_objects() -> Callable[..., str | None]:
    """Return the function that gives Kafka's lines of one object; on a terminal it escapes them."""
    return kafka_text.render_safely if terminal.is_terminal() else kafka_text.render


def of_blocks(*, contents: bool = True, decoded: bool = False) -> BlockLines | None:
    """Return the writer of the lines of blocks; None on a terminal or without compiled code.

    If the records are `decoded`, all blocks have their commits.
    """
    if not _rendering.COMPILED or terminal.is_terminal():
        return None
    of_record = partial(kafka_text.record_pattern, contents=contents, decoded=decoded)
    patterns = kafka_text.batch_pattern, of_record
    return BlockLines(Values.UTF8, patterns=patterns, contents=kafka_commits.Contents())
