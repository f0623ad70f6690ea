"""Compares `logtool plan` with brokers on every damage of the small files read at a start.

Each case is one damaged file in one log dir. Several log dirs with one case each are started
together if `plan` predicts that no case ends the start or affects the other log dirs. Every other
case is started alone, and so are the cases of a start that failed. The work folder keeps each
outcome, so a campaign that was stopped continues. `plan` runs again for every case.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from broker import damaged_small_files, small_files  # noqa: E402
from broker.damaged_small_files import CHECKPOINTS, Case  # noqa: E402

from logtool.errors import LogtoolError  # noqa: E402
from logtool.formats import offset_checkpoint  # noqa: E402
from logtool.loading.result import Outcome  # noqa: E402
from logtool.node.options import StartOptions  # noqa: E402
from logtool.startup.forecast import Forecast  # noqa: E402
from logtool.startup.partition import PartitionForecast  # noqa: E402

RELEASES = ("3.3.2", "3.7.2", "3.9.2", "4.3.1")
MANY = 9
"""Log dirs of a broker of which each but the first may have a case."""
ENDS, OFFLINE, STARTS = "does not start", "log dir offline", "starts"
_UNREAD = {
    "replication-offset-checkpoint": "leads nothing here",
    "cleaner-offset-checkpoint": "cleaner ends",
}


@dataclass(frozen=True)
class Trial:
    """A case and where it is tried."""

    case: Case
    place: str
    """``first``: the first log dir of several, with the metadata log; ``other``: another log dir of
    several; ``only``: the only log dir; ``killed``: like ``other``, after a kill."""

    @property
    def key(self) -> str:
        """Return a text that identifies the trial."""
        return f"{self.place}: {self.case.name}"

    @property
    def dirs(self) -> int:
        """Return the number of log dirs."""
        return 1 if self.place == "only" else MANY

    @property
    def number(self) -> int:
        """Return the number of its log dir where it is started alone."""
        return int(self.place in ("other", "killed"))


class Campaign:
    """The starts of one release."""

    def __init__(self, version: str, work: Path) -> None:
        self._version = version
        major, minor, *_ = version.split(".")
        self._settings = StartOptions((int(major), int(minor)))
        self._home = work / version
        self._home.mkdir(parents=True, exist_ok=True)
        self._kept = self._home / "seen.jsonl"
        lines = self._kept.read_text().splitlines() if self._kept.exists() else []
        self.seen = {found["key"]: found["seen"] for found in map(json.loads, lines)}
        """The outcome of each trial, by its key."""

    def said(self, trial: Trial) -> str:
        """Return the prediction of `plan` for a trial."""
        with tempfile.TemporaryDirectory(dir=self._home, prefix="trial-") as temporary:
            home = Path(temporary) / "home"
            # The other log dirs are sound. Only rows for the cleaner are compared across log dirs.
            dirs = trial.dirs if trial.case.file == CHECKPOINTS[3] else min(trial.dirs, 2)
            self._copy([trial], home, dirs=dirs)
            paths = small_files.log_dirs(home, dirs)
            return predicted(Forecast(paths, self._settings))

    def run(self, trials: Sequence[Trial]) -> None:
        """Start the trials that have no outcome yet."""
        together: list[Trial] = []
        for trial in trials:
            if trial.key in self.seen:
                continue
            if trial.place == "other" and self.said(trial).startswith((OFFLINE, f"{STARTS}.")):
                together.append(trial)
            else:
                self._start([trial])
        for at in range(0, len(together), MANY - 1):
            group = together[at : at + MANY - 1]
            if not self._start(group):
                for trial in group:
                    self._start([trial])

    def _start(self, trials: Sequence[Trial]) -> bool:
        """Start trials together and keep the outcomes; return False if such a start failed."""
        dirs = trials[0].dirs
        with tempfile.TemporaryDirectory(dir=self._home, prefix="trial-") as temporary:
            home = Path(temporary) / "home"
            self._copy(trials, home)
            started = small_files.start(self._version, home, dirs)
        if len(trials) > 1 and not (started.runs and started.cleaner):
            return False
        for number, trial in self._placed(trials):
            names = [entry.name for entry in partitions(self._base(dirs) / f"dir-{number}")]
            self._keep(trial, outcome(started, f"dir-{number}", names))
        return True

    def _placed(self, trials: Sequence[Trial]) -> Iterator[tuple[int, Trial]]:
        return enumerate(trials, trials[0].number)

    def _copy(self, trials: Sequence[Trial], home: Path, dirs: int | None = None) -> None:
        base = self._base(trials[0].dirs)
        for log_dir in small_files.log_dirs(home, dirs or trials[0].dirs):
            shutil.copytree(base / log_dir.name, log_dir)
            if trials[0].place == "killed":
                (log_dir / ".kafka_cleanshutdown").unlink()
                _write_rows(log_dir, CHECKPOINTS[0], 0)
            _write_rows(log_dir, "log-start-offset-checkpoint", 1)
            _write_rows(log_dir, "cleaner-offset-checkpoint", 0)
        for number, trial in self._placed(trials):
            trial.case.apply(home / f"dir-{number}")

    def _base(self, dirs: int) -> Path:
        base = self._home / f"base{dirs}"
        if not base.exists():
            making = self._home / f"making{dirs}"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            small_files.make(self._version, making, dirs)
            making.rename(base)
        return base

    def _keep(self, trial: Trial, seen: str) -> None:
        self.seen[trial.key] = seen
        with self._kept.open("a") as file:
            file.write(json.dumps({"key": trial.key, "seen": seen}) + "\n")


def partitions(log_dir: Path) -> list[Path]:
    """Return the directories of the harness's topics."""
    return sorted(e for e in log_dir.iterdir() if e.is_dir() and e.name[0] in "kc")


def predicted(forecast: Forecast) -> str:
    """Return the prediction of `plan` for log dirs, one of which has a case."""
    ends = offline = False
    rest = set()
    for item in forecast:
        if isinstance(item, LogtoolError):
            raise item
        if isinstance(item, PartitionForecast):
            ends |= item.outcome is Outcome.REFUSES
            offline |= item.outcome is Outcome.OFFLINE
            rest |= {f"a directory gets -{a.action}" for a in item.actions
                     if a.action in ("stray", "delete")}  # fmt: skip
        else:
            ends |= item.action == "refuse"
            offline |= item.action == "offline"
            if item.action == "ignore" and item.path.name in _UNREAD:
                rest.add(_UNREAD[item.path.name])
    if ends:
        return f"{ENDS}."
    return f"{OFFLINE}." if offline else ", ".join([STARTS, *sorted(rest)]) + "."


def outcome(started: small_files.Started, log_dir: str, names: Sequence[str]) -> str:
    """Return the outcome of a case in a log dir with these partitions, in the same words."""
    if not started.runs:
        return f"{ENDS}."
    if log_dir in started.offline:
        return f"{OFFLINE}."
    renamed = {name.partition("/")[2]: kind for name, kind in started.renamed.items()
               if name.startswith(f"{log_dir}/")}  # fmt: skip
    rest = {f"a directory gets -{kind}" for kind in renamed.values()}
    if any(name not in started.served for name in names if name not in renamed):
        rest.add(_UNREAD["replication-offset-checkpoint"])
    if not started.cleaner:
        rest.add(_UNREAD["cleaner-offset-checkpoint"])
    return ", ".join([STARTS, *sorted(rest)]) + "."


def _write_rows(log_dir: Path, file: str, offset: int) -> None:
    names = [path.name.rpartition("-") for path in partitions(log_dir)]
    rows = {(topic, int(number)): offset for topic, _, number in names}
    data = offset_checkpoint.encode(offset_checkpoint.build(rows))
    (log_dir / file).write_bytes(data)


def all_trials() -> list[Trial]:
    """Return every trial of the campaign."""
    return [
        *(Trial(case, "other") for case in damaged_small_files.in_a_log_dir()),
        *(Trial(case, "only") for case in damaged_small_files.in_the_only_log_dir()),
        *(Trial(case, "first") for case in damaged_small_files.in_the_first_log_dir()),
        *(Trial(case, "killed") for case in damaged_small_files.after_a_kill()),
    ]


def sample(count: int, seed: int) -> list[Trial]:
    """Return some trials of the campaign by a seed."""
    return random.Random(seed).sample(all_trials(), count)


def report(campaigns: dict[str, Campaign], trials: Sequence[Trial]) -> Iterator[str]:
    """Yield the lines of the report: outcomes, and the predictions of `plan` that differ."""
    yield "# Damaged small files: outcomes of brokers and predictions of plan"
    yield ""
    yield "Made by `make campaign-files`: each case is one damaged file in one log dir of a real"
    yield "broker that is then started. `first`: the log dir with the metadata log. `other`:"
    yield "another log dir. `only`: the only log dir. `killed`: another log dir, after a kill."
    yield ""
    yield "| release | cases | as plan says | otherwise |"
    yield "| --- | --- | --- | --- |"
    wrong: list[str] = []
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    for version, campaign in campaigns.items():
        judged = Counter[bool]()
        for trial in trials:
            seen = campaign.seen.get(trial.key)
            if seen is None:
                continue
            said = campaign.said(trial)
            judged[said == seen] += 1
            rows[trial.key][version] = seen
            if said != seen:
                wrong.append(f"- {version}, {trial.key}: {seen} Plan says: {said}")
        yield f"| {version} | {judged.total()} | {judged[True]} | {judged[False]} |"
    yield ""
    if wrong:
        yield from ["## Otherwise", "", *wrong, ""]
    yield "## Every case"
    yield ""
    yield f"| case | {' | '.join(campaigns)} |"
    yield "| --- |" + " --- |" * len(campaigns)
    for key, seen_in in rows.items():
        cells = [seen_in.get(version, "").rstrip(".") for version in campaigns]
        yield f"| {key} | {' | '.join(cells)} |"


def main() -> None:
    """Run the campaign and write its report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--release", action="append", choices=RELEASES)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--judge-only", action="store_true", help="start nothing")
    chosen = parser.parse_args()
    trials = all_trials()
    campaigns = {}
    for version in chosen.release or RELEASES:
        campaigns[version] = Campaign(version, chosen.work)
        if not chosen.judge_only:
            campaigns[version].run(trials)
    text = "\n".join(report(campaigns, trials)) + "\n"
    if chosen.report:
        chosen.report.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
