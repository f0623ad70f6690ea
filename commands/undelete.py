"""``logtool undelete``: deleted files that still exist, in new partition dirs."""

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
    """Restore deleted segments and partitions that are still on the disk.

    When a broker deletes a segment, it renames the file to .deleted; when it deletes a partition,
    it renames the directory so that it ends in -delete. It removes both a minute later
    (file.delete.delay.ms), or at its next start. The command writes everything that still exists
    into new partition dirs in DIR/partitions/TOPIC-N, with new indexes, producer snapshots and
    leader epochs. Damaged ranges go into DIR/rejects, as with 'logtool salvage'. It only reads the
    log dir. Stop the broker, or copy the directory, immediately; otherwise the broker removes the
    files.

    If a partition is still live, only its deleted segments are restored. A truncation may have
    removed them, so compare them with the log before you use them. If a topic was deleted twice,
    the second partition dir is written to DIR/partitions.2.

    Examples:
      logtool undelete --output /mnt/back /var/lib/kafka/data
      logtool undelete --output /mnt/back --topic orders /var/lib/kafka/data

    Bring a topic back:

    Create the topic again, stop the broker, and put the saved files in the place of the new ones,
    except partition.metadata. The guide logtool-recipes has the steps.

    Exit status:
      0    all deleted files were restored
      1    some bytes were rejected, a broker would not start with the restored partitions, or
           directories are set aside as stray, and their records are not saved
      2
      4    ..., or DIR could not be written
      5    refused: DIR is not empty, is in a log dir, or has too little space
      6    --max-duration ran out; the partitions written so far are complete
      130

    """
    from logtool.commands.views.salvage import run

    raise typer.Exit(run(inputs, running, printing, output=output, deleted=True))
