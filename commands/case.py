"""``logtool case``: log dirs in one file, without payload. Writes nothing but ``--output``."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CaseDirs(options.LocalInputs):
    """Arguments for the directories of a case file: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            show_default=False,
            help="Log dirs or partition dirs. ID=DIR sets the node id. Default: the log dirs in "
            "--broker-config, otherwise the current directory.",
        ),
    ] = None


CaseFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        parser=options.local_path,
        help="Write the case file FILE, which must be new, end with .tar.zst and lie outside of "
        "all log dirs.",
    ),
]
Shown = Annotated[
    Path | None,
    typer.Option(
        "--show",
        metavar="FILE",
        parser=options.local_path,
        help="Show what the case file FILE holds, and read no log dir.",
    ),
]
Anonymize = Annotated[
    bool,
    typer.Option(
        "--anonymize",
        help="Put other names of the same size in the place of those of topics, groups, "
        "transactional ids, client ids, hosts, racks and users. Internal topics keep theirs.",
    ),
]
NamesFile = Annotated[
    Path | None,
    typer.Option(
        "--names",
        metavar="FILE",
        parser=options.local_path,
        help="With --anonymize: write each name and its replacement into FILE, which must be new "
        "and is not to be sent.",
    ),
]


@spread
def case(
    *,
    inputs: Annotated[CaseDirs, Without("topic", "exclude_topic", "partition")],
    output: CaseFile = None,
    show: Shown = None,
    anonymize: Anonymize = False,
    names: NamesFile = None,
    running: Annotated[options.Running, Without("jobs")],
    printing: options.Printing,
) -> None:
    """Write log dirs into one file without payload, to send it to somebody who helps.

    The case file holds the headers of all batches, indexes, snapshots, checkpoints and the metadata
    log. Keys, values and headers of records are not in it, nor settings that may be secret. The
    commands verify, plan, gaps, txns, watermark, diff and stat take a case file in place of a DIR,
    or FILE.tar.zst:/PLACE for a directory in it, and give the same answers.

    --show prints what is in a case file, for the person who has to approve that it is sent.

    Examples:
      logtool case --output /tmp/broker-1.tar.zst /var/lib/kafka/data
      logtool case --output /tmp/case.tar.zst 1=/mnt/a/data 2=/mnt/b/data
      logtool case --anonymize --names names.json --output /tmp/c.tar.zst /var/lib/kafka/data
      logtool case --show /tmp/case.tar.zst
      logtool verify /tmp/case.tar.zst

    What is kept:

    Of each batch the header is kept, with its CRC, and of each record its offset. Names of topics,
    groups and hosts, transactional ids and the settings of topics are kept, unless --anonymize is
    given: then one name has the same replacement everywhere in the case file, and answers differ in
    names alone. Files that no broker writes are kept as names and sizes. A file that cannot be read
    is absent, and the manifest says so. Because the CRC and the size of a batch are kept, anyone
    who can guess its whole payload can confirm the guess. 'logtool man recipes' has a table, and
    the share of the size for large and small batches.

    Directories of Redpanda and buckets of AutoMQ are left out, with status 4.

    Exit status:
      0    the case file was written, or shown
      2
      4    incomplete: a file or a directory could not be read, and is absent from the case file; or
           FILE could not be written, or is no case file
      5    refused: FILE exists, or is in a log dir
      6    ...; no case file was written
      130  ...; no case file was written

    """
    if (output is None) == (show is None):
        raise UsageError("give either --output or --show")
    if show is not None:
        if inputs.paths or inputs.files_from or anonymize or names:
            raise UsageError("--show reads the case file only; it takes no DIR and no other option")
        from logtool.commands.views.case import show_case

        raise typer.Exit(show_case(show, printing))
    from logtool.commands.views.case import run

    if output is None or not output.name.endswith(".tar.zst"):
        raise UsageError("--output: the name of a case file ends with .tar.zst")
    if names and not anonymize:
        raise UsageError("--names requires --anonymize")
    raise typer.Exit(
        run(inputs, running, printing, output=output, anonymize=anonymize, names=names)
    )
