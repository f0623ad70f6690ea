"""``logtool may-delete``: whether other copies hold all of a partition dir. Writes nothing."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread

Target = Annotated[
    Path,
    typer.Argument(
        metavar="PATH", help="A partition dir of any name.", show_default=False,
        parser=options.local_path,
    ),
]  # fmt: skip
Among = Annotated[
    list[Path] | None,
    typer.Option(
        "--among",
        metavar="DIR",
        parser=options.local_path,
        help="A log dir, or a partition dir, that may hold a copy; repeatable. The log dir of PATH "
        "is looked at anyway.",
    ),
]


@spread
def may_delete(
    *,
    path: Target,
    among: Among = None,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Say whether a partition dir may be deleted, with the proof, or what only it has.

    A batch is held elsewhere where a live copy of the same topic id has one of the same offsets,
    leader epoch, CRC and size. What a broker deletes or puts aside by itself (-delete, -stray,
    -future) proves nothing, nor does a copy that is damaged or cannot be read, nor one without
    topic id, nor copies that diverge.

    Where no copy holds a batch and one was compacted, the records decide: of each key the last one
    here must be there at its offset with its value, or a later one of the key. If the last one
    deletes the key, it is enough that the key is gone below the offset that cleaner-offset-
    checkpoint has. Aborted transactions count for nothing. Records without a key, open transactions
    and batches that cannot be read are not proven. Unless the metadata log in one of the log dirs
    says that the topic is compacted today, only what lies below the offset in cleaner-offset-
    checkpoint is judged so: give that log dir, too. The logs are read a second time.

    With the answer yes it prints which copy holds which offsets, and the SHA-256 of the batches
    (base offset, last offset, leader epoch, CRC and size of each as big-endian int64). It speaks of
    the batches and not of what a broker does next: delete one copy at a time, while no broker uses
    it, and ask again before the next.

    Examples:
      logtool may-delete /data/1/orders-0.1f2e...-stray --among /mnt/broker-2/data
      logtool may-delete /data/1/orders-0 --among /mnt/b2/orders-0 && rm -r /data/1/orders-0

    Exit status:
      0    yes: live copies hold every batch, or have a later record of each key of it
      1    no: some batches are nowhere else, or it is not proven
      2
      4    incomplete: some input could not be read; nothing is proven
      6    --max-duration ran out; nothing is proven
      130

    """
    from logtool.commands.views.may_delete import run

    raise typer.Exit(run(path, among or [], running, printing))
