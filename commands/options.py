"""The options that commands share: the same name and meaning everywhere.

`Inputs`, `Running`, `Printing` and the like are groups that `spread` puts into the signature of a
command; `Without` leaves an option out. The other names are types of single parameters.
"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands.output import OutputSettings
from logtool.commands.program import case_paths, parsing
from logtool.commands.program.broker_config import NO_CONFIG, BrokerConfig
from logtool.commands.program.broker_config import load as load_broker_config
from logtool.commands.program.cell_options import CsvEscaped, CsvSafe, Fields
from logtool.commands.program.spread import Without
from logtool.disk import files
from logtool.errors import UsageError
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass
from logtool.log.flavour import FlavourName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtool.commands.output import Report
    from logtool.log import inputs
    from logtool.log.flavour import Flavour
    from logtool.log.inputs import NodeDir
    from logtool.log.selection import Selection
    from logtool.running.run import Run
    from logtool.running.workers import Pace


def local_path(text: str) -> Path:
    """Return a path that is read and written on this system only; UsageError for a URL."""
    path = files.path_of(text)
    if files.is_remote(path):
        raise UsageError(f"{text}: expected a local path, not a URL")
    return path


class Format(StrEnum):
    """Output formats of stdout."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    TSV = "tsv"
    MARKDOWN = "markdown"


class Color(StrEnum):
    """Conditions under which colour is used."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


Paths = Annotated[
    # Not Path: that would take an empty string for the current directory.
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Log dirs, partition dirs or files; a local path or a URL such as "
        "s3://bucket/dir. Default: the log dirs in --broker-config, otherwise the "
        "current directory.",
        show_default=False,
    ),
]
LocalPaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Log dirs, partition dirs or files. Default: the log dirs in --broker-config, "
        "otherwise the current directory.",
        show_default=False,
    ),
]
FilesFrom = Annotated[
    str | None,
    typer.Option(
        "--files-from",
        metavar="FILE",
        help="Read more paths from FILE, one on each line; - is standard input.",
    ),
]
Null = Annotated[
    bool,
    typer.Option("--null", help="The paths in --files-from end with NUL, not with a line end."),
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="GLOB", help="Select only the topics that match; repeatable."),
]
ExcludeTopics = Annotated[
    list[str] | None,
    typer.Option("--exclude-topic", metavar="GLOB",
                 help="Leave out the topics that match; repeatable."),
]  # fmt: skip
Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="N",
                 help="Select only these partitions, for example 0 or 0,3-5; repeatable."),
]  # fmt: skip
BrokerConfigFile = Annotated[
    BrokerConfig | None,
    typer.Option(
        "--broker-config", metavar="FILE", parser=load_broker_config,
        help="Configuration file of the broker, such as server.properties. If PATH is not given, "
        "logtool uses the log dirs in the file. For an option that is not given, it uses the "
        "corresponding setting, if the file has one. One line on standard error shows the settings "
        "that logtool took from the file.",
    ),
]  # fmt: skip
FlavourOption = Annotated[
    FlavourName | None,
    typer.Option(
        "--flavour",
        help="Format of the directories. Default: detected from file names.",
    ),
]
FormatOption = Annotated[
    Format, typer.Option("-f", "--format", help="Format of standard output.", show_default=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Same as --format json.")]
Wide = Annotated[
    bool,
    typer.Option(
        "--wide/--no-wide",
        help="Show all columns of a table, even if they do not fit the terminal. Tables in pipes "
        "and files have all columns, unless the variable COLUMNS is set.",
    ),
]
FailOn = Annotated[
    Severity,
    typer.Option("--fail-on",
                 help="Exit with status 1 if there is a finding of this severity or higher."),
]  # fmt: skip
ColorOption = Annotated[
    Color,
    typer.Option(
        "--color",
        help="When to use colour. auto: on a terminal, unless NO_COLOR is set or TERM is dumb.",
    ),
]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show progress on standard error. Default: only on a terminal.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("-j", "--jobs", metavar="N", min=1,
                 help="Number of threads. Default: one for each processor."),
]  # fmt: skip
MaxRate = Annotated[
    str | None,
    typer.Option(
        "--max-rate",
        metavar="SIZE",
        help="Read at most SIZE per second (for example 200M), all threads together.",
    ),
]
MaxBatchMemory = Annotated[
    str,
    typer.Option(
        "--max-batch-memory", metavar="SIZE",
        help="Skip the records of a batch that decompresses to more than SIZE (for example 64M), "
        "and report each skipped batch.",
    ),
]  # fmt: skip
MAX_BATCH_MEMORY = "256M"
"""More than the 100 MiB that brokers and consumers allow for one fetch."""
MaxDuration = Annotated[
    str | None,
    typer.Option(
        "--max-duration",
        metavar="TIME",
        help="Stop after TIME (for example 90s, 10m or 2h), and report what was checked.",
    ),
]
Apply = Annotated[
    bool,
    typer.Option(
        "--apply",
        help="Make the changes. Without this option, only show them.",
    ),
]
UndoDir = Annotated[
    Path | None,
    typer.Option(
        "--undo-dir",
        metavar="DIR",
        parser=local_path,
        help="Directory for the data that 'logtool undo' needs. Default: a new directory "
        "next to the log dir.",
    ),
]
SavedTo = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="DIR",
        parser=local_path,
        help="Write into DIR, which must be new or empty and outside of all log dirs.",
    ),
]
SummaryToStdout = Annotated[
    bool,
    typer.Option(
        "--summary-to-stdout",
        help="Print totals, verdict and next commands on standard output after the table, "
        "not on standard error, so that '> report.txt' contains them.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="Print only errors on standard error: no totals."),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print more details.")]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Options and arguments for the inputs of a command."""

    paths: Paths = None
    files_from: FilesFrom = None
    null: Null = False
    topic: Topics = None
    exclude_topic: ExcludeTopics = None
    partition: Partitions = None
    broker_config: BrokerConfigFile = None

    @property
    def broker(self) -> BrokerConfig:
        """Return the settings in --broker-config; an empty configuration without it."""
        return self.broker_config or NO_CONFIG

    @property
    def selection(self) -> "Selection":
        """Return the selection of partitions in log dirs."""
        from logtool.log.selection import Selection

        return Selection(
            topics=tuple(self.topic or ()),
            exclude_topics=tuple(self.exclude_topic or ()),
            partitions=parsing.parse_partitions(self.partition or ()),
        )

    def texts(self) -> list[str]:
        """Return the given paths and the paths in --files-from, as `parsing.all_texts` does.

        Without a path, return the log dirs in --broker-config.
        """
        none = not self.paths and self.files_from is None and not self.null
        if self.broker and none:
            return self.broker.log_dirs()
        return parsing.all_texts(self.paths, self.files_from, self.null)

    def path_of(self, text: str) -> Path:
        """Return the path of a text; UsageError for a URL that cannot be used."""
        return files.path_of(text)

    @property
    def given_flavour(self) -> "Flavour | None":
        """Return the value of --flavour; None without it, and in a command that lacks it."""
        name = getattr(self, "flavour", None)
        if name is None:
            return None
        from logtool.log.opening import FLAVOURS

        return FLAVOURS[name]

    def given(self) -> list[Path]:
        """Return the paths of `texts`; UsageError for a path that the command cannot read."""
        return [one.path for one in self.node_dirs()]

    def node_dirs(self) -> "list[NodeDir]":
        """Return the paths of `texts` with the node ids of ``ID=DIR``; UsageError as `given`."""
        from logtool.log import inputs

        found = [inputs.parse_node_dir(text, self.path_of) for text in self.texts()]
        return case_paths.with_cases(found, taken=getattr(self, "takes_cases", False))

    def with_buckets(self) -> "inputs.GivenPaths":
        """Return the same as `resolved`; log dirs include what a bucket of them has."""
        given = self.resolved()
        if not (given.has_bucket_and_more or given.has_tier):
            return given
        from logtool.remote import joining

        return joining.join(given)

    def of_one_broker(self, selection: "Selection | None" = None) -> "inputs.GivenPaths":
        """Return the same as `resolved`; UsageError for paths with several node ids."""
        ids = sorted({one.node for one in self.node_dirs() if one.node is not None})
        if len(ids) > 1:
            named = " and ".join(map(str, ids))
            raise UsageError(f"the paths belong to brokers {named}; give those of one broker")
        return self.resolved(selection=selection)

    def of_one_cluster(self, paths: "Sequence[Path] | None" = None) -> "inputs.GivenPaths":
        """Return the same as `resolved`; UsageError for paths of several clusters."""
        from logtool.node.identity import refuse_several_clusters

        found = self.with_buckets() if paths is None else self.resolved(paths)
        refuse_several_clusters(found.paths)
        return found

    def resolved(
        self, paths: "Sequence[Path] | None" = None, selection: "Selection | None" = None
    ) -> "inputs.GivenPaths":
        """Return the paths (default: `given`) with the selection and their source."""
        from logtool.log import inputs

        return inputs.GivenPaths(
            self.given() if paths is None else paths,
            self.selection if selection is None else selection,
            config=self.broker_config,
            flavour=self.given_flavour,
        )


@dataclass(frozen=True, slots=True)
class AnyInputs(Inputs):
    """Inputs of a command that can also read Redpanda directories."""

    flavour: FlavourOption = None


@dataclass(frozen=True, slots=True)
class LocalInputs(Inputs):
    """Inputs of a command that works only on local paths."""

    paths: LocalPaths = None

    def path_of(self, text: str) -> Path:
        """Return the path that a text names; UsageError for a URL."""
        path = files.path_of(text)
        if files.is_remote(path):
            raise UsageError(f"{path}: this command requires a local path, not a URL")
        return path


@dataclass(frozen=True, slots=True)
class AnyLocalInputs(LocalInputs):
    """Local inputs of a command that can also read Redpanda directories."""

    flavour: FlavourOption = None


@dataclass(frozen=True, slots=True)
class Running:
    """Options for the resources of the machine that a command uses."""

    jobs: Jobs = None
    max_rate: MaxRate = None
    max_duration: MaxDuration = None

    @property
    def threads(self) -> int:
        """Return the number of threads."""
        from logtool.running.workers import available_cpus

        return self.jobs or available_cpus()

    def run(self, report: "Report") -> "Run":
        """Return a run that begins now; `report` shows its progress and its time limit.

        UsageError for a wrong rate or time.
        """
        from logtool.running import budget, run

        report.summary.pace = pace = self.pace()
        return run.Run(on_progress=report.show, budget=budget.Budget(self.threads, pace))

    def pace(self) -> "Pace":
        """Return the limits of rate and time from now on; UsageError for a wrong rate or time."""
        from logtool.running import budget, workers

        rate = parsing.parse_size("--max-rate", self.max_rate) if self.max_rate else None
        files.LogFile.stretch = budget.stretch_at(rate, self.threads if rate else 1)
        text = self.max_duration
        seconds = parsing.parse_duration("--max-duration", text) if text else None
        return workers.Pace.starting_now(rate, seconds)


@dataclass(frozen=True, slots=True)
class Printing:
    """Options for the output."""

    format: FormatOption = Format.TABLE
    csv_safe: CsvSafe = False
    csv_escaped: CsvEscaped = False
    fields: Fields = None
    as_json: AsJson = False
    color: ColorOption = Color.AUTO
    progress: Progress = None
    wide: Wide = False
    summary_to_stdout: SummaryToStdout = False
    quiet: Quiet = False
    verbose: Verbose = False

    def settings(self, chosen: StrEnum | None = None) -> OutputSettings:
        """Return the settings of the output; UsageError for contradicting options.

        `chosen` is the format in a command with formats of its own.
        """
        chosen = self.format if chosen is None else chosen
        if self.as_json and chosen not in ("table", "json"):
            raise UsageError(f"--json and --format {chosen} contradict each other")
        for name, given in (("--csv-safe", self.csv_safe), ("--csv-escaped", self.csv_escaped)):
            if given and (self.as_json or chosen not in ("csv", "tsv")):
                raise UsageError(f"{name} requires --format csv or tsv")
        if self.fields is not None and chosen not in list(Format):
            raise UsageError(f"--fields requires one of these formats: {', '.join(Format)}")
        if self.summary_to_stdout and (self.as_json or chosen not in ("table", "markdown")):
            raise UsageError(
                "--summary-to-stdout requires --format table or markdown; JSON always has a summary"
            )
        if self.summary_to_stdout and self.quiet:
            raise UsageError("--quiet and --summary-to-stdout contradict each other")
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose contradict each other")
        return OutputSettings(
            format="json" if self.as_json else str(chosen),
            color=str(self.color),
            quiet=self.quiet,
            verbose=self.verbose,
            progress=self.progress,
            csv_safe=self.csv_safe,
            csv_escaped=self.csv_escaped,
            fields=() if self.fields is None else tuple(self.fields.split(",")),
            wide=self.wide,
            summary_to_stdout=self.summary_to_stdout,
        )


StillPrinting = Annotated[Printing, Without("progress")]
"""The options of `Printing` without --progress, for a command that shows no progress."""
