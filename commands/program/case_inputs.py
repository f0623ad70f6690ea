"""The inputs of a command that takes case files in the place of directories."""

from logtool.commands import options
from logtool.commands.program.case_paths import TakesCases
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CaseInputs(TakesCases, options.AnyInputs):
    """Inputs of a command that can also read Redpanda directories and case files."""
