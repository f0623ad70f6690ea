"""One examination of log dirs, with `verify` and `plan` within one time limit.

First everything is looked at quickly, then the next start is simulated, then every batch is checked
while there is time. Nothing is judged here: each finding is from `Verification`, and each action
from `Forecast`.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from logtool.actions import Action
from logtool.checks.partition import Item
from logtool.checks.partition_numbers import PartitionNumbers
from logtool.cleaner.after_start import MOST_LOGS, AfterStart, after_start, given_up
from logtool.cleaner.run import PartitionCleaning
from logtool.disk import files, in_use
from logtool.doctor import holdings
from logtool.doctor.holdings import LogDirNumbers
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import LogDir
from logtool.log.flavour import Flavour
from logtool.log.inputs import Opened, PathKind
from logtool.log.selection import Selection
from logtool.node.claims import has_list
from logtool.node.options import StartOptions
from logtool.running.budget import Budget
from logtool.running.run import Progress, Run
from logtool.running.summary import ActionSummary, Summary
from logtool.running.workers import OutOfTimeError
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.txns.after_start import OpenAfterStart, open_after_start
from logtool.txns.open_transactions import TransactionState
from logtool.verify import Level, Verification


@dataclass(slots=True)
class Checked:
    """The results of one level of verify so far."""

    items: list[Item] = field(default_factory=list)
    summary: Summary = field(default_factory=Summary)
    is_whole: bool = False
    """True if everything that could be read was checked."""


@dataclass(slots=True)
class Examination:
    """One run: call `look`, then read the results so far."""

    paths: Sequence[Path]
    assumed: StartOptions
    selection: Selection = field(default_factory=Selection)
    flavour: Flavour | None = None
    """The value of ``--flavour``; None to go by the names in each directory."""
    named_by: str = ""
    """The broker's own file, if it names the paths; empty if the command line does."""
    node: int | None = None
    """The node id of ``ID=DIR``; None without it."""
    budget: Budget = field(default_factory=Budget)
    on_progress: Callable[[Progress], None] | None = None
    policies: Mapping[str, str] = field(default_factory=dict)
    """Settings of retention and of the log cleaner in the broker's own file."""
    summary: ActionSummary = field(default_factory=ActionSummary)
    """Totals of the run; the examinations of several brokers share it."""
    quick: Checked = field(default_factory=Checked)
    deep: Checked = field(default_factory=Checked)
    forecasts: list[PartitionForecast] = field(default_factory=list)
    """Forecasts of the partitions, with only their grave actions."""
    actions: list[Action] = field(default_factory=list)
    """Grave actions of the next start."""
    changed_files: int = 0
    """Files that a start cuts, rebuilds, renames or removes."""
    purged: int = 0
    """Directories that end in -delete, and that the broker deletes after its start."""
    reappearing: int = 0
    """Partitions with deleted records that are readable again."""
    forecast: Forecast = field(init=False)
    forecast_ended: bool = False
    forecast_is_whole: bool = False
    """True if every partition was loaded before the time was over."""
    after_start: AfterStart | None = None
    """The first round of retention and the partitions that stay dirty; None if not looked at."""
    uncleanable: Sequence[PartitionCleaning] = ()
    """Compacted partitions with damage that the cleaner gives up, once every batch was checked."""
    transactions: OpenAfterStart | None = None
    """The transactions that are open after the start; None if there was no time for them."""
    has_too_many_logs: bool = False
    """True if there are too many partitions for that look."""
    homes: list[LogDirNumbers] = field(default_factory=list)
    """The numbers of the paths that could be listed."""
    _problems: dict[Path, UnreadableError] = field(default_factory=dict)
    """Errors of the forecast, by path."""
    _opened: Mapping[Path, Opened] = field(default_factory=dict)
    """The paths as verify opened them."""
    _numbers: dict[Path, PartitionNumbers] = field(default_factory=dict)
    """The numbers of the partition dirs that the quick look has reached."""

    def __post_init__(self) -> None:
        self.paths = list(files.each_once(self.paths))
        self.summary.pace = self.budget.pace
        self.forecast = Forecast(
            self.paths, self.assumed, selection=self.selection, run=self._run(),
            flavour=self.flavour,
            sample_disks=self.budget.pace.bytes_per_second is None,
        )  # fmt: skip

    def look(self) -> KeyboardInterrupt | None:
        """Examine all that there is time for; return the signal that ended it, or None."""
        end = None
        try:
            self._look()
        except KeyboardInterrupt as error:
            end = error
        self._sum_up()
        return end

    @property
    def findings(self) -> list[Finding]:
        """Return the findings of the batch level, and those only the quick look has reached.

        A finding of both counts once. If every batch was checked, these are the findings of verify.
        """
        deep = [item for item in self.deep.items if isinstance(item, Finding)]
        if self.deep.is_whole:
            return deep
        seen = {(one.code, one.path, one.position) for one in deep}
        quick = (item for item in self.quick.items if isinstance(item, Finding))
        return deep + [one for one in quick if (one.code, one.path, one.position) not in seen]

    @property
    def unread(self) -> list[UnreadableError]:
        """Return the errors of files that could not be read, each path once."""
        found: dict[Path, UnreadableError] = {}
        for item in (*self.deep.items, *self.quick.items, *self._problems.values()):
            if isinstance(item, UnreadableError):
                found.setdefault(item.path, item)
        return list(found.values())

    @property
    def has_partition_dirs(self) -> bool:
        """Return whether a path is a partition dir, not a log dir."""
        return PathKind.PARTITION_DIR in self._opened.values()

    @property
    def holder(self) -> in_use.Holder | None:
        """Return the process that holds one of the log dirs; None without one."""
        holders = (in_use.holder(one.log_dir.path) for one in self.forecast.log_dirs)
        return next((one for one in holders if one), None)

    def _run(self) -> Run:
        return Run(on_progress=self.on_progress, budget=self.budget)

    def _look(self) -> None:
        self._verify(Level.QUICK, self.quick)
        self.homes += self._holdings()
        for item in self.forecast:
            self._predicted(item)
        self.forecast_ended = True
        self.forecast_is_whole = not self.forecast.out_of_time
        self._look_after_the_start()
        self._look_for_transactions()
        with suppress(OutOfTimeError):
            self.budget.pace.spend(0)
            self._verify(Level.BATCHES, self.deep)
            self._look_for_uncleanable()

    def _holdings(self) -> Iterator[LogDirNumbers]:
        """Yield the numbers of the paths, without a second look where the quick one has them."""
        for path, found in self._opened.items():
            if isinstance(found, LogDir):
                yield holdings.of_log_dir(found, self.selection, self._numbers)
            elif found is PathKind.PARTITION_DIR:
                with suppress(UnreadableError):  # verify has reported it
                    yield holdings.of_partition_dir(path, self.flavour)
        self._numbers.clear()

    def _look_after_the_start(self) -> None:
        """Look at what retention deletes soon, if the start loads the logs and there is time."""
        refuses = any(action.action in ("refuse", "offline") for action in self.actions)
        of_kafka = any(one.flavour.has_checkpoints for one in self.homes)
        if refuses or not self.forecast_is_whole or not of_kafka:
            return
        self.has_too_many_logs = len(self.forecasts) > MOST_LOGS
        if self.has_too_many_logs:
            return
        found = after_start(
            self.paths,
            self.forecast.broker.node,
            time.time_ns() // 1_000_000,
            self.policies,
            selection=self.selection,
            run=self._run(),
            flavour=self.flavour,
        )
        self.after_start = None if self.budget.pace.ran_out else found

    def _look_for_uncleanable(self) -> None:
        """Run the cleaner over the partitions with damage, if the rounds of retention are known."""
        keys = {
            (one.topic, one.partition)
            for one in self.findings
            if one.severity is Severity.ERROR and one.topic and one.partition is not None
        }
        if not keys or self.after_start is None:
            return
        now_ms = time.time_ns() // 1_000_000
        selection = replace(self.selection, keys=frozenset(keys))
        node, run = self.forecast.broker.node, self._run()
        self.uncleanable = list(given_up(self.paths, node, now_ms, self.policies, selection, run))

    def _look_for_transactions(self) -> None:
        """Join the open transactions with the logs of their coordinators, if there is time."""
        homes = [one.log_dir for one in self.forecast.log_dirs]
        now_ms, pace = time.time_ns() // 1_000_000, self.budget.pace
        with suppress(OutOfTimeError):
            pace.spend(0)
            self.transactions = open_after_start(self.forecasts, homes, now_ms, pace.spend)

    def _verify(self, level: Level, checked: Checked) -> None:
        run = Verification(
            self.paths, level=level, selection=self.selection, budget=self.budget,
            on_progress=self.on_progress, static=self.assumed.static, flavour=self.flavour,
            numbers=self._numbers if level is Level.QUICK else None,
        )  # fmt: skip
        checked.summary = run.summary
        for item in run:
            checked.items.append(item)
        self._opened = run.opened
        checked.is_whole = not run.summary.out_of_time

    def _predicted(self, item: Action | PartitionForecast | UnreadableError) -> None:
        if isinstance(item, UnreadableError):
            self._problems.setdefault(item.path, item)
            return
        actions = item.actions if isinstance(item, PartitionForecast) else (item,)
        grave = [action for action in actions if action.is_grave]
        self.actions += grave
        self.changed_files += sum(action.change is not None for action in actions)
        self.purged += sum(action.action == "purge" for action in actions)
        self.reappearing += sum(action.action == "reappear" for action in actions)
        if isinstance(item, PartitionForecast):
            self.forecasts.append(replace(item, actions=tuple(grave)))

    @property
    def _has_hanging(self) -> bool:
        found = self.transactions
        return (
            any(
                each.state in (TransactionState.HANGING, TransactionState.MARKER_LOST)
                for one in found.partitions
                for each in one.open
            )
            if found
            else False
        )

    def _sum_up(self) -> None:
        """Fill the summary: the counts of the look that went further, findings and errors."""
        summary, read = self.summary, self.deep.summary if self.deep.is_whole else None
        read = read or max(self.quick.summary, self.deep.summary, key=lambda one: one.segments)
        summary.count(read, read.partitions)
        for finding in self.findings:
            summary.add(finding)
        for error in self.unread:
            summary.add(error)
        summary.to_do |= bool(self.actions) or self._has_hanging
        has = has_list([self.forecast.broker.node])
        if has is not None:
            summary.partition_list = has and summary.partition_list is not False
