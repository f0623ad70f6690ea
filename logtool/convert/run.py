"""One run over segments, and the directory that it writes.

DIR/partitions/TOPIC-N/      a partition of Kafka, with the indexes that a broker makes of it
DIR/kafka/TOPIC/N_REVISION/  a partition of Redpanda, with base indexes
DIR/left-out/TOPIC-N/        what Kafka has no place for, a JSON document for each log
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.convert import to_kafka, to_redpanda
from logtool.convert.pieces import OutputSegment
from logtool.disk import files
from logtool.errors import LogtoolError, RefusedError, UnreadableError, UnwritableError
from logtool.findings import Finding
from logtool.lazy_dataclass import dataclass
from logtool.loading.result import StartConditions
from logtool.log import inputs, opening
from logtool.log.flavour import FlavourName
from logtool.log.inputs import PathKind
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.repair import sound
from logtool.repair.output import OutputDir
from logtool.running.summary import ActionSummary


@dataclass(frozen=True, slots=True)
class Converted:
    """A new log that was written."""

    piece: OutputSegment
    target: Path
    """Path of the new log."""


class Conversion:
    """Iterate over it for each log that was written, for what could not be, and for faults.

    A finding is an error, by the rules of `verify`, in what was written.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        to: FlavourName,
        output: Path,
        *,
        start_delta: int | None,
        summary: ActionSummary,
    ) -> None:
        self._given = list(files.each_once(paths))
        self._to_kafka, self._start_delta = to is FlavourName.KAFKA, start_delta
        self._output = OutputDir(output)
        self.summary = summary

    def __iter__(self) -> Iterator[Converted | Finding | LogtoolError]:
        ended = False
        try:
            yield from self._converted()
            ended = True
        except UnwritableError as error:
            yield error
        finally:
            self._output.close(ended=ended)

    def _converted(self) -> Iterator[Converted | Finding | LogtoolError]:
        try:
            paths = [path for given in self._given for path in _segments(given)]
            size = sum(files.size_at(path) for path in paths)
            self._output.check((path.absolute().parent for path in paths), 2 * size)
        except (RefusedError, UnreadableError) as error:
            yield error
            return
        folders: dict[Path, None] = {}
        for path in paths:
            try:
                for piece in self._pieces(path):
                    yield self._written(piece)
                    folders.setdefault(piece.target.parent)
            except (RefusedError, UnreadableError) as error:
                yield error
        for folder in folders:
            if self._to_kafka:
                loaded = self._output.recovered(folder, StartConditions(clean=False))
                if loaded.outcome != "loads":
                    yield RefusedError(
                        f"{folder}: a broker would not load this directory: {loaded.reason}"
                    )
            flavour = KAFKA if self._to_kafka else REDPANDA
            yield from sound.faults(self._output.complete(folder), flavour)

    def _pieces(self, path: Path) -> Iterator[OutputSegment]:
        if self._to_kafka:
            yield to_kafka.piece_of(path, self._start_delta)
        else:
            yield from to_redpanda.pieces_of(path)

    def _written(self, piece: OutputSegment) -> Converted:
        def counted() -> Iterator[bytes]:
            for block in piece.blocks(piece):
                piece.bytes += len(block)
                yield block

        self._output.write_part(piece.target, counted())
        for path, content in piece.neighbours.items():
            is_inside = path.parent == piece.target.parent
            (self._output.write_part if is_inside else self._output.write)(path, [content])
        summary = self.summary
        summary.segments += 1
        summary.batches += piece.batches
        summary.records += piece.records
        summary.bytes += piece.bytes
        summary.partitions += summary.partitions == 0
        summary.to_do |= piece.damaged > 0
        return Converted(piece, self._output.path / piece.target)


def _segments(path: Path) -> list[Path]:
    """Return the segments that a path stands for: a partition dir for all of its own."""
    if not files.leads_to_dir(path):
        return [path]
    if inputs.kind_of(path, redpanda=True) is not PathKind.PARTITION_DIR:
        raise UnreadableError(path, "expected a segment or a partition dir")
    return [segment.log.path for segment in opening.open_partition(path).segments]
