"""``logtool may-delete``: proof that other copies hold a partition dir. Writes nothing."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread

Targets = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Partition dirs; a name may have any suffix, such as -stray. With several, none of "
        "them counts as a copy.",
        show_default=False,
        parser=options.local_path,
    ),
]
Among = Annotated[
    list[Path] | None,
    typer.Option(
        "--among",
        metavar="DIR",
        parser=options.local_path,
        help="Log dir or partition dir that may contain a copy; repeatable. The log dir of "
        "PATH is always searched.",
    ),
]


@spread
def may_delete(
    *,
    paths: Targets,
    among: Among = None,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Check whether other copies hold all data of a partition dir.

    The answer is yes or no. With yes, the command prints which copy holds which offsets, and a
    SHA-256 of the batches (base offset, last offset, leader epoch, CRC and size of each as
    big-endian int64). With no, it prints what only this partition dir holds. The answer is about
    the batches, not about what a broker does next: delete one copy at a time, while no broker uses
    it, and run the command again before you delete another.

    A batch counts as stored elsewhere if a live copy of the same topic id has a batch with the same
    offsets, leader epoch, CRC and size. Directories that a broker deletes or sets aside (-delete,
    -stray, -future) do not count as copies. Copies that are damaged, unreadable, without a topic
    id, or diverging do not count either.

    Examples:
      logtool may-delete /data/1/orders-0.1f2e...-stray --among /mnt/broker-2/data
      logtool may-delete /data/1/orders-0 --among /mnt/b2/orders-0 && rm -r /data/1/orders-0

    Metadata log:

    The answer is no for __cluster_metadata-0, even if other nodes hold all of its batches: a node
    needs its own metadata log, with the snapshots and quorum-state. See 'logtool quorum'.

    Compacted topics:

    If no copy holds a batch and one copy was compacted, logtool reads the logs a second time and
    compares records. For each key, the last record here must exist in a copy at the same offset
    with the same value, or the copy must have a later record of that key. If the last record is a
    tombstone, it is enough that the key is gone below the offset in cleaner-offset-checkpoint.
    Records of aborted transactions are ignored. Records without a key, open transactions and
    unreadable batches are not proven.

    Records above the offset in cleaner-offset-checkpoint are compared only if the metadata log in
    one of the log dirs shows that the topic is compacted today; so pass that log dir too.

    Exit status:
      0    yes: live copies hold every batch, or a later record of each of its keys
      1    no: no other live copy holds some batches, or it is not proven
      2
      4    incomplete: an input could not be read; nothing is proven
      6    --max-duration ran out; nothing is proven
      130

    """
    from logtool.commands.views.may_delete import run

    raise typer.Exit(run(paths, among or [], running, printing))
