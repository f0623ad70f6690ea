"""The command of `doctor` about groups: their coordinators' partitions may have lost records."""

from collections.abc import Sequence

from logtool.disk import shell
from logtool.doctor.answers import Next
from logtool.doctor.examination import Examination
from logtool.doctor.next_command import damaged
from logtool.formats.names import COORDINATORS_OF_GROUPS


def coordinators(runs: Sequence[Examination]) -> Next | None:
    """Return the command that shows groups, if partitions with their records are damaged."""
    found = {
        f"{topic}-{number}"
        for run in runs
        for topic, number in damaged(run)
        if topic in COORDINATORS_OF_GROUPS
    }
    for run in runs:
        for one in run.forecasts:
            if one.doubts_groups:
                found.add(f"{one.request.topic}-{one.request.partition}")
    paths = [one.log_dir.path for run in runs for one in run.forecast.log_dirs]
    if not found or not paths:
        return None
    names = sorted(found)
    named = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"
    reason = f"which groups may be missing or older, as {named} may have lost records"
    return Next(f"logtool groups {' '.join(map(shell.path, paths))}", reason)
