"""``logtool undelete``: what a broker has deleted and not yet removed, in new partition dirs."""

import typer

from logtool.commands import options
from logtool.commands.program.spread import spread


@spread
def undelete(
    *,
    inputs: options.LocalInputs,
    output: options.SavedTo,
    running: options.Running,
    printing: options.Printing,
) -> None:
    """Bring back what still waits for its deletion, as new partition dirs.

    A broker renames a segment that it deletes to .deleted, and a partition dir to a name that ends
    with -delete, and removes both after a minute (file.delete.delay.ms), or when it starts next.
    What is still there is written as 'logtool salvage' writes it: logs under their old names, with
    new indexes, snapshots and leader epochs, in DIR/partitions/TOPIC-N; damaged ranges go into
    DIR/rejects. The log dir is only read. Stop the broker, or copy the directory, at once: nothing
    else keeps it.

    Of a partition that is still live only its deleted segments are taken. They may be of a past
    that a truncation removed: compare them with the log before you use them. A topic that was
    deleted twice comes in a directory for each time: the second lies in DIR/partitions.2.

    Examples:
      logtool undelete --output /mnt/back /var/lib/kafka/data
      logtool undelete --output /mnt/back --topic orders /var/lib/kafka/data

    Exit status:
      0    all that waits for its deletion was written
      1    something of it was rejected, or a broker would not start with it
      2
      4    incomplete: nothing matched, or some input could not be read, or DIR not be written
      5    refused: DIR is not empty or lies in a log dir, or has too little room
      6    --max-duration ran out; the partitions written until then are whole
      130

    """
    from logtool.commands.views.salvage import run

    raise typer.Exit(run(inputs, running, printing, output=output, deleted=True))
