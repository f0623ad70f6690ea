"""Times verify with the kernels as plain Python: ``python -m bench.pure DIRECTORY PAIRS``."""

import importlib.util
import json
import sys
from pathlib import Path

import logtool.formats

NAME = "logtool.formats._kernels"


def main() -> None:
    source = Path(logtool.formats.__path__[0]) / "_kernels.py"
    spec = importlib.util.spec_from_file_location(NAME, source)
    if spec is None or spec.loader is None:
        raise ImportError(source)
    # Replaces the compiled module before its first import.
    sys.modules[NAME] = kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    setattr(logtool.formats, "_kernels", kernels)  # noqa: B010
    if kernels.COMPILED:
        raise AssertionError("the plain text of the kernels was asked for")

    from bench.bare import pass_over
    from bench.measure import pairs

    from logtool.checks.report import SegmentTask
    from logtool.checks.segment import check_segment
    from logtool.log import opening

    used = vars(sys.modules["logtool.log.walk.scanner"])["_kernels"]
    if used.walk_batches is not kernels.walk_batches:
        raise AssertionError("the scan uses other kernels")
    segment = opening.open_partition(Path(sys.argv[1])).segments[0]
    timing = pairs(
        lambda: check_segment(SegmentTask(segment)),
        lambda: pass_over(segment.log.path),
        int(sys.argv[2]),
    )
    json.dump({"ours": timing.ours, "theirs": timing.theirs}, sys.stdout)


if __name__ == "__main__":
    main()
