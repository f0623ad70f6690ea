"""The batches of a log: the only way in to the walk over its bytes."""

from collections.abc import Iterator

from logtool.formats import compression
from logtool.log.chunk import Chunk, Inspect, PlainWalk, Source
from logtool.log.walk.forms import KAFKA_FORM, Form
from logtool.log.walk.scanner import Scanner


def read_batches(
    source: Source,
    *,
    base_offset: int,
    form: Form = KAFKA_FORM,
    start: int = 0,
    stop: int | None = None,
    payload: bool = True,
    unpack_limit: int = compression.DEFAULT_LIMIT,
    inspect: Inspect | None = None,
    plain_walk: PlainWalk | None = None,
    last_offset: int | None = None,
) -> Iterator[Chunk]:
    """Yield the chunks of the file from byte `start` on, where a batch is expected.

    `base_offset` is the segment's; it only serves to recognise batches behind damage. With `stop`
    the file is taken to end there. Without `payload` the chunks are longer and hold no bytes.
    A wrapper of magic 0 or 1 that decompresses to more than `unpack_limit` bytes is not counted.

    `form` says how the headers of the batches are read. Batches of Redpanda come with Kafka's
    headers and Raft's offsets, and with the term as leader epoch.

    `inspect` is called for each stretch of batches with their bytes, also without `payload`. What
    it returns comes with the chunk; if the bytes were not those of the file, it is called again.

    With `plain_walk` chunks of plain batches without a gap have rows of those at edges alone. The
    caller is done with a chunk before it asks for the next one. A plain walk needs the form of
    Kafka, no payload and no `inspect`.

    `last_offset` is that of the batches before `start`, which were read before; None: not known.
    """
    end = source.size if stop is None else min(stop, source.size)
    return Scanner(
        source=source,
        base_offset=base_offset,
        form=form,
        payload=payload,
        end=end,
        unpack_limit=unpack_limit,
        inspect=inspect,
        plain_walk=plain_walk,
        last_offset=last_offset,
    ).run(start)
